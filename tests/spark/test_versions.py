"""PySpark 4.0 to 4.3, and Spark Connect: `version_check` in a virtual environment of each, with a local S3.

COORDWIRE_PYSPARKS names a folder with the environments `pyspark40` to `pyspark43`; what is missing is made:

    COORDWIRE_PYSPARKS=~/.cache/pysparks COORDWIRE_PYSPARK_VERSIONS=4.0,4.2 pytest -m pysparks

Without it these tests are skipped: an environment takes 600 MB, and each test a Java of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.tables.moto_s3 import local_s3

ROOT = Path(__file__).parents[2]
FOLDER = os.environ.get("COORDWIRE_PYSPARKS")
VERSIONS = os.environ.get("COORDWIRE_PYSPARK_VERSIONS", "4.0,4.1,4.2,4.3").split(",")
CONNECT = ("grpc", "grpc_status", "pandas", "google.rpc")

pytestmark = [
    pytest.mark.pysparks,
    pytest.mark.skipif(FOLDER is None, reason="COORDWIRE_PYSPARKS doesn't name a folder of environments"),
]


def python(version: str) -> Path:
    """The interpreter of an environment with the newest release of this PySpark, which is made if need be."""
    place = Path(FOLDER or "", f"pyspark{version.replace('.', '')}").expanduser()
    interpreter = place / "bin" / "python"
    if not interpreter.exists():
        subprocess.run([sys.executable, "-m", "venv", place], check=True)
        command: list[str | Path]
        command = [interpreter, "-m", "pip", "install", "--quiet", f"{ROOT}[spark]", f"pyspark=={version}.*"]
        subprocess.run(command, check=True)
    return interpreter


def check(interpreter: str | Path, folder: Path, *arguments: str) -> dict[str, object]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYSPARK_")}
    environment["STORE"] = "s3://versions/here"
    environment["PYTHONPATH"] = os.pathsep.join(
        [str(ROOT), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    )
    with local_s3() as s3:
        s3.put("versions", {})
        process = subprocess.run(
            [interpreter, "-m", "tests.spark.version_check", folder, *arguments],
            env=environment | s3.environment, cwd=ROOT, capture_output=True, text=True, timeout=1800,
            check=False,
        )  # fmt: skip
    assert process.returncode == 0, process.stderr[-5000:]
    result: dict[str, object] = json.loads(process.stdout.splitlines()[-1])
    return result


@pytest.mark.parametrize("version", VERSIONS)
def test_sources_streams_and_pipeline(version: str, tmp_path: Path) -> None:
    assert str(check(python(version), tmp_path)["pyspark"]).startswith(f"{version}.")


def test_by_spark_connect(tmp_path: Path) -> None:
    for module in CONNECT:
        if find_spec(module.partition(".")[0]) is None:
            pytest.skip(f"{module} isn't installed: pip install 'pyspark[connect]'")
    actual = check(Path(sys.executable), tmp_path, "local[2]")
    assert str(actual["session"]).startswith("pyspark.sql.connect.")
