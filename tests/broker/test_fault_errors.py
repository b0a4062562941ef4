"""Error codes of faults: for every API of the broker, in every version, they are where Kafka puts them, the
answer can be read, and what was not refused was carried out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest

from coordwire.broker.connections.version_fit import fit
from coordwire.broker.handlers import APIS, ApiCall
from coordwire.broker.injection import FaultHandle, FaultRule, Faults
from coordwire.broker.injection.faulted_call import faulted
from coordwire.codec import Message
from coordwire.codec.walk import entity_places
from coordwire.enums import ErrorCode
from coordwire.messages import (
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DescribeGroupsRequest,
    FetchRequest,
    FindCoordinatorRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    MetadataRequest,
    OffsetFetchRequest,
    ProduceRequest,
    find_message,
)
from coordwire.messages.create_topics import CreatableTopic
from coordwire.messages.delete_topics import DeleteTopicState
from coordwire.messages.fetch import FetchPartition, FetchTopic
from coordwire.messages.leave_group import MemberIdentity
from coordwire.messages.metadata import MetadataRequestTopic
from coordwire.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchRequestTopics
from coordwire.messages.produce import PartitionProduceData, TopicProduceData
from coordwire.versions import ApiKey
from tests.broker.core import Core, answers_of, batch

TOPICS = {"one": 2, "two": 2}


def small() -> Core:
    return Core(topics=TOPICS, offsets_partitions=1, transactions_partitions=1)


class Line:
    """What a fault does to a connection."""

    def __init__(self) -> None:
        self.did: list[str] = []
        self.timers: list[tuple[float, Any]] = []

    def hang_up(self) -> None:
        self.did.append("hang up")

    def send_half(self, response: Message) -> None:
        self.did.append("half")

    def call_later(self, seconds: float, action: Any) -> Any:
        self.timers.append((seconds, action))
        return self

    def cancel(self) -> None:
        self.did.append("cancel")

    def request_handled(self) -> None:
        self.did.append("request_handled")


def answered(core: Core, faults: Faults, request: Any, version: int, node: int = 1) -> list[Any]:
    """What a client reads as the answer to a request."""
    key = request.api_key
    sent = type(request).decode(request.encode(version=version), version=version)
    call = ApiCall(core.cluster, node, sent, version, "test", "/127.0.0.1")
    answers, _ = answers_of(faulted(faults, call, key, APIS[key].handler, Line()))
    if not answers:
        core.cluster.advance()
    read: list[Any] = []
    for answer in answers:
        fit(answer, version)
        read.append(type(answer).decode(answer.encode(version=version), version=version))
    return read


def codes(response: Message) -> dict[str, str]:
    """The error codes of a response, by their paths."""
    return {path: ErrorCode(code).name for path, _, _, code in entity_places(response, "error_code") if code}


def asked(api_key: int, version: int, core: Core) -> Any:
    """A request with two of everything that it may be about."""
    cls: Any = find_message(api_key, "request")
    return _filled(cls, version, core, "")


NAMES = {
    "name": ("one", "two"), "topic": ("one", "two"), "topic_name": ("one", "two"),
    "resource_name": ("one", "two"),
}  # fmt: skip

ACL_PARTS = (
    "resource_type_filter", "resource_pattern_type", "pattern_type_filter", "operation", "permission_type",
)  # fmt: skip
"""No broker answers a request in which one of these is 0."""


def _filled(cls: Any, version: int, core: Core, suffix: str, number: int = 0) -> Any:
    values: dict[str, Any] = {}
    for field in cls._layout_.fields:
        if not field.exists(version) or field.tag is not None:
            continue
        if field.struct is not None and field.array:
            values[field.name] = [
                _filled(field.struct, version, core, f"-{number}", number) for number in (0, 1)
            ]
        elif field.array:
            values[field.name] = [_value(field, core, f"-{number}", number) for number in (0, 1)]
        elif field.struct is None:
            values[field.name] = _value(field, core, suffix, number)
    return cls(**values)


def _value(field: Any, core: Core, suffix: str, number: int) -> Any:
    if field.name == "topic_id":
        return core.cluster.topics[("one", "two")[number]].id
    if field.entity == "topic_name" or field.name in NAMES:
        return ("one", "two")[number]
    if field.name == "acks":
        return -1
    if field.name == "response_partition_limit":
        return 100
    if field.name == "resource_type" or field.name in ACL_PARTS:
        return 2
    if field.name in ("records", "metadata") and field.type in ("records", "bytes"):
        return batch(b"value") if field.name == "records" else b""
    if field.type == "string":
        return f"{field.name}{suffix}"
    if field.type in ("bytes", "records"):
        return b""
    if field.type == "uuid":
        return UUID(int=number)
    if field.type == "bool":
        return False
    if field.entity == "broker_id":
        return -1
    return number


EVERY = [(key, version) for key, api in sorted(APIS.items()) for version in range(api.first, api.last + 1)]


def places(api_key: int, version: int) -> list[str]:
    """Where Apache Kafka's broker puts the error of a whole request: the paths, with * for each element."""
    key = ApiKey(api_key)
    match key:
        case ApiKey.PRODUCE:
            return ["responses[*].partition_responses[*].error_code"]
        case ApiKey.FETCH:
            return ["responses[*].partitions[*].error_code"]
        case ApiKey.ADD_PARTITIONS_TO_TXN if version < 4:
            return ["results_by_topic_v3_and_below[*].results_by_partition[*].partition_error_code"]
        case ApiKey.ADD_PARTITIONS_TO_TXN:
            return ["results_by_transaction[*].topic_results[*].results_by_partition[*].partition_error_code"]
        case ApiKey.WRITE_TXN_MARKERS:
            return ["markers[*].topics[*].partitions[*].error_code"]
        case (
            ApiKey.LIST_OFFSETS
            | ApiKey.OFFSET_COMMIT
            | ApiKey.DELETE_RECORDS
            | ApiKey.OFFSET_FOR_LEADER_EPOCH
            | ApiKey.TXN_OFFSET_COMMIT
            | ApiKey.DESCRIBE_PRODUCERS
        ):
            return ["topics[*].partitions[*].error_code"]
        case ApiKey.OFFSET_FETCH if version < 2:
            return ["topics[*].partitions[*].error_code"]
        case ApiKey.OFFSET_FETCH if version >= 8:
            return ["groups[*].error_code"]
        case ApiKey.FIND_COORDINATOR if version >= 4:
            return ["coordinators[*].error_code"]
        case ApiKey.METADATA | ApiKey.CREATE_TOPICS | ApiKey.DESCRIBE_TOPIC_PARTITIONS:
            return ["topics[*].error_code"]
        case ApiKey.DELETE_TOPICS | ApiKey.ALTER_CONFIGS | ApiKey.INCREMENTAL_ALTER_CONFIGS:
            return ["responses[*].error_code"]
        case (
            ApiKey.DESCRIBE_GROUPS
            | ApiKey.CONSUMER_GROUP_DESCRIBE
            | ApiKey.SHARE_GROUP_DESCRIBE
            | ApiKey.STREAMS_GROUP_DESCRIBE
            | ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS
        ):
            return ["groups[*].error_code"]
        case ApiKey.DELETE_GROUPS | ApiKey.DESCRIBE_CONFIGS | ApiKey.CREATE_PARTITIONS:
            return ["results[*].error_code"]
        case (
            ApiKey.INITIALIZE_SHARE_GROUP_STATE
            | ApiKey.READ_SHARE_GROUP_STATE
            | ApiKey.WRITE_SHARE_GROUP_STATE
            | ApiKey.DELETE_SHARE_GROUP_STATE
            | ApiKey.READ_SHARE_GROUP_STATE_SUMMARY
        ):
            return ["results[*].partitions[*].error_code"]
        case ApiKey.ELECT_LEADERS:
            return ["replica_election_results[*].partition_result[*].error_code"]
        case ApiKey.ALTER_PARTITION_REASSIGNMENTS:
            return ["responses[*].partitions[*].error_code"]
        case ApiKey.DESCRIBE_LOG_DIRS if version < 3:
            return ["results[0].error_code"]
        case (
            ApiKey.ALTER_REPLICA_LOG_DIRS
        ):  # each partition is named for two folders; Kafka has a result for each
            return [f"results[*].partitions[{number}].error_code" for number in range(4)]
        case ApiKey.ALTER_CLIENT_QUOTAS:
            return ["entries[*].error_code"]
        case ApiKey.ALTER_USER_SCRAM_CREDENTIALS:
            return ["results[*].error_code"]
        case ApiKey.CREATE_ACLS:
            return ["results[*].error_code"]
        case ApiKey.DELETE_ACLS:
            return ["filter_results[*].error_code"]
        case ApiKey.DESCRIBE_TRANSACTIONS:
            return ["transaction_states[*].error_code"]
        case _:
            return ["error_code"]


