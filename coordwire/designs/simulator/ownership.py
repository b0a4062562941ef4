"""The partitions that each process counts as its own: the measure of split brain and of orphaned partitions.

Rules: owners report when they begin and end to read a partition. Times are sums over partitions,
in milliseconds: `duplicated` counts each owner beyond the first, `orphaned` a known partition without any.
A suspended owner (its process is frozen) reads nothing and is not counted; once it goes on, it is counted
again, until it learns that it has lost a partition.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Literal, TypeAlias

__all__ = ["Ownership", "OwnershipChange"]

OwnershipChange: TypeAlias = Literal["take", "release", "suspend", "resume"]
"""What an owner does, or what happens to it, with a partition."""


class Ownership:
    """The owners of each partition, and for how long there were too many or none.

    now: gives the time. watch: called after each change with the partition, for checkers. observe: called
    after each change with the owner, the partition, the change, and how many owners read the partition
    before and after it. assigned_at: when each partition had had an owner for the first time.
    """

    def __init__(self, now: Callable[[], int]) -> None:
        self._now = now
        self._owners: dict[Hashable, dict[str, None]] = {}
        self._owned: dict[str, dict[Hashable, None]] = {}
        self._since = now()
        self._duplicates = 0
        self._orphans = 0
        self._duplicated_ms = 0
        self._orphaned_ms = 0
        self._suspended: set[str] = set()
        self._orphaned_first = 0
        self.assigned_at: int | None = None
        self.watch: Callable[[Hashable], None] | None = None
        self.observe: Callable[[str, Hashable, OwnershipChange, int, int], None] | None = None

    def know(self, partitions: Iterable[Hashable]) -> None:
        """These partitions exist; each is an orphan until an owner takes it."""
        self._settle()
        for partition in partitions:
            if partition not in self._owners:
                self._owners[partition] = {}
                self._orphans += 1

    def take(self, owner: str, partition: Hashable) -> None:
        owners = self._owners.get(partition)
        if owners is None:
            self.know([partition])
            owners = self._owners[partition]
        if owner in owners:
            return
        self._settle()
        before = self._readers(owners)
        owners[owner] = None
        self._owned.setdefault(owner, {})[partition] = None
        self._counted(owner, partition, "take", before, self._readers(owners))

    def release(self, owner: str, partition: Hashable) -> None:
        owners = self._owners.get(partition)
        if owners is None or owner not in owners:
            return
        self._settle()
        before = self._readers(owners)
        del owners[owner]
        del self._owned[owner][partition]
        self._counted(owner, partition, "release", before, self._readers(owners))

    def suspend(self, owner: str) -> None:
        """The owner does nothing for a while, and knows nothing of it."""
        if owner not in self._suspended:
            self._settle()
            partitions = [
                (partition, self._readers(self._owners[partition]))
                for partition in self._owned.get(owner, ())
            ]
            self._suspended.add(owner)
            for partition, before in partitions:
                self._counted(owner, partition, "suspend", before, before - 1)

    def resume(self, owner: str) -> None:
        """The owner goes on with what it had."""
        if owner in self._suspended:
            self._settle()
            partitions = [
                (partition, self._readers(self._owners[partition]))
                for partition in self._owned.get(owner, ())
            ]
            self._suspended.discard(owner)
            for partition, before in partitions:
                self._counted(owner, partition, "resume", before, before + 1)

    def release_all(self, owner: str) -> None:
        """The owner is gone, or stopped reading."""
        for partition in list(self._owned.get(owner, ())):
            self.release(owner, partition)

    @property
    def is_whole(self) -> bool:
        """Whether each partition is read by an owner."""
        return not self._orphans

    def owners(self, partition: Hashable) -> list[str]:
        return list(self._owners.get(partition, ()))

    def readers(self, partition: Hashable) -> list[str]:
        """The owners that are not suspended."""
        return [owner for owner in self._owners.get(partition, ()) if owner not in self._suspended]

    def owned(self, owner: str) -> list[Hashable]:
        return list(self._owned.get(owner, ()))

    @property
    def partitions(self) -> list[Hashable]:
        return list(self._owners)

    @property
    def duplicated_ms(self) -> int:
        self._settle()
        return self._duplicated_ms

    @property
    def orphaned_ms(self) -> int:
        self._settle()
        return self._orphaned_ms

    @property
    def orphaned_later_ms(self) -> int:
        """`orphaned_ms` since each partition had had an owner."""
        self._settle()
        return 0 if self.assigned_at is None else self._orphaned_ms - self._orphaned_first

    def _readers(self, owners: dict[str, None]) -> int:
        if not self._suspended:
            return len(owners)
        return sum(owner not in self._suspended for owner in owners)

    def _counted(
        self, owner: str, partition: Hashable, change: OwnershipChange, before: int, after: int
    ) -> None:
        self._duplicates += max(after - 1, 0) - max(before - 1, 0)
        self._orphans += (not after) - (not before)
        if self.assigned_at is None and not self._orphans:
            self.assigned_at, self._orphaned_first = self._now(), self._orphaned_ms
        if self.watch is not None and change in ("take", "release"):
            self.watch(partition)
        if self.observe is not None:
            self.observe(owner, partition, change, before, after)

    def _settle(self) -> None:
        now = self._now()
        elapsed = now - self._since
        if elapsed:
            self._duplicated_ms += self._duplicates * elapsed
            self._orphaned_ms += self._orphans * elapsed
            self._since = now
