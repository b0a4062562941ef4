"""`Segment`: what it says of itself, its batches, finding, cutting."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordwire.errors import CorruptBatch
from coordwire.records import Record, RecordBatch, UnreadableRange, encode_batch
from coordwire.segments import OffsetIndex, OffsetPosition, Segment, TimeIndex, TimestampOffset

from .build import START_MS, batch, log, write


def test_what_it_says_of_itself(tmp_path: Path) -> None:
    data = batch(100)
    with Segment(write(tmp_path, data, base=100, name="a-b.c-7.0f-delete")) as segment:
        assert (segment.topic, segment.partition, segment.base_offset) == ("a-b.c", 7, 100)
        assert segment.size == len(data)
        assert segment.data == data
        assert "a-b.c-7" in repr(segment)
        assert segment.offset_index is None
        assert segment.sibling_path("index") == segment.path.with_name("00000000000000000100.index")


def test_other_names(tmp_path: Path) -> None:
    path = tmp_path / "some" / "copy.bin"
    path.parent.mkdir()
    path.write_bytes(batch(5))
    with Segment(str(path)) as segment:
        assert (segment.topic, segment.partition, segment.base_offset) == (None, None, None)
        assert segment.sibling_path("index") is None
        assert segment.time_index is None
        assert segment.find(offset=6)
        assert repr(segment)


def test_a_relative_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, batch(0), name="orders-3")
    monkeypatch.chdir(path.parent)
    with Segment(path.name) as segment:
        assert (segment.topic, segment.partition) == ("orders", 3)


def test_a_snapshot_holds_batches(tmp_path: Path) -> None:
    path = tmp_path / "__cluster_metadata-0" / "00000000000000000100-0000000002.checkpoint"
    path.parent.mkdir()
    path.write_bytes(batch(0))
    with Segment(path) as segment:
        assert segment.base_offset is None
        assert segment.topic == "__cluster_metadata"
        assert [each.count for each in segment.batches()] == [3]


def test_an_empty_file(tmp_path: Path) -> None:
    with Segment(write(tmp_path, b"")) as segment:
        assert list(segment.batches()) == []
        assert segment.find(offset=0) is None
        assert segment.find(timestamp=0) is None
        assert list(segment.cuts(10)) == []


def test_what_cant_be_opened(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Segment(tmp_path / "nothing.log")
    with pytest.raises(IsADirectoryError):
        Segment(tmp_path)


def test_batches_outlive_it(tmp_path: Path) -> None:
    segment = Segment(write(tmp_path, b"".join(log(3))))
    batches = list(segment.batches())
    segment.close()
    segment.close()
    assert [record.offset for each in batches for record in each] == list(range(9))
    with pytest.raises(ValueError, match="released"):
        list(segment.batches())


def test_nothing_is_copied(tmp_path: Path) -> None:
    with Segment(write(tmp_path, b"".join(log(3)))) as segment:
        assert all(each.raw.obj is segment.data.obj for each in segment.batches())


def test_errors_tell_places_in_the_file(tmp_path: Path) -> None:
    parts = log(4)
    data = bytearray(b"".join(parts))
    size = len(parts[0])
    data[2 * size + 70] ^= 1
    with Segment(write(tmp_path, bytes(data))) as segment:
        batches = list(segment.batches(on_error="report", start=size))
        assert [each.position for each in batches] == [size, 2 * size, 3 * size]
        assert isinstance(batches[1], UnreadableRange)
        assert batches[1].length == size
        assert f"at byte {2 * size + 17}" in batches[1].reason
        bad = next(segment.batches(start=2 * size))
        with pytest.raises(CorruptBatch):
            list(bad)


def test_as_arrow(tmp_path: Path) -> None:
    data = bytearray(b"".join(log(4)))
    with Segment(write(tmp_path, bytes(data))) as segment:
        table = segment.to_arrow(columns=["offset", "key", "batch_position"])
        assert table.column_names == ["offset", "key", "batch_position"]
        assert table["offset"].to_pylist() == list(range(12))
        assert table["batch_position"].to_pylist() == [n // 3 * len(data) // 4 for n in range(12)]
        assert segment.to_arrow().column_names == ["offset", "timestamp", "key", "value", "headers"]
    data[100] ^= 1
    skipped: list[UnreadableRange] = []
    with Segment(write(tmp_path, bytes(data))) as segment:
        with pytest.raises(CorruptBatch):
            segment.to_arrow()
        assert segment.to_arrow(on_error="skip", skipped=skipped).num_rows == 9
    assert [(unreadable.position, unreadable.length) for unreadable in skipped] == [(0, len(data) // 4)]
    with Segment(write(tmp_path, b"")) as segment:
        assert segment.to_arrow(columns=["value"]).num_rows == 0


# --- finding ---


def indexed(tmp_path: Path, parts: list[bytes]) -> Path:
    """A segment with sound indexes: an entry for every third batch."""
    path = write(tmp_path, b"".join(parts))
    entries, stamps = [], []
    position = 0
    for number, part in enumerate(parts):
        if number and number % 3 == 0:
            entries.append(OffsetPosition(number * 3 + 2, position))
            stamps.append(TimestampOffset(START_MS + number * 3 + 2, number * 3 + 2))
        position += len(part)
    path.with_suffix(".index").write_bytes(OffsetIndex.pack(entries, 0))
    path.with_suffix(".timeindex").write_bytes(TimeIndex.pack(stamps, 0))
    return path


@pytest.mark.parametrize("with_index", [True, False])
def test_find_an_offset(tmp_path: Path, with_index: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    path, walk = indexed(tmp_path, log(10)), Segment.batches
    starts: list[int] = []

    def walked(self: Segment, **settings: Any) -> Any:
        starts.append(settings["start"])
        return walk(self, **settings)

    monkeypatch.setattr(Segment, "batches", walked)
    if not with_index:
        path.with_suffix(".index").unlink()
    with Segment(path) as segment:
        for offset in range(30):
            result = segment.find(offset=offset)
            assert result is not None
            assert result.base_offset == offset // 3 * 3
        assert segment.find(offset=30) is None
        assert (max(starts) > path.stat().st_size // 2) is with_index  # the search is in the index
        first = segment.find(offset=-5)
        assert first is not None
        assert first.position == 0


def test_find_behind_a_gap(tmp_path: Path) -> None:
    with Segment(write(tmp_path, batch(0) + batch(100))) as segment:
        result = segment.find(offset=50)
        assert result is not None
        assert result.base_offset == 100


@pytest.mark.parametrize("with_index", [True, False])
def test_find_a_time(tmp_path: Path, with_index: bool) -> None:
    path = indexed(tmp_path, log(10))
    if not with_index:
        path.with_suffix(".timeindex").unlink()
    with Segment(path) as segment:
        for offset in range(30):
            result = segment.find(timestamp=START_MS + offset)
            assert result is not None
            assert result.offset == offset
        assert segment.find(timestamp=START_MS + 30) is None
        first = segment.find(timestamp=0)
        assert first is not None
        assert first.offset == 0


def test_find_wants_one_of_both(tmp_path: Path) -> None:
    with Segment(write(tmp_path, b"")) as segment:
        with pytest.raises(TypeError):
            segment.find()  # type: ignore[call-overload]
        with pytest.raises(TypeError):
            segment.find(offset=1, timestamp=2)  # type: ignore[call-overload]


@given(st.binary(max_size=64), st.binary(max_size=60), st.integers(-3, 33))
def test_no_index_misleads(
    tmp_path_factory: pytest.TempPathFactory, some: bytes, other: bytes, at: int
) -> None:
    path = write(tmp_path_factory.mktemp("log"), b"".join(log(10)))
    with Segment(path) as segment:
        offset, time = segment.find(offset=at), segment.find(timestamp=START_MS + at)
    path.with_suffix(".index").write_bytes(some)
    path.with_suffix(".timeindex").write_bytes(other)
    with Segment(path) as segment:
        again = segment.find(offset=at)
        assert (again and again.position) == (offset and offset.position)
        assert segment.find(timestamp=START_MS + at) == time


def test_find_passes_over_what_is_bad(tmp_path: Path) -> None:
    parts = log(10)
    data = bytearray(b"".join(parts))
    data[len(parts[0]) * 4 + 70] ^= 1
    with Segment(write(tmp_path, bytes(data))) as segment:
        result = segment.find(offset=13)
        assert result is not None
        assert result.base_offset == 15


# --- cutting ---


def starts(found: list[RecordBatch]) -> list[int]:
    return [each.position for each in found]


@given(
    st.integers(1, 12),
    st.integers(1, 3000),
    st.booleans(),
    st.lists(st.tuples(st.integers(0, 3000), st.binary(max_size=30)), max_size=3),
    st.one_of(st.none(), st.binary(max_size=40)),
)
def test_cuts(
    tmp_path_factory: pytest.TempPathFactory,
    count: int,
    size: int,
    with_index: bool,
    harm: list[tuple[int, bytes]],
    hostile: bytes | None,
) -> None:
    """Whatever the bytes and the index, the ranges follow one another and lose no batch."""
    path = indexed(tmp_path_factory.mktemp("log"), log(count))
    if not with_index:
        path.with_suffix(".index").unlink()
    if hostile is not None:
        path.with_suffix(".index").write_bytes(hostile)
    data = bytearray(path.read_bytes())
    for at, junk in harm:
        data[at : at + len(junk)] = junk
    path.write_bytes(data)
    with Segment(path) as segment:
        ranges = list(segment.cuts(size))
        assert ranges[0][0] == 0
        assert ranges[-1][1] == segment.size
        assert all(before[1] == after[0] for before, after in pairwise(ranges))
        assert all(end - start >= size for start, end in ranges[:-1])
        results = [each for a, b in ranges for each in segment.batches(on_error="skip", start=a, end=b)]
        assert starts(results) == starts(list(segment.batches(on_error="skip")))


def test_cuts_of_a_sound_segment(tmp_path: Path) -> None:
    parts = log(10)
    size = len(parts[0])
    with Segment(indexed(tmp_path, parts)) as segment:
        assert list(segment.cuts(1 << 30)) == [(0, 10 * size)]
        assert list(segment.cuts(1)) == [(n * size, n * size + size) for n in range(10)]
        assert list(segment.cuts(3 * size)) == [
            (0, 3 * size),
            (3 * size, 6 * size),
            (6 * size, 9 * size),
            (9 * size, 10 * size),
        ]
        with pytest.raises(ValueError, match="at least 1 byte, got 0"):
            list(segment.cuts(0))


def test_no_cut_inside_a_value(tmp_path: Path) -> None:
    """A record may hold a batch; without an index as with one, it is not a place to cut."""
    outer = encode_batch([Record(value=b"".join(log(5)))], base_offset=50)
    data = batch(0) + outer + batch(60)
    with Segment(write(tmp_path, data)) as segment:
        expected = [
            (0, len(batch(0))),
            (len(batch(0)), len(batch(0) + outer)),
            (len(batch(0) + outer), len(data)),
        ]
        assert list(segment.cuts(1)) == expected
