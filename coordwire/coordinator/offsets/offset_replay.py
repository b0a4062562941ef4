"""What the log's records of offsets do: store, remove, keep until a transaction ends.

A transaction's offsets take the place of older ones only: which of two commits is later, the log's offsets
say, so that a compacted log leads to the same state.
"""

from __future__ import annotations

from coordwire.coordinator.model.classic_group import ClassicGroupModel
from coordwire.coordinator.model.committed_offsets import CommittedOffset
from coordwire.coordinator.state import State
from coordwire.messages import (
    LegacyOffsetCommitKey,
    LegacyOffsetCommitValue,
    OffsetCommitKey,
    OffsetCommitValue,
)

__all__ = ["replay_end", "replay_legacy_offset", "replay_offset"]

_NO_PRODUCER = -1


def replay_offset(
    state: State, key: OffsetCommitKey, value: OffsetCommitValue | None, offset: int, producer_id: int
) -> None:
    """Take up a commit or a tombstone at this offset of the log."""
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


def replay_legacy_offset(
    state: State,
    key: LegacyOffsetCommitKey,
    value: LegacyOffsetCommitValue | None,
    offset: int,
    producer_id: int,
) -> None:
    """The same for a record of Kafka before 0.8.2's last format."""
    newer = None
    if value is not None:
        newer = OffsetCommitValue(
            offset=value.offset, metadata=value.metadata, commit_timestamp=value.commit_timestamp
        )
    same = OffsetCommitKey(group=key.group, topic=key.topic, partition=key.partition)
    replay_offset(state, same, newer, offset, producer_id)


def replay_end(state: State, producer_id: int, *, committed: bool) -> None:
    """A producer's transaction has ended; one without offsets here changes nothing."""
    ended = state.pending_offsets.end(producer_id)
    if ended is None or not committed:
        return
    for group_id, offsets in ended.groups.items():
        for (topic, partition), offset in offsets.items():
            known = state.offsets.find(group_id, topic, partition)
            if known is None or offset.log_offset > known.log_offset:
                state.offsets.put(group_id, topic, partition, offset)
