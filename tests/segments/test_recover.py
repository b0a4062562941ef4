"""`recover`: every whole batch is kept, every byte accounted for, the original left alone."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from coordwire import limits
from coordwire.errors import CodecUnavailable
from coordwire.messages.control_records import EndTxnMarker
from coordwire.messages.producer_snapshot import ProducerEntry
from coordwire.records import Record, control_record, encode_batch
from coordwire.records.control import ControlType
from coordwire.segments import Segment, recover, write_snapshot

from .build import batch, log, write
from .recovering import DATA, PARTS, SIZE, manifest, offsets, saved


def test_a_sound_segment(tmp_path: Path) -> None:
    data = b"".join(log(5, base=50))
    (one,) = saved([write(tmp_path, data, base=50)], tmp_path / "out")
    assert (one.batches, one.ranges) == (5, 0)
    assert one.log.read_bytes() == data
    assert [path.name for path in one.files] == [
        "00000000000000000050.index", "00000000000000000050.timeindex", "00000000000000000050.log"
    ]  # fmt: skip


def test_an_empty_segment(tmp_path: Path) -> None:
    (one,) = saved([write(tmp_path, b"")], tmp_path / "out")
    assert (one.batches, one.size, one.ranges) == (0, 0, 0)


@given(st.integers(0, len(DATA) * 8 - 1))
def test_a_flipped_bit(tmp_path_factory: pytest.TempPathFactory, bit: int) -> None:
    """All other batches are kept; its own too, where no checksum covers the bit (the base offset and the
    leader epoch) and what it says fits between the others."""
    folder = tmp_path_factory.mktemp("flip")
    data = bytearray(DATA)
    data[bit // 8] ^= 1 << bit % 8
    (one,) = saved([write(folder, bytes(data))], folder / "out")
    number, content = divmod(bit // 8, SIZE)
    kept = offsets(one.log)
    others = [n for n in range(12) if n != number]
    if 8 <= content < 12 or content >= 16:
        assert kept == others
        assert [line["position"] for line in manifest(one)] == [number * SIZE]
    else:
        assert set(others) <= set(kept)


@given(st.integers(0, len(DATA)))
def test_a_zeroed_tail(tmp_path_factory: pytest.TempPathFactory, at: int) -> None:
    folder = tmp_path_factory.mktemp("zero")
    data = DATA[:at] + bytes(len(DATA) - at)
    (one,) = saved([write(folder, data)], folder / "out")
    assert offsets(one.log) == [n for n in range(12) if data[n * SIZE : n * SIZE + SIZE] == PARTS[n]]


@given(st.integers(0, len(DATA)))
def test_a_truncated_tail(tmp_path_factory: pytest.TempPathFactory, at: int) -> None:
    folder = tmp_path_factory.mktemp("cut")
    (one,) = saved([write(folder, DATA[:at])], folder / "out")
    assert offsets(one.log) == list(range(at // SIZE))
    assert one.ranges == bool(at % SIZE)


@given(
    st.integers(0, len(DATA)), st.one_of(st.binary(min_size=1, max_size=700), st.integers(1, 9000).map(bytes))
)
def test_nonsense_put_in(tmp_path_factory: pytest.TempPathFactory, at: int, junk: bytes) -> None:
    """Between two batches it costs nothing, inside one that one."""
    folder = tmp_path_factory.mktemp("junk")
    (one,) = saved([write(folder, DATA[:at] + junk + DATA[at:])], folder / "out")
    kept = offsets(one.log)
    assert set(range(12)) - set(kept) <= {at // SIZE} - ({at // SIZE} if at % SIZE == 0 else set())


@pytest.mark.parametrize("byte", [0, 1, 2, 3, 0x7F, 0xFF])
@pytest.mark.parametrize("after", [0, 1, 5, 11])
def test_a_block_of_one_byte(tmp_path: Path, byte: int, after: int) -> None:
    """Some of them look like the header of a batch that goes on after the file's end."""
    data = DATA[: after * SIZE] + bytes([byte]) * 500 + DATA[after * SIZE :]
    (one,) = saved([write(tmp_path, data)], tmp_path / "out")
    assert one.log.read_bytes() == DATA
    assert (one.ranges, one.bad_bytes) == (1, 500)


