"""Offsets of groups: committed ones, and pending ones of transactions that have not ended.

No answer has a pending offset, and a pending offset holds back what depends on it.
Rules: both are under the shard's snapshots. A tombstone of a partition's offset removes the pending ones too.
"""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

from coordwire._dataclasses import dataclass
from coordwire.coordinator.snapshots import Snapshots, TimelineHashMap
from coordwire.coordinator.topics import NO_TOPIC_ID

# --- committed offsets ---

NO_EXPIRY = -1


@dataclass(frozen=True, slots=True)
class CommittedOffset:
    """A committed offset.

    leader_epoch: of the last record consumed, -1 where unknown. expires_at: the time that the commit asked
    for (OffsetCommit 2 to 4), else -1. topic_id: `NO_TOPIC_ID` where unknown. log_offset: of its record.
    """

    offset: int
    leader_epoch: int
    metadata: str
    committed_at: int
    expires_at: int = NO_EXPIRY
    topic_id: UUID = NO_TOPIC_ID
    log_offset: int = -1

    def expired(self, now: int, since: int, retention_ms: int) -> bool:
        """Whether the offset has expired. since: the start of the retention."""
        return now >= self.expires_at if self.expires_at != NO_EXPIRY else now - since >= retention_ms


CommittedOffsets = TimelineHashMap[tuple[str, int], CommittedOffset]
"""A group's offsets by topic and partition."""


class OffsetStore:
    """The offsets of all groups that have some."""

    def __init__(self, snapshots: Snapshots) -> None:
        self._snapshots = snapshots
        self.groups: TimelineHashMap[str, CommittedOffsets] = TimelineHashMap(snapshots)

    def find(self, group_id: str, topic: str, partition: int) -> CommittedOffset | None:
        offsets = self.groups.get(group_id)
        return None if offsets is None else offsets.get((topic, partition))

    def put(self, group_id: str, topic: str, partition: int, offset: CommittedOffset) -> None:
        offsets = self.groups.get(group_id)
        if offsets is None:
            offsets = self.groups[group_id] = TimelineHashMap(self._snapshots)
        offsets[topic, partition] = offset

    def remove(self, group_id: str, topic: str, partition: int) -> None:
        offsets = self.groups.get(group_id)
        if offsets is not None:
            offsets.pop((topic, partition))
            if not offsets:
                self.groups.pop(group_id)


# --- pending offsets ---

Partition = tuple[str, int]


class PendingOffsets:
    """The open transactions of a shard."""

    def __init__(self, snapshots: Snapshots) -> None:
        self._snapshots = snapshots
        self.producers: TimelineHashMap[int, OffsetStore] = TimelineHashMap(snapshots)
        self._open: TimelineHashMap[str, TimelineHashMap[Partition, frozenset[int]]]
        self._open = TimelineHashMap(snapshots)

    def is_open(self, group_id: str, topic: str, partition: int) -> bool:
        """Whether a transaction that has not ended commits an offset of this partition."""
        of_group = self._open.get(group_id)
        return of_group is not None and (topic, partition) in of_group

    def of_group(self, group_id: str) -> list[Partition]:
        """The partitions of which a group has pending offsets."""
        offsets = self._open.get(group_id)
        return [] if offsets is None else list(offsets)

    def all_offsets(self) -> Iterator[tuple[str, Partition, CommittedOffset]]:
        """Every pending offset of every producer, with its group and partition."""
        for store in self.producers.values():
            for group_id, offsets in store.groups.items():
                for partition, pending in offsets.items():
                    yield group_id, partition, pending

    def put(
        self, producer_id: int, group_id: str, topic: str, partition: int, offset: CommittedOffset
    ) -> None:
        store = self.producers.get(producer_id)
        if store is None:
            store = self.producers[producer_id] = OffsetStore(self._snapshots)
        store.put(group_id, topic, partition, offset)
        of_group = self._open.get(group_id)
        if of_group is None:
            of_group = self._open[group_id] = TimelineHashMap(self._snapshots)
        known = of_group.get((topic, partition)) or frozenset()
        if producer_id not in known:
            of_group[topic, partition] = known | {producer_id}

    def remove(self, group_id: str, topic: str, partition: int) -> None:
        """Remove the pending offsets of a partition, of every producer."""
        of_group = self._open.get(group_id)
        producers = None if of_group is None else of_group.pop((topic, partition))
        if of_group is None or producers is None:
            return
        for producer_id in producers:
            store = self.producers.get(producer_id)
            if store is not None:
                store.remove(group_id, topic, partition)
        if not of_group:
            self._open.pop(group_id)

    def end(self, producer_id: int) -> OffsetStore | None:
        """End a producer's transaction, and return its offsets, which are no longer pending."""
        store = self.producers.pop(producer_id)
        if store is None:
            return None
        for group_id, offsets in store.groups.items():
            of_group = self._open.get(group_id)
            if of_group is None:
                continue
            for partition in offsets:
                producers = of_group.get(partition)
                if producers is None or producer_id not in producers:
                    continue
                if len(producers) > 1:
                    of_group[partition] = producers - {producer_id}
                else:
                    of_group.pop(partition)
            if not of_group:
                self._open.pop(group_id)
        return store
