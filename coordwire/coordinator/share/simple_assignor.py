"""The assignor of share groups: each partition goes to about as many members, and moves as seldom as it can.

Strategy: Apache Kafka's SimpleAssignor. Members are numbered, and each has a number of partitions to be
given; what a member had is taken from it only where it has too much, or where a partition has too many
members; the rest is dealt out round and round. Where members subscribe to different topics, each topic is
done by itself. Rules: only partitions whose state was initialized can be assigned.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from uuid import UUID

from coordwire.coordinator.assignors import GroupSpec
from coordwire.coordinator.hash_tables import HashMap, HashSet
from coordwire.coordinator.model.assignment import Target

SIMPLE = "simple"
"""The name of the assignor, which a share group's description has."""

_Table = HashMap[UUID, HashSet[int]]
_Place = tuple[UUID, int]


def simple_assignor(spec: GroupSpec) -> Mapping[str, Target]:
    """Each member's target."""
    if not spec.members:
        return {}
    assignment = _Assignment(spec)
    if not assignment.topics:
        return {}
    if spec.homogeneous:
        _assign_together(assignment)
    else:
        for topic in assignment.topics:
            _assign_topic(assignment, topic)
    return assignment.targets()


class _Assignment:
    """The members by number, what they had, and copies of that for those that change."""

    def __init__(self, spec: GroupSpec) -> None:
        self.ids = list(spec.members)
        self._old = [member.target for member in spec.members.values()]
        self._new: list[_Table | None] = [None] * len(self.ids)
        self._assignable = spec.assignable
        self._counts = spec.partitions
        self.subscribers: dict[UUID, list[int]] = {}
        self.owners: dict[UUID, list[int]] = {}
        """By topic the numbers of the members that had partitions of it, in order."""
        self.topics: HashSet[UUID] | tuple[UUID, ...]
        members = list(spec.members.values())
        if spec.homogeneous:
            self.topics = members[0].topics
        else:
            self.topics = HashSet()
            for number, member in enumerate(members):
                for topic in member.topics:
                    self.topics.add(topic)
                    self.subscribers.setdefault(topic, []).append(number)
                for topic in member.target:
                    self.owners.setdefault(topic, []).append(number)

    def partitions(self, topic: UUID) -> list[int]:
        """The partitions of a topic that can be assigned."""
        assignable = self._assignable.get(topic, ())
        return [partition for partition in range(self._counts[topic]) if partition in assignable]

    def old(self, number: int) -> Target:
        return self._old[number]

    def changed(self, number: int) -> _Table:
        """The copy of a member's target that may be changed."""
        table = self._new[number]
        if table is None:
            old = self._old[number]
            table = self._new[number] = HashMap(len(old))
            for topic, partitions in old.items():
                table[topic] = HashSet.copy_of(partitions)
        return table

    def give(self, number: int, topic: UUID, partition: int) -> None:
        self.changed(number).find_or_add(topic, HashSet).add(partition)

    def targets(self) -> dict[str, Target]:
        return {
            member_id: old if new is None else {topic: tuple(partitions) for topic, partitions in new.items()}
            for member_id, old, new in zip(self.ids, self._old, self._new, strict=True)
        }


def _room_for(size: int) -> int:
    """The capacity of the tables that Apache Kafka makes for so many keys."""
    return int((size + 1) / 0.75 + 1)


def _shares(members: int, partitions: int) -> tuple[int, list[int]]:
    """How many members a partition goes to, and how many partitions each member gets."""
    if not partitions:
        return 0, [0] * members
    sharing = (members + partitions - 1) // partitions
    precise = sharing * partitions / members
    bounds = [math.ceil(precise * number) for number in range(members + 1)]
    return sharing, [upper - lower for lower, upper in itertools.pairwise(bounds)]


# --- members with the same subscription ---


