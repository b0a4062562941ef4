"""What single APIs do with a cluster, without sockets."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from coordwire.coordinator import CoordinatorConfig
from coordwire.enums import ErrorCode
from coordwire.messages import (
    AddOffsetsToTxnRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DescribeConfigsRequest,
    FetchRequest,
    FetchResponse,
    FindCoordinatorRequest,
    HeartbeatRequest,
    IncrementalAlterConfigsRequest,
    InitProducerIdRequest,
    JoinGroupRequest,
    JoinGroupResponse,
    ListGroupsRequest,
    ListGroupsResponse,
    MetadataRequest,
    OffsetFetchRequest,
    ProduceRequest,
)
from coordwire.messages.create_partitions import CreatePartitionsTopic
from coordwire.messages.create_topics import CreatableTopic, CreatableTopicConfig
from coordwire.messages.delete_topics import DeleteTopicState
from coordwire.messages.describe_configs import DescribeConfigsResource
from coordwire.messages.fetch import FetchPartition, FetchTopic, ForgottenTopic
from coordwire.messages.incremental_alter_configs import AlterableConfig, AlterConfigsResource
from coordwire.messages.join_group import JoinGroupRequestProtocol
from coordwire.messages.metadata import MetadataRequestTopic
from coordwire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from coordwire.messages.offset_fetch import OffsetFetchRequestGroup
from coordwire.messages.produce import PartitionProduceData, TopicProduceData
from tests.broker.core import Core, batch, records_of

V = 12
"""A version of Fetch with names."""


def write(core: Core, partition: int, *values: bytes, topic: str = "orders") -> None:
    data = PartitionProduceData(index=partition, records=batch(*values))
    request = ProduceRequest(acks=-1, topic_data=[TopicProduceData(name=topic, partition_data=[data])])
    answer = core.ask(request, 9)
    assert answer.responses[0].partition_responses[0].error_code == 0


def wanted(*partitions: tuple[int, int], **fields: Any) -> FetchRequest:
    """A Fetch of partitions from offsets on."""
    topics = [
        FetchTopic(
            topic="orders",
            partitions=[
                FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=1 << 20)
                for index, offset in partitions
            ],
        )
    ]
    values: dict[str, Any] = {"min_bytes": 1, "topics": topics if partitions else []}
    return FetchRequest(**(values | fields))


def found(response: FetchResponse) -> dict[int, list[bytes | None]]:
    """The values by partition."""
    return {
        part.partition_index: [value for _, value in records_of(part.records or b"")]
        for topic in response.responses
        for part in topic.partitions
    }


# --- fetch ---


def test_a_session_answers_what_has_changed() -> None:
    core = Core(topics={"orders": 3})
    write(core, 0, b"a")
    first = core.ask(wanted((0, 0), (1, 0), (2, 0), session_epoch=0), V)
    assert first.session_id > 0
    assert found(first) == {0: [b"a"], 1: [], 2: []}
    session = {"session_id": first.session_id}
    write(core, 1, b"b")
    second = core.ask(wanted((0, 1), session_epoch=1, **session), V)
    assert found(second) == {1: [b"b"]}
    gone = [ForgottenTopic(topic="orders", partitions=[1])]
    write(core, 1, b"c")
    third = core.ask(wanted(session_epoch=2, forgotten_topics_data=gone, **session), V)
    assert (third.session_id, found(third)) == (first.session_id, {})
    again = core.ask(wanted(session_epoch=2, **session), V)
    assert again.error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    core.ask(wanted((0, 0), session_epoch=-1, **session), V)
    last = core.ask(wanted(session_epoch=3, **session), V)
    assert last.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_when_there_is_no_room_for_a_session_there_is_none() -> None:
    core = Core(topics={"orders": 1}, fetch_sessions=2)
    numbers = [core.ask(wanted((0, 0), session_epoch=0), V).session_id for _ in range(3)]
    assert [bool(number) for number in numbers] == [True, True, False]
    core.pass_time(120_000)
    assert core.ask(wanted((0, 0), session_epoch=0), V).session_id
    assert len(core.cluster.fetch_sessions[1]) == 2


def test_the_first_batch_comes_whatever_the_limits_are() -> None:
    core = Core(topics={"orders": 2})
    for number in range(3):
        write(core, 0, b"%d" % number * 100)
        write(core, 1, b"x")
    answer = core.ask(wanted((0, 0), (1, 0), max_bytes=1), V)
    assert {index: len(values) for index, values in found(answer).items()} == {0: 1, 1: 0}


def test_a_fetch_waits_for_enough_bytes() -> None:
    core = Core(topics={"orders": 2})
    answers, _ = core.begin(wanted((0, 0), (1, 0), min_bytes=300, max_wait_ms=1000), V)
    write(core, 0, b"v" * 100)
    assert answers == []
    write(core, 1, b"v" * 100)
    (answer,) = answers
    assert isinstance(answer, FetchResponse)
    assert {index: len(values) for index, values in found(answer).items()} == {0: 1, 1: 1}
    answers, _ = core.begin(wanted((0, 0), min_bytes=300, max_wait_ms=1000), V)
    core.pass_time(999)
    assert answers == []
    core.pass_time(1)
    assert len(answers) == 1
    assert not core.cluster.topics["orders"].partitions[0].log.listeners


def test_a_topic_that_goes_ends_the_wait() -> None:
    core = Core(topics={"orders": 1})
    answers, _ = core.begin(wanted((0, 0), max_wait_ms=60_000), V)
    core.ask(DeleteTopicsRequest(topics=[DeleteTopicState(name="orders")]), 6)
    (answer,) = answers
    assert isinstance(answer, FetchResponse)
    error = answer.responses[0].partitions[0].error_code
    assert error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_another_node_says_who_leads() -> None:
    core = Core(topics={"orders": 2}, nodes=2)
    topic = core.cluster.topics["orders"]
    (other,) = (partition for partition in topic.partitions if partition.leader == 2)
    request = FetchRequest(
        topics=[FetchTopic(topic_id=topic.id, partitions=[FetchPartition(partition=other.index)])]
    )
    answer = core.ask(request, 17)
    part = answer.responses[0].partitions[0]
    assert part.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert part.current_leader.leader_id == 2
    assert [node.node_id for node in answer.node_endpoints] == [2]


# --- topics and settings ---


def test_topics_are_made_grown_and_deleted() -> None:
    core = Core()
    settings = [CreatableTopicConfig(name="retention.ms", value="7")]
    made = core.ask(
        CreateTopicsRequest(
            topics=[
                CreatableTopic(name="a", num_partitions=2, replication_factor=1, configs=settings),
                CreatableTopic(name="b", num_partitions=-1, replication_factor=-1),
                CreatableTopic(name="c", num_partitions=1, replication_factor=2),
                CreatableTopic(name="d", num_partitions=0, replication_factor=1),
                CreatableTopic(
                    name="e",
                    num_partitions=1,
                    replication_factor=1,
                    configs=[CreatableTopicConfig(name="retention.ms", value="soon")],
                ),
                CreatableTopic(name="f", num_partitions=1, replication_factor=1),
                CreatableTopic(name="f", num_partitions=1, replication_factor=1),
            ]
        ),
        7,
    )
    assert {topic.name: topic.error_code for topic in made.topics} == {
        "a": 0,
        "b": 0,
        "c": ErrorCode.INVALID_REPLICATION_FACTOR,
        "d": ErrorCode.INVALID_PARTITIONS,
        "e": ErrorCode.INVALID_CONFIG,
        "f": ErrorCode.INVALID_REQUEST,
    }
    shown = {config.name: config.value for config in made.topics[0].configs or []}
    assert shown["retention.ms"] == "7"
    grown = core.ask(
        CreatePartitionsRequest(topics=[CreatePartitionsTopic(name="a", count=5, assignments=None)]), 3
    )
    assert grown.results[0].error_code == 0
    listed = core.ask(MetadataRequest(topics=[MetadataRequestTopic(name="a")]), 12)
    assert len(listed.topics[0].partitions) == 5
    gone = core.ask(
        DeleteTopicsRequest(
            topics=[DeleteTopicState(name=None, topic_id=made.topics[0].topic_id), DeleteTopicState(name="a")]
        ),
        6,
    )
    assert [(response.name, response.error_code) for response in gone.responses] == [
        ("a", ErrorCode.INVALID_REQUEST)
    ]
    for error in (0, ErrorCode.UNKNOWN_TOPIC_ID):
        by_id = DeleteTopicState(name=None, topic_id=made.topics[0].topic_id)
        (one,) = core.ask(DeleteTopicsRequest(topics=[by_id]), 6).responses
        assert one.error_code == error


def test_validate_only_makes_nothing() -> None:
    core = Core()
    topic = CreatableTopic(name="a", num_partitions=2, replication_factor=1)
    made = core.ask(CreateTopicsRequest(topics=[topic], validate_only=True), 7)
    assert (made.topics[0].error_code, core.cluster.topics) == (0, {})


def test_a_setting_changes_what_is_appended() -> None:
    core = Core(topics={"orders": 1})

    def alter(name: str, value: str | None, operation: int) -> int:
        config = AlterableConfig(name=name, value=value, config_operation=operation)
        resource = AlterConfigsResource(resource_type=2, resource_name="orders", configs=[config])
        answer = core.ask(IncrementalAlterConfigsRequest(resources=[resource]), 1)
        return answer.responses[0].error_code

    assert alter("message.timestamp.type", "LogAppendTime", 0) == 0
    assert core.cluster.topics["orders"].rules.append_time
    assert alter("message.timestamp.type", None, 1) == 0
    assert not core.cluster.topics["orders"].rules.append_time
    assert alter("cleanup.policy", "compact", 2) == 0
    assert core.cluster.topics["orders"].settings.items("cleanup.policy") == ["delete", "compact"]
    assert alter("cleanup.policy", "delete", 3) == 0
    assert core.cluster.topics["orders"].rules.compacted
    assert alter("retention.ms", "1", 2) == ErrorCode.INVALID_CONFIG
    assert alter("no.such.setting", "1", 0) == ErrorCode.INVALID_CONFIG
    resource = DescribeConfigsResource(
        resource_type=2, resource_name="orders", configuration_keys=["cleanup.policy"]
    )
    described = core.ask(DescribeConfigsRequest(resources=[resource], include_synonyms=True), 4)
    (config,) = described.results[0].configs
    assert (config.value, config.config_source) == ("compact", 1)
    assert [(synonym.value, synonym.source) for synonym in config.synonyms] == [("compact", 1), ("delete", 5)]


@pytest.mark.parametrize("at_once", [False, True])
def test_a_topic_is_made_when_a_client_asks_for_it(at_once: bool) -> None:
    core = Core(num_partitions=3, shows_created_topics=at_once)
    request = MetadataRequest(topics=[MetadataRequestTopic(name="new")], allow_auto_topic_creation=False)
    assert core.ask(request, 12).topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    request.allow_auto_topic_creation = True
    if not at_once:
        (first,) = core.ask(request, 12).topics
        assert (first.error_code, first.topic_id.int) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0)
        assert first.partitions == []
        request.allow_auto_topic_creation = False
    assert len(core.ask(request, 12).topics[0].partitions) == 3


def test_names_that_would_share_metrics_collide() -> None:
    core = Core(shows_created_topics=True)

    def codes(*names: str) -> list[int]:
        topics = [CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in names]
        return [topic.error_code for topic in core.ask(CreateTopicsRequest(topics=topics), 7).topics]

    error = ErrorCode.INVALID_TOPIC_EXCEPTION
    assert codes("a.b_c", "a_b.c", "a.b", "a.b_d") == [0, error, 0, 0]
    request = MetadataRequest(topics=[MetadataRequestTopic(name="a_b_c")], allow_auto_topic_creation=True)
    assert core.ask(request, 12).topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    core.ask(DeleteTopicsRequest(topics=[DeleteTopicState(name="a.b_c")]), 6)
    assert len(core.ask(request, 12).topics[0].partitions) == 1
    assert codes("a_b.c", "a_b") == [error, error]


# --- groups ---


def commit(core: Core, group: str, offset: int) -> None:
    coordinator = core.cluster.groups.coordinator_of(group)
    partition = OffsetCommitRequestPartition(committed_offset=offset)
    topic = OffsetCommitRequestTopic(name="orders", partitions=[partition])
    answer = core.ask(OffsetCommitRequest(group_id=group, topics=[topic]), 8, coordinator)
    assert answer.topics[0].partitions[0].error_code == 0


def test_requests_about_several_groups_are_put_together() -> None:
    core = Core(topics={"orders": 1})
    names = [f"group-{number}" for number in range(12)]
    for number, name in enumerate(names):
        commit(core, name, number)
    request = OffsetFetchRequest(
        groups=[OffsetFetchRequestGroup(group_id=name, topics=None) for name in names]
    )
    answer = core.ask(request, 9)
    offsets = {group.group_id: group.topics[0].partitions[0].committed_offset for group in answer.groups}
    assert offsets == {name: number for number, name in enumerate(names)}
    assert {group.group_id for group in core.ask(ListGroupsRequest(), 5).groups} == set(names)


def test_a_group_has_one_coordinator_among_the_nodes() -> None:
    core = Core(topics={"orders": 1}, nodes=3)
    names = [f"group-{number}" for number in range(12)]
    answer = core.ask(FindCoordinatorRequest(coordinator_keys=names), 6)
    nodes = {coordinator.key: coordinator.node_id for coordinator in answer.coordinators}
    assert set(nodes.values()) == {1, 2, 3}
    commit(core, "group-1", 3)
    elsewhere = next(node for node in (1, 2, 3) if node != nodes["group-1"])
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="group-1", topics=None)])
    assert core.ask(request, 9, elsewhere).groups[0].error_code == ErrorCode.NOT_COORDINATOR
    assert core.ask(request, 9, nodes["group-1"]).groups[0].error_code == 0


def test_groups_end_with_their_topic() -> None:
    """As on Kafka 4.4.0: nobody coordinates until a client looks for a coordinator, and it knows nothing."""
    config = CoordinatorConfig(initial_rebalance_delay_ms=3_000)
    core = Core(topics={"orders": 1}, coordinator=config)
    commit(core, "g", 42)
    protocols = [JoinGroupRequestProtocol(name="range", metadata=b"")]
    join = JoinGroupRequest(
        group_id="g", session_timeout_ms=6_000, protocol_type="consumer", protocols=protocols
    )
    parked, _ = core.begin(join, 3)
    fetch = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=None)])
    delete = DeleteTopicsRequest(topics=[DeleteTopicState(name="__consumer_offsets")])
    assert core.ask(delete, 6).responses[0].error_code == 0
    (answer,) = parked
    assert isinstance(answer, JoinGroupResponse)
    assert answer.error_code == ErrorCode.NOT_COORDINATOR
    for _ in range(2):
        assert core.ask(fetch, 9).groups[0].error_code == ErrorCode.NOT_COORDINATOR
        heartbeat = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
        assert core.ask(heartbeat, 4).error_code == ErrorCode.NOT_COORDINATOR
        assert core.ask(ListGroupsRequest(), 5) == ListGroupsResponse()
        assert "__consumer_offsets" not in core.cluster.topics
    find = FindCoordinatorRequest(key_type=0, coordinator_keys=["g"])
    assert core.ask(find, 4).coordinators[0].error_code == 0
    found = core.ask(fetch, 9).groups[0]
    assert (found.error_code, found.topics) == (0, [])
    commit(core, "g", 7)


def test_transactions_end_with_their_topic() -> None:
    core = Core(topics={"orders": 1})
    begin = InitProducerIdRequest(transactional_id="t", transaction_timeout_ms=10_000)
    first = core.ask(begin, 5)
    delete = DeleteTopicsRequest(topics=[DeleteTopicState(name="__transaction_state")])
    assert core.ask(delete, 6).responses[0].error_code == 0
    add = AddOffsetsToTxnRequest(
        transactional_id="t", producer_id=first.producer_id, producer_epoch=0, group_id="g"
    )
    assert core.ask(add, 4).error_code == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    again = core.ask(begin, 5)
    assert (again.error_code, again.producer_epoch) == (0, 0)
    assert again.producer_id != first.producer_id


def test_what_groups_write_is_read_as_any_topic() -> None:
    core = Core(topics={"orders": 1})
    commit(core, "g", 42)
    index = core.cluster.groups.partition_of("g")
    topic_id: UUID = core.cluster.topics["__consumer_offsets"].id
    part = FetchPartition(partition=index, partition_max_bytes=1000)
    answer = core.ask(FetchRequest(topics=[FetchTopic(topic_id=topic_id, partitions=[part])]), 13)
    from coordwire.logs import open_log_record
    from coordwire.records import batches

    (one,) = batches(answer.responses[0].partitions[0].records or b"")
    (record,) = one
    opened = open_log_record("__consumer_offsets", record)
    assert opened is not None
    assert (opened.key.group, opened.value.offset) == ("g", 42)  # type: ignore[union-attr]
