"""Sound batches of any shape: no records to 100,000, values of no bytes to 1 MB, headers, nulls, every codec.

Strategy: records repeat a few sizes, so that what a kernel makes of 100,000 of them is known without reading
the bytes; batches are kept, as making one takes longer than reading it. Rule: at most `LARGEST` bytes and
`ROWS` records; the large ones are the fewer, as each takes as long as hundreds of others.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import cycle
from typing import Any, NamedTuple

from hypothesis import strategies as st

from coordwire.records import Record, encode_batch
from coordwire.records.compression import CODECS, Codec
from fuzz._columns import EVERYTHING

LARGEST = 4 << 20
ROWS = 100_000
COUNTS = (*(0, 1, 7, 100, 300, 1_000, 2_000, 4_000) * 6, 20_000, ROWS)
SIZES = (0, 1, 12, 13, 64, 300, 8_192, 1 << 16, 1 << 20)
STAMP = 1_700_000_000_000

Sizes = tuple[int | None, ...]


class Shape(NamedTuple):
    """So many batches of so many records. keys, values: their sizes, over and over, None for null; headers:
    how many the records have, over and over."""

    batches: int = 1
    rows: int = 0
    keys: Sizes = (None,)
    values: Sizes = (0,)
    headers: tuple[int, ...] = (0,)
    codec: Codec = "none"

    def cycle(self) -> list[Record]:
        """The records after which their keys, values and headers are again those of the first."""
        return [
            Record(
                key=_filled(self.keys, at), value=_filled(self.values, at), headers=_headers(self.headers, at)
            )
            for at in range(len(self.keys) * len(self.values) * len(self.headers))
        ]

    def few(self) -> Shape:
        """With fewer records."""
        return self._replace(rows=min(self.rows, 400), batches=min(self.batches, 2))

    def batch(self, number: int) -> bytes:
        """The batch of this number, from 0 on."""
        return _batch(self._replace(batches=1), number * self.rows)

    def columns(self, wanted: int, positions: list[int]) -> list[list[Any]]:
        """What `fuzz._columns.Table.columns` gives of all of them. positions: where the batches begin."""
        each = range(self.rows)
        records = self.cycle()
        stamps = [STAMP + number for number in each] * self.batches
        results = [
            list(range(self.rows * self.batches)),
            [stamp * 1000 for stamp in stamps],
            stamps,
            [position for position in positions for _ in each],
            *(self._repeated([part(record) for record in records]) for part in (_key, _value, _pairs)),
        ]
        return [column for bit, column in enumerate(results) if wanted >> bit & 1]

    def _repeated(self, parts: list[Any]) -> list[Any]:
        return (parts * (self.rows // len(parts) + 1))[: self.rows] * self.batches


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


def _headers(counts: tuple[int, ...], number: int) -> tuple[tuple[str, bytes | None], ...]:
    return tuple(("n" * at, None if at % 2 else b"v" * at) for at in range(counts[number % len(counts)]))


@lru_cache(16)
def _batch(shape: Shape, base: int) -> bytes:
    parts = cycle(shape.cycle())
    records = [
        Record(-1, STAMP + number, part.key, part.value, part.headers)
        for number, part in zip(range(shape.rows), parts, strict=False)
    ]
    return encode_batch(records, base_offset=base, codec=shape.codec)


def _bounded(shape: Shape) -> Shape:
    """With as many records and batches as `LARGEST` holds, one at least."""
    sizes = [
        sum(size or 0 for size in each) / len(each) for each in (shape.keys, shape.values, shape.headers)
    ]
    size = 8 + sizes[0] + sizes[1] + sum(sizes[2:]) * sum(sizes[2:])
    rows = min(shape.rows, max(1, int(LARGEST / size)))
    batches = min(shape.batches, int(LARGEST / size / max(1, rows)), ROWS // max(1, rows))
    return shape._replace(rows=rows, batches=max(1, batches))


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
SOUND = SHAPES.map(lambda shape: b"".join(shape.few().batch(number) for number in range(shape.few().batches)))
"""The bytes of some hundred records at most, for those who read them in Python."""
