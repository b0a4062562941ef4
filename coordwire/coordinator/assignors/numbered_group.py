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
from typing import TypeVar
from uuid import UUID

from coordwire.coordinator.assignors.specification import GroupSpec
from coordwire.coordinator.hash_tables import HashMap, HashSet, spread_id
from coordwire.coordinator.model.assignment import Target

_NONE = -1

V = TypeVar("V")


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


class NumberedMap(HashMap[int, V]):
    """A HashMap whose keys are the numbers of topics, in the order of their ids."""

    __slots__ = ("_group",)

    def __init__(self, group: NumberedGroup, capacity: int) -> None:
        super().__init__(capacity)
        self._group = group

    def _in_order(self, keys: list[int]) -> list[int]:
        keys.sort(key=self._group.buckets(self._capacity).__getitem__)
        return keys


class NumberedTarget:
    """A member's new target.

    retained: partitions of its last target by topic, of topics it subscribes to. set_capacities: by topic,
    that of the set in which its partitions are, if it is new.
    """

    __slots__ = ("_capacities", "_group", "_singles", "_table")

    def __init__(
        self, group: NumberedGroup, size: int, retained: dict[int, Collection[int]], set_capacities: list[int]
    ) -> None:
        """size: of the member's whole last target."""
        self._group = group
        self._capacities = set_capacities
        # Most new topics have one partition, which needs no set; those of the last target are copied late.
        self._table: NumberedMap[int | Collection[int] | HashSet[int]] = NumberedMap(group, size)
        self._table.grow(size)
        self._table.update(retained)
        self._singles = not retained

    def add(self, topic: int, partition: int) -> None:
        known = self._table.find_or_add(topic, lambda: _NONE)
        if known == _NONE:
            self._table[topic] = partition
        else:
            self._opened(topic).add(partition)

    def add_all(self, pairs: list[tuple[int, int]]) -> None:
        """Add partitions, given as pairs with their topics."""
        new: dict[int, int | Collection[int] | HashSet[int]] = dict(pairs)
        if not self._table.keys_view().isdisjoint(new):
            for topic, partition in pairs:
                self.add(topic, partition)
            return
        # Each topic is new: the same as `add` for each, at once.
        if len(new) == len(pairs):
            self._table.add_first(new)
            return
        new.clear()
        several: dict[int, list[int]] = {}
        for topic, partition in pairs:
            first = new.setdefault(topic, partition)
            if first != partition:
                several.setdefault(topic, [first]).append(partition)  # type: ignore[list-item]
        for topic, partitions in several.items():
            opened: HashSet[int] = HashSet(self._capacities[topic])
            new[topic] = opened
            opened.update(partitions)
        self._singles = False
        self._table.add_first(new)
        if pairs[-1][0] in several:
            self._table.make_room()

    def remove(self, topic: int, partition: int) -> None:
        if isinstance(self._table[topic], int):
            self._table.discard(topic)
            return
        partitions = self._opened(topic)
        partitions.discard(partition)
        if not partitions:
            self._table.discard(topic)

    def _opened(self, topic: int) -> HashSet[int]:
        """A topic's partitions, to be changed."""
        known = self._table[topic]
        if isinstance(known, HashSet):
            return known
        if isinstance(known, int):
            opened: HashSet[int] = HashSet(self._capacities[topic])
            opened.add(known)
        else:
            opened = HashSet.copy_of(known)
        self._singles = False
        self._table[topic] = opened
        return opened

    def target(self) -> Target:
        ids = map(self._group.topics.__getitem__, self._table.keys())
        values = self._table.values()
        if self._singles:
            # The same as below, without a step of Python for each.
            return dict(zip(ids, zip(values), strict=True))  # type: ignore[arg-type]
        return dict(zip(ids, map(_partitions_in_order, values), strict=True))


def _partitions_in_order(partitions: int | Collection[int] | HashSet[int]) -> tuple[int, ...]:
    if isinstance(partitions, int):
        return (partitions,)
    return tuple((partitions if isinstance(partitions, HashSet) else HashSet.copy_of(partitions)).keys())
