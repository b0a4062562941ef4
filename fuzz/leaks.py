"""Millions of decodes and encodes, accepted and refused, leave nothing behind:
`python -m fuzz.leaks [--calls N]`.

Strategy: a few thousand rounds to fill every cache, then as many as asked; between them neither the process's
memory nor, in a debug build, the count of all references may grow. Rule: the machine's own noise is below
`SLACK`; what leaks one byte a call is far above it after a million.
"""

from __future__ import annotations

import argparse
import gc
import resource
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from coordwire.layout import Message
from coordwire.layout.program import message_program
from coordwire.messages.fetch import FetchResponse
from coordwire.messages.heartbeat import HeartbeatRequest
from coordwire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from coordwire.messages.metadata import MetadataResponse, MetadataResponsePartition, MetadataResponseTopic

SLACK = 4 << 20
"""Bytes by which memory may seem to grow."""

CASES: list[tuple[Message, int]] = [
    (HeartbeatRequest(group_id="payments", generation_id=1 << 20, member_id="é", tags={5: b"five"}), 4),
    (JoinGroupRequest(protocols=[JoinGroupRequestProtocol(name="range", metadata=b"x" * 40)]), 9),
    (
        MetadataResponse(
            topics=[MetadataResponseTopic(partitions=[MetadataResponsePartition(isr_nodes=[7])])]
        ),
        12,
    ),
    (MetadataResponse(topics=[MetadataResponseTopic(name="large" * 200) for _ in range(10)]), 12),
    (FetchResponse(throttle_time_ms=1 << 29), 13),
]


def calls() -> list[Callable[[], Any]]:
    """What is run over and over."""
    found: list[Callable[[], Any]] = []
    for message, version in CASES:
        cls, wire = type(message), message.encode(version)
        program = message_program(cls, version)
        found += (partial(cls.decode, wire, version=version), partial(message.encode, version))
        if program is None:
            continue
        for cut in range(1, len(wire), 7 + len(wire) // 50):  # refused at every sort of place
            found.append(partial(program.decode, wire[:cut], 0, 10**6, 10**7))
        found += (partial(program.decode, wire, 0, 0, 10**7), partial(program.encode, None))
    return found


def used() -> tuple[int, int]:
    """Bytes of memory at its height, and all references where Python counts them."""
    gc.collect()
    count = getattr(sys, "gettotalrefcount", lambda: 0)()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, count


def run(work: list[Callable[[], Any]], turns: int) -> None:
    for _ in range(turns):
        for call in work:
            call()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m fuzz.leaks", description=__doc__)
    parser.add_argument("--calls", type=int, default=10_000_000, help="of the engine (%(default)s)")
    options = parser.parse_args()
    work = calls()
    run(work, 2000)
    memory, references = used()
    run(work, options.calls // len(work))
    more, others = used()
    print(f"{options.calls} calls: {more - memory} bytes of memory, {others - references} references more")
    if more - memory > SLACK or others - references > 100:
        raise SystemExit("something leaks")


if __name__ == "__main__":
    main()
