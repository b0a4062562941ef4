"""The uniform assignor: partitions are balanced over the members, and move as little as possible.

Strategy where all members subscribe to the same topics: every member has a quota, some have one more. Members
in turn keep what they have up to their quota; partitions over a quota, and those without a member, go to
members below theirs. A member that could have one more leaves that to another while others remain who must
take it.
Strategy where subscriptions differ: members keep their partitions of topics that they still subscribe to.
Unassigned partitions go to each topic's least loaded subscribers; topics with the most partitions a
subscriber come first. Then partitions of a topic move from its most to its least loaded subscribers, topic
after topic, until nothing moves any more or `_MAX_ROUNDS` have passed.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Collection, Mapping
from itertools import groupby, repeat
from operator import itemgetter
from uuid import UUID

from coordwire.coordinator.assignors.numbered_group import NumberedGroup, NumberedTarget
from coordwire.coordinator.assignors.specification import GroupSpec, TargetTable
from coordwire.coordinator.hash_tables import HashSet
from coordwire.coordinator.model.assignment import Target
from coordwire.coordinator.refusal import OperationRefused
from coordwire.enums import ErrorCode

# --- one subscription ---


def uniform_targets(spec: GroupSpec) -> Mapping[str, Target]:
    if not spec.members:
        return {}
    return _equal_targets(spec) if spec.homogeneous else balanced_targets(spec)


def _equal_targets(spec: GroupSpec) -> Mapping[str, Target]:
    first = next(iter(spec.members.values()))
    topics = dict.fromkeys(HashSet.copy_of(first.topics, first.subscribed))
    if not topics:
        return {}
    unassigned = _unassigned(spec, topics)
    least, extra = divmod(sum(spec.partitions[topic] for topic in topics), len(spec.members))
    targets: dict[str, Target] = {}
    tables: dict[str, TargetTable] = {}
    unfilled: list[tuple[str, int]] = []
    for index, (member_id, member) in enumerate(spec.members.items()):
        may_have_extra = extra > 0
        quota, table = least + may_have_extra, None
        if member.target:
            quota, table, released = _retain(member.target, topics, quota)
            unassigned += released
        if quota and may_have_extra and len(spec.members) - index > extra:
            quota -= 1
        elif may_have_extra:
            extra -= 1
        if quota:
            unfilled.append((member_id, quota))
        if table is None:
            targets[member_id] = member.target
        else:
            tables[member_id] = table
    position = 0
    for member_id, quota in unfilled:
        table = tables.setdefault(member_id, TargetTable(spec.members[member_id].target))
        for topic, pairs in groupby(unassigned[position : position + quota], itemgetter(0)):
            table.add(topic, [partition for _, partition in pairs])
        position += quota
    if position < len(unassigned):
        raise OperationRefused(ErrorCode.UNKNOWN_SERVER_ERROR)
    return targets | {member_id: table.target() for member_id, table in tables.items()}


def _unassigned(spec: GroupSpec, topics: Collection[UUID]) -> list[tuple[UUID, int]]:
    assigned: dict[UUID, set[int]] = {topic: set() for topic in topics}
    for target in filter(None, spec.assigned_before):
        for topic, partitions in target.items():
            if topic in assigned:
                assigned[topic].update(partitions)
    return [
        (topic, partition)
        for topic in topics
        for partition in range(spec.partitions[topic])
        if partition not in assigned[topic]
    ]


def _retain(
    target: Target, topics: Collection[UUID], quota: int
) -> tuple[int, TargetTable | None, list[tuple[UUID, int]]]:
    """The rest of a member's quota; its new target, if it changes; the partitions that it releases."""
    table: TargetTable | None = None
    released: list[tuple[UUID, int]] = []
    for topic, partitions in target.items():
        if topic not in topics:
            table = table or TargetTable(target)
            table.remove_topic(topic)
        elif len(partitions) <= quota:
            quota -= len(partitions)
        else:
            table = table or TargetTable(target)
            for partition in partitions[quota:]:
                table.remove(topic, partition)
                released.append((topic, partition))
            quota = 0
    return quota, table, released


# --- different subscriptions ---

_MAX_ROUNDS = 16
_NOBODY = -1


def balanced_targets(spec: GroupSpec) -> Mapping[str, Target]:
    balancer = _Balancer(spec)
    return balancer.targets() if balancer.group.topics else {}


