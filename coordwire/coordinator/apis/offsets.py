"""Guards of offsets: of OffsetCommit, OffsetFetch, OffsetDelete, TxnOffsetCommit, and of share groups."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import cache, partial
from typing import Any

from coordwire.codec import Message
from coordwire.coordinator.apis.guards import (
    TEXTS,
    GuardedCall,
    Operation,
    Resource,
    Verdict,
    replaced,
    topic_name,
)
from coordwire.coordinator.refusal import error_text
from coordwire.enums import ErrorCode
from coordwire.messages import (
    OffsetCommitResponse,
    OffsetFetchResponse,
    TxnOffsetCommitResponse,
    offset_delete,
    offset_fetch,
)
from coordwire.messages import describe_share_group_offsets as share_offsets
from coordwire.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsResponsePartition,
    AlterShareGroupOffsetsResponseTopic,
)
from coordwire.messages.delete_share_group_offsets import DeleteShareGroupOffsetsResponseTopic
from coordwire.messages.offset_commit import OffsetCommitResponsePartition, OffsetCommitResponseTopic
from coordwire.messages.txn_offset_commit import (
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)


def _each_partition(response: Any, topic_type: Any, partition_type: Any) -> Any:
    """For requests with topics of partitions: an answer in which each has an error, and one topic's."""

    def topic(element: Any, code: int) -> Any:
        named = {"topic_id": element.topic_id} if hasattr(element, "topic_id") else {}
        parts = [
            partition_type(partition_index=partition.partition_index, error_code=code)
            for partition in element.partitions
        ]
        return topic_type(name=element.name, partitions=parts, **named)

    def refusal(call: GuardedCall, error: ErrorCode) -> Message:
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


_MANY_GROUPS = 8


def offset_fetch_guard(call: GuardedCall) -> Verdict:
    request = call.request
    describes = cache(partial(call.allows, Operation.DESCRIBE, Resource.TOPIC))
    if call.version < _MANY_GROUPS:
        if not call.allows(Operation.DESCRIBE, Resource.GROUP, request.group_id):
            return _no_offsets(call, request)
        refused = _refused_offsets(call, request, describes)
        call.request = _allowed_offsets(call, request, describes)

        def limit(response: Any) -> None:
            _limit_offsets(request, response, refused, describes)

        return limit
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

    return limit_groups


def _no_offsets(call: GuardedCall, request: Any) -> Message:
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


def _allowed_offsets(call: GuardedCall, request: Any, describes: Callable[[str], bool]) -> Any:
    """A request, or a group of one, without the topics that are refused."""
    if request.topics is None:
        return request
    return replaced(
        request, {"topics": [topic for topic in request.topics if _is_described(call, topic, describes)]}
    )


def _is_described(call: GuardedCall, topic: Any, describes: Callable[[str], bool]) -> bool:
    name = topic_name(call, topic)
    return name is None or describes(name)


def _refused_offsets(call: GuardedCall, request: Any, describes: Callable[[str], bool]) -> list[Any]:
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


def share_offsets_guard(call: GuardedCall) -> Verdict:
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

    return limit


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


def share_deletion_refusal(topic: Any, code: int) -> DeleteShareGroupOffsetsResponseTopic:
    return DeleteShareGroupOffsetsResponseTopic(
        topic_name=topic.topic_name, error_code=code, error_message=TEXTS[ErrorCode(code)]
    )


def alter_share_offsets_guard(call: GuardedCall) -> Verdict:
    """Topics that the client may not read, or that there are not, are refused, and answered first."""
    reads = cache(partial(call.allows, Operation.READ, Resource.TOPIC))
    refused: list[AlterShareGroupOffsetsResponseTopic] = []
    accepted = []
    for topic in call.request.topics:
        known = call.topics.find(topic.topic_name)
        if reads(topic.topic_name) and known is not None:
            accepted.append(topic)
            continue
        is_allowed = reads(topic.topic_name)
        error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if is_allowed else ErrorCode.TOPIC_AUTHORIZATION_FAILED
        refusal = AlterShareGroupOffsetsResponseTopic(
            topic_name=topic.topic_name,
            partitions=[
                AlterShareGroupOffsetsResponsePartition(
                    partition_index=partition.partition_index,
                    error_code=int(error),
                    error_message=error_text(int(error)),
                )
                for partition in topic.partitions
            ],
        )
        if known is not None:
            refusal.topic_id = known.id
        refused.append(refusal)
    if not refused:
        return None
    call.request = replaced(call.request, {"topics": accepted})

    def add(response: Any) -> None:
        if not response.error_code:
            response.responses = [*refused, *response.responses]

    return add
