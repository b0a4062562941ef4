"""Every kind of fault reaches real clients, in Produce, Fetch and OffsetCommit, and they recover: each record
is there once, was read once, and its offset is committed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import threading
import zlib
from pathlib import Path
from typing import Any

import pytest

from coordwire.broker.harness import Kafka
from coordwire.broker.injection import FaultHandle, FaultRule
from coordwire.capture import FrameEntry
from coordwire.enums import ErrorCode
from coordwire.versions import ApiKey
from tests.broker.faults_run import COUNT
from tests.broker.suites.kgo import VERSION
from tests.interop.maven import cache

pytestmark = pytest.mark.clients

KINDS: dict[str, dict[str, Any]] = {
    "error": {},
    "delay": {"delay": 0.2},
    "hold": {"hold": True},
    "disconnect": {"disconnect": True},
    "disconnect-after": {"disconnect": True, "after": True},
    "lose": {"lose": True},
    "half": {"half": True},
    "throttle": {"throttle": 0.05},
}
ERRORS = {
    "Produce": "NOT_LEADER_OR_FOLLOWER",
    "Fetch": "NOT_LEADER_OR_FOLLOWER",
    "OffsetCommit": "NOT_COORDINATOR",
}
UNANSWERED = ("disconnect", "disconnect-after", "lose", "half")


def faults_of(kafka: Kafka, kind: str) -> dict[str, FaultHandle]:
    """A fault in each API, for the topic and the group of that name."""
    named: dict[str, dict[str, Any]] = {
        "Produce": {"topic": kind, "nth": 2},
        "Fetch": {"topic": kind},
        "OffsetCommit": {"group": kind},
    }
    return {
        api: kafka.faults.add(FaultRule(api, **about, **(KINDS[kind] or {"error": ERRORS[api]})))
        for api, about in named.items()
    }


def frames_of(kafka: Kafka, fault: FaultHandle) -> tuple[FrameEntry, FrameEntry | None, int]:
    """The request that a fault took, its answer, and how many requests of its API came after it."""
    (taken,) = fault.requests
    entries = [entry for entry in kafka.exchange.entries() if entry.api_key == taken.api_key]
    asked = next(
        entry for entry in entries if entry.direction == "request" and entry.message == taken.message
    )
    answer = next((entry for entry in entries if entry.request is asked), None)
    return asked, answer, sum(entry.direction == "request" for entry in entries[entries.index(asked) + 1 :])


def python_client(name: str) -> list[str]:
    """The command of a client for Python."""
    home = os.environ.get("COORDWIRE_CLIENTS")
    if not home:
        pytest.skip("COORDWIRE_CLIENTS names no virtual environment with Kafka clients")
    return [str(Path(home) / "bin" / "python"), str(Path(__file__).with_name("faults_run.py")), name]


def franz_go() -> list[str]:
    """The program in `franz_go`, compiled once into the cache."""
    source = Path(__file__).parent / "franz_go" / "main.go"
    program = cache() / f"franz-go-{VERSION}-{zlib.crc32(source.read_bytes()):08x}"
    if not program.exists():
        go = shutil.which("go")
        if go is None:
            pytest.skip("Go isn't installed")
        cache().mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache()) as work:
            shutil.copy(source, work)
            for arguments in (
                ("mod", "init", "faults"),
                ("get", f"github.com/twmb/franz-go/pkg/kgo@{VERSION}"),
                ("build", "-o", "made", "."),
            ):
                result = subprocess.run(
                    [go, *arguments], cwd=work, capture_output=True, text=True, check=False
                )
                if result.returncode:
                    pytest.skip(f"go {arguments[0]}: {result.stderr[-500:]}")
            (Path(work) / "made").rename(program)
    return [str(program)]


@pytest.mark.parametrize("client", ["confluent", "kafka-python", "aiokafka", "franz-go"])
def test_every_kind_reaches_a_client(client: str) -> None:
    run = franz_go() if client == "franz-go" else python_client(client)
    with Kafka(topics=list(KINDS)) as kafka:
        faults = {kind: faults_of(kafka, kind) for kind in KINDS}
        ended = threading.Event()

        def release() -> None:
            while not ended.wait(0.2):
                for fault in faults["hold"].values():
                    fault.release()

        releasing = threading.Thread(target=release)
        releasing.start()
        command = [*run, kafka.bootstrap, *KINDS]
        try:
            result = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
        finally:
            ended.set()
            releasing.join()
        if "ModuleNotFoundError" in result.stderr:
            pytest.skip(result.stderr.splitlines()[-1])
        assert result.returncode == 0, result.stderr[-3000:]
        kafka.check()
        report = json.loads(result.stdout.splitlines()[-1])
        expected = [str(number) for number in range(COUNT)]
        for kind, of_kind in faults.items():
            assert report[kind] == {"failures": [], "seen": expected}, kind
            assert [record.value for record in kafka.records(kind)] == [text.encode() for text in expected]
            assert kafka.committed(kind) == {(kind, 0): COUNT}
            for api, fault in of_kind.items():
                _reached(kafka, kind, api, fault)


def _reached(kafka: Kafka, kind: str, api: str, fault: FaultHandle) -> None:
    """What went over the wire shows the fault, and that the client went on after it."""
    asked, answer, later = frames_of(kafka, fault)
    assert asked.client_id is not None
    if kind in UNANSWERED:
        assert answer is None
        assert later > 0
        return
    assert answer is not None
    message: Any = answer.message
    if kind == "error":
        codes = {
            ApiKey.PRODUCE: lambda: message.responses[0].partition_responses[0].error_code,
            ApiKey.FETCH: lambda: message.responses[0].partitions[0].error_code,
            ApiKey.OFFSET_COMMIT: lambda: message.topics[0].partitions[0].error_code,
        }
        assert codes[ApiKey(fault.requests[0].api_key)]() == ErrorCode[ERRORS[api]]
        assert later > 0
    elif kind == "throttle":
        assert message.throttle_time_ms == 50
