"""`recover` where damage is in what no checksum covers: leader epochs, offsets, lengths."""

from __future__ import annotations

from pathlib import Path

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from coordwire.records import Record, encode_batch
from coordwire.segments import Segment

from .build import batch, log, write
from .recovering import DATA, SIZE, manifest, offsets, saved


def with_epochs(*epochs: int) -> bytes:
    return b"".join(batch(3 * n, partition_leader_epoch=epoch) for n, epoch in enumerate(epochs))


@pytest.mark.parametrize(
    ("epochs", "kept"),
    [
        ([0, 0, 7, 0, 0], [0, 1, 3, 4]),
        ([3, 3, 1, 3, 4], [0, 1, 3, 4]),
        ([5, 5, -1, 5, 5], [0, 1, 2, 3, 4]),  # none was set
        ([-1, -1, -1], [0, 1, 2]),
        ([0, -2, 1], [0, 2]),
        ([-(1 << 31)], []),
        ([1 << 30, 0, 0, 1, 1, 2], [1, 2, 3, 4, 5]),
    ],
)
def test_a_wrong_leader_epoch_costs_its_batch(tmp_path: Path, epochs: list[int], kept: list[int]) -> None:
    path = write(tmp_path, with_epochs(*epochs))
    (one,) = saved([path], tmp_path / "out")
    assert offsets(one.log) == kept
    gone = [n for n in range(len(epochs)) if n not in kept]
    assert [line["reason"] for line in manifest(one)] == [
        f"offsets {3 * n} to {3 * n + 2} have leader epoch {epochs[n]}, out of order" for n in gone
    ]


def test_an_old_format_has_no_leader_epoch(tmp_path: Path) -> None:
    """A topic may be set back to an older format of its messages."""
    old = encode_batch([Record(3, 1000, value=b"old")], magic=1, base_offset=3)
    path = write(tmp_path, batch(0, partition_leader_epoch=4) + old + batch(4, partition_leader_epoch=4))
    with Segment(path) as segment:
        assert list(segment.verify()) == []
    (one,) = saved([path], tmp_path / "out")
    assert (one.batches, one.ranges) == (3, 0)


@pytest.mark.parametrize(("count", "size"), [(1, 0), (1, 40), (2, 0)])
def test_a_batch_of_few_records(tmp_path: Path, count: int, size: int) -> None:
    """Its first offset may be its last."""
    data = b"".join(log(7, records=count, size=size))
    (one,) = saved([write(tmp_path, data)], tmp_path / "out")
    assert (one.batches, one.log.read_bytes()) == (7, data)


def test_a_last_offset_below_the_first(tmp_path: Path) -> None:
    empty = bytearray(encode_batch([], base_offset=9, partition_leader_epoch=0))
    empty[23:27] = b"\xff\xff\xff\xfe"
    empty[17:21] = crc32c(empty[21:]).to_bytes(4)
    (one,) = saved([write(tmp_path, batch(0) + batch(3) + empty + batch(12))], tmp_path / "out")
    assert one.batches == 3
    assert "offsets 9 to 7" in manifest(one)[0]["reason"]


def test_records_beyond_the_last_offset(tmp_path: Path) -> None:
    wrong = bytearray(batch(3))
    wrong[26] = 1  # its last offset, below its last record's
    wrong[17:21] = crc32c(wrong[21:]).to_bytes(4)
    (one,) = saved([write(tmp_path, batch(0) + wrong + batch(6))], tmp_path / "out")
    assert offsets(one.log) == [0, 2]
    assert "records[2] has offset 5" in manifest(one)[0]["reason"]


@given(st.lists(st.tuples(st.integers(0, 11), st.integers(0, 20), st.integers(0, 255)), max_size=12))
def test_damage_before_the_checksum(
    tmp_path_factory: pytest.TempPathFactory, harm: list[tuple[int, int, int]]
) -> None:
    """Whatever is there: the copy is sound, and what wasn't touched is kept where it fits."""
    data = bytearray(DATA)
    for number, content, byte in harm:
        data[number * SIZE + content] = byte
    folder = tmp_path_factory.mktemp("head")
    saved([write(folder, bytes(data))], folder / "out")