@given(st.integers(0, len(DATA)), st.binary(max_size=700))
def test_nonsense_written_over(tmp_path_factory: pytest.TempPathFactory, at: int, junk: bytes) -> None:
    folder = tmp_path_factory.mktemp("over")
    data = DATA[:at] + junk + DATA[at + len(junk) :]
    (one,) = saved([write(folder, data)], folder / "out")
    hit = {n for n in range(12) if data[n * SIZE : n * SIZE + SIZE] != PARTS[n]}
    assert set(range(12)) - hit <= set(offsets(one.log))


@given(
    st.lists(st.sampled_from(PARTS), max_size=8).map(b"".join), st.lists(st.binary(max_size=200), max_size=3)
)
def test_any_order(tmp_path_factory: pytest.TempPathFactory, data: bytes, junk: list[bytes]) -> None:
    folder = tmp_path_factory.mktemp("any")
    for number, piece in enumerate(junk):
        at = (number * 7919) % (len(data) + 1)
        data = data[:at] + piece + data[at:]
    saved([write(folder, data)], folder / "out")


def test_one_wrong_offset_costs_one_batch(tmp_path: Path) -> None:
    data = bytearray(DATA)
    data[2 * SIZE + 3] = 1  # far ahead: all after it would seem to be in the past
    (one,) = saved([write(tmp_path, bytes(data))], tmp_path / "out")
    assert offsets(one.log) == [0, 1, *range(3, 12)]
    (line,) = manifest(one)
    assert line == {
        "file": "00000000000000000000.log", "position": 2 * SIZE, "length": SIZE,
        "reason": line["reason"], "quarantinePosition": 0,
    }  # fmt: skip
    assert line["reason"].startswith("offsets 4294967302 to 4294967304 in a segment that begins at 0")
    data[2 * SIZE + 3], data[2 * SIZE + 6] = 0, 1
    (one,) = saved([write(tmp_path, bytes(data))], tmp_path / "again")
    assert offsets(one.log) == [0, 1, *range(3, 12)]
    assert manifest(one)[0]["reason"] == "offsets 262 to 264 are out of order"


def test_a_batch_twice(tmp_path: Path) -> None:
    parts = log(4)
    (one,) = saved([write(tmp_path, b"".join([*parts[:3], parts[2], parts[3]]))], tmp_path / "out")
    assert one.log.read_bytes() == b"".join(parts)
    assert manifest(one)[0]["reason"] == f"offsets 6 to 8 are at byte {2 * SIZE} too, the same bytes"


@pytest.mark.parametrize(
    ("parts", "kept"),
    [
        ([(0, 3), (2, 11), (10, 2), (13, 3)], [0, 2, 3]),
        ([(0, 3), (5, 2), (3, 11), (13, 3)], [0, 1, 3]),
        ([(0, 3), (5, 2), (3, 10), (13, 3)], [0, 2, 3]),  # joins both
    ],
)
def test_a_batch_that_shares_an_offset_is_never_put_between(
    tmp_path: Path, parts: list[tuple[int, int]], kept: list[int]
) -> None:
    """However well it would join on the other side."""
    made = [batch(first, count) for first, count in parts]
    (one,) = saved([write(tmp_path, b"".join(made))], tmp_path / "out")
    assert one.log.read_bytes() == b"".join(made[n] for n in kept)


