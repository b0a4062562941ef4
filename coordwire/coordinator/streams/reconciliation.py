"""The steps of a streams group's member towards its target: it gives up tasks, then takes free ones.

A task is free for a member when no process has it as an active task; a process may have a task in one role
only, so that a standby has to end before its process takes the task.

Rules: a member that gives up tasks stays in its epoch until it no longer reports them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeVar

from coordwire.coordinator.hash_tables import HashMap, HashSet
from coordwire.coordinator.model.streams_group import (
    NO_OWNED_TASKS,
    OwnedTasks,
    ReportedTasks,
    StreamsGroupModel,
    StreamsMember,
    TargetTasks,
    Tasks,
)
from coordwire.coordinator.refusal import OperationRefused
from coordwire.enums import ErrorCode, StreamsMemberState

__all__ = ["reconciled"]

T = TypeVar("T")

_NO_EPOCHS: Mapping[int, int] = {}
_NO_IDS: frozenset[int] = frozenset()

IsTaken = Callable[[tuple[str, int]], bool]
"""Whether a task is not free yet."""


def reconciled(
    group: StreamsGroupModel, member: StreamsMember, epoch: int, target: TargetTasks, reported: ReportedTasks
) -> StreamsMember:
    """The member after the next step towards a target of this epoch; the same one if there is none."""
    match member.state:
        case StreamsMemberState.STABLE:
            if member.epoch == epoch:
                return member
            return _towards(group, member, member.epoch, epoch, target, reported)
        case StreamsMemberState.UNREVOKED_TASKS:
            if reported is None or reported.has_any(member.revoking):
                return member
            return _towards(group, member, member.epoch + 1, epoch, target, reported)
        case StreamsMemberState.UNRELEASED_TASKS:
            return _towards(group, member, member.epoch, epoch, target, reported)
        case StreamsMemberState.UNKNOWN:
            # A newer coordinator has more states. Without tasks the member can begin again.
            if reported is None or reported:
                raise OperationRefused(
                    ErrorCode.FENCED_MEMBER_EPOCH,
                    "The streams group member is in a unknown state. "
                    "The member must abandon all its tasks and rejoin.",
                )
            return _towards(group, member, epoch, epoch, target, reported)


def _towards(
    group: StreamsGroupModel,
    member: StreamsMember,
    current_epoch: int,
    epoch: int,
    target: TargetTasks,
    reported: ReportedTasks,
) -> StreamsMember:
    """current_epoch: of the member while it gives up tasks."""
    process_id = member.process_id

    def stands_by(task: tuple[str, int]) -> bool:
        return process_id in (group.standby_owners.get(task) or ()) or process_id in (
            group.warmup_owners.get(task) or ()
        )

    def is_active(task: tuple[str, int]) -> bool:
        return group.active_owners.get(task) is not None or stands_by(task)

    def is_in_process(task: tuple[str, int]) -> bool:
        return group.active_owners.get(task) == process_id or stands_by(task)

    tasks = member.tasks
    active, active_lost, active_new, active_waits = _active_difference(
        tasks.active, target.active, epoch, is_active
    )
    standby, standby_lost, standby_new, standby_waits = _difference(
        tasks.standby, target.standby, is_in_process
    )
    warmup, warmup_lost, warmup_new, warmup_waits = _difference(tasks.warmup, target.warmup, is_in_process)
    retained = OwnedTasks(active, standby, warmup)
    lost = OwnedTasks(active_lost, standby_lost, warmup_lost)
    if lost and (reported is None or reported.has_any(lost)):
        return replace(
            member, state=StreamsMemberState.UNREVOKED_TASKS, epoch=current_epoch,
            previous_epoch=member.epoch, tasks=retained, revoking=lost,
        )  # fmt: skip
    if active_new or standby_new or warmup_new:
        retained = OwnedTasks(
            _merged(
                {part: _joined_epochs(epochs, {}) for part, epochs in active.items()},
                active_new,
                _joined_epochs,
            ),
            _merged(standby, standby_new, _joined_ids),
            _merged(warmup, warmup_new, _joined_ids),
        )
    waits = active_waits or standby_waits or warmup_waits
    state = StreamsMemberState.UNRELEASED_TASKS if waits else StreamsMemberState.STABLE
    return replace(
        member, state=state, epoch=epoch, previous_epoch=member.epoch, tasks=retained or NO_OWNED_TASKS,
        revoking=NO_OWNED_TASKS,
    )  # fmt: skip


def _merged(
    first: Mapping[str, T], second: Mapping[str, T], join: Callable[[T | None, T], T]
) -> Mapping[str, T]:
    """The tasks of either, as Java merges the second's into a table of the first's."""
    table = HashMap.of(first)
    for part, tasks in HashMap.of(second).items():
        table.compute(part, lambda known, tasks=tasks: join(known, tasks))  # type: ignore[misc]
    return table.in_order()


def _joined_ids(first: frozenset[int] | None, second: frozenset[int]) -> frozenset[int]:
    return second if first is None else first | second


def _joined_epochs(first: Mapping[int, int] | None, second: Mapping[int, int]) -> Mapping[int, int]:
    """The active tasks of a subtopology in the order of Java's table, which is a copy of the first's."""
    table = HashMap.copy_of(first or second)
    table.update(second)
    return table.in_order()


def _parts(current: Mapping[str, object], target: Mapping[str, object]) -> HashSet[str]:
    names = HashSet.copy_of(target)
    names.update(current)
    return names


def _active_difference(
    current: Mapping[str, Mapping[int, int]], target: Tasks, epoch: int, is_taken: IsTaken
) -> tuple[dict[str, dict[int, int]], dict[str, dict[int, int]], dict[str, dict[int, int]], bool]:
    """What a member keeps, loses and can take now, with epochs, and whether it waits for more."""
    retained: dict[str, dict[int, int]] = {}
    lost: dict[str, dict[int, int]] = {}
    new: dict[str, dict[int, int]] = {}
    waits = False
    for part in _parts(current, target):
        epochs, target_ids = current.get(part, _NO_EPOCHS), target.get(part, _NO_IDS)
        retained_here = {partition: since for partition, since in epochs.items() if partition in target_ids}
        lost_here = {partition: since for partition, since in epochs.items() if partition not in target_ids}
        missing = [partition for partition in target_ids if partition not in epochs]
        free = {partition: epoch for partition in missing if not is_taken((part, partition))}
        waits = waits or len(free) < len(missing)
        for result, tasks in ((retained, retained_here), (lost, lost_here), (new, free)):
            if tasks:
                result[part] = HashMap.of(tasks).in_order()
    return retained, lost, new, waits


def _difference(
    current: Tasks, target: Tasks, is_taken: IsTaken
) -> tuple[dict[str, frozenset[int]], dict[str, frozenset[int]], dict[str, frozenset[int]], bool]:
    """The same for tasks without epochs."""
    retained: dict[str, frozenset[int]] = {}
    lost: dict[str, frozenset[int]] = {}
    new: dict[str, frozenset[int]] = {}
    waits = False
    for part in _parts(current, target):
        owned, target_ids = current.get(part, _NO_IDS), target.get(part, _NO_IDS)
        missing = target_ids - owned
        free = frozenset(partition for partition in missing if not is_taken((part, partition)))
        waits = waits or len(free) < len(missing)
        for result, tasks in ((retained, owned & target_ids), (lost, owned - target_ids), (new, free)):
            if tasks:
                result[part] = tasks
    return retained, lost, new, waits
