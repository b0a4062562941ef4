"""The native half of the records and the Python one say the same of any bytes and any records: the same
records before the same refusal, the same rows of Arrow's columns, the same bytes written; and the native half
looks at no byte after those given to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

import crc32c as package
from hypothesis import given
from hypothesis import strategies as st

from coordwire import limits
from coordwire.errors import CoordwireError, DecodeError
from coordwire.records import Record, RecordBatchBuilder, backend, batches, encode_batch
from coordwire.records.arrow import BATCH_COLUMNS, RECORD_COLUMNS, iter_batches, native
from fuzz._guard import Guard
from fuzz._run import compares_native, main
from fuzz._shapes import SOUND
from fuzz.records import BODIES, INPUTS, ROWS, mutated

GUARD = Guard()
ARROW = find_spec("pyarrow") is not None
"""Elsewhere fuzz.columns_native still looks at the kernel."""

COLUMNS = st.lists(st.sampled_from([*RECORD_COLUMNS, *BATCH_COLUMNS]), min_size=1, max_size=6, unique=True)
NUMBERS = st.one_of(
    st.just(-1), st.integers(-3, 300), st.integers(-(1 << 64), 1 << 64), st.booleans(), st.floats(), st.none()
)
BYTES = st.one_of(
    st.none(),
    st.binary(max_size=40),
    st.integers(0, 300).map(bytes),
    st.builds(bytearray),
    st.text(max_size=2),
)
NAMES = st.one_of(st.text(st.characters(), max_size=4), st.sampled_from(["h", "\udcff", "\ud800"]), BYTES)
PAIRS = st.one_of(st.tuples(NAMES, BYTES), st.lists(st.one_of(NAMES, BYTES), max_size=3))
HEADERS = st.one_of(
    st.just(()), st.none(), st.lists(PAIRS, max_size=3), st.lists(PAIRS, max_size=3).map(tuple)
)
RECORDS = st.one_of(
    st.builds(Record, st.just(-1), st.integers(0, 1 << 45), st.binary(max_size=9), st.binary(max_size=200)),
    st.builds(Record, NUMBERS, NUMBERS, BYTES, BYTES, HEADERS),
    st.none(),
)


@contextmanager
def python() -> Iterator[None]:
    """Python's half for the block."""
    kept = backend.codec, backend.columns, backend.crc32c
    backend.codec = backend.columns = None
    backend.crc32c = package.crc32c
    try:
        yield
    finally:
        backend.codec, backend.columns, backend.crc32c = kept


@contextmanager
def spread_from(size: int) -> Iterator[None]:
    """Spread over threads what has so many bytes, for the block."""
    kept = native.MANY, native.SPREAD
    native.MANY, native.SPREAD = size, max(2, native.SPREAD)
    try:
        yield
    finally:
        native.MANY, native.SPREAD = kept


def read(data: bytes | memoryview) -> list[Any]:
    """The records of each batch and the refusals in between."""
    results: list[Any] = []
    try:
        for batch in batches(data):
            try:
                for record in batch:
                    results.append(
                        (record.offset, record.timestamp, record.key, record.value, record.headers)
                    )
            except DecodeError as error:
                results.append(str(error))
    except DecodeError as error:
        results.append(str(error))
    return results


def rows(data: bytes | memoryview, **options: Any) -> tuple[list[Any], str | None, list[Any]]:
    """The rows, the refusal, and what was passed over."""
    results: list[Any] = []
    skipped: list[Any] = []
    try:
        for table in iter_batches(data, skipped=skipped, **options):
            table.validate(full=True)
            results += numbered(table).to_pylist()
    except DecodeError as error:
        return results, str(error), skipped
    return results, None, skipped


def numbered(table: Any) -> Any:
    """A table with its timestamps as numbers; Python's own datetimes end with the year 9999."""
    at = table.schema.get_field_index("timestamp")
    return table if at < 0 else table.set_column(at, "timestamp", table.column(at).cast("int64"))


def written(records: list[Any], base: int | None, one_by_one: bool) -> Any:
    """The bytes, or the refusal."""
    try:
        if not one_by_one:
            return encode_batch(records, base_offset=base)
        builder = RecordBatchBuilder(base_offset=base, limit=200)
        return [builder.append(record) for record in records], builder.size, builder.build()
    except CoordwireError as error:
        return type(error), str(error)


def same(call: Callable[[], Any]) -> Any:
    """What both halves say."""
    result = call()
    with python():
        assert call() == result
    return result


def guarded(data: bytes) -> None:
    """The native half alone, on bytes after which memory ends."""
    view = GUARD.place(data)
    assert backend.crc32c(view) == package.crc32c(data)
    if backend.codec is not None:
        for record in backend.codec.read(view, 3, 0, 0, None):
            assert isinstance(record.headers, tuple)
        backend.codec.read(view, 3, 0, 0, None).walk()
    if backend.columns is not None:
        for body in (None, bytes(data)):
            columns = backend.columns(127, 1 << 20, False, True)
            columns.run(view, 0, body, 0)
            columns.take()
    read(view)


@compares_native
@given(
    st.integers(0, 15).flatmap(lambda number: SOUND if number == 15 else INPUTS),
    mutated(BODIES),
    st.sampled_from([1 << 20, 100]),
    st.sampled_from([native.MANY, 1]),
    st.fixed_dictionaries(
        {
            "columns": st.one_of(st.none(), COLUMNS),
            "max_bytes": st.sampled_from([1, 100, 300, 10_000, 1 << 20, 1 << 30]),
            "view": st.booleans(),
        }
    ),
    st.tuples(st.lists(RECORDS, max_size=5), st.one_of(st.none(), st.integers(-5, 1 << 62)), st.booleans()),
)
def fuzz(
    data: bytes,
    body: bytes,
    most: int,
    many: int,
    options: dict[str, Any],
    writing: tuple[list[Any], int | None, bool],
) -> None:
    with limits(decompressed=most):
        same(lambda: read(data))
        if ARROW:
            with spread_from(many):
                same(lambda: rows(data, on_error="skip", **options))
                same(lambda: rows(data, **options))
    guarded(data)
    guarded(body)
    records, base, one_by_one = writing
    same(lambda: written(records, base, one_by_one))
    same(lambda: written([*ROWS, *records], base, one_by_one))


if __name__ == "__main__":
    main(fuzz)