@pytest.mark.parametrize(
    ("base", "epoch", "fits"),
    [(3, 2, True), (2, 2, False), (5, 2, True), (6, 2, False), (4, 1, True), (4, 3, True), (4, 0, False),
     (4, 4, False), (4, -1, True), (4, -2, False)],
)  # fmt: skip
def test_what_fits_between_two(tmp_path: Path, base: int, epoch: int, fits: bool) -> None:
    """A batch in a damaged one's value: above the offsets before it, below those after it; so its epoch."""
    inner = batch(base, 1, 0, partition_leader_epoch=epoch)
    outer = bytearray(encode_batch([Record(3, value=inner)], base_offset=3, partition_leader_epoch=2))
    outer[-1] ^= 1
    data = batch(0, partition_leader_epoch=1) + outer + batch(6, partition_leader_epoch=3)
    (one,) = saved([write(tmp_path, data)], tmp_path / "out")
    assert one.batches == 2 + fits


def test_overlapping_segments(tmp_path: Path) -> None:
    """What two segments have is kept once; which bytes went where is reported."""
    first, second = log(6), [batch(12), batch(15, size=41), *log(3, base=18)]
    paths = [write(tmp_path, b"".join(first)), write(tmp_path, b"".join(second), base=12)]
    one, two = saved(list(reversed(paths)), tmp_path / "out")
    assert (one.source, two.source) == tuple(paths)
    assert (one.batches, one.ranges) == (6, 0)
    assert (two.batches, two.ranges) == (3, 2)
    assert [line["reason"] for line in manifest(two)] == [
        f"offsets 12 to 14 are at byte {4 * SIZE} of 00000000000000000000.log, the same bytes",
        f"offsets 15 to 17 are at byte {5 * SIZE} of 00000000000000000000.log, with other bytes",
    ]


def test_a_hole_is_filled_from_the_other(tmp_path: Path) -> None:
    """Where the first segment's end is bad, the second one's start is kept."""
    first = bytearray(b"".join(log(6)))
    first[-20] ^= 1
    paths = [write(tmp_path, bytes(first)), write(tmp_path, b"".join(log(4, base=15)), base=15)]
    one, two = saved(paths, tmp_path / "out")
    assert (one.batches, two.batches) == (5, 4)


def test_offsets_that_the_segment_cant_have(tmp_path: Path) -> None:
    data = batch(10) + batch(100) + batch(100 + (1 << 31))
    (one,) = saved([write(tmp_path, data, base=100)], tmp_path / "out")
    assert one.batches == 1
    assert len(manifest(one)) == 2
    assert "in a segment that begins at 100" in manifest(one)[0]["reason"]


def test_records_that_cant_be_read(tmp_path: Path) -> None:
    """A right checksum over nonsense is nonsense."""
    broken = bytearray(batch(3))
    broken[60] += 1  # one record more than there are
    broken[17:21] = crc32c(broken[21:]).to_bytes(4)
    (one,) = saved([write(tmp_path, batch(0) + broken + batch(6))], tmp_path / "out")
    assert offsets(one.log) == [0, 2]
    assert "records[3]" in manifest(one)[0]["reason"]


def test_a_control_batch_that_says_nothing(tmp_path: Path) -> None:
    marker = encode_batch([Record(3, key=b"\0\0\0\0")], control=True, producer_id=1, base_offset=3)
    (one,) = saved([write(tmp_path, batch(0) + marker + batch(6))], tmp_path / "out")
    assert offsets(one.log) == [0, 2]


def test_what_the_limits_forbid_to_look_into_is_kept(tmp_path: Path) -> None:
    large = encode_batch([Record(3, value=bytes(100_000))], codec="zstd")
    path = write(tmp_path, batch(0) + large + batch(6))
    with limits(decompressed=1000):
        (one,) = recover([path], tmp_path / "out")
    assert (one.batches, one.ranges) == (3, 0)
    assert one.log.read_bytes() == path.read_bytes()


