"""Every API in every version that is offered: each is answered, in a form that its version has."""

from __future__ import annotations

from uuid import UUID

import pytest

from coordwire.broker.cluster.facts import FeatureLevels
from coordwire.broker.handlers import APIS, versions_response
from coordwire.codec import Message
from coordwire.enums import ErrorCode
from coordwire.messages import (
    AddRaftVoterRequest,
    AlterConfigsRequest,
    AlterShareGroupOffsetsRequest,
    ApiVersionsRequest,
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
    CreateDelegationTokenRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteGroupsRequest,
    DeleteRecordsRequest,
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupStateRequest,
    DeleteTopicsRequest,
    DescribeClusterRequest,
    DescribeConfigsRequest,
    DescribeDelegationTokenRequest,
    DescribeGroupsRequest,
    DescribeShareGroupOffsetsRequest,
    DescribeTopicPartitionsRequest,
    ExpireDelegationTokenRequest,
    FetchRequest,
    FindCoordinatorRequest,
    HeartbeatRequest,
    IncrementalAlterConfigsRequest,
    InitializeShareGroupStateRequest,
    InitProducerIdRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    ListConfigResourcesRequest,
    ListGroupsRequest,
    ListOffsetsRequest,
    MetadataRequest,
    OffsetCommitRequest,
    OffsetDeleteRequest,
    OffsetFetchRequest,
    OffsetForLeaderEpochRequest,
    ProduceRequest,
    ReadShareGroupStateRequest,
    ReadShareGroupStateSummaryRequest,
    RemoveRaftVoterRequest,
    RenewDelegationTokenRequest,
    SaslAuthenticateRequest,
    SaslHandshakeRequest,
    ShareAcknowledgeRequest,
    ShareFetchRequest,
    ShareGroupDescribeRequest,
    ShareGroupHeartbeatRequest,
    StreamsGroupDescribeRequest,
    StreamsGroupHeartbeatRequest,
    StreamsGroupTopologyDescriptionUpdateRequest,
    SyncGroupRequest,
    UnregisterBrokerRequest,
    UnregisterControllerRequest,
    WriteShareGroupStateRequest,
    alter_configs,
    create_partitions,
    create_topics,
    delete_records,
    delete_topics,
    describe_configs,
    describe_topic_partitions,
    fetch,
    incremental_alter_configs,
    join_group,
    leave_group,
    list_offsets,
    metadata,
    offset_commit,
    offset_delete,
    offset_fetch,
    offset_for_leader_epoch,
    produce,
)
from coordwire.messages.streams_group_heartbeat import Subtopology, Topology
from tests.broker.core import Core, batch
from tests.broker.operators_requests import operators_requests
from tests.broker.transaction_client import transactional_requests

GROUP, TOPIC = "g", "orders"
NOBODY = UUID(int=99)


