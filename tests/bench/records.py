"""`python -m tests.bench.records` compares reading and writing record batches with other Python code.

Strategy: the interleaved rounds of `tests.bench`, over batches of a few shapes; every field of every record
is read, checksums included. Rules: aiokafka by its pure fallback, with the same C checksum as everybody (its
own is Python); each library by the classes that its consumer and producer use; all decode the same bytes and
must give the same sum of offsets and timestamps first. The last two columns are how many times as fast ours
is, as the median of the rounds; "append" is a record at a time, as the others do it.
"""

from __future__ import annotations

import argparse
import random
from importlib import import_module
from typing import Any

import crc32c

from coordwire.records import Record, RecordBatchBuilder, batches, encode_batch
from tests.bench.__main__ import figure, measure
from tests.bench.peers import PEERS, Call

SHAPES = {
    "1000 × 10 + 50 bytes": (1000, 10, 50, 0),
    "1000 × 16 + 200 bytes": (1000, 16, 200, 0),
    "500 × 16 + 1000 bytes": (500, 16, 1000, 0),
    "500 × 16 + 200 bytes, 3 headers": (500, 16, 200, 3),
}
OPTIONS = {
    "magic": 2,
    "compression_type": 0,
    "is_transactional": False,
    "producer_id": -1,
    "producer_epoch": -1,
    "base_sequence": -1,
    "batch_size": 1 << 30,
}


def records(count: int, key: int, value: int, headers: int) -> list[Record]:
    source = random.Random(7)
    pairs = [(f"header-{n}", b"value %d" % n) for n in range(headers)]
    stamp = 1_700_000_000_000
    return [
        Record(n, stamp + 3 * n, source.randbytes(key), source.randbytes(value), pairs) for n in range(count)
    ]


def ours(data: bytes) -> int:
    total = 0
    for batch in batches(data):
        for record in batch:
            total += record.offset + record.timestamp
            record.key, record.value, record.headers  # noqa: B018
    return total


def theirs(kind: Any, data: bytes) -> int:
    total = 0
    batch = kind(data)
    assert batch.validate_crc()
    for record in batch:
        total += record.offset + record.timestamp
        record.key, record.value, record.headers  # noqa: B018
    return total


def append(rows: list[Record]) -> bytes:
    builder = RecordBatchBuilder(limit=1 << 30)
    for row in rows:
        builder.append(row)
    return builder.build()


def build(kind: Any, rows: list[Record]) -> bytes:
    builder = kind(**OPTIONS)
    for row in rows:
        builder.append(row.offset, row.timestamp, row.key, row.value, row.headers)
    return bytes(builder.build())


def peers() -> dict[str, tuple[Any, Any]]:
    """The classes that read and write one batch, by library."""
    kafka = import_module("kafka.record.default_records")
    aio: Any = import_module("aiokafka.record.default_records")
    aio.calc_crc32c = crc32c.crc32c
    return {
        "kafka-python": (kafka.DefaultRecordBatch, kafka.DefaultRecordBatchBuilder),
        "aiokafka (pure)": (aio._DefaultRecordBatchPy, aio._DefaultRecordBatchBuilderPy),
    }


def calls(rows: list[Record]) -> dict[str, dict[str, Call]]:
    """What is timed, by direction and library."""
    data = encode_batch(rows)
    found: dict[str, dict[str, Call]] = {
        "decode": {PEERS[0]: lambda: ours(data)},
        "encode": {PEERS[0]: lambda: encode_batch(rows)},
        "append": {PEERS[0]: lambda: append(rows)},
    }
    for name, (reader, writer) in peers().items():
        assert theirs(reader, data) == ours(data)
        assert ours(build(writer, rows)) == ours(data)
        found["decode"][name] = lambda kind=reader: theirs(kind, data)  # type: ignore[misc]
        found["encode"][name] = found["append"][name] = lambda kind=writer: build(kind, rows)  # type: ignore[misc]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.records")
    parser.add_argument("--rounds", type=int, default=9, help="interleaved rounds a row (%(default)s)")
    options = parser.parse_args()
    print("| batch, µs a record | | coordwire | kafka-python | aiokafka (pure) | × | × |")
    print("|---|---|---:|---:|---:|---:|---:|")
    for shape, (count, *sizes) in SHAPES.items():
        for direction, timed in calls(records(count, *sizes)).items():
            times, ratios = measure(timed, options.rounds)
            cells = [figure(each / count * 1e6) for each in times.values()]
            cells += [f"{ratios[name]:.2f}" for name in list(timed)[1:]]
            print(f"| {shape} | {direction} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
