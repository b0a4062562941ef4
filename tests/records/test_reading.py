"""`batches`: what it walks over, where it stops, and how it goes on after what is not a batch."""

from __future__ import annotations

import copy
import gc
import mmap
import pickle
import random
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordwire import limits
from coordwire.errors import CorruptBatch
from coordwire.records import Record, RecordBatch, UnreadableRange, batches, encode_batch
from coordwire.records.compression import Codec

from .data import sealed

ROWS = [Record(timestamp=7, key=b"k%d" % n, value=bytes(n)) for n in range(3)]
PARTS = [encode_batch(ROWS[: 1 + n % 3], base_offset=n * 10) for n in range(12)]
SEGMENT = b"".join(PARTS)
EDGES = [sum(map(len, PARTS[:n])) for n in range(len(PARTS) + 1)]
JUNK = random.Random(5).randbytes(300)


def flipped(data: bytes, at: int, bit: int = 1) -> bytes:
    return data[:at] + bytes([data[at] ^ bit]) + data[at + 1 :]


def offsets(data: bytes) -> tuple[list[int], list[UnreadableRange]]:
    """The base offsets that "skip" finds, and what it passed over."""
    reader = batches(data, on_error="skip")
    base_offsets = [batch.base_offset for batch in reader for _ in [list(batch)]]
    return base_offsets, reader.skipped


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_buffers(kind: type) -> None:
    reader = batches(kind(SEGMENT))
    assert [batch.position for batch in reader] == EDGES[:-1]
    assert bytes(reader.remainder) == b""
    assert reader.position == len(SEGMENT)
    assert not reader.skipped


def test_mmap(tmp_path: Path) -> None:
    path = tmp_path / "segment"
    path.write_bytes(SEGMENT)
    with path.open("rb") as stream:
        mapped = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
    assert [record.offset for batch in batches(mapped) for record in batch][:3] == [0, 10, 11]
    assert offsets(cast(bytes, mapped))[1] == []


def test_nothing_is_copied_before_it_is_iterated() -> None:
    data = bytearray(SEGMENT)
    first = next(batches(data))
    assert isinstance(first, RecordBatch)
    data[:] = flipped(bytes(data), 65)
    assert first.raw[65] == data[65]
    with pytest.raises(CorruptBatch):
        list(first)


@pytest.mark.parametrize(
    ("magic", "codec"), [(0, "none"), (1, "none"), (1, "gzip"), (2, "none"), (2, "gzip")]
)
@pytest.mark.parametrize("viewed", [True, False])
def test_a_batch_that_is_told_another_place(magic: int, codec: Codec, viewed: bool) -> None:
    data = encode_batch([Record(5, -1 if magic == 0 else 7, b"k", b"v")], magic=magic, codec=codec)
    for offset, size in ((len(data), len(data)), (1 << 40, 61), (-1, 0)):
        batch = next(batches(data + bytes(len(data))))
        if viewed:
            assert batch.raw == data
        batch.position, batch.size = offset, size
        assert (batch.position, batch.size) == (offset, size)
        for each in (batch, copy.copy(batch), pickle.loads(pickle.dumps(batch))):
            assert [(record.offset, record.value) for record in each] == [(5, b"v")]
            assert (each.raw, each.position, each.last_offset) == (data, offset, 5)
    batch = next(batches(data[:-1] + b"!"))
    batch.position = 1000
    with pytest.raises(CorruptBatch) as refused:
        list(batch)
    assert refused.value.position >= 1000


@pytest.mark.parametrize("on_error", ["raise", "skip", "report"])
def test_every_cut(on_error: str) -> None:
    data = SEGMENT[: EDGES[3]]
    for cut in range(len(data)):
        reader = batches(data[:cut], on_error=on_error)  # type: ignore[call-overload]
        whole = max(edge for edge in EDGES if edge <= cut)
        assert len(list(reader)) == EDGES.index(whole)
        assert bytes(reader.remainder) == data[whole:cut]
        assert not reader.skipped


def test_a_flipped_bit_costs_one_batch() -> None:
    for at in range(EDGES[4], EDGES[5]):
        for bit in (1, 0x10, 0x80):
            result, skipped = offsets(flipped(SEGMENT, at, bit))
            if EDGES[4] + 12 <= at < EDGES[4] + 16:  # the leader epoch isn't under the checksum
                assert not skipped
            elif at < EDGES[4] + 8 and not skipped:  # nor is the base offset
                assert len(result) == 12
            else:
                assert result == [n * 10 for n in range(12) if n != 4], (at - EDGES[4], bit)
                assert [(unreadable.position, unreadable.length) for unreadable in skipped] == [
                    (EDGES[4], len(PARTS[4]))
                ]


