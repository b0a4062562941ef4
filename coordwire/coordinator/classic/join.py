"""JoinGroup: who may join, under which id, and what a member that is in already gets.

KIP-394: from version 4 a dynamic member without an id gets one with MEMBER_ID_REQUIRED and joins again.
KIP-345: a static member without an id takes the place of the member with its instance id.
"""

from __future__ import annotations

from collections.abc import Sequence

from coordwire.coordinator.classic.rebalancing import (
    find_classic,
    keep_alive,
    keep_pending_alive,
    rebalance_or_complete,
)
from coordwire.coordinator.classic.records import empty_group
from coordwire.coordinator.classic.static_members import replace_static_member
from coordwire.coordinator.client_ids import client_id_of
from coordwire.coordinator.effects import RequestContext
from coordwire.coordinator.model.classic_group import ClassicGroupModel
from coordwire.coordinator.model.classic_member import ClassicMember, Protocols
from coordwire.coordinator.model.classic_states import GroupState
from coordwire.coordinator.refusal import OperationRefused, translated
from coordwire.coordinator.reply import Reply
from coordwire.coordinator.state import NOTHING, Result, State
from coordwire.enums import ErrorCode
from coordwire.logs import LogRecord
from coordwire.messages import JoinGroupRequest, JoinGroupResponse

__all__ = ["join"]

_KNOWN_ID_REQUIRED = 4
"""The first version that must know its member id."""


def join(
    state: State,
    request: JoinGroupRequest,
    version: int,
    context: RequestContext,
    reply: Reply,
    before: Sequence[LogRecord] = (),
) -> Result:
    """before: records that end an empty group of another type, whose place this group takes."""
    group = find_classic(state, request.group_id)
    created = group is None
    if group is None:
        if request.member_id:
            return _refuse(reply, request.member_id, ErrorCode.UNKNOWN_MEMBER_ID)
        group = ClassicGroupModel(request.group_id, state.now)
        state.groups[request.group_id] = group
        if before:
            state.listener.became_classic(state.now, group, request.member_id or None)
    if not _has_room(state, group, request.member_id):
        gone = group.members.get(request.member_id)
        if gone is not None:
            state.listener.member_left(state.now, group, gone, "removed")
        group.remove(request.member_id)
        result = _refuse(reply, "", ErrorCode.GROUP_MAX_SIZE_REACHED)
    elif request.member_id:
        result = _join_known(state, group, request, version, context, reply)
    else:
        result = _join_new(state, group, request, version, context, reply)
    if created and result is NOTHING:
        # The group is in the log from its first moment, so that the log and the state never differ.
        def appended(error: int) -> None:
            if error:
                reply.send(JoinGroupResponse(error_code=translated(error)))

        return Result([*before, empty_group(group)], on_append=appended, replay=False)
    return result


def _has_room(state: State, group: ClassicGroupModel, member_id: str) -> bool:
    """Whether one more fits; while members join, those that did are counted."""
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
        return _refuse(reply, "", ErrorCode.COORDINATOR_NOT_AVAILABLE)
    if not group.supports(request.protocol_type, _protocols(request)):
        return _refuse(reply, "", ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    instance_id = request.group_instance_id
    prefix = instance_id if instance_id is not None else client_id_of(context)
    member_id = f"{prefix}-{context.new_id()}"
    if instance_id is not None:
        existing = group.static_members.get(instance_id)
        if existing is not None:
            return replace_static_member(
                state, group, request, version, existing, member_id, _protocols(request), reply
            )
    elif version >= _KNOWN_ID_REQUIRED:
        group.pending_joins.add(member_id)
        keep_pending_alive(state, group, member_id, request.session_timeout_ms)
        return _refuse(reply, member_id, ErrorCode.MEMBER_ID_REQUIRED)
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
        return _refuse(reply, member_id, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    if not group.supports(request.protocol_type, protocols):
        return _refuse(reply, member_id, ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
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
            # The answer was lost, perhaps: the current generation, once more.
            return _current_generation(group, member_id, reply, with_members=leader)
        case GroupState.STABLE if unchanged and not leader:
            return _current_generation(group, member_id, reply, with_members=False)
        case GroupState.EMPTY:
            return _refuse(reply, member_id, ErrorCode.UNKNOWN_MEMBER_ID)
    # A leader's JoinGroup asks for a rebalance: of topics that changed, only it knows.
    before = member.protocols
    group.update(member, protocols, request.rebalance_timeout_ms, request.session_timeout_ms, reply)
    state.listener.member_rejoined(group, member, before)
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
    # A parked client sends no heartbeats; one that is gone must not stay in the group for ever.
    keep_alive(state, group, member, state.config.new_member_join_timeout_ms)
    return rebalance_or_complete(state, group)


def _protocols(request: JoinGroupRequest) -> Protocols:
    return tuple((protocol.name, protocol.metadata) for protocol in request.protocols)


def _refuse(reply: Reply, member_id: str, error: ErrorCode) -> Result:
    reply.send(JoinGroupResponse(member_id=member_id, error_code=int(error)))
    return NOTHING
