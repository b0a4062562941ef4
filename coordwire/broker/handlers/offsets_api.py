"""ListOffsets, OffsetForLeaderEpoch: where in a log a time or an epoch is. DeleteRecords: where it begins.

API keys and versions: ListOffsets 2 v1-11, DeleteRecords 21 v0-2, OffsetForLeaderEpoch 23 v2-4.
"""

from __future__ import annotations

from collections import Counter

from coordwire.broker.cluster.topics import ClusterPartition
from coordwire.broker.handlers.api_call import ApiCall, led_partition
from coordwire.broker.log.validation import RefusedRecords
from coordwire.enums import ErrorCode, IsolationLevel
from coordwire.messages import (
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from coordwire.messages.delete_records import DeleteRecordsPartitionResult, DeleteRecordsTopicResult
from coordwire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsTopicResponse,
)
from coordwire.messages.offset_for_leader_epoch import EpochEndOffset, OffsetForLeaderTopicResult

_LATEST, _EARLIEST, _MAX_TIMESTAMP, _EARLIEST_LOCAL, _LATEST_TIERED, _EARLIEST_PENDING = (
    -1,
    -2,
    -3,
    -4,
    -5,
    -6,
)
_SINCE = {_MAX_TIMESTAMP: 7, _EARLIEST_LOCAL: 8, _LATEST_TIERED: 9, _EARLIEST_PENDING: 11}
"""The version of ListOffsets that brought each of these times."""


def list_offsets(call: ApiCall) -> ListOffsetsResponse:
    request: ListOffsetsRequest = call.request
    response = ListOffsetsResponse(topics=[])
    for topic in request.topics:
        answer = ListOffsetsTopicResponse(name=topic.name, partitions=[])
        times = Counter(part.partition_index for part in topic.partitions)
        for part in {partition.partition_index: partition for partition in topic.partitions}.values():
            if request.isolation_level not in (
                IsolationLevel.READ_UNCOMMITTED,
                IsolationLevel.READ_COMMITTED,
            ):
                answer.partitions.append(_refused(part, ErrorCode.UNKNOWN_SERVER_ERROR))
            elif times[part.partition_index] > 1:
                answer.partitions.append(_refused(part, ErrorCode.INVALID_REQUEST))
            else:
                answer.partitions.append(_list(call, topic.name, part, request.isolation_level))
        response.topics.append(answer)
    return response


def _refused(part: ListOffsetsPartition, error: int) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(partition_index=part.partition_index, error_code=int(error))


def _list(
    call: ApiCall, topic: str, part: ListOffsetsPartition, isolation: int
) -> ListOffsetsPartitionResponse:
    partition = led_partition(call, topic, part.partition_index, part.current_leader_epoch)
    if isinstance(partition, ErrorCode):
        return _refused(part, partition)
    if (
        part.timestamp < 0
        and _SINCE.get(part.timestamp, 0 if part.timestamp >= _EARLIEST else 99) > call.version
    ):
        return _refused(part, ErrorCode.UNSUPPORTED_VERSION)
    try:
        timestamp, offset, epoch = _position_of(
            partition, part.timestamp, isolation == IsolationLevel.READ_COMMITTED
        )
    except RefusedRecords as refusal:
        return _refused(part, refusal.code)
    return ListOffsetsPartitionResponse(
        partition_index=part.partition_index, timestamp=timestamp, offset=offset, leader_epoch=epoch
    )


def _position_of(partition: ClusterPartition, timestamp: int, committed: bool) -> tuple[int, int, int]:
    """A timestamp, an offset and its leader epoch; -1 for what is not there."""
    log = partition.log
    if timestamp == _LATEST:
        return -1, log.limit(committed), log.epoch
    if timestamp in (_EARLIEST, _EARLIEST_LOCAL):
        epoch = log.epochs.at(log.start_offset)
        return -1, log.start_offset, epoch
    if timestamp in (_LATEST_TIERED, _EARLIEST_PENDING):  # nothing is in tiered storage
        return -1, -1, -1
    limit = log.limit(committed)
    position = log.latest_time() if timestamp == _MAX_TIMESTAMP else log.find_time(timestamp, limit)
    return (-1, -1, -1) if position is None else (position.timestamp, position.offset, position.epoch)


def epoch_ends(call: ApiCall) -> OffsetForLeaderEpochResponse:
    request: OffsetForLeaderEpochRequest = call.request
    response = OffsetForLeaderEpochResponse(topics=[])
    for topic in request.topics:
        answer = OffsetForLeaderTopicResult(topic=topic.topic, partitions=[])
        for part in topic.partitions:
            end = EpochEndOffset(partition=part.partition)
            partition = led_partition(call, topic.topic, part.partition, part.current_leader_epoch)
            if isinstance(partition, ErrorCode):
                end.error_code = int(partition)
            else:
                end.leader_epoch, end.end_offset = partition.log.epoch_end(part.leader_epoch)
            answer.partitions.append(end)
        response.topics.append(answer)
    return response


def delete_records(call: ApiCall) -> DeleteRecordsResponse:
    """A partition that is named twice begins at the last offset, and is answered once, as Kafka does."""
    request: DeleteRecordsRequest = call.request
    offsets = {
        (topic.name, part.partition_index): part.offset
        for topic in request.topics
        for part in topic.partitions
    }
    answers = {
        topic.name: DeleteRecordsTopicResult(name=topic.name, partitions=[]) for topic in request.topics
    }
    started: list[tuple[ClusterPartition, DeleteRecordsPartitionResult]] = []
    for (name, index), offset in offsets.items():
        result = DeleteRecordsPartitionResult(partition_index=index, low_watermark=-1)
        partition = led_partition(call, name, index)
        if isinstance(partition, ErrorCode):
            result.error_code = int(partition)
        else:
            result.error_code, result.low_watermark = _deleted(call, partition, offset)
            if not result.error_code:
                started.append((partition, result))
        answers[name].partitions.append(result)
    try:
        if started:
            call.cluster.logs.started(*(partition for partition, _ in started))
    except OSError:
        for _, result in started:
            result.error_code, result.low_watermark = int(ErrorCode.KAFKA_STORAGE_ERROR), -1
    return DeleteRecordsResponse(topics=list(answers.values()))


def _deleted(call: ApiCall, partition: ClusterPartition, offset: int) -> tuple[int, int]:
    """An error code, and where the log begins now."""
    topic = call.cluster.topics[partition.topic]
    if topic.is_internal:
        return int(ErrorCode.INVALID_TOPIC_EXCEPTION), -1
    if "delete" not in topic.settings.items("cleanup.policy"):
        return int(ErrorCode.POLICY_VIOLATION), -1
    try:
        return 0, partition.log.delete_before(offset)
    except RefusedRecords as refusal:
        return refusal.code, -1
    except OSError:
        return int(ErrorCode.KAFKA_STORAGE_ERROR), -1
