"""LeaveGroup: members go by themselves, or an operator removes static ones by instance id (KIP-345)."""

from __future__ import annotations

from coordwire.coordinator.classic.rebalancing import (
    cancel_session,
    complete_if_all_joined,
    find_classic,
    rebalance_or_complete,
)
from coordwire.coordinator.model.classic_group import ClassicGroupModel
from coordwire.coordinator.model.classic_states import GroupState
from coordwire.coordinator.refusal import OperationRefused
from coordwire.coordinator.state import NOTHING, Result, State
from coordwire.enums import ErrorCode
from coordwire.messages import JoinGroupResponse, LeaveGroupRequest, LeaveGroupResponse
from coordwire.messages.leave_group import MemberIdentity, MemberResponse

__all__ = ["leave", "leaving_members"]

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
            error_code=_leave(state, group, identity),
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


def _leave(state: State, group: ClassicGroupModel, identity: MemberIdentity) -> int:
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
    # Its JoinGroup may be parked still; its client shall join anew if it is alive.
    group.answer_join(
        group.members[member_id], JoinGroupResponse(error_code=int(ErrorCode.UNKNOWN_MEMBER_ID))
    )
    state.listener.member_left(state.now, group, group.members[member_id], "left", identity.reason)
    group.remove(member_id)
    return 0
