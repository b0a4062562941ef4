"""Sound batches of any shape: no records to 100,000, values of no bytes to 1 MB, headers, nulls, every codec.

Strategy: records repeat a few sizes, so that what a kernel makes of 100,000 of them is known without reading
the bytes; batches are kept, as making one takes longer than reading it. Rule: at most `LARGEST` bytes and
`ROWS` records; the large ones are the fewer, as each takes as long as hundreds of others.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

from hypothesis import strategies as st

from coordwire.records import Record, encode_batch
from coordwire.records.compression import CODECS, Codec
from fuzz._columns import EVERYTHING

LARGEST = 4 << 20
ROWS = 100_000
COUNTS = (*(0, 1, 7, 100, 300, 1_000, 2_000, 4_000) * 3, 20_000, ROWS)
SIZES = (0, 1, 12, 13, 64, 300, 8_192, 1 << 16, 1 << 20)
STAMP = 1_700_000_000_000

Sizes = tuple[int | None, ...]


class Shape(NamedTuple):
    """So many batches of so many records. keys, values: their sizes, over and over, None for null; headers:
    how many the records have, over and over."""

    batches: int = 1
    count: int = 0
    keys: Sizes = (None,)
    values: Sizes = (0,)
    headers: tuple[int, ...] = (0,)
    codec: Codec = "none"

    def record(self, number: int) -> Record:
        """The record of this number in its batch; without an offset."""
        key, value = (_filled(sizes, number) for sizes in (self.keys, self.values))
        return Record(-1, STAMP + number, key, value, _headers(self.headers[number % len(self.headers)]))

    def batch(self, number: int) -> bytes:
        """The batch of this number, from 0 on."""
        return _batch(self._replace(batches=1), number * self.count)

    def columns(self, wanted: int, positions: list[int]) -> list[list[Any]]:
        """What `fuzz._columns.Table.columns` gives of all of them. positions: where the batches begin."""
        each = range(self.count)
        records = [self.record(number) for number in range(min(self.count, self._cycle))]
        stamps = [STAMP + number for number in each] * self.batches
        found = [
            list(range(self.count * self.batches)),
            [stamp * 1000 for stamp in stamps],
            stamps,
            [position for position in positions for _ in each],
            *(self._repeated([part(record) for record in records]) for part in (_key, _value, _pairs)),
        ]
        return [column for bit, column in enumerate(found) if wanted >> bit & 1]

    @property
    def _cycle(self) -> int:
        """After so many records they repeat."""
        return len(self.keys) * len(self.values) * len(self.headers)

    def _repeated(self, parts: list[Any]) -> list[Any]:
        return (parts * (self.count // self._cycle + 1))[: self.count] * self.batches


def _key(record: Record) -> bytes | None:
    return record.key


def _value(record: Record) -> bytes | None:
    return record.value


def _pairs(record: Record) -> list[Any]:
    return list(record.headers)


def _filled(sizes: Sizes, number: int) -> bytes | None:
    at = number % len(sizes)
    size = sizes[at]
    return None if size is None else bytes([65 + at]) * size


def _headers(count: int) -> tuple[tuple[str, bytes | None], ...]:
    return tuple(("n" * at, None if at % 2 else b"v" * at) for at in range(count))


@lru_cache(256)
def _batch(shape: Shape, base: int) -> bytes:
    records = [shape.record(number) for number in range(shape.count)]
    return encode_batch(records, base_offset=base, codec=shape.codec)


def _bounded(shape: Shape) -> Shape:
    """With as many records and batches as `LARGEST` holds, one at least."""
    sizes = [
        sum(size or 0 for size in each) / len(each) for each in (shape.keys, shape.values, shape.headers)
    ]
    size = 8 + sizes[0] + sizes[1] + sum(sizes[2:]) * sum(sizes[2:])
    count = min(shape.count, max(1, int(LARGEST / size)))
    batches = min(shape.batches, int(LARGEST / size / max(1, count)), ROWS // max(1, count))
    return shape._replace(count=count, batches=max(1, batches))


_MIXED = st.lists(st.one_of(st.none(), st.sampled_from(SIZES)), min_size=1, max_size=3).map(tuple)
_SMALL = st.sampled_from([(None,), (0,), (1,), (0, None, 1)])
SHAPES = st.builds(
    Shape,
    st.sampled_from([1, 1, 1, 2, 2, 40]),
    st.sampled_from(COUNTS),
    st.one_of(_SMALL, _MIXED),
    st.one_of(_SMALL, _MIXED),
    st.sampled_from([(0,), (0,), (1,), (0, 3, 0, 0, 1), (0,) * 30 + (40,)]),
    st.sampled_from(["none", *CODECS]),
).map(_bounded)
WANTED = st.one_of(st.just(EVERYTHING), st.integers(1, EVERYTHING))
MOST = st.sampled_from([4 << 20, 1 << 30, 1 << 20, 1 << 16, 4_000])
