"""The routing of requests to operations, and of their outcomes to answers, as a broker does it.

Rules: a request that is invalid whatever the group is like is refused here. A write is answered after it
is durable; DescribeGroups, ListGroups and OffsetFetch without `require_stable` read what is durable at
once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from coordwire.codec import Message
from coordwire.coordinator.admin import delete_groups, describe_consumer_group, describe_group, list_groups
from coordwire.coordinator.classic.requests import leaving_members
from coordwire.coordinator.classic_protocol import heartbeat_group, join_group, leave_group, sync_group
from coordwire.coordinator.consumer.heartbeat import consumer_group_heartbeat, validate_heartbeat
from coordwire.coordinator.effects import NO_CLIENT_ID, Reply, RequestContext
from coordwire.coordinator.offsets.commit import commit, refused_commit, resolve_commit
from coordwire.coordinator.offsets.deletion import delete_offsets, resolve_delete
from coordwire.coordinator.offsets.fetch import (
    fetch,
    fetch_response,
    name_by_id,
    refused_fetch,
    requested_groups,
)
from coordwire.coordinator.offsets.transactional_commit import (
    commit_transactional,
    refused_transactional,
    resolve_transactional,
)
from coordwire.coordinator.refusal import OperationRefused, fits, translated, translated_for_fetch
from coordwire.coordinator.state import Outcome, Result, State
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
    OffsetFetchResponse,
    SyncGroupRequest,
    SyncGroupResponse,
    TxnOffsetCommitRequest,
)
from coordwire.messages.consumer_group_describe import DescribedGroup as DescribedConsumerGroup
from coordwire.messages.delete_groups import DeletableGroupResult
from coordwire.messages.describe_groups import DescribedGroup
from coordwire.messages.leave_group import MemberResponse
from coordwire.messages.offset_fetch import OffsetFetchResponseGroup

__all__ = ["IMMEDIATE", "REQUESTS", "IncomingRequest", "route"]

_INVALID_GROUP_ID = int(ErrorCode.INVALID_GROUP_ID)
_UNKNOWN_SERVER_ERROR = int(ErrorCode.UNKNOWN_SERVER_ERROR)
_PROTOCOL_IN_SYNC = 5
_NULL_PROTOCOL_NAME = 7
_REBALANCE_TIMEOUT = 1
_LEAVE_BATCHES = 3
_FETCH_BY_ID = 10

RefusalWording = Callable[[int, str | None], Message]
"""Makes the response to a refused request from an error code and a message."""


@dataclass(slots=True)
class IncomingRequest:
    """A request on its way. error: 0, or the code of a shard that has no service now."""

    state: State
    writes: Writes
    error: int
    request: Any
    version: int
    context: RequestContext
    reply: Reply

    def write(
        self,
        operation: Callable[[], Outcome],
        on_error: Callable[[int], Message],
        translate: Callable[[int], int] = translated,
    ) -> None:
        """Run an operation and answer when it is durable; `on_error` makes the answer of an error."""
        if self.error:
            self.reply.send(on_error(self.error))
        else:
            self.writes.run(operation, self.completed(lambda error, _: on_error(error), translate))

    def completed(
        self, refused: RefusalWording, translate: Callable[[int], int] = translated
    ) -> Callable[[int, Result], None]:
        """The callback that answers when an operation is durable, or failed."""

        def completed(error: int, result: Result) -> None:
            if error:
                self.reply.send(refused(translate(error), result.message))
            elif result.response is not None:
                self.reply.send(result.response)

        return completed


def route(call: IncomingRequest) -> None:
    """Handle a request; every type that a shard takes is in `IMMEDIATE` or `_HANDLERS`."""
    immediate = IMMEDIATE.get(type(call.request))
    if immediate is not None:
        immediate.route(call)
        return
    handler = _HANDLERS.get(type(call.request))
    if handler is None:
        raise TypeError(f"expected a request to a group coordinator, got {type(call.request).__name__}")
    handler(call)


# --- heartbeats ---


@dataclass(frozen=True, slots=True)
class ImmediateRequest:
    """A request that seldom writes: without records it is answered at once, unless appends are pending.

    validate: refuses a request that is invalid whatever the group is like.
    """

    validate: Callable[[State, Any, int], None]
    operation: Callable[[State, Any, RequestContext], Outcome]
    refused: RefusalWording

    def route(self, call: IncomingRequest) -> None:
        """Handle the request while appends are pending, or without service."""
        try:
            self.validate(call.state, call.request, call.version)
        except OperationRefused as refusal:
            call.reply.send(self.refused(refusal.code, refusal.message))
            return
        if call.error:
            call.reply.send(self.refused(call.error, None))
            return
        call.writes.run(
            lambda: self.operation(call.state, call.request, call.context), call.completed(self.refused)
        )


def _validate_named(state: State, request: HeartbeatRequest, version: int) -> None:
    if not request.group_id:
        raise OperationRefused(_INVALID_GROUP_ID)


def _refused_heartbeat(error: int, message: str | None) -> HeartbeatResponse:
    # A member need not look for another coordinator while this one loads.
    loading = error == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    return HeartbeatResponse(error_code=0 if loading else int(error))


def _refused_consumer_heartbeat(error: int, message: str | None) -> ConsumerGroupHeartbeatResponse:
    if not fits(message):
        return ConsumerGroupHeartbeatResponse(error_code=_UNKNOWN_SERVER_ERROR)
    return ConsumerGroupHeartbeatResponse(error_code=int(error), error_message=message)


IMMEDIATE: dict[type[Message], ImmediateRequest] = {
    HeartbeatRequest: ImmediateRequest(_validate_named, heartbeat_group, _refused_heartbeat),
    ConsumerGroupHeartbeatRequest: ImmediateRequest(
        validate_heartbeat, consumer_group_heartbeat, _refused_consumer_heartbeat
    ),
}


# --- classic groups ---


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

    call.write(lambda: leave_group(call.state, request, version), on_error)


# --- consumer groups ---


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
    if not all(fits(group.error_message) for group in groups):
        error = _UNKNOWN_SERVER_ERROR
        groups = [
            DescribedConsumerGroup(group_id=group_id, error_code=error) for group_id in call.request.group_ids
        ]
    call.reply.send(ConsumerGroupDescribeResponse(groups=groups))


# --- offsets ---


def _commit(call: IncomingRequest) -> None:
    request: OffsetCommitRequest = call.request
    topics, unknown = resolve_commit(call.state, request, call.version)
    if not topics:
        call.reply.send(refused_commit(topics, unknown, 0))
        return
    call.write(
        lambda: commit(call.state, request, topics, unknown, call.version),
        lambda error: refused_commit(topics, unknown, error),
    )


def _commit_transactional(call: IncomingRequest) -> None:
    request: TxnOffsetCommitRequest = call.request
    topics, unknown = resolve_transactional(call.state, request, call.version)
    if not topics:
        call.reply.send(refused_transactional(topics, unknown, 0, call.version))
    elif not request.group_id:
        call.reply.send(refused_transactional(topics, unknown, _INVALID_GROUP_ID, call.version))
    else:
        call.write(
            lambda: commit_transactional(call.state, request, topics, unknown),
            lambda error: refused_transactional(topics, unknown, error, call.version),
        )


def _fetch(call: IncomingRequest) -> None:
    request, version, send = call.request, call.version, call.reply
    groups = requested_groups(request, version)
    if version >= _FETCH_BY_ID:

        def named(response: Message) -> None:
            assert isinstance(response, OffsetFetchResponse)
            name_by_id(call.state, groups, response)
            send.send(response)

        call.reply = Reply(named)
    fetched: list[OffsetFetchResponseGroup] = []
    if not request.require_stable:
        for requested in groups:
            if call.error:
                fetched.append(refused_fetch(requested, call.error, version))
            else:
                fetched.append(fetch(call.state, requested, version, stable=False))
        call.reply.send(fetch_response(fetched, version))
        return

    def operation() -> Result:
        fetched.extend(fetch(call.state, requested, version, stable=True) for requested in groups)
        response = fetch_response(fetched, version)
        if all(group.error_code for group in fetched):
            call.reply.send(response)  # refusals, or nothing, need no durable state
        return Result(response=response)

    def failed(error: int) -> Message:
        # A group that was refused did not wait, and keeps its own error.
        refusals = {number: group for number, group in enumerate(fetched) if group.error_code}
        return fetch_response(
            [
                refusals.get(number) or refused_fetch(requested, error, version)
                for number, requested in enumerate(groups)
            ],
            version,
        )

    call.write(operation, failed, translated_for_fetch)


def _delete_offsets(call: IncomingRequest) -> None:
    request: OffsetDeleteRequest = call.request
    topics, unknown = resolve_delete(call.state, request)
    if not request.group_id:
        call.reply.send(OffsetDeleteResponse(error_code=_INVALID_GROUP_ID))
        return
    call.write(
        lambda: delete_offsets(call.state, request, topics, unknown),
        lambda error: OffsetDeleteResponse(error_code=error),
    )


# --- groups as a whole ---


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

    # Pending appends decide whether a group is empty: wait for them first.
    if call.error or not names:
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
    LeaveGroupRequest: _leave,
    ConsumerGroupDescribeRequest: _describe_consumer_groups,
    OffsetCommitRequest: _commit,
    TxnOffsetCommitRequest: _commit_transactional,
    OffsetFetchRequest: _fetch,
    OffsetDeleteRequest: _delete_offsets,
    DescribeGroupsRequest: _describe,
    ListGroupsRequest: _list,
    DeleteGroupsRequest: _delete_groups,
}

REQUESTS = frozenset([*IMMEDIATE, *_HANDLERS])
"""The request types of a shard."""
