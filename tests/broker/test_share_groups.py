"""Share groups at a broker: records are acquired, acknowledged, released and delivered again; sessions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

import pytest

from coordwire.enums import ErrorCode
from coordwire.messages import (
    AlterShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequest,
    FindCoordinatorRequest,
    IncrementalAlterConfigsRequest,
    ProduceRequest,
    ShareAcknowledgeRequest,
    ShareFetchRequest,
    ShareGroupHeartbeatRequest,
    share_acknowledge,
)
from coordwire.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)
from coordwire.messages.describe_share_group_offsets import DescribeShareGroupOffsetsRequestGroup
from coordwire.messages.incremental_alter_configs import AlterableConfig, AlterConfigsResource
from coordwire.messages.produce import PartitionProduceData, TopicProduceData
from coordwire.messages.share_fetch import AcknowledgementBatch, FetchPartition, FetchTopic
from tests.broker.core import Core, batch
from tests.growth import assert_linear

GROUP_RESOURCE = 32
ACCEPT, RELEASE, REJECT, RENEW = 1, 2, 3, 4


class Share:
    """A cluster with a topic of one partition, and a group that reads it from the start."""

    def __init__(self, records: int = 0, config: Mapping[str, Any] | None = None, /, **settings: str) -> None:
        self.core = Core(topics={"orders": 1}, **(config or {}))
        self.topic_id: UUID = self.core.cluster.topics["orders"].id
        self.epochs: dict[str, int] = {}
        changes = {"share.auto.offset.reset": "earliest"} | {
            f"share.{name.replace('_', '.')}": value for name, value in settings.items()
        }
        self.core.ask(
            IncrementalAlterConfigsRequest(
                resources=[
                    AlterConfigsResource(
                        resource_type=GROUP_RESOURCE,
                        resource_name="g",
                        configs=[AlterableConfig(name=name, value=value) for name, value in changes.items()],
                    )
                ]
            ),
            1,
        )
        if records:
            self.produce(records)

    def produce(self, count: int) -> None:
        data = batch(*(b"%d" % number for number in range(count)))
        topic = TopicProduceData(name="orders", partition_data=[PartitionProduceData(records=data)])
        self.core.ask(ProduceRequest(acks=-1, topic_data=[topic]), 9)

    def join(self, member_id: str) -> Any:
        """Join, and let the share coordinator be asked for the position."""
        request = ShareGroupHeartbeatRequest(
            group_id="g", member_id=member_id, member_epoch=0, subscribed_topic_names=["orders"]
        )
        answer = self.core.ask(request, 1)
        self.core.pass_time(0)
        return answer

    def request(self, member: str, *acknowledged: tuple[int, int, list[int]], **fields: Any) -> Any:
        epoch = self.epochs.get(member, 0)
        batches = [
            AcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=types)
            for first, last, types in acknowledged
        ]
        partition = FetchPartition(partition_index=0, acknowledgement_batches=batches)
        chosen: dict[str, Any] = {
            "group_id": "g", "member_id": member, "share_session_epoch": epoch, "max_wait_ms": 0,
            "min_bytes": 1, "max_bytes": 1 << 20, "max_records": 500, "batch_size": 500,
            "topics": [FetchTopic(topic_id=self.topic_id, partitions=[partition])],
        }  # fmt: skip
        return ShareFetchRequest(**chosen | fields)

    def fetch(self, member: str, *acknowledged: tuple[int, int, list[int]], **fields: Any) -> Any:
        answer = self.core.ask(self.request(member, *acknowledged, **fields), 2)
        if not answer.error_code:
            self.epochs[member] = self.epochs.get(member, 0) + 1
        return answer

    def acquired(self, member_id: str, *acknowledged: tuple[int, int, list[int]], **fields: Any) -> Any:
        """First and last offsets, and delivery counts."""
        answer = self.fetch(member_id, *acknowledged, **fields)
        assert not answer.error_code
        return [
            (run.first_offset, run.last_offset, run.delivery_count)
            for topic in answer.responses
            for partition in topic.partitions
            for run in partition.acquired_records
        ]

    def acknowledge(self, member_id: str, *acknowledged: tuple[int, int, list[int]], **fields: Any) -> Any:
        partition = share_acknowledge.AcknowledgePartition(
            partition_index=0,
            acknowledgement_batches=[
                share_acknowledge.AcknowledgementBatch(
                    first_offset=first, last_offset=last, acknowledge_types=types
                )
                for first, last, types in acknowledged
            ],
        )
        chosen: dict[str, Any] = {
            "group_id": "g",
            "member_id": member_id,
            "share_session_epoch": self.epochs.get(member_id, 0),
            "topics": [share_acknowledge.AcknowledgeTopic(topic_id=self.topic_id, partitions=[partition])],
        }
        answer = self.core.ask(ShareAcknowledgeRequest(**chosen | fields), 2)
        if not answer.error_code:
            self.epochs[member_id] = self.epochs.get(member_id, 0) + 1
        return answer

    def lag(self) -> int:
        answer = self.core.ask(
            DescribeShareGroupOffsetsRequest(
                groups=[DescribeShareGroupOffsetsRequestGroup(group_id="g", topics=None)]
            ),
            1,
        )
        lag: int = answer.groups[0].topics[0].partitions[0].lag
        return lag


def code_of(answer: Any) -> int:
    code: int = answer.responses[0].partitions[0].error_code
    return code


def test_records_go_to_one_member_and_are_gone_when_it_accepts_them() -> None:
    share = Share(10)
    joined = share.join("a")
    assert joined.error_code == 0
    assert joined.member_epoch > 0
    assert share.acquired("a") == [(0, 9, 1)]
    assert share.acquired("b") == []
    assert code_of(share.acknowledge("a", (0, 9, [ACCEPT]))) == 0
    share.core.pass_time(60_000)
    assert share.acquired("b") == []
    assert share.lag() == 0


def test_released_records_come_again_until_their_limit_and_rejected_ones_do_not() -> None:
    share = Share(4, delivery_count_limit="2")
    share.join("a")
    assert share.acquired("a") == [(0, 3, 1)]
    types = [ACCEPT, RELEASE, REJECT, RELEASE]
    assert share.acquired("a", (0, 3, types)) == [(1, 1, 2), (3, 3, 2)]
    assert share.acquired("a", (1, 1, [RELEASE]), (3, 3, [RELEASE])) == []
    assert share.lag() == 0


def test_a_lock_ends_and_a_renewed_one_ends_later() -> None:
    share = Share(2, record_lock_duration_ms="10000")
    share.join("a")
    assert share.acquired("a") == [(0, 1, 1)]
    share.core.pass_time(9_000)
    assert code_of(share.acknowledge("a", (0, 0, [RENEW]), is_renew_ack=True)) == 0
    share.core.pass_time(1_000)
    assert share.acquired("b") == [(1, 1, 2)]
    share.core.pass_time(9_000)
    assert share.acquired("b") == [(0, 0, 2)]
    assert code_of(share.acknowledge("a", (0, 1, [ACCEPT]))) == ErrorCode.INVALID_RECORD_STATE


def test_a_fetch_waits_for_records_and_for_what_another_member_releases() -> None:
    share = Share()
    share.join("a")
    waiting, _ = share.core.begin(share.request("a", max_wait_ms=5_000), 2)
    assert not waiting
    share.produce(3)
    (answer,) = waiting
    assert answer.responses[0].partitions[0].acquired_records[0].last_offset == 2  # type: ignore[attr-defined]
    share.epochs["a"] = 1
    waiting, _ = share.core.begin(share.request("b", max_wait_ms=5_000), 2)
    assert not waiting
    share.acknowledge("a", (0, 2, [RELEASE]))
    (answer,) = waiting
    assert answer.responses[0].partitions[0].acquired_records[0].delivery_count == 2  # type: ignore[attr-defined]


def test_a_session_ends_with_its_connection_and_its_records_are_released() -> None:
    share = Share(5)
    share.join("a")
    assert share.acquired("a") == [(0, 4, 1)]
    share.core.cluster.share_partitions.disconnected(1, None)
    assert share.fetch("a").error_code == ErrorCode.SHARE_SESSION_NOT_FOUND
    assert share.acquired("b") == [(0, 4, 2)]
    final = share.fetch("b", (0, 1, [ACCEPT]), share_session_epoch=-1)
    assert not final.error_code
    assert share.acquired("c") == [(2, 4, 3)]


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"share_session_epoch": 7}, ErrorCode.INVALID_SHARE_SESSION_EPOCH),
        ({"member_id": "other", "share_session_epoch": 1}, ErrorCode.SHARE_SESSION_NOT_FOUND),
        ({"member_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"member_id": "m" * 37}, ErrorCode.INVALID_REQUEST),
        ({"group_id": None}, ErrorCode.INVALID_REQUEST),
        ({"is_renew_ack": True}, ErrorCode.INVALID_REQUEST),
    ],
)
def test_a_fetch_that_does_not_fit_is_refused(fields: dict[str, Any], code: int) -> None:
    share = Share(1)
    share.join("a")
    share.acquired("a")
    assert share.fetch("a", **fields).error_code == code


def test_acknowledgements_that_do_not_fit_are_refused() -> None:
    share = Share(4)
    share.join("a")
    share.acquired("a")
    for wrong in ((1, 0, [1]), (0, 1, []), (0, 1, [1, 1, 1]), (0, 0, [4]), (0, 0, [-1])):
        assert code_of(share.acknowledge("a", wrong)) == ErrorCode.INVALID_REQUEST
    assert code_of(share.acknowledge("a", (0, 9, [1]))) == ErrorCode.INVALID_REQUEST
    assert code_of(share.acknowledge("a", (0, 3, [1, 0, 1, 1]))) == 0


def test_states_are_found_by_their_key() -> None:
    share = Share(1)
    from coordwire.codec.primitives import uuid_text

    keys = [f"g:{uuid_text(share.topic_id)}:0", "g:0", f"g:{uuid_text(share.topic_id)}:x"]
    answer = share.core.ask(FindCoordinatorRequest(key_type=2, coordinator_keys=keys), 6)
    assert [found.error_code for found in answer.coordinators] == [0, ErrorCode.INVALID_REQUEST, 42]


def test_there_are_no_more_sessions_than_allowed() -> None:
    share = Share(1)
    share.core.cluster.share_partitions.sessions[1]._most = 2
    assert [share.fetch(name).error_code for name in "abc"] == [
        0,
        0,
        ErrorCode.SHARE_SESSION_LIMIT_REACHED,
    ]


@pytest.mark.growth
def test_acknowledgements_cost_what_they_are_many() -> None:
    def run(count: int) -> None:
        share = Share(500, partition_max_record_locks="10000")
        share.fetch("a")
        share.acknowledge("a", *((number % 500, number % 500, [ACCEPT]) for number in range(count)))

    assert_linear(int, run, 500)


@pytest.mark.growth
def test_a_gap_costs_nothing_more() -> None:
    def run(count: int) -> None:
        share = Share(500)
        share.fetch("a")
        for _ in range(count):
            share.acknowledge("a", (0, 2_000_000_000, [ACCEPT]))

    assert_linear(int, run, 20)


@pytest.mark.growth
def test_sessions_cost_what_they_are_many() -> None:
    def run(count: int) -> None:
        share = Share(1)
        for number in range(count):
            share.fetch(f"m{number}")
        share.core.cluster.share_partitions.disconnected(1, None)

    assert_linear(int, run, 50)


def test_a_position_is_changed_between_two_members() -> None:
    """The share partition is read again after the last connection of the group's members ended."""
    share = Share(10)
    share.join("a")
    assert share.acquired("a") == [(0, 9, 1)]
    share.acknowledge("a", (0, 9, [ACCEPT]))
    share.fetch("a", share_session_epoch=-1, topics=[])
    share.core.ask(ShareGroupHeartbeatRequest(group_id="g", member_id="a", member_epoch=-1), 1)
    share.core.cluster.share_partitions.disconnected(1, None)
    partition = AlterShareGroupOffsetsRequestPartition(partition_index=0, start_offset=4)
    topic = AlterShareGroupOffsetsRequestTopic(topic_name="orders", partitions=[partition])
    altered = share.core.ask(AlterShareGroupOffsetsRequest(group_id="g", topics=[topic]), 0)
    assert altered.responses[0].partitions[0].error_code == 0
    share.join("b")
    assert share.acquired("b") == [(4, 9, 1)]
