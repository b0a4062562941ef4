"""Millions of decodes and encodes, accepted and refused, leave nothing allocated:
`python -m fuzz.hardening.leaks [messages] [records] [arrow] [--calls N]`.

Strategy: rounds over a fixed list of calls, the bytes of some of them mutated: so many to fill every cache,
then as many as asked for. Between them nothing may grow: not the memory that the process has, not the blocks
that Python's allocator has given out, not what pyarrow's has, and in a debug build not the count of all
references. Rule: what leaks one byte a call is far above `SLACK` after ten million; one object a round is
above `OBJECTS` at once.
"""

from __future__ import annotations

import argparse
import gc
import io
import resource
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from coordwire.capture.plain_lines import PlainJsonLines
from coordwire.capture.reader import Capture
from coordwire.codec import Message
from coordwire.codec.program import layout_transcriber, message_program
from coordwire.errors import CorruptBatch, DecodeError, EncodeError
from coordwire.messages.fetch import FetchResponse
from coordwire.messages.heartbeat import HeartbeatRequest
from coordwire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from coordwire.messages.metadata import MetadataResponse, MetadataResponsePartition, MetadataResponseTopic
from coordwire.records import Record, RecordBatchBuilder, backend, batches, encode_batch
from coordwire.records.compression import CODECS

Calls = list[Callable[[], Any]]

CAPTURE = Path(__file__).parent.parent.parent / "tests/data/captures/aio__tansu__txn.pcap"

SLACK = 4 << 20
"""Bytes by which memory may seem to grow."""

OBJECTS = 50
"""Blocks, or references, by which the interpreter's own may."""

WARM = 500
"""Rounds before anything is measured; of messages so many that one object a round fills each of the engine's
shelves (`freelist.h`), which a build that counts references hasn't got."""

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
COUNTED = hasattr(sys, "gettotalrefcount")
"""Whether Python counts all references. Other extensions, which are not debug builds, then stay out."""

SEEDS = [encode_batch(ROWS, codec=codec) for codec in (("none",) if COUNTED else CODECS)]
PLAIN = SEEDS[0]


class Used(NamedTuple):
    """What the process has: bytes, pyarrow's bytes, blocks, and references where Python counts them."""

    memory: int
    arrow: int
    blocks: int
    references: int


def used() -> Used:
    gc.collect()
    getattr(sys, "_clear_internal_caches", sys._clear_type_cache)()  # thousands of names, each a block
    arrow = sys.modules.get("pyarrow")
    return Used(
        memory(),
        0 if arrow is None else arrow.total_allocated_bytes(),
        sys.getallocatedblocks(),
        sys.gettotalrefcount() if COUNTED else 0,
    )


def memory() -> int:
    """Bytes that the process has now; where the system doesn't report it, what it had at its height."""
    statm = Path("/proc/self/statm")
    if statm.exists():
        return int(statm.read_text().split()[1]) * resource.getpagesize()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


# --- messages ---


