"""State from records: when a shard loads its partition, and when an operation's own records take effect."""

from __future__ import annotations

from coordwire.coordinator.classic.records import group_from_record
from coordwire.coordinator.consumer.replay import replay_consumer_group
from coordwire.coordinator.model.classic_group import ClassicGroupModel
from coordwire.coordinator.state import State
from coordwire.logs import LogRecord
from coordwire.messages import (
    GroupMetadataKey,
    GroupMetadataValue,
    LegacyOffsetCommitKey,
    LegacyOffsetCommitValue,
    OffsetCommitKey,
    OffsetCommitValue,
)

__all__ = ["replay"]


def replay(state: State, record: LogRecord) -> None:
    """Take up one record; types and versions that are unknown change nothing."""
    match record.key, record.value:
        case GroupMetadataKey(group=group_id), None:
            state.groups.pop(group_id)
        case GroupMetadataKey(group=group_id), GroupMetadataValue() as value:
            state.groups[group_id] = group_from_record(group_id, value)
        case OffsetCommitKey() as key, (OffsetCommitValue() | None) as value:
            _replay_offset(state, key, value)
        case LegacyOffsetCommitKey(group=group_id, topic=topic, partition=partition), (
            LegacyOffsetCommitValue() | None
        ) as old:
            value = None
            if old is not None:
                value = OffsetCommitValue(
                    offset=old.offset, metadata=old.metadata, commit_timestamp=old.commit_timestamp
                )
            _replay_offset(state, OffsetCommitKey(group=group_id, topic=topic, partition=partition), value)
        case _:
            replay_consumer_group(state, record.key, record.value)


def _replay_offset(state: State, key: OffsetCommitKey, value: OffsetCommitValue | None) -> None:
    if value is not None and key.group not in state.groups:
        state.groups[key.group] = ClassicGroupModel(key.group, state.now)
    state.offsets.replay(key, value)
