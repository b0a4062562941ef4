"""OffsetDelete (KIP-496): an operator removes offsets of topics that the group does not subscribe to."""

from __future__ import annotations

from coordwire.coordinator.either_group import is_dead, is_empty
from coordwire.coordinator.model.classic_group import ClassicGroupModel
from coordwire.coordinator.model.committed_offsets import offset_tombstone
from coordwire.coordinator.refusal import OperationRefused
from coordwire.coordinator.state import Result, State
from coordwire.enums import ErrorCode
from coordwire.logs import LogRecord
from coordwire.messages import OffsetDeleteRequest, OffsetDeleteResponse
from coordwire.messages.offset_delete import (
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)

__all__ = ["delete_offsets", "resolve_delete"]


def resolve_delete(
    state: State, request: OffsetDeleteRequest
) -> tuple[list[OffsetDeleteRequestTopic], OffsetDeleteResponse]:
    """The topics and partitions that exist, and the answer so far: those that do not."""
    known = []
    response = OffsetDeleteResponse()
    for topic in request.topics:
        valid: list[OffsetDeleteRequestPartition] = []
        for partition in topic.partitions:
            if state.topics.has(topic.name, partition.partition_index):
                valid.append(partition)
            else:
                error = int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
                _add(response, topic.name, partition.partition_index, error)
        if valid:
            known.append(OffsetDeleteRequestTopic(name=topic.name, partitions=valid))
    return known, response


def _add(response: OffsetDeleteResponse, name: str, partition: int, error: int) -> None:
    for topic in response.topics:
        if topic.name == name:
            break
    else:
        topic = OffsetDeleteResponseTopic(name=name)
        response.topics.append(topic)
    topic.partitions.append(OffsetDeleteResponsePartition(partition_index=partition, error_code=error))


def delete_offsets(
    state: State,
    request: OffsetDeleteRequest,
    topics: list[OffsetDeleteRequestTopic],
    response: OffsetDeleteResponse,
) -> Result:
    group = state.groups.get(request.group_id)
    if group is None or is_dead(group):
        raise OperationRefused(ErrorCode.GROUP_ID_NOT_FOUND)
    if isinstance(group, ClassicGroupModel) and not is_empty(group) and not group.is_consumer:
        raise OperationRefused(ErrorCode.NON_EMPTY_GROUP)
    offsets = state.offsets.groups.get(request.group_id)
    records: list[LogRecord] = []
    for topic in topics:
        error = int(ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC) if group.is_subscribed(topic.name) else 0
        for partition in topic.partitions:
            index = partition.partition_index
            _add(response, topic.name, index, error)
            if not error and offsets is not None and (topic.name, index) in offsets:
                records.append(offset_tombstone(request.group_id, topic.name, index))
    return Result(records, response)
