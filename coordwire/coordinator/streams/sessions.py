"""The time limits of a streams group: members' sessions, the time to give up tasks, the initial delay.

Rules: a timer looks up the group and the member when it fires, so that it does nothing for those that are no
longer there. The initial delay is not tried again when its records can't be written.
"""

from __future__ import annotations

from dataclasses import replace

from coordwire.codec import Message
from coordwire.coordinator.listener import NO_CAUSE, AppendCause, Leaving
from coordwire.coordinator.model.streams_group import (
    LEFT_FOR_NOW,
    NO_OWNED_TASKS,
    StreamsGroupModel,
    StreamsMember,
)
from coordwire.coordinator.refusal import OperationRefused, contradiction
from coordwire.coordinator.state import NOTHING, Result, State
from coordwire.coordinator.streams.records import (
    assignment_epoch_record,
    epoch_record,
    member_tombstones,
    owned_record,
)
from coordwire.coordinator.timers import TimerKey
from coordwire.enums import ErrorCode

SESSION_TIMER, _REVOCATION = "session-timeout", "rebalance-timeout"
_OF_MEMBERS = (SESSION_TIMER, _REVOCATION, "join", "sync")
_INITIAL_DELAY = "initial-rebalance-timeout"


def find_streams_group(state: State, group_id: str) -> StreamsGroupModel | None:
    group = state.groups.get(group_id)
    return group if isinstance(group, StreamsGroupModel) else None


# --- members ---


def _limit(
    state: State, kind: str, group_id: str, member_id: str, timeout_ms: int, epoch: int | None = None
) -> None:
    """Remove the member when the time is over, if it is in this epoch still."""

    def end() -> Result:
        group = find_streams_group(state, group_id)
        member = None if group is None else group.members.get(member_id)
        if group is None or member is None:
            return NOTHING
        if epoch is not None and not member.is_placed:
            raise OperationRefused(ErrorCode.UNKNOWN_SERVER_ERROR)
        if epoch is not None and member.epoch != epoch:
            return NOTHING
        leaving: Leaving = "session_timeout" if kind == SESSION_TIMER else "not_rejoined"
        return remove_member(state, group, member, cause=AppendCause(leaving=leaving))

    state.set_timer_with_retry((kind, group_id, member_id), timeout_ms, end)


def begin_session(state: State, group_id: str, member_id: str) -> None:
    """Begin the session of a member that joins or that a log has."""
    config = state.config.of_streams_group(group_id)
    _limit(state, SESSION_TIMER, group_id, member_id, config.session_timeout_ms)


def keep_alive(state: State, group_id: str, member_id: str, timeout_ms: int) -> None:
    """Begin a member's session again."""
    if not state.timers.renew((SESSION_TIMER, group_id, member_id), state.now + timeout_ms):
        _limit(state, SESSION_TIMER, group_id, member_id, timeout_ms)


def limit_revocation(state: State, group_id: str, member: StreamsMember) -> None:
    """The member has its rebalance time-out to give up tasks and leave its epoch."""
    timeout_ms = member.rebalance_timeout_ms
    _limit(state, _REVOCATION, group_id, member.member_id, timeout_ms, member.epoch)


def unlimit_revocation(state: State, group_id: str, member_id: str) -> None:
    state.timers.cancel((_REVOCATION, group_id, member_id))


def remove_member(
    state: State,
    group: StreamsGroupModel,
    member: StreamsMember,
    response: Message | None = None,
    cause: AppendCause = NO_CAUSE,
) -> Result:
    """Remove a member, whose tasks are free at once; the group's epoch rises."""
    group_id, facts = group.group_id, group.facts.value
    records = member_tombstones(group_id, member.member_id)
    records.append(
        epoch_record(
            group_id,
            facts.epoch + 1,
            facts.metadata_hash,
            facts.validated_topology_epoch,
            facts.assignment_configs,
            facts.description_epochs,
        )
    )
    if state.rules.emptied_groups_are_assigned and len(group.members) == 1:
        records.append(assignment_epoch_record(group_id, facts.epoch + 1, 0))
    for kind in _OF_MEMBERS:
        state.timers.cancel((kind, group_id, member.member_id))
    return Result(records, response, cause=cause)


def leave_for_now(group: StreamsGroupModel, member: StreamsMember, response: Message) -> Result:
    """Keep a static member's place, target and tasks; it has them from its first epoch on when it returns."""
    if not member.is_placed:
        raise contradiction()
    active = {part: dict.fromkeys(epochs, 0) for part, epochs in member.tasks.active.items()}
    absent = replace(
        member, epoch=LEFT_FOR_NOW, tasks=replace(member.tasks, active=active), revoking=NO_OWNED_TASKS
    )
    return Result([owned_record(group.group_id, absent)], response)


# --- the group ---


def initial_delay_key(group_id: str) -> TimerKey:
    return _INITIAL_DELAY, group_id


def cancel_initial_delay(state: State, group_id: str) -> None:
    state.timers.cancel(initial_delay_key(group_id))
