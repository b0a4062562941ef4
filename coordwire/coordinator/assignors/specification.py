"""The input of an assignor, its call, and the tables in which it builds its output."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import field
from typing import TypeAlias, TypedDict, TypeVar
from uuid import UUID

from coordwire._dataclasses import dataclass
from coordwire.coordinator.hash_tables import HashMap, HashSet
from coordwire.coordinator.model.assignment import NO_TARGET, Target
from coordwire.coordinator.model.streams_group import TargetTasks
from coordwire.coordinator.model.streams_topology import ConfiguredSubtopology
from coordwire.coordinator.refusal import OperationRefused
from coordwire.enums import ErrorCode

log = logging.getLogger("coordwire.coordinator")

T = TypeVar("T")


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
    topics. partitions: the number of each topic's that a member subscribes to, in the order in which members
    name them. assigned_before: all targets of a consumer group, those of former members included.
    assignable: of a share group, the partitions by topic that may be assigned: those whose state the share
    coordinator has.
    """

    members: Mapping[str, MemberSpec]
    homogeneous: bool
    partitions: Mapping[UUID, int]
    assigned_before: Sequence[Target] = ()
    assignable: Mapping[UUID, Collection[int]] = field(default_factory=dict)


Assignor: TypeAlias = Callable[[GroupSpec], Mapping[str, Target]]
"""Gives each member of a consumer or share group its target; a member without one gets nothing."""


@dataclass(frozen=True, slots=True)
class StreamsMemberSpec:
    """A member of a streams group as an assignor sees it.

    target: its last tasks. task_offsets: those that it reports, by subtopology and partition; none before
    Kafka 4.4.
    """

    process_id: str
    target: TargetTasks
    task_offsets: Mapping[tuple[str, int], int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StreamsGroupSpec:
    """A streams group as an assignor sees it.

    members: in the order of Apache Kafka's hash table. subtopologies: by id, sorted; a task is a
    subtopology and a number below its `tasks`. standby_replicas: of each task that has changelogs.
    """

    members: Mapping[str, StreamsMemberSpec]
    subtopologies: Mapping[str, ConfiguredSubtopology]
    standby_replicas: int


StreamsAssignor: TypeAlias = Callable[[StreamsGroupSpec], Mapping[str, TargetTasks]]
"""Gives each member of a streams group its tasks; a member without any gets none."""


class Assignors(TypedDict, total=False):
    """An embedder's assignors by kind of group and by name, in addition to Kafka's or in place of them.

    consumer: by the names that `CoordinatorConfig.consumer_assignors` has. share: "simple" alone. streams:
    "sticky" alone.
    """

    consumer: Mapping[str, Assignor]
    share: Mapping[str, Assignor]
    streams: Mapping[str, StreamsAssignor]


_NAMES: Mapping[str, tuple[str, ...]] = {"consumer": (), "share": ("simple",), "streams": ("sticky",)}
"""The kinds, with the names of those that can't have others."""


def checked_assignors(assignors: Assignors) -> Assignors:
    """Raises `ValueError` for a kind or a name that no group would use."""
    for kind, by_name in assignors.items():
        if kind not in _NAMES:
            raise ValueError(f"expected assignors by kind: {', '.join(_NAMES)}; got {kind!r}")
        names = _NAMES[kind]
        for name in by_name if names else ():  # type: ignore[attr-defined]
            if name not in names:
                raise ValueError(f"expected a {kind} assignor with the name {names[0]!r}, got {name!r}")
    return assignors


def computed_targets(
    group_id: str, epoch: int, name: str, assign: Callable[[], Mapping[str, T]]
) -> Mapping[str, T]:
    """What an assignor gives; a failure of one that is not Kafka's is answered."""
    try:
        return assign()
    except OperationRefused:
        raise
    except Exception as error:
        log.error("the assignor %s failed for the group %s: %s", name, group_id, error)
        problem = f"Failed to compute a new target assignment for epoch {epoch}: {error}"
        raise OperationRefused(ErrorCode.UNKNOWN_SERVER_ERROR, problem) from error


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
