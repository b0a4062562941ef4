"""Batches that the native half opens, iterates and writes in one call: like those of Python's own code."""

from __future__ import annotations

import codecs
import gc
import inspect
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any

import pytest

from coordwire.errors import CorruptBatch, EncodeError, OutOfRange
from coordwire.records import Record, RecordBatch, RecordBatchBuilder, backend, batches, encode_batch
from coordwire.records.compression import Buffer
from fuzz.records_native import python

if backend.codec is None:
    pytest.skip("no native extension", allow_module_level=True)


@contextmanager
def collecting(callback: Callable[[], None]) -> Iterator[None]:
    """Call something whenever garbage is collected: in Python 3.11 that is where memory is got."""

    def called(phase: str, info: object) -> None:
        if phase == "start":
            callback()

    before = gc.get_threshold()
    gc.collect()
    gc.callbacks.append(called)
    gc.set_threshold(1)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.callbacks.remove(called)


FREE = [Record(-1, 1000 + n // 2, b"k%d" % n, b"v" * n, (("h", b"%d" % n),)[: n % 2]) for n in range(200)]
ROWS = [Record(n, row.timestamp, row.key, row.value, row.headers) for n, row in enumerate(FREE)]
DATA = encode_batch(ROWS)


@pytest.fixture(autouse=True, scope="module")
def half() -> str:
    """Only the native half is looked at here."""
    return "c"


def test_a_batch_opened_natively_is_like_any_other() -> None:
    (batch,) = batches(DATA)
    other_batch = RecordBatch(memoryview(DATA))
    assert repr(batch) == repr(other_batch)
    for name in dir(RecordBatch):
        if not name.startswith("_") and not callable(getattr(other_batch, name)):
            assert getattr(batch, name) == getattr(other_batch, name)
    assert list(batch) == list(batch) == list(other_batch) == ROWS
    with pytest.raises(AttributeError, match=r"has no attribute .colour."):
        batch.colour  # type: ignore[attr-defined] # noqa: B018


def test_a_wrong_checksum_shows_at_the_first_record() -> None:
    data = bytearray(DATA)
    data[-1] ^= 1
    (batch,) = batches(data)
    records = iter(batch)
    with pytest.raises(CorruptBatch, match="CRC-32C"):
        next(records)
    assert list(records) == []


def test_a_walk_that_python_code_disturbs() -> None:
    walk: Any = batches(DATA * 2)
    walk._quick = "no codec"
    assert next(walk).position == 0
    walk._quick = backend.codec
    walk._view = b"no view"
    assert list(walk) == []
    walk = batches(DATA)
    del walk._view
    with pytest.raises(AttributeError):
        next(walk)


def test_a_batch_whose_bytes_python_code_takes() -> None:
    (batch,) = batches(DATA)
    assert batch.raw == DATA
    del batch._view
    assert list(batch) == ROWS
    assert batch.raw == DATA
    for view in (b"", DATA[:60]):
        batch._view = memoryview(view)
        with pytest.raises((CorruptBatch, struct.error)):
            list(batch)
    other_batch = RecordBatch(memoryview(DATA))
    del other_batch._view
    with pytest.raises(AttributeError):
        list(other_batch)


def test_a_walk_whose_bytes_are_taken_while_memory_is_got() -> None:
    walk: Any = batches(b"")
    results: list[RecordBatch | None] = []

    def take() -> None:
        walk._view = b""

    with collecting(take):
        for _ in range(20):
            walk._view = bytes(bytearray(DATA))
            walk.position = 0
            results.append(next(walk, None))
    opened = [batch for batch in results if batch is not None]
    assert opened
    assert [list(batch) for batch in opened] == [ROWS] * len(opened)


def test_a_batch_that_is_asked_for_while_another_is_made() -> None:
    walk = batches(DATA * 20)
    inner: list[RecordBatch] = []

    def take() -> None:
        if len(inner) < 3:
            inner.extend(islice(walk, 1))

    with collecting(take):
        outer = list(walk)
    assert sorted(batch.position for batch in outer + inner) == [n * len(DATA) for n in range(20)]


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


def test_a_record_that_is_asked_for_while_another_is_made() -> None:
    for headers in ((), (("h", b"1"),)):
        rows = [Record(n, 0, b"key", b"v%d" % n, headers) for n in range(50)]
        records = iter(next(batches(encode_batch(rows))))
        inner: list[Record] = []

        def take(records: Iterator[Record] = records, inner: list[Record] = inner) -> None:
            if len(inner) < 3:
                inner.extend(islice(records, 1))

        outer = [next(records)]
        with collecting(take):
            outer += records
        assert sorted(outer + inner, key=lambda record: record.offset) == rows


class Taking:
    """What takes the next record when it goes."""

    def __init__(self, records: Iterator[Record], found: list[Record]) -> None:
        self.records, self.found = records, found

    def __del__(self) -> None:
        self.found.append(next(self.records))


@pytest.mark.parametrize("field", ["offset", "timestamp", "key", "value", "headers"])
def test_a_used_record_whose_contents_take_the_next(field: str) -> None:
    records = iter(next(batches(DATA)))
    results: list[Record] = []
    offsets = []
    for record in records:
        offsets.append(record.offset)
        if len(offsets) % 5 == 1 and len(offsets) < 100:
            setattr(record, field, Taking(records, results))
        del record
    del records
    assert results
    assert sorted(offsets + [result.offset for result in results]) == list(range(len(ROWS)))


def test_two_threads_on_one_iterator() -> None:
    """One of them gets each record; a call while the other opens the batch gets an error."""
    data = encode_batch([Record(value=bytes(1000))] * 2000)
    refused: set[str] = set()
    for _ in range(20):
        records = iter(next(batches(data)))
        start = threading.Barrier(2)
        results: list[int] = []

        def take(
            records: Iterator[Record] = records, results: list[int] = results, start: Any = start
        ) -> None:
            start.wait()
            while True:
                try:
                    results.extend(record.offset for record in records)
                except ValueError as error:
                    refused.add(str(error))
                else:
                    return

        threads = [threading.Thread(target=take) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(results) == list(range(2000))
    assert refused <= {"generator already executing"}


def test_an_iterator_that_is_at_work(monkeypatch: pytest.MonkeyPatch) -> None:
    (batch,) = batches(encode_batch(ROWS, codec="gzip"))
    records = iter(batch)
    payload = RecordBatch.payload

    def nested(self: RecordBatch) -> Buffer:
        with pytest.raises(ValueError, match="generator already executing"):
            next(records)
        return payload(self)

    monkeypatch.setattr(RecordBatch, "payload", nested)
    assert list(records) == ROWS
    assert list(records) == []


def test_the_bytes_outlive_the_walk() -> None:
    data = bytearray(DATA * 3)
    results = list(batches(memoryview(data)))
    assert [batch.position for batch in results] == [0, len(DATA), 2 * len(DATA)]
    with pytest.raises(BufferError):
        data.clear()
    assert [list(batch) for batch in results] == [ROWS] * 3


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
    results = [(record.value, record.headers) for record in batch]
    one, three = (FREE[1].value, FREE[1].headers), (FREE[3].value, FREE[3].headers)
    assert results == [one, (b"outer", ()), one, three]


def test_headers_that_append_a_record_of_a_later_offset() -> None:
    builder = RecordBatchBuilder()
    headers: Any = Nested(builder, Record(offset=1000, value=b"inner"))
    with pytest.raises(EncodeError):
        builder.append(Record(offset=500, value=b"outer", headers=headers))
    assert builder.append(Record(offset=2000, value=b"last"))
    (batch,) = batches(builder.build())
    assert [(record.offset, record.value) for record in batch] == [
        (1000 + n, b"inner") for n in range(builder.count - 1)
    ] + [(2000, b"last")]


def test_headers_that_append_a_record_to_a_batch_that_is_refused() -> None:
    builder = RecordBatchBuilder()
    headers: Any = Nested(builder, Record(value=b"inner"))
    with pytest.raises(EncodeError):
        builder.extend([Record(value=b"outer", headers=headers), Record(offset=-2)])
    assert builder.append(Record(value=b"last"))
    (batch,) = batches(builder.build())
    assert [record.value for record in batch] == [b"last"]


def test_a_header_that_an_error_handler_takes_away() -> None:
    pair: list[Any] = ["\ud800", bytes(bytearray(b"V" * 400))]
    headers: list[Any] = [pair]
    junk: list[bytes] = []

    def handle(error: UnicodeError) -> tuple[bytes, int]:
        pair.clear()
        headers.clear()
        junk.extend(bytes(bytearray(b"J" * 400)) for _ in range(50))
        return b"?", 1

    before = codecs.lookup_error("surrogateescape")
    codecs.register_error("surrogateescape", handle)
    try:
        data = encode_batch([Record(value=b"x", headers=headers)])
    finally:
        codecs.register_error("surrogateescape", before)
    (batch,) = batches(data)
    assert [record.headers for record in batch] == [(("?", b"V" * 400),)]
    assert junk


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