def spread(pattern: str) -> Iterator[str]:
    """A pattern's paths for two elements of each array."""
    if "*" not in pattern:
        yield pattern
        return
    for number in ("0", "1"):
        yield from spread(pattern.replace("*", number, 1))


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize(("api_key", "version"), EVERY)
def test_an_error_is_where_kafka_puts_it(api_key: int, version: int, after: bool) -> None:
    core = small()
    faults = Faults()
    fault = faults.add(FaultRule(api_key, error=ErrorCode.THROTTLING_QUOTA_EXCEEDED, after=after))
    answers = answered(core, faults, asked(api_key, version, core), version)
    if after and not answers:  # it waits for something
        return
    (answer,) = answers
    expected = {path for pattern in places(api_key, version) for path in spread(pattern)}
    result = codes(answer)
    assert {path for path, name in result.items() if name == "THROTTLING_QUOTA_EXCEEDED"} == expected
    assert fault.hits == 1
    if not after:
        assert set(result) == expected


def produced(*places: tuple[str, int]) -> ProduceRequest:
    topics = {name: TopicProduceData(name=name, partition_data=[]) for name, _ in places}
    for name, index in places:
        topics[name].partition_data.append(PartitionProduceData(index=index, records=batch(b"value")))
    return ProduceRequest(acks=-1, timeout_ms=1000, topic_data=list(topics.values()))


