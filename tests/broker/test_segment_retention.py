"""A log loses whole segments, the oldest first, in memory and on disk: which ones its policies choose."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

import pytest

from coordwire.broker import BrokerConfig
from coordwire.broker.harness import Kafka
from coordwire.broker.log.disk_loading import create_log, load_log
from coordwire.broker.log.partition_log import PartitionLog
from coordwire.broker.log.retention import (
    DeletePolicy,
    LargerThan,
    LogSegment,
    ModifiedBefore,
    OlderThan,
    SegmentRules,
)
from coordwire.broker.log.storage import MemoryStorage
from coordwire.broker.log.validation import AppendRules, one_batch
from coordwire.records import Record, encode_batch

NOW = 1_700_000_000_000
DAY = 86_400_000


def batch(time: int = NOW, size: int = 100) -> bytes:
    return encode_batch([Record(timestamp=time, key=None, value=bytes(size))], base_offset=0)


THREE = SegmentRules(segment_bytes=3 * len(batch()), segment_ms=10 * DAY)
"""Three batches of one record fill a segment."""


@pytest.fixture(params=["memory", "disk"])
def log(request: pytest.FixtureRequest, tmp_path: Path) -> PartitionLog:
    if request.param == "memory":
        return PartitionLog(storage=MemoryStorage(THREE))
    return create_log(tmp_path / "t-0", UUID(int=5), THREE)


def append(log: PartitionLog, time: int = NOW, now: int = NOW) -> None:
    log.append(one_batch(batch(time), version=9), AppendRules(after_max_ms=1 << 50), now)


def bases(log: PartitionLog) -> list[int]:
    return [segment.base_offset for segment in log.segments()]


def offsets(log: PartitionLog) -> list[int]:
    return [record.offset for element in log.batches() for record in element]


def remove(log: PartitionLog, *policies: DeletePolicy, now: int = NOW) -> bool:
    return log.remove_old(now, policies)


def test_one_old_record_leaves_with_its_segment(log: PartitionLog) -> None:
    """retention.ms is judged by a segment's largest timestamp, wherever in it that is."""
    for age in (9, 8, 7, 9, 1, 9, 9, 9):
        append(log, NOW - age * DAY)
    assert bases(log) == [0, 3, 6]
    assert remove(log, OlderThan(5 * DAY))
    assert (log.start_offset, bases(log), offsets(log)) == (3, [3, 6], [3, 4, 5, 6, 7])
    assert not remove(log, OlderThan(5 * DAY))  # the next one has a young record
    assert log.start_offset == 3


def test_the_size_is_that_of_whole_segments(log: PartitionLog) -> None:
    for _ in range(8):
        append(log)
    size = log.size // 8
    assert not remove(log, LargerThan(-1), LargerThan(6 * size), OlderThan(-1))  # 5 would be left
    assert remove(log, LargerThan(5 * size))
    assert (log.start_offset, log.size) == (3, 5 * size)


def test_the_policies_follow_one_another(log: PartitionLog) -> None:
    """The first segment is young and goes for its size; then the second is the oldest, and too old."""
    for age in (0, 0, 0, 9, 9, 9, 0):
        append(log, NOW - age * DAY)
    assert remove(log, LargerThan(4 * len(batch())), OlderThan(5 * DAY))
    assert log.start_offset == 6


def test_the_active_segment_is_closed_before_it_goes(log: PartitionLog) -> None:
    for _ in range(4):
        append(log, NOW - 9 * DAY)
    assert remove(log, OlderThan(5 * DAY))
    assert (log.start_offset, log.end_offset, bases(log), log.size) == (4, 4, [4], 0)
    assert not remove(log, OlderThan(5 * DAY))
    append(log)
    assert (offsets(log), bases(log)) == ([4], [4])


def test_records_that_were_deleted_within_a_segment_stay_deleted(log: PartitionLog) -> None:
    """DeleteRecords moves the start to any offset; a segment before it goes by its policies."""
    for age in (9, 9, 9, 0, 0):
        append(log, NOW - age * DAY)
    log.delete_before(2)
    assert (log.start_offset, bases(log), offsets(log)) == (2, [0, 3], [2, 3, 4])
    log.delete_before(4)
    assert (log.start_offset, bases(log), offsets(log)) == (4, [3], [4])
    append(log)
    assert remove(log, LargerThan(0))
    assert (log.start_offset, bases(log)) == (6, [6])
    for _ in range(3):
        append(log, NOW - 9 * DAY)
    log.delete_before(9)
    assert not remove(log, OlderThan(5 * DAY))  # it begins there already, and loses the segment
    assert (log.start_offset, bases(log)) == (9, [9])


