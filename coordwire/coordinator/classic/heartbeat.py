"""Heartbeat: the member is alive; the answer asks it to join again."""

from __future__ import annotations

from coordwire.coordinator.classic.rebalancing import find_classic, keep_alive
from coordwire.coordinator.model.classic_states import GroupState
from coordwire.coordinator.refusal import OperationRefused
from coordwire.coordinator.state import Result, State
from coordwire.enums import ErrorCode
from coordwire.messages import HeartbeatRequest, HeartbeatResponse

__all__ = ["heartbeat"]


def heartbeat(state: State, request: HeartbeatRequest) -> Result:
    group = find_classic(state, request.group_id)
    if group is None:
        raise OperationRefused(ErrorCode.UNKNOWN_MEMBER_ID)
    if group.state is GroupState.DEAD:
        raise OperationRefused(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    group.validate_member(request.member_id, request.group_instance_id)
    if request.generation_id != group.generation:
        raise OperationRefused(ErrorCode.ILLEGAL_GENERATION)
    if group.state is GroupState.EMPTY:
        raise OperationRefused(ErrorCode.UNKNOWN_MEMBER_ID)
    # While assignments are on their way a member may send heartbeats already, and is alive.
    keep_alive(state, group, group.members[request.member_id])
    rebalancing = group.state is GroupState.PREPARING_REBALANCE
    error = int(ErrorCode.REBALANCE_IN_PROGRESS) if rebalancing else 0
    return Result(response=HeartbeatResponse(error_code=error))
