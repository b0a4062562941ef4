"""The target assignment of a streams group, computed after the group's epoch has risen.

Rules: at most one in an assignment interval, and none while a new group waits for more members; until then
members keep to the last one. A topology that is not ready has no tasks.
"""

from __future__ import annotations

from typing import NamedTuple

from coordwire.coordinator.assignors import StreamsGroupSpec, StreamsMemberSpec, computed_targets
from coordwire.coordinator.hash_tables import HashMap
from coordwire.coordinator.model.streams_group import (
    NO_TARGET_TASKS,
    StreamsGroupModel,
    StreamsMember,
    TargetTasks,
)
from coordwire.coordinator.model.streams_topology import ConfiguredTopology
from coordwire.coordinator.state import NOTHING, Result, State
from coordwire.coordinator.streams.records import assignment_epoch_record, target_record
from coordwire.coordinator.streams.sessions import find_streams_group, initial_delay_key
from coordwire.coordinator.streams.sticky_assignor import STICKY, sticky_assignor
from coordwire.enums import StreamsGroupStatus
from coordwire.logs import LogRecord
from coordwire.messages.streams_group_heartbeat import Status

__all__ = ["STANDBY_REPLICAS", "StreamsTarget", "begin_initial_delay", "update_target"]

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
