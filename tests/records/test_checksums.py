"""`Checksums`: those of any range, as reading the range gives them."""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable

import crc32c
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordwire.records import resync as checksums
from coordwire.records.resync import BLOCK, CRC32, CRC32C, SHORT, ChecksumKind, Checksums

DATA = random.Random(7).randbytes(40 * BLOCK + 77)
PLACES = st.integers(0, len(DATA))
KINDS = pytest.mark.parametrize(("kind", "wanted"), [(CRC32, zlib.crc32), (CRC32C, crc32c.crc32c)])


@pytest.fixture(scope="module", autouse=True)
def fresh(half: str) -> None:
    """The tables are made anew."""
    checksums._tables.cache_clear()
    checksums._columns.cache_clear()


@KINDS
@given(st.lists(st.tuples(PLACES, PLACES), min_size=1, max_size=5), PLACES)
def test_any_range(
    kind: ChecksumKind, wanted: Callable[[bytes], int], ranges: list[tuple[int, int]], first: int
) -> None:
    sums = Checksums(memoryview(DATA), kind, first)
    for pair in ranges:
        start, end = sorted(pair)
        assert sums.of(start, end) == wanted(DATA[start:end])


@KINDS
@pytest.mark.parametrize("first", [0, 1, BLOCK])
def test_at_the_edges_of_blocks(kind: ChecksumKind, wanted: Callable[[bytes], int], first: int) -> None:
    sums = Checksums(memoryview(DATA), kind, first)
    for start in (first, first + 1, first + BLOCK - 1, first + BLOCK, first + BLOCK + 1):
        for size in (0, 1, SHORT - 1, SHORT, SHORT + 1, SHORT + BLOCK, 33 * BLOCK):
            for number in (-1, 0, 1):
                end = max(start + size + number, start)
                assert sums.of(start, end) == wanted(DATA[start:end])


def test_a_range_that_a_page_of_zeros_ends() -> None:
    data = DATA[:100] + bytes(1 << 20)
    assert Checksums(memoryview(data), CRC32C).of(1, len(data)) == crc32c.crc32c(data[1:])


@KINDS
def test_what_is_read(kind: ChecksumKind, wanted: Callable[[bytes], int]) -> None:
    """A short range as it is; of a long one the blocks once, and then at most what begins and ends it."""
    read = 0

    def update(data: memoryview, before: int) -> int:
        nonlocal read
        read += len(data)
        return kind.update(data, before)

    def costs(start: int, end: int) -> int:
        nonlocal read
        read = 0
        assert sums.of(start, end) == wanted(DATA[start:end])
        return read

    sums = Checksums(memoryview(DATA), ChecksumKind(kind.polynomial, update))
    assert costs(BLOCK, BLOCK + SHORT) == SHORT
    assert costs(0, 10 * BLOCK) == 10 * BLOCK
    for start in (0, 1, BLOCK - 1, BLOCK, BLOCK + 1):
        for end in (8 * BLOCK, 9 * BLOCK - 1):
            assert costs(start, end) == -start % BLOCK + end % BLOCK
    assert costs(0, 20 * BLOCK) == 10 * BLOCK
    assert costs(0, 20 * BLOCK) == 0
    sums = Checksums(memoryview(DATA), ChecksumKind(kind.polynomial, update), 5 * BLOCK + 1)
    assert costs(5 * BLOCK + 1, 9 * BLOCK + 3) == 3 * BLOCK + 2 + BLOCK
    assert costs(5 * BLOCK, 9 * BLOCK + 3) == 4 * BLOCK + 3