def requests(topic_id: UUID, version: int) -> dict[int, list[Message]]:
    """A few requests of each API: what is there, and what is not; before version 13 of some, by name."""
    names = [TOPIC, "missing", "bad/name", ""]
    ids = [topic_id, NOBODY, NOBODY, NOBODY]
    results: list[Message] = [
        ProduceRequest(
            acks=-1,
            topic_data=[
                produce.TopicProduceData(
                    name=name if version < 13 else "",
                    topic_id=one if version >= 13 else UUID(int=0),
                    partition_data=[
                        produce.PartitionProduceData(index=index, records=data)
                        for index, data in ((0, batch(b"v")), (1, b"x"), (2, None), (77, batch(b"v")))
                    ],
                )
                for name, one in zip(names, ids, strict=True)
            ],
        ),
        FetchRequest(
            replica_id=-1,
            topics=[
                fetch.FetchTopic(
                    topic=name if version < 13 else "",
                    topic_id=one if version >= 13 else UUID(int=0),
                    partitions=[
                        fetch.FetchPartition(partition=index, partition_max_bytes=1000, fetch_offset=offset)
                        for index, offset in ((0, 0), (1, 5), (77, 0))
                    ],
                )
                for name, one in zip(names, ids, strict=True)
            ],
        ),
        ListOffsetsRequest(
            replica_id=-1,
            topics=[
                list_offsets.ListOffsetsTopic(
                    name=name,
                    partitions=[
                        list_offsets.ListOffsetsPartition(partition_index=at, timestamp=time)
                        for at, time in enumerate((-1, -2, -3, -4, -5, -6, -7, 0))
                    ],
                )
                for name in names
            ],
        ),
        MetadataRequest(topics=[metadata.MetadataRequestTopic(name=name) for name in names]),
        OffsetCommitRequest(
            group_id=GROUP,
            topics=[
                offset_commit.OffsetCommitRequestTopic(
                    name=TOPIC if version < 10 else "",
                    topic_id=topic_id if version >= 10 else UUID(int=0),
                    partitions=[offset_commit.OffsetCommitRequestPartition(committed_offset=3)],
                )
            ],
        ),
        OffsetFetchRequest(
            group_id=GROUP if version < 8 else "",
            topics=[offset_fetch.OffsetFetchRequestTopic(name=TOPIC, partition_indexes=[0, 5])]
            if version < 8
            else [],
            groups=[offset_fetch.OffsetFetchRequestGroup(group_id=name, topics=None) for name in (GROUP, "h")]
            if version >= 8
            else [],
        ),
        FindCoordinatorRequest(key=GROUP)
        if version < 4
        else FindCoordinatorRequest(coordinator_keys=[GROUP, "another"]),
        JoinGroupRequest(
            group_id=GROUP,
            session_timeout_ms=10_000,
            rebalance_timeout_ms=10_000 if version else -1,
            protocol_type="consumer",
            protocols=[join_group.JoinGroupRequestProtocol(name="range", metadata=b"")],
        ),
        HeartbeatRequest(group_id=GROUP, member_id="absent"),
        LeaveGroupRequest(group_id=GROUP, member_id="absent" if version < 3 else "")
        if version < 3
        else LeaveGroupRequest(group_id=GROUP, members=[leave_group.MemberIdentity(member_id="absent")]),
        SyncGroupRequest(group_id=GROUP, member_id="absent", protocol_type=None, protocol_name=None),
        DescribeGroupsRequest(groups=[GROUP, "missing"]),
        ListGroupsRequest(),
        ApiVersionsRequest(client_software_name="test", client_software_version="1"),
        CreateTopicsRequest(
            topics=[
                create_topics.CreatableTopic(name=name, num_partitions=2, replication_factor=1)
                for name in ["made", *names]
            ]
        ),
        DeleteTopicsRequest(topic_names=["missing"])
        if version < 6
        else DeleteTopicsRequest(
            topics=[
                delete_topics.DeleteTopicState(name="missing"),
                delete_topics.DeleteTopicState(name=None, topic_id=NOBODY),
            ]
        ),
        DeleteRecordsRequest(
            topics=[
                delete_records.DeleteRecordsTopic(
                    name=name, partitions=[delete_records.DeleteRecordsPartition(partition_index=0)]
                )
                for name in names
            ]
        ),
        InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1),
        OffsetForLeaderEpochRequest(
            topics=[
                offset_for_leader_epoch.OffsetForLeaderTopic(
                    topic=name, partitions=[offset_for_leader_epoch.OffsetForLeaderPartition(partition=0)]
                )
                for name in names
            ]
        ),
        DescribeConfigsRequest(
            resources=[
                describe_configs.DescribeConfigsResource(
                    resource_type=kind, resource_name=name, configuration_keys=None
                )
                for kind, name in (
                    (2, TOPIC),
                    (2, "missing"),
                    (4, "1"),
                    (4, ""),
                    (4, "2"),
                    (32, GROUP),
                    (9, "x"),
                )
            ],
            include_synonyms=True,
        ),
        AlterConfigsRequest(
            resources=[
                alter_configs.AlterConfigsResource(
                    resource_type=2,
                    resource_name=name,
                    configs=[alter_configs.AlterableConfig(name="retention.ms", value="7")],
                )
                for name in names
            ]
        ),
        CreatePartitionsRequest(
            topics=[
                create_partitions.CreatePartitionsTopic(name=name, count=count, assignments=None)
                for name, count in ((TOPIC, 9), ("missing", 2))
            ]
        ),
        DeleteGroupsRequest(groups_names=["missing", "another"]),
        IncrementalAlterConfigsRequest(
            resources=[
                incremental_alter_configs.AlterConfigsResource(
                    resource_type=2,
                    resource_name=name,
                    configs=[incremental_alter_configs.AlterableConfig(name="retention.ms", value="x")],
                )
                for name in names
            ]
        ),
        OffsetDeleteRequest(
            group_id=GROUP,
            topics=[
                offset_delete.OffsetDeleteRequestTopic(
                    name=TOPIC, partitions=[offset_delete.OffsetDeleteRequestPartition()]
                )
            ],
        ),
        DescribeClusterRequest(include_cluster_authorized_operations=True),
        ConsumerGroupHeartbeatRequest(
            group_id=GROUP,
            member_id="m",
            member_epoch=0,
            rebalance_timeout_ms=1000,
            subscribed_topic_names=[TOPIC],
            topic_partitions=[],
        ),
        ConsumerGroupDescribeRequest(group_ids=[GROUP, "missing", ""]),
        StreamsGroupHeartbeatRequest(
            group_id="streams",
            member_id="m",
            rebalance_timeout_ms=1_000,
            active_tasks=[],
            standby_tasks=[],
            warmup_tasks=[],
            topology=Topology(subtopologies=[Subtopology(source_topics=[TOPIC])]),
        ),
        StreamsGroupDescribeRequest(group_ids=["streams", "missing", ""]),
        ListConfigResourcesRequest(),
        DescribeTopicPartitionsRequest(
            topics=[describe_topic_partitions.TopicRequest(name=name) for name in names]
        ),
        *transactional_requests(TOPIC, GROUP, version),
        *operators_requests(TOPIC),
        SaslHandshakeRequest(mechanism="PLAIN"),
        SaslAuthenticateRequest(auth_bytes=b"x"),
        *share_requests(),
    ]
    by_key: dict[int, list[Message]] = {}
    for request in results:
        assert request.api_key is not None
        by_key.setdefault(request.api_key, []).append(request)
    return by_key


