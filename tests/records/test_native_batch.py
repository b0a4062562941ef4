"""Batches that the native half opens, iterates and writes in one call: like those of Python's own code."""

from __future__ import annotations

import inspect
import struct
import sys
from typing import Any

import pytest

from coordwire.errors import CorruptBatch, EncodeError, OutOfRange
from coordwire.records import Record, RecordBatch, RecordBatchBuilder, batches, encode_batch, native
from fuzz.records_native import python

if native.codec is None:
    pytest.skip("no native extension", allow_module_level=True)

FREE = [Record(-1, 1000 + n // 2, b"k%d" % n, b"v" * n, (("h", b"%d" % n),)[: n % 2]) for n in range(200)]
ROWS = [Record(n, row.timestamp, row.key, row.value, row.headers) for n, row in enumerate(FREE)]
DATA = encode_batch(ROWS)


@pytest.fixture(autouse=True, scope="module")
def half() -> str:
    """Only the native half is looked at here."""
    return "c"


def test_a_batch_opened_natively_is_like_any_other() -> None:
    (batch,) = batches(DATA)
    other = RecordBatch(memoryview(DATA))
    assert repr(batch) == repr(other)
    for name in dir(RecordBatch):
        if not name.startswith("_") and not callable(getattr(other, name)):
            assert getattr(batch, name) == getattr(other, name)
    assert list(batch) == list(batch) == list(other) == ROWS
    with pytest.raises(AttributeError, match=r"has no attribute .colour."):
        batch.colour  # type: ignore[attr-defined] # noqa: B018


def test_a_wrong_checksum_shows_at_the_first_record() -> None:
    bad = bytearray(DATA)
    bad[-1] ^= 1
    (batch,) = batches(bad)
    records = iter(batch)
    with pytest.raises(CorruptBatch, match="CRC-32C"):
        next(records)
    assert list(records) == []


def test_a_walk_that_python_code_disturbs() -> None:
    walk: Any = batches(DATA * 2)
    walk._quick = "no codec"
    assert next(walk).offset == 0
    walk._quick = native.codec
    walk._view = b"no view"
    assert list(walk) == []
    walk = batches(DATA)
    del walk._view
    with pytest.raises(AttributeError):
        next(walk)


def test_a_batch_whose_place_python_code_changes() -> None:
    for offset, size in (
        (1 << 40, 61),
        (sys.maxsize, sys.maxsize),
        (-1, 61),
        (1, len(DATA)),
        (0, -1),
        (len(DATA), 61),
        (0, 60),
    ):
        (batch,) = batches(DATA)
        batch.offset, batch.size = offset, size
        with pytest.raises((CorruptBatch, struct.error)):
            list(batch)
    (batch,) = batches(DATA)
    viewed = batch.raw
    batch.offset = 1 << 40
    assert viewed == DATA
    assert list(batch) == ROWS
    del batch._view
    assert bytes(batch.raw) == b""
    other = RecordBatch(memoryview(DATA))
    del other._view
    with pytest.raises(AttributeError):
        list(other)


@pytest.mark.parametrize("first", [0, 250, (1 << 30) - 9, (1 << 60) - 9, (1 << 63) - 21])
@pytest.mark.parametrize(
    "stamps", [(1, 2), (1000,), (1 << 30, 255), ((1 << 60) - 1, 1 << 60, 300), (-5, -2, -1)]
)
def test_numbers_that_are_kept_never_change(first: int, stamps: tuple[int, ...]) -> None:
    rows = [Record(first + n, stamps[n % len(stamps)] + n // 3) for n in range(20)]
    expected = [(row.offset, row.timestamp) for row in rows]
    (batch,) = batches(encode_batch(rows))
    assert [(record.offset, record.timestamp) for record in batch] == expected
    assert [str((record.offset, record.timestamp)) for record in batch] == list(map(str, expected))
    assert [record.timestamp for record in batch] == [stamp for _, stamp in expected]
    assert [str(record.offset) for record in batch] == [str(offset) for offset, _ in expected]
    whole = list(batch)
    assert [(record.offset, record.timestamp) for record in whole] == expected
    assert sum(range(257)) == 32896  # the small ones are as they were


def test_the_bytes_outlive_the_walk() -> None:
    whole = bytearray(DATA * 3)
    found = list(batches(memoryview(whole)))
    assert [batch.offset for batch in found] == [0, len(DATA), 2 * len(DATA)]
    with pytest.raises(BufferError):
        whole.clear()
    assert [list(batch) for batch in found] == [ROWS] * 3


def test_append_is_the_same_method() -> None:
    native_one: Any = RecordBatchBuilder.append
    in_python: Any = RecordBatchBuilder._append  # type: ignore[attr-defined]
    assert native_one.__doc__.split() == in_python.__doc__.split()
    assert list(inspect.signature(native_one).parameters) == list(inspect.signature(in_python).parameters)


class Counting(RecordBatchBuilder):
    calls = 0

    def append(self, record: Record) -> bool:
        self.calls += 1
        return super().append(record)


def test_append_in_every_way_that_a_method_is_called() -> None:
    builder = RecordBatchBuilder()
    append = builder.append
    assert append(FREE[0])
    assert builder.append(record=FREE[1])
    assert RecordBatchBuilder.append(builder, FREE[2])
    assert builder.build() == encode_batch(FREE[:3])
    arguments: Any
    for arguments in ((), (FREE[0], None)):
        with pytest.raises(TypeError, match=r"RecordBatchBuilder.append\(\)"):
            append(*arguments)
    counting = Counting()
    assert counting.append(FREE[0])
    assert (counting.calls, counting.count) == (1, 1)
    Other: Any = type("Other", (Counting,), {})
    assert Other.append is Counting.append


def test_a_limit_that_changes() -> None:
    builder = RecordBatchBuilder(limit=0)
    assert [builder.append(row) for row in FREE[:2]] == [True, False]
    builder.limit = None
    assert builder.append(FREE[1])
    builder.limit = builder.size + len(encode_batch(FREE[2:3])) - 61
    assert [builder.append(row) for row in (FREE[2], FREE[0])] == [True, False]
    builder.limit = 1 << 80
    assert builder.append(FREE[3])
    assert builder.build() == encode_batch(FREE[:4])
    del builder.limit
    with pytest.raises(AttributeError):
        builder.append(FREE[0])
    with pytest.raises(OutOfRange, match="limit"):
        RecordBatchBuilder(limit=1 << 80)


class Nested:
    """Headers that are false, and append a record when they are asked."""

    def __init__(self, builder: RecordBatchBuilder, record: Record) -> None:
        self.builder, self.record = builder, record

    def __bool__(self) -> bool:
        self.builder.append(self.record)
        return False


def test_headers_that_append_a_record() -> None:
    builder = RecordBatchBuilder()
    headers: Any = Nested(builder, FREE[1])
    assert builder.append(Record(value=b"outer", headers=headers))
    assert builder.append(FREE[1])
    assert builder.append(FREE[3])
    (batch,) = batches(builder.build())
    found = [(record.value, record.headers) for record in batch]
    one, three = (FREE[1].value, FREE[1].headers), (FREE[3].value, FREE[3].headers)
    assert found == [one, (b"outer", ()), one, three]


ENCODED = {"base_offset": 3, "producer_id": 1 << 40, "producer_epoch": 7, "base_sequence": 9}


@pytest.mark.parametrize(
    "options",
    [
        ENCODED,
        ENCODED | {"transactional": True, "control": True, "partition_leader_epoch": 4},
        {"last_offset": 1000, "max_timestamp": 77},
        {"last_offset": 1 << 31},
        {"last_offset": 3},
        {"producer_epoch": 1 << 15},
        {"base_sequence": True},
        {"transactional": 1},
        {"base_offset": (1 << 63) - 5},
        {"base_offset": 1 << 63},
        {"partition_leader_epoch": -(1 << 31)},
    ],
)
def test_one_call_writes_what_python_writes(options: dict[str, Any]) -> None:
    def found() -> bytes | str:
        try:
            return encode_batch(FREE, **options)
        except EncodeError as error:
            return f"{type(error).__name__}: {error}"

    by_native = found()
    with python():
        assert found() == by_native
