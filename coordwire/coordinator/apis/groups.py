"""Guards of groups and of their offsets."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

from coordwire.codec import Message
from coordwire.coordinator.apis.guards import (
    ERRORS,
    TEXTS,
    GuardedCall,
    Operation,
    Resource,
    Verdict,
    error_response,
    operation_bits,
    split_elements,
)
from coordwire.coordinator.effects import InternalTopic
from coordwire.coordinator.share_state.requests import OPERATIONS
from coordwire.coordinator.topics import INTERNAL_TOPICS, bad_name
from coordwire.enums import CoordinatorType, ErrorCode
from coordwire.messages import (
    FindCoordinatorResponse,
    ShareGroupHeartbeatResponse,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)
from coordwire.messages import consumer_group_describe as consumer_groups
from coordwire.messages import share_group_describe as share_groups
from coordwire.messages import streams_group_describe as streams_groups
from coordwire.messages.find_coordinator import Coordinator
from coordwire.messages.streams_group_heartbeat import Status

_NULLABLE_PROTOCOL = 7


def join_refusal(call: GuardedCall, error: ErrorCode) -> Message:
    response: Any = error_response(call, error)
    response.protocol_name = None if call.version >= _NULLABLE_PROTOCOL else ""
    return response  # type: ignore[no-any-return]


def heartbeat_guard(call: GuardedCall) -> Verdict:
    names = call.request.subscribed_topic_names
    if names and not all(
        call.allows(Operation.DESCRIBE, Resource.TOPIC, name) for name in dict.fromkeys(names)
    ):
        return error_response(call, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    return None


_LONGEST_MEMBER_ID = 36


def share_member_guard(call: GuardedCall) -> Verdict:
    """Members of share groups name themselves, by a UUID."""
    member_id = call.request.member_id
    if member_id and len(member_id) <= _LONGEST_MEMBER_ID:
        return None
    return ShareGroupHeartbeatResponse(
        error_code=int(ErrorCode.INVALID_REQUEST), error_message="Invalid member id in the request."
    )


# --- streams ---


def streams_heartbeat_guard(call: GuardedCall) -> Verdict:
    """A topology names topics: those that no application can have are refused, whatever the client may do."""
    names = _topology_topics(call.request)
    refusal = _names_refusal(names)
    if refusal is None and not all(call.allows(Operation.DESCRIBE, Resource.TOPIC, name) for name in names):
        return StreamsGroupHeartbeatResponse(error_code=int(ErrorCode.TOPIC_AUTHORIZATION_FAILED))
    return refusal


def _topology_topics(request: StreamsGroupHeartbeatRequest) -> list[str]:
    """The topics that a request's topology names, each once."""
    parts = () if request.topology is None else request.topology.subtopologies
    return list(dict.fromkeys(name for part in parts for name in _topics_of(part)))


def _topics_of(part: Any) -> Iterable[str]:
    yield from part.source_topics
    yield from part.repartition_sink_topics
    for topic in (*part.repartition_source_topics, *part.state_changelog_topics):
        yield topic.name


def _names_refusal(names: list[str]) -> StreamsGroupHeartbeatResponse | None:
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


def topics_to_create(
    call: GuardedCall, response: Message, topics: tuple[InternalTopic, ...]
) -> tuple[InternalTopic, ...]:
    """The internal topics to create for a client: none if it may not create each of them, which its answer
    is made to state."""
    if not topics or call.allows(Operation.CREATE, Resource.CLUSTER):
        return topics
    forbidden = [
        topic.name for topic in topics if not call.allows(Operation.CREATE, Resource.TOPIC, topic.name)
    ]
    if not forbidden:
        return topics
    add_detail(response, f"Unauthorized to CREATE on topics {', '.join(forbidden)}.")
    return ()


_MISSING_INTERNAL_TOPICS = 3


def add_detail(response: Any, text: str) -> None:
    """Add to the answer of a heartbeat why its group's internal topics are missing."""
    for status in response.status or ():
        if status.status_code == _MISSING_INTERNAL_TOPICS:
            status.status_detail += f"; {text}"
            return
    response.status = [
        *(response.status or ()),
        Status(status_code=_MISSING_INTERNAL_TOPICS, status_detail=text),
    ]


