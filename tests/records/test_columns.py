"""The two ways into Arrow's columns, swift and careful: where they meet, and where memory ends."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordwire.records import Record, encode_batch, native
from coordwire.records.arrow import iter_batches
from fuzz._guard import Guard
from fuzz.records_native import python, spread_from

if native.columns is None:
    pytest.skip("no native extension", allow_module_level=True)

GUARD = Guard()
SIZES = (0, 1, 8, 11, 12, 13, 15, 16, 17, 63, 64, 65, 255, 256, 257, 300, 8191, 8192)
STAMPS = (-2, -1, 0, 1 << 20, 1_700_000_000_000, (1 << 63) // 1000, (1 << 63) - 1)


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
        wanted = list(iter_batches(data, **options))
    assert [table.num_rows for table in tables] == [table.num_rows for table in wanted]
    found = pa.Table.from_batches(tables)
    found.validate(full=True)
    assert found.equals(pa.Table.from_batches(wanted))
    return found


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
    """Behind the last record there is no memory."""
    for size in range(140):
        records = rows(cycle([3, 20]), 40) + rows(cycle([size % 20, size]), 2)
        assert same(GUARD.place(encode_batch(records)), view=view).num_rows == 42
