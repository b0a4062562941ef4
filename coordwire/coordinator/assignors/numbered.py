"""A group whose members subscribe to different topics, with topics and members as numbers.

Strategy: members with one subscription are one kind, so that what depends on subscriptions is worked out a
kind, not a member; lists indexed by numbers take the place of dictionaries by topic id, whose hash is
computed in Python each time. A topic id is found by its identity: subscriptions have the ids of the cluster's
topics, so that an id which is equal and another object is met seldom, and then looked up by its integer.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Sequence
from itertools import chain, repeat
from uuid import UUID

from coordwire.coordinator.assignors.specification import GroupSpec
from coordwire.coordinator.hash_order import spread_id

__all__ = ["NumberedGroup"]

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
