"""Logs that a real broker wrote and compacted: our shard knows of them what Kafka's coordinator knows."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import pytest

from coordwire.codec import Message
from coordwire.coordinator import LogEntry, Shard, ShardStatus, TransactionMarker, log_entries
from coordwire.coordinator.model.consumer_group import ConsumerGroupModel
from coordwire.errors import Malformed, Truncated
from coordwire.logs import decode_log_record, encode_log_record, find_record
from coordwire.messages import (
    ConsumerGroupDescribeRequest,
    DescribeGroupsRequest,
    ListGroupsRequest,
    OffsetFetchRequest,
)
from coordwire.messages.offset_fetch import OffsetFetchRequestGroup
from coordwire.messages.record_types import RECORD_TYPES
from coordwire.records import batches
from tests.broker_sample import broker_sample
from tests.coordinator.histories import Record, Replayer, kafka_outcome, request_step
from tests.coordinator.log_changes import load_step
from tests.coordinator.oracle import oracle
from tests.interop.conftest import give_up
from tests.interop.maven import Unavailable

GROUPS = ["exactly-once", "orders-new"]
"""What the partition has at its end; more came and went."""


def entries(partition: int) -> list[LogEntry]:
    folder = broker_sample() / "data" / f"__consumer_offsets-{partition}"
    return [
        entry for path in sorted(folder.glob("*.log")) for entry in log_entries(batches(path.read_bytes()))
    ]


def as_record(entry: LogEntry) -> tuple[int, Record]:
    if isinstance(entry.record, TransactionMarker):
        return entry.offset, Record(*entry.record.encoded(), entry.producer_id, 0, True)
    key, value = encode_log_record(entry.record)
    assert key is not None
    return entry.offset, Record(key, value, entry.producer_id)


def test_a_compacted_log_with_transactions_is_loaded() -> None:
    shard = Shard()
    shard.load(entries(0), now=0)
    assert sorted(shard.groups) == GROUPS
    assert isinstance(shard.groups["orders-new"], ConsumerGroupModel)


def test_groups_of_other_kinds_are_kept_as_what_they_are() -> None:
    shard = Shard()
    shard.load(entries(1), now=0)
    assert {name: group.kind for name, group in shard.groups.items()} == {
        "counting": "streams", "shared": "share"
    }  # fmt: skip


@pytest.mark.parametrize("record_type", sorted(RECORD_TYPES["consumer_offsets"]))
def test_a_value_of_an_unknown_version_can_not_be_loaded(record_type: int) -> None:
    """Kafka's loader ignores types that it does not know, and gives up at versions that it does not know."""
    classes = find_record("consumer_offsets", record_type)
    assert classes.key is not None
    version = classes.value.versions[-1] + 1
    key = struct.pack(">h", record_type) + classes.key().encode(version=classes.key.versions[0])
    unknown = decode_log_record("consumer_offsets", key, struct.pack(">h", version))
    shard = Shard()
    if record_type == 9:
        shard.load([unknown], now=0)
        return
    with pytest.raises(Malformed, match=f"record 0 .* version {version}"):
        shard.load([unknown], now=0)
    assert shard.status is ShardStatus.ABSENT


def test_a_log_that_can_not_be_read_leaves_the_shard_without_its_partition() -> None:
    def broken() -> Iterator[LogEntry]:
        yield from entries(0)[:5]
        raise Truncated("expected 2 bytes, got 0", 0)

    shard = Shard()
    shard.begin_loading()
    with pytest.raises(Truncated):
        shard.load(broken(), now=0)
    assert (shard.status, shard.groups) == (ShardStatus.ABSENT, {})


def questions() -> list[tuple[Message, int]]:
    all_offsets = [OffsetFetchRequestGroup(group_id=group, topics=None) for group in GROUPS]
    return [
        (ListGroupsRequest(), 5),
        (DescribeGroupsRequest(groups=GROUPS), 6),
        (ConsumerGroupDescribeRequest(group_ids=GROUPS), 1),
        (OffsetFetchRequest(groups=all_offsets, require_stable=True), 9),
    ]


@pytest.mark.maven
def test_kafka_knows_the_same_of_each_beginning_of_the_log() -> None:
    try:
        kafka = oracle()
    except Unavailable as error:
        give_up(error)
    log = [as_record(entry) for entry in entries(0)]
    for count in range(len(log) + 1):
        end = log[count - 1][0] + 1 if count else 0
        steps = ["unload", load_step((end, log[:count]))]
        steps += [
            request_step(number, message, version, number, "till")
            for number, (message, version) in enumerate(questions())
        ]
        replayer = Replayer()
        actual = [replayer.run(step).sorted(replayer.requests) for step in steps]
        outputs = kafka.run(["new", *steps, "timers"])[1:]
        expected = [kafka_outcome(lines).sorted(replayer.requests) for lines in outputs[:-1]]
        assert actual == expected, f"{count} records"
        known = sorted(
            line.removeprefix("timer ") for line in outputs[-1] if "group-size-counter" not in line
        )
        assert replayer.deadlines() == known
