"""Groups: FindCoordinator, and the requests that the group coordinators answer.

API keys and versions: OffsetCommit 8 v2-10, OffsetFetch 9 v1-10, FindCoordinator 10 v0-6, JoinGroup 11 v0-9,
Heartbeat 12 v0-4, LeaveGroup 13 v0-5, SyncGroup 14 v0-5, DescribeGroups 15 v0-6, ListGroups 16 v0-5,
DeleteGroups 42 v0-3, OffsetDelete 47 v0, ConsumerGroupHeartbeat 68 v0-1, ConsumerGroupDescribe 69 v0-1,
ShareGroupHeartbeat 76 v1, ShareGroupDescribe 77 v1, DescribeShareGroupOffsets 90 v0-1, AlterShareGroupOffsets
91 v0, DeleteShareGroupOffsets 92 v0.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from coordwire.broker.handlers.api_call import ApiCall
from coordwire.codec import Message
from coordwire.enums import CoordinatorType, ErrorCode
from coordwire.messages import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from coordwire.messages.find_coordinator import Coordinator


def groups(call: ApiCall) -> Message | Coroutine[Any, None, Message]:
    coordinators = call.cluster.groups
    context = coordinators.context_of(call.client_id, call.client_host)
    return coordinators.handle(call.node, call.request, call.version, context)


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
