"""The partitions that each process counts as its own: the measure of split brain and of orphaned partitions.

Rules: owners report when they begin and end to read a partition. Times are sums over partitions,
in milliseconds: `duplicated` counts each owner beyond the first, `orphaned` a known partition without any.
A suspended owner (its process is frozen) reads nothing and is not counted; once it goes on, it is counted
again, until it learns that it has lost a partition. An owner that could not fetch a partition, as the network
keeps it from the leader, does not count for it (`Ownership.reaches`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Literal, TypeAlias

from coordwire.errors import counted

OwnershipChange: TypeAlias = Literal["take", "release", "suspend", "resume", "miss", "reach"]
"""What an owner does, or what happens to it, with a partition. miss, reach: its leader is out of reach, or in
it again."""


class Ownership:
    """The owners of each partition, and for how long there were too many or none.

    now: gives the time. watch: called after each change with the partition, for checkers. observe: called
    after each change with the owner, the partition, the change, and how many owners read the partition
    before and after it. assigned_at: when each partition had had an owner for the first time. reaches:
    whether an owner could fetch a partition now; None: each could.

    >>> from coordwire.designs.simulator import Ownership
    >>> time = 0
    >>> ownership = Ownership(lambda: time)
    >>> ownership.know(["orders-0"])
    >>> time = 1_000
    >>> ownership.take("a", "orders-0")
    >>> time = 3_000
    >>> ownership.take("b", "orders-0")
    >>> time = 3_500
    >>> ownership.release("a", "orders-0")
    >>> ownership.orphaned_ms, ownership.duplicated_ms, ownership.owners("orders-0")
    (1000, 500, ['b'])
    >>> ownership
    <Ownership of 1 partition: 0 without a reader, 0 further readers>
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
        self._kept_off: set[tuple[str, Hashable]] = set()
        self._orphaned_first = 0
        self.assigned_at: int | None = None
        self.watch: Callable[[Hashable], None] | None = None
        self.observe: Callable[[str, Hashable, OwnershipChange, int, int], None] | None = None
        self.reaches: Callable[[str, Hashable], bool] | None = None

    def __repr__(self) -> str:
        readers = f"{self._orphans} without a reader, {counted(self._duplicates, 'further reader')}"
        return f"<Ownership of {counted(len(self._owners), 'partition')}: {readers}>"

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
        before = self._readers(partition)
        owners[owner] = None
        self._owned.setdefault(owner, {})[partition] = None
        if self.reaches is not None and not self.reaches(owner, partition):
            self._kept_off.add((owner, partition))
        self._counted(owner, partition, "take", before, self._readers(partition))

    def release(self, owner: str, partition: Hashable) -> None:
        owners = self._owners.get(partition)
        if owners is None or owner not in owners:
            return
        self._settle()
        before = self._readers(partition)
        del owners[owner]
        del self._owned[owner][partition]
        self._kept_off.discard((owner, partition))
        self._counted(owner, partition, "release", before, self._readers(partition))

    def suspend(self, owner: str) -> None:
        """The owner does nothing for a while, and knows nothing of it."""
        if owner not in self._suspended:
            self._settle()
            before = {partition: self._readers(partition) for partition in self._owned.get(owner, ())}
            self._suspended.add(owner)
            for partition, readers in before.items():
                self._counted(owner, partition, "suspend", readers, self._readers(partition))

    def resume(self, owner: str) -> None:
        """The owner goes on with what it had."""
        if owner in self._suspended:
            self._settle()
            before = {partition: self._readers(partition) for partition in self._owned.get(owner, ())}
            self._suspended.discard(owner)
            for partition, readers in before.items():
                self._counted(owner, partition, "resume", readers, self._readers(partition))

    def check_reach(self) -> None:
        """The network has changed: ask `reaches` again for each partition that is owned."""
        if self.reaches is None:
            return
        self._settle()
        for owner, partitions in self._owned.items():
            for partition in partitions:
                pair, reached = (owner, partition), self.reaches(owner, partition)
                if reached is (pair in self._kept_off):
                    before = self._readers(partition)
                    (self._kept_off.discard if reached else self._kept_off.add)(pair)
                    change: OwnershipChange = "reach" if reached else "miss"
                    self._counted(owner, partition, change, before, self._readers(partition))

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
        """The owners that read: that are not suspended, and reach the leader."""
        return [
            owner
            for owner in self._owners.get(partition, ())
            if owner not in self._suspended and (owner, partition) not in self._kept_off
        ]

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

    def _readers(self, partition: Hashable) -> int:
        if not self._suspended and not self._kept_off:
            return len(self._owners[partition])
        return len(self.readers(partition))

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
