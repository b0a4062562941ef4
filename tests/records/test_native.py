"""The native half of the records by itself: memory that is used again, that ends, that runs out."""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import crc32c as package
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordwire.errors import CorruptBatch
from coordwire.records import Batches, Record, RecordBatchBuilder, backend, batches, encode_batch
from coordwire.records.arrow import BATCH_COLUMNS, RECORD_COLUMNS, iter_batches
from coordwire.records.record import Header
from fuzz._guard import Guard

from .data import resized

if backend.codec is None:
    pytest.skip("no native extension", allow_module_level=True)

codec = backend.codec
NATIVE = sys.modules["coordwire._speedups._native"]
GUARD = Guard()
ROWS = [
    Record(
        n,
        1000 + n // 2,
        b"k%d" % n,
        None if n % 5 == 0 else b"v" * n,
        (("h", b"%d" % n), ("é", None))[: n % 3],
    )
    for n in range(200)
]
FREE = [replace(row, offset=-1) for row in ROWS]
DATA = encode_batch(ROWS)


@pytest.fixture(autouse=True, scope="module")
def half() -> str:
    """Only the native half is looked at here."""
    return "c"


# --- the checksum -----------------------------------------------------------------------------------------


@settings(max_examples=300)
@given(st.integers(0, 20_000), st.integers(0, 15), st.integers(0, 2**32 - 1), st.randoms())
def test_checksums(size: int, shift: int, crc: int, source: Any) -> None:
    data = memoryview(source.randbytes(size + shift))[shift:]
    expected = package.crc32c(bytes(data), crc)
    assert NATIVE.crc32c(data, crc) == expected
    assert NATIVE.crc32c(GUARD.place(bytes(data)), crc) == expected


def test_every_short_checksum() -> None:
    data = bytes(range(256)) * 30
    for size in [*range(1600), 6143, 6144, 6145, 7000]:
        assert NATIVE.crc32c(data[:size]) == package.crc32c(data[:size])


@pytest.fixture
def of_the_package() -> Iterator[pytest.MonkeyPatch]:
    """What replaces the function of the package; afterwards checksums are by the instruction again."""
    with pytest.MonkeyPatch.context() as patch:
        yield patch
    NATIVE.use_crc32c_package(False)


def test_checksums_of_the_package(of_the_package: pytest.MonkeyPatch) -> None:
    compute = package.crc32c
    calls: list[int] = []

    def counted(data: Any, crc: int) -> int:
        calls.append(len(data))
        return compute(data, crc)

    of_the_package.setattr(package, "crc32c", counted)
    NATIVE.use_crc32c_package(True)
    large = bytes(range(256)) * 1000
    for data in (b"a", memoryview(large)[3:], large):
        assert NATIVE.crc32c(data, 7) == compute(data, 7)
    assert NATIVE.crc32c(b"", 7) == 7
    assert calls == [1, len(large) - 3, len(large)]
    assert encode_batch(ROWS) == DATA
    assert [record for batch in batches(DATA) for record in batch] == ROWS
    with pytest.raises(CorruptBatch):
        [list(batch) for batch in batches(DATA[:-1] + b"?")]
    assert calls[3:] == [len(DATA) - 21] * 4  # of the refused one Python computes it too
    table = encode_batch([Record(value=large)])  # for which a kernel of Arrow's columns lets go of the lock
    assert sum(part.num_rows for part in iter_batches(DATA + table)) == len(ROWS) + 1
    assert calls[7:] == [len(table) - 21, 40, len(DATA) - 61, 40, len(table) - 61]
    NATIVE.use_crc32c_package(False)
    NATIVE.crc32c(b"a", 7)
    assert len(calls) == 12


WITHOUT_MEMORY: dict[str, Callable[[], object]] = {
    "a checksum": lambda: NATIVE.crc32c(b"a"),
    "a batch": lambda: encode_batch(ROWS),
    "a builder's batch": lambda: build(ROWS),
    "a batch's records": lambda: list(next(batches(DATA))),
    "a table": lambda: list(iter_batches(DATA)),
}


@pytest.mark.parametrize("work", WITHOUT_MEMORY.values(), ids=WITHOUT_MEMORY)
def test_a_checksum_without_memory_is_an_error(
    of_the_package: pytest.MonkeyPatch, work: Callable[[], object]
) -> None:
    def refuse(data: Any, crc: int) -> int:
        raise MemoryError

    of_the_package.setattr(package, "crc32c", refuse)
    NATIVE.use_crc32c_package(True)
    with pytest.raises(MemoryError):
        work()


def build(rows: list[Record]) -> bytes:
    builder = RecordBatchBuilder(base_offset=0)
    for row in rows:
        assert builder.append(row)
    return builder.build()


