"""A partition's log against a naive one, and what it refuses."""

from __future__ import annotations

import struct
import sys
from dataclasses import dataclass, field
from typing import Any

import crc32c
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordwire.broker.log.leader_epochs import LeaderEpochs
from coordwire.broker.log.partition_log import FoundTime, LoadedLog, PartitionLog
from coordwire.broker.log.producer_states import ProducerStates
from coordwire.broker.log.storage import BatchTable
from coordwire.broker.log.validation import AppendRules, RefusedRecords, one_batch
from coordwire.enums import ErrorCode
from coordwire.messages.control_records import EndTxnMarker
from coordwire.records import ControlType, Record, batches, control_record, encode_batch
from tests.broker.core import batch, records_of

NOW = 1_700_000_000_000
RULES = AppendRules()


def append(log: PartitionLog, data: bytes, rules: AppendRules = RULES, version: int = 13) -> int:
    return log.append(one_batch(data, version), rules, NOW).base_offset


def refused(log: PartitionLog, data: bytes, rules: AppendRules = RULES, version: int = 13) -> ErrorCode:
    before = log.end_offset, log.size
    with pytest.raises(RefusedRecords) as error_info:
        append(log, data, rules, version)
    assert (log.end_offset, log.size) == before
    return ErrorCode(error_info.value.code)


def marker(log: PartitionLog, kind: ControlType, producer: int) -> None:
    end = control_record(kind, EndTxnMarker(coordinator_epoch=1), timestamp=NOW)
    log.append_own(
        encode_batch(
            [end], base_offset=0, producer_id=producer, producer_epoch=0, transactional=True, control=True
        )
    )


# --- against a naive log ---


@dataclass
class Naive:
    """A list of batches: their records' offsets, times and values."""

    batches: list[list[tuple[int, int, bytes]]] = field(default_factory=list)
    start: int = 0
    end: int = 0

    def append(self, times: list[int]) -> None:
        self.batches.append([(self.end + n, time, b"%d" % time) for n, time in enumerate(times)])
        self.end += len(times)

    def visible(self) -> list[tuple[int, int, bytes]]:
        return [record for one in self.batches for record in one if record[0] >= self.start]

    def find(self, time: int) -> tuple[int, int] | None:
        return next(((stamp, offset) for offset, stamp, _ in self.visible() if stamp >= time), None)


Step = tuple[str, list[int]]
steps = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.lists(st.integers(NOW - 50, NOW + 50), min_size=1, max_size=4)),
        st.tuples(st.just("delete"), st.lists(st.integers(0, 40), min_size=1, max_size=1)),
    ),
    max_size=15,
)


@settings(max_examples=50)
@given(steps, st.integers(0, 400))
def test_a_log_is_a_naive_log(done: list[Step], budget: int) -> None:
    log, naive = PartitionLog(), Naive()
    for what, numbers in done:
        if what == "append":
            records = [Record(timestamp=time, value=b"%d" % time) for time in numbers]
            assert append(log, encode_batch(records, base_offset=0)) == naive.end
            naive.append(numbers)
        elif numbers[0] <= naive.end:
            naive.start = max(naive.start, numbers[0])
            assert log.delete_before(numbers[0]) == naive.start
        else:
            with pytest.raises(RefusedRecords):
                log.delete_before(numbers[0])
    assert (log.start_offset, log.high_watermark) == (naive.start, naive.end)
    for offset in range(naive.start, naive.end + 1):
        held = [one for one in naive.batches if one[-1][0] >= offset]
        data = log.read(offset, 1 << 20).data
        assert list(records_of(data)) == [(at, value) for one in held for at, _, value in one]
        assert log.bytes_after(offset, log.high_watermark) == len(data)
        some = log.read(offset, budget, at_least_one=False).data
        assert len(some) <= budget
        assert data.startswith(some)
        sizes = [one.size for one in batches(data)]
        fitting = max(n for n in range(len(sizes) + 1) if sum(sizes[:n]) <= budget)
        assert len(some) == sum(sizes[:fitting])
        assert len(log.read(offset, budget).data) == (len(some) or sum(sizes[:1]))
    for time in range(NOW - 52, NOW + 52, 8):
        result = log.find_time(time, log.high_watermark)
        assert (None if result is None else (result.timestamp, result.offset)) == naive.find(time)
    latest = log.latest_time()
    times = [record[1] for record in naive.visible()]
    if latest is not None and naive.start == 0:
        assert (latest.timestamp, latest.offset) == naive.find(max(times))


