"""The Arrow kernel by itself fills its columns with just the records that Python reads, copied and as views,
and stops where Python has to look; and it looks at no byte after those given to it. Without pyarrow, so that
it runs wherever the extension does."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from coordwire.errors import DecodeError
from coordwire.records import Record, backend, batches, encode_batch
from coordwire.records.batch_reader import Batches
from fuzz._columns import EVERYTHING, Row, Table
from fuzz._guard import Guard
from fuzz._run import compares_native, main
from fuzz.records import INPUTS, mutated, sealed
from fuzz.records_native import python

GUARD, INNER_GUARD = Guard(), Guard()
LATEST = ((1 << 63) - 1) // 1000
"""The last millisecond that microseconds can tell."""

PATTERN = bytes(range(256)) * 3
CONTENTS = st.one_of(st.none(), st.integers(0, 700).map(lambda size: PATTERN[:size]))
NAMES = st.sampled_from(["", "h", "name", "é", "\udcff"])
RECORDS = st.lists(
    st.builds(
        Record,
        st.just(-1),
        st.sampled_from([0, -1, 1 << 40, LATEST, LATEST + 1, -LATEST - 1]),
        CONTENTS,
        CONTENTS,
        st.lists(st.tuples(NAMES, CONTENTS), max_size=2).map(tuple),
    ),
    min_size=1,
    max_size=5,
)
WHOLE = st.builds(encode_batch, RECORDS, codec=st.sampled_from(["none", "gzip"]))


@st.composite
def changed(draw: st.DrawFn) -> bytes:
    """A batch with some bytes changed, its length and checksum right."""
    return sealed(draw(mutated([draw(WHOLE)])))


def filled(
    data: bytes, wanted: int, most: int, view: bool, body: bytes | None = None
) -> tuple[list[Row], int]:
    """The rows that the kernel makes of it, memory ending where it does, and where it stopped."""
    assert backend.columns is not None
    columns = backend.columns(wanted, most, view, True)
    source, content = GUARD.place(data), None if body is None else INNER_GUARD.place(body)
    results: list[Row] = []
    full, position = True, 0
    while full:
        full, position = columns.run(source, position, content, 0)  # type: ignore[arg-type]
        viewed = [data if body is None else body] if view else None
        results += Table(*columns.take(), viewed).rows(wanted)
    return results, position


def expected(data: bytes, wanted: int) -> tuple[list[Row], int]:
    """The same rows as Python reads them, and where the first batch begins that isn't the kernel's."""
    results: list[Row] = []
    at = 0
    reader: Batches[Any] = batches(data)
    with python():
        try:
            for batch in reader:
                if batch.magic != 2 or batch.codec != "none":
                    break
                results += [row(record, wanted, at) for record in list(batch)]
                at = reader.position
        except DecodeError:
            pass
    return results, at


def row(record: Record, wanted: int, position: int) -> Row:
    stamp = None if record.timestamp == -1 or abs(record.timestamp) > LATEST else record.timestamp * 1000
    headers = [
        (name.encode("utf-8", "surrogateescape").decode("utf-8", "replace"), value)
        for name, value in record.headers
    ]
    parts = (record.offset, stamp, record.timestamp, position, record.key, record.value, headers)
    return tuple(part for bit, part in enumerate(parts) if wanted >> bit & 1)


def unpacked(data: bytes, wanted: int) -> tuple[bytes, list[Row], int] | None:
    """The records' bytes of a first batch that is compressed, its rows and its end; None if there is none."""
    with python():
        try:
            batch = next(batches(data), None)
            if batch is None or batch.magic != 2 or batch.codec == "none":
                return None
            return bytes(batch.payload()), [row(record, wanted, 0) for record in batch], batch.size
        except DecodeError:
            return None


def check(data: bytes, wanted: int, most: int, view: bool) -> None:
    rows, end = expected(data, wanted)
    assert filled(data, wanted, most, view) == (rows if wanted else [], end)
    if result := unpacked(data, wanted):
        body, rows, end = result
        assert filled(data, wanted, most, view, body) == (rows if wanted else [], end)


@compares_native
@given(
    st.one_of(WHOLE, changed(), INPUTS, st.lists(st.one_of(WHOLE, changed()), max_size=3).map(b"".join)),
    st.one_of(st.just(EVERYTHING), st.integers(0, EVERYTHING)),
    st.sampled_from([1 << 20, 1, 100, 400, 1000]),
    st.booleans(),
)
def fuzz(data: bytes, wanted: int, most: int, view: bool) -> None:
    check(data, wanted, most, view)


if __name__ == "__main__":
    main(fuzz)
