"""The input of an assignor, and the tables in which it builds its output."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias
from uuid import UUID

from coordwire.coordinator.hash_tables import HashMap, HashSet
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


class TargetTable:
    """A copy of a member's target, to be changed."""

    __slots__ = ("_table",)

    def __init__(self, target: Target) -> None:
        self._table: HashMap[UUID, HashSet[int]] = HashMap(len(target))
        self._table.update((topic, HashSet.copy_of(partitions)) for topic, partitions in target.items())

    def add(self, topic: UUID, partitions: Collection[int]) -> None:
        """Add partitions one after the other."""
        table = self._table.find_or_add(topic, HashSet)
        if len(partitions) > 1:
            self._table.make_room()  # as each look at the topic does
        table.update(partitions)

    def remove(self, topic: UUID, partition: int) -> None:
        partitions = self._table.get(topic)
        if partitions is not None:
            partitions.discard(partition)
            if not partitions:
                self._table.discard(topic)

    def remove_topic(self, topic: UUID) -> None:
        self._table.discard(topic)

    def target(self) -> Target:
        return {topic: tuple(partitions) for topic, partitions in self._table.items()}


def fixed_targets(targets: Mapping[str, Target]) -> Assignor:
    """Give each member its target out of a mapping by member id, which may change between calls."""

    def assign(spec: GroupSpec) -> Mapping[str, Target]:
        return {member_id: targets.get(member_id, NO_TARGET) for member_id in spec.members}

    return assign