def test_an_offset_outside_the_log_is_refused() -> None:
    log = PartitionLog()
    append(log, batch(b"a", b"b"))
    log.delete_before(1)
    for offset in (0, 3, -1):
        with pytest.raises(RefusedRecords) as error_info:
            log.read(offset, 100)
        assert error_info.value.code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert log.read(2, 100).data == b""


def test_a_read_has_whole_batches_up_to_its_bytes() -> None:
    log = PartitionLog()
    for number in range(3):
        append(log, batch(b"value %d" % number))
    one = log.read(0, 1).data
    assert len(log.read(0, 1 << 20).data) == 3 * len(one)
    sizes = [len(log.read(0, most).data) for most in (2 * len(one) - 1, 2 * len(one), 3 * len(one) - 1)]
    assert sizes == [len(one), 2 * len(one), 2 * len(one)]


# --- what a producer may send ---


@pytest.mark.parametrize("first", [1, (1 << 32) - 1, 1 << 32, 1 << 40, (1 << 62) + 5])
def test_offsets_have_64_bits(first: int) -> None:
    table = BatchTable()
    log = PartitionLog(loaded=LoadedLog(table, LeaderEpochs(), ProducerStates(), [], first, first))
    assert [append(log, batch(b"one", b"two")) for _ in range(3)] == [first, first + 2, first + 4]
    for number in range(6):
        (found,) = batches(log.read(first + number, 1).data)
        assert (found.base_offset, found.count) == (first + number - number % 2, 2)
    assert log.read(first + 6, 1).data == b""
    for offset in (first - 1, first + 7, first & 0xFFFF_FFFE if first >> 32 else 0):
        with pytest.raises(RefusedRecords):
            log.read(offset, 1)
    log.delete_before(first + 2)
    assert [one.base_offset for one in log.batches()] == [first + 2, first + 4]


def test_the_broker_writes_offset_and_epoch_over_the_producers() -> None:
    log = PartitionLog(epoch=7)
    append(log, batch(b"a"))
    append(log, batch(b"b", b"c", codec="gzip"))
    (_, second) = batches(log.read(0, 1 << 20).data)
    second.check()
    assert (second.base_offset, second.last_offset, second.partition_leader_epoch) == (1, 2, 7)
    assert second.codec == "gzip"
    assert log.epoch_end(7) == (7, 3)


def test_log_append_time_is_the_brokers() -> None:
    log = PartitionLog()
    rules = AppendRules(append_time=True)
    appended = log.append(one_batch(batch(b"a", timestamp=5), 13), rules, NOW)
    assert appended.append_time == NOW
    (one,) = batches(log.read(0, 1000).data)
    assert one.timestamp_type == "LogAppendTime"
    assert [record.timestamp for record in one] == [NOW]


def test_the_largest_timestamp_is_computed_anew() -> None:
    log = PartitionLog()
    append(log, batch(b"a", b"b", max_timestamp=NOW + 1000))
    (one,) = batches(log.read(0, 1000).data)
    assert one.max_timestamp == NOW + 1
    one.check()


def test_a_topics_codec_replaces_the_producers() -> None:
    log = PartitionLog()
    append(log, batch(b"a", b"b", codec="gzip"), AppendRules(codec="none"))
    append(log, batch(b"c", producer_id=5, producer_epoch=0, base_sequence=0), AppendRules(codec="gzip"))
    results = list(batches(log.read(0, 1 << 20).data))
    assert [result.codec for result in results] == ["none", "gzip"]
    assert [record.value for result in results for record in result] == [b"a", b"b", b"c"]
    assert (results[1].producer_id, results[1].base_sequence) == (5, 0)


def damaged() -> bytes:
    data = bytearray(batch(b"value"))
    data[-1] ^= 1
    return bytes(data)


def counted_wrong() -> bytes:
    return batch(b"a", b"b", last_offset=7)