def share_requests() -> list[Message]:
    """One of each API of share groups."""
    member = {"group_id": "g", "member_id": "m"}
    return [
        ShareGroupHeartbeatRequest(**member, subscribed_topic_names=[TOPIC]),  # type: ignore[arg-type]
        ShareGroupDescribeRequest(group_ids=["g"]),
        ShareFetchRequest(**member, max_bytes=1),  # type: ignore[arg-type]
        ShareAcknowledgeRequest(**member, share_session_epoch=1),  # type: ignore[arg-type]
        InitializeShareGroupStateRequest(group_id="g"),
        ReadShareGroupStateRequest(group_id="g"),
        WriteShareGroupStateRequest(group_id="g"),
        DeleteShareGroupStateRequest(group_id="g"),
        ReadShareGroupStateSummaryRequest(group_id="g"),
        DescribeShareGroupOffsetsRequest(),
        AlterShareGroupOffsetsRequest(group_id="g"),
        DeleteShareGroupOffsetsRequest(group_id="g"),
        CreateDelegationTokenRequest(),
        RenewDelegationTokenRequest(hmac=b"h"),
        ExpireDelegationTokenRequest(hmac=b"h"),
        DescribeDelegationTokenRequest(owners=None),
        *(UnregisterBrokerRequest(broker_id=number) for number in (1, 9)),
        *(UnregisterControllerRequest(controller_id=number) for number in (1, 9)),
        AddRaftVoterRequest(cluster_id=None, voter_id=7, voter_directory_id=NOBODY),
        RemoveRaftVoterRequest(cluster_id=None, voter_id=7, voter_directory_id=NOBODY),
        StreamsGroupTopologyDescriptionUpdateRequest(group_id="g"),
    ]


CELLS = [(key, version) for key, api in sorted(APIS.items()) for version in range(api.first, api.last + 1)]


@pytest.mark.parametrize(("key", "version"), CELLS)
def test_each_version_is_answered(key: int, version: int) -> None:
    core = Core(topics={TOPIC: 8})
    topic_id = core.cluster.topics[TOPIC].id
    for request in requests(topic_id, version)[key]:
        core.ask(request, version)  # type: ignore[arg-type]


def test_the_offered_versions_are_those_that_are_handled() -> None:
    response = versions_response(FeatureLevels({}), "4.4")
    offered = {api_key.api_key: (api_key.min_version, api_key.max_version) for api_key in response.api_keys}
    handled = {key: (api.first, api.last) for key, api in APIS.items()}
    assert offered.pop(0) == (0, 13)  # what librdkafka needs to see
    del handled[0]
    assert offered == handled


def test_errors_are_kafkas() -> None:
    core = Core(topics={TOPIC: 8})
    topic_id = core.cluster.topics[TOPIC].id
    (request,) = requests(topic_id, 12)[0]
    assert isinstance(request, ProduceRequest)
    answer = core.ask(request, 12)
    errors = [[part.error_code for part in topic.partition_responses] for topic in answer.responses]
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert errors == [
        [0, ErrorCode.INVALID_RECORD, ErrorCode.INVALID_RECORD, unknown],
        *[[unknown] * 4] * 3,
    ]


@pytest.mark.parametrize("version", [0, 5])
def test_a_request_that_only_reads_makes_no_topic(version: int) -> None:
    """Kafka 4.4 and 3.9 answer NOT_COORDINATOR until a client has looked for a coordinator."""
    core = Core()
    answer = core.ask(DescribeGroupsRequest(groups=["g"]), version)
    assert [group.error_code for group in answer.groups] == [ErrorCode.NOT_COORDINATOR]
    assert core.cluster.topics == {}
