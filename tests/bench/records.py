"""`python -m tests.bench.records` compares records with other code: read, written, as Arrow, checksums.

Strategy: the interleaved rounds of `tests.bench`, over batches of a few shapes; every field of every record
is read, checksums included. Rules: each library by the classes that its consumer and producer use, aiokafka's
compiled ones too; pure Python gets the same C checksum as everybody; all decode the same bytes and must give
the same records first; what a library has no codec for it leaves out. × says how many times as fast ours is,
as the median of the rounds; "append" is a record at a time, as the others do it. Times are the processor's.
"""

from __future__ import annotations

import argparse
import platform
import random
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib import import_module
from importlib.metadata import version
from time import process_time
from typing import Any

import crc32c

from coordwire.records import Record, RecordBatchBuilder, backend, batches, encode_batch
from coordwire.records.compression import CODECS, Codec
from fuzz.records_native import python
from tests.bench.__main__ import cpu, figure, measure
from tests.bench.engine import check_engine
from tests.bench.peers import PEERS, Call
from tests.bench.segments import segments

OURS, PURE = PEERS[0], "coordwire (Python)"
COMPILED = "aiokafka (Cython)"
COLUMNS = (OURS, PURE, COMPILED, "aiokafka (pure)", "kafka-python")

Timed = dict[str, Call]
Row = tuple[str, str, float, Timed]
"""What is worked on, the work, how many there are of what a figure is for, and the calls."""


def shapes() -> dict[str, list[Record]]:
    source = random.Random(7)
    stamp = 1_700_000_000_000

    def rows(count: int, key: int, sizes: tuple[int, ...], headers: int = 0) -> list[Record]:
        return [
            Record(
                number,
                stamp + number // 2,
                source.randbytes(key) if key else None,
                source.randbytes(sizes[number % len(sizes)]),
                [(f"header-{n}", b"value %d" % (number % 5)) for n in range(headers)],
            )
            for number in range(count)
        ]

    return {
        "1000 × 10 + 100 bytes": rows(1000, 10, (100,)),
        "2000 × 8 bytes": rows(2000, 0, (8,)),
        "500 × 16 + 1000 bytes, 2 headers": rows(500, 16, (1000,), 2),
        "1000 × 0 to 1500 bytes, 1 header": rows(1000, 10, (0, 8, 1500, 50, 200), 1),
    }


def ours(data: bytes) -> None:
    for batch in batches(data):
        for record in batch:
            offset = record.offset
            timestamp = record.timestamp
            key = record.key
            value = record.value
            headers = record.headers
    del offset, timestamp, key, value, headers


def theirs(kind: Any, data: bytes) -> None:
    batch = kind(data)
    assert batch.validate_crc()
    for record in batch:
        offset = record.offset
        timestamp = record.timestamp
        key = record.key
        value = record.value
        headers = record.headers
    del offset, timestamp, key, value, headers


def append(rows: list[Record]) -> bytes:
    builder = RecordBatchBuilder(limit=1 << 30)
    for row in rows:
        builder.append(row)
    return builder.build()


def build(kind: Any, rows: list[tuple[Any, ...]], codec: int = 0) -> bytes:
    builder = kind(2, codec, False, -1, -1, -1, 1 << 30)
    for offset, timestamp, key, value, headers in rows:
        builder.append(offset, timestamp, key, value, headers)
    return bytes(builder.build())


def peers() -> dict[str, tuple[Any, Any]]:
    """The classes that read and write one batch, by library."""
    kafka = import_module("kafka.record.default_records")
    aio: Any = import_module("aiokafka.record.default_records")
    aio.calc_crc32c = crc32c.crc32c
    compiled = import_module("aiokafka.record._crecords.default_records")
    assert str(compiled.__file__).endswith((".so", ".pyd"))
    return {
        COMPILED: (compiled.DefaultRecordBatch, compiled.DefaultRecordBatchBuilder),
        "aiokafka (pure)": (aio._DefaultRecordBatchPy, aio._DefaultRecordBatchBuilderPy),
        "kafka-python": (kafka.DefaultRecordBatch, kafka.DefaultRecordBatchBuilder),
    }


def in_python(call: Call) -> Call:
    """The same by our Python half."""

    def switched() -> Any:
        with python():
            return call()

    return switched


def fields(batch: Any) -> list[Any]:
    return [(r.offset, r.timestamp, r.key, r.value, list(r.headers)) for r in batch]


