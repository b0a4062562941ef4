"""ShareGroupHeartbeat and AlterShareGroupOffsets (KIP-932): what a broker checks before its coordinator."""

from __future__ import annotations

from typing import Any

from coordwire.broker.handlers.api_call import ApiCall, HandlerResult, result_of
from coordwire.broker.handlers.groups_api import groups
from coordwire.codec import Message
from coordwire.coordinator.share.error_texts import error_text
from coordwire.enums import ErrorCode
from coordwire.messages import AlterShareGroupOffsetsResponse, ShareGroupHeartbeatResponse
from coordwire.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsResponsePartition,
    AlterShareGroupOffsetsResponseTopic,
)

__all__ = ["alter_share_offsets", "share_heartbeat"]

_LONGEST_MEMBER_ID = 36


def share_heartbeat(call: ApiCall) -> HandlerResult:
    member_id = call.request.member_id
    if not member_id or len(member_id) > _LONGEST_MEMBER_ID:
        return ShareGroupHeartbeatResponse(
            error_code=int(ErrorCode.INVALID_REQUEST), error_message="Invalid member id in the request."
        )
    return groups(call)


async def alter_share_offsets(call: ApiCall) -> Message:
    """Topics that the client may not read, or that there are not, are refused here."""
    refused: list[AlterShareGroupOffsetsResponseTopic] = []
    accepted = []
    for topic in call.request.topics:
        name = topic.topic_name
        known = call.cluster.topics.get(name)
        if call.forbids is not None and call.forbids(name):
            error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        elif known is None:
            error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        else:
            accepted.append(topic)
            continue
        refused.append(
            AlterShareGroupOffsetsResponseTopic(
                topic_name=name,
                partitions=[
                    AlterShareGroupOffsetsResponsePartition(
                        partition_index=partition.partition_index,
                        error_code=int(error),
                        error_message=error_text(int(error)),
                    )
                    for partition in topic.partitions
                ],
            )
        )
        if known is not None:
            refused[-1].topic_id = known.id
    if refused:
        call.request.topics = accepted
    response: Any = await result_of(groups(call))
    if refused and isinstance(response, AlterShareGroupOffsetsResponse) and not response.error_code:
        response.responses = [*refused, *response.responses]
    return response  # type: ignore[no-any-return]