def test_old_formats(tmp_path: Path) -> None:
    records = [Record(n, 1000 + n, b"k", b"v" * 50) for n in range(3)]
    packed = encode_batch(records, magic=1, codec="gzip", base_offset=0)
    plain = [encode_batch([Record(n, value=b"old")], magic=0, base_offset=n) for n in (3, 4)]
    data = packed + plain[0] + plain[1] + batch(5)
    (one,) = saved([write(tmp_path, data)], tmp_path / "out")
    assert (one.batches, one.ranges) == (4, 0)
    damaged = bytearray(data)
    damaged[len(packed) + 20] ^= 8
    (one,) = saved([write(tmp_path, bytes(damaged))], tmp_path / "again")
    assert (one.batches, one.ranges) == (3, 1)


def test_aborted_transactions_are_in_the_index(tmp_path: Path) -> None:
    facts: dict[str, Any] = {"producer_id": 7, "producer_epoch": 0, "transactional": True}
    abort = control_record(ControlType.ABORT, EndTxnMarker(coordinator_epoch=1), offset=3, timestamp=5)
    data = batch(0, base_sequence=0, **facts) + encode_batch([abort], control=True, **facts)
    (one,) = saved([write(tmp_path, data)], tmp_path / "out")
    with Segment(one.log) as copy:
        assert copy.transaction_index is not None
        assert list(copy.transaction_index) == [(7, 0, 3, 4, 0)]


def test_other_names(tmp_path: Path) -> None:
    path = tmp_path / "copy.bin"
    path.write_bytes(DATA + b"junk")
    (one,) = saved([path], tmp_path / "out")
    assert sorted(file.name for file in one.files) == [
        "copy.bin", "copy.bin.quarantine", "copy.bin.quarantine.jsonl"
    ]  # fmt: skip
    gone = write(tmp_path, DATA).rename(tmp_path / "orders-0" / "00000000000000000000.log.deleted")
    (one,) = saved([gone], tmp_path / "restored")
    assert one.log.name == "00000000000000000000.log"


@pytest.mark.parametrize("control", [False, True])
def test_nothing_is_judged_without_a_codec(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, control: bool
) -> None:
    """A missing library is not damage: it is named before anything is written."""
    packed = batch(3, codec="zstd") if not control else encode_batch(
        [control_record(ControlType.COMMIT, EndTxnMarker(coordinator_epoch=1), offset=3)],
        control=True, codec="zstd", producer_id=1,
    )  # fmt: skip
    path = write(tmp_path, batch(0) + packed + batch(6))
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(CodecUnavailable, match="zstandard"):
        list(recover([path], tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_a_marker_without_the_bit_of_a_transaction(tmp_path: Path) -> None:
    """As for Kafka, what a control batch says counts."""
    facts: dict[str, Any] = {"producer_id": 7, "producer_epoch": 0}
    abort = control_record(ControlType.ABORT, EndTxnMarker(coordinator_epoch=1), offset=3, timestamp=5)
    data = batch(0, base_sequence=0, transactional=True, **facts)
    (one,) = saved([write(tmp_path, data + encode_batch([abort], control=True, **facts))], tmp_path / "out")
    with Segment(one.log) as copy:
        assert copy.transaction_index is not None
        assert list(copy.transaction_index) == [(7, 0, 3, 4, 0)]


def test_a_snapshot_that_can_not_be(tmp_path: Path) -> None:
    """A transaction can't be open before it begins."""
    facts: dict[str, Any] = {"producer_id": 7, "producer_epoch": 0, "transactional": True}
    abort = control_record(ControlType.ABORT, EndTxnMarker(coordinator_epoch=1), offset=50, timestamp=5)
    path = write(tmp_path, encode_batch([abort], control=True, **facts), base=50)
    for first in (40, 50, 51, 1 << 62):
        entry = ProducerEntry(producer_id=7, current_txn_first_offset=first)
        path.with_suffix(".snapshot").write_bytes(write_snapshot([entry]))
        (one,) = saved([path], tmp_path / str(first))
        assert (one.log.with_suffix(".txnindex") in one.files) == (first == 40)
