"""Columns of record sets, filled by the kernel from set to set, as each set read by itself."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

pytest.importorskip("pyarrow", reason="pyarrow isn't installed: pip install 'coordwire[arrow]'")

import pyarrow as pa

from coordwire.errors import UnreadableRange
from coordwire.records import Record, encode_batch
from coordwire.records.arrow import iter_batches, record_sets, schema
from coordwire.records.arrow.record_sets import read_record_sets
from coordwire.records.compression import Codec, missing_codecs
from coordwire.tables import functions

COLUMNS = ["offset", "timestamp", "key", "value", "headers", "is_control"]
ALL: tuple[Codec, ...] = ("none", "none", "gzip", "lz4", "snappy", "zstd")
CODECS = [codec for codec in ALL if codec not in missing_codecs()]


def batch(rng: random.Random, base: int) -> bytes:
    codec = rng.choice(CODECS)
    magic = 2 if codec == "zstd" else rng.choice([2, 2, 2, 1])
    records = [
        Record(
            timestamp=rng.choice([-1, 5, 1 << 62]),
            key=rng.choice([None, b"", b"key"]),
            value=rng.choice([None, rng.randbytes(rng.randrange(90))]),
            headers=(("h", rng.choice([None, b"x"])),) * (rng.randrange(3) if magic == 2 else 0),
        )
        for _ in range(rng.randrange(1, 9))
    ]
    return encode_batch(records, codec=codec, base_offset=base, magic=magic)


def sets(rng: random.Random, count: int) -> Iterator[bytes]:
    """Sound sets and damaged ones; some end within a batch, with which the next one goes on."""
    left = b""
    for number in range(count):
        data = left + b"".join(batch(rng, 10 * number + n) for n in range(rng.randrange(4)))
        left = b""
        match rng.randrange(8):
            case 0 if data:
                at = rng.randrange(len(data))
                data = data[:at] + bytes([data[at] ^ (1 << rng.randrange(8))]) + data[at + 1 :]
            case 1:
                data, left = data[: -len(data) // 3], data[-len(data) // 3 :]
            case 2:
                data += rng.randbytes(rng.randrange(40))
        yield data


def alone(column: list[bytes]) -> tuple[list[list[dict[str, object]]], set[int]]:
    """The records of each set, read by itself, and which of them are not sound."""
    rows, unsound = [], set()
    for number, data in enumerate(column):
        skipped: list[UnreadableRange] = []
        tables = iter_batches(data, columns=COLUMNS, on_error="skip", skipped=skipped)
        rows.append(pa.Table.from_batches(tables, schema(COLUMNS)).cast(plain()).to_pylist())
        if skipped:
            unsound.add(number)
    return rows, unsound


def plain() -> pa.Schema:
    """Times as numbers, since Python's end with the year 9999."""
    form = schema(COLUMNS)
    return form.set(1, pa.field("timestamp", pa.int64()))


@pytest.mark.parametrize("most", [4 << 20, 60])
def test_sets_are_read_as_if_alone(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr(record_sets, "MOST", most)
    for seed in range(60):
        column = list(sets(random.Random(seed), 30))
        ends = [sum(map(len, column[: number + 1])) for number in range(len(column))]
        actual = read_record_sets(memoryview(b"".join(column)), ends, COLUMNS)
        rows, unsound = alone(column)
        assert actual.counts == list(map(len, rows))
        table = pa.Table.from_batches(actual.tables, schema(COLUMNS)).cast(plain())
        assert table.to_pylist() == [row for of_set in rows for row in of_set]
        assert unsound <= set(actual.reasons)


def test_columns_of_any_form() -> None:
    column = list(sets(random.Random(7), 40))
    values = [*column[:20], None, *column[20:]]
    whole = functions.decode_records(pa.array(values, pa.binary()))
    assert whole.null_count == 1
    assert len(whole.field("records").values) > 100
    array = pa.array([b"before", *values, b"after"], pa.binary())
    forms = [
        pa.array(values, pa.large_binary()),
        array[1:-1],
        array.cast(pa.large_binary())[1:-1],
        pa.chunked_array([values[:9], values[9:9], values[9:]], pa.binary()),
    ]
    for form in forms:
        assert functions.decode_records(form) == whole
    assert functions.decode_records(column[0]).to_pylist() == whole[:1].to_pylist()
    assert functions.decode_records(pa.scalar(column[0])).to_pylist() == whole[:1].to_pylist()
    for empty in (array[:0], pa.array([], pa.null()), pa.chunked_array([], pa.binary())):
        assert len(functions.decode_records(empty)) == 0
    assert functions.decode_records(pa.array([None, None])).null_count == 2
