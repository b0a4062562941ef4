"""The example codecs and clients in other languages, built as their page says, and judged.

Strategy: programs are built once, into the cache folder of the interop tests, by a checksum of their sources.
Rules: Apache Kafka's classes must pass whatever their own release judged; of the others it is tested that
they are judged, and not how. A missing toolchain or registry skips the test.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from zlib import crc32

import pytest

from coordwire.conformance.codec.verdicts import vectors
from tests.cli.conftest import Run, run
from tests.interop.conftest import give_up
from tests.interop.maven import CURRENT, Unavailable, cache, jars

__all__ = ["run"]

pytestmark = pytest.mark.maven
CONFORMANCE = Path(__file__).parents[2] / "conformance"
ADAPTORS = CONFORMANCE / "adaptors"
DATA = CONFORMANCE / "data"
PART = ("*/joingroup-*", "*/offsetcommit-*")
_WAIT = 600


def built(name: str, *commands: list[str]) -> Path:
    """The folder of an adaptor in which the commands have been run. Raises `Unavailable`."""
    sources = [path for path in sorted((ADAPTORS / name).rglob("*")) if path.is_file()]
    number = 0
    for path in sources:
        number = crc32(path.read_bytes(), number)
    for command in commands:
        number = crc32("\0".join(command).encode(), number)
    folder = cache() / f"adaptor-{name}-{number:08x}"
    if not folder.exists():
        work = folder.with_suffix(".build")
        shutil.rmtree(work, ignore_errors=True)
        shutil.copytree(ADAPTORS / name, work)
        for command in commands:
            if shutil.which(command[0]) is None:
                raise Unavailable(f"{command[0]} is not installed")
            result = subprocess.run(
                command, cwd=work, capture_output=True, text=True, timeout=_WAIT, check=False
            )
            if result.returncode:
                raise Unavailable(f"{' '.join(command[:2])}: {result.stderr.strip()[-300:]}")
        work.rename(folder)
    return folder


def judged(run: Run, report: Path, command: list[object], *only: str) -> dict[str, dict[str, str]]:
    """Verdict and reason by address."""
    options = [word for address in only for word in ("--only", address)]
    result = run("conformance", "codec", "--vectors", DATA, "--json", report, *options, "--", *command)
    assert result.err == ""
    form = json.loads(report.read_text())
    assert result.status == (0 if form["passed"] else 1)
    return {case["address"]: case for case in form["cases"]}


@pytest.mark.long
def test_apache_kafkas_classes_pass_what_their_release_judged(run: Run, tmp_path: Path) -> None:
    try:
        classes = f"{jars(CURRENT)}/*"
        folder = built("java", ["javac", "-nowarn", "-cp", classes, "Codec.java"])
    except Unavailable as error:
        give_up(error)
    command = ["java", "-Xmx512m", "-cp", f"{folder}:{classes}", "Codec"]
    cases = judged(run, tmp_path / "out.json", list(command))
    own = {vector["id"] for vector in vectors(DATA) if vector["release"] == CURRENT}
    assert len(own) > 40_000
    verdicts = Counter(case["verdict"] for address, case in cases.items() if address in own)
    assert verdicts["fail"] == verdicts["skipped"] == verdicts["partial"] == 0
    assert Counter(case["verdict"] for case in cases.values())["fail"] == 0


def test_apache_kafkas_classes(run: Run, tmp_path: Path) -> None:
    try:
        classes = f"{jars(CURRENT)}/*"
        folder = built("java", ["javac", "-nowarn", "-cp", classes, "Codec.java"])
    except Unavailable as error:
        give_up(error)
    command = ["java", "-Xmx512m", "-cp", f"{folder}:{classes}", "Codec"]
    cases = judged(run, tmp_path / "out.json", list(command), *PART)
    assert {case["verdict"] for case in cases.values()} == {"strict pass", "pass", "skipped"}


def test_rust(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUST_BACKTRACE", "0")
    try:
        folder = built("rust", ["cargo", "build", "--release", "--target-dir", "target"])
    except Unavailable as error:
        give_up(error)
    cases = judged(run, tmp_path / "out.json", [folder / "target" / "release" / "codec"], *PART)
    assert cases["messages/joingroup-request/v9/sample"]["verdict"] == "pass"
    assert cases["hostile/joingroup-request/v9/groupId/length-greatest"]["verdict"] == "strict pass"


def test_go(run: Run, tmp_path: Path) -> None:
    try:
        folder = built(
            "go",
            ["go", "mod", "init", "codec"],
            ["go", "get", "github.com/twmb/franz-go/pkg/kmsg@v1.15.1"],
            ["go", "build", "-o", "codec", "."],
        )
    except Unavailable as error:
        give_up(error)
    cases = judged(run, tmp_path / "out.json", [folder / "codec"], *PART)
    assert cases["messages/joingroup-request/v9/sample"]["verdict"] == "pass"
    assert cases["hostile/joingroup-request/v9/groupId/length-greatest"]["verdict"] == "strict pass"


def test_node(run: Run, tmp_path: Path) -> None:
    try:
        folder = built("node", ["npm", "install", "--silent", "--no-audit", "--no-fund"])
    except Unavailable as error:
        give_up(error)
    cases = judged(run, tmp_path / "out.json", ["node", folder / "codec.js"], *PART)
    assert cases["messages/joingroup-response/v5/sample"]["verdict"] == "partial"
    assert cases["messages/joingroup-request/v5/sample"]["verdict"] == "skipped"


def test_csharp(run: Run, tmp_path: Path) -> None:
    """It has no codec, so that it lacks every message; that it is asked and answers is what is tested."""
    libraries = ["-r:System.Xml.Linq", "-r:System.Runtime.Serialization"]
    try:
        folder = built("csharp", ["mcs", "Codec.cs", *libraries])
    except Unavailable as error:
        give_up(error)
    cases = judged(run, tmp_path / "out.json", ["mono", folder / "Codec.exe"], "messages/joingroup-request")
    assert len(cases) > 10
    assert {case["verdict"] for case in cases.values()} == {"skipped"}


# --- clients ---

GO = ["go", "build", "-o", "client", "."]
CLIENTS: dict[str, tuple[list[list[str]], list[str]]] = {
    "client-franz-go": (
        [["go", "mod", "init", "client"], ["go", "get", "github.com/twmb/franz-go/pkg/kgo@v1.22.3"], GO],
        ["./client"],
    ),
    "client-kafkajs": ([["npm", "install", "--silent", "--no-audit", "--no-fund"]], ["node", "client.js"]),
    "client-sarama": (
        [["go", "mod", "init", "client"], ["go", "get", "github.com/IBM/sarama@v1.61.1"], GO],
        ["./client"],
    ),
    **dict.fromkeys(("client-kafka-python", "client-librdkafka"), ([], ["python", "client.py"])),
}
BASICS = ("produce/acks/1", "groups/classic/join/1", "versions/older/1", "transactions/abort/1")


@pytest.mark.parametrize("name", CLIENTS)
def test_a_client_does_each_task(name: str, run: Run, tmp_path: Path) -> None:
    steps, (program, *arguments) = CLIENTS[name]
    try:
        if program == "python":
            home = os.environ.get("COORDWIRE_CLIENTS")
            if not home:
                raise Unavailable("COORDWIRE_CLIENTS names no virtual environment with Kafka clients")
            folder, program = ADAPTORS / name, f"{home}/bin/python"
        else:
            folder = built(name, *steps)
    except Unavailable as error:
        give_up(error)
    started = [folder / program if program.startswith(".") else program, *(folder / one for one in arguments)]
    report = tmp_path / "out.json"
    only = [word for address in BASICS for word in ("--only", address)]
    result = run("conformance", "client", "--json", report, *only, "--", *started)
    assert (result.status, result.err) == (0, "")
    verdicts = {case["address"]: case["verdict"] for case in json.loads(report.read_text())["cases"]}
    assert verdicts.pop("transactions/abort/1") in ("pass", "skipped")
    assert set(verdicts.values()) == {"pass"}
