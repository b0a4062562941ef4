"""Batches by their headers alone: the places that reading comes to, and verdicts where no header follows."""

from __future__ import annotations

import random

import pytest

from coordwire.errors import UnreadableRange
from coordwire.records import Record, RecordBatch, batches, encode_batch


def sample(rng: random.Random) -> bytes:
    """Batches with records of random values; one value holds a batch."""
    data, offset = b"", 0
    for number in range(20):
        values = [rng.randbytes(rng.randrange(200)) for _ in range(rng.randrange(1, 5))]
        if number == 10:
            values[0] = encode_batch([Record(value=b"inner")] * 3, base_offset=1000)
        data += encode_batch([Record(value=value) for value in values], base_offset=offset)
        offset += len(values)
    return data


def shown(item: RecordBatch | UnreadableRange) -> tuple[int, int, bool]:
    bad = isinstance(item, UnreadableRange)
    return item.position, item.length if isinstance(item, UnreadableRange) else item.size, bad


@pytest.mark.parametrize("seed", range(40))
def test_places_are_those_of_reading(seed: int) -> None:
    rng = random.Random(seed)
    data = bytearray(sample(rng))
    for _ in range(seed % 4):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    del data[len(data) - rng.randrange(100) :]
    read = [shown(item) for item in batches(data, on_error="report", check_records=False)]
    heads = [shown(item) for item in batches(data, on_error="report", check_records=False).heads(len(data))]
    # A batch with a wrong checksum is one of them, unless no header follows it.
    assert [head[:2] for head in heads] == [one[:2] for one in read]
    assert {head[0] for head in heads if head[2]} <= {one[0] for one in read if one[2]}
    for stop in (1, len(data) // 2, len(data)):
        walk = batches(data, on_error="report", check_records=False)
        some = [shown(item) for item in walk.heads(stop)]
        assert some == [head for head in heads if head[0] < stop]
        assert some + [shown(item) for item in walk.heads(len(data))] == heads


def test_one_is_read_after_all() -> None:
    data = bytearray(sample(random.Random(7)))
    data[70] ^= 1  # in the body of the first
    walk = batches(data, on_error="report", check_records=False)
    heads = walk.heads(len(data))
    first = next(heads)
    assert isinstance(first, RecordBatch)
    walk.position = first.position
    bad = next(walk)
    assert isinstance(bad, UnreadableRange)
    assert (bad.position, bad.length) == (first.position, first.size)
    assert next(heads).position == first.size
    assert batches(data, on_error="report").head() is not None
    assert batches(data[:100], on_error="report").head() is None
    assert batches(b"\xff" * 100, on_error="report").head() is None
