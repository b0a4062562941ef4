"""Descriptions of nodes and topics: Metadata, DescribeCluster, DescribeTopicPartitions.

API keys and versions: Metadata 3 v0-13, DescribeCluster 60 v0-2, DescribeTopicPartitions 75 v0.

Rule: without an authorizer a client may do everything; where it asks, the operations are listed.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from coordwire.broker.cluster.topics import (
    OFFSETS_TOPIC,
    SHARE_STATE_TOPIC,
    TRANSACTIONS_TOPIC,
    ClusterPartition,
    ClusterTopic,
)
from coordwire.broker.handlers.api_call import ApiCall
from coordwire.coordinator.topics import bad_name
from coordwire.enums import EndpointType, ErrorCode
from coordwire.messages import (
    DescribeClusterRequest,
    DescribeClusterResponse,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    MetadataRequest,
    MetadataResponse,
)
from coordwire.messages.describe_cluster import DescribeClusterBroker
from coordwire.messages.describe_topic_partitions import (
    DescribeTopicPartitionsResponseCursor,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from coordwire.messages.metadata import (
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

_NOT_ASKED = -(1 << 31)
_TOPIC_OPERATIONS = sum(1 << operation for operation in (3, 4, 5, 6, 7, 8, 10, 11))
"""Read, Write, Create, Delete, Alter, Describe, DescribeConfigs, AlterConfigs."""

_CLUSTER_OPERATIONS = sum(1 << operation for operation in (5, 7, 8, 9, 10, 11, 12))
"""Create, Alter, Describe, ClusterAction, DescribeConfigs, AlterConfigs, IdempotentWrite."""

_ALLOWS_CREATION, _TOPIC_IDS, _NULLABLE_NAME = 4, 10, 12
_MOST_PARTITIONS = 2_000


def metadata(call: ApiCall) -> MetadataResponse:
    request: MetadataRequest = call.request
    cluster = call.cluster
    response = MetadataResponse(
        brokers=[
            MetadataResponseBroker(node_id=node.id, host=node.host, port=node.port, rack=node.rack)
            for node in cluster.nodes.values()
        ],
        cluster_id=cluster.cluster_id,
        controller_id=cluster.controller_id,
        topics=[],
    )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = _CLUSTER_OPERATIONS
    operations = _TOPIC_OPERATIONS if request.include_topic_authorized_operations else _NOT_ASKED
    if request.topics is None or (call.version == 0 and not request.topics):
        response.topics = [_described(call, topic, operations) for topic in list(cluster.topics.values())]
        return response
    refusal = _refusal(request, call.version)
    if refusal is not None:
        return _refused(request, refusal)
    may_create = call.version < _ALLOWS_CREATION or request.allow_auto_topic_creation
    with cluster.topics_changing():
        by_id = call.version >= _TOPIC_IDS and any(element.topic_id.int for element in request.topics)
        if by_id:  # names beside ids do not count
            for topic_id in dict.fromkeys(
                element.topic_id for element in request.topics if element.topic_id.int
            ):
                response.topics.append(_asked_by_id(call, topic_id, operations))
        else:
            for name in dict.fromkeys(element.name or "" for element in request.topics):
                response.topics.append(_topic_answer(call, name, may_create, operations))
    return response


def _refusal(request: MetadataRequest, version: int) -> ErrorCode | None:
    """Why Kafka does not answer about these topics at all; None if it does."""
    assert request.topics is not None
    for element in request.topics:
        if _TOPIC_IDS <= version < _NULLABLE_NAME and (element.topic_id.int or element.name is None):
            return ErrorCode.INVALID_REQUEST
    by_id = any(element.topic_id.int for element in request.topics)
    if not by_id and any(element.name is None for element in request.topics):
        return ErrorCode.UNKNOWN_SERVER_ERROR
    return None


def _refused(request: MetadataRequest, error: ErrorCode) -> MetadataResponse:
    return MetadataResponse(
        topics=[
            MetadataResponseTopic(error_code=int(error), name=element.name or "", topic_id=element.topic_id)
            for element in request.topics or ()
        ]
    )


def _asked_by_id(call: ApiCall, topic_id: UUID, operations: int) -> MetadataResponseTopic:
    topic = call.cluster.topics_by_id.get(topic_id)
    if topic is None:
        error = int(ErrorCode.UNKNOWN_TOPIC_ID)
        return MetadataResponseTopic(error_code=error, name=None, topic_id=topic_id)
    return _described(call, topic, operations)


def _topic_answer(call: ApiCall, name: str, may_create: bool, operations: int) -> MetadataResponseTopic:
    cluster = call.cluster
    topic = cluster.topics.get(name)
    if topic is not None:
        return _described(call, topic, operations)
    error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if bad_name(name) is not None:
        error = ErrorCode.INVALID_TOPIC_EXCEPTION
    elif may_create and cluster.config.auto_create_topics and not cluster.topic_alike(name):
        try:
            topic = _created(call, name)
        except OSError:
            topic = None
        if topic is not None and cluster.config.shows_created_topics:
            return _described(call, topic, operations)
    return MetadataResponseTopic(error_code=int(error), name=name)


def _created(call: ApiCall, name: str) -> ClusterTopic:
    """A topic that a client asks for."""
    cluster = call.cluster
    if name == OFFSETS_TOPIC:
        return cluster.offsets_topic()
    if name == TRANSACTIONS_TOPIC:
        return cluster.transactions_topic()
    if name == SHARE_STATE_TOPIC:
        return cluster.share_state_topic()
    factor = min(cluster.config.default_replication_factor, len(cluster.nodes))
    return cluster.create_topic(name, cluster.config.num_partitions, replication_factor=factor)


def _described(call: ApiCall, topic: ClusterTopic, operations: int) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.id,
        is_internal=topic.is_internal,
        partitions=[
            MetadataResponsePartition(
                partition_index=partition.index,
                leader_id=partition.leader,
                leader_epoch=partition.leader_epoch,
                **_replicas(call, partition),
            )
            for partition in topic.partitions
        ],
        topic_authorized_operations=operations,
    )


def _replicas(call: ApiCall, partition: ClusterPartition) -> dict[str, Any]:
    """The description of a partition's replicas."""
    online = call.cluster.replication.online(partition)
    return {
        "error_code": 0 if partition.leader >= 0 else int(ErrorCode.LEADER_NOT_AVAILABLE),
        "replica_nodes": list(partition.replicas),
        "isr_nodes": list(partition.isr),
        "offline_replicas": [node for node in partition.replicas if node not in online],
    }


