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
from contextlib import suppress
from functools import partial
from typing import Any

from coordwire.errors import CorruptBatch, EncodeError
from coordwire.layout import Message
from coordwire.layout.program import message_program
from coordwire.messages.fetch import FetchResponse
from coordwire.messages.heartbeat import HeartbeatRequest
from coordwire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from coordwire.messages.metadata import MetadataResponse, MetadataResponsePartition, MetadataResponseTopic
from coordwire.records import Record, RecordBatchBuilder, batches, encode_batch, native
from coordwire.records.arrow import iter_batches
from coordwire.records.compression import CODECS

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

ROWS = [
    Record(n, 1000 + n, b"k%d" % n, b"v" * n, (("h", b"%d" % n), ("é", None))[: n % 3]) for n in range(20)
]


def records() -> list[Callable[[], Any]]:
    """Batches read, encoded, and as Arrow's columns; sound ones and bad ones."""
    found: list[Callable[[], Any]] = [
        lambda: encode_batch(ROWS),
        lambda: _refused(lambda: encode_batch([*ROWS, Record(0)]), EncodeError),
        lambda: _refused(lambda: encode_batch([*ROWS, Record(key="")]), EncodeError),  # type: ignore[arg-type]
        _append,
    ]
    for codec in CODECS:
        data = encode_batch(ROWS, codec=codec)
        short = _again(data[:-3])
        found += (partial(_read, data), partial(_read, short), partial(_read, data[:-1]))
        found += (partial(_table, data), partial(_table, short))
    return found


def _again(data: bytes) -> bytes:
    """A batch whose length and checksum are right, whatever is inside."""
    head = data[:8] + (len(data) - 12).to_bytes(4) + data[12:17]
    return head + native.crc32c(data[21:]).to_bytes(4) + data[21:]


def _refused(call: Callable[[], Any], error: type[Exception]) -> None:
    with suppress(error):
        call()


def _read(data: bytes) -> None:
    with suppress(CorruptBatch):
        for batch in batches(data):
            next(iter(batch))
            for record in batch:
                assert record.offset >= 0
            assert batch.count == len(ROWS)


def _table(data: bytes) -> None:
    with suppress(CorruptBatch):
        for table in iter_batches(data):
            assert table.num_rows


def _append() -> None:
    builder = RecordBatchBuilder(limit=300)
    for row in ROWS:
        builder.append(row)
    builder.build()


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
    return found + records()


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
