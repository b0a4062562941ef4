"""A member's target while it is changed, with topics as numbers: what Java's tables would be.

Rules: what is added comes before the other keys of its bucket, as Java's computeIfAbsent has it, which makes
room before it looks whether the key is there. Tables never shrink, so the most that one had is remembered.
"""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

from coordwire.coordinator.assignors.numbered import NumberedGroup
from coordwire.coordinator.hash_order import (
    capacity_for,
    copied_set_capacity,
    initial_capacity,
    partitions_in_order,
)
from coordwire.coordinator.model.assignment import Target

__all__ = ["NumberedTarget"]


class NumberedTarget:
    """kept: of the member's target, partitions by topic, without what it no longer subscribes to."""

    __slots__ = ("_added", "_capacity", "_count", "_kept", "_limit", "_peaks", "_singles", "_sizes")

    def __init__(self, size: int, kept: dict[int, Collection[int]]) -> None:
        """size: of the whole target that the member had."""
        self._kept = kept
        self._count = len(kept)
        self._sizes: dict[int, int] = {}
        self._added: dict[int, int | dict[int, None]] = {}  # most have one partition
        self._singles = True  # each topic that was added has one partition
        self._peaks: dict[int, int] = {}
        self._capacity = capacity_for(size, initial_capacity(size))
        self._limit = self._capacity * 3 // 4

    def add(self, topic: int, partition: int) -> None:
        if self._count > self._limit:
            self._capacity = capacity_for(self._count, self._capacity)
            self._limit = self._capacity * 3 // 4
        found = self._added.get(topic)
        if found is None:
            if topic in self._kept:
                self._opened(topic)[partition] = None
            else:
                self._added[topic] = partition
                self._count += 1
        elif isinstance(found, int):
            self._added[topic] = {found: None, partition: None}
            self._singles = False
        else:
            found[partition] = None

    def add_all(self, given: list[tuple[int, int]]) -> None:
        """Topics and partitions, one after the other."""
        new = dict(given)
        if self._added or not new.keys().isdisjoint(self._kept):
            for topic, partition in given:
                self.add(topic, partition)
            return
        # Each topic is new: what `add` makes of them, at once.
        self._count += len(new)
        most = self._count
        if len(new) == len(given):
            self._added.update(new)
            most -= 1
        else:
            self._singles = False
            most -= self._group(given)
        if most > self._limit:
            self._capacity = capacity_for(most, self._capacity)
            self._limit = self._capacity * 3 // 4

    def _group(self, given: list[tuple[int, int]]) -> bool:
        """Add partitions, several of a topic among them; gives whether the last one's topic is new."""
        added = self._added
        found: int | dict[int, None] | None = None
        for topic, partition in given:
            found = added.get(topic)
            if found is None:
                added[topic] = partition
            elif isinstance(found, int):
                added[topic] = {found: None, partition: None}
            else:
                found[partition] = None
        return found is None

    def remove(self, topic: int, partition: int) -> None:
        found = self._added.get(topic)
        if isinstance(found, int):
            del self._added[topic]
            self._count -= 1
            return
        owner: dict[int, int | dict[int, None]] | dict[int, Collection[int]] = self._added
        if found is None:
            found, owner = self._opened(topic), self._kept
        self._peaks[topic] = max(len(found), self._peaks.get(topic, 0))
        del found[partition]
        if not found:
            del owner[topic], self._peaks[topic]
            self._count -= 1

    def _opened(self, topic: int) -> dict[int, None]:
        """Kept partitions, to be changed."""
        found = self._kept[topic]
        if isinstance(found, dict):
            return found
        self._sizes[topic] = len(found)
        opened = self._kept[topic] = dict.fromkeys(found)
        return opened

    def target(self, group: NumberedGroup, capacities: list[int]) -> Target:
        """capacities: of the set of a topic that was added."""
        numbers = [*reversed(self._added), *self._kept]
        if len(numbers) > 1:
            numbers.sort(key=group.buckets(self._capacity).__getitem__)
        if self._singles and not self._kept:
            # The same as below, without a step of Python for each.
            ids = map(group.topics.__getitem__, numbers)
            return dict(zip(ids, zip(map(self._added.__getitem__, numbers)), strict=True))  # type: ignore[arg-type]
        found: dict[UUID, tuple[int, ...]] = {}
        for topic in numbers:
            added = self._added.get(topic)
            if isinstance(added, int):
                found[group.topics[topic]] = (added,)
                continue
            partitions = self._kept[topic] if added is None else added
            size = len(partitions)
            if size == 1:
                found[group.topics[topic]] = tuple(partitions)
                continue
            if added is None:
                capacity = copied_set_capacity(self._sizes.get(topic, size))
            else:
                capacity = capacities[topic]
            capacity = capacity_for(max(size, self._peaks.get(topic, 0)), capacity)
            found[group.topics[topic]] = tuple(partitions_in_order(partitions, capacity))
        return found
