"""The tasks of streams groups: a task is one partition number of a subtopology.

Rules: mappings and sets are never changed. A subtopology's place in a mapping is that in which Apache Kafka's
hash tables have it, because answers list subtopologies in that order; records and descriptions sort them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

__all__ = [
    "NO_OWNED_TASKS",
    "NO_TARGET_TASKS",
    "ActiveTasks",
    "OwnedTasks",
    "ReportedTasks",
    "TargetTasks",
    "Tasks",
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
