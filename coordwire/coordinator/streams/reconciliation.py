"""The target assignment of a streams group, and the steps of a member towards it: it gives up tasks, then
takes free ones.

A task is free for a member when no process has it as an active task; a process may have a task in one role
only, so that a standby has to end before its process takes the task.

Rules: a member that gives up tasks stays in its epoch until it no longer reports them. Targets are computed
after the group's epoch has risen: at most one in an assignment interval, and none while a new group waits for
more members; until then members keep to the last one. A topology that is not ready has no tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NamedTuple, TypeVar

from coordwire.coordinator.assignors import StreamsGroupSpec, StreamsMemberSpec, computed_targets
from coordwire.coordinator.hash_tables import HashMap, HashSet
from coordwire.coordinator.model.streams_group import (
    NO_OWNED_TASKS,
    NO_TARGET_TASKS,
    OwnedTasks,
    ReportedTasks,
    StreamsGroupModel,
    StreamsMember,
    TargetTasks,
    Tasks,
)
from coordwire.coordinator.model.streams_topology import ConfiguredTopology
from coordwire.coordinator.refusal import OperationRefused
from coordwire.coordinator.state import NOTHING, Result, State
from coordwire.coordinator.streams.records import assignment_epoch_record, target_record
from coordwire.coordinator.streams.sessions import find_streams_group, initial_delay_key
from coordwire.coordinator.streams.sticky_assignor import STICKY, sticky_assignor
from coordwire.enums import ErrorCode, StreamsGroupStatus, StreamsMemberState
from coordwire.logs import LogRecord
from coordwire.messages.streams_group_heartbeat import Status

__all__ = ["STANDBY_REPLICAS", "StreamsTarget", "begin_initial_delay", "reconciled", "update_target"]


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


# --- target ---


STANDBY_REPLICAS = "num.standby.replicas"
"""The setting of an assignment that records and the assignor name so."""


class StreamsTarget(NamedTuple):
    """One member's target, and its epoch."""

    epoch: int
    tasks: TargetTasks


def update_target(
    state: State,
    group: StreamsGroupModel,
    epoch: int,
    member: StreamsMember,
    configured: ConfiguredTopology,
    standby_replicas: int,
    records: list[LogRecord],
    statuses: list[Status],
) -> StreamsTarget:
    """The member's target; computes a new one if the group's epoch has risen and it is time."""
    if state.timers.is_set(initial_delay_key(group.group_id)):
        statuses.append(_delayed("initial rebalance delay"))
        return StreamsTarget(group.assignment_epoch, NO_TARGET_TASKS)
    current = StreamsTarget(group.assignment_epoch, group.target(member.member_id))
    if group.assignment_epoch >= epoch:
        return current
    if not _is_time(state, group):
        statuses.append(_delayed("assignment interval"))
        return current
    targets = _compute(state, group, epoch, member, configured, standby_replicas, records)
    return StreamsTarget(epoch, targets.get(member.member_id, NO_TARGET_TASKS))


def _delayed(setting: str) -> Status:
    return Status(
        status_code=StreamsGroupStatus.ASSIGNMENT_DELAYED,
        status_detail=f"Assignment delayed due to the configured {setting}.",
    )


def _is_time(state: State, group: StreamsGroupModel) -> bool:
    interval = state.config.of_streams_group(group.group_id).assignment_interval_ms
    return not group.assigned_at or not interval or state.now >= group.assigned_at + interval


def _compute(
    state: State,
    group: StreamsGroupModel,
    epoch: int,
    member: StreamsMember | None,
    configured: ConfiguredTopology,
    standby_replicas: int,
    records: list[LogRecord],
) -> dict[str, TargetTasks]:
    """The targets of all members; adds the records of those that are new."""
    members = HashMap.of(group.members.items())
    if member is not None:
        members[member.member_id] = member
    targets = dict.fromkeys(members, NO_TARGET_TASKS)
    if configured.is_ready:
        parts = configured.subtopologies
        assert parts is not None
        specs = {
            member_id: StreamsMemberSpec(known.process_id, group.target(member_id))
            for member_id, known in members.items()
        }
        spec = StreamsGroupSpec(specs, parts, standby_replicas)
        assignor = state.assignors.get("streams", {}).get(STICKY) or sticky_assignor
        targets.update(computed_targets(group.group_id, epoch, STICKY, lambda: assignor(spec)))
    for member_id in members:
        target = targets[member_id]
        if group.targets.get(member_id) != target:
            records.append(target_record(group.group_id, member_id, target))
    records.append(assignment_epoch_record(group.group_id, epoch, state.now))
    return targets


# --- the initial delay ---


def begin_initial_delay(state: State, group_id: str) -> None:
    """Wait for more members of a new group before its first target."""
    delay_ms = state.config.of_streams_group(group_id).initial_rebalance_delay_ms
    key = initial_delay_key(group_id)
    if delay_ms > 0 and not state.timers.is_set(key):
        state.set_timer(key, delay_ms, lambda: _end_initial_delay(state, group_id))


def _end_initial_delay(state: State, group_id: str) -> Result:
    group = find_streams_group(state, group_id)
    if group is None or group.is_empty:
        return NOTHING
    configured = group.configured.value
    if group.epoch <= group.assignment_epoch or configured is None or not _is_time(state, group):
        return NOTHING
    replicas = int(group.assignment_configs.get(STANDBY_REPLICAS, "0"))
    records: list[LogRecord] = []
    _compute(state, group, group.epoch, None, configured, replicas, records)
    return Result(records)
