"""State from records: when a shard loads its partition, and when an operation's own records take effect."""

from __future__ import annotations

from coordwire.codec import Message
from coordwire.coordinator.classic.records import group_from_record
from coordwire.coordinator.consumer.replay import replay_consumer_group
from coordwire.coordinator.log_entries import LogEntry, TransactionMarker
from coordwire.coordinator.offsets.offset_replay import replay_end, replay_legacy_offset, replay_offset
from coordwire.coordinator.refusal import OperationRefused
from coordwire.coordinator.state import State
from coordwire.enums import ErrorCode
from coordwire.logs import LogRecord
from coordwire.messages import (
    GroupMetadataKey,
    GroupMetadataValue,
    LegacyOffsetCommitKey,
    LegacyOffsetCommitValue,
    OffsetCommitKey,
    OffsetCommitValue,
)

__all__ = ["replay", "replay_entry"]

_FORGOTTEN = frozenset({9})
"""Record types that no release has read since 4.1: the partition metadata of share groups."""


def replay_entry(state: State, entry: LogEntry) -> None:
    """Take up a record or a marker of a log.

    Raises `OperationRefused` for one that contradicts those before it, and for a value of a version that is
    unknown, without which the rest would mean something else.
    """
    record = entry.record
    if isinstance(record, TransactionMarker):
        replay_end(state, entry.producer_id, committed=record.committed)
    elif record.unknown is not None and isinstance(record.key, Message) and record.type not in _FORGOTTEN:
        raise OperationRefused(ErrorCode.UNKNOWN_SERVER_ERROR)
    else:
        replay(state, record, entry.offset, entry.producer_id)


def replay(state: State, record: LogRecord, offset: int, producer_id: int = -1) -> None:
    """Take up one record at an offset of the log; a type that is unknown changes nothing."""
    match record.key, record.value:
        case GroupMetadataKey(group=group_id), None:
            state.groups.pop(group_id)
        case GroupMetadataKey(group=group_id), GroupMetadataValue() as value:
            state.groups[group_id] = group_from_record(group_id, value)
        case OffsetCommitKey() as key, (OffsetCommitValue() | None) as value:
            replay_offset(state, key, value, offset, producer_id)
        case LegacyOffsetCommitKey() as old_key, (LegacyOffsetCommitValue() | None) as old:
            replay_legacy_offset(state, old_key, old, offset, producer_id)
        case _:
            replay_consumer_group(state, record.key, record.value)
