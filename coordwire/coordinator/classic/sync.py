"""SyncGroup: the leader brings the assignments, the others wait for theirs."""

from __future__ import annotations

from coordwire.coordinator.classic.rebalancing import (
    cancel_sync_timer,
    find_classic,
    propagate_assignments,
    rebalance_or_complete,
    refuse_parked_syncs,
)
from coordwire.coordinator.classic.records import group_metadata
from coordwire.coordinator.model.classic_group import ClassicGroupModel
from coordwire.coordinator.model.classic_states import GroupState
from coordwire.coordinator.refusal import OperationRefused, translated
from coordwire.coordinator.reply import Reply
from coordwire.coordinator.state import NOTHING, Result, State
from coordwire.enums import ErrorCode
from coordwire.messages import SyncGroupRequest, SyncGroupResponse

__all__ = ["sync"]


def sync(state: State, request: SyncGroupRequest, reply: Reply) -> Result:
    group = find_classic(state, request.group_id)
    if group is None or group.state is GroupState.EMPTY:
        return _refuse(reply, ErrorCode.UNKNOWN_MEMBER_ID)
    error = _error(group, request)
    if error:
        return _refuse(reply, error)
    member = group.members[request.member_id]
    if group.state is GroupState.PREPARING_REBALANCE:
        return _refuse(reply, ErrorCode.REBALANCE_IN_PROGRESS)
    if group.state is GroupState.STABLE:
        _synced(state, group, request.member_id)
        reply.send(
            SyncGroupResponse(
                protocol_type=group.protocol_type, protocol_name=group.protocol, assignment=member.assignment
            )
        )
        return NOTHING
    member.parked_sync = reply
    _synced(state, group, request.member_id)
    return _store(state, group, request) if group.is_leader(request.member_id) else NOTHING


def _error(group: ClassicGroupModel, request: SyncGroupRequest) -> int:
    if group.state is GroupState.DEAD:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    try:
        group.validate_member(request.member_id, request.group_instance_id)
    except OperationRefused as refusal:
        return refusal.code
    if request.generation_id != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    for told, known in (
        (request.protocol_type, group.protocol_type),
        (request.protocol_name, group.protocol),
    ):
        if told is not None and known is not None and told != known:
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    return 0


def _synced(state: State, group: ClassicGroupModel, member_id: str) -> None:
    group.pending_syncs.discard(member_id)
    if not group.pending_syncs:
        cancel_sync_timer(state, group)


def _store(state: State, group: ClassicGroupModel, request: SyncGroupRequest) -> Result:
    """Write the leader's assignments; members get theirs once they are durable."""
    generation = request.generation_id
    assignments = {given.member_id: given.assignment for given in request.assignments}
    for member_id in group.members:
        assignments.setdefault(member_id, b"")

    def appended(error: int) -> None:
        # A member may have joined or left meanwhile, so that the assignments are of no use any more.
        if group.state is not GroupState.COMPLETING_REBALANCE or group.generation != generation:
            return
        if error:
            refuse_parked_syncs(state, group, translated(error))
            rebalance_or_complete(state, group)
        else:
            propagate_assignments(state, group, assignments)
            group.enter(GroupState.STABLE, state.now)
            state.listener.generation_assigned(state.now, group)

    return Result([group_metadata(group, assignments)], on_append=appended, replay=False)


def _refuse(reply: Reply, error: int) -> Result:
    reply.send(SyncGroupResponse(error_code=int(error)))
    return NOTHING
