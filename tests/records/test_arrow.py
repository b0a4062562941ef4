"""Records as Arrow: one fixed schema, the same values, tables of bounded size."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from coordwire.errors import CoordwireError, CorruptBatch
from coordwire.records import Record, UnreadableRange, batches, encode_batch
from coordwire.records.arrow import BATCH_COLUMNS, RECORD_COLUMNS, iter_batches, schema

from .data import archived, record_lists

EVERYTHING = [*RECORD_COLUMNS, *BATCH_COLUMNS]
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def rows(data: bytes, **options: Any) -> list[dict[str, Any]]:
    results = []
    for table in iter_batches(data, **options):
        table.validate(full=True)
        assert table.schema == schema(options.get("columns"))
        results += table.to_pylist()
    return results


def check(data: bytes, max_bytes: int) -> None:
    result = rows(data, columns=EVERYTHING, max_bytes=max_bytes)
    expected = [(batch, record) for batch in batches(data) for record in batch]
    assert len(result) == len(expected)
    for row, (batch, record) in zip(result, expected, strict=True):
        assert (row["offset"], row["key"], row["value"]) == (record.offset, record.key, record.value)
        assert [(pair["key"], pair["value"]) for pair in row["headers"]] == list(record.headers)
        assert row["timestamp_ms"] == record.timestamp
        assert row["batch_position"] == batch.position
        assert row["batch_size"] == batch.size
        for name in set(BATCH_COLUMNS) - {"timestamp_ms", "batch_position", "batch_size"}:
            assert row[name] == getattr(batch, name)


@pytest.mark.parametrize("max_bytes", [1, 200, 8 << 20])
def test_vectors(max_bytes: int) -> None:
    for vector in archived("batches"):
        check(bytes.fromhex(vector["hex"]), max_bytes)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(record_lists(), max_size=3), st.sampled_from([1, 100, 8 << 20]))
def test_any_records(lists: list[list[Record]], max_bytes: int) -> None:
    for records in lists:  # the stamps of others are far from what datetime holds
        for record in records:
            record.timestamp %= 1 << 40
    check(b"".join(map(encode_batch, lists)), max_bytes)


def test_the_fixed_schema() -> None:
    pair = pa.struct([pa.field("key", pa.string(), nullable=False), pa.field("value", pa.binary())])
    kinds = [pa.int64(), pa.timestamp("us", tz="UTC"), pa.binary(), pa.binary()]
    assert schema().names == list(RECORD_COLUMNS)
    assert [field.type for field in schema()][:4] == kinds
    assert schema().field("headers").type == pa.list_(pa.field("item", pair, nullable=False))
    with pytest.raises(ValueError, match="no such column: 'topic'"):
        schema(["offset", "topic"])


def test_timestamps() -> None:
    stamps = [0, -1, 1_700_000_000_123, 2**62, -(2**53), 5]
    (table,) = iter_batches(encode_batch([Record(timestamp=stamp) for stamp in stamps]))
    results = list(table["timestamp"])
    assert [t.value for t in results] == [0, None, 1_700_000_000_123_000, None, -(2**53) * 1000, 5000]
    assert results[2].as_py() == datetime(2023, 11, 14, 22, 13, 20, 123000, tzinfo=UTC)


def test_tables_are_bounded() -> None:
    data = encode_batch([Record(value=bytes(100)) for _ in range(1000)])
    tables = list(iter_batches(data, max_bytes=10_000))
    assert sum(table.num_rows for table in tables) == 1000
    assert max(table.nbytes for table in tables) < 12_000
    assert len(tables) < 20


def test_nothing() -> None:
    assert list(iter_batches(b"")) == []
    assert list(iter_batches(encode_batch([]))) == []


def test_header_keys_that_are_not_utf8() -> None:
    (row,) = rows(encode_batch([Record(headers=(("a\udcff", None),))]))
    assert row["headers"] == [{"key": "a�", "value": None}]


def test_bad_batches() -> None:
    batch = encode_batch([Record(value=b"v")])
    bad = batch[:-1] + b"!"
    with pytest.raises(CorruptBatch):
        list(iter_batches(batch + bad))
    skipped: list[UnreadableRange] = []
    assert len(rows(batch + bad + batch + bad, on_error="skip", skipped=skipped)) == 2
    assert [unreadable.position for unreadable in skipped] == [len(batch), 3 * len(batch)]
    with pytest.raises(ValueError, match="on_error"):
        iter_batches(batch, on_error="report")  # type: ignore[arg-type]


def test_without_pyarrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(CoordwireError, match=r"coordwire\[arrow\]"):
        iter_batches(b"")
