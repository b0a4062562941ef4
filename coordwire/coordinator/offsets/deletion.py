"""The end of offsets: by an operator (OffsetDelete, KIP-496), by retention or with a topic (KIP-211).

An empty group ends with its last offset.
"""

from __future__ import annotations

from collections.abc import Iterable

from coordwire.coordinator.model.group import GroupModel
from coordwire.coordinator.records import offset_tombstone
from coordwire.coordinator.refusal import OperationRefused
from coordwire.coordinator.state import Result, State
from coordwire.coordinator.topics import NO_TOPIC_ID, TopicImage
from coordwire.enums import ErrorCode
from coordwire.logs import LogRecord
from coordwire.messages import OffsetDeleteRequest, OffsetDeleteResponse
from coordwire.messages.offset_delete import (
    OffsetDeleteRequestPartition,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)

# --- by an operator ---


def _answered(
    name: str, partitions: list[OffsetDeleteRequestPartition], error: int
) -> OffsetDeleteResponseTopic:
    """A topic with one error for each of its partitions."""
    answered = [
        OffsetDeleteResponsePartition(partition_index=partition.partition_index, error_code=error)
        for partition in partitions
    ]
    return OffsetDeleteResponseTopic(name=name, partitions=answered)


def delete_offsets(state: State, request: OffsetDeleteRequest) -> Result:
    group = state.groups.get(request.group_id)
    if group is None:
        raise OperationRefused(ErrorCode.GROUP_ID_NOT_FOUND)
    state.kind_of(group).validate_deletion_of_offsets(group)
    records: list[LogRecord] = []
    answers = []
    for topic in request.topics:
        error = int(ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC) if group.is_subscribed(topic.name) else 0
        answers.append(_answered(topic.name, topic.partitions, error))
        for partition in topic.partitions:
            index = partition.partition_index
            if not error and _has_offset(state, request.group_id, topic.name, index):
                records.append(offset_tombstone(request.group_id, topic.name, index))
    return Result(records, OffsetDeleteResponse(topics=answers))


def _has_offset(state: State, group_id: str, topic: str, partition: int) -> bool:
    """Whether there is something to delete: an offset, or one of a transaction that has not ended."""
    known = state.offsets.find(group_id, topic, partition)
    return known is not None or state.pending_offsets.is_open(group_id, topic, partition)


# --- by retention, or with a topic ---

_EXPIRY_KEY = "expire-group-metadata"


def schedule_expiry(state: State) -> None:
    interval = state.config.offsets_retention_check_interval_ms
    state.set_timer(_EXPIRY_KEY, interval, lambda: expire_offsets(state))


def expire_offsets(state: State) -> Result:
    """Remove expired offsets; the next check comes an interval after this one, or after its failure."""
    records: list[LogRecord] = []
    for group in () if _is_stopped(state) else state.groups.values():
        if _expire_group(state, group, records) and group.is_empty:
            records += state.kind_of(group).tombstones(state, group)
    schedule_expiry(state)

    def appended(error: int) -> None:
        if error and error != ErrorCode.NOT_COORDINATOR:
            schedule_expiry(state)

    return Result(records, on_append=appended)


def _is_stopped(state: State) -> bool:
    """Whether Apache Kafka stumbles over the offsets that a share group has in a log of another writer."""
    return state.rules.share_groups_stop_expiry and any(
        not state.kind_of(group).expires and state.offsets.groups.get(group.group_id) is not None
        for group in state.groups.values()
    )


def _expire_group(state: State, group: GroupModel, records: list[LogRecord]) -> bool:
    """Whether the group is left without offsets, those of open transactions included."""
    kind = state.kind_of(group)
    if not kind.expires:
        return False
    offsets, pending = state.offsets.groups.get(group.group_id), state.pending_offsets
    is_open = bool(pending.of_group(group.group_id))
    if offsets is None:
        return not is_open
    remains = False
    retention = state.config.offsets_retention_ms
    for (topic, partition), committed in offsets.items():
        since = kind.retention_start(group, committed)
        is_needed = group.is_subscribed(topic) or pending.is_open(group.group_id, topic, partition)
        if since is not None and not is_needed and committed.expired(state.now, since, retention):
            records.append(offset_tombstone(group.group_id, topic, partition))
        else:
            remains = True
    return not remains and not is_open


def remove_topics(state: State, topics: Iterable[TopicImage]) -> Result:
    """Remove all groups' offsets of topics that were deleted, those of open transactions included."""
    deleted = {topic.name: topic.id for topic in topics}
    stored = [
        (group_id, partition, committed)
        for group_id, offsets in state.offsets.groups.items()
        for partition, committed in offsets.items()
    ]
    records = [
        offset_tombstone(group_id, topic, partition)
        for group_id, (topic, partition), committed in [*stored, *state.pending_offsets.all_offsets()]
        if topic in deleted and committed.topic_id in (NO_TOPIC_ID, deleted[topic])
    ]
    return Result(records)