class _Balancer:
    """The owners of partitions, and each member's rank: its number of partitions, then its index.

    A rank is one integer, load * members + number, so that sorting ranks sorts members.
    """

    def __init__(self, spec: GroupSpec) -> None:
        self._spec = spec
        self.group = group = NumberedGroup(spec, list(spec.members))
        self._count = len(group.members)
        self._ranks = list(range(self._count))
        self._owners = [[_NOBODY] * partitions for partitions in group.partitions]
        self._tables: dict[int, NumberedTarget] = {}
        self._subscribed: dict[int, set[int]] = {}
        self._least = 0
        self._readers: dict[int, Callable[[list[int]], tuple[int, ...]]] = {}
        self._capacities = []
        for partitions, subscribers in zip(group.partitions, group.subscribers, strict=True):
            expected = (partitions + len(subscribers) - 1) // len(subscribers)
            self._capacities.append(int(expected / 0.75) + 1)

    def targets(self) -> Mapping[str, Target]:
        self._take_retained()
        self._assign_rest()
        self._balance()
        return {
            member_id: self._tables.pop(index).target()
            if index in self._tables
            else self._spec.members[member_id].target
            for index, member_id in enumerate(self.group.members)
        }

    def _retained(self, index: int) -> dict[int, Collection[int]]:
        """The member's partitions of topics that it still subscribes to."""
        group = self.group
        target = self._spec.members[group.members[index]].target
        if not target:
            return {}
        kind = group.kinds[index]
        numbers = group.numbers(target)
        subscribed = self._subscribed.get(kind)
        if subscribed is None:
            if group.shares_kinds:
                subscribed = self._subscribed[kind] = set(group.subscriptions[kind])
            else:
                subscribed = set(numbers).intersection(group.subscriptions[kind])
        if subscribed.issuperset(numbers):
            return dict(zip(numbers, target.values(), strict=True))
        return {
            number: partitions
            for number, partitions in zip(numbers, target.values(), strict=True)
            if number in subscribed
        }

    def _take_retained(self) -> None:
        all_owners = self._owners
        for index, member_id in enumerate(self.group.members):
            target = self._spec.members[member_id].target
            if not target:
                continue
            retained = self._retained(index)
            self._ranks[index] += sum(map(len, retained.values())) * self._count
            try:
                for topic, partitions in retained.items():
                    owners = all_owners[topic]
                    for partition in partitions:
                        if partition < 0:
                            raise IndexError
                        owners[partition] = index
            except IndexError:
                raise OperationRefused(ErrorCode.UNKNOWN_SERVER_ERROR) from None
            if len(retained) < len(target):
                self._tables[index] = self._new_table(len(target), retained)

    def _ranks_of(self, topic: int) -> tuple[int, ...]:
        """The ranks of a topic's subscribers, in the order of members."""
        members = self.group.subscribers[topic]
        reader = self._readers.get(id(members))
        if reader is None:
            # A single item would not come as a tuple.
            reader = itemgetter(*members) if len(members) > 1 else _single(members[0])
            self._readers[id(members)] = reader
        return reader(self._ranks)

    def _sorted(self, topics: list[int]) -> list[int]:
        """Sort topics: by most partitions a subscriber, then by fewest subscribers."""
        group = self.group

        def rank(topic: int) -> tuple[float, int, tuple[int, int]]:
            count = len(group.subscribers[topic])
            return -(group.partitions[topic] / count), count, _signed_halves(group.topics[topic])

        return sorted(topics, key=rank)

    def _assign_rest(self) -> None:
        free = {
            topic: [partition for partition, owner in enumerate(owners) if owner == _NOBODY]
            for topic, owners in enumerate(self._owners)
            if _NOBODY in owners
        }
        gains: list[list[tuple[int, int]]] = [[] for _ in self.group.members]
        ranks, count = self._ranks, self._count
        for topic in self._sorted(list(free)):
            members = self._least_loaded(topic, len(free[topic]))
            owners = self._owners[topic]
            if len(members) == len(owners):
                owners[:] = members
            else:
                for partition, index in zip(free[topic], members, strict=True):
                    owners[partition] = index
            for index in members:
                ranks[index] += count
            deque(
                map(list.append, map(gains.__getitem__, members), zip(repeat(topic), free[topic])), maxlen=0
            )
        for index, partitions in enumerate(gains):
            if partitions:
                self._table(index).add_all(partitions)

    def _least_loaded(self, topic: int, count: int) -> list[int]:
        """The members that take this many partitions: the least loaded ones in turn, level by level."""
        of_members = self._ranks_of(topic)
        level = min(of_members) // self._count
        # Members of the first level are in order; most often they are enough.
        bound = (level + 1) * self._count
        first = [rank for rank in of_members if rank < bound]
        if len(first) >= count:
            below = bound - self._count
            return [rank - below for rank in first[:count]]
        ranks = sorted(of_members)
        takers: list[int] = []
        while len(takers) < count:
            level += 1
            takers += ranks[: bisect_left(ranks, level * self._count)]
        return [rank % self._count for rank in takers[:count]]

    def _balance(self) -> None:
        shared = [topic for topic, members in enumerate(self.group.subscribers) if len(members) > 1]
        topics = self._sorted(shared)
        last_changed = _NOBODY
        for _ in range(_MAX_ROUNDS):
            self._least = min(self._ranks) // self._count
            for index, topic in enumerate(topics):
                if index == last_changed:
                    return
                if self._balance_topic(topic) or last_changed == _NOBODY:
                    last_changed = index

    def _balance_topic(self, topic: int) -> int:
        """Balance a topic, and return the number of moved partitions."""
        count = self._count
        top = max(map(self._ranks.__getitem__, self._owners[topic]), default=0) // count
        if top - self._least <= 1:
            return 0
        ranks = self._ranks_of(topic)
        if top - min(ranks) // count <= 1:
            return 0  # members with more have none of this topic
        loads = _Loads(self._ranks, count, ranks)
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
            self._move(topic, partition, least)
            moved += 1
        self._least = min(self._ranks) // count
        return moved

    def _table(self, index: int) -> NumberedTarget:
        table = self._tables.get(index)
        if table is None:
            target = self._spec.members[self.group.members[index]].target
            table = self._tables[index] = self._new_table(len(target), self._retained(index))
        return table

    def _new_table(self, size: int, retained: dict[int, Collection[int]]) -> NumberedTarget:
        return NumberedTarget(self.group, size, retained, self._capacities)

    def _move(self, topic: int, partition: int, index: int) -> None:
        owner = self._owners[topic][partition]
        self._table(owner).remove(topic, partition)
        self._ranks[owner] -= self._count
        self._give(topic, partition, index)

    def _give(self, topic: int, partition: int, index: int) -> None:
        (self._tables.get(index) or self._table(index)).add(topic, partition)
        self._owners[topic][partition] = index
        self._ranks[index] += self._count


