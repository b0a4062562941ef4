"""The target assignment of a streams group, and the steps of a member towards it: it gives up tasks, then
takes free ones.

A task is free for a member when no process has it as an active task; a process may have a task in one role
only, so that a standby has to end before its process takes the task; or only before another member does, in
the releases in which a member's own tasks change their roles at once.

Rules: a member that gives up tasks stays in its epoch until it no longer reports them. Targets are computed
after the group's epoch has risen: at most one in an assignment interval, and none while a new group waits for
more members; until then members keep to the last one. A topology that is not ready has no tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple, TypeVar

from coordwire.coordinator.assignors import StreamsGroupSpec, StreamsMemberSpec, computed_targets
from coordwire.coordinator.hash_tables import HashMap, HashSet
from coordwire.coordinator.model.streams_group import (
    NO_OFFSETS,
    NO_OWNED_TASKS,
    NO_TARGET_TASKS,
    OwnedTasks,
    ReportedTasks,
    StreamsGroupModel,
    StreamsGroupState,
    StreamsMember,
    TargetTasks,
    Tasks,
)
from coordwire.coordinator.model.streams_topology import ConfiguredTopology
from coordwire.coordinator.refusal import OperationRefused, contradiction
from coordwire.coordinator.releases import ReleaseRules
from coordwire.coordinator.snapshots import TimelineHashMap
from coordwire.coordinator.state import NOTHING, Result, State
from coordwire.coordinator.streams.records import assignment_epoch_record, target_record
from coordwire.coordinator.streams.sessions import find_streams_group, initial_delay_key
from coordwire.coordinator.streams.sticky_assignor import STICKY, ranking_sticky_assignor, sticky_assignor
from coordwire.enums import ErrorCode, StreamsGroupStatus, StreamsMemberState
from coordwire.logs import LogRecord
from coordwire.messages.streams_group_heartbeat import Status

T = TypeVar("T")

_NO_EPOCHS: Mapping[int, int] = {}
_NO_IDS: frozenset[int] = frozenset()

Task = tuple[str, int]
IsTaken = Callable[[Task], bool]
"""Whether a task is not free yet."""


def reconciled(
    rules: ReleaseRules,
    group: StreamsGroupModel,
    member: StreamsMember,
    epoch: int,
    target: TargetTasks,
    reported: ReportedTasks,
) -> StreamsMember:
    """The member after the next step towards a target of this epoch; the same one if there is none."""
    match member.state:
        case StreamsMemberState.STABLE:
            if member.epoch == epoch:
                return member
            return _towards(rules, group, member, member.epoch, epoch, target, reported)
        case StreamsMemberState.UNREVOKED_TASKS:
            if reported is None or reported.has_any(member.revoking):
                return member
            return _towards(rules, group, member, member.epoch + 1, epoch, target, reported)
        case StreamsMemberState.UNRELEASED_TASKS:
            return _towards(rules, group, member, member.epoch, epoch, target, reported)
        case StreamsMemberState.UNKNOWN:
            # A newer coordinator has more states. Without tasks the member can begin again.
            if reported is None or reported:
                raise OperationRefused(
                    ErrorCode.FENCED_MEMBER_EPOCH,
                    "The streams group member is in a unknown state. "
                    "The member must abandon all its tasks and rejoin.",
                )
            return _towards(rules, group, member, epoch, epoch, target, reported)


def _towards(
    rules: ReleaseRules,
    group: StreamsGroupModel,
    member: StreamsMember,
    current_epoch: int,
    epoch: int,
    target: TargetTasks,
    reported: ReportedTasks,
) -> StreamsMember:
    """current_epoch: of the member while it gives up tasks."""
    checks = _Taken(group, member)
    tasks, own = member.tasks, rules.streams_tasks_change_roles_at_once
    active, active_lost, active_new, active_waits = _active_difference(
        tasks.active, target.active, epoch, checks.by_others if own else checks.by_any
    )
    standby, standby_lost, standby_new, standby_waits = _difference(
        tasks.standby, target.standby, checks.for_standby if own else checks.in_process
    )
    warmup, warmup_lost, warmup_new, warmup_waits = _difference(
        tasks.warmup, target.warmup, checks.for_warmup if own else checks.in_process
    )
    if own:
        _move_where(standby_new, standby, tasks.active)
        _change_replicas(tasks.standby, standby_lost, warmup_new, warmup)
        _change_replicas(tasks.warmup, warmup_lost, standby_new, standby)
        _forget_promoted(tasks.standby, target.active, standby_lost)
        _forget_promoted(tasks.warmup, target.active, warmup_lost)
        lost = OwnedTasks(active_lost, standby_lost, warmup_lost)
        granted = active_new if not lost or not _has_any(reported, lost) else {}
        _keep_promoted(tasks.standby, target.active, granted, standby)
        _keep_promoted(tasks.warmup, target.active, granted, warmup)
    retained = OwnedTasks(active, standby, warmup)
    lost = OwnedTasks(active_lost, standby_lost, warmup_lost)
    if lost and _has_any(reported, lost):
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


def _has_any(reported: ReportedTasks, tasks: OwnedTasks) -> bool:
    """Whether a member may still have one of the tasks."""
    return reported is None or reported.has_any(tasks)


class _Taken:
    """Whether a task is not free yet for a member."""

    def __init__(self, group: StreamsGroupModel, member: StreamsMember) -> None:
        self._group, self._tasks, self._process_id = group, member.tasks, member.process_id

    def by_any(self, task: Task) -> bool:
        """For an active task, where the process has to give it up in other roles."""
        return self._group.active_owners.get(task) is not None or self._stands_by(task)

    def in_process(self, task: Task) -> bool:
        """For a standby or warm-up, where the process has to give it up in other roles."""
        return self._group.active_owners.get(task) == self._process_id or self._stands_by(task)

    def by_others(self, task: Task) -> bool:
        """For an active task, where the member itself changes its role."""
        return (
            self._group.active_owners.get(task) is not None
            or self._has_other(self._group.standby_owners, self._tasks.standby, task)
            or self._has_other(self._group.warmup_owners, self._tasks.warmup, task)
        )

    def for_standby(self, task: Task) -> bool:
        part, partition = task
        return (
            (
                self._group.active_owners.get(task) == self._process_id
                and partition not in self._tasks.active.get(part, _NO_EPOCHS)
            )
            or self._process_id in (self._group.standby_owners.get(task) or ())
            or self._has_other(self._group.warmup_owners, self._tasks.warmup, task)
        )

    def for_warmup(self, task: Task) -> bool:
        return (
            self._group.active_owners.get(task) == self._process_id
            or self._has_other(self._group.standby_owners, self._tasks.standby, task)
            or self._process_id in (self._group.warmup_owners.get(task) or ())
        )

    def _stands_by(self, task: Task) -> bool:
        group = self._group
        return self._process_id in (group.standby_owners.get(task) or ()) or self._process_id in (
            group.warmup_owners.get(task) or ()
        )

    def _has_other(self, owners: TimelineHashMap[Task, set[str]], own: Tasks, task: Task) -> bool:
        part, partition = task
        return self._process_id in (owners.get(task) or ()) and partition not in own.get(part, _NO_IDS)


# --- tasks that change their role at once ---

_Parts = dict[str, frozenset[int]]


def _add(parts: _Parts, part: str, ids: frozenset[int]) -> None:
    table = HashMap.of(parts)
    table.find_or_add(part, frozenset)
    table[part] = parts.get(part, _NO_IDS) | ids
    parts.clear()
    parts.update(table.in_order())


def _remove(parts: _Parts, part: str, ids: frozenset[int]) -> None:
    if part in parts:
        parts[part] -= ids
        if not parts[part]:
            del parts[part]


def _move_where(new: _Parts, retained: _Parts, own: Mapping[str, Iterable[int]]) -> _Parts:
    """Grant new tasks, as far as the member has them in the other role, and return these."""
    moved: _Parts = {}
    for part, ids in own.items():
        granted = new.get(part, _NO_IDS) & frozenset(ids)
        if granted:
            moved[part] = granted
            _remove(new, part, granted)
            _add(retained, part, granted)
    return moved


def _change_replicas(own: Tasks, lost: _Parts, new: _Parts, retained: _Parts) -> None:
    """Let standbys become warm-ups, or the reverse, without giving them up."""
    for part, ids in _move_where(new, retained, own).items():
        _remove(lost, part, ids)


def _forget_promoted(own: Tasks, target: Tasks, lost: _Parts) -> None:
    """What is to become active need not be given up."""
    for part, ids in own.items():
        _remove(lost, part, ids & target.get(part, _NO_IDS))


def _keep_promoted(
    own: Tasks, target: Tasks, granted: Mapping[str, Mapping[int, int]], retained: _Parts
) -> None:
    """What is to become active stays until then."""
    for part, ids in own.items():
        promoted = (ids & target.get(part, _NO_IDS)).difference(granted.get(part, _NO_EPOCHS))
        if promoted:
            _add(retained, part, promoted)


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
    *,
    refines: bool,
) -> StreamsTarget:
    """The member's target; computes a new one if the group's epoch has risen and it is time.

    refines: whether the epoch has risen only because the last one is not reached.
    """
    epoch, targets = _updated_targets(
        state, group, epoch, member, configured, standby_replicas, records, statuses, refines=refines
    )
    if not state.rules.streams_targets_are_refined:
        known = group.target(member.member_id)
        return StreamsTarget(
            epoch, known if targets is None else targets.get(member.member_id, NO_TARGET_TASKS)
        )
    refined_epoch, refined = group.refined.value
    if refined_epoch != epoch or refines:
        refined = _known_targets(group, member) if targets is None else targets
        group.refined.set((epoch, refined))
    return StreamsTarget(epoch, refined.get(member.member_id, NO_TARGET_TASKS))


def refine(group: StreamsGroupModel, member: StreamsMember) -> bool:
    """Whether a settled group's member has other tasks than its target.

    Apache Kafka's refinement, which is to place warm-up tasks, gives each target as it is.
    """
    if group.state is not StreamsGroupState.STABLE:
        return False
    targets = dict(group.targets.items())
    epoch = group.assignment_epoch
    target, tasks = targets.get(member.member_id, NO_TARGET_TASKS), member.tasks
    active = {part: frozenset(ids) for part, ids in tasks.active.items()}
    if (target.active, target.standby, target.warmup) != (active, tasks.standby, tasks.warmup):
        return True
    group.refined.set((epoch, targets))
    return False


def _updated_targets(
    state: State,
    group: StreamsGroupModel,
    epoch: int,
    member: StreamsMember,
    configured: ConfiguredTopology,
    standby_replicas: int,
    records: list[LogRecord],
    statuses: list[Status],
    *,
    refines: bool,
) -> tuple[int, Mapping[str, TargetTasks] | None]:
    """The epoch and the targets of all members; None for those that the group has."""
    if state.timers.is_set(initial_delay_key(group.group_id)):
        statuses.append(_delayed("initial rebalance delay"))
        return group.assignment_epoch, {}
    if group.assignment_epoch >= epoch:
        return group.assignment_epoch, None
    if refines and group.assignment_epoch >= group.epoch:
        records.append(assignment_epoch_record(group.group_id, epoch, group.assigned_at))
        return epoch, None
    if not _is_time(state, group):
        statuses.append(_delayed("assignment interval"))
        return group.assignment_epoch, None
    return epoch, _compute(state, group, epoch, member, configured, standby_replicas, records)


def _known_targets(group: StreamsGroupModel, member: StreamsMember | None) -> dict[str, TargetTasks]:
    """The last targets; a static member under a new id has its predecessor's."""
    targets = dict(group.targets.items())
    replaced = _replaced(group, member)
    if member is not None and replaced is not None:
        target = targets.pop(replaced, None)
        if target is not None:
            targets[member.member_id] = target
    return targets