def _assign_together(assignment: _Assignment) -> None:
    count = len(assignment.ids)
    topics = assignment.topics
    places = [(topic, partition) for topic in topics for partition in assignment.partitions(topic)]
    sharing, shares = _shares(count, len(places))
    by_place: HashMap[_Place, HashSet[int]] = HashMap(_room_for(len(places)))
    by_member: dict[int, HashSet[_Place]] = {}
    unfilled: HashSet[int] = HashSet(_room_for(count))
    overfilled: HashSet[int] = HashSet(_room_for(count))
    subscribed = set(topics)
    for number in range(count):
        owned = 0
        for topic, partitions in assignment.old(number).items():
            if topic not in subscribed:
                assignment.changed(number).discard(topic)
                continue
            for partition in partitions:
                owned += 1
                by_place.find_or_add((topic, partition), HashSet).add(number)
                by_member.setdefault(number, HashSet()).add((topic, partition))
                if owned >= shares[number]:
                    assignment.changed(number)
        if owned < shares[number]:
            unfilled.add(number)
        elif owned > shares[number]:
            overfilled.add(number)
    for number in overfilled:
        for place in by_member[number]:
            if len(by_member[number]) == shares[number]:
                break
            assignment.changed(number)[place[0]].discard(place[1])
            by_place[place].discard(number)
            by_member[number].discard(place)
    for place, members in by_place.items():
        for number in members:
            if len(members) <= sharing:
                break
            partitions_of_topic = assignment.changed(number).get(place[0])
            if partitions_of_topic is not None and place[1] in partitions_of_topic:
                partitions_of_topic.discard(place[1])
                members.discard(number)
                by_member[number].discard(place)
                unfilled.add(number)
    for place in places:
        by_place.find_or_add(place, HashSet)
    dealer = _Dealer(unfilled)
    for place, members in by_place.items():
        for number in dealer.numbers(members, sharing):
            assignment.give(number, *place)
            own = by_member.setdefault(number, HashSet())
            own.add(place)
            if len(own) >= shares[number]:
                dealer.remove(number)
        if not len(unfilled):
            break


class _Dealer:
    """Goes round the members that have too few partitions, and remembers where it is."""

    def __init__(self, unfilled: HashSet[int]) -> None:
        self._unfilled = unfilled
        self._round = iter(unfilled)
        self._has_given = False

    def numbers(self, members: HashSet[int], sharing: int) -> Iterator[int]:
        """The members for a partition that has these already."""
        missing = sharing - len(members)
        known = set(members)
        while missing > 0:
            number = next(self._round, None)
            if number is None:
                if not self._has_given or not len(self._unfilled):
                    return
                self._round = iter(self._unfilled)
                self._has_given = False
                continue
            if number not in known:
                missing -= 1
                self._has_given = True
                yield number

    def remove(self, number: int) -> None:
        self._unfilled.discard(number)


# --- members with different subscriptions ---


def _assign_topic(assignment: _Assignment, topic: UUID) -> None:
    subscribers = assignment.subscribers[topic]
    partitions = assignment.partitions(topic)
    sharing, counts = _shares(len(subscribers), len(partitions))
    shares = dict(zip(subscribers, counts, strict=True))
    by_partition: HashMap[int, HashSet[int]] = HashMap(_room_for(len(partitions)))
    by_member: HashMap[int, HashSet[int]] = HashMap(_room_for(len(subscribers)))
    for number in assignment.owners.get(topic, ()):
        for partition in assignment.old(number)[topic]:
            by_partition.find_or_add(partition, HashSet).add(number)
            by_member.find_or_add(number, HashSet).add(partition)
    for number, owned in by_member.items():
        for partition in owned:
            if len(owned) <= shares.get(number, 0):
                break
            by_partition[partition].discard(number)
            owned.discard(partition)
            assignment.changed(number)[topic].discard(partition)
    for partition, members in by_partition.items():
        for number in members:
            if len(members) <= sharing:
                break
            own = assignment.changed(number).get(topic)
            if own is not None and partition in own:
                own.discard(partition)
                members.discard(number)
                by_member[number].discard(partition)
    for partition in partitions:
        by_partition.find_or_add(partition, lambda: HashSet(_room_for(len(subscribers))))
    unfilled: HashSet[int] = HashSet(_room_for(len(assignment.ids)))
    for number in subscribers:
        known = by_member.get(number)
        if (0 if known is None else len(known)) < shares[number]:
            unfilled.add(number)
    dealer = _Dealer(unfilled)
    for partition, members in by_partition.items():
        for number in dealer.numbers(members, sharing):
            assignment.give(number, topic, partition)
            own_partitions = by_member.find_or_add(number, HashSet)
            own_partitions.add(partition)
            if len(own_partitions) >= shares[number]:
                dealer.remove(number)
        if not len(unfilled):
            break
