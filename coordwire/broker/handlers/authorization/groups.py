"""Guards of groups and of their offsets."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import cache, partial
from typing import Any

from coordwire.broker.handlers.api_call import ApiCall, Handler, HandlerResult
from coordwire.broker.handlers.authorization.guards import (
    ERRORS,
    NOT_REQUESTED,
    TEXTS,
    Operation,
    Resource,
    change_answer,
    error_response,
    operation_bits,
    replaced,
    split_elements,
    topic_name,
)
from coordwire.broker.handlers.streams_api import names_refusal, topology_topics
from coordwire.codec import Message
from coordwire.coordinator.share_state.requests import OPERATIONS
from coordwire.enums import CoordinatorType, ErrorCode
from coordwire.messages import (
    FindCoordinatorResponse,
    OffsetCommitResponse,
    OffsetFetchResponse,
    StreamsGroupHeartbeatResponse,
    TxnOffsetCommitResponse,
    offset_delete,
    offset_fetch,
)
from coordwire.messages import consumer_group_describe as consumer_groups
from coordwire.messages import describe_share_group_offsets as share_offsets
from coordwire.messages import share_group_describe as share_groups
from coordwire.messages import streams_group_describe as streams_groups
from coordwire.messages.delete_share_group_offsets import DeleteShareGroupOffsetsResponseTopic
from coordwire.messages.find_coordinator import Coordinator
from coordwire.messages.offset_commit import OffsetCommitResponsePartition, OffsetCommitResponseTopic
from coordwire.messages.txn_offset_commit import (
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

__all__ = [
    "commit_refusal",
    "commit_topic_refusal",
    "delete_topic_refusal",
    "describe_groups_guard",
    "find_coordinator_guard",
    "heartbeat_guard",
    "join_refusal",
    "list_groups_guard",
    "offset_fetch_guard",
    "refused_share_deletion",
    "share_offsets_guard",
    "state_refusal",
    "streams_heartbeat_guard",
    "transactional_commit_refusal",
    "transactional_commit_topic_refusal",
]


def _each_partition(response: Any, topic_type: Any, partition_type: Any) -> Any:
    """For requests with topics of partitions: an answer in which each has an error, and one topic's."""

    def topic(element: Any, code: int) -> Any:
        named = {"topic_id": element.topic_id} if hasattr(element, "topic_id") else {}
        parts = [
            partition_type(partition_index=partition.partition_index, error_code=code)
            for partition in element.partitions
        ]
        return topic_type(name=element.name, partitions=parts, **named)

    def refusal(call: ApiCall, error: ErrorCode) -> Message:
        answer: Message = response(topics=[topic(element, int(error)) for element in call.request.topics])
        return answer

    return refusal, topic


commit_refusal, commit_topic_refusal = _each_partition(
    OffsetCommitResponse, OffsetCommitResponseTopic, OffsetCommitResponsePartition
)
transactional_commit_refusal, transactional_commit_topic_refusal = _each_partition(
    TxnOffsetCommitResponse, TxnOffsetCommitResponseTopic, TxnOffsetCommitResponsePartition
)
_, delete_topic_refusal = _each_partition(
    None, offset_delete.OffsetDeleteResponseTopic, offset_delete.OffsetDeleteResponsePartition
)


_NULLABLE_PROTOCOL = 7


def join_refusal(call: ApiCall, error: ErrorCode) -> Message:
    response: Any = error_response(call, error)
    response.protocol_name = None if call.version >= _NULLABLE_PROTOCOL else ""
    return response  # type: ignore[no-any-return]


