"""The jars of an Apache Kafka release, fetched once from Maven Central and kept in the user's cache folder.

Strategy: `mvn dependency:copy-dependencies` on a project in java/, into a folder beside the final one that is
renamed when it is whole; so a run that is cut short leaves nothing that looks finished. The folder bears
the checksum of the pom too, so that a changed one is fetched anew. Eight projects: "classes", kafka-clients
and what is in brokers' own logs; "apps", Connect and Streams; "coordinator", the group
coordinator; "broker", a whole broker with its tools;
"recording", a broker without them, whose coordinator's log can be had; "streams", an application's Streams;
"zookeeper-consumer", a release of the time of ZooKeeper, with its consumer and ZooKeeper itself;
"zookeeper", a release of Apache ZooKeeper.

Rules: `Unavailable` says in one line why the jars can't be had (no mvn, no net, no such release), and after a
failure no other fetch is tried in this process: a machine without a net pays for it once.
`COORDWIRE_INTEROP_CACHE` names another folder than `~/.cache/coordwire-interop`.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Literal
from zlib import crc32

CURRENT = "4.4.0"
"""The release that judges every version it has. docs/development/following-kafka.md says how to raise it."""

COMPLETE = "4.3.0"
"""The newest release whose broker and apps Maven Central has whole: they judge what classes can't."""

FIRST_LOGS = "4.0.0"
"""The release that judges the record types that later 4.x dropped."""

PREVIOUS = "3.9.2"
"""The release that judges the versions that 4.x dropped."""

Project = Literal[
    "apps", "broker", "classes", "coordinator", "recording", "streams", "zookeeper", "zookeeper-consumer"
]
POMS: dict[Project, str] = {
    "apps": "apps.xml",
    "broker": "broker.xml",
    "classes": "pom.xml",
    "coordinator": "coordinator.xml",
    "recording": "recording.xml",
    "streams": "streams.xml",
    "zookeeper": "zookeeper.xml",
    "zookeeper-consumer": "zookeeper_consumer.xml",
}
WAIT = 90
"""Seconds for one fetch, Maven's own plugins included."""

_QUICK = [
    *("-Dmaven.wagon.http.connectionTimeout=5000", "-Dmaven.wagon.http.readTimeout=20000"),
    *("-Dmaven.wagon.http.retryHandler.count=0", "-Daether.connector.connectTimeout=5000"),
    *("-Daether.connector.requestTimeout=20000", "-Daether.connector.http.retryHandler.count=0"),
]
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_failed: list[str] = []


class Unavailable(Exception):
    """This machine can't run Kafka's classes; the text says why."""


def cache() -> Path:
    base = os.environ.get("COORDWIRE_INTEROP_CACHE")
    default = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "coordwire-interop"
    return Path(base) if base else default


@functools.cache
def jars(release: str, project: Project = "classes") -> Path:
    """The folder with kafka-clients of this release and what the project needs. Raises `Unavailable`."""
    pom = Path(__file__).parent / "java" / POMS[project]
    folder = cache() / f"{release}-{crc32(pom.read_bytes()):08x}"
    if folder.exists():
        return folder
    if _failed:
        raise Unavailable(_failed[0])
    try:
        _fetch(release, pom, folder, "zookeeper" if project == "zookeeper" else "kafka-clients")
    except Unavailable as error:
        _failed.append(str(error))
        raise
    return folder


def _fetch(release: str, pom: Path, folder: Path, jar: str) -> None:
    mvn = shutil.which("mvn")
    if mvn is None:
        raise Unavailable("mvn isn't installed")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as work:
        made = Path(work) / release
        command = [mvn, "-B", "-q", "-f", str(pom), *_QUICK, "dependency:copy-dependencies"]
        command += [f"-Dkafka.version={release}", "-DincludeScope=runtime", f"-DoutputDirectory={made}"]
        try:
            run = subprocess.run(
                command, capture_output=True, text=True, timeout=WAIT, stdin=subprocess.DEVNULL, check=False
            )
        except subprocess.TimeoutExpired:
            raise Unavailable(f"Maven Central gave no {jar} {release} in {WAIT} s") from None
        if run.returncode or not (made / f"{jar}-{release}.jar").exists():
            output = _COLOUR.sub("", run.stdout + run.stderr).strip().splitlines() or ["no word from mvn"]
            raise Unavailable(f"no {jar} {release}: {output[0]}")
        try:
            made.rename(folder)
        except OSError:  # another run was faster
            if not folder.exists():
                raise
