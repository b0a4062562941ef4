"""OffsetDelete (KIP-496): an operator removes offsets of topics that the group does not subscribe to."""

from __future__ import annotations

from coordwire.coordinator.either_group import is_dead, is_empty
from coordwire.coordinator.model.classic_group import ClassicGroupModel
from coordwire.coordinator.model.committed_offsets import offset_tombstone
from coordwire.coordinator.offsets.answered_topics import AnsweredTopics
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


Unknown = AnsweredTopics[OffsetDeleteResponseTopic]
"""The topics and partitions of a request that do not exist, with their errors."""


def resolve_delete(
    state: State, request: OffsetDeleteRequest
) -> tuple[list[OffsetDeleteRequestTopic], Unknown]:
    """The topics and partitions that exist, and those that do not."""
    known = []
    unknown: Unknown = AnsweredTopics(
        lambda topic: topic.name, lambda topic: OffsetDeleteResponseTopic(name=topic.name)
    )
    for topic in request.topics:
        valid: list[OffsetDeleteRequestPartition] = []
        missing: list[OffsetDeleteRequestPartition] = []
        for partition in topic.partitions:
            there = state.topics.has(topic.name, partition.partition_index)
            (valid if there else missing).append(partition)
        if missing:
            error = int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            unknown.add(_answered(topic.name, missing, error))
        if valid:
            known.append(OffsetDeleteRequestTopic(name=topic.name, partitions=valid))
    return known, unknown


def _answered(
    name: str, partitions: list[OffsetDeleteRequestPartition], error: int
) -> OffsetDeleteResponseTopic:
    """A topic with one error for each of its partitions."""
    answered = [
        OffsetDeleteResponsePartition(partition_index=one.partition_index, error_code=error)
        for one in partitions
    ]
    return OffsetDeleteResponseTopic(name=name, partitions=answered)


def delete_offsets(
    state: State,
    request: OffsetDeleteRequest,
    topics: list[OffsetDeleteRequestTopic],
    unknown: Unknown,
) -> Result:
    group = state.groups.get(request.group_id)
    if group is None or is_dead(group):
        raise OperationRefused(ErrorCode.GROUP_ID_NOT_FOUND)
    if isinstance(group, ClassicGroupModel) and not is_empty(group) and not group.is_consumer:
        raise OperationRefused(ErrorCode.NON_EMPTY_GROUP)
    records: list[LogRecord] = []
    found = []
    for topic in topics:
        error = int(ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC) if group.is_subscribed(topic.name) else 0
        found.append(_answered(topic.name, topic.partitions, error))
        for partition in topic.partitions:
            index = partition.partition_index
            if not error and _has_offset(state, request.group_id, topic.name, index):
                records.append(offset_tombstone(request.group_id, topic.name, index))
    return Result(records, OffsetDeleteResponse(topics=unknown.merged(found)))


def _has_offset(state: State, group_id: str, topic: str, partition: int) -> bool:
    """Whether there is something to delete: an offset, or one of a transaction that has not ended."""
    known = state.offsets.find(group_id, topic, partition)
    return known is not None or state.pending_offsets.is_open(group_id, topic, partition)
