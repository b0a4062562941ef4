"""Requests of the classic protocol, passed to the code for the group's type: classic or consumer.

An empty consumer group becomes classic with its next classic member, here; `consumer` has the other
direction, and the conversion of groups that have members.
"""

from __future__ import annotations

from coordwire.coordinator.classic.requests import heartbeat, join, leave, sync
from coordwire.coordinator.consumer.classic_members import (
    heartbeat_classic,
    join_classic,
    leave_classic,
    sync_classic,
)
from coordwire.coordinator.consumer.sessions import find_consumer
from coordwire.coordinator.effects import Reply, RequestContext
from coordwire.coordinator.model.consumer_group import ConsumerGroupModel
from coordwire.coordinator.records import consumer_tombstones
from coordwire.coordinator.state import NOTHING, Outcome, Result, State
from coordwire.enums import ErrorCode
from coordwire.logs import LogRecord
from coordwire.messages import (
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    SyncGroupRequest,
    SyncGroupResponse,
)

__all__ = ["heartbeat_group", "join_group", "leave_group", "sync_group"]


def join_group(
    state: State, request: JoinGroupRequest, version: int, context: RequestContext, reply: Reply
) -> Result:
    group = find_consumer(state, request.group_id)
    tombstones: list[LogRecord] = []
    if group is not None:
        if not group.is_empty:
            return join_classic(state, group, request, version, context, reply)
        tombstones = consumer_tombstones(group)
        state.groups.pop(request.group_id)
    return join(state, request, version, context, reply, tombstones)


def sync_group(state: State, request: SyncGroupRequest, reply: Reply) -> Result:
    group = find_consumer(state, request.group_id)
    if group is None:
        return sync(state, request, reply)
    if group.is_empty:
        reply.send(SyncGroupResponse(error_code=int(ErrorCode.UNKNOWN_MEMBER_ID)))
        return NOTHING
    return sync_classic(state, group, request, reply)


def heartbeat_group(state: State, request: HeartbeatRequest, context: RequestContext) -> Outcome:
    group = state.groups.get(request.group_id)
    if isinstance(group, ConsumerGroupModel):
        return heartbeat_classic(state, group, request)
    return heartbeat(state, group, request)


def leave_group(state: State, request: LeaveGroupRequest, version: int) -> Result:
    group = find_consumer(state, request.group_id)
    if group is None:
        return leave(state, request, version)
    return leave_classic(state, group, request, version)
