"""Offsets of transactions that have not ended: no answer has them, and they hold back what depends on them.

    producers:  by producer id, the offsets that its commit would store
    open:       by group, topic and partition, the producers that have one there

Rules: both are under the shard's snapshots. A tombstone of a partition's offset removes the pending ones too.
"""

from __future__ import annotations

from collections.abc import Iterator

from coordwire.coordinator.model.committed_offsets import CommittedOffset, OffsetStore
from coordwire.coordinator.snapshots import SnapshotDict, Snapshots

__all__ = ["PendingOffsets"]

Partition = tuple[str, int]


class PendingOffsets:
    """The open transactions of a shard."""

    def __init__(self, snapshots: Snapshots) -> None:
        self._snapshots = snapshots
        self.producers: SnapshotDict[int, OffsetStore] = SnapshotDict(snapshots)
        self._open: SnapshotDict[str, SnapshotDict[Partition, frozenset[int]]] = SnapshotDict(snapshots)

    def is_open(self, group_id: str, topic: str, partition: int) -> bool:
        """Whether a transaction that has not ended commits an offset of this partition."""
        of_group = self._open.get(group_id)
        return of_group is not None and (topic, partition) in of_group

    def of_group(self, group_id: str) -> list[Partition]:
        """The partitions of which a group has pending offsets."""
        found = self._open.get(group_id)
        return [] if found is None else list(found)

    def all_offsets(self) -> Iterator[tuple[str, Partition, CommittedOffset]]:
        """Every pending offset with its group and partition; several where several producers have one."""
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
            of_group = self._open[group_id] = SnapshotDict(self._snapshots)
        known = of_group.get((topic, partition)) or frozenset()
        if producer_id not in known:
            of_group[topic, partition] = known | {producer_id}

    def remove(self, group_id: str, topic: str, partition: int) -> None:
        """Forget what is pending for a partition, of every producer."""
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
        """End a producer's transaction: gives its offsets, which are no longer pending."""
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