def test_two_bad_neighbours_are_two_ranges() -> None:
    data = flipped(flipped(SEGMENT, EDGES[3] - 1), EDGES[4] - 1)
    result, skipped = offsets(data)
    assert [unreadable.position for unreadable in skipped] == [EDGES[2], EDGES[3]]
    assert len(result) == 10


@pytest.mark.parametrize("junk", [JUNK, bytes(300), b"\xff" * 50, b"x", SEGMENT[:50], b"\0" * 17])
def test_junk_in_the_middle(junk: bytes) -> None:
    result, skipped = offsets(SEGMENT[: EDGES[6]] + junk + SEGMENT[EDGES[6] :])
    assert result == [n * 10 for n in range(12)]
    assert [(unreadable.position, unreadable.length) for unreadable in skipped] == [(EDGES[6], len(junk))]
    assert "at byte" in skipped[0].reason


def test_zeros_at_the_end() -> None:
    data = SEGMENT + bytes(5000)
    with pytest.raises(CorruptBatch, match="only 5000 zero bytes to the end"):
        list(batches(data))
    result, skipped = offsets(data)
    assert len(result) == 12
    assert [(unreadable.position, unreadable.length) for unreadable in skipped] == [(len(SEGMENT), 5000)]


def test_overlapping_segments() -> None:
    result, skipped = offsets(SEGMENT[: EDGES[8]] + SEGMENT[EDGES[5] :])
    assert result == [0, 10, 20, 30, 40, 50, 60, 70, 50, 60, 70, 80, 90, 100, 110]
    assert not skipped


def test_a_length_beyond_the_end_is_no_partial_batch() -> None:
    data = SEGMENT[: EDGES[2] + 8] + (1 << 20).to_bytes(4) + SEGMENT[EDGES[2] + 12 :]
    reader = batches(data)
    with pytest.raises(CorruptBatch, match="with whole batches among them") as error_info:
        list(reader)
    assert error_info.value.position == EDGES[2] + 8
    assert list(reader) == []
    result, skipped = offsets(data)
    assert len(result) == 11
    assert [(unreadable.position, unreadable.length) for unreadable in skipped] == [(EDGES[2], len(PARTS[2]))]


def test_batches_within_values_are_no_batches() -> None:
    outer = encode_batch([Record(value=PARTS[3]), Record(value=PARTS[4] + b"!" * 99)], base_offset=5)
    for cut in range(len(outer)):
        reader = batches(outer[:cut])
        assert list(reader) == []
        assert len(reader.remainder) == cut
    result, skipped = offsets(flipped(outer, len(outer) - 1) + PARTS[0])
    assert result == [0]
    assert len(skipped) == 1


def test_report_comes_in_order() -> None:
    data = SEGMENT[: EDGES[1]] + JUNK + flipped(SEGMENT[EDGES[1] :], 30) + bytes(100)
    reader = batches(data, on_error="report")
    kinds = [
        unreadable if isinstance(unreadable, UnreadableRange) else unreadable.base_offset
        for unreadable in reader
    ]
    assert [kind for kind in kinds if isinstance(kind, int)] == [0, *range(20, 120, 10)]
    assert [unreadable.position for unreadable in kinds if isinstance(unreadable, UnreadableRange)] == [
        unreadable.position for unreadable in reader.skipped
    ]
    assert isinstance(kinds[1], UnreadableRange)
    assert isinstance(kinds[-1], UnreadableRange)


def test_bad_records_under_a_good_checksum() -> None:
    bad = sealed(PARTS[1][:65] + b"\x03" + PARTS[1][66:])
    data = PARTS[0] + bad + PARTS[2]
    result, skipped = offsets(data)
    assert result == [0, 20]
    assert skipped == [UnreadableRange(len(PARTS[0]), len(bad), skipped[0].reason)]
    assert "records[0].key" in skipped[0].reason
    reader = batches(data)
    next(reader)
    with pytest.raises(CorruptBatch):
        list(next(reader))
    assert next(reader).base_offset == 20


def test_too_much_is_skipped_too() -> None:
    data = PARTS[0] + encode_batch([Record(value=bytes(9000))], codec="gzip", base_offset=10) + PARTS[2]
    with limits(decompressed=4000):
        result, skipped = offsets(data)
    assert result == [0, 20]
    assert "decompress to more than 4000" in skipped[0].reason


def test_large_batches_are_read_again() -> None:
    data = encode_batch([Record(value=b"%d" % n) for n in range(2000)])
    (batch,) = batches(data, on_error="skip")
    for _ in range(2):
        assert [record.offset for record in batch] == list(range(2000))


