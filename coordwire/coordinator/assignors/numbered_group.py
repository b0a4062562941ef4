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

    topics: ids by number, of those that a member subscribes to. kinds: of each member. subscriptions: the
    topics of each kind, in the order of the members' specifications. partitions: the number of each topic's;
    subscribers: of each topic, in the order of members. shares_kinds: whether a kind has several members on
    average, so that tables of a kind's topics are worth their cost.
    """

    def __init__(self, spec: GroupSpec, members: Sequence[str]) -> None:
        self.members = members
        self.topics: list[UUID] = list(spec.partitions)
        self.kinds: list[int] = []
        self.subscriptions: list[list[int]] = []
        known: dict[int, int] = {}
        subscriptions: list[Sequence[UUID]] = []
        of_kind: list[list[int]] = []
        for index, member_id in enumerate(members):
            topics = spec.members[member_id].topics
            kind = known.get(id(topics))
            if kind is None:
                kind = known[id(topics)] = len(of_kind)
                subscriptions.append(topics)
                of_kind.append([])
            self.kinds.append(kind)
            of_kind[kind].append(index)
        self._number(subscriptions)
        if not all(self._kinds_of):
            self.topics = [topic for topic, kinds in zip(self.topics, self._kinds_of, strict=True) if kinds]
            self._number(subscriptions)
        self.partitions = [spec.partitions[topic] for topic in self.topics]
        self.shares_kinds = 2 * len(of_kind) <= len(members)
        self._buckets: dict[int, list[int]] = {}
        self._spreads = [spread_id(topic) for topic in self.topics]
        self.subscribers = self._subscribers(of_kind)

    def numbers(self, topics: Collection[UUID]) -> list[int]:
        """The numbers of topics; -1 for a topic without one."""
        try:
            return list(map(self._by_identity.__getitem__, map(id, topics)))
        except KeyError:  # an equal id that is another object
            return [self._by_value.get(topic.int, _NONE) for topic in topics]

    def buckets(self, capacity: int) -> list[int]:
        """By topic, the bucket of a Java table of this capacity."""
        buckets = self._buckets.get(capacity)
        if buckets is None:
            buckets = self._buckets[capacity] = [spread & capacity - 1 for spread in self._spreads]
        return buckets

    def _number(self, subscriptions: list[Sequence[UUID]]) -> None:
        """Number the topics, and list the kinds that subscribe to each."""
        self._by_identity = {id(topic): number for number, topic in enumerate(self.topics)}
        self._by_value = {topic.int: number for number, topic in enumerate(self.topics)}
        self._kinds_of: list[list[int]] = [[] for _ in self.topics]
        self.subscriptions.clear()
        kinds_of = self._kinds_of.__getitem__
        for kind, topics in enumerate(subscriptions):
            numbers = self.numbers(topics)
            self.subscriptions.append(numbers)
            deque(map(list.append, map(kinds_of, numbers), repeat(kind)), maxlen=0)

    def _subscribers(self, of_kind: list[list[int]]) -> list[list[int]]:
        if len(of_kind) == len(self.members):
            return self._kinds_of  # each member is a kind, of the same number
        known: dict[tuple[int, ...], list[int]] = {}
        subscribers = []
        for of_topic in self._kinds_of:
            key = tuple(of_topic)
            if key not in known:
                known[key] = sorted(chain.from_iterable(of_kind[kind] for kind in key))
            subscribers.append(known[key])
        return subscribers


class NumberedTarget:
    """A member's new target. retained: partitions of its last target by topic, of topics it subscribes to."""

    __slots__ = ("_added", "_capacity", "_count", "_limit", "_peaks", "_retained", "_singles", "_sizes")

    def __init__(self, size: int, retained: dict[int, Collection[int]]) -> None:
        """size: of the member's whole last target."""
        self._retained = retained
        self._count = len(retained)
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
        partitions = self._added.get(topic)
        if partitions is None:
            if topic in self._retained:
                self._opened(topic)[partition] = None
            else:
                self._added[topic] = partition
                self._count += 1
        elif isinstance(partitions, int):
            self._added[topic] = {partitions: None, partition: None}
            self._singles = False
        else:
            partitions[partition] = None

    def add_all(self, pairs: list[tuple[int, int]]) -> None:
        """Add partitions, given as pairs with their topics."""
        new = dict(pairs)
        if self._added or not new.keys().isdisjoint(self._retained):
            for topic, partition in pairs:
                self.add(topic, partition)
            return
        # Each topic is new: the same as `add` for each, at once.
        self._count += len(new)
        most = self._count
        if len(new) == len(pairs):
            self._added.update(new)
            most -= 1
        else:
            self._singles = False
            most -= self._group(pairs)
        if most > self._limit:
            self._capacity = capacity_for(most, self._capacity)
            self._limit = self._capacity * 3 // 4

    def _group(self, pairs: list[tuple[int, int]]) -> bool:
        """Add partitions, several of a topic among them; whether the last one's topic is new."""
        added = self._added
        partitions: int | dict[int, None] | None = None
        for topic, partition in pairs:
            partitions = added.get(topic)
            if partitions is None:
                added[topic] = partition
            elif isinstance(partitions, int):
                added[topic] = {partitions: None, partition: None}
            else:
                partitions[partition] = None
        return partitions is None

    def remove(self, topic: int, partition: int) -> None:
        partitions = self._added.get(topic)
        if isinstance(partitions, int):
            del self._added[topic]
            self._count -= 1
            return
        owner: dict[int, int | dict[int, None]] | dict[int, Collection[int]] = self._added
        if partitions is None:
            partitions, owner = self._opened(topic), self._retained
        self._peaks[topic] = max(len(partitions), self._peaks.get(topic, 0))
        del partitions[partition]
        if not partitions:
            del owner[topic], self._peaks[topic]
            self._count -= 1

    def _opened(self, topic: int) -> dict[int, None]:
        """Retained partitions, to be changed."""
        partitions = self._retained[topic]
        if isinstance(partitions, dict):
            return partitions
        self._sizes[topic] = len(partitions)
        opened = self._retained[topic] = dict.fromkeys(partitions)
        return opened

    def target(self, group: NumberedGroup, capacities: list[int]) -> Target:
        """capacities: of the set of a topic that was added."""
        numbers = [*reversed(self._added), *self._retained]
        if len(numbers) > 1:
            numbers.sort(key=group.buckets(self._capacity).__getitem__)
        if self._singles and not self._retained:
            # The same as below, without a step of Python for each.
            ids = map(group.topics.__getitem__, numbers)
            return dict(zip(ids, zip(map(self._added.__getitem__, numbers)), strict=True))  # type: ignore[arg-type]
        target: dict[UUID, tuple[int, ...]] = {}
        for topic in numbers:
            added = self._added.get(topic)
            if isinstance(added, int):
                target[group.topics[topic]] = (added,)
                continue
            partitions = self._retained[topic] if added is None else added
            size = len(partitions)
            if size == 1:
                target[group.topics[topic]] = tuple(partitions)
                continue
            if added is None:
                capacity = copied_set_capacity(self._sizes.get(topic, size))
            else:
                capacity = capacities[topic]
            capacity = capacity_for(max(size, self._peaks.get(topic, 0)), capacity)
            target[group.topics[topic]] = tuple(partitions_in_order(partitions, capacity))
        return target
