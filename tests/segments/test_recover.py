"""`recover`: every whole batch is kept, every byte accounted for, the original left alone."""

from __future__ import annotations

import json
import os
import struct
import sys
from collections.abc import Callable
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
from coordwire.segments import Recovered, Segment, recover, staging, write_snapshot

from .build import batch, log, write


def saved(paths: list[Path], out: Path) -> list[Recovered]:
    """Recover, and hold what must be true of any recovery."""
    before = [path.read_bytes() for path in paths]
    found = list(recover(paths, out))
    assert [path.read_bytes() for path in paths] == before
    by_source = dict(zip(paths, before, strict=True))
    written = []
    for one in found:
        written += one.files
        data = by_source[one.source]
        clean = one.log.read_bytes()
        assert len(clean) == one.size
        assert len(clean) + one.bad_bytes == len(data)
        assert rebuilt(data, clean, manifest(one), bad_bytes(one)) == data
        with Segment(one.log) as copy:
            assert list(copy.verify()) == []
            assert sum(1 for _ in copy.batches()) == one.batches
    assert sorted(written) == sorted(out.iterdir())
    return found


def manifest(one: Recovered) -> list[dict[str, Any]]:
    path = Path(f"{one.log}.quarantine.jsonl")
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def bad_bytes(one: Recovered) -> bytes:
    path = Path(f"{one.log}.quarantine")
    return path.read_bytes() if path.exists() else b""


def rebuilt(data: bytes, clean: bytes, lines: list[dict[str, Any]], bad: bytes) -> bytes:
    """The original, from the clean copy and the quarantine."""
    parts, done, at = [], 0, 0
    for line in lines:
        kept = line["position"] - at
        start = line["quarantinePosition"]
        parts += [clean[done : done + kept], bad[start : start + line["length"]]]
        done += kept
        at = line["position"] + line["length"]
        assert line["reason"]
    return b"".join([*parts, clean[done:]])


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


PARTS = log(12)
DATA = b"".join(PARTS)
SIZE = len(PARTS[0])


