"""Offsets end with their retention or their topic (KIP-211), an empty group with its last offset."""

from __future__ import annotations

from collections.abc import Iterable

from coordwire.coordinator.either_group import is_empty, tombstones
from coordwire.coordinator.model.classic_states import GroupState
from coordwire.coordinator.model.committed_offsets import CommittedOffset, offset_tombstone
from coordwire.coordinator.model.consumer_group import ConsumerGroupModel
from coordwire.coordinator.state import GroupModel, Result, State
from coordwire.coordinator.topics import NO_TOPIC_ID, TopicImage
from coordwire.enums import ErrorCode
from coordwire.logs import LogRecord

__all__ = ["expire_offsets", "remove_topics", "schedule_expiry"]

_KEY = "expire-group-metadata"


def schedule_expiry(state: State) -> None:
    interval = state.config.offsets_retention_check_interval_ms
    state.set_timer(_KEY, interval, lambda: expire_offsets(state))


def expire_offsets(state: State) -> Result:
    """Remove what has expired; the next check comes an interval after this one, or after its failure."""
    records: list[LogRecord] = []
    for group in state.groups.values():
        if _expire_group(state, group, records) and is_empty(group):
            records += tombstones(group)
    schedule_expiry(state)

    def appended(error: int) -> None:
        if error and error != ErrorCode.NOT_COORDINATOR:
            schedule_expiry(state)

    return Result(records, on_append=appended)


def _expire_group(state: State, group: GroupModel, records: list[LogRecord]) -> bool:
    """Whether the group is left without offsets, those of open transactions included."""
    offsets, pending = state.offsets.groups.get(group.group_id), state.pending_offsets
    is_open = bool(pending.of_group(group.group_id))
    if offsets is None:
        return not is_open
    if not _may_expire(group):
        return False
    left = False
    retention = state.config.offsets_retention_ms
    for (topic, partition), committed in offsets.items():
        since = _since(group, committed)
        kept = group.is_subscribed(topic) or pending.is_open(group.group_id, topic, partition)
        if not kept and committed.expired(state.now, since, retention):
            records.append(offset_tombstone(group.group_id, topic, partition))
        else:
            left = True
    return not left and not is_open


def _may_expire(group: GroupModel) -> bool:
    """Offsets of a group with members expire only where the coordinator knows what these subscribe to."""
    return (
        isinstance(group, ConsumerGroupModel)
        or group.protocol_type is None
        or group.state is GroupState.EMPTY
        or (group.is_consumer and group.topics is not None and group.state is GroupState.STABLE)
    )


def _since(group: GroupModel, committed: CommittedOffset) -> int:
    """What the retention counts from: the moment in which a typed group became empty, else the commit."""
    if isinstance(group, ConsumerGroupModel):
        return committed.committed_at
    if group.protocol_type is None or group.state is not GroupState.EMPTY or group.state_since is None:
        return committed.committed_at
    return group.state_since


def remove_topics(state: State, topics: Iterable[TopicImage]) -> Result:
    """Remove all groups' offsets of topics that were deleted, those of open transactions included."""
    gone = {topic.name: topic.id for topic in topics}
    stored = [
        (group_id, partition, committed)
        for group_id, offsets in state.offsets.groups.items()
        for partition, committed in offsets.items()
    ]
    records = [
        offset_tombstone(group_id, topic, partition)
        for group_id, (topic, partition), committed in [*stored, *state.pending_offsets.all_offsets()]
        if topic in gone and committed.topic_id in (NO_TOPIC_ID, gone[topic])
    ]
    return Result(records)
