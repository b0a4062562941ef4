"""The native half's columns: the swift and the careful way into them and where they meet, where memory ends,
what tables hold, and what threads do."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from itertools import cycle
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordwire.errors import CorruptBatch
from coordwire.records import Record, backend, encode_batch, readahead
from coordwire.records.arrow import iter_batches, native
from fuzz._guard import Guard
from fuzz.records_native import python, spread_from

from .data import CODECS, resized

if backend.columns is None:
    pytest.skip("no native extension", allow_module_level=True)

GUARD = Guard()
SIZES = (0, 1, 8, 11, 12, 13, 15, 16, 17, 63, 64, 65, 255, 256, 257, 300, 8191, 8192)
STAMPS = (-2, -1, 0, 1 << 20, 1_700_000_000_000, (1 << 63) // 1000, (1 << 63) - 1)


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
    """Both halves are compared here."""
    return "c"


def rows(sizes: Iterator[int | None], count: int, stamp: int = 1_700_000_000_000) -> list[Record]:
    def made(size: int | None) -> bytes | None:
        return None if size is None else bytes(255 - n % 256 for n in range(size))

    return [Record(-1, stamp, made(next(sizes)), made(next(sizes))) for _ in range(count)]


def same(data: Any, **options: Any) -> pa.Table:
    """The whole of the native tables, made on one thread, seen to be what Python makes."""
    with spread_from(len(data) + 1):
        tables = list(iter_batches(data, **options))
    with python():
        batches = list(iter_batches(data, **options))
    assert [table.num_rows for table in tables] == [table.num_rows for table in batches]
    result = pa.Table.from_batches(tables)
    result.validate(full=True)
    assert result.equals(pa.Table.from_batches(batches))
    return result


@pytest.mark.parametrize("view", [False, True])
@pytest.mark.parametrize("most", [2000, 100_000, 4 << 20])
def test_sizes_of_every_kind(view: bool, most: int) -> None:
    sizes = cycle([*SIZES, None, *SIZES, *[20] * 40, None])
    data = b"".join(encode_batch(rows(sizes, 300), base_offset=n * 300) for n in range(3))
    assert same(data, view=view, max_bytes=most).num_rows == 900


@pytest.mark.parametrize("first", ["keys", "values", "nulls"])
def test_what_a_block_was_not_made_for(first: str) -> None:
    """One column has had little when the other's turn comes: megabytes of it."""
    kinds = {"keys": (900, 0), "values": (0, 900), "nulls": (None, None)}
    parts = [*([first] * 30), *sorted(kinds, reverse=True)] * 2
    batches = [encode_batch(rows(cycle(kinds[kind]), 100)) for kind in parts]
    batches.append(encode_batch([row for kind in kinds.values() for row in rows(cycle(kind), 3000)]))
    assert same(b"".join(batches), max_bytes=3 << 20).num_rows == 200 * 33 + 9000


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.sampled_from(STAMPS), st.integers(0, 40), st.booleans()), min_size=1, max_size=6),
    st.booleans(),
    st.sampled_from(
        [["timestamp"], ["timestamp_ms", "offset"], ["base_offset", "key"], ["value", "headers"]]
    ),
)
def test_records_that_differ(runs: list[tuple[int, int, bool]], view: bool, columns: list[str]) -> None:
    batches = []
    for stamp, count, headers in runs:
        records = rows(cycle([5, 30, None]), count, stamp)
        for number, row in enumerate(records):
            row.headers = [("h", b"1"), ("", None)] if headers and number % 3 else []
        batches += [encode_batch(records, base_offset=5)] if records else []
    if batches:
        same(b"".join(batches), view=view, columns=columns, max_bytes=700)


@pytest.mark.parametrize("size", range(17))
def test_short_views_end_in_zeros(size: int) -> None:
    """As the format of Arrow has it: what a view doesn't need of its 12 bytes is zero."""
    data = encode_batch(rows(cycle([size]), 50))
    (table,) = iter_batches(data, view=True)
    for name in ("key", "value"):
        views = table[name].buffers()[1].to_pybytes()
        for at in range(0, len(views), 16):
            assert int.from_bytes(views[at : at + 4], "little") == size
            if size <= 12:
                assert views[at + 4 : at + 16] == bytes(255 - n for n in range(size)) + bytes(12 - size)


@pytest.mark.parametrize("view", [False, True])
def test_up_to_the_last_byte(view: bool) -> None:
    """After the last record there is no memory."""
    for size in range(140):
        records = rows(cycle([3, 20]), 40) + rows(cycle([size % 20, size]), 2)
        assert same(GUARD.place(encode_batch(records)), view=view).num_rows == 42


# --- what tables hold ---


@pytest.mark.parametrize("name", CODECS)
@pytest.mark.parametrize("view", [False, True])
def test_tables_are_theirs(name: Any, view: bool) -> None:
    """What a table holds isn't written over by those after it."""
    data = b"".join(encode_batch(FREE, codec=name, base_offset=1000 * n) for n in range(30))
    tables = list(iter_batches(data, max_bytes=5000, view=view))
    assert len(tables) > 30
    table = pa.Table.from_batches(tables)
    table.validate(full=True)
    assert table["offset"].to_pylist() == [1000 * n + row.offset for n in range(30) for row in ROWS]
    assert table["value"].to_pylist() == [row.value for row in ROWS] * 30
    assert table["key"].type == (pa.binary_view() if view else pa.binary())
    first = table.slice(0, 200).to_pylist()
    for number, _ in enumerate(iter_batches(data, max_bytes=5000, view=view)):
        assert number or table.slice(0, 200).to_pylist() == first


