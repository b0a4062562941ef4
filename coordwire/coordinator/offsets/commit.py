"""OffsetCommit.

A group that uses a coordinator for offsets only ("simple") commits without a generation; its first commit
creates it. From version 10 topics are named by id (KIP-848).

The topics of an answer by their key: missing topics and partitions come first.

Rules: a topic that a request names twice is in the answer twice, as in Apache Kafka's, unless a topic or
partition is missing: then the partitions of each topic are merged. An answer costs no more than its
partitions.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any, Generic, Protocol, TypeVar
from uuid import UUID

from coordwire.coordinator.listener import AppendCause
from coordwire.coordinator.model.classic_group import ClassicGroupModel
from coordwire.coordinator.model.offsets import CommittedOffset
from coordwire.coordinator.records import offset_record
from coordwire.coordinator.refusal import OperationRefused
from coordwire.coordinator.state import GroupCommit, PartitionCheck, Result, State
from coordwire.coordinator.topics import NO_TOPIC_ID
from coordwire.enums import ErrorCode
from coordwire.messages import OffsetCommitRequest, OffsetCommitResponse
from coordwire.messages.offset_commit import (
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

__all__ = ["ResponseTopics", "commit", "refused_commit", "resolve_commit", "too_large", "validate"]


class _Topic(Protocol):
    """A topic of a response, of any type of request."""

    @property
    def partitions(self) -> list[Any]: ...


T = TypeVar("T", bound=_Topic)


class ResponseTopics(Generic[T]):
    """Topics by key. key: gives the key of a topic; empty: copies a topic without its partitions."""

    def __init__(self, key: Callable[[T], Hashable], empty: Callable[[T], T]) -> None:
        self._key = key
        self._empty = empty
        self._topics: dict[Hashable, T] = {}

    def add(self, topic: T) -> None:
        """Add a topic, or its partitions to the known topic."""
        self._topics.setdefault(self._key(topic), self._empty(topic)).partitions.extend(topic.partitions)

    def merged(self, topics: Iterable[T]) -> list[T]:
        """All added topics with these, which stay as they are where nothing was added."""
        if not self._topics:
            return list(topics)
        merged = ResponseTopics(self._key, self._empty)
        for topic in (*self._topics.values(), *topics):
            merged.add(topic)
        return list(merged._topics.values())


# --- OffsetCommit ---


_NEWER_ERRORS = 9
"""The first version whose clients know GROUP_ID_NOT_FOUND."""

_TOPIC_IDS = 10
_NO_RETENTION = -1


Unknown = ResponseTopics[OffsetCommitResponseTopic]
"""The topics and partitions of a commit that do not exist, with their errors."""


def resolve_commit(
    state: State, request: OffsetCommitRequest, version: int
) -> tuple[list[OffsetCommitRequestTopic], Unknown]:
    """Split a commit into the topics and partitions that exist, and those that do not."""
    known = []
    by_id = version >= _TOPIC_IDS
    unknown: Unknown = ResponseTopics(
        (lambda topic: topic.topic_id) if by_id else (lambda topic: topic.name), _without_partitions
    )
    for requested in request.topics:
        topic = state.topics.find_id(requested.topic_id) if by_id else state.topics.find(requested.name)
        if topic is None:
            error = ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            name, topic_id = ("", requested.topic_id) if by_id else (requested.name, NO_TOPIC_ID)
            unknown.add(_answered(name, topic_id, requested.partitions, int(error)))
            continue
        valid: list[OffsetCommitRequestPartition] = []
        missing: list[OffsetCommitRequestPartition] = []
        for partition in requested.partitions:
            exists = state.topics.has(topic.name, partition.partition_index)
            (valid if exists else missing).append(partition)
        if missing:
            error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            unknown.add(_answered(topic.name, topic.id, missing, int(error)))
        if valid:
            known.append(OffsetCommitRequestTopic(name=topic.name, topic_id=topic.id, partitions=valid))
    return known, unknown


def _without_partitions(topic: OffsetCommitResponseTopic) -> OffsetCommitResponseTopic:
    return OffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id)


def _answered(
    name: str, topic_id: UUID, partitions: list[OffsetCommitRequestPartition], error: int
) -> OffsetCommitResponseTopic:
    """A topic with one error for each of its partitions."""
    answered = [
        OffsetCommitResponsePartition(partition_index=partition.partition_index, error_code=error)
        for partition in partitions
    ]
    return OffsetCommitResponseTopic(name=name, topic_id=topic_id, partitions=answered)


def refused_commit(
    topics: list[OffsetCommitRequestTopic], unknown: Unknown, error: int
) -> OffsetCommitResponse:
    """An answer with one error for every partition that exists."""
    answers = [_answered(topic.name, topic.topic_id, topic.partitions, error) for topic in topics]
    return OffsetCommitResponse(topics=unknown.merged(answers))


def commit(
    state: State,
    request: OffsetCommitRequest,
    topics: list[OffsetCommitRequestTopic],
    unknown: Unknown,
    version: int,
) -> Result:
    """Store the offsets of the partitions that exist."""
    check = _validate(state, request, version)
    answers = []
    now = state.now
    retention = request.retention_time_ms
    expires_at = -1 if retention == _NO_RETENTION else _as_long(now + retention)
    records = []
    for topic in topics:
        answered = OffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id)
        answers.append(answered)
        for partition in topic.partitions:
            metadata = partition.committed_metadata or ""
            error = 0
            if too_large(state, metadata):
                error = int(ErrorCode.OFFSET_METADATA_TOO_LARGE)
            else:
                if check is not None:
                    check(topic.name, topic.topic_id, partition.partition_index)
                committed = CommittedOffset(
                    partition.committed_offset, partition.committed_leader_epoch, metadata, now, expires_at,
                    topic.topic_id,
                )  # fmt: skip
                records.append(
                    offset_record(request.group_id, topic.name, partition.partition_index, committed)
                )
            answered.partitions.append(
                OffsetCommitResponsePartition(partition_index=partition.partition_index, error_code=error)
            )
    cause = AppendCause(member_id=request.member_id or None, generation=request.generation_id_or_member_epoch)
    return Result(records, OffsetCommitResponse(topics=unknown.merged(answers)), cause=cause)


def _as_long(number: int) -> int:
    """A sum with Java's overflow of 64 bits, which a client's retention may cause."""
    return (number + (1 << 63)) % (1 << 64) - (1 << 63)


def too_large(state: State, metadata: str) -> bool:
    """Whether a commit's text exceeds the limit, which counts UTF-16 as Java does."""
    length = len(metadata) + sum(character > "\uffff" for character in metadata)
    return length > state.config.offset_metadata_max_size


def _validate(state: State, request: OffsetCommitRequest, version: int) -> PartitionCheck | None:
    """Refuse a commit, or return what decides for each partition."""
    generation = request.generation_id_or_member_epoch
    if request.group_id not in state.groups and generation >= 0:
        newer = version >= _NEWER_ERRORS
        raise OperationRefused(ErrorCode.GROUP_ID_NOT_FOUND if newer else ErrorCode.ILLEGAL_GENERATION)
    commit = GroupCommit(request.member_id, request.group_instance_id, generation, version)
    return validate(state, request.group_id, commit)


def validate(state: State, group_id: str, commit: GroupCommit) -> PartitionCheck | None:
    """Let the group of a commit check it; a group that does not exist is made."""
    group = state.groups.get(group_id)
    if group is None:
        group = state.groups[group_id] = ClassicGroupModel(group_id, state.now)
    return state.kind_of(group).validate_commit(state, group, commit)