@pytest.mark.parametrize(
    ("data", "rules", "version", "error"),
    [
        (b"", RULES, 13, ErrorCode.INVALID_RECORD),
        (batch(b"a")[:-1], RULES, 13, ErrorCode.INVALID_RECORD),
        (b"\0" * 40, RULES, 13, ErrorCode.CORRUPT_MESSAGE),
        (damaged(), RULES, 13, ErrorCode.CORRUPT_MESSAGE),
        (batch(b"a") + batch(b"b"), RULES, 13, ErrorCode.INVALID_RECORD),
        (batch(b"a", magic=1), RULES, 13, ErrorCode.INVALID_RECORD),
        (batch(), RULES, 13, ErrorCode.INVALID_RECORD),
        (counted_wrong(), RULES, 13, ErrorCode.INVALID_RECORD),
        (encode_batch([Record(value=b"a")], base_offset=3), RULES, 13, ErrorCode.INVALID_RECORD),
        (batch(b"a" * 200), AppendRules(max_message_bytes=100), 13, ErrorCode.MESSAGE_TOO_LARGE),
        (batch(b"a", timestamp=NOW + 3_600_001), RULES, 13, ErrorCode.INVALID_TIMESTAMP),
        (batch(b"a", timestamp=NOW - 6), AppendRules(before_max_ms=5), 13, ErrorCode.INVALID_TIMESTAMP),
        (
            batch(b"a", timestamp_type="LogAppendTime", max_timestamp=-1),
            RULES,
            13,
            ErrorCode.INVALID_TIMESTAMP,
        ),
        (batch(b"a"), AppendRules(compacted=True), 13, ErrorCode.INVALID_RECORD),
        (batch(b"a", control=True), RULES, 13, ErrorCode.INVALID_RECORD),
        (batch(b"a", producer_id=1, producer_epoch=0), RULES, 13, ErrorCode.INVALID_RECORD),
    ],
)
def test_what_is_refused(data: bytes, rules: AppendRules, version: int, error: ErrorCode) -> None:
    assert refused(PartitionLog(), data, rules, version) is error


def test_a_batch_may_have_as_many_bytes_as_the_topic_allows() -> None:
    data = batch(b"a" * 200)
    assert append(PartitionLog(), data, AppendRules(max_message_bytes=len(data))) == 0
    rules = AppendRules(max_message_bytes=len(data) - 1)
    assert refused(PartitionLog(), data, rules, 13) is ErrorCode.MESSAGE_TOO_LARGE


def test_zstd_came_with_version_7() -> None:
    pytest.importorskip("zstandard")
    data = batch(b"a" * 100, codec="zstd")
    assert refused(PartitionLog(), data, version=6) is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert append(PartitionLog(), data, version=7) == 0


# --- without a codec's library ---


def compressed(*values: bytes, **options: Any) -> bytes:
    pytest.importorskip("zstandard")
    return batch(*values, codec="zstd", **options)


def without_zstd(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "zstandard", None)


def changed(data: bytes, layout: str, position: int, value: int) -> bytes:
    """A batch with another value in its header, and the checksum that fits."""
    made = bytearray(data)
    struct.pack_into(layout, made, position, value)
    struct.pack_into(">I", made, 17, crc32c.crc32c(made[21:]))
    return bytes(made)


def test_records_are_stored_as_they_came_without_the_codec(monkeypatch: pytest.MonkeyPatch) -> None:
    data = compressed(b"a" * 50, b"b" * 50)
    without_zstd(monkeypatch)
    log = PartitionLog()
    for rules in (RULES, AppendRules(codec="gzip"), AppendRules(compacted=True)):
        appended = log.append(one_batch(data, 13), rules, NOW)
        assert "zstandard" in (appended.missing_library or "")
    appended = log.append(one_batch(batch(b"c"), 13), AppendRules(codec="zstd"), NOW)
    assert "zstandard" in (appended.missing_library or "")
    assert log.append(one_batch(batch(b"d"), 13), RULES, NOW).missing_library is None
    assert log.end_offset == 8
    monkeypatch.undo()
    values = [value for _, value in records_of(log.read(0, 1 << 20).data)]
    assert values == [b"a" * 50, b"b" * 50] * 3 + [b"c", b"d"]
    stored = log.read(0, 1).data  # but for the offset and the epoch, which the broker writes
    assert (stored[8:12], stored[16:]) == (data[8:12], data[16:])


def test_the_header_is_judged_without_the_codec(monkeypatch: pytest.MonkeyPatch) -> None:
    data = compressed(b"a" * 50, b"b" * 50)
    without_zstd(monkeypatch)
    log = PartitionLog()
    assert refused(log, data[:-1] + bytes([data[-1] ^ 1])) is ErrorCode.CORRUPT_MESSAGE
    for count in (-1, 0, 1, 3, (1 << 31) - 1):
        assert refused(log, changed(data, ">i", 57, count)) is ErrorCode.INVALID_RECORD
    far = changed(data, ">q", 35, NOW + 4_000_000)
    assert refused(log, far) is ErrorCode.INVALID_TIMESTAMP
    assert refused(log, data, AppendRules(before_max_ms=-2)) is ErrorCode.INVALID_TIMESTAMP
    assert refused(log, changed(data, ">h", 21, 4 | 8)) is ErrorCode.INVALID_TIMESTAMP
    assert append(log, far, AppendRules(append_time=True)) == 0
    assert log.find_time(NOW, log.end_offset) == FoundTime(NOW, 0, 0)