ALL = [("one", 0), ("one", 1), ("two", 0)]


def ends(core: Core) -> list[int]:
    results = [core.cluster.partition(*place) for place in ALL]
    return [place.log.end_offset for place in results if place is not None]


@pytest.mark.parametrize(
    ("conditions", "refused", "appended"),
    [
        ({"topic": "one", "partition": 1}, ["responses[1].partition_responses[0]"], [1, 0, 1]),
        ({"topic": "two"}, ["responses[1].partition_responses[0]"], [1, 1, 0]),
        (
            {"partition": 0, "after": True},
            [f"responses[{n}].partition_responses[0]" for n in (0, 1)],
            [1, 1, 1],
        ),
        ({"partition": 7, "optional": True}, [], [1, 1, 1]),
    ],
)
def test_what_is_not_refused_is_appended(
    conditions: dict[str, Any], refused: list[str], appended: list[int]
) -> None:
    core, faults = small(), Faults()
    faults.add(FaultRule("Produce", error="NOT_LEADER_OR_FOLLOWER", **conditions))
    (answer,) = answered(core, faults, produced(*ALL), 9)
    assert ends(core) == appended
    result = codes(answer)
    assert set(result.values()) <= {"NOT_LEADER_OR_FOLLOWER"}
    assert len(result) == len(refused)
    for topic in answer.responses:
        for part in topic.partition_responses:
            assert (part.base_offset == -1) == bool(part.error_code)
            assert bool(part.error_message) == bool(part.error_code)
    assert sum(len(topic.partition_responses) for topic in answer.responses) == len(ALL)