def test_several_segments_go_at_once(log: PartitionLog) -> None:
    for age in (9, 9, 9, 9, 9, 9, 9, 9, 9, 0, 0):
        append(log, NOW - age * DAY)
    log.delete_before(1)
    assert remove(log, OlderThan(5 * DAY))
    assert (log.start_offset, bases(log), offsets(log)) == (9, [9], [9, 10])
    for _ in range(6):
        append(log)
    log.delete_before(16)
    assert (bases(log), offsets(log)) == ([15], [16])
    append(log)
    log.truncate(17)
    assert (log.end_offset, offsets(log)) == (17, [16])


def test_a_segment_is_full_after_its_time(log: PartitionLog) -> None:
    """segment.ms: between the first batch's timestamp and a new one's."""
    append(log, NOW - 11 * DAY)
    append(log, NOW - 1 * DAY)
    append(log, NOW)
    assert bases(log) == [0, 2]


def test_a_log_that_ends_earlier_has_the_segments_of_what_is_left(log: PartitionLog) -> None:
    for age in (5, 4, 3, 2, 1):
        append(log, NOW - age * DAY)
    log.truncate(4)
    assert (bases(log), log.segments()[-1].latest) == ([0, 3], NOW - 2 * DAY)
    log.truncate(2)
    assert (bases(log), log.segments()[-1].latest) == ([0], NOW - 4 * DAY)
    assert log.segments()[-1].size == log.size


def test_a_restart_begins_with_the_first_segment_that_is_left(tmp_path: Path) -> None:
    log = create_log(tmp_path / "t-0", UUID(int=5), THREE)
    for age in (9, 9, 9, 0):
        append(log, NOW - age * DAY)
    assert remove(log, OlderThan(5 * DAY))
    log.close()
    assert [path.name for path in sorted((tmp_path / "t-0").glob("*.log"))] == ["00000000000000000003.log"]
    again = load_log(tmp_path / "t-0", THREE)
    assert (again.start_offset, offsets(again)) == (3, [3])
    append(again, NOW + 11 * DAY)
    assert bases(again) == [3, 4]  # segment.ms counts from the batch of before
    again.close()


def test_a_policy_by_modification_time(log: PartitionLog) -> None:
    """The implementation page's: when a file was last written to, whatever its timestamps are."""
    for time in (NOW - 9 * DAY, NOW - 9 * DAY, NOW - 6 * DAY, NOW - 4 * DAY):
        append(log, NOW, now=time)
    folder = getattr(log._storage, "folder", None)
    if folder is not None:
        for path, age in zip(sorted(folder.glob("*.log")), (6, 4), strict=True):
            os.utime(path, times=((NOW - age * DAY) / 1000,) * 2)
    assert not remove(log, OlderThan(5 * DAY), ModifiedBefore(6 * DAY))
    assert remove(log, ModifiedBefore(5 * DAY))
    assert log.start_offset == 3


def test_a_broker_takes_policies_of_its_own() -> None:
    """Pluggable: beside those of the topic's settings, and only where the topic deletes."""

    @dataclass(frozen=True)
    class NewestOnly:
        """Keeps so many segments."""

        number: int

        def count(self, segments: Sequence[LogSegment], now: int) -> int:
            return max(len(segments) - self.number, 0)

    with Kafka(config=BrokerConfig(delete_policies=(NewestOnly(9), NewestOnly(2)))) as kafka:
        kafka.create_topic("events", segment_ms=1, retention_ms=-1)
        kafka.create_topic("kept", segment_ms=1, cleanup_policy="compact")
        for topic in ("events", "kept"):
            for number in range(5):
                kafka.produce(topic, f"{number}", key=f"{number}", timestamp=NOW + 10 * number)
        kafka.moves.clean()
        assert [record.offset for record in kafka.records("events")] == [3, 4]
        assert len(kafka.records("kept")) == 5


def test_a_policy_that_chooses_less_than_nothing_saves_no_segment(log: PartitionLog) -> None:
    @dataclass(frozen=True)
    class AllBut:
        """Keeps so many segments, and counts no further."""

        number: int

        def count(self, segments: Sequence[LogSegment], now: int) -> int:
            return len(segments) - self.number

    for age in (9, 9, 9, 0):
        append(log, NOW - age * DAY)
    assert remove(log, OlderThan(5 * DAY), AllBut(5))
    assert bases(log) == [3]


def test_a_compacted_segment_is_as_old_as_what_is_left_of_it() -> None:
    log = PartitionLog(storage=MemoryStorage(THREE))
    for key, age in ((b"a", 9), (b"b", 1), (b"b", 0), (b"b", 0)):
        record = Record(timestamp=NOW - age * DAY, key=key, value=bytes(100))
        rules = AppendRules(after_max_ms=1 << 50)
        log.append(one_batch(encode_batch([record], base_offset=0), version=9), rules, NOW)
    assert [segment.latest for segment in log.segments()] == [NOW - DAY, NOW]
    log.compact(NOW, tombstones_ms=DAY)
    assert (bases(log), [segment.latest for segment in log.segments()]) == ([0, 2], [NOW - 9 * DAY, NOW])
    assert remove(log, OlderThan(5 * DAY))
    assert (log.start_offset, offsets(log)) == (2, [2, 3])
