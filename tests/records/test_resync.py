"""The search for batches: what it takes for one, and what a batch ahead says of one that seems cut short."""

from __future__ import annotations

import pytest
from crc32c import crc32c

from coordwire.records import Record, batches, encode_batch
from coordwire.records.compression import Codec
from coordwire.records.resync import Search, ThoroughSearch


@pytest.mark.parametrize("tail", [0, 1, 70])
def test_where_zeros_begin(tail: int) -> None:
    search = Search(memoryview(b"x\0y" + bytes(tail)))
    assert [search.is_blank(pos) for pos in range(4)] == [False, False, False, True]


@pytest.mark.parametrize("magic", [0, 1, 2])
@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
@pytest.mark.parametrize("key", [None, b"", b"k"])
@pytest.mark.parametrize("value", [None, b"", b"v"])
def test_every_batch_is_found(magic: int, codec: Codec, key: bytes | None, value: bytes | None) -> None:
    if codec == "zstd" and magic < 2:
        return
    data = encode_batch([Record(3, -1, key, value)], magic=magic, codec=codec, base_offset=3)
    assert [batch.last_offset for batch in batches(b"?" * 50 + data, on_error="skip")] == [3]


def test_an_empty_batch_is_found() -> None:
    data = encode_batch([], base_offset=3)
    assert [batch.base_offset for batch in batches(b"?" * 50 + data, on_error="skip")] == [3]


@pytest.mark.parametrize(("later", "decides"), [(4, False), (5, False), (6, True)])
def test_only_a_later_batch_decides(later: int, decides: bool) -> None:
    """Of one that seems cut short after offset 5, and says 9 itself."""
    before, after = (encode_batch([Record(n)], base_offset=n) for n in (5, later))
    cut = (9).to_bytes(8) + (1 << 20).to_bytes(4) + b"\0\0\0\0\2" + b"?" * 30
    reader = batches(before + cut + after, on_error="report")
    assert len(list(reader)) == (3 if decides else 1)
    assert len(reader.remainder) == (0 if decides else len(cut) + len(after))


@pytest.mark.parametrize(("later", "decides"), [(2, False), (4, False), (5, False), (6, True)])
def test_only_a_later_batch_decides_of_those_that_were_passed(later: int, decides: bool) -> None:
    """They are compared with the last sound one, though none of them was read."""
    parts = [encode_batch([Record(n)], base_offset=n) for n in range(6)]
    cut = (9).to_bytes(8) + (1 << 20).to_bytes(4) + b"\0\0\0\0\2" + b"?" * 60
    remaining = cut + encode_batch([Record(later)], base_offset=later)
    reader = batches(b"".join(parts) + remaining, on_error="report")
    assert reader.advance(sum(map(len, parts))) == sum(map(len, parts))
    assert len(list(reader)) == (2 if decides else 0)
    assert len(reader.remainder) == (0 if decides else len(remaining))


def test_claims_that_touch_and_claims_inside_claims() -> None:
    inner = encode_batch([Record(1)], base_offset=1)
    outer = encode_batch([Record(1, value=inner)], base_offset=1)[:-1] + b"!"
    search = ThoroughSearch(memoryview(outer * 2 + inner))
    assert search.after(0, len(outer)) == outer.index(inner)
    assert search.claimed == len(outer)
    assert search.after(1, len(outer) * 2 - 1) == outer.index(inner)
    assert search.claimed == len(outer)
    assert search.after(len(outer), len(outer)) == len(outer) + outer.index(inner)
    assert search.claimed == 2 * len(outer)


@pytest.mark.parametrize("after", [b"", b"?" * 100, bytes(100)])
def test_a_right_checksum_vouches_for_the_length(after: bytes) -> None:
    """Where the records can't be read, what is inside of them isn't looked for, whatever follows."""
    inner = encode_batch([Record(4)], base_offset=4)
    outer = bytearray(encode_batch([Record(3, value=inner)], base_offset=3))
    outer[60] = 9  # records, of which there is one
    outer[17:21] = crc32c(outer[21:]).to_bytes(4)
    reader = batches(bytes(outer) + after + encode_batch([Record(5)], base_offset=5), on_error="skip")
    assert [batch.base_offset for batch in reader] == [5]
    assert reader.skipped[0][:2] == (0, len(outer))


def test_moving_on_ends_at_a_batch_that_is_cut() -> None:
    part = encode_batch([Record(value=b"v")])
    data = part * 3 + part[:-1]
    reader = batches(data)
    assert reader.advance(len(data)) == 3 * len(part)
    assert next(reader, None) is None
