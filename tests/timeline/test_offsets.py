"""One segment's items: Kafka's own records, what isn't known, what can't be read, transactions."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordwire.codec import Message
from coordwire.errors import UnreadableRange
from coordwire.jsonform import to_json
from coordwire.logs import TOPICS, Log
from coordwire.records import ControlType, Record
from coordwire.timeline.from_log.compaction import Latest, decide, latest
from coordwire.timeline.from_log.coordinator_log import (
    CoordinatorRecord,
    LogItem,
    Marker,
    guess_log,
    read_file,
    read_records,
)
from coordwire.timeline.from_log.files import LogFile, find_files
from tests.timeline.logs import TIME, commit, in_transaction, kafkas_segment, marker, of_log, plain

LOGS: list[Log] = list(TOPICS)


def items(data: bytes, log: Log = "consumer_offsets") -> list[LogItem]:
    return list(read_records(data, log=log, file="f", log_partition=3))


def form(part: Message | bytes | None, version: int | None) -> Any:
    return to_json(part, version=version or 0) if isinstance(part, Message) else part


def commits(found: list[CoordinatorRecord]) -> list[tuple[Any, ...]]:
    return [(one.group, one.topic, one.partition, getattr(one.value, "offset", None)) for one in found]


@pytest.mark.parametrize("log", LOGS)
def test_every_record_of_kafkas_is_read(log: Log) -> None:
    result = items(kafkas_segment(log), log)
    told = of_log(log)
    assert len(result) == len(told) > 0
    for number, (item, one) in enumerate(zip(result, told, strict=True)):
        assert isinstance(item, CoordinatorRecord)
        assert (item.log_offset, item.timestamp_ms) == (number, TIME + 1000 * number)
        assert (item.type, item.version) == (one["type"], one["version"])
        assert form(item.key, 0) == one["key"]
        assert form(item.value, item.version) == one["value"]
        assert item.unknown is None
        assert item.refusal is None
        assert item.tombstone == (one["value"] is None)
        assert not item.transactional
        if log == "consumer_offsets":
            assert item.group == (one["key"].get("group") or one["key"].get("groupId"))


@pytest.mark.parametrize("log", LOGS)
def test_the_content_tells_the_log(log: Log, tmp_path: Path) -> None:
    data = kafkas_segment(log)
    assert guess_log(data) == log
    path = tmp_path / "unnamed"
    path.write_bytes(data)
    (file,) = find_files([path])
    assert file == LogFile(str(path))
    assert [item.log for item in read_file(file)] == [log] * len(of_log(log))


def test_an_empty_file_holds_nothing(tmp_path: Path) -> None:
    path = tmp_path / "empty.log"
    path.write_bytes(b"")
    assert list(read_file(LogFile(str(path)))) == []


def test_items_can_be_pickled() -> None:
    result = items(kafkas_segment("consumer_offsets")[:-1] + marker(90, ControlType.COMMIT))
    assert pickle.loads(pickle.dumps(result)) == result


def test_an_unknown_type_passes_with_its_bytes() -> None:
    (item,) = items(plain(5, Record(key=b"\x00\x63key", value=b"value")))
    assert isinstance(item, CoordinatorRecord)
    assert (item.type, item.kind, item.key, item.value) == (99, None, b"key", b"value")
    assert item.unknown == "record type 99 is unknown"
    assert item.refusal is None


def test_a_record_that_cannot_be_read_keeps_its_bytes() -> None:
    bad, good = items(plain(5, Record(key=b"\x00\x01\x00\x7f", value=b"v"), commit("g", 1)))
    assert isinstance(bad, CoordinatorRecord)
    assert isinstance(good, CoordinatorRecord)
    assert bad.refusal is not None
    assert (bad.refusal.path, bad.key, bad.value) == ("key.group", b"\x00\x01\x00\x7f", b"v")
    assert commits([good]) == [("g", "orders", 0, 1)]


def test_bad_bytes_and_a_torn_end_are_told() -> None:
    first, second, third = (plain(n, commit("g", n)) for n in range(3))
    broken = bytearray(second)
    broken[-1] ^= 1
    result = items(first + broken + third + first[:-2])
    assert [type(item) for item in result] == [
        CoordinatorRecord,
        UnreadableRange,
        CoordinatorRecord,
        UnreadableRange,
    ]
    bad, torn = (item for item in result if isinstance(item, UnreadableRange))
    assert (bad.position, bad.length) == (len(first), len(second))
    assert "CRC" in bad.reason
    assert torn.position == len(first + broken + third)
    assert torn.length == len(first) - 2


def test_markers_say_what_they_decide() -> None:
    data = (
        in_transaction(0, [commit("g", 1), commit("g", 2, partition=1)])
        + in_transaction(2, [commit("h", 7)], producer_id=10)
        + marker(3, ControlType.COMMIT)
        + marker(4, ControlType.ABORT, producer_id=10)
    )
    results = list(decide(items(data)))
    assert all(item.transactional for item in results if isinstance(item, CoordinatorRecord))
    committed, aborted = (item for item in results if isinstance(item, Marker))
    assert (committed.kind, committed.producer_id, committed.coordinator_epoch) == ("commit", 9, 5)
    assert commits(list(committed.decided)) == [("g", "orders", 0, 1), ("g", "orders", 1, 2)]
    assert aborted.kind == "abort"
    assert commits(list(aborted.decided)) == [("h", "orders", 0, 7)]


def standing(*parts: bytes) -> Latest:
    return latest(items(b"".join(parts)))


def test_the_last_value_stands_and_a_tombstone_removes() -> None:
    kept = standing(
        plain(0, commit("g", 1), commit("h", 2), commit("g", 3), commit("h", None), commit("x", None))
    )
    assert commits(kept.records) == [("g", "orders", 0, 3)]
    assert (kept.pending, kept.removed) == ([], 1)


def test_a_transactions_commit_counts_from_its_marker_on() -> None:
    begun = plain(0, commit("g", 1)) + in_transaction(1, [commit("g", 5)])
    before = standing(begun)
    assert commits(before.records) == [("g", "orders", 0, 1)]
    assert commits(before.pending) == [("g", "orders", 0, 5)]
    after = standing(begun, marker(2, ControlType.COMMIT))
    assert (commits(after.records), after.pending) == ([("g", "orders", 0, 5)], [])
    given_up = standing(begun, marker(2, ControlType.ABORT))
    assert (commits(given_up.records), given_up.pending) == ([("g", "orders", 0, 1)], [])


def test_a_later_plain_commit_outlives_a_transaction() -> None:
    kept = standing(
        in_transaction(0, [commit("g", 5)]), plain(1, commit("g", 6)), marker(2, ControlType.COMMIT)
    )
    assert commits(kept.records) == [("g", "orders", 0, 6)]


def test_a_tombstone_takes_away_what_is_pending() -> None:
    kept = standing(
        in_transaction(0, [commit("g", 5)]), plain(1, commit("g", None)), marker(2, ControlType.COMMIT)
    )
    assert (kept.records, kept.pending) == ([], [])


def test_the_metadata_log_has_no_keys_to_compact_by() -> None:
    latest_offsets = latest(read_records(kafkas_segment("metadata"), log="metadata"))
    assert len(latest_offsets.records) + latest_offsets.no_ops == len(of_log("metadata"))
    assert latest_offsets.no_ops == 1


@given(st.data())
def test_whatever_the_bytes_are_nothing_raises(data: st.DataObject) -> None:
    log = data.draw(st.sampled_from(LOGS))
    segment = bytearray(kafkas_segment(log))
    for place in data.draw(st.lists(st.integers(0, len(segment) - 1), max_size=4)):
        segment[place] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(segment)))
    asked = data.draw(st.sampled_from(LOGS))
    result = items(bytes(segment[:cut]), asked)
    latest_offsets = latest(result)
    assert len(latest_offsets.records) <= len(result)
    assert pickle.loads(pickle.dumps(result)) == result


@given(st.binary(max_size=40), st.none() | st.binary(max_size=40), st.sampled_from(LOGS))
def test_whatever_a_record_holds_it_is_passed_on(key: bytes, value: bytes | None, log: Log) -> None:
    (item,) = items(plain(0, Record(key=key, value=value)), log)
    assert isinstance(item, CoordinatorRecord)
    if item.refusal is not None:
        assert (item.key, item.value) == (key, value)