def test_two_rules_take_one_request() -> None:
    core, faults = small(), Faults()
    faults.add(FaultRule("Produce", topic="one", partition=0, error="KAFKA_STORAGE_ERROR"))
    faults.add(FaultRule("Produce", topic="two", error="NOT_ENOUGH_REPLICAS"))
    (answer,) = answered(core, faults, produced(*ALL), 9)
    assert sorted(codes(answer).values()) == ["KAFKA_STORAGE_ERROR", "NOT_ENOUGH_REPLICAS"]
    assert ends(core) == [0, 1, 0]


@pytest.mark.parametrize("version", [11, 16])
def test_a_partition_of_a_fetch_session(version: int) -> None:
    """Requests of a session name no partitions; the rule knows those that it has."""
    core, faults = small(), Faults()
    answered(core, faults, produced(("one", 0)), 9)
    topic = core.cluster.topics["one"]
    named: dict[str, Any] = {"topic": "one"} if version < 13 else {"topic_id": topic.id}
    request = FetchRequest(
        max_wait_ms=500,
        min_bytes=1,
        session_epoch=0,
        topics=[
            FetchTopic(
                **named,
                partitions=[
                    FetchPartition(partition=at, fetch_offset=0, partition_max_bytes=100) for at in (0, 1)
                ],
            )
        ],
    )
    (first,) = answered(core, faults, request, version)
    assert isinstance(first, type(request).response_class)
    fault = faults.add(FaultRule("Fetch", topic="one", partition=1, error="KAFKA_STORAGE_ERROR"))
    faults.add(FaultRule("Fetch", topic="two", error="KAFKA_STORAGE_ERROR", optional=True))
    following = FetchRequest(max_wait_ms=500, min_bytes=1 << 20, session_id=first.session_id, session_epoch=1)
    (answer,) = answered(core, faults, following, version)
    assert fault.hits == 1
    assert list(codes(answer).values()) == ["KAFKA_STORAGE_ERROR"]
    assert [
        part.partition_index
        for response in answer.responses
        for part in response.partitions
        if part.error_code
    ] == [1]