def test_headers_all_over_are_accounted_for() -> None:
    head = bytearray(encode_batch([]) * 20_000)
    for at in range(0, len(head) - 61, 61):
        head[at + 8 : at + 12] = (len(head) - at - 100 & 0x7FFFFFF).to_bytes(4)
    reader = batches(b"?" * 20 + head, on_error="skip")
    assert sum(1 for _ in reader) <= 2
    assert sum(unreadable.length for unreadable in reader.skipped) + len(reader.remainder) >= len(head) - 200


@pytest.mark.parametrize("magic", [0, 1, 2])
def test_copies_have_bytes_of_their_own(magic: int) -> None:
    data = bytearray(b"".join(encode_batch(ROWS, magic=magic, base_offset=n) for n in range(3)))
    results = list(batches(data))
    made = [*pickle.loads(pickle.dumps(results)), copy.copy(results[0]), copy.deepcopy(results[-1])]
    expected = [*results, results[0], results[-1]]
    for each, batch in zip(made, expected, strict=True):
        assert (type(each), each.position, bytes(each.raw)) == (type(batch), batch.position, bytes(batch.raw))
        assert list(each) == list(batch)
    del results, expected, batch
    gc.collect()  # where references aren't counted
    data.clear()  # no one looks at it any more
    assert made[0].base_offset == 0


def test_unknown_mode() -> None:
    with pytest.raises(ValueError, match="on_error"):
        batches(b"", on_error="ignore")  # type: ignore[call-overload]


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_every_byte_is_accounted_for(data: st.DataObject) -> None:
    parts = data.draw(st.lists(st.one_of(st.sampled_from(PARTS), st.binary(max_size=40)), max_size=6))
    whole = bytearray(b"".join(parts))
    for _ in range(data.draw(st.integers(0, 3))):
        if whole:
            whole[data.draw(st.integers(0, len(whole) - 1))] ^= data.draw(st.integers(1, 255))
    reader = batches(bytes(whole), on_error="report")
    at = 0
    for unreadable in reader:
        assert unreadable.position == at
        at += unreadable.length if isinstance(unreadable, UnreadableRange) else unreadable.size
        if isinstance(unreadable, RecordBatch):
            list(unreadable)
    assert at + len(reader.remainder) == len(whole)


@pytest.mark.parametrize("first", [0, 0x80])
def test_many_bad_ones_are_passed_over_without_crawling(first: int) -> None:
    """Each is searched after, and these searches may not all look at everything that is left."""
    bad = flipped(flipped(encode_batch([Record(value=b"")], magic=0), 12), 0, first)
    data = bad * 20_000 + SEGMENT
    result, skipped = offsets(data)
    assert sum(unreadable.length for unreadable in skipped) == len(bad) * 20_000
    assert result == offsets(SEGMENT)[0]


def test_a_header_across_the_edges_of_a_search(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coordwire.records.resync.WINDOW", (16, 16))
    for gap in range(40):
        for filler in (b"\xff", b"\0", b"\1"):
            result, skipped = offsets(b"\xff" * 17 + filler * (gap + 100) + SEGMENT)
            assert result == offsets(SEGMENT)[0]
            assert sum(unreadable.length for unreadable in skipped) == 117 + gap


def test_a_batch_in_a_value_at_the_end_however_one_comes_there() -> None:
    """What a batch that is cut short holds decides nothing if it is older than the last one that was sound.

    So too where that was passed by without a look, or a bad one stood after it.
    """
    before = [encode_batch(ROWS, base_offset=100 + 10 * n) for n in range(4)]
    inner = encode_batch(ROWS, base_offset=50)
    batch = encode_batch([Record(value=inner + b"more")], base_offset=200)
    cut = batch[: batch.index(inner) + len(inner)]
    bad = flipped(encode_batch(ROWS, base_offset=10), 40)
    for parts in (before, [*before, bad]):
        data = b"".join([*parts, cut])
        edges = [sum(map(len, parts[:n])) for n in range(len(parts) + 1)]
        expected = list(batches(data, on_error="report"))
        assert len(expected) == len(parts)
        for stop in (1, edges[1], edges[2] + 1, edges[-1], edges[-1] + 1, len(data)):
            reader = batches(data, on_error="report")
            at = reader.advance(stop)
            assert at == next(edge for edge in edges if edge >= min(stop, edges[-1]))
            assert [batch.position for batch in reader] == [
                each.position for each in expected if each.position >= at
            ]
            assert bytes(reader.remainder) == cut
