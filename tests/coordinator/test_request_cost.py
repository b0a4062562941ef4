"""A request costs no more than its length: calls are counted for n, 2n and 4n of what it names."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

from coordwire.messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    OffsetCommitRequest,
    OffsetDeleteRequest,
    OffsetFetchRequest,
    SyncGroupRequest,
    TxnOffsetCommitRequest,
)
from coordwire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequestTopicPartitions
from coordwire.messages.join_group import JoinGroupRequestProtocol
from coordwire.messages.leave_group import MemberIdentity
from coordwire.messages.offset_commit import OffsetCommitRequestPartition, OffsetCommitRequestTopic
from coordwire.messages.offset_delete import OffsetDeleteRequestPartition, OffsetDeleteRequestTopic
from coordwire.messages.offset_fetch import OffsetFetchRequestGroup
from coordwire.messages.sync_group import SyncGroupRequestAssignment
from coordwire.messages.txn_offset_commit import TxnOffsetCommitRequestPartition, TxnOffsetCommitRequestTopic
from tests.coordinator.test_hostile_requests import ORDERS, SUBSCRIPTION, consumer, started


class Name(str):
    """A text whose comparisons are calls, so that a profile counts them."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return str.__eq__(self, other)

    def __hash__(self) -> int:
        return str.__hash__(self)


def _names(count: int) -> list[str]:
    return [Name(f"{number:05}-unknown") for number in range(count)]


def _committed(count: int) -> list[OffsetCommitRequestTopic]:
    partitions = [OffsetCommitRequestPartition(partition_index=index) for index in (0, 9)]
    topics = [OffsetCommitRequestTopic(name=name, partitions=partitions) for name in _names(count)]
    return [*topics, OffsetCommitRequestTopic(name="orders", partitions=partitions)]


LARGE: dict[str, tuple[int, Callable[[int], Any]]] = {
    "commit": (8, lambda count: OffsetCommitRequest(group_id="new", topics=_committed(count))),
    "commit in a transaction": (
        5,
        lambda count: TxnOffsetCommitRequest(
            group_id="new", producer_id=7, producer_epoch=0,
            topics=[
                TxnOffsetCommitRequestTopic(
                    name=name, partitions=[TxnOffsetCommitRequestPartition(partition_index=0)]
                )
                for name in [*_names(count), "orders"]
            ],
        ),
    ),
    "delete offsets": (
        0,
        lambda count: OffsetDeleteRequest(
            group_id="c",
            topics=[
                OffsetDeleteRequestTopic(
                    name=name, partitions=[OffsetDeleteRequestPartition(partition_index=0)]
                )
                for name in [*_names(count), "orders"]
            ],
        ),
    ),
    "one topic again and again": (
        8, lambda count: OffsetCommitRequest(group_id="new", topics=_committed(0) * count)
    ),
    "subscribe": (1, lambda count: consumer("c", "n", subscribed_topic_names=_names(count))),
    "report": (
        1,
        lambda count: ConsumerGroupHeartbeatRequest(
            group_id="c", member_id="m", member_epoch=2, rebalance_timeout_ms=9_000,
            subscribed_topic_names=["orders"],
            topic_partitions=[
                ConsumerGroupHeartbeatRequestTopicPartitions(topic_id=ORDERS.id, partitions=[index])
                for index in range(count)
            ],
        ),
    ),
    "join with many protocols": (
        5,
        lambda count: JoinGroupRequest(
            group_id="g", session_timeout_ms=30_000, protocol_type="consumer", group_instance_id="till",
            protocols=[
                JoinGroupRequestProtocol(name=name, metadata=SUBSCRIPTION)
                for name in ["range", *_names(count)]
            ],
        ),
    ),
    "leave": (
        5,
        lambda count: LeaveGroupRequest(
            group_id="g", members=[MemberIdentity(member_id=name) for name in _names(count)]
        ),
    ),
    "assign": (
        3,
        lambda count: SyncGroupRequest(
            group_id="g", generation_id=1, member_id="x",
            assignments=[SyncGroupRequestAssignment(member_id=name) for name in _names(count)],
        ),
    ),
    "describe": (5, lambda count: DescribeGroupsRequest(groups=_names(count))),
    "describe consumer groups": (1, lambda count: ConsumerGroupDescribeRequest(group_ids=_names(count))),
    "delete groups": (2, lambda count: DeleteGroupsRequest(groups_names=_names(count))),
    "fetch": (
        8,
        lambda count: OffsetFetchRequest(
            groups=[OffsetFetchRequestGroup(group_id=name, topics=None) for name in _names(count)]
        ),
    ),
}  # fmt: skip


def _calls(request: Any, version: int) -> int:
    """The calls that a request leads to, up to its answer and its records as bytes."""
    bench = started()
    calls = 0

    def count(frame: Any, event: str, argument: Any) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        bench.send(request, version)
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.parametrize("name", LARGE)
def test_a_request_costs_no_more_than_its_length(name: str) -> None:
    version, make = LARGE[name]
    _calls(make(50), version)  # what is made at the first use
    once, twice, four_times = (_calls(make(count), version) for count in (50, 100, 200))
    assert four_times - twice <= 2.6 * (twice - once) + 50
