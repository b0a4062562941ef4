"""The uniform assignor where members subscribe to different topics: balanced as far as subscriptions allow.

Strategy: members keep what they have of topics that they still subscribe to. What is unassigned goes to each
topic's least loaded subscribers; topics with the most partitions a subscriber come first. Then partitions of
a topic move from its most to its least loaded subscribers, topic after topic, until nothing moves any more or
`_MAX_ROUNDS` have passed.
"""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from coordwire.coordinator.assignors.specification import GroupSpec, TargetTable
from coordwire.coordinator.hash_order import initial_capacity
from coordwire.coordinator.model.assignment import Target

__all__ = ["balanced_targets"]

_MAX_ROUNDS = 16
_NOBODY = -1


def balanced_targets(spec: GroupSpec) -> Mapping[str, Target]:
    balancer = _Balancer(spec)
    return balancer.targets() if balancer.subscribers else {}


class _Balancer:
    """Members by their index; who owns which partition, and how many partitions each member has."""

    def __init__(self, spec: GroupSpec) -> None:
        self._spec = spec
        self._members = list(spec.members)
        self._loads = [0] * len(self._members)
        self.subscribers: dict[UUID, list[int]] = {}
        for index, member in enumerate(spec.members.values()):
            for topic in member.topics:
                self.subscribers.setdefault(topic, []).append(index)
        self._owners = {topic: [_NOBODY] * spec.partitions[topic] for topic in self.subscribers}
        self._tables: dict[int, TargetTable] = {}

    def targets(self) -> Mapping[str, Target]:
        self._keep()
        self._assign_rest()
        self._balance()
        return {
            member_id: self._tables[index].target()
            if index in self._tables
            else self._spec.members[member_id].target
            for index, member_id in enumerate(self._members)
        }

    def _keep(self) -> None:
        for index, member in enumerate(self._spec.members.values()):
            wanted = set(member.topics)
            for topic, partitions in member.target.items():
                if topic in wanted:
                    self._loads[index] += len(partitions)
                    for partition in partitions:
                        self._owners[topic][partition] = index
                else:
                    self._table(index).remove_topic(topic)

    def _sorted(self, topics: list[UUID]) -> list[UUID]:
        """Those with the most partitions a subscriber first; then those with the fewest subscribers."""

        def rank(topic: UUID) -> tuple[float, int, tuple[int, int]]:
            count = len(self.subscribers[topic])
            return -(self._spec.partitions[topic] / count), count, _signed_halves(topic)

        return sorted(topics, key=rank)

    def _assign_rest(self) -> None:
        free = {
            topic: [partition for partition, owner in enumerate(owners) if owner == _NOBODY]
            for topic, owners in self._owners.items()
        }
        for topic in self._sorted([topic for topic, partitions in free.items() if partitions]):
            loads = _Loads(self._loads, self.subscribers[topic])
            for partition in free[topic]:
                self._give(topic, partition, loads.next_least_loaded())

    def _balance(self) -> None:
        topics = self._sorted([topic for topic, members in self.subscribers.items() if len(members) > 1])
        last_changed = _NOBODY
        for _ in range(_MAX_ROUNDS):
            for index, topic in enumerate(topics):
                if index == last_changed:
                    return
                if self._balance_topic(topic) or last_changed == _NOBODY:
                    last_changed = index

    def _balance_topic(self, topic: UUID) -> int:
        """How many partitions moved."""
        loads = _Loads(self._loads, self.subscribers[topic])
        if loads.imbalance <= 1:
            return 0
        owned: dict[int, list[int]] = {}
        for partition, owner in enumerate(self._owners[topic]):
            owned.setdefault(owner, []).append(partition)
        moved = 0
        while not loads.balanced:
            most = loads.next_most_loaded()
            while most != _NOBODY and not owned.get(most):
                loads.exclude_most_loaded()
                most = loads.next_most_loaded()
            if most == _NOBODY:
                break
            partition = owned[most].pop()
            least = loads.next_least_loaded()
            if loads.balanced:
                break
            self._give(topic, partition, least)
            moved += 1
        return moved

    def _table(self, index: int) -> TargetTable:
        table = self._tables.get(index)
        if table is None:
            table = self._tables[index] = TargetTable(self._spec.members[self._members[index]].target)
        return table

    def _give(self, topic: UUID, partition: int, index: int) -> None:
        owner = self._owners[topic][partition]
        if owner != _NOBODY:
            self._table(owner).remove(topic, partition)
            self._loads[owner] -= 1
        subscribers = len(self.subscribers[topic])
        expected = (self._spec.partitions[topic] + subscribers - 1) // subscribers
        capacity = initial_capacity(int(expected / 0.75) + 1)
        self._table(index).add(topic, partition, capacity)
        self._owners[topic][partition] = index
        self._loads[index] += 1


def _signed_halves(topic: UUID) -> tuple[int, int]:
    """Topic ids are compared as two signed integers."""
    high, low = topic.int >> 64, topic.int & (1 << 64) - 1
    return tuple(half - (1 << 64) if half >> 63 else half for half in (high, low))  # type: ignore[return-value]


class _Loads:
    """A topic's subscribers from the least to the most loaded, and a range of equals at either end.

    The least loaded range grows to the right, the most loaded one to the left. When each member of a range
    has had its turn, the range's level rises or falls by one, and it takes in the members at that level.
    """

    def __init__(self, loads: list[int], subscribers: list[int]) -> None:
        self._loads = loads
        self._members = sorted(subscribers, key=lambda index: (loads[index], index))
        least, most = loads[self._members[0]], loads[self._members[-1]]
        self.imbalance = most - least
        self._least_end = 0
        self._least_level = least - 1
        self._least_next = 0
        self._most_start = self._most_end = len(self._members)
        self._most_level = most + 1
        self._most_next = len(self._members) - 1

    @property
    def balanced(self) -> bool:
        return self._most_level - self._least_level <= 1

    def next_least_loaded(self) -> int:
        if self._least_next >= self._least_end:
            self._least_level += 1
            while (
                self._least_end < len(self._members)
                and self._loads[self._members[self._least_end]] == self._least_level
            ):
                self._least_end += 1
            self._least_next = 0
        self._least_next += 1
        return self._members[self._least_next - 1]

    def next_most_loaded(self) -> int:
        """The next member to take a partition from; -1 if there is none left."""
        if self._most_next < self._most_start:
            if self._most_end <= self._most_start and self._most_start > 0:
                # All of the range were excluded: go on at the level of the next member.
                self._most_level = self._loads[self._members[self._most_start - 1]]
            else:
                self._most_level -= 1
            while (
                self._most_start > 0 and self._loads[self._members[self._most_start - 1]] == self._most_level
            ):
                self._most_start -= 1
            self._most_next = self._most_end - 1
        if self._most_next < 0:
            return _NOBODY
        self._most_next -= 1
        return self._members[self._most_next + 1]

    def exclude_most_loaded(self) -> None:
        """The member given last has no partition of this topic: put it outside of the range."""
        members, last = self._members, self._most_end - 1
        at = self._most_next + 1
        members[at], members[last] = members[last], members[at]
        self._most_end = last