def offsets(path: Path) -> list[int]:
    with Segment(path) as segment:
        return [each.base_offset // 3 for each in segment.batches()]


@given(st.integers(0, len(DATA) * 8 - 1))
def test_a_flipped_bit(tmp_path_factory: pytest.TempPathFactory, bit: int) -> None:
    """All other batches are kept; its own too, where no checksum covers the bit (the base offset and the
    leader epoch) and what it says fits between the others."""
    folder = tmp_path_factory.mktemp("flip")
    data = bytearray(DATA)
    data[bit // 8] ^= 1 << bit % 8
    (one,) = saved([write(folder, bytes(data))], folder / "out")
    number, inside = divmod(bit // 8, SIZE)
    kept = offsets(one.log)
    others = [n for n in range(12) if n != number]
    if 8 <= inside < 12 or inside >= 16:
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


# --- what no checksum covers ---


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
    for number, inside, byte in harm:
        data[number * SIZE + inside] = byte
    folder = tmp_path_factory.mktemp("head")
    saved([write(folder, bytes(data))], folder / "out")


# --- headers that claim too much ---


def claim(offset: int, length: int, *, magic: int = 2, cut: int = 61) -> bytes:
    """A header with a wrong checksum and such a length."""
    if magic < 2:
        return struct.pack(">qiIbBq", offset, length, 1, magic, 0, 5)[:cut]
    head = struct.pack(">qiibIhiqqqhii", offset, length, 0, 2, 1, 0, 0, 0, 0, -1, -1, -1, 1)
    return head[:cut]


SMALL = log(60, records=1, size=5)
STEP = len(SMALL[0])


@pytest.mark.parametrize("magic", [0, 1, 2])
@pytest.mark.parametrize("cut", [30, 61])
@pytest.mark.parametrize(
    "length",
    [
        lambda n: 100,
        lambda n: 1_000_000,
        lambda n: (60 - n) * STEP // 2,
        lambda n: 3 * STEP,
        lambda n: 1 << 30,
    ],
)
def test_whatever_headers_claim(tmp_path: Path, magic: int, cut: int, length: Callable[[int], int]) -> None:
    parts = [claim(n, length(n), magic=magic, cut=cut) + each for n, each in enumerate(SMALL)]
    (one,) = saved([write(tmp_path, b"".join(parts))], tmp_path / "out")
    assert one.batches == 60


@pytest.mark.parametrize("inside", [1, 20, 59])
@pytest.mark.parametrize("to_the_end", [False, True])
def test_a_claim_that_another_batch_confirms(tmp_path: Path, inside: int, to_the_end: bool) -> None:
    """Up to where a sound one begins, or to the very end."""
    end = len(SMALL) if to_the_end else inside + 1
    size = sum(map(len, SMALL[1:end]))
    data = SMALL[0] + claim(1, 61 - 12 + size) + b"".join(SMALL[1:])
    (one,) = saved([write(tmp_path, data)], tmp_path / "out")
    assert (one.batches, one.bad_bytes) == (60, 61)


def test_batches_in_the_value_of_a_bad_one(tmp_path: Path) -> None:
    """They are kept where they fit, and take no other's place, however many there are."""
    forged = b"".join(batch(1000 + n, 1, 0) for n in range(50))
    fitting = batch(4, 1, 0)
    for value, more in ((forged, 0), (fitting, 1), (forged + fitting, 1)):
        outer = bytearray(encode_batch([Record(3, value=value)], base_offset=3, partition_leader_epoch=0))
        outer[-1] ^= 1  # its header count
        path = write(tmp_path, batch(0) + outer + batch(6) + batch(9))
        (one,) = saved([path], tmp_path / str(len(value)))
        assert one.batches == 3 + more


@pytest.mark.parametrize("to_the_end", [False, True])
@pytest.mark.parametrize(("more", "kept"), [(0, [0, 1, 2]), (1, [0, 1, 2]), (2, [0, 1, 3, 4])])
def test_a_wrong_offset_before_a_claim_costs_one_batch(
    tmp_path: Path, to_the_end: bool, more: int, kept: list[int]
) -> None:
    """What is found inside the claim doesn't fit after it: two batches say more than one."""
    made = [batch(0), batch(3), batch(90), *(batch(12 + 3 * n) for n in range(more))]
    last = b"" if to_the_end else batch(93)
    inner = b"".join(made[3:])
    length = (1 << 20) if to_the_end else 61 - 12 + len(inner)
    data = b"".join(made[:3]) + claim(99, length) + inner + last
    (one,) = saved([write(tmp_path, data)], tmp_path / "out")
    assert one.log.read_bytes() == b"".join(made[n] for n in kept) + last


@pytest.mark.parametrize("to_the_end", [False, True])
def test_what_joins_the_line_is_not_given_up_for_what_is_inside_a_claim(
    tmp_path: Path, to_the_end: bool
) -> None:
    """However many there are: the value of a damaged batch may hold anything."""
    made = [batch(0), batch(3), batch(6)]
    last = b"" if to_the_end else batch(60)
    inner = b"".join(batch(4 + n, 1) for n in range(4))
    length = (1 << 20) if to_the_end else 61 - 12 + len(inner)
    data = b"".join(made) + claim(9, length) + inner + last
    (one,) = saved([write(tmp_path, data)], tmp_path / "out")
    assert one.log.read_bytes() == b"".join(made) + last


@pytest.mark.parametrize(("gap", "kept"), [(0, [0, 1]), (1, [0, 2, 3])])
def test_a_gap_of_one_offset_is_a_gap(tmp_path: Path, gap: int, kept: list[int]) -> None:
    made = [batch(0), batch(3 + gap, 9), batch(3, 1), batch(4, 1)]
    data = b"".join(made[:2]) + claim(99, 1 << 20) + b"".join(made[2:])
    (one,) = saved([write(tmp_path, data)], tmp_path / "out")
    assert one.log.read_bytes() == b"".join(made[n] for n in kept)


def test_one_batch_twice_does_not_make_an_offset_wrong(tmp_path: Path) -> None:
    made = [batch(0), batch(90), batch(3, partition_leader_epoch=-1)]
    data = b"".join(made[:2]) + claim(99, 1 << 20) + made[2] + batch(3)
    (one,) = saved([write(tmp_path, data)], tmp_path / "out")
    assert one.log.read_bytes() == made[0] + made[1]


def test_what_joins_what_was_inside_a_claim_is_kept(tmp_path: Path) -> None:
    """The next claim is judged by all that is kept before it."""
    made = [batch(0), batch(3), batch(6)]
    data = made[0] + claim(2, 49 + len(made[1])) + made[1] + made[2] + claim(9, 1 << 20)
    (one,) = saved([write(tmp_path, data + batch(3, 1) + batch(4, 1))], tmp_path / "out")
    assert one.log.read_bytes() == b"".join(made)


def test_the_reason_is_that_of_the_line_that_is_kept(tmp_path: Path) -> None:
    """Not that of the one without its last batch."""
    made = [batch(0, partition_leader_epoch=1), batch(90, partition_leader_epoch=1)]
    data = b"".join(made) + claim(99, 1 << 20) + batch(12) * 2
    (one,) = saved([write(tmp_path, data)], tmp_path / "out")
    assert one.log.read_bytes() == b"".join(made)
    assert [line["reason"] for line in manifest(one)][1:] == ["offsets 12 to 14 are out of order"] * 2


def test_epochs_of_what_replaces_a_wrong_offset(tmp_path: Path) -> None:
    """They are compared with those before the batch that is given up."""
    made = [batch(3 * n, partition_leader_epoch=epoch) for n, epoch in enumerate([2, 2])]
    wrong = batch(90, partition_leader_epoch=7)
    inner = [batch(9 + 3 * n, partition_leader_epoch=epoch) for n, epoch in enumerate([2, 1, 3])]
    data = b"".join(made) + wrong + claim(99, 1 << 20) + b"".join(inner)
    (one,) = saved([write(tmp_path, data)], tmp_path / "out")
    assert one.log.read_bytes() == b"".join([*made, inner[0], inner[2]])
    assert [line["reason"] for line in manifest(one)][-1].endswith("have leader epoch 1, out of order")


def test_a_right_checksum_speaks_for_all_that_it_covers(tmp_path: Path) -> None:
    outer = bytearray(encode_batch([Record(3, value=batch(4, 1, 0))], base_offset=3))
    outer[60] = 9  # records, of which there is one
    outer[17:21] = crc32c(outer[21:]).to_bytes(4)
    (one,) = saved([write(tmp_path, batch(0) + outer + batch(6))], tmp_path / "out")
    assert (one.batches, one.ranges, one.bad_bytes) == (2, 1, len(outer))


@given(st.data())
def test_any_damage_leaves_a_sound_copy(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """And no sound batch is lost whose offsets fit, whatever is written between batches."""
    junk = st.one_of(
        st.builds(
            claim, st.integers(0, 99), st.integers(0, 3000), magic=st.integers(0, 2), cut=st.integers(17, 61)
        ),
        st.binary(max_size=40),
        st.integers(0, 200).map(bytes),
    )  # fmt: skip
    between = data.draw(st.lists(junk, max_size=13))
    parts = [each for n, part in enumerate(PARTS) for each in (b"".join(between[n : n + 1]), part)]
    folder = tmp_path_factory.mktemp("between")
    (one,) = saved([write(folder, b"".join(parts))], folder / "out")
    assert set(offsets(one.log)) == set(range(12))


# --- writing ---


@pytest.mark.parametrize(
    "kind", ["log", "index", "timeindex", "txnindex", "log.quarantine", "log.quarantine.jsonl"]
)
def test_nothing_is_overwritten(tmp_path: Path, kind: str) -> None:
    path = write(tmp_path, DATA + b"junk")
    out = tmp_path / "out"
    out.mkdir()
    taken = out / f"{path.stem}.{kind}"
    taken.write_bytes(b"precious")
    with pytest.raises(FileExistsError):
        list(recover([path], out))
    assert list(out.iterdir()) == [taken]
    assert taken.read_bytes() == b"precious"


def test_not_into_its_own_folder(tmp_path: Path) -> None:
    path = write(tmp_path, DATA)
    with pytest.raises(FileExistsError):
        list(recover([path], path.parent))
    assert list(path.parent.iterdir()) == [path]


def test_two_of_one_name(tmp_path: Path) -> None:
    paths = [write(tmp_path, DATA), write(tmp_path, DATA, name="orders-1")]
    with pytest.raises(ValueError, match="two segments"):
        list(recover(paths, tmp_path / "out"))


def test_a_full_disk_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, DATA + b"junk")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        list(recover([path], tmp_path / "out"))
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
@pytest.mark.parametrize("unnamed", [True, False])
@pytest.mark.parametrize("call", ["fsync", "link"])
@pytest.mark.parametrize("after", range(7))
def test_whatever_stops_it_leaves_nothing(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    error: BaseException,
    unnamed: bool,
    call: str,
    after: int,
) -> None:
    """Neither parts nor some of the files; and an error of the system names the file that it is about."""
    if not unnamed:
        monkeypatch.setattr(staging, "_UNNAMED", 0)
    path = write(tmp_path, DATA + b"junk")
    whole = getattr(os, call)
    left = after

    def stopped(*arguments: Any, **options: Any) -> None:
        nonlocal left
        if not left:
            raise error
        left -= 1
        whole(*arguments, **options)

    monkeypatch.setattr(os, call, stopped)
    out = tmp_path / "out"
    if after >= 5 + (call == "fsync"):
        assert len(next(iter(recover([path], out))).files) == 5
        return
    with pytest.raises(type(error)) as raised:
        list(recover([path], out))
    assert list(out.iterdir()) == []
    if isinstance(raised.value, OSError):
        assert raised.value.filename is not None
        assert not raised.value.filename.endswith(".part")
        assert raised.value.filename2 is None
    monkeypatch.undo()
    assert next(iter(recover([path], out))).batches == 12


@pytest.mark.parametrize("links", [True, False])
@pytest.mark.parametrize("kind", ["log", "index", "log.quarantine"])
def test_no_link_is_followed_or_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool, kind: str
) -> None:
    """Not even one that leads nowhere, and not when it comes while the copy is made."""
    path = write(tmp_path, DATA + b"junk")
    out, elsewhere = tmp_path / "out", tmp_path / "elsewhere"
    out.mkdir()
    taken = out / f"{path.stem}.{kind}"
    taken.symlink_to(elsewhere)
    with pytest.raises(FileExistsError):
        list(recover([path], out))
    monkeypatch.setattr("coordwire.segments.recovery._refuse", lambda *_: None)
    if not links:
        monkeypatch.setattr(os, "link", refuse_links)
    with pytest.raises(FileExistsError) as raised:
        list(recover([path], out))
    assert raised.value.filename == str(taken)
    assert list(out.iterdir()) == [taken]
    assert taken.is_symlink()
    assert not elsewhere.exists()


def refuse_links(*_: object, **__: object) -> None:
    raise PermissionError(1, "Operation not permitted")


def test_a_file_system_without_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "link", refuse_links)
    saved([write(tmp_path, DATA + b"junk")], tmp_path / "out")


def test_the_copys_mode_is_the_users(tmp_path: Path) -> None:
    path = write(tmp_path, DATA)
    (one,) = saved([path], tmp_path / "out")
    assert one.log.stat().st_mode == path.stat().st_mode