def messages() -> Calls:
    """Messages read and written, and their text; bytes cut at every sort of place, and mutated; budgets that
    don't do."""
    results: Calls = []
    for message, version in CASES:
        cls, wire = type(message), message.encode(version=version)
        program = message_program(cls, version)
        results += (partial(cls.decode, wire, version=version), partial(message.encode, version=version))
        results += [partial(_decode, cls, version, data) for data in mutated(wire, 2)]
        if program is None:
            continue
        results += [partial(program.decode, data, 0, 10**6, 10**7) for data in mutated(wire, 20)]
        for cut in range(1, len(wire), 7 + len(wire) // 50):
            results.append(partial(program.decode, wire[:cut], 0, 10**6, 10**7))
        results += (partial(program.decode, wire, 0, 0, 10**7), partial(program.encode, None))
        transcriber = layout_transcriber(cls._layout_.at(version))
        if transcriber is not None:
            results += [partial(transcriber.transcribe, data) for data in (wire, *mutated(wire, 20))]
    capture = CAPTURE.read_bytes()
    results += [partial(_lines, data) for data in (capture, *mutated(capture, 1))]
    return results


def _lines(data: bytes) -> None:
    """The lines of plain frames."""
    lines = PlainJsonLines(show_secrets=False)
    with suppress(DecodeError):
        for entry in Capture(io.BytesIO(data), "x", lazy=True).entries():
            lines.line(entry, 6)


def mutated(data: bytes, count: int) -> Iterator[bytes]:
    """Some bytes of it changed, or left out; the same each time."""
    random = Random(len(data))
    for _ in range(count):
        changed = bytearray(data)
        for _ in range(random.randrange(1, 4)):
            at = random.randrange(len(changed))
            changed[at : at + random.randrange(3)] = random.randbytes(random.randrange(3))
        yield bytes(changed)


def _decode(cls: type[Message], version: int, data: bytes) -> None:
    with suppress(DecodeError):
        cls.decode(data, version=version)


# --- records ---


def records() -> Calls:
    """Batches read and written; what is refused when it is opened, iterated, and written."""
    results: Calls = [
        lambda: encode_batch(ROWS),
        lambda: _refused(lambda: encode_batch([*ROWS, Record(0)]), EncodeError),
        lambda: _refused(lambda: encode_batch([*ROWS, Record(key="")]), EncodeError),  # type: ignore[arg-type]
        _append,
    ]
    for data in SEEDS:
        short = sealed(data[:-3])
        results += (partial(_read, data), partial(_read, short), partial(_read, data[:-1]))
    for data in mutated(PLAIN, 40):
        results += (partial(_read, data), partial(_read, sealed(data)), partial(_skip, data + PLAIN))
    return results


def sealed(data: bytes) -> bytes:
    """A batch whose length and checksum are right, whatever is inside."""
    head = data[:8] + (len(data) - 12).to_bytes(4) + data[12:17]
    return head + backend.crc32c(data[21:]).to_bytes(4) + data[21:]


def _refused(call: Callable[[], Any], error: type[Exception]) -> None:
    with suppress(error):
        call()


def _read(data: bytes) -> None:
    with suppress(CorruptBatch):
        for batch in batches(data):
            next(iter(batch), None)
            for record in batch:
                assert record.headers.__class__ is tuple


def _skip(data: bytes) -> None:
    assert list(batches(data, on_error="report"))


def _append() -> None:
    builder = RecordBatchBuilder(limit=300)
    for row in ROWS:
        builder.append(row)
    builder.build()


# --- Arrow ---


def arrow() -> Calls:
    """The kernel alone and as pyarrow's tables, copied and as views, sound and not."""
    from coordwire.records.arrow import iter_batches

    def table(data: bytes, **options: Any) -> None:
        with suppress(CorruptBatch):
            for batch in iter_batches(data, **options):
                assert batch.num_rows

    results: Calls = []
    if not COUNTED:
        for data in SEEDS:
            results += (
                partial(table, data),
                partial(table, sealed(data[:-3])),
                partial(table, data, view=True),
            )
        results += (partial(table, PLAIN, max_bytes=100), partial(table, PLAIN, columns=["offset", "key"]))
        for data in mutated(PLAIN, 5):
            results += (partial(table, sealed(data)), partial(table, data + PLAIN, on_error="skip"))
    if backend.columns is not None:
        for data in (PLAIN, *map(sealed, mutated(PLAIN, 20))):
            results += (partial(_fill, data, False, 1 << 20), partial(_fill, data, True, 200))
    return results


def _fill(data: bytes, view: bool, most: int) -> None:
    assert backend.columns is not None
    columns = backend.columns(127, most, view, True)
    full, at = True, 0
    while full:
        full, at = columns.run(data, at, None, 0)
        _, _, memories = columns.take()
        assert all(memory is None or memoryview(memory) for memory in memories)


PARTS = {
    "messages": (messages, WARM if COUNTED else 8 * WARM),
    "records": (records, WARM),
    "arrow": (arrow, WARM),
}
"""The calls of each, and the rounds before anything is measured."""


def run(work: Calls, turns: int) -> None:
    for _ in range(turns):
        for call in work:
            call()


def grown(before: Used, after: Used) -> bool:
    more = Used(*(now - then for now, then in zip(after, before, strict=True)))
    return more.memory > SLACK or more.arrow > 0 or more.blocks > OBJECTS or more.references > OBJECTS


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m fuzz.hardening.leaks", description=__doc__)
    parser.add_argument("parts", nargs="*", default=[*PARTS], help="messages, records, arrow (all)")
    parser.add_argument("--calls", type=int, default=10_000_000, help="for each part (%(default)s)")
    options = parser.parse_args()
    for part in options.parts:
        calls, warm = PARTS[part]
        work = calls()
        turns = -(-options.calls // len(work))
        run(work, warm)
        before = used()
        run(work, turns)
        after = used()
        print(
            f"{part}: {turns * len(work)} calls of {len(work)} sorts; before {before}, after {after}",
            flush=True,
        )
        if grown(before, after):
            raise SystemExit("something leaks")


if __name__ == "__main__":
    main()
