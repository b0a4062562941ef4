"""The changes of the ownership of partitions in a run: rebalances, deaths, two owners, none.

A rebalance is seen from outside, in the same way for each design: it begins with the first partition that a
running consumer takes or gives up, and ends with the last one before every partition is read and nothing
changes for a second; a crash or a freeze after that belongs to the next one. A death is the crash of a
consumer that reads partitions. Two owners of a partition are measured apart: they do not make a rebalance
longer.

Rules: what a crash takes away was given up by no process and begins no rebalance; nothing here is written
into the world, so that a run is the same with and without.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import NamedTuple

from coordwire.designs.simulator.ownership import OwnershipChange
from coordwire.designs.simulator.world import World

__all__ = ["QUIET_MS", "Death", "OwnershipRebalance", "OwnershipSpell", "RunObserver"]

QUIET_MS = 1_000
"""Between two rebalances, at least."""


@dataclass(slots=True)
class OwnershipRebalance:
    """ended: None if it had not ended with the run. moved: how many partitions have another owner than
    before. owners: the partitions of each consumer at its end, frozen ones left out."""

    began: int
    ended: int | None = None
    moved: int = 0
    owners: dict[str, tuple[Hashable, ...]] = field(default_factory=dict)

    @property
    def length_ms(self) -> int | None:
        return None if self.ended is None else self.ended - self.began


@dataclass(slots=True)
class Death:
    """partitions: how many lost their only owner. detected: when the consumer counted as gone, None if it
    never did, or not before it died again. taken_over: when each of its partitions had an owner again."""

    time: int
    node: str
    partitions: int = 0
    detected: int | None = None
    taken_over: int | None = None


class OwnershipSpell(NamedTuple):
    """A time in which a partition had two owners or more, or none (`owners` is empty then)."""

    began: int
    ended: int
    partition: Hashable
    owners: tuple[str, ...]


class RunObserver:
    """Sees all changes of a world's ownership. took: called with each node that takes a partition."""

    def __init__(self, world: World, took: Callable[[str], None] | None = None) -> None:
        self.rebalances: list[OwnershipRebalance] = []
        self.deaths: list[Death] = []
        self.spells: list[OwnershipSpell] = []
        self._world = world
        self._took = took
        self._current: OwnershipRebalance | None = None
        self._settled_at: int | None = None
        self._owned: dict[str, dict[Hashable, None]] = {}
        self._frozen: set[str] = set()
        self._before: dict[Hashable, str] = {}
        self._lost: dict[Hashable, list[Death]] = {}
        self._remaining: dict[int, int] = {}
        self._open: dict[Hashable, tuple[int, tuple[str, ...]]] = {}
        world.ownership.observe = self._changed

    def finish(self) -> None:
        """The run is over."""
        self._close()
        if self._current is not None:
            self.rebalances.append(self._current)
            self._current = None
        for partition, (began, owners) in self._open.items():
            self._spell(began, partition, owners)
        self._open.clear()

    # --- inside ---

    def _changed(
        self, owner: str, partition: Hashable, change: OwnershipChange, before: int, after: int
    ) -> None:
        world = self._world
        now, by_itself = world.now, change in ("take", "release") and world.nodes[owner].is_up
        if not by_itself or (self._settled_at is not None and now - self._settled_at >= QUIET_MS):
            self._close()
        if change == "release" and not world.nodes[owner].is_up and before == 1 and not after:
            self._lose(owner, partition)
        if change == "take":
            self._owned.setdefault(owner, {})[partition] = None
            if self._took is not None:
                self._took(owner)
        elif change == "release":
            self._owned[owner].pop(partition, None)
        elif change == "suspend":
            self._frozen.add(owner)
        elif change == "resume":
            self._frozen.discard(owner)
        if by_itself and self._current is None:
            self._current = OwnershipRebalance(now)
        if before != after:
            self._count(partition, before, after)
        self._settled_at = now if world.ownership.is_whole else None

    def _close(self) -> None:
        """End the rebalance, if every partition has its owner."""
        current = self._current
        if current is None or self._settled_at is None:
            return
        current.ended = self._settled_at
        current.owners = {
            name: tuple(owned) for name, owned in self._owned.items() if owned and name not in self._frozen
        }
        after = {partition: name for name, owned in current.owners.items() for partition in owned}
        current.moved = sum(self._before.get(partition) != name for partition, name in after.items())
        self._before = after
        self.rebalances.append(current)
        self._current = None

    def _lose(self, owner: str, partition: Hashable) -> None:
        now = self._world.now
        if not self.deaths or self.deaths[-1].time != now or self.deaths[-1].node != owner:
            self.deaths.append(Death(now, owner))
            self._remaining[len(self.deaths) - 1] = 0
        death = self.deaths[-1]
        death.partitions += 1
        self._remaining[len(self.deaths) - 1] += 1
        self._lost.setdefault(partition, []).append(death)

    def _count(self, partition: Hashable, before: int, after: int) -> None:
        now = self._world.now
        if after == 1 and not before:
            for death in self._lost.pop(partition, ()):
                number = next(index for index, candidate in enumerate(self.deaths) if candidate is death)
                self._remaining[number] -= 1
                if not self._remaining[number]:
                    death.taken_over = now
        if partition in self._open:
            self._spell(self._open[partition][0], partition, self._open.pop(partition)[1])
        if after > 1:
            self._open[partition] = now, tuple(sorted(self._world.ownership.readers(partition)))
        elif not after and self._world.ownership.assigned_at is not None:
            self._open[partition] = now, ()

    def _spell(self, began: int, partition: Hashable, owners: tuple[str, ...]) -> None:
        if self._world.now > began:
            self.spells.append(OwnershipSpell(began, self._world.now, partition, owners))