# --- lists and descriptions ---


def list_groups_guard(call: GuardedCall) -> Verdict:
    if call.allows(Operation.DESCRIBE, Resource.CLUSTER):
        return None

    def limit(response: Any) -> None:
        response.groups = [
            group
            for group in response.groups
            if call.allows(Operation.DESCRIBE, Resource.GROUP, group.group_id)
        ]

    return limit


def describe_groups_guard(call: GuardedCall) -> Verdict:
    lists_operations = getattr(call.request, "include_authorized_operations", False)

    def limit(response: Any) -> None:
        for group in response.groups:
            _hide_topics(call, group)
            if lists_operations and not group.error_code:
                group.authorized_operations = operation_bits(call, Resource.GROUP, group.group_id)

    return limit


def _hide_topics(call: GuardedCall, group: Any) -> None:
    """A group is not described to a client that may not describe its topics."""
    if isinstance(group, streams_groups.DescribedGroup):
        _hide_topology(call, group)
        return
    if isinstance(group, consumer_groups.DescribedGroup):
        names = [
            name
            for member in group.members
            for name in (
                *member.subscribed_topic_names,
                *(topic.topic_name for topic in member.assignment.topic_partitions),
                *(topic.topic_name for topic in member.target_assignment.topic_partitions),
            )
        ]
    elif isinstance(group, share_groups.DescribedGroup):
        names = [topic.topic_name for member in group.members for topic in member.assignment.topic_partitions]
    else:
        return
    if not all(call.allows(Operation.DESCRIBE, Resource.TOPIC, name) for name in dict.fromkeys(names)):
        group.error_code = int(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        group.error_message = (
            "The group has described topic(s) that the client is not authorized to describe."
        )
        group.members = []


def _hide_topology(call: GuardedCall, group: streams_groups.DescribedGroup) -> None:
    parts = group.topology.subtopologies if group.topology is not None else None
    names = [name for part in parts or () for name in _topics_of(part)]
    if not all(call.allows(Operation.DESCRIBE, Resource.TOPIC, name) for name in dict.fromkeys(names)):
        group.error_code = int(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        group.error_message = "The described group uses topics that the client is not authorized to describe."
        group.group_state, group.group_epoch, group.assignment_epoch = "", 0, 0
        group.members, group.topology = [], None


def state_refusal(call: GuardedCall, error: ErrorCode) -> Message:
    """A request to a share coordinator is refused for each of its partitions."""
    operation = OPERATIONS[type(call.request)]
    return operation.response(
        results=[
            operation.result(
                topic_id=topic.topic_id,
                partitions=[
                    operation.partition_result(
                        partition=partition.partition, error_code=int(error), error_message=TEXTS[error]
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in call.request.topics
        ]
    )


def find_coordinator_guard(call: GuardedCall) -> Verdict:
    request = call.request
    kinds = {
        CoordinatorType.GROUP.value: Resource.GROUP,
        CoordinatorType.TRANSACTION.value: Resource.TRANSACTIONAL_ID,
    }
    if request.key_type == CoordinatorType.SHARE:
        return _find_share_coordinator(call)
    kind = kinds.get(request.key_type)
    if kind is None:
        return None
    code = int(ERRORS[kind])
    if call.version < _KEYS:
        if call.allows(Operation.DESCRIBE, kind, request.key):
            return None
        text = TEXTS[ERRORS[kind]]
        return FindCoordinatorResponse(error_code=code, error_message=text, node_id=-1, host="", port=-1)
    return split_elements(
        call,
        "coordinator_keys",
        partial(call.allows, Operation.DESCRIBE, kind),
        "coordinators",
        lambda key: Coordinator(
            key=key, node_id=-1, host="", port=-1, error_code=code, error_message=TEXTS[ErrorCode(code)]
        ),
    )


def _find_share_coordinator(call: GuardedCall) -> Verdict:
    if call.allows(Operation.CLUSTER_ACTION, Resource.CLUSTER):
        return None
    error = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    return FindCoordinatorResponse(
        coordinators=[
            Coordinator(
                key=key, node_id=-1, host="", port=-1, error_code=int(error), error_message=TEXTS[error]
            )
            for key in call.request.coordinator_keys
        ]
    )


_KEYS = 4
