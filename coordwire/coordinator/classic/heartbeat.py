"""Heartbeat: the member is alive; the answer asks it to join again."""

from __future__ import annotations

from coordwire.coordinator.classic.rebalancing import keep_alive
from coordwire.coordinator.model.classic_group import ClassicGroupModel
from coordwire.coordinator.model.classic_states import GroupState
from coordwire.coordinator.refusal import OperationRefused
from coordwire.coordinator.state import Outcome, State
from coordwire.enums import ErrorCode
from coordwire.messages import HeartbeatRequest, HeartbeatResponse

__all__ = ["heartbeat"]

_REBALANCE_IN_PROGRESS = int(ErrorCode.REBALANCE_IN_PROGRESS)
_DEAD, _EMPTY, _PREPARING = GroupState.DEAD, GroupState.EMPTY, GroupState.PREPARING_REBALANCE
"""An enumeration's member costs as much as the rest of a test for it."""


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
    # While assignments are on their way a member may send heartbeats already, and is alive.
    keep_alive(state, group, member)
    return HeartbeatResponse(error_code=_REBALANCE_IN_PROGRESS if entered is _PREPARING else 0)