def _single(index: int) -> Callable[[list[int]], tuple[int, ...]]:
    return lambda ranks: (ranks[index],)


def _signed_halves(topic: UUID) -> tuple[int, int]:
    """Topic ids are compared as two signed integers."""
    high, low = topic.int >> 64, topic.int & (1 << 64) - 1
    return tuple(half - (1 << 64) if half >> 63 else half for half in (high, low))  # type: ignore[return-value]


class _Loads:
    """A topic's subscribers from the least to the most loaded, and a range of equals at either end.

    The least loaded range grows to the right, the most loaded one to the left. When each member of a range
    has had its turn, the range's level rises or falls by one, and it takes in the members at that level.
    """

    def __init__(self, ranks: list[int], count: int, subscribers: tuple[int, ...]) -> None:
        """ranks: of all members, this many; subscribers: the ranks of these."""
        self._ranks = ranks
        self._count = count
        ordered = sorted(subscribers)
        self._members = [rank % count for rank in ordered]
        self._least_end = 0
        self._least_level = ordered[0] // count - 1
        self._least_next = 0
        self._most_start = self._most_end = len(self._members)
        self._most_level = ordered[-1] // count + 1
        self._most_next = len(self._members) - 1

    def _load(self, place: int) -> int:
        return self._ranks[self._members[place]] // self._count

    @property
    def balanced(self) -> bool:
        return self._most_level - self._least_level <= 1

    def next_least_loaded(self) -> int:
        if self._least_next >= self._least_end:
            self._least_level += 1
            while self._least_end < len(self._members) and self._load(self._least_end) == self._least_level:
                self._least_end += 1
            self._least_next = 0
        self._least_next += 1
        return self._members[self._least_next - 1]

    def next_most_loaded(self) -> int:
        """The next member to take a partition from; -1 if there is none left."""
        if self._most_next < self._most_start:
            if self._most_end <= self._most_start and self._most_start > 0:
                # All members of the range were excluded: continue at the level of the next member.
                self._most_level = self._load(self._most_start - 1)
            else:
                self._most_level -= 1
            while self._most_start > 0 and self._load(self._most_start - 1) == self._most_level:
                self._most_start -= 1
            self._most_next = self._most_end - 1
        if self._most_next < 0:
            return _NOBODY
        self._most_next -= 1
        return self._members[self._most_next + 1]

    def exclude_most_loaded(self) -> None:
        """Put the last most loaded member, which has no partition of this topic, outside of the range."""
        members, last = self._members, self._most_end - 1
        at = self._most_next + 1
        members[at], members[last] = members[last], members[at]
        self._most_end = last