def test_views_point_into_the_input() -> None:
    data = encode_batch([Record(value=b"x" * 100)])
    (table,) = iter_batches(data, columns=["value"], view=True)
    buffers = table["value"].buffers()
    assert buffers[2].address == pa.py_buffer(data).address
    assert [buffer.size for buffer in buffers[:2] if buffer] == [16]


def test_nothing_is_built_that_is_not_asked_for() -> None:
    (table,) = iter_batches(DATA, columns=["offset"])
    assert table.nbytes == 200 * 8
    (table,) = iter_batches(DATA, columns=["codec"])
    assert table.to_pydict() == {"codec": ["none"] * 200}


@pytest.mark.parametrize("worth", [0, 1])
def test_on_threads_at_once(worth: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readahead, "WORTH", worth)
    data = b"".join(encode_batch(FREE, codec="zstd", base_offset=1000 * n) for n in range(300))
    counts: list[int] = []

    def count() -> None:
        counts.append(sum(table.num_rows for table in iter_batches(data, max_bytes=50_000)))

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counts == [60_000] * 4


@pytest.mark.parametrize("worth", [0, 1])
def test_bad_ones_among_many_compressed(worth: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readahead, "WORTH", worth)
    parts = [encode_batch(FREE, codec="lz4", base_offset=1000 * n) for n in range(400)]
    for number in (3, 200, 399):
        parts[number] = resized(parts[number][:-30])
    skipped: list[Any] = []
    tables = iter_batches(b"".join(parts), columns=["base_offset"], on_error="skip", skipped=skipped)
    result = {row["base_offset"] for table in tables for row in table.to_pylist()}
    assert result == {1000 * n for n in range(400) if n not in (3, 200, 399)}
    assert len(skipped) == 3
    with pytest.raises(CorruptBatch, match="not valid lz4"):
        list(iter_batches(b"".join(parts)))


@pytest.mark.parametrize("view", [False, True])
def test_spread_over_threads(view: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "SPREAD", 2)
    parts = [encode_batch(FREE, base_offset=1000 * n) for n in range(1200)]
    data = b"".join(parts)
    assert len(data) > 2 * native.MANY
    expected = [1000 * n + row.offset for n in range(1200) for row in ROWS]
    options: dict[str, Any] = {"columns": ["offset", "value"], "view": view}
    for most in (1 << 16, 1 << 20, 8 << 20):
        whole = pa.Table.from_batches(iter_batches(data, max_bytes=most, **options))
        whole.validate(full=True)
        assert whole["offset"].to_pylist() == expected
        assert whole["value"].slice(0, 600).to_pylist() == [row.value for row in ROWS] * 3
    parts[700] = resized(parts[700][:-3])
    skipped: list[Any] = []
    batches = iter_batches(b"".join(parts), on_error="skip", skipped=skipped, max_bytes=1 << 20, **options)
    assert sum(table.num_rows for table in batches) == 1199 * 200
    assert [unreadable.position for unreadable in skipped] == [sum(map(len, parts[:700]))]
    seen: list[int] = []
    with pytest.raises(CorruptBatch):
        seen.extend(table.num_rows for table in iter_batches(b"".join(parts), max_bytes=1 << 20, **options))
    assert sum(seen) <= 701 * 200
    tables = iter_batches(data, max_bytes=1 << 16, **options)
    next(tables)
    tables.close()  # type: ignore[attr-defined]


@pytest.mark.parametrize("many", [False, True])
def test_a_batch_in_a_value_at_the_end(many: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch that is cut short is judged by the last one before it, by any reader: see
    test_reading.py."""
    if many:
        monkeypatch.setattr(native, "SPREAD", 2)
        monkeypatch.setattr(native, "MANY", 4000)
    parts = [encode_batch(FREE[:20], base_offset=100 + 20 * n) for n in range(30)]
    inner = encode_batch(FREE[:20], base_offset=50)
    batch = encode_batch([Record(value=inner + b"more")], base_offset=1000)
    data = b"".join(parts) + batch[: batch.index(inner) + len(inner)]
    assert len(b"".join(parts)) > 4000
    skipped: list[Any] = []
    tables = list(iter_batches(data, max_bytes=2000, on_error="skip", skipped=skipped))
    assert sum(table.num_rows for table in tables) == 30 * 20
    assert skipped == []


def test_threads_begin_at_the_first_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "SPREAD", 2)
    monkeypatch.setattr(native, "MANY", 10_000)
    begun: list[int] = []
    tables = native._Spread.tables

    def noted(self: native._Spread, begin: int) -> Any:
        begun.append(begin)
        return tables(self, begin)

    monkeypatch.setattr(native._Spread, "tables", noted)
    part = encode_batch(FREE[:20])
    stretch = part * (20_000 // len(part))
    batches = iter_batches(stretch, columns=["offset"])
    assert sum(table.num_rows for table in batches) == 20 * (20_000 // len(part))
    assert begun == ([0] if backend.columns is not None else [])
