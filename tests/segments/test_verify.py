"""`Segment.verify`: nothing to say of what a broker wrote; each fault with its place and reason."""

from __future__ import annotations

import random
import re
import shutil
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from coordwire import limits
from coordwire.errors import CodecUnavailable
from coordwire.messages.control_records import EndTxnMarker
from coordwire.records import Record, control_record, encode_batch
from coordwire.records.control import ControlType
from coordwire.segments import (
    AbortedTransaction,
    Fault,
    OffsetIndex,
    OffsetPosition,
    Segment,
    SegmentCounts,
    TimeIndex,
    TimestampOffset,
    TransactionIndex,
    rebuild,
    write_snapshot,
)
from coordwire.segments import verify as verify_module
from coordwire.segments.segment import logs
from tests.broker_sample import broker_sample

from .build import START_MS, batch, log, write

PARTS = log(12)
SIZE = len(PARTS[0])
DATA = b"".join(PARTS)
NAME = "00000000000000000000"


def indexed(folder: Path, data: bytes = DATA, *, base: int = 0, interval: int = SIZE) -> Path:
    """A segment with the indexes that a broker's recovery writes."""
    path = write(folder, data, base=base)
    with Segment(path) as segment:
        for kind, content in rebuild(segment.batches(), base, interval=interval).files().items():
            path.with_suffix(f".{kind}").write_bytes(content)
    return path


def faults(path: Path, **options: Any) -> list[Fault]:
    with Segment(path) as segment:
        return list(segment.verify(**options))


def reasons(path: Path) -> list[str]:
    return [f"{fault.file.rpartition('.')[2]} {fault.reason}" for fault in faults(path)]


@pytest.mark.parametrize("part", ["data", "rebuilt"])
def test_a_brokers_segments_are_sound(part: str) -> None:
    folder = broker_sample() / part
    paths = [*logs(folder), *folder.glob("*/*.checkpoint")]
    assert len(paths) > 40
    for path in paths:
        assert faults(path) == [], path


def test_the_tally(tmp_path: Path) -> None:
    segment_counts = SegmentCounts()
    assert faults(indexed(tmp_path), counts=segment_counts) == []
    assert segment_counts == SegmentCounts(12, 36, 0, 0, 35)
    segment_counts = SegmentCounts()
    assert faults(write(tmp_path, DATA), counts=segment_counts, check_records=False) == []
    assert segment_counts == SegmentCounts(12, None, 0, 0, 35)
    assert faults(write(tmp_path, b""), counts=SegmentCounts()) != []  # the indexes say otherwise


