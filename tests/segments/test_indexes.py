"""The index files, against their declarations run by `construct`; zeros, ends, looking up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordwire.errors import OutOfRange
from coordwire.segments import (
    AbortedTransaction,
    OffsetIndex,
    OffsetPosition,
    Segment,
    TimeIndex,
    TimestampOffset,
    TransactionIndex,
)
from schemas import segment_files as declared

from .build import batch, write

SMALL = st.integers(0, 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)
BASES = st.integers(0, 2**62)


def plain(rows: Any) -> list[tuple[int, ...]]:
    """What `construct` parsed, as tuples."""
    return [tuple(value for name, value in row.items() if not name.startswith("_")) for row in rows]


@given(BASES, st.lists(st.tuples(SMALL, st.integers(1, 2**31 - 1)), max_size=8))
def test_offset_indexes(base: int, rows: list[tuple[int, int]]) -> None:
    entries = [OffsetPosition(base + offset, position) for offset, position in rows]
    data = OffsetIndex.pack(entries, base)
    assert plain(declared.OffsetIndex.parse(data)) == rows
    assert declared.OffsetIndex.build([{"relative_offset": a, "position": b} for a, b in rows]) == data
    assert list(OffsetIndex(data, base)) == entries


@given(BASES, st.lists(st.tuples(st.integers(1, 2**63 - 1), SMALL), max_size=8))
def test_time_indexes(base: int, rows: list[tuple[int, int]]) -> None:
    entries = [TimestampOffset(timestamp, base + offset) for timestamp, offset in rows]
    data = TimeIndex.pack(entries, base)
    assert plain(declared.TimeIndex.parse(data)) == rows
    assert list(TimeIndex(data, base)) == entries


@given(st.lists(st.tuples(INT64, INT64, INT64, st.integers(1, 2**63 - 1)), max_size=5))
def test_transaction_indexes(rows: list[tuple[int, int, int, int]]) -> None:
    entries = [AbortedTransaction(*row) for row in rows]
    data = TransactionIndex.pack(entries)
    assert plain(declared.TransactionIndex.parse(data)) == [(0, *row) for row in rows]
    assert list(TransactionIndex(data, 0)) == entries


KINDS: list[type[OffsetIndex] | type[TimeIndex] | type[TransactionIndex]] = [
    OffsetIndex,
    TimeIndex,
    TransactionIndex,
]


@given(st.sampled_from(KINDS), st.binary(max_size=200), st.sampled_from([0, 1, 100, 70_000, 200_000]))
def test_any_bytes(kind: type[OffsetIndex], data: bytes, zeros: int) -> None:
    """Entries, room that is reserved and what trails account for every byte; the zeros are not entries."""
    index = kind(data + bytes(zeros), 10)
    size = index.entry.size
    assert len(index) * size + index.reserved + index.trailing == len(data) + zeros
    assert 0 <= index.trailing < size
    whole = -(-len(data.rstrip(b"\0")) // size)
    assert len(index) <= max(whole, 1)
    rows = list(index)
    assert rows == [index[n] for n in range(len(index))] == index[:]
    if rows:
        assert index[-1] == rows[-1]
    for outside in (len(index), -len(index) - 1):
        with pytest.raises(IndexError):
            index[outside]
    assert str(len(index)) in repr(index)


def test_preallocated() -> None:
    """A broker that didn't stop in order leaves 10 MB, most of it zeros."""
    data = OffsetIndex.pack([OffsetPosition(107, 256), OffsetPosition(120, 65536)], 100)
    index = OffsetIndex(data + bytes(10_485_760 - len(data)), 100)
    assert list(index) == [(107, 256), (120, 65536)]
    assert (index.reserved, index.trailing) == (10_485_744, 0)
    assert list(OffsetIndex(bytes(8000), 0)) == []


def test_the_first_timestamp_may_be_zero() -> None:
    assert list(TimeIndex(bytes(12), 5)) == [(0, 5)]
    assert list(TimeIndex(bytes(24), 5)) == []
    two = TimeIndex.pack([TimestampOffset(0, 5), TimestampOffset(1, 6)], 5)
    assert list(TimeIndex(two, 5)) == [(0, 5), (1, 6)]


def test_looking_up() -> None:
    offsets = OffsetIndex(OffsetIndex.pack([OffsetPosition(12, 100), OffsetPosition(15, 200)], 10), 10)
    assert [offsets.lookup(n) for n in (11, 12, 14, 99)] == [None, (12, 100), (12, 100), (15, 200)]
    times = TimeIndex(TimeIndex.pack([TimestampOffset(1000, 12)], 10), 10)
    assert [times.lookup(n) for n in (999, 1000, 2000)] == [None, (1000, 12), (1000, 12)]


def test_what_an_index_cant_hold() -> None:
    with pytest.raises(OutOfRange):
        OffsetIndex.pack([OffsetPosition(1 << 31, 0)], 0)
    with pytest.raises(OutOfRange):
        TimeIndex.pack([TimestampOffset(0, -(1 << 40))], 0)
    with pytest.raises(OutOfRange):
        TransactionIndex.pack([AbortedTransaction(1 << 63, 0, 0, 0)])


def test_beside_the_log(tmp_path: Path) -> None:
    path = write(tmp_path, batch(100), base=100)
    path.with_suffix(".index").write_bytes(OffsetIndex.pack([OffsetPosition(102, 50)], 100))
    path.with_suffix(".timeindex").write_bytes(TimeIndex.pack([TimestampOffset(7, 102)], 100))
    path.with_suffix(".txnindex").write_bytes(b"")
    with Segment(path) as segment:
        assert segment.offset_index is not None
        assert list(segment.offset_index) == [(102, 50)]
        assert segment.time_index is not None
        assert list(segment.time_index) == [(7, 102)]
        assert segment.transaction_index is not None
        assert len(segment.transaction_index) == 0