def _replaced(group: StreamsGroupModel, member: StreamsMember | None) -> str | None:
    if member is None or member.instance_id is None:
        return None
    known = group.static_members.get(member.instance_id)
    return None if known == member.member_id else known


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
    replaced = _replaced(group, member)
    members = HashMap.of((key, known) for key, known in group.members.items() if key != replaced)
    if member is not None:
        members[member.member_id] = member
    if state.rules.sticky_assignor_ranks_standbys and not all(known.is_placed for known in members.values()):
        raise contradiction()
    known_targets = _known_targets(group, member)
    targets = dict.fromkeys(members, NO_TARGET_TASKS)
    if configured.is_ready:
        parts = configured.subtopologies
        assert parts is not None
        specs = {
            member_id: _member_spec(state, group, known, known_targets.get(member_id, NO_TARGET_TASKS))
            for member_id, known in members.items()
        }
        spec = StreamsGroupSpec(specs, parts, standby_replicas)
        ranks = state.rules.sticky_assignor_ranks_standbys
        own = ranking_sticky_assignor if ranks else sticky_assignor
        assignor = state.assignors.get("streams", {}).get(STICKY) or own
        targets.update(computed_targets(group.group_id, epoch, STICKY, lambda: assignor(spec)))
    for member_id in members:
        target = targets[member_id]
        if known_targets.get(member_id) != target:
            records.append(target_record(group.group_id, member_id, target))
    records.append(assignment_epoch_record(group.group_id, epoch, state.now))
    return targets


def _member_spec(
    state: State, group: StreamsGroupModel, member: StreamsMember, target: TargetTasks
) -> StreamsMemberSpec:
    if not state.rules.sticky_assignor_ranks_standbys:
        return StreamsMemberSpec(member.process_id, target)
    tasks, reported = member.tasks, group.task_offsets.get(member.member_id, NO_OFFSETS)
    active = {part: frozenset(ids) for part, ids in tasks.active.items()}
    last = TargetTasks(active, tasks.standby, tasks.warmup)
    return StreamsMemberSpec(member.process_id, last, reported.offsets)


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