def heartbeat_guard(call: ApiCall, handler: Handler) -> HandlerResult:
    names = call.request.subscribed_topic_names
    if names and not all(
        call.allows(Operation.DESCRIBE, Resource.TOPIC, name) for name in dict.fromkeys(names)
    ):
        return error_response(call, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    return handler(call)


def streams_heartbeat_guard(call: ApiCall, handler: Handler) -> HandlerResult:
    request = call.request
    if names_refusal(request) is None and not all(
        call.allows(Operation.DESCRIBE, Resource.TOPIC, name) for name in topology_topics(request)
    ):
        return StreamsGroupHeartbeatResponse(error_code=int(ErrorCode.TOPIC_AUTHORIZATION_FAILED))
    return handler(call)


def list_groups_guard(call: ApiCall, handler: Handler) -> HandlerResult:
    if call.allows(Operation.DESCRIBE, Resource.CLUSTER):
        return handler(call)

    def limit(response: Any) -> None:
        response.groups = [
            group
            for group in response.groups
            if call.allows(Operation.DESCRIBE, Resource.GROUP, group.group_id)
        ]

    return change_answer(call, handler, limit)


def describe_groups_guard(call: ApiCall, handler: Handler) -> HandlerResult:
    def limit(response: Any) -> None:
        for group in response.groups:
            _hide_topics(call, group)
            if group.authorized_operations != NOT_REQUESTED and not group.error_code:
                group.authorized_operations = operation_bits(call, Resource.GROUP, group.group_id)

    return change_answer(call, handler, limit)


def _hide_topics(call: ApiCall, group: Any) -> None:
    """A group is not described to a client that may not describe its topics."""
    if isinstance(group, streams_groups.DescribedGroup):
        _hide_topology(call, group)
        return
    if isinstance(group, consumer_groups.DescribedGroup):
        names = {
            name
            for member in group.members
            for name in (
                *member.subscribed_topic_names,
                *(topic.topic_name for topic in member.assignment.topic_partitions),
                *(topic.topic_name for topic in member.target_assignment.topic_partitions),
            )
        }
    elif isinstance(group, share_groups.DescribedGroup):
        names = {topic.topic_name for member in group.members for topic in member.assignment.topic_partitions}
    else:
        return
    if not all(call.allows(Operation.DESCRIBE, Resource.TOPIC, name) for name in names):
        group.error_code = int(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        group.error_message = (
            "The group has described topic(s) that the client is not authorized to describe."
        )
        group.members = []


def _hide_topology(call: ApiCall, group: streams_groups.DescribedGroup) -> None:
    parts = group.topology.subtopologies if group.topology is not None else None
    names = {
        name
        for part in parts or ()
        for name in (
            *part.source_topics,
            *part.repartition_sink_topics,
            *(topic.name for topic in part.repartition_source_topics),
            *(topic.name for topic in part.state_changelog_topics),
        )
    }
    if not all(call.allows(Operation.DESCRIBE, Resource.TOPIC, name) for name in names):
        group.error_code = int(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        group.error_message = "The described group uses topics that the client is not authorized to describe."
        group.group_state, group.group_epoch, group.assignment_epoch = "", 0, 0
        group.members, group.topology = [], None


_MANY_GROUPS = 8


def offset_fetch_guard(call: ApiCall, handler: Handler) -> HandlerResult:
    request = call.request
    describes = cache(partial(call.allows, Operation.DESCRIBE, Resource.TOPIC))
    if call.version < _MANY_GROUPS:
        if not call.allows(Operation.DESCRIBE, Resource.GROUP, request.group_id):
            return _no_offsets(call, request)
        refused = _refused_offsets(call, request, describes)
        call.request = _allowed_offsets(call, request, describes)

        def limit(response: Any) -> None:
            _limit_offsets(request, response, refused, describes)

        return change_answer(call, handler, limit)
    groups, later, hidden = [], [], {}
    for group in request.groups:
        if not call.allows(Operation.DESCRIBE, Resource.GROUP, group.group_id):
            error = int(ErrorCode.GROUP_AUTHORIZATION_FAILED)
            later.append(
                offset_fetch.OffsetFetchResponseGroup(group_id=group.group_id, error_code=error, topics=[])
            )
        else:
            hidden[group.group_id] = group, _refused_offsets(call, group, describes)
            groups.append(_allowed_offsets(call, group, describes))
    if not groups:
        return OffsetFetchResponse(groups=later)
    call.request = replaced(request, {"groups": groups})

    def limit_groups(response: Any) -> None:
        for answer in response.groups:
            if answer.group_id in hidden:
                group, refused = hidden[answer.group_id]
                _limit_offsets(group, answer, refused, describes)
        response.groups = [*response.groups, *later]

    return change_answer(call, handler, limit_groups)


def _no_offsets(call: ApiCall, request: Any) -> Message:
    """A version without groups refuses one: in version 1 by its partitions."""
    code = int(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if call.version > 1:
        return OffsetFetchResponse(error_code=code)
    return OffsetFetchResponse(
        topics=[
            offset_fetch.OffsetFetchResponseTopic(
                name=topic.name,
                partitions=[
                    offset_fetch.OffsetFetchResponsePartition(
                        partition_index=index, committed_offset=-1, metadata="", error_code=code
                    )
                    for index in topic.partition_indexes
                ],
            )
            for topic in request.topics or ()
        ]
    )


def _allowed_offsets(call: ApiCall, request: Any, describes: Callable[[str], bool]) -> Any:
    """A request, or a group of one, without the topics that are refused."""
    if request.topics is None:
        return request
    return replaced(
        request, {"topics": [topic for topic in request.topics if _is_described(call, topic, describes)]}
    )


def _is_described(call: ApiCall, topic: Any, describes: Callable[[str], bool]) -> bool:
    name = topic_name(call, topic)
    return name is None or describes(name)


def _refused_offsets(call: ApiCall, request: Any, describes: Callable[[str], bool]) -> list[Any]:
    """What is answered for the topics that are refused."""
    named = call.version >= _MANY_GROUPS
    topic_type: Any = (
        offset_fetch.OffsetFetchResponseTopics if named else offset_fetch.OffsetFetchResponseTopic
    )
    part_type: Any = (
        offset_fetch.OffsetFetchResponsePartitions if named else offset_fetch.OffsetFetchResponsePartition
    )
    return [
        topic_type(
            name=topic.name,
            **({"topic_id": topic.topic_id} if named else {}),
            partitions=[
                part_type(
                    partition_index=index,
                    committed_offset=-1,
                    metadata="",
                    error_code=int(ErrorCode.TOPIC_AUTHORIZATION_FAILED),
                )
                for index in topic.partition_indexes
            ],
        )
        for topic in request.topics or ()
        if not _is_described(call, topic, describes)
    ]


def _limit_offsets(request: Any, answer: Any, refused: list[Any], describes: Callable[[str], bool]) -> None:
    if answer.error_code:
        return
    if request.topics is None:
        answer.topics = [topic for topic in answer.topics if describes(topic.name)]
    else:
        answer.topics = [*answer.topics, *refused]


def share_offsets_guard(call: ApiCall, handler: Handler) -> HandlerResult:
    """Offsets of topics that the client may not describe are hidden, or refused where they are asked for."""
    code = int(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    describes = cache(partial(call.allows, Operation.DESCRIBE, Resource.TOPIC))
    refused: dict[str, deque[list[Any] | None]] = {}  # by group, as often as it is named; None for all topics
    groups = []
    for group in call.request.groups:
        refusals = refused.setdefault(group.group_id, deque())
        if group.topics is None:
            refusals.append(None)
        else:
            forbidden = [topic for topic in group.topics if not describes(topic.topic_name)]
            refusals.append([_refused_share_offsets(topic, code) for topic in forbidden])
            if forbidden:
                allowed = [topic for topic in group.topics if describes(topic.topic_name)]
                group = replaced(group, {"topics": allowed})
        groups.append(group)
    call.request = replaced(call.request, {"groups": groups})

    def limit(response: Any) -> None:
        for group in response.groups:
            refusals = refused[group.group_id].popleft()
            if refusals is None:
                group.topics = [topic for topic in group.topics if describes(topic.topic_name)]
            elif refusals and not group.error_code:
                group.topics = [*group.topics, *refusals]

    return change_answer(call, handler, limit)


def _refused_share_offsets(topic: Any, code: int) -> share_offsets.DescribeShareGroupOffsetsResponseTopic:
    return share_offsets.DescribeShareGroupOffsetsResponseTopic(
        topic_name=topic.topic_name,
        partitions=[
            share_offsets.DescribeShareGroupOffsetsResponsePartition(
                partition_index=index, start_offset=-1, lag=-1, error_code=code,
                error_message=TEXTS[ErrorCode(code)],
            )
            for index in topic.partitions
        ],
    )  # fmt: skip


def refused_share_deletion(topic: Any, code: int) -> DeleteShareGroupOffsetsResponseTopic:
    return DeleteShareGroupOffsetsResponseTopic(
        topic_name=topic.topic_name, error_code=code, error_message=TEXTS[ErrorCode(code)]
    )


def state_refusal(call: ApiCall, error: ErrorCode) -> Message:
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


def find_coordinator_guard(call: ApiCall, handler: Handler) -> HandlerResult:
    request = call.request
    kinds = {
        CoordinatorType.GROUP.value: Resource.GROUP,
        CoordinatorType.TRANSACTION.value: Resource.TRANSACTIONAL_ID,
    }
    if request.key_type == CoordinatorType.SHARE:
        return _find_share_coordinator(call, handler)
    kind = kinds.get(request.key_type)
    if kind is None:
        return handler(call)
    code = int(ERRORS[kind])
    if call.version < _KEYS:
        if call.allows(Operation.DESCRIBE, kind, request.key):
            return handler(call)
        text = TEXTS[ERRORS[kind]]
        return FindCoordinatorResponse(error_code=code, error_message=text, node_id=-1, host="", port=-1)
    return split_elements(
        call,
        handler,
        "coordinator_keys",
        partial(call.allows, Operation.DESCRIBE, kind),
        "coordinators",
        lambda key: Coordinator(
            key=key, node_id=-1, host="", port=-1, error_code=code, error_message=TEXTS[ErrorCode(code)]
        ),
    )


def _find_share_coordinator(call: ApiCall, handler: Handler) -> HandlerResult:
    if call.allows(Operation.CLUSTER_ACTION, Resource.CLUSTER):
        return handler(call)
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
