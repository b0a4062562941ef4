"""A member of a streams group (KIP-1071), as its requests and its records describe it.

Rules: a member that a cut log has a part of only lacks `is_described` (its metadata) or `is_placed` (its
tasks); no heartbeat of it succeeds, as in Apache Kafka.

The tasks of streams groups: a task is one partition number of a subtopology.

Rules: mappings and sets are never changed. A subtopology's place in a mapping is that in which Apache Kafka's
hash tables have it, because answers list subtopologies in that order; records and descriptions sort them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple, Protocol, TypeAlias

from coordwire.enums import StreamsMemberState

__all__ = [
    "LEFT_STREAMS",
    "NO_OWNED_TASKS",
    "NO_TARGET_TASKS",
    "ActiveTasks",
    "OwnedTasks",
    "ReportedTasks",
    "StreamsGroupState",
    "StreamsMember",
    "TargetTasks",
    "Tasks",
    "UserEndpoint",
    "listed_tasks",
]

Tasks: TypeAlias = Mapping[str, frozenset[int]]
"""Partitions by subtopology."""

ActiveTasks: TypeAlias = Mapping[str, Mapping[int, int]]
"""By subtopology and partition, the epoch in which the member got the task."""

_NOTHING: frozenset[int] = frozenset()


class TaskIds(Protocol):
    """Tasks of a subtopology, as messages and records list them."""

    @property
    def subtopology_id(self) -> str: ...
    @property
    def partitions(self) -> list[int]: ...


@dataclass(frozen=True, slots=True)
class TargetTasks:
    """The tasks that a member is to have, or reports as its own."""

    active: Tasks = field(default_factory=dict)
    standby: Tasks = field(default_factory=dict)
    warmup: Tasks = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.active or self.standby or self.warmup)

    def has_any(self, tasks: OwnedTasks) -> bool:
        """Whether one of the member's tasks is among these, in the same role."""
        return (
            any(not self.active.get(part, _NOTHING).isdisjoint(ids) for part, ids in tasks.active.items())
            or any(
                not self.standby.get(part, _NOTHING).isdisjoint(ids) for part, ids in tasks.standby.items()
            )
            or any(not self.warmup.get(part, _NOTHING).isdisjoint(ids) for part, ids in tasks.warmup.items())
        )


ReportedTasks: TypeAlias = TargetTasks | None
"""The tasks that a member reports as its own; None where it reports nothing."""


@dataclass(frozen=True, slots=True)
class OwnedTasks:
    """The tasks that a member has, or has to give up."""

    active: ActiveTasks = field(default_factory=dict)
    standby: Tasks = field(default_factory=dict)
    warmup: Tasks = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.active or self.standby or self.warmup)


NO_TARGET_TASKS = TargetTasks()
NO_OWNED_TASKS = OwnedTasks()


def listed_tasks(parts: Iterable[TaskIds]) -> dict[str, frozenset[int]]:
    """Tasks from a list; of a subtopology that is in it twice, the last."""
    return {part.subtopology_id: frozenset(part.partitions) for part in parts}


LEFT_STREAMS = -1
"""The epoch of a member that leaves."""


class StreamsGroupState(Enum):
    """The states of a group; NOT_READY while its topology lacks topics, or they don't fit."""

    EMPTY = "Empty"
    NOT_READY = "NotReady"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


class UserEndpoint(NamedTuple):
    """Where a member serves interactive queries."""

    host: str
    port: int


@dataclass(frozen=True, slots=True)
class StreamsMember:
    """rebalance_timeout_ms: to give up tasks. process_id: of the process, which may have several members.
    revoking: the tasks that it has to give up.
    """

    member_id: str
    epoch: int = 0
    previous_epoch: int = 0
    state: StreamsMemberState = StreamsMemberState.STABLE
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    topology_epoch: int = -1
    process_id: str = ""
    endpoint: UserEndpoint | None = None
    client_tags: Mapping[str, str] = field(default_factory=dict)
    tasks: OwnedTasks = NO_OWNED_TASKS
    revoking: OwnedTasks = NO_OWNED_TASKS
    is_described: bool = True
    is_placed: bool = True

    def is_reconciled_to(self, assignment_epoch: int) -> bool:
        return self.is_placed and self.state is StreamsMemberState.STABLE and self.epoch == assignment_epoch