@pytest.mark.parametrize(
    ("request_", "version", "conditions", "expected"),
    [
        (
            FetchRequest(max_wait_ms=0, min_bytes=1),
            11,
            {"error": "FETCH_SESSION_ID_NOT_FOUND"},
            ["error_code"],
        ),
        (
            MetadataRequest(topics=None),
            12,
            {"error": "LEADER_NOT_AVAILABLE"},
            ["topics[0].error_code", "topics[1].error_code"],
        ),
        (
            MetadataRequest(topics=None),
            12,
            {"error": "LEADER_NOT_AVAILABLE", "topic": "two"},
            ["topics[1].error_code"],
        ),
        (
            MetadataRequest(topics=[MetadataRequestTopic(name="one"), MetadataRequestTopic(name="two")]),
            0,
            {"error": "LEADER_NOT_AVAILABLE", "topic": "two", "partition": 1},
            ["topics[1].partitions[1].error_code"],
        ),
        (MetadataRequest(topics=None), 13, {"error": "REBOOTSTRAP_REQUIRED"}, ["error_code"]),
        (
            OffsetFetchRequest(
                groups=[
                    OffsetFetchRequestGroup(
                        group_id="g", topics=[OffsetFetchRequestTopics(name="one", partition_indexes=[0, 1])]
                    )
                ]
            ),
            8,
            {"error": "UNSTABLE_OFFSET_COMMIT", "group": "g"},
            ["groups[0].topics[0].partitions[0].error_code", "groups[0].topics[0].partitions[1].error_code"],
        ),
        (
            OffsetFetchRequest(
                groups=[OffsetFetchRequestGroup(group_id=name, topics=None) for name in ("g", "h")]
            ),
            8,
            {"error": "COORDINATOR_LOAD_IN_PROGRESS", "group": "h"},
            ["groups[1].error_code"],
        ),
        (
            LeaveGroupRequest(group_id="g", members=[MemberIdentity(member_id=name) for name in ("a", "b")]),
            4,
            {"error": "FENCED_INSTANCE_ID", "member": "b"},
            ["members[1].error_code"],
        ),
        (
            LeaveGroupRequest(group_id="g", members=[MemberIdentity(member_id="a")]),
            4,
            {"error": "COORDINATOR_NOT_AVAILABLE", "group": "g"},
            ["error_code"],
        ),
        (
            FindCoordinatorRequest(key_type=0, coordinator_keys=["g", "h"]),
            4,
            {"error": "COORDINATOR_NOT_AVAILABLE", "group": "h"},
            ["coordinators[1].error_code"],
        ),
        (
            FindCoordinatorRequest(key_type=1, key="t"),
            2,
            {"error": "COORDINATOR_NOT_AVAILABLE", "transactional_id": "t", "after": True},
            ["error_code"],
        ),
        (
            DescribeGroupsRequest(groups=["g", "h"]),
            5,
            {"error": "GROUP_AUTHORIZATION_FAILED", "group": "g", "after": True},
            ["groups[0].error_code"],
        ),
        (
            DeleteTopicsRequest(topics=[DeleteTopicState(name="one"), DeleteTopicState(name="two")]),
            6,
            {"error": "TOPIC_DELETION_DISABLED", "topic": "two"},
            ["responses[1].error_code"],
        ),
        (
            CreateTopicsRequest(
                topics=[
                    CreatableTopic(name=name, num_partitions=1, replication_factor=1)
                    for name in ("three", "four")
                ]
            ),
            7,
            {"error": "POLICY_VIOLATION", "topic": "four"},
            ["topics[1].error_code"],
        ),
        (
            JoinGroupRequest(group_id="g", member_id="m"),
            4,
            {"error": "UNKNOWN_MEMBER_ID", "at": "request"},
            ["error_code"],
        ),
    ],
)
def test_a_rule_reaches_what_it_is_about(
    request_: Any, version: int, conditions: dict[str, Any], expected: list[str]
) -> None:
    core, faults = small(), Faults()
    fault = faults.add(FaultRule(type(request_), **conditions))
    (answer,) = answered(core, faults, request_, version)
    assert fault.hits == 1
    result = {path for path, name in codes(answer).items() if name == conditions["error"]}
    assert result == set(expected)


def test_metadata_keeps_its_brokers_and_its_other_topics() -> None:
    core, faults = small(), Faults()
    faults.add(FaultRule("Metadata", topic="one", error="LEADER_NOT_AVAILABLE", times=None))
    for version in (0, 1, 12):
        for names in (["one"], ["one", "two"]):
            topics = [MetadataRequestTopic(name=name) for name in names]
            (answer,) = answered(core, faults, MetadataRequest(topics=topics), version)
            assert len(answer.brokers) == 1
            seen = {topic.name: len(topic.partitions) for topic in answer.topics}
            assert seen == {"one": 0} | ({"two": 2} if "two" in names else {})


def test_topics_that_are_named_by_their_ids() -> None:
    core, faults = small(), Faults()
    topic = core.cluster.topics["two"]
    fault: FaultHandle = faults.add(
        FaultRule("DeleteTopics", topic="two", error="TOPIC_AUTHORIZATION_FAILED")
    )
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name=None, topic_id=topic.id)])
    (answer,) = answered(core, faults, request, 6)
    assert fault.hits == 1
    assert answer.responses[0].topic_id == topic.id
    assert "two" in core.cluster.topics
