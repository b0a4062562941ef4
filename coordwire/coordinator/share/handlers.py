"""The requests of share groups: checks that need no group, and the forms of answers."""

from __future__ import annotations

from collections.abc import Mapping

from coordwire.codec import Message
from coordwire.coordinator.incoming import Handler, ImmediateRequest, IncomingRequest
from coordwire.coordinator.refusal import fits, writable_refusal
from coordwire.coordinator.share.description import describe_share_group
from coordwire.coordinator.share.error_texts import error_text
from coordwire.coordinator.share.heartbeat import (
    share_group_heartbeat,
    steady_heartbeat,
    validate_heartbeat,
)
from coordwire.coordinator.share.offsets import alter_offsets, delete_offsets, describe_offsets
from coordwire.enums import ErrorCode
from coordwire.messages import (
    AlterShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequest,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from coordwire.messages.share_group_describe import DescribedGroup

__all__ = ["HANDLERS", "IMMEDIATE"]

_INVALID_GROUP_ID = int(ErrorCode.INVALID_GROUP_ID)
_UNKNOWN_SERVER_ERROR = int(ErrorCode.UNKNOWN_SERVER_ERROR)


def _refused_heartbeat(error: int, message: str | None) -> ShareGroupHeartbeatResponse:
    error, message = writable_refusal(error, message)
    return ShareGroupHeartbeatResponse(error_code=error, error_message=message)


def _describe(call: IncomingRequest) -> None:
    group_request = call.request.group_ids
    groups = [
        DescribedGroup(group_id="", error_code=_INVALID_GROUP_ID)
        for group_id in group_request
        if not group_id
    ]
    for group_id in filter(None, group_request):
        if call.error:
            text = error_text(call.error)
            groups.append(DescribedGroup(group_id=group_id, error_code=call.error, error_message=text))
        else:
            groups.append(describe_share_group(call.state, group_id))
    if not all(fits(group.error_message) for group in groups):
        groups = [
            DescribedGroup(group_id=group_id, error_code=_UNKNOWN_SERVER_ERROR) for group_id in group_request
        ]
    call.reply.send(ShareGroupDescribeResponse(groups=groups))


IMMEDIATE: Mapping[type[Message], ImmediateRequest] = {
    ShareGroupHeartbeatRequest: ImmediateRequest(
        validate_heartbeat, share_group_heartbeat, _refused_heartbeat, steady_heartbeat
    ),
}

HANDLERS: Mapping[type[Message], Handler] = {
    ShareGroupDescribeRequest: _describe,
    AlterShareGroupOffsetsRequest: alter_offsets,
    DeleteShareGroupOffsetsRequest: delete_offsets,
    DescribeShareGroupOffsetsRequest: describe_offsets,
}