@given(st.integers(0, len(DATA) * 8 - 1))
def test_a_flipped_bit(tmp_path_factory: pytest.TempPathFactory, bit: int) -> None:
    """It is seen wherever the checksum reaches, and its batch is the only one that is called bad."""
    data = bytearray(DATA)
    data[bit // 8] ^= 1 << bit % 8
    path = write(tmp_path_factory.mktemp("flip"), bytes(data))
    number, content = divmod(bit // 8, SIZE)
    segment_counts = SegmentCounts()
    result = faults(path, counts=segment_counts)
    if 8 <= content < 12 or content >= 16:
        assert [(fault.position, fault.length) for fault in result] == [(number * SIZE, SIZE)]
        assert (segment_counts.batches, segment_counts.bad_bytes) == (11, SIZE)
    else:
        assert segment_counts.bad_bytes == 0


@given(st.lists(st.tuples(st.integers(0, len(DATA)), st.binary(max_size=50)), max_size=3))
def test_quick_finds_the_same_ranges(
    tmp_path_factory: pytest.TempPathFactory, harm: list[tuple[int, bytes]]
) -> None:
    data = bytearray(DATA)
    for at, junk in harm:
        data[at : at + len(junk)] = junk
    path = write(tmp_path_factory.mktemp("quick"), bytes(data))
    assert faults(path) == faults(path, check_records=False)


def test_records(tmp_path: Path) -> None:
    """After a right checksum: found by reading the records alone."""
    broken = bytearray(batch(3))
    broken[60] += 1
    broken[17:21] = crc32c(broken[21:]).to_bytes(4)
    path = write(tmp_path, batch(0) + broken + batch(6))
    (fault,) = faults(path)
    assert (fault.position, fault.length) == (len(batch(0)), len(broken))
    assert "records[3]" in fault.reason
    assert faults(path, check_records=False) == []


def test_offsets_inside_a_batch(tmp_path: Path) -> None:
    data = bytearray(batch(0))
    data[26] = 1  # its last offset, below its last record's
    data[17:21] = crc32c(data[21:]).to_bytes(4)
    (fault,) = faults(write(tmp_path, bytes(data)))
    assert "records[2] has offset 2" in fault.reason


@pytest.mark.parametrize(
    ("deltas", "wrong"),
    [((0, 1, 2), False), ((0, 0, 2), True), ((0, 2, 1), True), ((-1, 1, 2), True), ((0, 1, 3), True),
     ((0, 2, 2), True), ((1, 1, 2), True)],
)  # fmt: skip
def test_offsets_rise_inside_a_batch(tmp_path: Path, deltas: tuple[int, ...], wrong: bool) -> None:
    """From its first offset to its last."""
    data = bytearray(batch(6, 3, 0))
    at = 61
    for number, delta in enumerate(deltas):
        assert data[at + 3] == 2 * number
        data[at + 3] = 2 * delta if delta >= 0 else -2 * delta - 1
        at += data[at] // 2 + 1
    assert at == len(data)
    data[17:21] = crc32c(data[21:]).to_bytes(4)
    assert len(faults(write(tmp_path, bytes(data)))) == wrong


def test_the_end_of_the_file(tmp_path: Path) -> None:
    (fault,) = faults(write(tmp_path, DATA[:-5]))
    assert fault == (f"{NAME}.log", 11 * SIZE, SIZE - 5, f"the file ends {SIZE - 5} bytes into a batch")
    (fault,) = faults(write(tmp_path, DATA + bytes(5000)))
    assert (fault.position, fault.length) == (len(DATA), 5000)
    assert "zero bytes" in fault.reason


def test_all_bad_bytes_are_counted(tmp_path: Path) -> None:
    segment_counts = SegmentCounts()
    path = write(tmp_path, b"?" * 100 + PARTS[0] + b"?" * 80 + PARTS[1] + PARTS[2][:-3])
    assert len(faults(path, counts=segment_counts)) == 3
    assert segment_counts.bad_bytes == 100 + 80 + SIZE - 3


def test_over_a_limit(tmp_path: Path) -> None:
    path = write(tmp_path, encode_batch([Record(0, value=bytes(100_000))], codec="zstd"))
    with limits(decompressed=1000):
        assert len(faults(path)) == 1
    assert faults(path) == []


def test_without_a_codec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is wrong is found; what couldn't be read is not a fault, and isn't passed over either."""
    path = write(tmp_path, batch(0) + batch(3, codec="zstd") + batch(6)[:-1] + b"!" + batch(9, codec="lz4"))
    for name in ("zstandard", "lz4.frame"):
        monkeypatch.setitem(sys.modules, name, None)
    segment_counts = SegmentCounts()
    results: list[Fault] = []
    with Segment(path) as segment, pytest.raises(CodecUnavailable, match=r"zstd.*coordwire\[compression\]"):
        results.extend(segment.verify(counts=segment_counts))
    assert ["CRC-32C" in fault.reason for fault in results] == [True]
    assert (segment_counts.batches, segment_counts.records, segment_counts.unread) == (3, 3, 2)
    assert len(faults(path, check_records=False)) == 1


# --- order ---


@pytest.mark.parametrize(
    ("data", "base", "reason"),
    [
        (batch(0) + batch(0), 0, "offsets 0 to 2 after offset 2"),
        (batch(10) + batch(3), 0, "offsets 3 to 5 after offset 12"),
        (batch(0, 1) + batch(0, 1), 0, "offset 0 after offset 0"),
        (batch(3), 10, "offsets 3 to 5 in a segment that begins at 10"),
        (batch(1 << 31), 0, "offsets 2147483648 to 2147483650 in a segment that begins at 0"),
        (
            batch(0, partition_leader_epoch=4) + batch(3, partition_leader_epoch=3),
            0,
            "leader epoch 3 after 4",
        ),
    ],
)
def test_order(tmp_path: Path, data: bytes, base: int, reason: str) -> None:
    (fault,) = faults(write(tmp_path, data, base=base))
    assert fault.reason == reason


@pytest.mark.parametrize(
    ("base", "first", "wrong"),
    [(10, 9, True), (10, 10, False), (10, 7 + (1 << 31), False), (10, 8 + (1 << 31), True)],
)
def test_the_first_and_the_last_offset_of_a_segment(
    tmp_path: Path, base: int, first: int, wrong: bool
) -> None:
    """Its base offset, and 2^31 - 1 beyond."""
    assert len(faults(write(tmp_path, batch(first), base=base))) == wrong


@pytest.mark.parametrize(
    ("epochs", "wrong"),
    [([4, 4, 5], 0), ([4, -1, 4], 0), ([-1, -1, 0], 0), ([4, -1, 3], 1), ([4, 3, 4], 1), ([4, 3, 2], 2)],
)
def test_leader_epochs(tmp_path: Path, epochs: list[int], wrong: int) -> None:
    """They don't fall; a batch that has none says nothing of them."""
    data = b"".join(batch(3 * n, partition_leader_epoch=epoch) for n, epoch in enumerate(epochs))
    assert len(faults(write(tmp_path, data))) == wrong


# --- indexes ---


def offsets(*rows: tuple[int, int]) -> bytes:
    return OffsetIndex.pack([OffsetPosition(*row) for row in rows], 0)


def times(*rows: tuple[int, int]) -> bytes:
    return TimeIndex.pack([TimestampOffset(START_MS + stamp, offset) for stamp, offset in rows], 0)


@pytest.mark.parametrize(
    ("data", "wanted"),
    [
        (offsets((8, 2 * SIZE)), []),
        (offsets((8, 2 * SIZE)) + bytes(8000), []),
        (offsets((11, 2 * SIZE)), []),  # two batches that were appended together
        (offsets((8, 2 * SIZE + 1)), [f"entry 0: no batch begins at byte {2 * SIZE + 1}"]),
        (offsets((9, 2 * SIZE)), ["entry 0: no batch ends with offset 9"]),
        (offsets((6, 2 * SIZE)), [f"entry 0: the batch at byte {2 * SIZE} ends with offset 8, not 6"]),
        (offsets((8, 2 * SIZE), (5, 3 * SIZE)), ["entry 1: .* can't follow .*"]),
        (offsets((8, 2 * SIZE), (11, SIZE)), ["entry 1: .* can't follow .*"]),
        (offsets((8, 2 * SIZE), (11, 2 * SIZE)), ["entry 1: .* can't follow .*"]),
        (offsets((8, 2 * SIZE), (8, 3 * SIZE)), ["entry 1: .* can't follow .*"]),
        (
            offsets((8, 2 * SIZE), (40, 99 * SIZE)),
            [f"entry 1: byte {99 * SIZE} is after the log's last batch"],
        ),
        (offsets((40, 11 * SIZE)), ["entry 0: offset 40 is after the log's last"]),
        (offsets((8, 2 * SIZE)) + b"\0\0\1", ["3 bytes after the last entry of 8"]),
    ],
)
def test_offset_indexes(tmp_path: Path, data: bytes, wanted: list[str]) -> None:
    path = write(tmp_path, DATA)
    path.with_suffix(".index").write_bytes(data)
    result = reasons(path)
    assert len(result) == len(wanted)
    for reason, pattern in zip(result, wanted, strict=True):
        assert re.fullmatch(f"index {pattern}", reason)


@pytest.mark.parametrize(
    ("data", "wanted"),
    [
        (times((8, 8), (35, 35)), []),
        (times((8, 8)) + bytes(12_000), []),
        (times((8, 7)), []),  # Kafka before 3.9: the record's own offset
        (times((7, 8)), [f"entry 0: the batch of offset 8 has the timestamp {START_MS + 8}, not .*7",
                         f"no entry for timestamp {START_MS + 8}, .*"]),
        (times((7, 8), (8, 8)), [f"entry 0: the batch of offset 8 has the timestamp {START_MS + 8}, .*"]),
        (times((8, 8), (5, 11)), ["entry 1: .* can't follow .*"]),
        (times((8, 8), (8, 11)), ["entry 1: .* can't follow .*"]),
        (times((8, 8), (9, 7)), ["entry 1: .* can't follow .*"]),
        (times((8, 8), (40, 40)), ["entry 1: offset 40 is after the log's last"]),
        (times((35, 35)), [f"no entry for timestamp {START_MS + 8}, though .* for offset 8"]),
        (b"", [f"no entry for timestamp {START_MS + 8}, though .* for offset 8"]),
        (times((8, 8)) + b"\0", ["1 byte after the last entry of 12"]),
    ],
)  # fmt: skip
def test_time_indexes(tmp_path: Path, data: bytes, wanted: list[str]) -> None:
    path = write(tmp_path, DATA)
    path.with_suffix(".index").write_bytes(offsets((8, 2 * SIZE)))
    path.with_suffix(".timeindex").write_bytes(data)
    result = reasons(path)
    assert len(result) == len(wanted), result
    for reason, pattern in zip(result, wanted, strict=True):
        assert re.fullmatch(f"timeindex {pattern}", reason)


def test_indexes_of_the_first_offset(tmp_path: Path) -> None:
    """An entry may say the segment's base offset, and its first byte."""
    path = write(tmp_path, batch(7, 1) + batch(8), base=7)
    size = len(batch(7, 1))
    path.with_suffix(".index").write_bytes(
        OffsetIndex.pack([OffsetPosition(7, 0), OffsetPosition(10, size)], 7)
    )
    stamps = [TimestampOffset(START_MS + offset, offset) for offset in (7, 10)]
    path.with_suffix(".timeindex").write_bytes(TimeIndex.pack(stamps, 7))
    assert faults(path) == []


def test_the_largest_time_has_an_entry_though_later_ones_are_smaller(tmp_path: Path) -> None:
    path = write(tmp_path, batch(0, stamp=START_MS + 50) + batch(3, stamp=START_MS))
    path.with_suffix(".index").write_bytes(offsets((5, SIZE)))
    path.with_suffix(".timeindex").write_bytes(b"")
    (fault,) = faults(path)
    assert fault.reason.startswith(f"no entry for timestamp {START_MS + 52}, ")


def test_the_producer_0_may_abort(tmp_path: Path) -> None:
    path = write(tmp_path, transaction(producer=0))
    path.with_suffix(".txnindex").write_bytes(b"")
    assert reasons(path) == ["txnindex no entry for the transaction that is aborted at offset 3"]


def test_a_time_before_1970_has_no_entry(tmp_path: Path) -> None:
    path = write(tmp_path, batch(0, 1, stamp=0) + batch(1, 1, stamp=5))
    path.with_suffix(".timeindex").write_bytes(
        TimeIndex.pack([TimestampOffset(0, 0), TimestampOffset(5, 1)], 0)
    )
    assert faults(path) == []
    path.with_suffix(".timeindex").write_bytes(
        TimeIndex.pack([TimestampOffset(-1, 0), TimestampOffset(5, 1)], 0)
    )
    assert len(faults(path)) == 1


def test_a_time_of_no_batch(tmp_path: Path) -> None:
    path = write(tmp_path, batch(0) + batch(100))
    path.with_suffix(".timeindex").write_bytes(times((2, 2), (50, 50)))
    assert reasons(path) == ["timeindex entry 1: no batch has the offset 50"]


def transaction(producer: int = 7, kind: ControlType = ControlType.ABORT) -> bytes:
    facts: dict[str, Any] = {"producer_id": producer, "producer_epoch": 0, "transactional": True}
    marker = control_record(kind, EndTxnMarker(coordinator_epoch=1), offset=3, timestamp=START_MS + 3)
    return batch(0, base_sequence=0, **facts) + encode_batch(
        [marker], control=True, partition_leader_epoch=0, **facts
    )


ABORTED = AbortedTransaction(7, 0, 3, 4)


@pytest.mark.parametrize(
    ("entries", "more", "wanted"),
    [
        ([ABORTED], b"", []),
        ([ABORTED._replace(first_offset=3)], b"", []),
        ([], b"", ["no entry for the transaction that is aborted at offset 3"]),
        ([ABORTED._replace(producer_id=8)], b"", ["entry 0: the marker at offset 3 is of producer 7, not 8"]),
        (
            [ABORTED._replace(version=1)],
            b"",
            [".*expected entry version 0, got 1", "no entry for the .*"],
        ),
        ([AbortedTransaction(7, 0, 2, 3), ABORTED], b"", ["entry 0: no abort marker at offset 2"]),
        ([ABORTED, AbortedTransaction(7, 4, 9, 10)], b"", ["entry 1: no abort marker at offset 9"]),
        ([ABORTED, ABORTED], b"", ["entry 1: offsets 0 to 3 can't follow 3"]),
        ([ABORTED], bytes(40), ["40 bytes after the last entry of 34"]),
    ],
)
def test_transaction_indexes(
    tmp_path: Path, entries: list[AbortedTransaction], more: bytes, wanted: list[str]
) -> None:
    path = write(tmp_path, transaction())
    path.with_suffix(".txnindex").write_bytes(TransactionIndex.pack(entries) + more)
    result = reasons(path)
    assert len(result) == len(wanted), result
    for reason, pattern in zip(result, wanted, strict=True):
        assert re.fullmatch(f"txnindex {pattern}", reason)


def test_a_committed_transaction_has_no_entry(tmp_path: Path) -> None:
    path = write(tmp_path, transaction(kind=ControlType.COMMIT))
    assert faults(path) == []
    path.with_suffix(".txnindex").write_bytes(TransactionIndex.pack([ABORTED]))
    assert reasons(path) == ["txnindex entry 0: no abort marker at offset 3"]


def test_indexes_of_what_is_bad_in_the_log(tmp_path: Path) -> None:
    """The log's fault alone is reported, not that its index points there."""
    path = indexed(tmp_path)
    data = bytearray(DATA)
    data[4 * SIZE : 7 * SIZE] = b"\xff" * (3 * SIZE)
    path.write_bytes(data)
    assert [(fault.file, fault.position) for fault in faults(path)] == [(f"{NAME}.log", 4 * SIZE)]
    path.write_bytes(DATA[: 9 * SIZE + 9])
    assert [(fault.file, fault.position) for fault in faults(path)] == [(f"{NAME}.log", 9 * SIZE)]


@given(st.binary(max_size=60), st.binary(max_size=60), st.binary(max_size=80))
def test_hostile_indexes(
    tmp_path_factory: pytest.TempPathFactory, one: bytes, two: bytes, three: bytes
) -> None:
    """Whatever they hold, faults are reported with their bytes, and the log is read."""
    path = write(tmp_path_factory.mktemp("hostile"), DATA)
    for kind, data in (("index", one), ("timeindex", two), ("txnindex", three)):
        path.with_suffix(f".{kind}").write_bytes(data)
    segment_counts = SegmentCounts()
    for fault in faults(path, counts=segment_counts):
        assert fault.reason
        assert fault.position + fault.length <= path.with_name(fault.file).stat().st_size
    assert segment_counts.batches == 12


# --- beside it ---


def test_small_files(tmp_path: Path) -> None:
    path = write(tmp_path, DATA)
    path.with_suffix(".snapshot").write_bytes(write_snapshot([])[:-1] + b"\1")
    path.with_name("leader-epoch-checkpoint").write_bytes(b"0\n1\n")
    path.with_name("partition.metadata").write_bytes(b"version: 7")
    result = faults(path)
    assert [fault.file for fault in result] == [
        "leader-epoch-checkpoint", "partition.metadata", f"{NAME}.snapshot"
    ]  # fmt: skip
    assert "CRC-32C" in result[2].reason


# --- plain batches ---


def nothing_is_plain(*_: object) -> Generator[Fault, None, int]:
    return 0
    yield


def both_ways(path: Path, monkeypatch: pytest.MonkeyPatch, *, check_records: bool) -> tuple[Any, Any]:
    """Faults and counts, with plain batches read quickly and by the reader that reports alone."""
    results = []
    for plainly in (verify_module._plain_batches, nothing_is_plain):
        with monkeypatch.context() as patch:
            patch.setattr(verify_module, "_plain_batches", plainly)
            counts = SegmentCounts()
            results.append((faults(path, check_records=check_records, counts=counts), counts))
    return results[0], results[1]


def test_the_quick_way_over_plain_batches_reports_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of real and of built segments, of damaged ones, and of damaged indexes."""
    source = random.Random(5)
    indexed(tmp_path / "built")
    folders = [
        path.parent for path in (*logs(broker_sample() / "data"), *(tmp_path / "built").rglob("*.log"))
    ]
    different = 0
    for number, folder in enumerate(dict.fromkeys(folders)):
        copy = tmp_path / str(number) / folder.name
        shutil.copytree(folder, copy)
        for path in logs(copy):
            quick, slow = both_ways(path, monkeypatch, check_records=True)
            assert quick == slow
            targets = [path, *path.parent.glob("*index")]
            for turn in range(6):
                target = source.choice(targets) if turn % 3 else path
                data = bytearray(target.read_bytes()[: 1 << 16])
                if not data:
                    continue
                original = bytes(data)
                for _ in range(source.randint(1, 3)):
                    data[source.randrange(len(data))] ^= 1 << source.randrange(8)
                if turn % 4 == 3:
                    del data[source.randrange(len(data)) :]
                target.write_bytes(data)
                quick, slow = both_ways(path, monkeypatch, check_records=turn % 2 == 0)
                assert quick == slow, (path, turn)
                different += bool(quick[0])
                target.write_bytes(original)
    assert different > 100
