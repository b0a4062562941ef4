"""The rebalance of a classic group, from its cause to the new generation, with its timers.

    Empty -> PreparingRebalance      wait the initial delay, longer while members join
    Stable, Completing -> Preparing  wait until all members have joined, at most the rebalance time-out
    all joined -> Completing         answer every JoinGroup; members have the rebalance time-out for SyncGroup

A session that ends may begin a rebalance, or complete one.
"""

from __future__ import annotations

from coordwire.coordinator.model.classic_group import ClassicGroupModel, ClassicMember, GroupState
from coordwire.coordinator.records import classic_group_record
from coordwire.coordinator.state import NOTHING, Result, State
from coordwire.enums import ErrorCode
from coordwire.messages import JoinGroupResponse, SyncGroupResponse


def find_classic(state: State, group_id: str) -> ClassicGroupModel | None:
    group = state.groups.get(group_id)
    return group if isinstance(group, ClassicGroupModel) else None


# --- sessions ---


SESSION_TIMER = "heartbeat"


def keep_alive(
    state: State, group: ClassicGroupModel, member: ClassicMember, timeout_ms: int | None = None
) -> None:
    """Restart a member's session; by default with the time-out of its JoinGroup."""
    if timeout_ms is None:
        timeout_ms = member.session_timeout_ms
    if not state.timers.renew((SESSION_TIMER, group.group_id, member.member_id), state.now + timeout_ms):
        keep_pending_alive(state, group, member.member_id, timeout_ms)


def keep_pending_alive(state: State, group: ClassicGroupModel, member_id: str, timeout_ms: int) -> None:
    """Begin the session of a member, or of an id that a client got and has not joined with."""
    group_id = group.group_id
    key = (SESSION_TIMER, group_id, member_id)
    state.set_timer(key, timeout_ms, lambda: expire_session(state, group_id, member_id))


def cancel_session(state: State, group: ClassicGroupModel, member_id: str) -> None:
    state.timers.cancel((SESSION_TIMER, group.group_id, member_id))


def expire_session(state: State, group_id: str, member_id: str) -> Result:
    """End a session: remove the member, unless it waits for an answer."""
    group = find_classic(state, group_id)
    if group is None or group.state is GroupState.DEAD:
        return NOTHING
    if member_id in group.pending_joins:
        group.remove(member_id)
        if group.state is GroupState.PREPARING_REBALANCE and group.all_joined:
            return _complete_join(state, group)
        return NOTHING
    member = group.members.get(member_id)
    if member is None or member.satisfies_heartbeat:
        return NOTHING
    # A new member's JoinGroup may be parked still; its client has to join again if it is alive.
    unknown = int(ErrorCode.UNKNOWN_MEMBER_ID)
    group.answer_join(member, JoinGroupResponse(error_code=unknown))
    state.listener.member_left(state.now, group, member, "session_timeout")
    group.remove(member_id)
    if group.state in (GroupState.STABLE, GroupState.COMPLETING_REBALANCE):
        return rebalance_or_complete(state, group)
    if group.state is GroupState.PREPARING_REBALANCE and group.all_joined:
        return _complete_join(state, group)
    return NOTHING


# --- the join phase ---


def _join_key(group: ClassicGroupModel) -> str:
    return f"join-{group.group_id}"


def rebalance_or_complete(state: State, group: ClassicGroupModel) -> Result:
    """Begin a rebalance, or complete the join phase of the current one if no member is missing."""
    if group.can_rebalance:
        return prepare_rebalance(state, group)
    return complete_if_all_joined(state, group)


def prepare_rebalance(state: State, group: ClassicGroupModel) -> Result:
    if group.state is GroupState.COMPLETING_REBALANCE:
        refuse_parked_syncs(state, group, int(ErrorCode.REBALANCE_IN_PROGRESS))
    group.pending_syncs.clear()
    cancel_sync_timer(state, group)
    initial = group.state is GroupState.EMPTY
    if initial:
        delay = state.config.initial_rebalance_delay_ms
        _delay_join(state, group, delay, max(group.rebalance_timeout_ms - delay, 0))
    group.enter(GroupState.PREPARING_REBALANCE, state.now)
    state.listener.rebalance_began(state.now, group)
    if initial:
        return NOTHING
    if group.all_joined:
        return _complete_join(state, group)
    _limit_join(state, group)
    return NOTHING


def complete_if_all_joined(state: State, group: ClassicGroupModel) -> Result:
    """Complete the join phase if no member is missing, or if its time ended before a member joined."""
    if group.state is not GroupState.PREPARING_REBALANCE:
        return NOTHING
    if not group.overdue and (group.previous_state is GroupState.EMPTY or not group.all_joined):
        return NOTHING
    return _complete_join(state, group)


