"""Segments to Arrow, beside the usual way (aiokafka's records into `pyarrow.array`) and copying the bytes.

Rules: the batches are as large as a producer makes them by default, 16 KB; checksums are checked; memory is
copied into pages that are there already. The usual way reads a sixteenth of the segment, and its time is
taken sixteen times: it is the same for each batch. Times are the clock's, as ours uses threads; "alone" is
ours on one thread, as copying is: a busy machine, or one whose processors share a core, changes that less.
"""

from __future__ import annotations

import ctypes
import random
from collections.abc import Callable
from importlib import import_module
from statistics import median
from time import perf_counter
from typing import Any

from coordwire.records import Record, encode_batch
from coordwire.records.arrow import iter_batches
from coordwire.records.compression import Codec
from fuzz.records_native import spread_from

BATCH = 16 << 10
PART = 16
OURS = ("copy", "view", "copy alone", "view alone")
KINDS: tuple[tuple[str, int, int, Codec], ...] = (
    ("120 bytes", 16, 100, "none"),
    ("1 KB", 16, 1000, "none"),
    ("120 bytes, lz4", 16, 100, "lz4"),
    ("120 bytes, zstd", 16, 100, "zstd"),
)


def segment(size: int, key: int, value: int, codec: Codec) -> bytes:
    source = random.Random(3)
    count = BATCH // (key + value + 8)
    parts: list[bytes] = []
    total = offset = 0
    made = [
        [
            Record(-1, 1_700_000_000_000 + n, source.randbytes(key), source.randbytes(value // 4) * 4)
            for n in range(count)
        ]
        for _ in range(8)
    ]
    while total < size:
        parts.append(encode_batch(made[len(parts) % 8], base_offset=offset, codec=codec))
        total += len(parts[-1])
        offset += count
    return b"".join(parts)


def ours(data: bytes, **options: Any) -> int:
    return sum(int(table.num_rows) for table in iter_batches(data, **options))


def alone(data: bytes, **options: Any) -> int:
    with spread_from(len(data) + 1):
        return ours(data, **options)


def usual(data: bytes) -> int:
    import pyarrow as pa

    records = import_module("aiokafka.record.memory_records").MemoryRecords(data)
    columns: tuple[list[Any], ...] = ([], [], [], [], [])
    while records.has_next():
        batch = records.next_batch()
        assert batch.validate_crc()
        for record in batch:
            columns[0].append(record.offset)
            columns[1].append(record.timestamp)
            columns[2].append(record.key)
            columns[3].append(record.value)
            columns[4].append(record.headers)
    pair = pa.struct([("key", pa.string()), ("value", pa.binary())])
    kinds = (pa.int64(), pa.timestamp("ms"), pa.binary(), pa.binary(), pa.list_(pair))
    names = ["offset", "timestamp", "key", "value", "headers"]
    arrays = [pa.array(values, type=kind) for values, kind in zip(columns, kinds, strict=True)]
    return int(pa.RecordBatch.from_arrays(arrays, names=names).num_rows)


def seconds(call: Callable[[], Any]) -> float:
    start = perf_counter()
    call()
    return perf_counter() - start


def segments(mebibytes: int, rounds: int) -> None:
    """Print the table."""
    print(f"\n| {mebibytes} MB to Arrow, ms | {' | '.join(OURS)} | aiokafka + pyarrow | memcpy |", end="")
    print("".join(f" {name} × {slow} |" for slow in ("aiokafka", "memcpy") for name in OURS))
    print(f"|---|{'---:|' * (3 * len(OURS) + 2)}")
    for label, key, value, codec in KINDS:
        data = segment(mebibytes << 20, key, value, codec)
        part = segment((mebibytes << 20) // PART, key, value, codec)
        pages = ctypes.create_string_buffer(len(data))
        source = ctypes.c_char_p(data)
        assert ours(part) == usual(part)
        calls: list[tuple[Callable[[], Any], float]] = [
            (lambda d=data: ours(d), 1.0),  # type: ignore[misc]
            (lambda d=data: ours(d, view=True), 1.0),  # type: ignore[misc]
            (lambda d=data: alone(d), 1.0),  # type: ignore[misc]
            (lambda d=data: alone(d, view=True), 1.0),  # type: ignore[misc]
            (lambda d=part: usual(d), len(data) / len(part)),  # type: ignore[misc]
            (lambda p=pages, s=source, d=data: ctypes.memmove(p, s, len(d)), 1.0),  # type: ignore[misc]
        ]
        for call, scale in calls:
            if scale == 1:
                call()
        times = [[seconds(call) * scale for call, scale in calls] for _ in range(rounds)]
        cells = [f"{median(column) * 1e3:.0f}" for column in zip(*times, strict=True)]
        for slow in (len(OURS), len(OURS) + 1):
            cells += [f"{median(turn[slow] / turn[fast] for turn in times):.2f}" for fast in range(len(OURS))]
        print(f"| {label} | {' | '.join(cells)} |", flush=True)
