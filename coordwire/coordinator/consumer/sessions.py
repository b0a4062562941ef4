"""The time limits of a consumer group's members, and the removal of members.

A member has a session, and limits for giving up partitions, joining and fetching its assignment. It leaves by
a request or when a limit is over; the group's epoch rises each time. A static member that leaves for now (-2)
keeps its place, its target and its partitions; the other members see no change.
Rules: a timer whose records can't be written is tried again. It looks up the group and the member when it
fires, so that the timer of a converted group or a removed member does nothing. A timer does nothing either
where the removal would convert a group that can't be converted: the member stays, without a session, as in
Apache Kafka.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from coordwire.codec import Message
from coordwire.coordinator.consumer.downgrade import downgrade, downgrades_without
from coordwire.coordinator.listener import NO_CAUSE, AppendCause, Leaving
from coordwire.coordinator.model.assignment import NOTHING_OWNED
from coordwire.coordinator.model.consumer_group import LEFT_FOR_NOW, ConsumerGroupModel, ConsumerMember
from coordwire.coordinator.model.members import find_member, find_static_member
from coordwire.coordinator.records import (
    assignment_epoch_record,
    epoch_record,
    member_tombstones,
    owned_record,
    pattern_tombstone,
)
from coordwire.coordinator.refusal import OperationRefused
from coordwire.coordinator.state import NOTHING, Result, State
from coordwire.coordinator.topics import group_hash
from coordwire.enums import ErrorCode
from coordwire.logs import LogRecord
from coordwire.messages import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse

# --- time limits ---

_NOTHING_TO_DO = (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNKNOWN_MEMBER_ID)
SESSION_TIMER, _REVOCATION, _JOIN, _SYNC = "session-timeout", "rebalance-timeout", "join", "sync"


def find_consumer(state: State, group_id: str) -> ConsumerGroupModel | None:
    group = state.groups.get(group_id)
    return group if isinstance(group, ConsumerGroupModel) else None


def _cancel_timers(state: State, group_id: str, member_id: str) -> None:
    """Cancel all timers of a member."""
    for kind in (SESSION_TIMER, _REVOCATION, _JOIN, _SYNC):
        state.timers.cancel((kind, group_id, member_id))


def _limit(
    state: State,
    kind: str,
    group_id: str,
    member_id: str,
    timeout_ms: int,
    epoch: int | None = None,
) -> None:
    """Remove the member when the time is over, if it is in this epoch still."""

    def end() -> Result:
        group = find_consumer(state, group_id)
        member = None if group is None else group.members.get(member_id)
        if group is None or member is None or (epoch is not None and member.epoch != epoch):
            return NOTHING
        leaving: Leaving = "session_timeout" if kind == SESSION_TIMER else "not_rejoined"
        try:
            return remove_members(state, group, [member], cause=AppendCause(leaving=leaving))
        except OperationRefused as refusal:
            if refusal.code in _NOTHING_TO_DO:
                return NOTHING
            raise

    state.set_timer_with_retry((kind, group_id, member_id), timeout_ms, end)


def keep_alive(state: State, group_id: str, member_id: str, timeout_ms: int | None = None) -> None:
    """Restart a session; by default with the time-out that the group's members have."""
    if timeout_ms is None:
        timeout_ms = state.config.of_consumer_group(group_id).session_timeout_ms
    if not state.timers.renew((SESSION_TIMER, group_id, member_id), state.now + timeout_ms):
        _limit(state, SESSION_TIMER, group_id, member_id, timeout_ms)


def begin_session(state: State, group_id: str, member_id: str, timeout_ms: int) -> None:
    """Begin the session of a member that joins, in place of a timer that a group of another kind may have."""
    _limit(state, SESSION_TIMER, group_id, member_id, timeout_ms)


def limit_revocation(state: State, group_id: str, member: ConsumerMember) -> None:
    """The member has its rebalance time-out to give up partitions and leave its epoch."""
    timeout_ms = member.rebalance_timeout_ms
    _limit(state, _REVOCATION, group_id, member.member_id, timeout_ms, member.epoch)


def unlimit_revocation(state: State, group_id: str, member_id: str) -> None:
    state.timers.cancel((_REVOCATION, group_id, member_id))


def limit_join(state: State, group_id: str, member: ConsumerMember) -> None:
    """A classic member that has to join again has its rebalance time-out, from the first request to do so."""
    if not state.timers.is_set((_JOIN, group_id, member.member_id)):
        _limit(state, _JOIN, group_id, member.member_id, member.rebalance_timeout_ms)


def unlimit_join(state: State, group_id: str, member_id: str) -> None:
    state.timers.cancel((_JOIN, group_id, member_id))


def limit_sync(state: State, group_id: str, member_id: str, timeout_ms: int) -> None:
    """A classic member that joined has this long to fetch its assignment."""
    _limit(state, _SYNC, group_id, member_id, timeout_ms)


def unlimit_sync(state: State, group_id: str, member_id: str) -> None:
    state.timers.cancel((_SYNC, group_id, member_id))


# --- removal ---


def leave_consumer_group(
    group: ConsumerGroupModel, request: ConsumerGroupHeartbeatRequest, state: State
) -> Result:
    """Handle a heartbeat with epoch -1 or -2."""
    if request.instance_id is None:
        member = find_member(group, request.member_id)
    else:
        member = find_static_member(group, request.member_id, request.instance_id)
        if request.member_epoch == LEFT_FOR_NOW:
            return _leave_for_now(group, member)
    response = ConsumerGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.member_epoch)
    return remove_members(state, group, [member], response)


def _leave_for_now(group: ConsumerGroupModel, member: ConsumerMember) -> Result:
    # A member that comes back has the partitions from its first epoch on.
    owned: Mapping[object, object] = {
        topic: dict.fromkeys(partitions, 0) for topic, partitions in member.owned.items()
    }
    absent = replace(member, epoch=LEFT_FOR_NOW, owned=owned, revoking=NOTHING_OWNED)  # type: ignore[arg-type]
    response = ConsumerGroupHeartbeatResponse(member_id=member.member_id, member_epoch=LEFT_FOR_NOW)
    return Result([owned_record(group.group_id, absent)], response)


def remove_members(
    state: State,
    group: ConsumerGroupModel,
    members: Sequence[ConsumerMember],
    response: Message | None = None,
    cause: AppendCause = NO_CAUSE,
) -> Result:
    """Remove members, whose partitions are free at once."""
    if not members:
        return Result(response=response)
    records: list[LogRecord] = []
    group_id = group.group_id
    if downgrades_without(state, group, members):
        removed = {member.member_id for member in members}
        downgrade(state, group, records, removed=removed, leaving=cause.leaving, rebalance=True)
        return Result(records, response, replay=False)
    for member in members:
        records += member_tombstones(group_id, member.member_id)
    counts: dict[str, int] = {}
    for member in members:
        if member.regex:
            counts[member.regex] = counts.get(member.regex, 0) + 1
    dropped = [regex for regex, count in counts.items() if group.patterns.get(regex) == count]
    records += [pattern_tombstone(group_id, regex) for regex in dropped]
    topics = group.topics_after(members, None, dropped)
    records.append(epoch_record(group_id, group.epoch + 1, group_hash(state.topics, topics)))
    if state.rules.emptied_groups_are_assigned and len(members) == len(group.members):
        records.append(assignment_epoch_record(group_id, assigned_at=0, epoch=group.epoch + 1))
    for member in members:
        _cancel_timers(state, group_id, member.member_id)
    return Result(records, response, cause=cause)
