"""Groups: FindCoordinator, and the requests that the group coordinators answer. Of ShareGroupHeartbeat and
AlterShareGroupOffsets (KIP-932) a broker checks some things before its coordinator.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from coordwire.broker.handlers.api_call import ApiCall, HandlerResult, result_of
from coordwire.codec import Message
from coordwire.coordinator.share.error_texts import error_text
from coordwire.enums import CoordinatorType, ErrorCode
from coordwire.messages import (
    AlterShareGroupOffsetsResponse,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    ShareGroupHeartbeatResponse,
)
from coordwire.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsResponsePartition,
    AlterShareGroupOffsetsResponseTopic,
)
from coordwire.messages.find_coordinator import Coordinator

__all__ = ["alter_share_offsets", "find_coordinator", "groups", "share_heartbeat"]

_OPERATIONS = sum(1 << operation for operation in (3, 6, 8, 10, 11))
"""Read, Delete, Describe, DescribeConfigs, AlterConfigs: what a client may do to a group."""


def groups(call: ApiCall) -> Message | Coroutine[Any, None, Message]:
    coordinators = call.cluster.groups
    context = coordinators.context_of(call.client_id, call.client_host)
    answer = coordinators.handle(call.node, call.request, call.version, context)
    if getattr(call.request, "include_authorized_operations", False):
        return _with_operations(answer)
    return answer


async def _with_operations(answer: HandlerResult) -> Message:
    response: Any = await result_of(answer)
    for group in response.groups:
        if not group.error_code:
            group.authorized_operations = _OPERATIONS
    return response  # type: ignore[no-any-return]


# --- where coordinators are ---


_BATCHES = 4


def find_coordinator(call: ApiCall) -> FindCoordinatorResponse:
    request: FindCoordinatorRequest = call.request
    if call.version >= _BATCHES:
        return FindCoordinatorResponse(
            coordinators=[_coordinator(call, request.key_type, key) for key in request.coordinator_keys]
        )
    coordinator = _coordinator(call, request.key_type, request.key)
    return FindCoordinatorResponse(
        error_code=coordinator.error_code,
        error_message=coordinator.error_message or ErrorCode(coordinator.error_code).name,
        node_id=coordinator.node_id,
        host=coordinator.host,
        port=coordinator.port,
    )


def _coordinator(call: ApiCall, key_type: int, key: str) -> Coordinator:
    refused = Coordinator(key=key, node_id=-1, host="", port=-1, error_code=int(ErrorCode.INVALID_REQUEST))
    cluster = call.cluster
    kinds = {
        CoordinatorType.GROUP: cluster.groups,
        CoordinatorType.TRANSACTION: cluster.transactions,
        CoordinatorType.SHARE: cluster.share_states,
    }
    coordinators = kinds.get(key_type)  # type: ignore[call-overload]
    if coordinators is None:
        refused.error_message = f"this broker has no coordinator for key type {key_type}"
        return refused
    if key_type == CoordinatorType.SHARE and not _is_share_key(key):
        return refused
    try:
        node = call.cluster.nodes[coordinators.coordinator_of(key)]
    except KeyError:
        refused.error_code = int(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        refused.error_message = "the coordinator's node is down"
        return refused
    except OSError as error:
        refused.error_code = int(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        refused.error_message = str(error)
        return refused
    return Coordinator(key=key, node_id=node.id, host=node.host, port=node.port)


def _is_share_key(key: str) -> bool:
    """Whether a key has a group, a topic's id and a partition: "group:topic id:partition"."""
    parts = key.rsplit(":", 2)
    if len(parts) != 3:
        return False
    group_id, topic_id, index = parts
    return bool(group_id) and len(topic_id) == _SHORT_ID and index.isascii() and index.isdigit()


_SHORT_ID = 22
"""The length of a UUID's short text."""


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