def describe_cluster(call: ApiCall) -> DescribeClusterResponse:
    request: DescribeClusterRequest = call.request
    cluster = call.cluster
    if request.endpoint_type != EndpointType.BROKER:
        known = request.endpoint_type == EndpointType.CONTROLLER
        error = ErrorCode.MISMATCHED_ENDPOINT_TYPE if known else ErrorCode.UNSUPPORTED_ENDPOINT_TYPE
        return DescribeClusterResponse(
            error_code=int(error),
            error_message=(
                "The request was sent to an endpoint of type BROKER,"
                " but we wanted an endpoint of type CONTROLLER"
                if known
                else f"Unsupported endpoint type {request.endpoint_type}"
            ),
            endpoint_type=int(EndpointType.BROKER),
        )
    has_operations = request.include_cluster_authorized_operations
    return DescribeClusterResponse(
        cluster_id=cluster.cluster_id,
        controller_id=cluster.controller_id,
        brokers=[
            DescribeClusterBroker(broker_id=node.id, host=node.host, port=node.port, rack=node.rack)
            for node in cluster.nodes.values()
        ],
        cluster_authorized_operations=_CLUSTER_OPERATIONS if has_operations else _NOT_ASKED,
    )


def describe_topic_partitions(call: ApiCall) -> DescribeTopicPartitionsResponse:
    request: DescribeTopicPartitionsRequest = call.request
    cluster, cursor = call.cluster, request.cursor
    topic_names = {topic.name for topic in request.topics}
    refusal = None
    if "" in topic_names:
        refusal = ErrorCode.UNKNOWN_SERVER_ERROR
    elif cursor is not None and (
        cursor.partition_index < 0 or (topic_names and cursor.topic_name not in topic_names)
    ):
        refusal = ErrorCode.INVALID_REQUEST
    if refusal is not None:
        return DescribeTopicPartitionsResponse(
            topics=[
                DescribeTopicPartitionsResponseTopic(error_code=int(refusal), name=topic.name)
                for topic in request.topics
            ]
        )
    names = sorted(topic_names or cluster.topics)
    response = DescribeTopicPartitionsResponse(topics=[])
    room = max(1, min(request.response_partition_limit, _MOST_PARTITIONS))
    for name in names:
        if cursor is not None and name < cursor.topic_name:
            continue
        topic = cluster.topics.get(name)
        if topic is None:
            invalid = bad_name(name) is not None
            error = ErrorCode.INVALID_TOPIC_EXCEPTION if invalid else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            response.topics.append(
                DescribeTopicPartitionsResponseTopic(
                    error_code=int(error), name=name, topic_authorized_operations=_TOPIC_OPERATIONS
                )
            )
            continue
        first = max(cursor.partition_index, 0) if cursor is not None and name == cursor.topic_name else 0
        if room == 0:
            response.next_cursor = DescribeTopicPartitionsResponseCursor(
                topic_name=name, partition_index=first
            )
            break
        partitions = topic.partitions[first : first + room]
        response.topics.append(_partitions(call, topic, first, len(partitions)))
        room -= len(partitions)
        if first + len(partitions) < len(topic.partitions):
            response.next_cursor = DescribeTopicPartitionsResponseCursor(
                topic_name=name, partition_index=first + len(partitions)
            )
            break
    return response


def _partitions(
    call: ApiCall, topic: ClusterTopic, first: int, count: int
) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        name=topic.name,
        topic_id=topic.id,
        is_internal=topic.is_internal,
        partitions=[
            DescribeTopicPartitionsResponsePartition(
                partition_index=partition.index,
                leader_id=partition.leader,
                leader_epoch=partition.leader_epoch,
                **_replicas(call, partition),
                eligible_leader_replicas=[],
                last_known_elr=[],
            )
            for partition in topic.partitions[first : first + count]
        ],
        topic_authorized_operations=_TOPIC_OPERATIONS,
    )
