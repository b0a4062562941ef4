"""The requests of streams groups: checks that need no group, and the forms of answers."""

from __future__ import annotations

from collections.abc import Mapping

from coordwire.codec import Message
from coordwire.coordinator.incoming import Handler, ImmediateRequest, IncomingRequest
from coordwire.coordinator.refusal import OperationRefused, fits
from coordwire.coordinator.streams.description import describe_streams_group
from coordwire.coordinator.streams.heartbeat import streams_group_heartbeat, validate_streams_heartbeat
from coordwire.enums import ErrorCode
from coordwire.messages import (
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)
from coordwire.messages.streams_group_describe import DescribedGroup

__all__ = ["HANDLERS", "IMMEDIATE"]

_INVALID_GROUP_ID = int(ErrorCode.INVALID_GROUP_ID)
_UNKNOWN_SERVER_ERROR = int(ErrorCode.UNKNOWN_SERVER_ERROR)


def _refused_streams_heartbeat(error: int, message: str | None) -> StreamsGroupHeartbeatResponse:
    if not fits(message):
        return StreamsGroupHeartbeatResponse(error_code=_UNKNOWN_SERVER_ERROR)
    return StreamsGroupHeartbeatResponse(error_code=int(error), error_message=message)


def _describe_streams_groups(call: IncomingRequest) -> None:
    empty = [
        DescribedGroup(group_id="", error_code=_INVALID_GROUP_ID)
        for group_id in call.request.group_ids
        if not group_id
    ]
    names = [group_id for group_id in call.request.group_ids if group_id]
    if call.error:
        groups = _refused(names, call.error)
    else:
        try:
            groups = [describe_streams_group(call.state, group_id) for group_id in names]
        except OperationRefused as refusal:
            groups = _refused(names, int(refusal.code))
    groups = empty + groups
    if not all(fits(group.error_message) for group in groups):
        groups = _refused(call.request.group_ids, _UNKNOWN_SERVER_ERROR)
    call.reply.send(StreamsGroupDescribeResponse(groups=groups))


def _refused(group_ids: list[str], error: int) -> list[DescribedGroup]:
    return [DescribedGroup(group_id=group_id, error_code=error) for group_id in group_ids]


IMMEDIATE: Mapping[type[Message], ImmediateRequest] = {
    StreamsGroupHeartbeatRequest: ImmediateRequest(
        validate_streams_heartbeat, streams_group_heartbeat, _refused_streams_heartbeat
    ),
}

HANDLERS: Mapping[type[Message], Handler] = {
    StreamsGroupDescribeRequest: _describe_streams_groups,
}