def test_checksums_of_the_package_in_another_interpreter() -> None:
    """Which has its own state for each thread."""
    pytest.importorskip("_testcapi")
    code = """
import sys
sys.path[:] = %r
from coordwire._speedups import native
native.use_crc32c_package(True)
for size in (1, 1_000_000):
    print(native.crc32c(bytes(size)))
"""
    script = f"import sys, _testcapi\nassert _testcapi.run_in_subinterp({code!r} % (sys.path,)) == 0"
    command = [sys.executable, "-c", script]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    sums = [package.crc32c(bytes(size)) for size in (1, 1_000_000)]
    assert (result.stdout.split(), result.stderr) == (list(map(str, sums)), "")


@pytest.mark.parametrize("arguments", [(), (b"", 0, 0), ("text",), (b"", "0")])
def test_what_has_no_checksum(arguments: tuple[Any, ...]) -> None:
    with pytest.raises(TypeError):
        NATIVE.crc32c(*arguments)


# --- records that are filled again ------------------------------------------------------------------------


def test_what_is_kept_stays() -> None:
    kept, fields = [], []
    for number, record in enumerate(next(batches(DATA))):
        if number % 3 == 0:
            kept.append(record)
        elif number % 3 == 1:
            fields.append((record.key, record.value, record.headers))
        hash(record.key)
    assert kept == ROWS[::3]
    assert fields == [(row.key, row.value, row.headers) for row in ROWS[1::3]]


def test_hashes_are_of_what_is_there() -> None:
    rows = [Record(key=b"key-%d" % (n % 7), value=b"%d" % (1000 + n)) for n in range(100)]
    counts: dict[Any, int] = {}
    for record in next(batches(encode_batch(rows))):
        hash(record.value)
        counts[record.key] = counts.get(record.key, 0) + 1
        assert hash(record.value) == hash(bytes(bytearray(record.value or b"")))
    assert counts == {b"key-%d" % n: 15 if n < 2 else 14 for n in range(7)}


def test_a_used_record_that_held_the_iterator() -> None:
    run = codec.read(DATA[61:], len(ROWS), 0, 1000, None)
    deep: list[Record] = []

    class Nested:
        def __del__(self) -> None:
            deep.append(next(run))

    for _ in range(20):
        record = next(run)
        record.key = Nested()  # type: ignore[assignment]
    del record
    gc.collect()
    assert len(deep) >= 18
    assert {each.offset for each in deep} < set(range(len(ROWS)))


def test_headers_of_bytes_that_change() -> None:
    rows = [Record(headers=(("h", b"%d" % (n % 2)),)) for n in range(6)]
    buffer = bytearray(encode_batch(rows))
    results = []
    for record in next(batches(buffer)):
        results.append(record.headers)
        buffer[-1:] = b"7"
    assert results[:5] == [row.headers for row in rows[:5]]
    assert results[5] == (("h", b"7"),)


@pytest.mark.parametrize("size", [1, 100, 200])
def test_headers_are_compared_with_what_was_read(size: int) -> None:
    rows = [Record(headers=((name, bytes(size)),)) for name in ("aa", "bb", "bb", "aa")]
    buffer = bytearray(encode_batch(rows))
    results = []
    for record in next(batches(memoryview(buffer).toreadonly())):
        results.append(record.headers)
        if len(results) == 1:
            buffer[:] = buffer.replace(b"aa", b"bb", 1)
    assert results == [row.headers for row in rows]


def test_equal_headers_are_one_object() -> None:
    data = encode_batch([Record(headers=(("h", b"1"),))] * 3)
    for source in (data, memoryview(data), bytearray(data), memoryview(bytearray(data)).toreadonly()):
        one, two, three = next(batches(source))
        assert one.headers is two.headers is three.headers


def test_the_buffer_is_let_go() -> None:
    buffer = bytearray(DATA)
    run = iter(next(batches(buffer)))
    next(run)
    with pytest.raises(BufferError):
        buffer.append(0)
    del run
    gc.collect()
    buffer.append(0)


# --- what it is given -------------------------------------------------------------------------------------


@dataclass
class Unslotted:
    offset: int
    timestamp: int
    key: bytes
    value: bytes
    headers: list[Header]


class Other:
    __slots__ = ("key", "offset", "timestamp", "value")


@pytest.mark.parametrize("kind", [int, Unslotted, Other, type("Sub", (Record,), {"__slots__": ()})])
def test_classes_that_are_no_record(kind: Any) -> None:
    with pytest.raises((TypeError, AttributeError)):
        NATIVE.Codec(kind)


