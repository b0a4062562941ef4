"""DescribeQuorum: the nodes of a KRaft cluster that keep its metadata. Here that is one, the controller."""

from __future__ import annotations

from uuid import UUID

from coordwire.broker.handlers.api_call import ApiCall
from coordwire.enums import ErrorCode
from coordwire.messages import DescribeQuorumRequest, DescribeQuorumResponse
from coordwire.messages.describe_quorum import (
    DescribeQuorumRequestTopicData,
    DescribeQuorumResponsePartitionData,
    DescribeQuorumResponseTopicData,
    Listener,
    Node,
    ReplicaState,
)

__all__ = ["describe_quorum"]

_TOPIC = "__cluster_metadata"
_NO_DIRECTORY = UUID(int=0)
_NOT_HOSTED = "This server does not host this topic-partition."


def describe_quorum(call: ApiCall) -> DescribeQuorumResponse:
    request: DescribeQuorumRequest = call.request
    asked = [
        (topic.topic_name, [one.partition_index for one in topic.partitions]) for topic in request.topics
    ]
    if asked != [(_TOPIC, [0])]:
        return DescribeQuorumResponse(topics=[_refused(topic) for topic in request.topics])
    cluster, now = call.cluster, call.cluster.clock()
    controller = cluster.nodes[cluster.controller_id]
    end = cluster.logs.metadata_end

    def state(node: int) -> ReplicaState:
        return ReplicaState(
            replica_id=node,
            replica_directory_id=_NO_DIRECTORY,
            log_end_offset=end,
            last_fetch_timestamp=now,
            last_caught_up_timestamp=now,
        )

    data = DescribeQuorumResponsePartitionData(
        partition_index=0,
        error_message=None,
        leader_id=controller.id,
        leader_epoch=1,
        high_watermark=end,
        current_voters=[state(controller.id)],
        observers=[state(node) for node in cluster.nodes if node != controller.id],
    )
    return DescribeQuorumResponse(
        error_message=None,
        topics=[DescribeQuorumResponseTopicData(topic_name=_TOPIC, partitions=[data])],
        nodes=[
            Node(
                node_id=controller.id,
                listeners=[Listener(name="PLAINTEXT", host=controller.host, port=controller.port)],
            )
        ],
    )


def _refused(topic: DescribeQuorumRequestTopicData) -> DescribeQuorumResponseTopicData:
    error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    partitions = [
        DescribeQuorumResponsePartitionData(
            partition_index=one.partition_index, error_code=int(error), error_message=_NOT_HOSTED
        )
        for one in topic.partitions
    ]
    return DescribeQuorumResponseTopicData(topic_name=topic.topic_name, partitions=partitions)
