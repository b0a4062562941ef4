"""DescribeLogDirs and AlterReplicaLogDirs: what is in a node's data folder, and how large it is.

Rules: a node has one folder, so that no log is moved to another. Logs in memory have a folder's name too, as
clients expect one.
"""

from __future__ import annotations

from coordwire.broker.cluster_nodes import LogDirState
from coordwire.broker.handlers.api_call import ApiCall
from coordwire.enums import ErrorCode
from coordwire.messages import (
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)
from coordwire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirTopicResult,
)
from coordwire.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)

__all__ = ["alter_log_dirs", "describe_log_dirs"]


def describe_log_dirs(call: ApiCall) -> DescribeLogDirsResponse:
    request: DescribeLogDirsRequest = call.request
    cluster = call.cluster
    asked = (
        None if request.topics is None else {topic.topic: set(topic.partitions) for topic in request.topics}
    )
    topics = []
    for topic in cluster.topics.values():
        if asked is not None and topic.name not in asked:
            continue
        partitions = [
            DescribeLogDirsPartition(partition_index=one.index, partition_size=one.log.size, offset_lag=0)
            for one in topic.partitions
            if call.node in one.replicas and (asked is None or one.index in asked[topic.name])
        ]
        if partitions:
            topics.append(DescribeLogDirsTopic(name=topic.name, partitions=partitions))
    place, node = cluster.logs.directory(call.node), cluster.nodes[call.node]
    try:
        total, usable = place.space()
        error = ErrorCode.NONE
    except OSError:
        error = ErrorCode.KAFKA_STORAGE_ERROR
    if node.log_dir is LogDirState.FULL:
        usable = 0
    if error or node.log_dir is LogDirState.OFFLINE:
        topics, total, usable, error = [], -1, -1, ErrorCode.KAFKA_STORAGE_ERROR
    return DescribeLogDirsResponse(
        results=[
            DescribeLogDirsResult(
                error_code=int(error),
                log_dir=place.name,
                topics=topics,
                total_bytes=total,
                usable_bytes=usable,
            )
        ]
    )


def alter_log_dirs(call: ApiCall) -> AlterReplicaLogDirsResponse:
    request: AlterReplicaLogDirsRequest = call.request
    own = call.cluster.logs.directory(call.node).name
    results: dict[str, AlterReplicaLogDirTopicResult] = {}
    for folder in request.dirs:
        for topic in folder.topics:
            if topic.name not in results:
                results[topic.name] = AlterReplicaLogDirTopicResult(topic_name=topic.name, partitions=[])
            for index in topic.partitions:
                known = call.cluster.partition(topic.name, index)
                error = ErrorCode.NONE
                if call.cluster.nodes[call.node].log_dir is LogDirState.OFFLINE:
                    error = ErrorCode.KAFKA_STORAGE_ERROR
                elif folder.path != own:
                    error = ErrorCode.LOG_DIR_NOT_FOUND
                elif known is None or call.node not in known.replicas:
                    error = ErrorCode.REPLICA_NOT_AVAILABLE
                results[topic.name].partitions.append(
                    AlterReplicaLogDirPartitionResult(partition_index=index, error_code=int(error))
                )
    return AlterReplicaLogDirsResponse(results=list(results.values()))
