"""The sets of ACLs, and the requests that a user sends under each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

from coordwire.codec import Request
from coordwire.coordinator.apis.guards import CLUSTER
from coordwire.messages import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    AddRaftVoterRequest,
    AlterClientQuotasRequest,
    AlterConfigsRequest,
    AlterPartitionReassignmentsRequest,
    AlterShareGroupOffsetsRequest,
    AlterUserScramCredentialsRequest,
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
    CreateAclsRequest,
    CreateDelegationTokenRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteAclsRequest,
    DeleteGroupsRequest,
    DeleteRecordsRequest,
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupStateRequest,
    DeleteTopicsRequest,
    DescribeAclsRequest,
    DescribeClientQuotasRequest,
    DescribeClusterRequest,
    DescribeConfigsRequest,
    DescribeDelegationTokenRequest,
    DescribeGroupsRequest,
    DescribeLogDirsRequest,
    DescribeProducersRequest,
    DescribeShareGroupOffsetsRequest,
    DescribeTopicPartitionsRequest,
    DescribeTransactionsRequest,
    DescribeUserScramCredentialsRequest,
    ElectLeadersRequest,
    EndTxnRequest,
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
    ListPartitionReassignmentsRequest,
    ListTransactionsRequest,
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
    ShareAcknowledgeRequest,
    ShareFetchRequest,
    ShareGroupDescribeRequest,
    ShareGroupHeartbeatRequest,
    StreamsGroupDescribeRequest,
    StreamsGroupHeartbeatRequest,
    StreamsGroupTopologyDescriptionUpdateRequest,
    SyncGroupRequest,
    TxnOffsetCommitRequest,
    UnregisterBrokerRequest,
    UnregisterControllerRequest,
    UpdateFeaturesRequest,
    WriteShareGroupStateRequest,
    WriteTxnMarkersRequest,
)
from coordwire.messages.create_acls import AclCreation
from tests.broker.core import batch

TOPICS = ("a", "b", "p-1")
_TOPIC, _GROUP, _CLUSTER, _TXN = 2, 3, 4, 5
_LITERAL, _PREFIXED = 3, 4
_DENY, _ALLOW = 2, 3

_Acl = tuple[int, int, str, int, int]

ACLS: dict[str, list[_Acl]] = {
    "none": [],
    "describe": [
        (_TOPIC, _LITERAL, "a", 8, _ALLOW),
        (_TOPIC, _PREFIXED, "p-", 8, _ALLOW),
        (_GROUP, _LITERAL, "g", 8, _ALLOW),
        (_TXN, _LITERAL, "x", 8, _ALLOW),
        (_CLUSTER, _LITERAL, CLUSTER, 8, _ALLOW),
        (_TOPIC, _LITERAL, "a", 10, _ALLOW),
        (_GROUP, _LITERAL, "g", 10, _ALLOW),
    ],
    "use": [
        (_TOPIC, _PREFIXED, "p-", 3, _ALLOW),
        (_TOPIC, _PREFIXED, "p-", 4, _ALLOW),
        (_TOPIC, _LITERAL, "new", 5, _ALLOW),
        (_GROUP, _LITERAL, "*", 3, _ALLOW),
        (_TXN, _PREFIXED, "x", 4, _ALLOW),
        (_TOPIC, _LITERAL, "*", 8, _ALLOW),
        (_TOPIC, _LITERAL, "b", 8, _DENY),
    ],
    "manage": [
        (_TOPIC, _LITERAL, "*", 2, _ALLOW),
        (_TOPIC, _LITERAL, "b", 2, _DENY),
        (_TOPIC, _LITERAL, "new", 10, _DENY),
        (_GROUP, _PREFIXED, "g", 6, _ALLOW),
        (_CLUSTER, _LITERAL, CLUSTER, 10, _ALLOW),
        (_CLUSTER, _LITERAL, CLUSTER, 12, _ALLOW),
    ],
}
"""By name: resource type, pattern type, name, operation, permission."""

ANY: dict[str, Any] = {
    "resource_type_filter": 1, "resource_name_filter": None, "pattern_type_filter": 1,
    "principal_filter": None, "host_filter": None, "operation": 1, "permission_type": 1,
}  # fmt: skip


def acls_of(name: str, user: str) -> list[AclCreation]:
    """A set of ACLs for a user."""
    return [
        AclCreation(
            resource_type=kind,
            resource_pattern_type=pattern,
            resource_name=resource,
            principal=f"User:{user}",
            host="*",
            operation=operation,
            permission_type=permission,
        )
        for kind, pattern, resource, operation, permission in ACLS[name]
    ]


def _made(cls: Any, fields: dict[str, Any]) -> Any:
    """A message from plain values."""
    known = {field.name: field for field in cls._layout_.fields}
    values = {}
    for name, value in fields.items():
        struct = known[name].struct
        if struct is None or value is None:
            values[name] = value
        elif known[name].array:
            values[name] = [_made(struct, element) for element in value]
        else:
            values[name] = _made(struct, value)
    return cls(**values)


def requests(ids: dict[str, UUID]) -> Iterator[tuple[Request[Any], int]]:
    """All requests with their versions. ids: of topics, by name."""
    for cls, version, fields in _plain(ids):
        yield _made(cls, fields), version


def _streams_heartbeat(group_id: str, source: str | None) -> dict[str, Any]:
    """Of no member: of a topology that reads a topic and has a repartition topic, or without a topology."""
    parts = [{"subtopology_id": "0", "source_topics": [source], "repartition_sink_topics": ["p-2"]}]
    return {
        "group_id": group_id,
        "member_id": "m",
        "member_epoch": 3 if source is None else 0,
        "topology": None if source is None else {"epoch": 1, "subtopologies": parts},
    }


def _shared(ids: dict[str, UUID], group_id: str) -> Iterator[tuple[Any, int, dict[str, Any]]]:
    """Of a share group that is not there. No set of ACLs lets a member of one read the topics. None has an id
    that no topic has: with an authorizer Kafka 4.4.0 fails over it, as a topic without a name."""
    member = {"group_id": group_id, "member_id": "m"}
    for epoch, names in ((3, None), (3, ["a"]), (0, ["a", "b"])):
        yield (
            ShareGroupHeartbeatRequest,
            1,
            {**member, "member_epoch": epoch, "subscribed_topic_names": names},
        )
    unread = [ids["a"], ids["b"]]
    fetched = [{"topic_id": topic_id, "partitions": [{"partition_index": 0}]} for topic_id in unread]
    acknowledged = [{"first_offset": 0, "last_offset": 0, "acknowledge_types": [1]}]
    places = [
        {
            "topic_id": topic_id,
            "partitions": [{"partition_index": 0, "acknowledgement_batches": acknowledged}],
        }
        for topic_id in unread
    ]
    sizes = {"max_wait_ms": 0, "min_bytes": 0, "max_bytes": 1 << 20, "max_records": 10, "batch_size": 10}
    yield ShareFetchRequest, 1, {**member, "share_session_epoch": 0, **sizes, "topics": fetched}
    yield ShareFetchRequest, 1, {**member, "share_session_epoch": 1, **sizes, "topics": places}
    yield ShareAcknowledgeRequest, 1, {**member, "share_session_epoch": 2, "topics": places}
    altered = [
        {"topic_name": name, "partitions": [{"partition_index": 0, "start_offset": 0}]}
        for name in ("a", "b", "missing")
    ]
    yield AlterShareGroupOffsetsRequest, 0, {"group_id": group_id, "topics": altered}
    deleted = [{"topic_name": name} for name in ("a", "b", "missing")]
    yield DeleteShareGroupOffsetsRequest, 0, {"group_id": group_id, "topics": deleted}
    states = [{"topic_id": ids["a"], "partitions": [{"partition": 0}]}]
    for cls in (
        InitializeShareGroupStateRequest, ReadShareGroupStateRequest, WriteShareGroupStateRequest,
        DeleteShareGroupStateRequest, ReadShareGroupStateSummaryRequest,
    ):  # fmt: skip
        yield cls, 0, {"group_id": group_id, "topics": states}


def _plain(ids: dict[str, UUID]) -> Iterator[tuple[Any, int, dict[str, Any]]]:
    names: list[dict[str, Any]] = [{"name": name} for name in (*TOPICS, "missing")]
    by_id = [{"name": None, "topic_id": ids[name]} for name in TOPICS]
    for version in (0, 1, 12):
        topics = names if version > 4 else names[:3]  # before, a topic that is asked for may be made
        yield MetadataRequest, version, {"topics": topics, "allow_auto_topic_creation": version < 4}
        yield MetadataRequest, version, {"topics": None if version else []}
    yield MetadataRequest, 12, {"topics": by_id}
    yield MetadataRequest, 13, {
        "topics": names[:3], "include_topic_authorized_operations": True, "allow_auto_topic_creation": False,
    }  # fmt: skip
    yield MetadataRequest, 10, {"topics": [], "include_cluster_authorized_operations": True}
    yield DescribeClusterRequest, 1, {"include_cluster_authorized_operations": True}
    yield DescribeTopicPartitionsRequest, 0, {"topics": names}
    yield DescribeTopicPartitionsRequest, 0, {"topics": names[1:2]}
    yield DescribeTopicPartitionsRequest, 0, {"topics": []}
    part = {"index": 0, "records": batch(b"1")}
    named = [{"name": name["name"], "partition_data": [part]} for name in names]
    yield ProduceRequest, 9, {"acks": -1, "timeout_ms": 1000, "topic_data": named}
    transactional = batch(b"1", producer_id=9, producer_epoch=0, base_sequence=0, transactional=True)
    content = [{"name": "a", "partition_data": [{"index": 0, "records": transactional}]}]
    yield (
        ProduceRequest,
        9,
        {"acks": -1, "timeout_ms": 1000, "topic_data": content, "transactional_id": "y"},
    )
    fetched = [
        {"topic": name["name"], "partitions": [{"partition": 0, "partition_max_bytes": 0}]} for name in names
    ]
    yield FetchRequest, 12, {"max_wait_ms": 0, "min_bytes": 0, "topics": fetched, "session_epoch": -1}
    fetched = [
        {"topic_id": ids[name], "partitions": [{"partition": 0, "partition_max_bytes": 0}]} for name in TOPICS
    ]
    yield FetchRequest, 13, {"max_wait_ms": 0, "min_bytes": 0, "topics": fetched, "session_epoch": -1}
    yield (
        ListOffsetsRequest,
        7,
        {"topics": [{**name, "partitions": [{"partition_index": 0, "timestamp": -2}]} for name in names]},
    )
    yield (
        OffsetForLeaderEpochRequest,
        4,
        {
            "topics": [
                {"topic": name["name"], "partitions": [{"partition": 0, "leader_epoch": 0}]} for name in names
            ]
        },
    )
    yield (
        DeleteRecordsRequest,
        2,
        {"topics": [{**name, "partitions": [{"partition_index": 0, "offset": 0}]} for name in names]},
    )
    yield DescribeProducersRequest, 0, {"topics": [{**name, "partition_indexes": [0]} for name in names]}
    # topics
    expected = [{"name": name, "num_partitions": 1, "replication_factor": 1} for name in ("new", "other")]
    for version in (4, 7):
        yield CreateTopicsRequest, version, {"topics": expected, "validate_only": True}
    counts = [{**name, "count": 2, "assignments": None} for name in names]
    yield CreatePartitionsRequest, 3, {"topics": counts, "validate_only": True, "timeout_ms": 9000}
    yield DeleteTopicsRequest, 5, {"topic_names": ["b", "missing"], "timeout_ms": 9000}
    yield (
        DeleteTopicsRequest,
        6,
        {
            "topics": [{"name": "b"}, {"name": "missing"}, {"name": None, "topic_id": UUID(int=7)}],
            "timeout_ms": 9000,
        },
    )
    yield DeleteTopicsRequest, 6, {"topics": [{"name": None, "topic_id": ids["b"]}], "timeout_ms": 9000}
    resources = [
        {"resource_type": kind, "resource_name": name}
        for kind, name in ((2, "a"), (2, "b"), (2, "missing"), (4, "1"), (32, "g"), (32, "h"), (16, "c"))
    ]
    keys = [{**resource, "configuration_keys": ["no-such-key"]} for resource in resources]
    yield DescribeConfigsRequest, 4, {"resources": keys}
    none = [{**resource, "configs": []} for resource in resources if resource["resource_name"] != "missing"]
    yield AlterConfigsRequest, 2, {"resources": none[:2], "validate_only": True}
    yield IncrementalAlterConfigsRequest, 1, {"resources": none[:5], "validate_only": True}
    yield ListConfigResourcesRequest, 1, {"resource_types": [16]}
    # groups
    for name in ("g", "h"):
        yield JoinGroupRequest, 7, {
            "group_id": name, "session_timeout_ms": 1, "protocol_type": "consumer",
            "protocols": [{"name": "range"}],
        }  # fmt: skip
        yield SyncGroupRequest, 5, {
            "group_id": name, "generation_id": 1, "member_id": "m", "protocol_type": "consumer",
            "protocol_name": "range",
        }  # fmt: skip
        yield HeartbeatRequest, 4, {"group_id": name, "generation_id": 1, "member_id": "m"}
        yield LeaveGroupRequest, 5, {"group_id": name, "members": [{"member_id": "m"}]}
        yield ConsumerGroupHeartbeatRequest, 1, {"group_id": name, "member_id": "m", "member_epoch": 3}
        yield ConsumerGroupHeartbeatRequest, 1, {
            "group_id": name, "member_id": "m", "member_epoch": 3, "subscribed_topic_names": ["a", "b"],
        }  # fmt: skip
        for source in (None, "a", "p-1", "b", "__consumer_offsets"):
            yield StreamsGroupHeartbeatRequest, 0, _streams_heartbeat(name, source)
        yield from _shared(ids, name)
        commits = [{**name, "partitions": [{"partition_index": 0, "committed_offset": 1}]} for name in names]
        yield OffsetCommitRequest, 8, {"group_id": name, "member_id": "m", "topics": commits,
                                       "generation_id_or_member_epoch": 4}  # fmt: skip
        asked: list[dict[str, Any]] = [{**name, "partition_indexes": [0]} for name in names]
        for version in (1, 5):
            yield OffsetFetchRequest, version, {"group_id": name, "topics": asked}
        yield OffsetFetchRequest, 5, {"group_id": name, "topics": None}
        yield OffsetDeleteRequest, 0, {
            "group_id": name, "topics": [{**name, "partitions": [{"partition_index": 0}]} for name in names],
        }  # fmt: skip
        yield FindCoordinatorRequest, 3, {"key": name}
        yield AddOffsetsToTxnRequest, 3, {
            "transactional_id": "x", "producer_id": 5, "producer_epoch": 0, "group_id": name,
        }  # fmt: skip
        for transactional_id in ("x", "y"):
            yield TxnOffsetCommitRequest, 3, {
                "transactional_id": transactional_id, "producer_id": 5, "producer_epoch": 0, "group_id": name,
                "topics": commits, "member_id": "", "generation_id_or_member_epoch": -1,
            }  # fmt: skip
    yield (
        OffsetFetchRequest,
        8,
        {
            "groups": [{"group_id": name, "topics": asked} for name in ("g", "h")]
            + [{"group_id": "g2", "topics": None}]
        },
    )
    for version in (3, 5):
        yield ListGroupsRequest, version, {}
    yield DescribeGroupsRequest, 5, {"groups": ["g", "h"], "include_authorized_operations": True}
    yield ConsumerGroupDescribeRequest, 0, {"group_ids": ["g", "h"]}
    yield StreamsGroupDescribeRequest, 0, {"group_ids": ["g", "h"]}
    yield ShareGroupDescribeRequest, 1, {"group_ids": ["g", "h"]}
    hidden = [{"topic_name": name, "partitions": [0]} for name in ("b", "missing")]
    yield DescribeShareGroupOffsetsRequest, 1, {
        "groups": [{"group_id": name, "topics": topics} for name in ("g", "h") for topics in (hidden, None)],
    }  # fmt: skip
    yield DeleteGroupsRequest, 2, {"groups_names": ["h", "g2"]}
    for kind, keys_asked in ((0, ["g", "h"]), (1, ["x", "y"])):
        yield FindCoordinatorRequest, 4, {"key_type": kind, "coordinator_keys": keys_asked}
    # transactions
    yield InitProducerIdRequest, 4, {"transactional_id": "y", "transaction_timeout_ms": 0}
    yield InitProducerIdRequest, 4, {"transactional_id": "x", "transaction_timeout_ms": 0}
    places = [{**name, "partitions": [0]} for name in names]
    for name in ("x", "y"):
        yield AddPartitionsToTxnRequest, 3, {
            "v3_and_below_transactional_id": name, "v3_and_below_producer_id": 5,
            "v3_and_below_producer_epoch": 0, "v3_and_below_topics": places,
        }  # fmt: skip
        yield EndTxnRequest, 3, {"transactional_id": name, "producer_id": 5, "producer_epoch": 0}
    yield (
        AddPartitionsToTxnRequest,
        4,
        {
            "transactions": [
                {"transactional_id": "x", "producer_id": 5, "producer_epoch": 0, "topics": places}
            ]
        },
    )
    yield (
        WriteTxnMarkersRequest,
        1,
        {
            "markers": [
                {"producer_id": 5, "producer_epoch": 0, "topics": [{"name": "a", "partition_indexes": [9]}]}
            ]
        },
    )
    yield DescribeTransactionsRequest, 0, {"transactional_ids": ["x", "y"]}
    yield ListTransactionsRequest, 0, {}
    # the cluster
    yield DescribeAclsRequest, 3, ANY
    yield CreateAclsRequest, 3, {"creations": [{
        "resource_type": 2, "resource_pattern_type": 3, "resource_name": "", "principal": "User:z",
        "host": "*", "operation": 3, "permission_type": 3,
    }]}  # fmt: skip
    yield DeleteAclsRequest, 3, {"filters": [ANY | {"principal_filter": "User:nobody"}]}
    yield DescribeLogDirsRequest, 3, {"topics": []}
    yield ElectLeadersRequest, 2, {"topic_partitions": [{"topic": "a", "partitions": [0]}]}
    yield AlterPartitionReassignmentsRequest, 0, {"topics": []}
    yield ListPartitionReassignmentsRequest, 0, {"topics": []}
    yield DescribeClientQuotasRequest, 1, {"components": [], "strict": False}
    yield AlterClientQuotasRequest, 1, {
        "entries": [{"entity": [{"entity_type": "user", "entity_name": "u"}], "ops": []}],
        "validate_only": True,
    }  # fmt: skip
    yield DescribeUserScramCredentialsRequest, 0, {"users": []}
    yield AlterUserScramCredentialsRequest, 0, {"deletions": [{"name": "u", "mechanism": 1}]}
    for version in (1, 2):
        yield UpdateFeaturesRequest, version, {
            "feature_updates": [{"feature": "group.version", "max_version_level": 1}], "validate_only": True,
        }  # fmt: skip
    yield CreateDelegationTokenRequest, 3, {"renewers": [], "max_lifetime_ms": -1}
    yield CreateDelegationTokenRequest, 3, {
        "owner_principal_type": "User", "owner_principal_name": "z", "renewers": [], "max_lifetime_ms": -1,
    }  # fmt: skip
    yield CreateDelegationTokenRequest, 2, {
        "renewers": [{"principal_type": "Group", "principal_name": "z"}], "max_lifetime_ms": 1000,
    }  # fmt: skip
    for version in (1, 2):
        yield RenewDelegationTokenRequest, version, {"hmac": b"abc", "renew_period_ms": -1}
        yield ExpireDelegationTokenRequest, version, {"hmac": b"abc", "expiry_time_period_ms": -1}
    for owners in (None, [], [{"principal_type": "User", "principal_name": "z"}]):
        yield DescribeDelegationTokenRequest, 3, {"owners": owners}
    yield UnregisterBrokerRequest, 0, {"broker_id": 9}
    yield UnregisterControllerRequest, 0, {"controller_id": 9}
    for directory in (UUID(int=0), UUID(int=7)):
        yield AddRaftVoterRequest, 1, {"voter_id": 7, "voter_directory_id": directory}
        yield RemoveRaftVoterRequest, 0, {"voter_id": 7, "voter_directory_id": directory}
    yield StreamsGroupTopologyDescriptionUpdateRequest, 0, {
        "group_id": "s", "member_id": "m", "topology_epoch": 0,
        "topology_description": {"subtopologies": [], "global_stores": []},
    }  # fmt: skip
    yield MetadataRequest, 12, {"topics": [{"name": "asked-for"}], "allow_auto_topic_creation": True}
