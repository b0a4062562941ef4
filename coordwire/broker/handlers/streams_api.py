"""Streams groups: what a broker does around its coordinator (KIP-1071).

API keys and versions: StreamsGroupHeartbeat 88 v0-1, StreamsGroupDescribe 89 v0-1,
StreamsGroupTopologyDescriptionUpdate 93 v0.

The internal topics that the group lacks are created for the client if it may create them, before its
heartbeat is answered; the next heartbeats find them. Rules: what went wrong with that is a part of the
answer's status; a topology's description is kept by a plugin, of which there is none (KIP-1331).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from coordwire.broker.cluster.group_coordinators import PendingAnswer
from coordwire.broker.handlers.api_call import ApiCall, HandlerResult
from coordwire.broker.handlers.groups_api import groups
from coordwire.broker.handlers.topics_api import create_internal_topics
from coordwire.codec import Message
from coordwire.coordinator import InternalTopic
from coordwire.coordinator.apis.groups import add_detail, topics_to_create
from coordwire.enums import ErrorCode
from coordwire.messages import (
    StreamsGroupDescribeResponse,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    StreamsGroupTopologyDescriptionUpdateResponse,
)
from coordwire.messages.streams_group_describe import DescribedGroup

_SHOWN = 3
_FEATURE = "streams.version"


def heartbeat_of_streams(call: ApiCall) -> HandlerResult:
    request: StreamsGroupHeartbeatRequest = call.request
    if not call.cluster.features[_FEATURE]:
        return StreamsGroupHeartbeatResponse(error_code=int(ErrorCode.UNSUPPORTED_VERSION))
    coordinators = call.cluster.groups
    context = coordinators.context_of(call.client_id, call.client_host)
    answer = coordinators.submit(call.node, request, call.version, context)
    if answer.is_fulfilled and not answer.topics_to_create:
        return answer.value
    return _answered(call, answer)


async def _answered(call: ApiCall, answer: PendingAnswer) -> Message:
    response = await answer
    if answer.topics_to_create:
        _create(call, response, answer.topics_to_create)
    return response


def describe_streams(call: ApiCall) -> HandlerResult:
    if call.cluster.features[_FEATURE]:
        return groups(call)
    error = int(ErrorCode.UNSUPPORTED_VERSION)
    return StreamsGroupDescribeResponse(
        groups=[DescribedGroup(group_id=group_id, error_code=error) for group_id in call.request.group_ids]
    )


def update_description(call: ApiCall) -> StreamsGroupTopologyDescriptionUpdateResponse:
    return StreamsGroupTopologyDescriptionUpdateResponse(
        error_code=int(ErrorCode.UNSUPPORTED_VERSION),
        error_message="The broker has no streams group topology description plugin configured.",
    )


def _create(call: ApiCall, response: Any, topics: Iterable[InternalTopic]) -> None:
    """Create topics, and add to the answer why some are not."""
    creatable = topics_to_create(call, response, tuple(topics))
    failed = [
        f"{name} ({reason})" for name, reason in create_internal_topics(call.cluster, creatable).items()
    ]
    if failed:
        suffix = f" and {len(failed) - _SHOWN} more" if len(failed) > _SHOWN else ""
        add_detail(response, f"Creation failed: {', '.join(failed[:_SHOWN])}{suffix}.")
