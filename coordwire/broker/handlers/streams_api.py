"""StreamsGroupHeartbeat and StreamsGroupDescribe: what a broker does around its coordinator (KIP-1071).

A topology names topics: those that no application may have are refused before the coordinator sees them. The
internal topics that the group lacks are created for the client if it may create them, before its heartbeat is
answered; the next heartbeats find them. Rules: what went wrong with that is a part of the answer's status.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from coordwire.broker.cluster.group_coordinators import PendingAnswer
from coordwire.broker.cluster.topics import INTERNAL_TOPICS, bad_name
from coordwire.broker.handlers.api_call import ApiCall, HandlerResult
from coordwire.broker.handlers.groups_api import groups
from coordwire.broker.handlers.topics_api import create_internal_topics
from coordwire.codec import Message
from coordwire.coordinator import InternalTopic
from coordwire.enums import AclOperation, AclResourceType, ErrorCode
from coordwire.messages import (
    StreamsGroupDescribeResponse,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)
from coordwire.messages.streams_group_describe import DescribedGroup
from coordwire.messages.streams_group_heartbeat import Status

__all__ = ["describe_streams", "heartbeat_of_streams", "names_refusal", "topology_topics"]

_MISSING_INTERNAL_TOPICS = 3
_SHOWN = 3
_FEATURE = "streams.version"


def heartbeat_of_streams(call: ApiCall) -> HandlerResult:
    request: StreamsGroupHeartbeatRequest = call.request
    if not call.cluster.features[_FEATURE]:
        return StreamsGroupHeartbeatResponse(error_code=int(ErrorCode.UNSUPPORTED_VERSION))
    refusal = names_refusal(request)
    if refusal is not None:
        return refusal
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


def topology_topics(request: StreamsGroupHeartbeatRequest) -> list[str]:
    """The topics that a request's topology names, each once."""
    topology = request.topology
    if topology is None:
        return []
    return list(
        dict.fromkeys(
            name
            for part in topology.subtopologies
            for name in (
                *part.source_topics,
                *part.repartition_sink_topics,
                *(topic.name for topic in part.repartition_source_topics),
                *(topic.name for topic in part.state_changelog_topics),
            )
        )
    )


def names_refusal(request: StreamsGroupHeartbeatRequest) -> StreamsGroupHeartbeatResponse | None:
    """The refusal of a topology with topics that an application can't have."""
    names = topology_topics(request)
    internal = [name for name in names if name in INTERNAL_TOPICS]
    invalid = [name for name in names if bad_name(name) is not None]
    if internal:
        text = f"Use of Kafka internal topics {','.join(internal)} in a Kafka Streams topology is prohibited."
    elif invalid:
        text = f"Topic names {','.join(invalid)} are not valid topic names."
    else:
        return None
    return StreamsGroupHeartbeatResponse(
        error_code=int(ErrorCode.STREAMS_INVALID_TOPOLOGY), error_message=text
    )


def _create(call: ApiCall, response: Any, topics: Iterable[InternalTopic]) -> None:
    """Create topics, and add to the answer why some are not."""
    allowed = call.allows(AclOperation.CREATE, AclResourceType.CLUSTER)
    forbidden = [
        topic.name
        for topic in topics
        if not allowed and not call.allows(AclOperation.CREATE, AclResourceType.TOPIC, topic.name)
    ]
    if forbidden:
        _add_detail(response, f"Unauthorized to CREATE on topics {', '.join(forbidden)}.")
        return
    failed = [f"{name} ({reason})" for name, reason in create_internal_topics(call.cluster, topics).items()]
    if failed:
        suffix = f" and {len(failed) - _SHOWN} more" if len(failed) > _SHOWN else ""
        _add_detail(response, f"Creation failed: {', '.join(failed[:_SHOWN])}{suffix}.")


def _add_detail(response: Any, text: str) -> None:
    for status in response.status or ():
        if status.status_code == _MISSING_INTERNAL_TOPICS:
            status.status_detail += f"; {text}"
            return
    response.status = [
        *(response.status or ()),
        Status(status_code=_MISSING_INTERNAL_TOPICS, status_detail=text),
    ]
