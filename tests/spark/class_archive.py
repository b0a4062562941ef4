"""A class-data archive, by which every further Java of a test session starts with Spark's classes loaded.

Strategy: the session's shared Java records what it loads (RecordDynamicDumpInfo) and writes the archive when
it is asked to by `jcmd`, once it has run a small job; from then on SPARK_SUBMIT_OPTS names the archive. A
start takes about 11 s of CPU instead of 17 s, the archive 7 s once. Rules: a Java that can't make or use the
archive starts as without it; nothing here fails a test, and Java's warnings stay off standard output.
"""

from __future__ import annotations

__all__ = ["OPTIONS", "make_archive"]

import os
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# These jobs are short: the optimizing compiler and several collectors cost more than they save.
_QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_SILENT = "-XX:+IgnoreUnrecognizedVMOptions -Xlog:disable -Xlog:all=error:stderr"
_RECORDING = f"{_QUICK} {_SILENT} -XX:+RecordDynamicDumpInfo"

OPTIONS = {"SPARK_LAUNCHER_OPTS": _QUICK, "SPARK_SUBMIT_OPTS": _RECORDING}
"""Environment variables for the first Java of a test session."""


def make_archive(spark: SparkSession, archive: Path) -> bool:
    """Let this session's Java write the archive, and later ones use it; whether it could."""
    if os.environ.get("SPARK_SUBMIT_OPTS") != _RECORDING:  # set by whoever started the tests
        return False
    with suppress(OSError, subprocess.SubprocessError):
        jvm: Any = spark._jvm
        java = jvm.java.lang
        tool, process = f"{java.System.getProperty('java.home')}/bin/jcmd", java.ProcessHandle.current().pid()
        command = [tool, str(process), "VM.cds", "dynamic_dump", str(archive)]
        subprocess.run(command, capture_output=True, timeout=300, check=True)
    if not archive.exists():
        return False
    os.environ["SPARK_SUBMIT_OPTS"] = f"{_QUICK} {_SILENT} -XX:SharedArchiveFile={archive}"
    return True