def reading(rows: list[Record], codec: Codec = "none") -> Timed:
    data = encode_batch(rows, codec=codec)
    result: Timed = {OURS: lambda: ours(data), PURE: in_python(lambda: ours(data))}
    for name, (reader, _) in peers().items():
        try:
            read = fields(reader(data))
        except Exception:  # no codec: each has its own error
            continue
        assert read == fields(rows)
        result[name] = lambda kind=reader: theirs(kind, data)  # type: ignore[misc]
    return result


def writing(rows: list[Record], ours: Call, codec: Codec = "none") -> Timed:
    result: Timed = {OURS: ours, PURE: in_python(ours)}
    plain, number = fields(rows), CODECS.index(codec)
    for name, (_, writer) in peers().items():
        try:
            data = build(writer, plain, number)
        except Exception:  # no codec
            continue
        assert fields(next(batches(data))) == plain
        result[name] = lambda kind=writer: build(kind, plain, number)  # type: ignore[misc]
    return result


def rows() -> Iterator[Row]:
    made = shapes()
    for shape, records in made.items():
        yield shape, "read, ns a record", len(records), reading(records)
        yield shape, "encode", len(records), writing(records, lambda r=records: encode_batch(r))  # type: ignore[misc]
        yield shape, "append", len(records), writing(records, lambda r=records: append(r))  # type: ignore[misc]
    shape, records = next(iter(made.items()))
    for codec in CODECS[1:]:
        yield f"{shape}, {codec}", "read", len(records), reading(records, codec)
        call = lambda codec=codec: encode_batch(records, codec=codec)  # noqa: E731
        yield f"{shape}, {codec}", "encode", len(records), writing(records, call, codec)
    for count in (10, 100, 10_000):
        many = [Record(n, row.timestamp, row.key, row.value) for n, row in enumerate(records * 10)][:count]
        yield f"{count} × 10 + 100 bytes", "read", count, reading(many)
        yield f"{count} × 10 + 100 bytes", "encode", count, writing(many, lambda r=many: encode_batch(r))  # type: ignore[misc]


def checksums() -> Iterator[tuple[str, Timed]]:
    google = import_module("google_crc32c")
    for size in (64, 1 << 10, 16 << 10, 1 << 20):
        data = random.Random(1).randbytes(size)
        yield (
            f"CRC-32C of {size} bytes",
            {
                OURS: lambda d=data: backend.crc32c(d),  # type: ignore[misc]
                "crc32c": lambda d=data: crc32c.crc32c(d),  # type: ignore[misc]
                "google-crc32c": lambda d=data: google.value(d),  # type: ignore[misc]
            },
        )


def show(label: str, work: str, timed: Timed, rounds: int, scale: float, columns: tuple[str, ...]) -> None:
    times, ratios = measure(timed, rounds, process_time)
    cells = [figure(times[name] * scale) if name in times else "" for name in columns]
    cells += [f"{ratios[name]:.2f}" if name in ratios else "" for name in columns[1:]]
    print(f"| {label} | {work} | {' | '.join(cells)} |", flush=True)


def head(what: str, columns: tuple[str, ...]) -> None:
    others = columns[1:]
    print(f"\n| {what} | | {' | '.join(columns)} | {' | '.join(f'× {name}' for name in others)} |")
    print(f"|---|---|{'---:|' * (len(columns) + len(others))}")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.records")
    parser.add_argument("--rounds", type=int, default=9, help="interleaved rounds a row (%(default)s)")
    parser.add_argument("--mebibytes", type=int, default=256, help="of a segment (%(default)s)")
    options = parser.parse_args()
    check_engine(COLUMNS)
    head("batch, ns a record", COLUMNS)
    for label, work, count, timed in rows():
        show(label, work.partition(",")[0], timed, options.rounds, 1e9 / count, COLUMNS)
    sums = (OURS, "crc32c", "google-crc32c")
    head("checksum, ns", sums)
    for label, timed in checksums():
        show(label, "", timed, options.rounds, 1e9, sums)
    segments(options.mebibytes, options.rounds)
    named = ", ".join(f"{name} {version(name)}" for name in ("aiokafka", "kafka-python", "pyarrow"))
    print(
        f"\n{named}; {platform.python_implementation()} {platform.python_version()}, {cpu()}, "
        f"{datetime.now(UTC):%Y-%m-%d}; medians of {options.rounds} interleaved rounds."
    )


if __name__ == "__main__":
    main()