def _delay_join(state: State, group: ClassicGroupModel, delay_ms: int, remaining_ms: int) -> None:
    """Give an empty group time for more members to join."""
    group_id = group.group_id

    def end() -> Result:
        group = find_classic(state, group_id)
        if group is None:
            return NOTHING
        if not group.member_added or remaining_ms == 0:
            return _complete_join(state, group)
        group.member_added = False
        longer = min(state.config.initial_rebalance_delay_ms, remaining_ms)
        _delay_join(state, group, longer, max(remaining_ms - delay_ms, 0))
        return NOTHING

    state.set_timer(_join_key(group), delay_ms, end)


def _limit_join(state: State, group: ClassicGroupModel) -> None:
    group_id = group.group_id

    def end() -> Result:
        group = find_classic(state, group_id)
        return NOTHING if group is None else _complete_join(state, group)

    state.set_timer(_join_key(group), group.rebalance_timeout_ms, end)


def _complete_join(state: State, group: ClassicGroupModel) -> Result:
    """End the join phase: remove dynamic members that have not joined; the others get a generation."""
    state.timers.cancel(_join_key(group))
    group.overdue = False
    absent = [
        member
        for member in group.members.values()
        if member.parked_join is None and member.instance_id is None
    ]
    for member in absent:
        state.listener.member_left(state.now, group, member, "not_rejoined")
        group.remove(member.member_id)
        cancel_session(state, group, member.member_id)
    if group.state is GroupState.DEAD:
        return NOTHING
    if not group.elect_joined_leader() and group.members:
        # Only static members remain, and none has joined: wait until one joins or its session ends. A timer
        # of no time would fire for ever; without a timer, the next member that joins completes the phase.
        group.overdue = group.rebalance_timeout_ms <= 0
        if not group.overdue:
            _limit_join(state, group)
        return NOTHING
    group.begin_generation(state.now, impossible_is_malformed=state.rules.impossible_lengths_are_malformed)
    state.listener.generation_formed(state.now, group)
    if group.state is GroupState.EMPTY:
        return Result([classic_group_record(group, {})], replay=False)
    for member in group.members.values():
        group.answer_join(
            member,
            JoinGroupResponse(
                members=group.joined_members() if group.is_leader(member.member_id) else [],
                member_id=member.member_id, generation_id=group.generation, protocol_name=group.protocol,
                protocol_type=group.protocol_type, leader=group.leader or "",
            ),
        )  # fmt: skip
        keep_alive(state, group, member)
        member.new = False
        group.pending_syncs.add(member.member_id)
    _limit_sync(state, group)
    return NOTHING


# --- the sync phase ---


def _sync_key(group: ClassicGroupModel) -> str:
    return f"sync-{group.group_id}"


def cancel_sync_timer(state: State, group: ClassicGroupModel) -> None:
    state.timers.cancel(_sync_key(group))


def _limit_sync(state: State, group: ClassicGroupModel) -> None:
    group_id, generation = group.group_id, group.generation

    def end() -> Result:
        group = find_classic(state, group_id)
        if (
            group is None
            or group.generation != generation
            or group.state not in (GroupState.COMPLETING_REBALANCE, GroupState.STABLE)
            or not group.pending_syncs
        ):
            return NOTHING
        for member_id in sorted(group.pending_syncs):
            member = group.members.get(member_id)
            if member is not None:
                state.listener.member_left(state.now, group, member, "not_rejoined")
            group.remove(member_id)
            cancel_session(state, group, member_id)
        return prepare_rebalance(state, group)

    state.set_timer(_sync_key(group), group.rebalance_timeout_ms, end)


def refuse_parked_syncs(state: State, group: ClassicGroupModel, error: int) -> None:
    """Remove all assignments; members that wait for an assignment get an error."""
    for member in group.members.values():
        member.assignment = b""
    _answer_syncs(state, group, error)


def propagate_assignments(state: State, group: ClassicGroupModel, assignments: dict[str, bytes]) -> None:
    for member in group.members.values():
        member.assignment = assignments.get(member.member_id, b"")
    _answer_syncs(state, group, 0)


def _answer_syncs(state: State, group: ClassicGroupModel, error: int) -> None:
    for member in group.members.values():
        response = SyncGroupResponse(
            protocol_name=None if error else group.protocol,
            protocol_type=None if error else group.protocol_type,
            assignment=member.assignment,
            error_code=error,
        )
        if group.answer_sync(member, response):
            # Its session may have ended while the answer was parked.
            keep_alive(state, group, member)
