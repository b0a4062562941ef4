"""The replay of records into the state, when a shard loads its log and when an operation takes effect.

A record of offsets is replayed here, one of a group by the group's kind.
Rules: tombstones of missing keys change nothing, so that a compacted log loads. Records that contradict
the state are refused, as by Apache Kafka: a group ends after its members, a member after its partitions. A
transaction's offset takes the place of an older one only; the log's offsets say which of two commits is
later, so that a compacted log leads to the same state.
"""

from __future__ import annotations

from coordwire.codec import Message
from coordwire.coordinator.log_entries import LogEntry, TransactionMarker
from coordwire.coordinator.model.classic_group import ClassicGroupModel
from coordwire.coordinator.model.offsets import CommittedOffset
from coordwire.coordinator.refusal import contradiction
from coordwire.coordinator.state import State
from coordwire.logs import LogRecord
from coordwire.messages import (
    LegacyOffsetCommitKey,
    LegacyOffsetCommitValue,
    OffsetCommitKey,
    OffsetCommitValue,
)

# --- any record ---

_FORGOTTEN = frozenset({9})
"""Record types that no release has read since 4.1: the partition metadata of share groups."""


def replay_entry(state: State, entry: LogEntry) -> None:
    """Replay a record or a marker of a log.

    Raises `OperationRefused` for one that contradicts earlier ones, and for a value of an unknown version,
    without which later records would have another meaning.
    """
    record = entry.record
    if isinstance(record, TransactionMarker):
        replay_end(state, entry.producer_id, committed=record.committed)
    elif record.unknown is not None and isinstance(record.key, Message) and record.type not in _FORGOTTEN:
        raise contradiction()
    else:
        replay(state, record, entry.offset, entry.producer_id)


def replay(state: State, record: LogRecord, offset: int, producer_id: int = -1) -> None:
    """Replay one record at an offset of the log; an unknown type changes nothing."""
    key, value = record.key, record.value
    kind = state.kind_of_record.get(type(key))
    if kind is not None:
        kind.replay(state, key, value)
        if state.former_topics and value is not None:
            _subscribe(state, getattr(key, "group_id", ""))
        return
    match key, value:
        case OffsetCommitKey(), (OffsetCommitValue() | None):
            _replay_offset(state, key, value, offset, producer_id)
        case LegacyOffsetCommitKey(), (LegacyOffsetCommitValue() | None):
            _replay_legacy_offset(state, key, value, offset, producer_id)


def _subscribe(state: State, group_id: str) -> None:
    """A group's subscriptions count as its own from now on."""
    former, group = state.former_topics.get(group_id), state.groups.get(group_id)
    if former and group is not None:
        state.former_topics[group_id] = former.difference(
            [name for name in former if group.is_subscribed(name)]
        )


# --- offsets ---

_NO_PRODUCER = -1


def _replay_offset(
    state: State, key: OffsetCommitKey, value: OffsetCommitValue | None, offset: int, producer_id: int
) -> None:
    """Replay a commit or a tombstone at this offset of the log."""
    group_id, topic, partition = key.group, key.topic, key.partition
    if value is None:
        state.offsets.remove(group_id, topic, partition)
        state.pending_offsets.remove(group_id, topic, partition)
        return
    if group_id not in state.groups:
        state.groups[group_id] = ClassicGroupModel(group_id, state.now)
    committed = CommittedOffset(
        value.offset, value.leader_epoch, value.metadata, value.commit_timestamp, value.expire_timestamp,
        value.topic_id, offset,
    )  # fmt: skip
    if producer_id == _NO_PRODUCER:
        state.offsets.put(group_id, topic, partition, committed)
    else:
        state.pending_offsets.put(producer_id, group_id, topic, partition, committed)


def _replay_legacy_offset(
    state: State,
    key: LegacyOffsetCommitKey,
    value: LegacyOffsetCommitValue | None,
    offset: int,
    producer_id: int,
) -> None:
    """Replay a record of the format before that of Kafka 0.8.2."""
    current_value = None
    if value is not None:
        current_value = OffsetCommitValue(
            offset=value.offset, metadata=value.metadata, commit_timestamp=value.commit_timestamp
        )
    current_key = OffsetCommitKey(group=key.group, topic=key.topic, partition=key.partition)
    _replay_offset(state, current_key, current_value, offset, producer_id)


def replay_end(state: State, producer_id: int, *, committed: bool) -> None:
    """End a producer's transaction; one without offsets here changes nothing."""
    ended = state.pending_offsets.end(producer_id)
    if ended is None or not committed:
        return
    for group_id, offsets in ended.groups.items():
        for (topic, partition), offset in offsets.items():
            known = state.offsets.find(group_id, topic, partition)
            if known is None or offset.log_offset > known.log_offset:
                state.offsets.put(group_id, topic, partition, offset)
