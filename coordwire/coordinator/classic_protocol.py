"""The requests of the classic protocol: their checks, the group's kind, and the forms of answers.

A group that uses the protocol is classic, or a consumer group some of whose members do. An empty group of
another kind becomes classic with its next classic member, here, if its kind allows that; `consumer` has the
other direction, and the conversion of groups that have members.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy

from coordwire.codec import Message
from coordwire.coordinator.classic.kind import describe_group
from coordwire.coordinator.classic.requests import (
    heartbeat,
    join,
    leave,
    leaving_members,
    steady_heartbeat,
    sync,
)
from coordwire.coordinator.consumer.classic_members import (
    heartbeat_classic,
    join_classic,
    leave_classic,
    sync_classic,
)
from coordwire.coordinator.consumer.sessions import find_consumer
from coordwire.coordinator.effects import NO_CLIENT_ID, Reply, RequestContext
from coordwire.coordinator.model.classic_group import ClassicGroupModel
from coordwire.coordinator.model.consumer_group import ConsumerGroupModel
from coordwire.coordinator.refusal import OperationRefused, fits
from coordwire.coordinator.state import NOTHING, Outcome, Result, State
from coordwire.coordinator.writes import Handler, ImmediateRequest, IncomingRequest
from coordwire.enums import ErrorCode
from coordwire.messages import (
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from coordwire.messages.describe_groups import DescribedGroup
from coordwire.messages.leave_group import MemberResponse

_INVALID_GROUP_ID = int(ErrorCode.INVALID_GROUP_ID)
_UNKNOWN_SERVER_ERROR = int(ErrorCode.UNKNOWN_SERVER_ERROR)
_PROTOCOL_IN_SYNC = 5
_NULL_PROTOCOL_NAME = 7
_REBALANCE_TIMEOUT = 1
_LEAVE_BATCHES = 3


# --- by the group's kind ---


def _join_group(
    state: State, request: JoinGroupRequest, version: int, context: RequestContext, reply: Reply
) -> Result:
    group = state.groups.get(request.group_id)
    if group is None or isinstance(group, ClassicGroupModel):
        return join(state, request, version, context, reply)
    if isinstance(group, ConsumerGroupModel) and not group.is_empty:
        return join_classic(state, group, request, version, context, reply)
    if not group.becomes_classic or not group.is_empty:
        reply.send(JoinGroupResponse(error_code=int(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)))
        return NOTHING
    tombstones = state.kind_of(group).tombstones(state, group)
    state.groups.pop(request.group_id)
    return join(state, request, version, context, reply, tombstones)


def _sync_group(state: State, request: SyncGroupRequest, reply: Reply) -> Result:
    group = find_consumer(state, request.group_id)
    if group is None:
        return sync(state, request, reply)
    if group.is_empty:
        reply.send(SyncGroupResponse(error_code=int(ErrorCode.UNKNOWN_MEMBER_ID)))
        return NOTHING
    return sync_classic(state, group, request, reply)


def _heartbeat_group(state: State, request: HeartbeatRequest, context: RequestContext) -> Outcome:
    group = state.groups.get(request.group_id)
    if isinstance(group, ConsumerGroupModel):
        return heartbeat_classic(state, group, request)
    return heartbeat(state, group if isinstance(group, ClassicGroupModel) else None, request)


def _leave_group(state: State, request: LeaveGroupRequest, version: int) -> Result:
    group = find_consumer(state, request.group_id)
    if group is None:
        return leave(state, request, version)
    return leave_classic(state, group, request, version)


# --- requests ---


def _validate_named(state: State, request: HeartbeatRequest, version: int) -> None:
    if not request.group_id:
        raise OperationRefused(_INVALID_GROUP_ID)


def _refused_heartbeat(error: int, message: str | None) -> HeartbeatResponse:
    # A member need not look for another coordinator while this one loads.
    loading = error == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    return HeartbeatResponse(error_code=0 if loading else int(error))


def _join(call: IncomingRequest) -> None:
    request, version, send = call.request, call.version, call.reply

    def shaped(response: Message) -> None:
        assert isinstance(response, JoinGroupResponse)
        ids = [response.member_id, response.leader, *(member.member_id for member in response.members)]
        if not all(map(fits, ids)):
            response = JoinGroupResponse(error_code=_UNKNOWN_SERVER_ERROR)
        if version < _NULL_PROTOCOL_NAME:
            response.protocol_name = response.protocol_name or ""
        elif not response.protocol_name:
            response.protocol_name = None
        send.send(response)

    reply = call.reply = Reply(shaped)
    if version < _REBALANCE_TIMEOUT:
        request = copy(request)
        request.rebalance_timeout_ms = request.session_timeout_ms
    config = call.state.config
    error = 0
    if not request.group_id:
        error = _INVALID_GROUP_ID
    elif not config.min_session_timeout_ms <= request.session_timeout_ms <= config.max_session_timeout_ms:
        error = int(ErrorCode.INVALID_SESSION_TIMEOUT)
    if error:
        reply.send(JoinGroupResponse(member_id=request.member_id, error_code=error))
        return
    call.write(
        lambda: _join_group(call.state, request, version, call.context, reply),
        lambda error: JoinGroupResponse(error_code=error),
    )


def _sync(call: IncomingRequest) -> None:
    request: SyncGroupRequest = call.request
    missing = request.protocol_type is None or request.protocol_name is None
    if call.version >= _PROTOCOL_IN_SYNC and missing:
        call.reply.send(SyncGroupResponse(error_code=int(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)))
    elif not request.group_id:
        call.reply.send(SyncGroupResponse(error_code=_INVALID_GROUP_ID))
    else:
        call.write(
            lambda: _sync_group(call.state, request, call.reply),
            lambda error: SyncGroupResponse(error_code=error),
        )


def _leave(call: IncomingRequest) -> None:
    request, version, send = call.request, call.version, call.reply

    def shaped(response: Message) -> None:
        assert isinstance(response, LeaveGroupResponse)
        if version < _LEAVE_BATCHES:
            (error,) = {response.error_code or response.members[0].error_code}
            response = LeaveGroupResponse(error_code=error)
        send.send(response)

    reply = call.reply = Reply(shaped)
    if not request.group_id:
        reply.send(LeaveGroupResponse(error_code=_INVALID_GROUP_ID))
        return

    def on_error(error: int) -> LeaveGroupResponse:
        if error != ErrorCode.UNKNOWN_MEMBER_ID:
            return LeaveGroupResponse(error_code=error)
        return LeaveGroupResponse(
            members=[
                MemberResponse(
                    member_id=member.member_id, group_instance_id=member.group_instance_id, error_code=error
                )
                for member in leaving_members(request, version)
            ]
        )

    call.write(lambda: _leave_group(call.state, request, version), on_error)


def _describe(call: IncomingRequest) -> None:
    request: DescribeGroupsRequest = call.request
    if call.error:
        groups = [DescribedGroup(group_id=group_id, error_code=call.error) for group_id in request.groups]
    else:
        groups = [describe_group(call.state, group_id, call.version) for group_id in request.groups]
        if not all(map(_can_be_described, groups)):
            error = _UNKNOWN_SERVER_ERROR
            groups = [DescribedGroup(group_id=group_id, error_code=error) for group_id in request.groups]
    call.reply.send(DescribeGroupsResponse(groups=groups))


def _can_be_described(group: DescribedGroup) -> bool:
    """Whether a response can carry this group."""
    return fits(group.error_message) and all(
        member.client_id is not NO_CLIENT_ID and fits(member.member_id) for member in group.members
    )


IMMEDIATE: Mapping[type[Message], ImmediateRequest] = {
    HeartbeatRequest: ImmediateRequest(
        _validate_named, _heartbeat_group, _refused_heartbeat, steady_heartbeat
    ),
}

HANDLERS: Mapping[type[Message], Handler] = {
    JoinGroupRequest: _join,
    SyncGroupRequest: _sync,
    LeaveGroupRequest: _leave,
    DescribeGroupsRequest: _describe,
}
