"""Places of partitions: elections of leaders, reassignments, and the log directories of nodes.

API keys and versions: AlterReplicaLogDirs 34 v1-2, DescribeLogDirs 35 v1-5, ElectLeaders 43 v0-2,
AlterPartitionReassignments 45 v0-1, ListPartitionReassignments 46 v0.

Rules: replicas share a log, so that a reassignment is complete when it is answered: none is ever under way.
A node has one folder, so that no log is moved to another. Logs in memory have a folder's name too, as clients
expect one.
"""

from __future__ import annotations

from collections.abc import Iterator

from coordwire.broker.cluster.facts import LogDirState
from coordwire.broker.cluster.topics import ClusterPartition
from coordwire.broker.handlers.api_call import ApiCall
from coordwire.broker.handlers.topics_api import check_replicas
from coordwire.enums import ErrorCode
from coordwire.messages import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    ElectLeadersRequest,
    ElectLeadersResponse,
    ListPartitionReassignmentsResponse,
)
from coordwire.messages.alter_partition_reassignments import (
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
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
from coordwire.messages.elect_leaders import PartitionResult, ReplicaElectionResult

# --- leaders and replicas ---


_PREFERRED, _UNCLEAN = 0, 1


def elect_leaders(call: ApiCall) -> ElectLeadersResponse:
    request: ElectLeadersRequest = call.request
    results: dict[str, ReplicaElectionResult] = {}
    is_for_all = request.topic_partitions is None
    for topic, index in _elections(call, request):
        result = _elected(call, topic, index, request.election_type)
        if topic not in results:
            results[topic] = ReplicaElectionResult(topic=topic, partition_result=[])
        if not is_for_all or result.error_code != ErrorCode.ELECTION_NOT_NEEDED:
            results[topic].partition_result.append(result)
    known = request.election_type in (_PREFERRED, _UNCLEAN)
    return ElectLeadersResponse(
        error_code=int(ErrorCode.NONE if known else ErrorCode.INVALID_REQUEST),
        replica_election_results=list(results.values()),
    )


def _elections(call: ApiCall, request: ElectLeadersRequest) -> Iterator[tuple[str, int]]:
    if request.topic_partitions is None:
        for known in call.cluster.topics.values():
            yield from ((known.name, partition.index) for partition in known.partitions)
    else:
        for topic in request.topic_partitions:
            yield from ((topic.topic, index) for index in topic.partitions)


def _elected(call: ApiCall, topic: str, index: int, kind: int) -> PartitionResult:
    partition = call.cluster.partition(topic, index)
    if kind not in (_PREFERRED, _UNCLEAN):
        error, message = ErrorCode.INVALID_REQUEST, f"Unknown election type {kind}"
    elif partition is None:
        error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        known = topic in call.cluster.topics
        message = f"No such partition as {topic}-{index}" if known else f"No such topic as {topic}"
    elif kind == _UNCLEAN and partition.leader == -1:
        error, message = _uncleanly(call, partition)
    elif kind == _UNCLEAN or partition.leader == partition.replicas[0]:
        error, message = ErrorCode.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition."
    elif partition.leader == -1 or partition.replicas[0] not in partition.isr:
        error, message = ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, "the preferred leader is not in sync"
    else:
        error, message = _moved(call, partition, partition.replicas[0])
    return PartitionResult(partition_id=index, error_code=int(error), error_message=message or None)


def _uncleanly(call: ApiCall, partition: ClusterPartition) -> tuple[ErrorCode, str]:
    """Let any replica lead that is online."""
    online = call.cluster.replication.online(partition)
    if not online:
        return ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, "no replica is online"
    return _moved(call, partition, online[0])


def _moved(call: ApiCall, partition: ClusterPartition, node: int) -> tuple[ErrorCode, str]:
    try:
        call.cluster.replication.move_leader(partition, node)
    except OSError as error:
        return ErrorCode.KAFKA_STORAGE_ERROR, str(error)
    call.cluster.replication.topic_changed(call.cluster.topics[partition.topic])
    return ErrorCode.NONE, ""


def alter_reassignments(call: ApiCall) -> AlterPartitionReassignmentsResponse:
    request: AlterPartitionReassignmentsRequest = call.request
    response = AlterPartitionReassignmentsResponse(
        error_message=None if request.topics else "",
        responses=[],
        allow_replication_factor_change=request.allow_replication_factor_change,
    )
    for topic in request.topics:
        answer = ReassignableTopicResponse(name=topic.name, partitions=[])
        for target in topic.partitions:
            error, message = _reassigned(call, request, topic.name, target)
            answer.partitions.append(
                ReassignablePartitionResponse(
                    partition_index=target.partition_index,
                    error_code=int(error),
                    error_message=message or None,
                )
            )
        response.responses.append(answer)
    return response


def _reassigned(
    call: ApiCall, request: AlterPartitionReassignmentsRequest, topic: str, target: ReassignablePartition
) -> tuple[ErrorCode, str]:
    cluster, replicas = call.cluster, target.replicas
    partition = cluster.partition(topic, target.partition_index)
    if topic not in cluster.topics:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find a topic named {topic}."
    if partition is None:
        message = f"Unable to find partition {topic}:{target.partition_index}."
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message
    if replicas is None:
        return ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, ""
    reason = check_replicas(cluster, replicas)
    if reason is not None:
        return ErrorCode.INVALID_REPLICA_ASSIGNMENT, reason
    if not request.allow_replication_factor_change and len(replicas) != len(partition.replicas):
        return ErrorCode.INVALID_REPLICATION_FACTOR, "The replication factor is changed."
    known, partition.replicas = partition.replicas, list(replicas)
    error, message = ErrorCode.NONE, ""
    if partition.leader not in replicas:
        error, message = _moved(call, partition, replicas[0])
    else:
        try:
            cluster.logs.partition_changed(cluster.topics[topic], partition)
        except OSError as failure:
            error, message = ErrorCode.KAFKA_STORAGE_ERROR, str(failure)
        else:
            cluster.replication.partition_changed(cluster.topics[topic], partition)
    if error:
        partition.replicas = known
    return error, message


def list_reassignments(call: ApiCall) -> ListPartitionReassignmentsResponse:
    return ListPartitionReassignmentsResponse(error_message=None, topics=[])


# --- log directories ---


def describe_log_dirs(call: ApiCall) -> DescribeLogDirsResponse:
    request: DescribeLogDirsRequest = call.request
    cluster = call.cluster
    names = (
        None if request.topics is None else {topic.topic: set(topic.partitions) for topic in request.topics}
    )
    topics = []
    for topic in cluster.topics.values():
        if names is not None and topic.name not in names:
            continue
        partitions = [
            DescribeLogDirsPartition(
                partition_index=partition.index, partition_size=partition.log.size, offset_lag=0
            )
            for partition in topic.partitions
            if call.node in partition.replicas and (names is None or partition.index in names[topic.name])
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
