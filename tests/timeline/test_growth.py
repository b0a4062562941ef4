"""Reading coordinators' logs is linear in their records, whatever they say."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from coordwire.codec import Message
from coordwire.logs import LogRecord, encode_log_record
from coordwire.messages import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    GroupMetadataKey,
    GroupMetadataValue,
)
from coordwire.messages.classic_group_records import MemberMetadata
from coordwire.records import ControlType, Record, encode_batch
from coordwire.timeline.from_log.compaction import decide, latest
from coordwire.timeline.from_log.coordinator_log import read_records
from coordwire.timeline.from_log.events import log_timeline
from tests.growth import assert_linear
from tests.records.test_growth import CHARGES

from .logs import commit, in_transaction, marker


def record(number: int, key: Message, value: Message, version: int = 0) -> Record:
    pair = LogRecord(log="consumer_offsets", type=number, key=key, value=value, version=version)
    return Record(-1, 1000, *encode_log_record(pair))


def packed(*records: Record) -> bytes:
    return encode_batch(records)


def member(group: str, name: str, instance_id: str | None = None) -> Record:
    value = ConsumerGroupMemberMetadataValue(
        client_id="c", instance_id=instance_id, subscribed_topic_names=["t"], classic_member_metadata=None,
        subscribed_topic_regex=None, rack_id=None, server_assignor=None,
    )  # fmt: skip
    return record(5, ConsumerGroupMemberMetadataKey(group_id=group, member_id=name), value)


def assigned(group: str, name: str, epoch: int) -> Record:
    value = ConsumerGroupCurrentMemberAssignmentValue(member_epoch=epoch)
    return record(8, ConsumerGroupCurrentMemberAssignmentKey(group_id=group, member_id=name), value)


def epoch(group: str, number: int) -> Record:
    return record(3, ConsumerGroupMetadataKey(group_id=group), ConsumerGroupMetadataValue(epoch=number))


def one_large_group(n: int) -> bytes:
    """All join, and one after the other gets its partitions."""
    joined = [member("g", f"m{k}", f"i{k}") for k in range(n)]
    return packed(*joined, epoch("g", 7), *(assigned("g", f"m{k}", 7) for k in range(n)))


def no_member_is_ready(n: int) -> bytes:
    joined = [member("g", f"m{k}") for k in range(n)]
    early = [assigned("g", f"m{k}", 5) for k in range(n)]
    return packed(*joined, *early, *(epoch("g", 10 + k) for k in range(n)))


def many_groups(n: int) -> bytes:
    return packed(*(each for k in range(n) for each in (member(f"g{k}", "m"), epoch(f"g{k}", 1))))


def one_classic_group(n: int) -> bytes:
    members = [
        MemberMetadata(
            member_id=f"m{k}", group_instance_id=f"i{k}", client_id="c", client_host="h",
            rebalance_timeout=1, session_timeout=1, subscription=b"", assignment=b"",
        )
        for k in range(n)
    ]  # fmt: skip
    value = GroupMetadataValue(
        protocol_type="consumer", generation=1, protocol="range", leader="m0", members=members
    )
    return packed(record(2, GroupMetadataKey(group="g"), value, 3))


def open_transactions(n: int) -> bytes:
    """Many producers commit one offset, and their transactions end in their order."""
    begun = [in_transaction(k, [commit("g", k)], k) for k in range(n)]
    return b"".join(begun + [marker(n + k, ControlType.COMMIT, k) for k in range(n)])


def one_transaction(n: int) -> bytes:
    wrote = [in_transaction(k, [commit("g", k, partition=k)]) for k in range(n)]
    return b"".join([*wrote, *(packed(commit("g", None, partition=k)) for k in range(n))])


MADE = [
    one_large_group,
    no_member_is_ready,
    many_groups,
    one_classic_group,
    open_transactions,
    one_transaction,
]


@pytest.mark.parametrize("n", [30, 300])
@pytest.mark.parametrize("make", MADE)
def test_growth(make: Callable[[int], bytes], n: int) -> None:
    """On both sides of `records.batch.CHUNK`: a batch of fewer records keeps what its check read."""

    def read(data: bytes) -> None:
        for _ in decide(read_records(data, log="consumer_offsets")):
            pass
        latest(read_records(data, log="consumer_offsets"))
        for _ in log_timeline(read_records(data, log="consumer_offsets")):
            pass

    assert_linear(make, read, n, charges=CHARGES)