def test_wrong_arguments() -> None:
    assert backend.columns is not None
    any_codec: Any = codec
    body: Any = codec.body(None, None)
    columns: Any = backend.columns(127, 100, False, False)
    calls: list[tuple[Any, tuple[Any, ...]]] = [
        (any_codec.read, (b"",)),
        (any_codec.read, (b"", "1", 0, 0, None)),
        (any_codec.read, ("", 1, 0, 0, None)),
        (any_codec.know, (1,)),
        (any_codec.know, (Unslotted,)),
        (any_codec.know, (Record,)),
        (any_codec.records, (b"", False)),
        (any_codec.records, ()),
        (any_codec.walk, (b"",)),
        (any_codec.walk, (list, b"")),
        (any_codec.walk, (Batches, bytearray())),
        (any_codec.encode, (ROWS,)),
        (any_codec.body, (1,)),
        (any_codec.body, ("1", None)),
        (body.add, ([], 0)),
        (body.add, ((), "0")),
        (body.append, (1,)),
        (body.batch, (b"", b"", None)),
        (body.batch, (bytes(17), bytes(40), "")),
        (NATIVE.contains, (b"",)),
        (NATIVE.contains, (b"", "")),
        (NATIVE.contains, ("", b"")),
        (columns.run, (b"", -1, None, 0)),
        (columns.run, (b"", 0, None, -1)),
        (columns.run, ("", 0, None, 0)),
        (columns.run, (b"", 0, "", 0)),
        (columns.run, (b"",)),
        (NATIVE.Run, ()),
        (NATIVE.Body, ()),
        (NATIVE.Memory, ()),
    ]
    for call, arguments in calls:
        with pytest.raises((TypeError, ValueError, RuntimeError, AttributeError)):
            call(*arguments)
    assert columns.run(b"", 5, None, 0) == (False, 5)


def test_records_with_a_time_that_is_given() -> None:
    head, body = DATA[:61], DATA[61:]
    count, base, first = len(ROWS), int.from_bytes(head[:8]), int.from_bytes(head[27:35])
    assert list(codec.read(body, count, base, first, None)) == ROWS
    for stamp in (5, 1 << 40):
        assert list(codec.read(body, count, base, first, stamp)) == [
            replace(r, timestamp=stamp) for r in ROWS
        ]


@pytest.mark.parametrize("cut", range(61, 200))
def test_nothing_behind_the_end_is_looked_at(cut: int) -> None:
    view = GUARD.place(resized(DATA[:cut] + b"\xff" * (cut % 4)))
    with pytest.raises(CorruptBatch):
        list(next(batches(view)))
    with pytest.raises(CorruptBatch):
        list(iter_batches(view))


# --- writing ----------------------------------------------------------------------------------------------


def test_a_builder_goes_on() -> None:
    builder = RecordBatchBuilder(base_offset=0)
    for number, row in enumerate(ROWS, 1):
        assert builder.append(row)
        assert builder.build() == encode_batch(ROWS[:number], base_offset=0)


def test_headers_that_change_are_written_anew() -> None:
    pair: Any = ["h", b"1"]
    headers: Any = (pair,)
    builder = RecordBatchBuilder()
    builder.append(Record(headers=headers))
    pair[1] = b"2"
    builder.append(Record(headers=headers))
    (batch,) = batches(builder.build())
    assert [record.headers for record in batch] == [(("h", b"1"),), (("h", b"2"),)]


@given(st.text("ab", max_size=12), st.text("ab", max_size=3))
def test_contains(data: str, part: str) -> None:
    assert NATIVE.contains(data.encode(), part.encode()) == (part in data)


# --- memory -----------------------------------------------------------------------------------------------


def more(work: Callable[[], Any], turns: int) -> int:
    """Blocks of memory that are more after some turns: the least of a few times, as others keep some too."""
    forget: Callable[[], None] = getattr(sys, "_clear_internal_caches", sys._clear_type_cache)
    results = []
    gc.freeze()  # what other tests left need not be looked at again and again
    try:
        for _ in range(5):
            gc.collect()
            forget()
            before = sys.getallocatedblocks()
            for _ in range(turns):
                with suppress(CorruptBatch):
                    work()
            gc.collect()
            forget()
            results.append(sys.getallocatedblocks() - before)
    finally:  # a skip comes here too
        gc.unfreeze()
    return min(results)


BAD = resized(DATA[:-3])


@pytest.mark.parametrize(
    "work",
    [
        lambda: list(next(batches(DATA))),
        lambda: list(next(batches(BAD))),
        lambda: encode_batch(ROWS),
        lambda: codec.body(None, None).add((ROWS[0], None), -1),  # type: ignore[arg-type]
        lambda: list(iter_batches(DATA, columns=[*RECORD_COLUMNS, *BATCH_COLUMNS], max_bytes=2000)),
        lambda: list(iter_batches(BAD)),
    ],
)
def test_nothing_leaks(work: Callable[[], Any]) -> None:
    assert more(work, 30) < 20


def test_memory_that_runs_out() -> None:
    testcapi = pytest.importorskip("_testcapi")
    (batch,) = batches(DATA)
    rows = tuple(ROWS)
    failed = 0
    for start in range(0, 600, 3):
        run = codec.read(batch.raw[61:], 200, 0, 1000, None)
        body = codec.body(None, None)
        result: list[Any] = [None] * 400
        del result[200:]  # which leaves room, so that keeping a record takes no memory
        try:
            testcapi.set_nomemory(start, start + 1)
            result.extend(run)  # by C: a line of Python that is traced may lack memory itself
            body.add(rows, -1)
        except MemoryError:
            failed += 1
        finally:
            testcapi.remove_mem_hooks()
        result.extend(run)
        assert [record.offset for record in result[200:]] == list(range(200))
        assert body.add(rows, -1)
    assert failed > 50
