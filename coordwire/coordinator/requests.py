"""From a request to an operation, and from its outcome to an answer: what a broker does around it.

Rules: what is wrong with a request whatever the group is like is refused here. A write is answered after it
is durable; DescribeGroups, ListGroups and OffsetFetch without `require_stable` read what is durable at
once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from coordwire.codec import Message
from coordwire.coordinator.admin import delete_groups, describe_group, list_groups
from coordwire.coordinator.classic.leave import leaving_members
from coordwire.coordinator.consumer.consumer_heartbeat import consumer_group_heartbeat, validate_heartbeat
from coordwire.coordinator.consumer.describe import describe_consumer_group
from coordwire.coordinator.effects import RequestContext
from coordwire.coordinator.either_protocol import heartbeat_group, join_group, leave_group, sync_group
from coordwire.coordinator.offsets.commit import commit, refused_commit, resolve_commit
from coordwire.coordinator.offsets.delete import delete_offsets, resolve_delete
from coordwire.coordinator.offsets.fetch import fetch, fetch_response, refused_fetch, requested_groups
from coordwire.coordinator.refusal import OperationRefused, translated, translated_for_fetch
from coordwire.coordinator.reply import Reply
from coordwire.coordinator.state import Result, State
from coordwire.coordinator.writes import Writes
from coordwire.enums import ErrorCode
from coordwire.messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    ListGroupsRequest,
    ListGroupsResponse,
    OffsetCommitRequest,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetFetchRequest,
    SyncGroupRequest,
    SyncGroupResponse,
)
from coordwire.messages.consumer_group_describe import DescribedGroup as DescribedConsumerGroup
from coordwire.messages.delete_groups import DeletableGroupResult
from coordwire.messages.describe_groups import DescribedGroup
from coordwire.messages.leave_group import MemberResponse
from coordwire.messages.offset_fetch import OffsetFetchResponseGroup

__all__ = ["IncomingRequest", "route"]

_INVALID_GROUP_ID = int(ErrorCode.INVALID_GROUP_ID)
_PROTOCOL_IN_SYNC = 5
_NULL_PROTOCOL_NAME = 7
_REBALANCE_TIMEOUT = 1
_LEAVE_BATCHES = 3


@dataclass(slots=True)
class IncomingRequest:
    """A request on its way. error: why the shard has no service now, 0 if it has."""

    state: State
    writes: Writes
    error: int
    request: Any
    version: int
    context: RequestContext
    reply: Reply

    def write(
        self,
        operation: Callable[[], Result],
        on_error: Callable[[int], Message],
        translate: Callable[[int], int] = translated,
    ) -> None:
        """Run an operation and answer when it is durable; `on_error` words a translated error."""
        if self.error:
            self.reply.send(on_error(self.error))
            return

        def completed(error: int, result: Result) -> None:
            if error:
                self.reply.send(on_error(translate(error)))
            elif result.response is not None:
                self.reply.send(result.response)

        self.writes.run(operation, completed)


def route(call: IncomingRequest) -> None:
    """Handle a request; every type that a shard takes is in `_HANDLERS`."""
    handler = _HANDLERS.get(type(call.request))
    if handler is None:
        raise TypeError(f"expected a request to a group coordinator, got {type(call.request).__name__}")
    handler(call)


# --- classic groups ---


def _join(call: IncomingRequest) -> None:
    request, version, send = call.request, call.version, call.reply

    def shaped(response: Message) -> None:
        assert isinstance(response, JoinGroupResponse)
        if version < _NULL_PROTOCOL_NAME:
            response.protocol_name = response.protocol_name or ""
        elif not response.protocol_name:
            response.protocol_name = None
        send.send(response)

    reply = call.reply = Reply(shaped)
    if version < _REBALANCE_TIMEOUT:
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
        lambda: join_group(call.state, request, version, call.context, reply),
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
            lambda: sync_group(call.state, request, call.reply),
            lambda error: SyncGroupResponse(error_code=error),
        )


def _heartbeat(call: IncomingRequest) -> None:
    request: HeartbeatRequest = call.request
    if not request.group_id:
        call.reply.send(HeartbeatResponse(error_code=_INVALID_GROUP_ID))
        return

    def on_error(error: int) -> HeartbeatResponse:
        # A member need not look for another coordinator while this one loads.
        loading = error == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return HeartbeatResponse(error_code=0 if loading else error)

    call.write(lambda: heartbeat_group(call.state, request), on_error)


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
                    member_id=one.member_id, group_instance_id=one.group_instance_id, error_code=error
                )
                for one in leaving_members(request, version)
            ]
        )

    call.write(lambda: leave_group(call.state, request, version), on_error)


# --- consumer groups ---


def _consumer_group_heartbeat(call: IncomingRequest) -> None:
    request: ConsumerGroupHeartbeatRequest = call.request
    try:
        validate_heartbeat(call.state, request, call.version)
    except OperationRefused as refusal:
        call.reply.send(_refused_heartbeat(refusal.code, refusal.message))
        return
    if call.error:
        call.reply.send(_refused_heartbeat(call.error))
        return

    def completed(error: int, result: Result) -> None:
        if error:
            call.reply.send(_refused_heartbeat(translated(error), result.message))
        elif result.response is not None:
            call.reply.send(result.response)

    call.writes.run(lambda: consumer_group_heartbeat(call.state, request, call.context), completed)


def _refused_heartbeat(error: int, message: str | None = None) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(error_code=int(error), error_message=message)


def _describe_consumer_groups(call: IncomingRequest) -> None:
    groups = []
    for group_id in call.request.group_ids:
        if not group_id:
            groups.append(DescribedConsumerGroup(group_id="", error_code=_INVALID_GROUP_ID))
    for group_id in call.request.group_ids:
        if group_id and call.error:
            groups.append(DescribedConsumerGroup(group_id=group_id, error_code=call.error))
        elif group_id:
            groups.append(describe_consumer_group(call.state, group_id))
    call.reply.send(ConsumerGroupDescribeResponse(groups=groups))


# --- offsets ---


def _commit(call: IncomingRequest) -> None:
    request: OffsetCommitRequest = call.request
    topics, response = resolve_commit(call.state, request, call.version)
    if not topics:
        call.reply.send(response)
        return
    call.write(
        lambda: commit(call.state, request, topics, response, call.version),
        lambda error: refused_commit(topics, response, error, call.version),
    )


def _fetch(call: IncomingRequest) -> None:
    request, version = call.request, call.version
    groups = requested_groups(request, version)
    found: list[OffsetFetchResponseGroup] = []
    if not request.require_stable:
        for asked in groups:
            if call.error:
                found.append(refused_fetch(asked, call.error, version))
            else:
                found.append(fetch(call.state, asked, version, stable=False))
        call.reply.send(fetch_response(found, version))
        return

    def operation() -> Result:
        found.extend(fetch(call.state, asked, version, stable=True) for asked in groups)
        response = fetch_response(found, version)
        if found and all(group.error_code for group in found):
            call.reply.send(response)  # a refusal needs no durable state
        return Result(response=response)

    call.write(
        operation,
        lambda error: fetch_response([refused_fetch(asked, error, version) for asked in groups], version),
        translated_for_fetch,
    )


def _delete_offsets(call: IncomingRequest) -> None:
    request: OffsetDeleteRequest = call.request
    topics, response = resolve_delete(call.state, request)
    if not request.group_id:
        call.reply.send(OffsetDeleteResponse(error_code=_INVALID_GROUP_ID))
        return
    call.write(
        lambda: delete_offsets(call.state, request, topics, response),
        lambda error: OffsetDeleteResponse(error_code=error),
    )


# --- groups as a whole ---


def _describe(call: IncomingRequest) -> None:
    request: DescribeGroupsRequest = call.request
    if call.error:
        groups = [DescribedGroup(group_id=one, error_code=call.error) for one in request.groups]
    else:
        groups = [describe_group(call.state, one, call.version) for one in request.groups]
    call.reply.send(DescribeGroupsResponse(groups=groups))


def _list(call: IncomingRequest) -> None:
    if call.error == ErrorCode.NOT_COORDINATOR:
        call.reply.send(ListGroupsResponse())
    elif call.error:
        call.reply.send(ListGroupsResponse(error_code=call.error))
    else:
        call.reply.send(list_groups(call.state, call.request))


def _delete_groups(call: IncomingRequest) -> None:
    names = list(dict.fromkeys(call.request.groups_names))

    def on_error(error: int) -> DeleteGroupsResponse:
        return DeleteGroupsResponse(
            results=[DeletableGroupResult(group_id=name, error_code=error) for name in names]
        )

    # What is in the log on its way decides whether a group is empty: wait for it first.
    if call.error:
        call.reply.send(on_error(call.error))
        return

    def settled(error: int, _: Result) -> None:
        if error:
            call.reply.send(on_error(translated(error)))
        else:
            call.write(lambda: delete_groups(call.state, names), on_error)

    call.writes.run(Result, settled)


_HANDLERS: dict[type[Message], Callable[[IncomingRequest], None]] = {
    JoinGroupRequest: _join,
    SyncGroupRequest: _sync,
    HeartbeatRequest: _heartbeat,
    LeaveGroupRequest: _leave,
    ConsumerGroupHeartbeatRequest: _consumer_group_heartbeat,
    ConsumerGroupDescribeRequest: _describe_consumer_groups,
    OffsetCommitRequest: _commit,
    OffsetFetchRequest: _fetch,
    OffsetDeleteRequest: _delete_offsets,
    DescribeGroupsRequest: _describe,
    ListGroupsRequest: _list,
    DeleteGroupsRequest: _delete_groups,
}
