"""JoinGroup, SyncGroup, Heartbeat and LeaveGroup of a classic group.

KIP-394: from version 4 a dynamic member without an id gets one with MEMBER_ID_REQUIRED and joins again.
KIP-345: a static member without an id takes the place of the member with its instance id.
"""

from __future__ import annotations

from collections.abc import Sequence

from coordwire.codec.declarations import positional
from coordwire.coordinator.classic.rebalance import (
    SESSION_TIMER,
    cancel_session,
    cancel_sync_timer,
    complete_if_all_joined,
    find_classic,
    keep_alive,
    keep_pending_alive,
    prepare_rebalance,
    propagate_assignments,
    rebalance_or_complete,
    refuse_parked_syncs,
)
from coordwire.coordinator.effects import Reply, RequestContext, client_id_of, new_id
from coordwire.coordinator.model.classic_group import ClassicGroupModel, ClassicMember, GroupState, Protocols
from coordwire.coordinator.records import classic_group_record, new_classic_group_record
from coordwire.coordinator.refusal import OperationRefused, translated
from coordwire.coordinator.state import NOTHING, Outcome, Result, State
from coordwire.enums import ErrorCode
from coordwire.logs import LogRecord
from coordwire.messages import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from coordwire.messages.leave_group import MemberIdentity, MemberResponse

# --- JoinGroup ---

_KNOWN_ID_REQUIRED = 4
"""The first version whose clients must know their member id."""


def join(
    state: State,
    request: JoinGroupRequest,
    version: int,
    context: RequestContext,
    reply: Reply,
    tombstones: Sequence[LogRecord] = (),
) -> Result:
    """Let a member join.

    tombstones: of an empty consumer group that this group replaces.
    """
    group = find_classic(state, request.group_id)
    created = group is None
    if group is None:
        if request.member_id:
            return _refuse_join(reply, request.member_id, ErrorCode.UNKNOWN_MEMBER_ID)
        group = ClassicGroupModel(request.group_id, state.now)
        state.groups[request.group_id] = group
        if tombstones:
            state.listener.became_classic(state.now, group, request.member_id or None)
    if not _has_room(state, group, request.member_id):
        removed = group.members.get(request.member_id)
        if removed is not None:
            state.listener.member_left(state.now, group, removed, "removed")
        group.remove(request.member_id)
        result = _refuse_join(reply, "", ErrorCode.GROUP_MAX_SIZE_REACHED)
    elif request.member_id:
        result = _join_known(state, group, request, version, context, reply)
    else:
        try:
            result = _join_new(state, group, request, version, context, reply)
        except OperationRefused:
            if created:
                state.groups.pop(request.group_id)
            raise
    if created and result is NOTHING:
        # The group is written at once, so that the log and the state never differ.
        def appended(error: int) -> None:
            if error:
                reply.send(JoinGroupResponse(error_code=translated(error)))

        return Result([*tombstones, new_classic_group_record(group)], on_append=appended, replay=False)
    return result


def _has_room(state: State, group: ClassicGroupModel, member_id: str) -> bool:
    """Whether the group has room for the member; in a join phase only joined members count."""
    limit = state.config.group_max_size
    if group.state is GroupState.PREPARING_REBALANCE:
        member = group.members.get(member_id)
        return (member is not None and member.parked_join is not None) or group.parked_joins < limit
    if group.state in (GroupState.COMPLETING_REBALANCE, GroupState.STABLE):
        return member_id in group.members or len(group.members) < limit
    return True


