"""The input of an assignor, and the tables in which it builds its output."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias
from uuid import UUID

from coordwire.coordinator.hash_order import (
    MIN_CAPACITY,
    capacity_for,
    copied_set_capacity,
    initial_capacity,
    partitions_in_order,
    topics_in_order,
)
from coordwire.coordinator.model.assignment import NO_TARGET, Target

__all__ = ["Assignor", "GroupSpec", "MemberSpec", "TargetTable", "fixed_targets"]


@dataclass(slots=True)
class MemberSpec:
    """A member as an assignor sees it. Never changed; not frozen, since that takes twice the time to make.

    topics: the existing ones of its subscription; subscribed: the number of all of them. target: its last
    assignment.
    """

    instance_id: str | None
    topics: tuple[UUID, ...]
    subscribed: int
    target: Target = field(default_factory=lambda: NO_TARGET)


@dataclass(frozen=True, slots=True)
class GroupSpec:
    """A group as an assignor sees it.

    members: in the order of Apache Kafka's hash table. homogeneous: whether all subscribe to the same
    topics. partitions: of each topic that a member subscribes to. assigned_before: all targets of the
    group, those of former members included.
    """

    members: Mapping[str, MemberSpec]
    homogeneous: bool
    partitions: Mapping[UUID, int]
    assigned_before: Sequence[Target] = ()


Assignor: TypeAlias = Callable[[GroupSpec], Mapping[str, Target]]
"""Gives each member its target; a member without one gets nothing. A test's own may be any such function."""


class _PartitionSet:
    """A HashSet of partition numbers, with the capacity of its largest size."""

    __slots__ = ("_capacity", "_partitions")

    def __init__(self, partitions: Iterable[int] = (), capacity: int = MIN_CAPACITY) -> None:
        self._partitions = dict.fromkeys(partitions)
        self._capacity = capacity

    def add(self, partition: int) -> None:
        self._partitions[partition] = None
        if len(self._partitions) > self._capacity * 3 // 4:
            self._capacity = capacity_for(len(self._partitions), self._capacity)

    def discard(self, partition: int) -> None:
        self._partitions.pop(partition, None)

    def __bool__(self) -> bool:
        return bool(self._partitions)

    def in_order(self) -> tuple[int, ...]:
        return tuple(partitions_in_order(self._partitions, self._capacity))


class TargetTable:
    """A copy of a member's target, to be changed."""

    __slots__ = ("_added", "_capacity", "_retained")

    def __init__(self, target: Target) -> None:
        self._capacity = capacity_for(len(target), initial_capacity(len(target)))
        self._retained = {
            topic: _PartitionSet(partitions, copied_set_capacity(len(partitions)))
            for topic, partitions in target.items()
        }
        self._added: dict[UUID, _PartitionSet] = {}

    def add(self, topic: UUID, partition: int, capacity: int = MIN_CAPACITY) -> None:
        """capacity: of the set for a topic that is new."""
        # Java's computeIfAbsent makes room first, whether or not it inserts; and it inserts before the
        # other keys of the bucket.
        self._capacity = capacity_for(len(self._retained) + len(self._added), self._capacity)
        partitions = self._retained.get(topic)
        if partitions is None:
            partitions = self._added.get(topic)
        if partitions is None:
            partitions = self._added[topic] = _PartitionSet(capacity=capacity)
        partitions.add(partition)

    def remove(self, topic: UUID, partition: int) -> None:
        for topics in (self._retained, self._added):
            partitions = topics.get(topic)
            if partitions is not None:
                partitions.discard(partition)
                if not partitions:
                    del topics[topic]

    def remove_topic(self, topic: UUID) -> None:
        self._retained.pop(topic, None)
        self._added.pop(topic, None)

    def target(self) -> Target:
        topics = dict(reversed(self._added.items())) | self._retained
        return {
            topic: partitions.in_order()
            for topic, partitions in topics_in_order(topics, self._capacity).items()
        }


def fixed_targets(targets: Mapping[str, Target]) -> Assignor:
    """Give each member its target out of a mapping by member id, which may change between calls."""

    def assign(spec: GroupSpec) -> Mapping[str, Target]:
        return {member_id: targets.get(member_id, NO_TARGET) for member_id in spec.members}

    return assign
