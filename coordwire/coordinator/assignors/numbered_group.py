"""A group and its targets with topics and members as numbers, for members with different subscriptions.

Strategy: members with one subscription are one kind, so that what depends on subscriptions is worked out a
kind, not a member; lists indexed by numbers take the place of dictionaries by topic id, whose hash is
computed in Python each time. A topic id is found by its identity: subscriptions have the ids of the cluster's
topics, so that an equal id that is another object is rare, and is then looked up by its integer.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Sequence
from itertools import chain, repeat
from uuid import UUID

from coordwire.coordinator.assignors.specification import GroupSpec
from coordwire.coordinator.hash_order import (
    capacity_for,
    copied_set_capacity,
    initial_capacity,
    partitions_in_order,
    spread_id,
)
from coordwire.coordinator.model.assignment import Target

__all__ = ["NumberedGroup", "NumberedTarget"]


_NONE = -1


class NumberedGroup:
    """The group; a member's number is its place in `members`.

    topics: ids by number, of those that a member subscribes to. kinds: of each member; wanted: each kind's
    topics, in the order of the members' specifications. partitions: how many, by topic; subscribers: of
    each topic, in the order of members. shares_kinds: whether a kind has several members on average, so
    that it is worth to make tables of what a kind wants.
    """

    def __init__(self, spec: GroupSpec, members: Sequence[str]) -> None:
        self.members = members
        self.topics: list[UUID] = list(spec.partitions)
        self.kinds: list[int] = []
        self.wanted: list[list[int]] = []
        known: dict[int, int] = {}
        wanted: list[Sequence[UUID]] = []
        of_kind: list[list[int]] = []
        for index, member_id in enumerate(members):
            topics = spec.members[member_id].topics
            kind = known.get(id(topics))
            if kind is None:
                kind = known[id(topics)] = len(of_kind)
                wanted.append(topics)
                of_kind.append([])
            self.kinds.append(kind)
            of_kind[kind].append(index)
        self._number(wanted)
        if not all(self._kinds_of):
            self.topics = [topic for topic, kinds in zip(self.topics, self._kinds_of, strict=True) if kinds]
            self._number(wanted)
        self.partitions = [spec.partitions[topic] for topic in self.topics]
        self.shares_kinds = 2 * len(of_kind) <= len(members)
        self._buckets: dict[int, list[int]] = {}
        self._spreads = [spread_id(topic) for topic in self.topics]
        self.subscribers = self._subscribers(of_kind)

    def numbers(self, topics: Collection[UUID]) -> list[int]:
        """Topics' numbers; -1 for one that is not there."""
        try:
            return list(map(self._by_identity.__getitem__, map(id, topics)))
        except KeyError:  # an id that is another object
            return [self._by_value.get(topic.int, _NONE) for topic in topics]

    def buckets(self, capacity: int) -> list[int]:
        """By topic, the bucket of a Java table of this capacity."""
        found = self._buckets.get(capacity)
        if found is None:
            found = self._buckets[capacity] = [spread & capacity - 1 for spread in self._spreads]
        return found

    def _number(self, wanted: list[Sequence[UUID]]) -> None:
        """Number the topics, and note which kinds subscribe to each."""
        self._by_identity = {id(topic): number for number, topic in enumerate(self.topics)}
        self._by_value = {topic.int: number for number, topic in enumerate(self.topics)}
        self._kinds_of: list[list[int]] = [[] for _ in self.topics]
        self.wanted.clear()
        kinds_of = self._kinds_of.__getitem__
        for kind, topics in enumerate(wanted):
            numbers = self.numbers(topics)
            self.wanted.append(numbers)
            deque(map(list.append, map(kinds_of, numbers), repeat(kind)), maxlen=0)

    def _subscribers(self, of_kind: list[list[int]]) -> list[list[int]]:
        if len(of_kind) == len(self.members):
            return self._kinds_of  # each member is a kind, of the same number
        found: dict[tuple[int, ...], list[int]] = {}
        subscribers = []
        for of_topic in self._kinds_of:
            key = tuple(of_topic)
            if key not in found:
                found[key] = sorted(chain.from_iterable(of_kind[kind] for kind in key))
            subscribers.append(found[key])
        return subscribers


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
