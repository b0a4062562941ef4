"""Which group committed which offset of which partition."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from coordwire.coordinator.snapshots import SnapshotDict, Snapshots
from coordwire.coordinator.topics import NO_TOPIC_ID
from coordwire.logs import LogRecord
from coordwire.messages import OffsetCommitKey, OffsetCommitValue

__all__ = ["CommittedOffset", "GroupOffsets", "OffsetStore", "offset_record", "offset_tombstone"]

_TYPE = 1
_VERSION = 4
_VERSION_WITH_EXPIRY = 1
_NEVER = -1


@dataclass(frozen=True, slots=True)
class CommittedOffset:
    """An offset as it was committed.

    leader_epoch: of the last record consumed, -1 where unknown. expires_at: where the commit itself said so
    (OffsetCommit 2 to 4), else -1. topic_id: `NO_TOPIC_ID` where it was not known. log_offset: of its record.
    """

    offset: int
    leader_epoch: int
    metadata: str
    committed_at: int
    expires_at: int = _NEVER
    topic_id: UUID = NO_TOPIC_ID
    log_offset: int = -1

    def expired(self, now: int, since: int, retention_ms: int) -> bool:
        """since: what the retention counts from."""
        return now >= self.expires_at if self.expires_at != _NEVER else now - since >= retention_ms


GroupOffsets = SnapshotDict[tuple[str, int], CommittedOffset]
"""A group's offsets by topic and partition."""


class OffsetStore:
    """All groups' offsets; a group without any is not in it."""

    def __init__(self, snapshots: Snapshots) -> None:
        self._snapshots = snapshots
        self.groups: SnapshotDict[str, GroupOffsets] = SnapshotDict(snapshots)

    def find(self, group_id: str, topic: str, partition: int) -> CommittedOffset | None:
        offsets = self.groups.get(group_id)
        return None if offsets is None else offsets.get((topic, partition))

    def put(self, group_id: str, topic: str, partition: int, offset: CommittedOffset) -> None:
        offsets = self.groups.get(group_id)
        if offsets is None:
            offsets = self.groups[group_id] = SnapshotDict(self._snapshots)
        offsets[topic, partition] = offset

    def remove(self, group_id: str, topic: str, partition: int) -> None:
        offsets = self.groups.get(group_id)
        if offsets is not None:
            offsets.pop((topic, partition))
            if not offsets:
                self.groups.pop(group_id)


def offset_record(group_id: str, topic: str, partition: int, committed: CommittedOffset) -> LogRecord:
    """The record of a commit; one with its own expiry has the old version that can say so."""
    value = OffsetCommitValue(
        offset=committed.offset, leader_epoch=committed.leader_epoch, metadata=committed.metadata,
        commit_timestamp=committed.committed_at, expire_timestamp=committed.expires_at,
        topic_id=committed.topic_id,
    )  # fmt: skip
    version = _VERSION if committed.expires_at == _NEVER else _VERSION_WITH_EXPIRY
    key = OffsetCommitKey(group=group_id, topic=topic, partition=partition)
    return LogRecord(log="consumer_offsets", type=_TYPE, key=key, value=value, version=version)


def offset_tombstone(group_id: str, topic: str, partition: int) -> LogRecord:
    key = OffsetCommitKey(group=group_id, topic=topic, partition=partition)
    return LogRecord(log="consumer_offsets", type=_TYPE, key=key)