def _join_new(
    state: State,
    group: ClassicGroupModel,
    request: JoinGroupRequest,
    version: int,
    context: RequestContext,
    reply: Reply,
) -> Result:
    if group.state is GroupState.DEAD:
        return _refuse_join(reply, "", ErrorCode.COORDINATOR_NOT_AVAILABLE)
    if not group.supports(request.protocol_type, _protocols(request)):
        return _refuse_join(reply, "", ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    instance_id = request.group_instance_id
    prefix = instance_id if instance_id is not None else client_id_of(context)
    member_id = f"{prefix}-{new_id(context)}"
    if instance_id is not None:
        existing = group.static_members.get(instance_id)
        if existing is not None:
            return replace_static_member(
                state, group, request, version, existing, member_id, _protocols(request), reply
            )
    elif version >= _KNOWN_ID_REQUIRED:
        group.pending_joins.add(member_id)
        keep_pending_alive(state, group, member_id, request.session_timeout_ms)
        return _refuse_join(reply, member_id, ErrorCode.MEMBER_ID_REQUIRED)
    return _add(state, group, request, context, member_id, reply)


def _join_known(
    state: State,
    group: ClassicGroupModel,
    request: JoinGroupRequest,
    version: int,
    context: RequestContext,
    reply: Reply,
) -> Result:
    member_id = request.member_id
    protocols = _protocols(request)
    if group.state is GroupState.DEAD:
        return _refuse_join(reply, member_id, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    if not group.supports(request.protocol_type, protocols):
        return _refuse_join(reply, member_id, ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    if member_id in group.pending_joins:
        if request.group_instance_id is not None:
            raise OperationRefused(ErrorCode.UNKNOWN_SERVER_ERROR)
        return _add(state, group, request, context, member_id, reply)
    try:
        group.validate_member(member_id, request.group_instance_id)
    except OperationRefused as refusal:
        reply.send(JoinGroupResponse(member_id=member_id, error_code=refusal.code, protocol_name=None))
        return NOTHING
    member = group.members[member_id]
    unchanged = member.protocols == protocols
    leader = group.is_leader(member_id)
    match group.state:
        case GroupState.COMPLETING_REBALANCE if unchanged:
            # The answer may have been lost: send the current generation once more.
            return _current_generation(group, member_id, reply, with_members=leader)
        case GroupState.STABLE if unchanged and not leader:
            return _current_generation(group, member_id, reply, with_members=False)
        case GroupState.EMPTY:
            return _refuse_join(reply, member_id, ErrorCode.UNKNOWN_MEMBER_ID)
    # A leader's JoinGroup asks for a rebalance: only the leader knows of changed topics.
    previous = member.protocols
    group.update(member, protocols, request.rebalance_timeout_ms, request.session_timeout_ms, reply)
    state.listener.member_rejoined(group, member, previous)
    return rebalance_or_complete(state, group)


def _current_generation(
    group: ClassicGroupModel, member_id: str, reply: Reply, *, with_members: bool
) -> Result:
    reply.send(
        JoinGroupResponse(
            members=group.joined_members() if with_members else [], member_id=member_id,
            generation_id=group.generation, protocol_name=group.protocol, protocol_type=group.protocol_type,
            leader=group.leader or "",
        )
    )  # fmt: skip
    return NOTHING


def _add(
    state: State,
    group: ClassicGroupModel,
    request: JoinGroupRequest,
    context: RequestContext,
    member_id: str,
    reply: Reply,
) -> Result:
    member = ClassicMember(
        member_id, request.group_instance_id, client_id_of(context), context.client_host,
        request.rebalance_timeout_ms, request.session_timeout_ms, request.protocol_type, _protocols(request),
        new=True,
    )  # fmt: skip
    if group.state is GroupState.PREPARING_REBALANCE and group.previous_state is GroupState.EMPTY:
        group.member_added = True
    group.add(member, reply)
    state.listener.member_joined(state.now, group, member, None)
    # A parked client sends no heartbeats; a client that has gone away must not stay in the group for ever.
    keep_alive(state, group, member, state.config.new_member_join_timeout_ms)
    return rebalance_or_complete(state, group)


def _protocols(request: JoinGroupRequest) -> Protocols:
    return tuple((protocol.name, protocol.metadata) for protocol in request.protocols)


def _refuse_join(reply: Reply, member_id: str, error: ErrorCode) -> Result:
    reply.send(JoinGroupResponse(member_id=member_id, error_code=int(error)))
    return NOTHING


# --- JoinGroup of a static member without its id ---

_SKIPS_ASSIGNMENT = 9


def replace_static_member(
    state: State,
    group: ClassicGroupModel,
    request: JoinGroupRequest,
    version: int,
    old_id: str,
    new_id: str,
    protocols: Protocols,
    reply: Reply,
) -> Result:
    instance_id = request.group_instance_id
    assert instance_id is not None
    leader = group.leader
    member = group.replace_static(instance_id, old_id, new_id)
    keep_alive(state, group, member)
    previous = member.protocols, member.rebalance_timeout_ms, member.session_timeout_ms
    group.update(member, protocols, request.rebalance_timeout_ms, request.session_timeout_ms, reply)

    def report() -> None:
        state.listener.member_joined(state.now, group, member, old_id)

    if group.state in (GroupState.COMPLETING_REBALANCE, GroupState.PREPARING_REBALANCE):
        report()
    if group.state is GroupState.COMPLETING_REBALANCE:
        # The leader may have been given the old id to assign to.
        return prepare_rebalance(state, group)
    if group.state in (GroupState.EMPTY, GroupState.DEAD):
        raise OperationRefused(ErrorCode.UNKNOWN_SERVER_ERROR)
    if group.state is GroupState.PREPARING_REBALANCE:
        return complete_if_all_joined(state, group)
    if (group.protocol or "") != group.selected_protocol():
        report()
        return rebalance_or_complete(state, group)

    def appended(error: int) -> None:
        if error:
            group.update(member, *previous, None)
            if new_id not in group.members:
                return  # the member left meanwhile; the request is answered with the error alone
            old = group.replace_static(instance_id, new_id, old_id)
            keep_alive(state, group, old)
            reply.send(
                JoinGroupResponse(
                    generation_id=group.generation, protocol_name=group.protocol,
                    protocol_type=group.protocol_type, leader=leader or "", error_code=translated(error),
                )
            )  # fmt: skip
            return
        report()
        leads = version >= _SKIPS_ASSIGNMENT and group.is_leader(new_id)
        if leads and group.state in (GroupState.PREPARING_REBALANCE, GroupState.DEAD):
            return  # the member will be in the next generation
        group.answer_join(
            member,
            JoinGroupResponse(
                members=group.joined_members() if leads else [], member_id=new_id,
                generation_id=group.generation, protocol_name=group.protocol,
                protocol_type=group.protocol_type, skip_assignment=leads,
                leader=(group.leader if version >= _SKIPS_ASSIGNMENT else leader) or "",
            ),
        )  # fmt: skip

    assignments = {other.member_id: other.assignment for other in group.members.values()}
    return Result([classic_group_record(group, assignments)], on_append=appended, replay=False)


# --- SyncGroup ---


def sync(state: State, request: SyncGroupRequest, reply: Reply) -> Result:
    group = find_classic(state, request.group_id)
    if group is None or group.state is GroupState.EMPTY:
        return _refuse_sync(reply, ErrorCode.UNKNOWN_MEMBER_ID)
    error = _sync_error(group, request)
    if error:
        return _refuse_sync(reply, error)
    member = group.members[request.member_id]
    if group.state is GroupState.PREPARING_REBALANCE:
        return _refuse_sync(reply, ErrorCode.REBALANCE_IN_PROGRESS)
    if group.state is GroupState.STABLE:
        _end_pending_sync(state, group, request.member_id)
        reply.send(
            SyncGroupResponse(
                protocol_type=group.protocol_type, protocol_name=group.protocol, assignment=member.assignment
            )
        )
        return NOTHING
    member.parked_sync = reply
    _end_pending_sync(state, group, request.member_id)
    return _store_assignments(state, group, request) if group.is_leader(request.member_id) else NOTHING


def _sync_error(group: ClassicGroupModel, request: SyncGroupRequest) -> int:
    if group.state is GroupState.DEAD:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    try:
        group.validate_member(request.member_id, request.group_instance_id)
    except OperationRefused as refusal:
        return refusal.code
    if request.generation_id != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    for requested, current in (
        (request.protocol_type, group.protocol_type),
        (request.protocol_name, group.protocol),
    ):
        if requested is not None and current is not None and requested != current:
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    return 0


def _end_pending_sync(state: State, group: ClassicGroupModel, member_id: str) -> None:
    group.pending_syncs.discard(member_id)
    if not group.pending_syncs:
        cancel_sync_timer(state, group)


def _store_assignments(state: State, group: ClassicGroupModel, request: SyncGroupRequest) -> Result:
    """Write the leader's assignments; members get them once they are durable."""
    generation = request.generation_id
    assignments = {member.member_id: member.assignment for member in request.assignments}
    for member_id in group.members:
        assignments.setdefault(member_id, b"")

    def appended(error: int) -> None:
        # A member may have joined or left meanwhile, which makes the assignments useless.
        if group.state is not GroupState.COMPLETING_REBALANCE or group.generation != generation:
            return
        if error:
            refuse_parked_syncs(state, group, translated(error))
            rebalance_or_complete(state, group)
        else:
            propagate_assignments(state, group, assignments)
            group.enter(GroupState.STABLE, state.now)
            state.listener.generation_assigned(state.now, group)

    return Result([classic_group_record(group, assignments)], on_append=appended, replay=False)


def _refuse_sync(reply: Reply, error: int) -> Result:
    reply.send(SyncGroupResponse(error_code=int(error)))
    return NOTHING


# --- Heartbeat ---

_REBALANCE_IN_PROGRESS = int(ErrorCode.REBALANCE_IN_PROGRESS)
_DEAD, _EMPTY = GroupState.DEAD, GroupState.EMPTY
_PREPARING, _STABLE = GroupState.PREPARING_REBALANCE, GroupState.STABLE
"""Constants: an attribute of an enumeration costs as much as the rest of a comparison with it."""


def heartbeat(state: State, group: ClassicGroupModel | None, request: HeartbeatRequest) -> Outcome:
    if group is None:
        raise OperationRefused(ErrorCode.UNKNOWN_MEMBER_ID)
    entered = group.state
    if entered is _DEAD:
        raise OperationRefused(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    member = group.validate_member(request.member_id, request.group_instance_id)
    if request.generation_id != group.generation:
        raise OperationRefused(ErrorCode.ILLEGAL_GENERATION)
    if entered is _EMPTY:
        raise OperationRefused(ErrorCode.UNKNOWN_MEMBER_ID)
    # A member may send heartbeats before it has its assignment.
    keep_alive(state, group, member)
    return HeartbeatResponse(error_code=_REBALANCE_IN_PROGRESS if entered is _PREPARING else 0)


_steady_response = positional(HeartbeatResponse)


def steady_heartbeat(
    state: State, request: HeartbeatRequest, context: RequestContext
) -> HeartbeatResponse | None:
    """Answer a dynamic member of a stable group; None for all others, of whom `heartbeat` decides."""
    group_id, member_id = request.group_id, request.member_id
    group = state.groups.get(group_id)
    if type(group) is not ClassicGroupModel or group.state is not _STABLE or not group_id:
        return None
    member = group.members.get(member_id)
    if (
        member is None
        or request.generation_id != group.generation
        or request.group_instance_id is not None
        or not state.timers.renew((SESSION_TIMER, group_id, member_id), state.now + member.session_timeout_ms)
    ):
        return None
    return _steady_response()


# --- LeaveGroup ---

_BATCHES = 3
"""The first version that lists members."""


def leaving_members(request: LeaveGroupRequest, version: int) -> list[MemberIdentity]:
    if version >= _BATCHES:
        return request.members
    return [MemberIdentity(member_id=request.member_id)]


def leave(state: State, request: LeaveGroupRequest, version: int) -> Result:
    group = find_classic(state, request.group_id)
    if group is None:
        raise OperationRefused(ErrorCode.UNKNOWN_MEMBER_ID)
    if group.state is GroupState.DEAD:
        return Result(response=LeaveGroupResponse(error_code=int(ErrorCode.COORDINATOR_NOT_AVAILABLE)))
    members = [
        MemberResponse(
            member_id=identity.member_id,
            group_instance_id=identity.group_instance_id,
            error_code=_remove_member(state, group, identity),
        )
        for identity in leaving_members(request, version)
    ]
    result = NOTHING
    if any(not member.error_code for member in members):
        if group.state in (GroupState.STABLE, GroupState.COMPLETING_REBALANCE):
            result = rebalance_or_complete(state, group)
        elif group.state is GroupState.PREPARING_REBALANCE:
            result = complete_if_all_joined(state, group)
    response = LeaveGroupResponse(members=members)
    return Result(result.records, response, result.on_append, result.replay)


def _remove_member(state: State, group: ClassicGroupModel, identity: MemberIdentity) -> int:
    member_id, instance_id = identity.member_id, identity.group_instance_id
    if not member_id:
        known = None if instance_id is None else group.static_members.get(instance_id)
        if known is None:
            return int(ErrorCode.UNKNOWN_MEMBER_ID)
        member_id = known
    elif member_id in group.pending_joins:
        group.remove(member_id)
        cancel_session(state, group, member_id)
        return 0
    else:
        try:
            group.validate_member(member_id, instance_id)
        except OperationRefused as refusal:
            return refusal.code
    cancel_session(state, group, member_id)
    # Its JoinGroup may be parked still; its client has to join again if it is alive.
    group.answer_join(
        group.members[member_id], JoinGroupResponse(error_code=int(ErrorCode.UNKNOWN_MEMBER_ID))
    )
    state.listener.member_left(state.now, group, group.members[member_id], "left", identity.reason)
    group.remove(member_id)
    return 0
