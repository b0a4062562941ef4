"""What is measured: the five messages each way, a server's heartbeat, growth, imports and memory.

Rules: a row has the same work for every library that it names; what a library has no way to do it leaves out.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import coordwire
from coordwire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from tests.bench.cases import cases, commits, metadata
from tests.bench.peers import PEERS, PYTHON, Call, connections, reading, server, work

MICRO = 1e6
SIZES = (10, 100, 1_000, 10_000)
"""Partitions of a Metadata response."""

CHANGING = 150
"""Messages without a value in common."""


@dataclass(frozen=True)
class Row:
    """One line. calls: by library; scale: what a call's seconds, or its own number, is multiplied with;
    weighed: the call returns the number."""

    label: str
    work: str
    calls: dict[str, Call]
    scale: float = MICRO
    weighed: bool = False


def rows(peers: list[str], *, short: bool = False) -> Iterator[Row]:
    """All rows, made when their turn comes."""
    for case in cases():
        made = {peer: work(peer, case) for peer in peers}
        yield Row(case.label, "decode", {peer: calls[0] for peer, calls in made.items()})
        yield Row(case.label, "decode and read", {peer: reading(peer, case, made[peer][0]) for peer in peers})
        yield Row(case.label, "encode", {peer: calls[1] for peer, calls in made.items()})
    if short:
        return
    yield _changing(peers)
    yield _heartbeats(peers)
    yield _connections(peers)
    for size in SIZES:
        case = metadata(size)
        made = {peer: work(peer, case) for peer in peers if peer != "construct" or size <= 1_000}
        for number, direction in enumerate(("decode", "encode")):
            calls = {peer: found[number] for peer, found in made.items()}
            yield Row(case.label, f"{direction}, ns a partition", calls, 1e9 / size)
    case = cases()[-1]
    calls = {peer: _footprint(work(peer, case)[0]) for peer in peers}
    yield Row(case.label, "KiB of memory, decoded", calls, 1 / 1024, weighed=True)
    calls = {peer: _import(code) for peer, code in IMPORTS.items() if peer in peers}
    yield Row("a process that can decode it", "ms to import", calls, 1e3, weighed=True)


def _changing(peers: list[str]) -> Row:
    """Requests of which each has other values: who keeps values that come again has nothing of it here."""
    wires = commits(CHANGING)
    calls: dict[str, Call] = {}
    for peer in peers:
        if peer != "construct":  # minutes
            decodes = [work(peer, case)[0] for case in wires]
            calls[peer] = _all(decodes)
    return Row(wires[0].label, "decode, each another one", calls, MICRO / CHANGING)


def _all(calls: list[Call]) -> Call:
    def run() -> None:
        for call in calls:
            call()

    return run


def _heartbeats(peers: list[str]) -> Row:
    """A request's frame read, and its response's frame written."""
    request = coordwire.encode_request(
        HeartbeatRequest(group_id="payments", generation_id=3, member_id="m" * 40),
        version=4,
        correlation_id=7,
        client_id="till-3",
    )
    response = coordwire.encode_response(HeartbeatResponse(), version=4, correlation_id=7)
    calls = {peer: call for peer in peers if (call := server(peer, request, response)) is not None}
    return Row("Heartbeat v4, as a server sees it", "request frame in, response frame out", calls)


def _connections(peers: list[str]) -> Row:
    """The same heartbeat and its answer between a client's and a server's connection."""
    calls = {peer: call for peer in peers if (call := connections(peer)) is not None}
    return Row("connection", "heartbeat and answer, both sides, as events", calls)


# --- memory and imports ---


def _footprint(decode: Call) -> Call:
    """Bytes that one decoded message takes, where no memory of earlier ones waits to be used again."""

    def run() -> int:
        held = [decode() for _ in range(5)]
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        message = decode()
        after = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        del message, held
        return after - before

    return run


_OURS = "from coordwire.messages.metadata import MetadataResponse"
IMPORTS = {
    PEERS[0]: _OURS,
    PYTHON: f"import os; os.environ['COORDWIRE_IMPL'] = 'python'; {_OURS}",
    "kafka-python": "from kafka.protocol.metadata import MetadataResponse",
    "kio": "import kio.serial; from kio.schema.metadata.v12.response import MetadataResponse",
}


def _import(code: str) -> Callable[[], float]:
    """The processor's seconds of a new process, less those of one that imports nothing."""

    def seconds(text: str) -> float:
        before = os.times()
        subprocess.run([sys.executable, "-c", text], check=True)
        after = os.times()
        return sum(after[2:4]) - sum(before[2:4])

    return lambda: max(seconds(code) - seconds("pass"), 1e-4)
