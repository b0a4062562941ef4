"""The requests of consumer groups: checks that need no group, and the forms of answers."""

from __future__ import annotations

from collections.abc import Mapping

from coordwire.codec import Message
from coordwire.coordinator.consumer.description import describe_consumer_group
from coordwire.coordinator.consumer.heartbeat import consumer_group_heartbeat, validate_heartbeat
from coordwire.coordinator.incoming import Handler, ImmediateRequest, IncomingRequest
from coordwire.coordinator.refusal import fits
from coordwire.enums import ErrorCode
from coordwire.messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from coordwire.messages.consumer_group_describe import DescribedGroup

__all__ = ["HANDLERS", "IMMEDIATE"]

_INVALID_GROUP_ID = int(ErrorCode.INVALID_GROUP_ID)
_UNKNOWN_SERVER_ERROR = int(ErrorCode.UNKNOWN_SERVER_ERROR)


def _refused_consumer_heartbeat(error: int, message: str | None) -> ConsumerGroupHeartbeatResponse:
    if not fits(message):
        return ConsumerGroupHeartbeatResponse(error_code=_UNKNOWN_SERVER_ERROR)
    return ConsumerGroupHeartbeatResponse(error_code=int(error), error_message=message)


def _describe_consumer_groups(call: IncomingRequest) -> None:
    groups = []
    for group_id in call.request.group_ids:
        if not group_id:
            groups.append(DescribedGroup(group_id="", error_code=_INVALID_GROUP_ID))
    for group_id in call.request.group_ids:
        if group_id and call.error:
            groups.append(DescribedGroup(group_id=group_id, error_code=call.error))
        elif group_id:
            groups.append(describe_consumer_group(call.state, group_id))
    if not all(fits(group.error_message) for group in groups):
        error = _UNKNOWN_SERVER_ERROR
        groups = [DescribedGroup(group_id=group_id, error_code=error) for group_id in call.request.group_ids]
    call.reply.send(ConsumerGroupDescribeResponse(groups=groups))


IMMEDIATE: Mapping[type[Message], ImmediateRequest] = {
    ConsumerGroupHeartbeatRequest: ImmediateRequest(
        validate_heartbeat, consumer_group_heartbeat, _refused_consumer_heartbeat
    ),
}

HANDLERS: Mapping[type[Message], Handler] = {
    ConsumerGroupDescribeRequest: _describe_consumer_groups,
}