def test_times_are_found_in_what_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    data = compressed(b"a" * 50, b"b" * 50, b"c" * 50)
    without_zstd(monkeypatch)
    log = PartitionLog()
    append(log, data)
    append(log, batch(b"later", timestamp=NOW + 10))
    assert log.find_time(NOW - 5, 4) == FoundTime(NOW, 0, 0)
    assert log.find_time(NOW + 1, 4) == FoundTime(NOW + 2, 0, 0)  # no record of that time is passed over
    assert log.find_time(NOW + 3, 4) == FoundTime(NOW + 10, 3, 0)
    log.delete_before(1)
    assert log.find_time(NOW, 4) == FoundTime(NOW, 1, 0)


def test_a_batch_that_promises_too_many_records(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its header agrees with itself, so that only a reader with the codec finds out."""
    most = (1 << 31) - 1
    data = changed(changed(compressed(b"a" * 50), ">i", 57, most), ">i", 23, most - 1)
    without_zstd(monkeypatch)
    log = PartitionLog()
    assert append(log, data) == 0
    assert append(log, batch(b"next")) == most
    assert log.find_time(NOW, log.end_offset) == FoundTime(NOW, 0, 0)
    monkeypatch.undo()
    with pytest.raises(RefusedRecords) as error_info:
        log.find_time(NOW, log.end_offset)
    assert error_info.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    with pytest.raises(RefusedRecords):
        log.compact(NOW + 1, tombstones_ms=0)
    assert log.end_offset == most + 1


def test_compaction_keeps_what_it_cannot_read(monkeypatch: pytest.MonkeyPatch) -> None:
    hidden = compressed(b"old" * 50, b"other" * 50, keys=[b"k", b"k2"])
    without_zstd(monkeypatch)
    log = PartitionLog()
    append(log, batch(b"1", b"2", keys=[b"a", b"a"]))
    append(log, hidden)
    append(log, batch(None, keys=[b"k"]))
    append(log, batch(b"last", keys=[b"z"]))
    for _ in range(2):
        log.compact(NOW + 100, tombstones_ms=0)
    monkeypatch.undo()
    remaining = list(records_of(log.read(0, 1 << 20).data))
    assert remaining == [(1, b"2"), (2, b"old" * 50), (3, b"other" * 50), (4, None), (5, b"last")]
    for _ in range(2):
        log.compact(NOW + 100, tombstones_ms=0)
    assert [offset for offset, _ in records_of(log.read(0, 1 << 20).data)] == [1, 3, 5]


def test_each_refused_record_is_named() -> None:
    log = PartitionLog()
    with pytest.raises(RefusedRecords) as error_info:
        append(log, batch(b"a", b"b", b"c", keys=[b"k", None, None]), AppendRules(compacted=True))
    assert [index for index, _ in error_info.value.records] == [1, 2]


@settings(max_examples=60)
@given(st.binary(max_size=120), st.integers(0, 80))
def test_any_bytes_are_refused_or_appended_whole(noise: bytes, at: int) -> None:
    whole = bytearray(batch(b"some value", b"another"))
    whole[at : at + len(noise)] = noise
    for data in (noise, bytes(whole)):
        log = PartitionLog()
        try:
            append(log, data)
        except RefusedRecords:
            assert log.end_offset == 0
        else:
            assert sum(1 for _ in records_of(log.read(0, 1 << 20).data)) == log.end_offset


# --- idempotent producers ---


def sent(sequence: int, count: int = 1, *, epoch: int = 0, producer: int = 9) -> bytes:
    values = [b"%d" % (sequence + n) for n in range(count)]
    return batch(*values, producer_id=producer, producer_epoch=epoch, base_sequence=sequence)


def test_a_batch_that_comes_again_is_in_the_log_once() -> None:
    log = PartitionLog()
    offsets = [append(log, sent(sequence, 2)) for sequence in range(0, 12, 2)]
    assert offsets == [0, 2, 4, 6, 8, 10]
    for sequence in range(2, 12, 2):  # the last five are known
        assert append(log, sent(sequence, 2)) == sequence
    assert log.end_offset == 12
    assert refused(log, sent(0, 2)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    for first, count in (
        (10, 1),
        (10, 3),
        (9, 3),
        (11, 1),
        (8, 4),
        (13, 1),
        (13, 2),
    ):  # not both, the first and the last sequence
        assert refused(log, sent(first, count)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    highest = PartitionLog()
    append(highest, sent(0x7FFFFFFE, 2))
    assert refused(highest, sent(1)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert append(highest, sent(0)) == 2  # the number after the highest


def test_sequences_go_on_one_by_one() -> None:
    log = PartitionLog()
    append(log, sent(0, 3))
    assert refused(log, sent(4)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert refused(log, sent(2, 2)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert append(log, sent(3)) == 3


def test_the_sequence_after_the_largest_is_0() -> None:
    log = PartitionLog()
    append(log, sent(0x7FFFFFFE, 2))
    assert append(log, sent(0)) == 2


def test_a_new_epoch_begins_with_0_and_replaces_the_old() -> None:
    log = PartitionLog()
    append(log, sent(0, 3))
    assert refused(log, sent(1, epoch=1)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    append(log, sent(0, epoch=1))
    assert refused(log, sent(3)) is ErrorCode.INVALID_PRODUCER_EPOCH


def test_a_producer_that_is_not_known_may_go_on() -> None:
    log = PartitionLog()
    assert append(log, sent(17)) == 0
    assert append(log, sent(18)) == 1


# --- transactions, as far as a log has them ---


def in_transaction(sequence: int, producer: int) -> bytes:
    return batch(b"t", producer_id=producer, producer_epoch=0, base_sequence=sequence, transactional=True)


def test_the_last_stable_offset_is_where_the_oldest_transaction_begins() -> None:
    log = PartitionLog()
    append(log, batch(b"plain"))
    append(log, in_transaction(0, 1))
    append(log, in_transaction(0, 2))
    append(log, in_transaction(1, 1))
    assert (log.last_stable_offset, log.high_watermark) == (1, 4)
    assert list(records_of(log.read(0, 1 << 20, committed=True).data)) == [(0, b"plain")]
    assert [offset for offset, _ in records_of(log.read(0, 1 << 20).data)] == [0, 1, 2, 3]
    marker(log, ControlType.ABORT, 1)
    assert log.last_stable_offset == 2
    marker(log, ControlType.COMMIT, 2)
    assert log.last_stable_offset == log.end_offset == 6
    read = log.read(0, 1 << 20, committed=True)
    assert read.aborted is not None
    assert [(one.producer_id, one.first_offset, one.last_offset) for one in read.aborted] == [(1, 1, 4)]
    for offset in (2, 4):
        aborted = log.read(offset, 1 << 20, committed=True).aborted or []
        assert [one.first_offset for one in aborted] == [1]
    assert log.read(5, 1 << 20, committed=True).aborted == []
    assert log.read(0, 1, committed=True).aborted == []  # it ends before the first of them
    assert log.read(0, 1 << 20).aborted is None
    append(log, in_transaction(2, 1))
    marker(log, ControlType.ABORT, 1)
    aborted = log.read(0, 1 << 20, committed=True).aborted or []
    assert [one.first_offset for one in aborted] == [1, 6]


# --- leader epochs ---


def test_where_an_epoch_ends() -> None:
    log = PartitionLog(epoch=2)
    append(log, batch(b"a", b"b"))
    log.lead(5)
    append(log, batch(b"c"))
    assert log.epoch_end(1) == (1, 0)
    assert log.epoch_end(2) == log.epoch_end(4) == (2, 2)
    assert log.epoch_end(5) == (5, 3)
    assert log.epoch_end(6) == (-1, -1)
    assert [log.epochs.at(offset) for offset in range(3)] == [2, 2, 5]


def test_an_empty_log_has_its_leaders_epoch() -> None:
    log = PartitionLog(epoch=3)
    assert log.epoch_end(3) == (3, 0)
    log.lead(4)
    assert log.epochs.entries == [(4, 0)]


def test_a_deleted_start_takes_its_epochs_with_it() -> None:
    log = PartitionLog(epoch=2)
    append(log, batch(b"a", b"b"))
    log.lead(5)
    append(log, batch(b"c", b"d"))
    log.delete_before(3)
    assert log.epochs.entries == [(5, 3)]
    assert log.delete_before(-1) == 4
