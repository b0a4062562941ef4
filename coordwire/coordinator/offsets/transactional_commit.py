"""TxnOffsetCommit: offsets that hold if, and only if, their producer's transaction commits (KIP-98, KIP-447).

The group's checks are laxer than those of OffsetCommit: clients before version 3 send neither member nor
generation, and a rebalance does not matter. The broker around the shard has asked the transaction's
coordinator whether the transaction is open (KIP-890). Version 6 names topics by id (KIP-1319).
"""

from __future__ import annotations

from uuid import UUID

from coordwire.coordinator.listener import AppendCause
from coordwire.coordinator.model.offsets import CommittedOffset
from coordwire.coordinator.offsets.commit import ResponseTopics, too_large, validate
from coordwire.coordinator.records import offset_record
from coordwire.coordinator.refusal import OperationRefused
from coordwire.coordinator.state import GroupCommit, PartitionCheck, Result, State
from coordwire.coordinator.topics import TopicImage
from coordwire.enums import ErrorCode
from coordwire.messages import TxnOffsetCommitRequest, TxnOffsetCommitResponse
from coordwire.messages.txn_offset_commit import (
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

__all__ = ["commit_transactional", "refused_transactional", "resolve_transactional"]


_TOPIC_IDS = 6
_KNOWS_LOADING = 2
"""The first version whose clients wait while a coordinator loads."""


Unknown = ResponseTopics[TxnOffsetCommitResponseTopic]
"""The topics and partitions of a commit that do not exist, with their errors."""


def resolve_transactional(
    state: State, request: TxnOffsetCommitRequest, version: int
) -> tuple[list[TxnOffsetCommitRequestTopic], Unknown]:
    """Split a commit into the topics and partitions that exist, and those that do not."""
    known = []
    unknown: Unknown = ResponseTopics(lambda topic: (topic.name, topic.topic_id), _without_partitions)
    by_id = version >= _TOPIC_IDS
    for requested in request.topics:
        topic: TopicImage | None
        topic = state.topics.find_id(requested.topic_id) if by_id else state.topics.find(requested.name)
        error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if topic is None and by_id:
            error = ErrorCode.UNKNOWN_TOPIC_ID
        name = requested.name if topic is None else topic.name
        valid: list[TxnOffsetCommitRequestPartition] = []
        missing: list[TxnOffsetCommitRequestPartition] = []
        for partition in requested.partitions:
            exists = state.topics.has(name, partition.partition_index)
            (valid if exists else missing).append(partition)
        if missing:
            unknown.add(_answered(name, requested.topic_id, missing, int(error)))
        if valid:
            known.append(
                TxnOffsetCommitRequestTopic(name=name, topic_id=requested.topic_id, partitions=valid)
            )
    return known, unknown


def _without_partitions(topic: TxnOffsetCommitResponseTopic) -> TxnOffsetCommitResponseTopic:
    return TxnOffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id)


def _answered(
    name: str, topic_id: UUID, partitions: list[TxnOffsetCommitRequestPartition], error: int
) -> TxnOffsetCommitResponseTopic:
    """A topic with one error for each of its partitions."""
    answered = [
        TxnOffsetCommitResponsePartition(partition_index=partition.partition_index, error_code=error)
        for partition in partitions
    ]
    return TxnOffsetCommitResponseTopic(name=name, topic_id=topic_id, partitions=answered)


def refused_transactional(
    topics: list[TxnOffsetCommitRequestTopic], unknown: Unknown, error: int, version: int
) -> TxnOffsetCommitResponse:
    """An answer with one error for every partition that exists."""
    if version < _KNOWS_LOADING and error == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
        error = int(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    answers = [_answered(topic.name, topic.topic_id, topic.partitions, error) for topic in topics]
    return TxnOffsetCommitResponse(topics=unknown.merged(answers))


def commit_transactional(
    state: State,
    request: TxnOffsetCommitRequest,
    topics: list[TxnOffsetCommitRequestTopic],
    unknown: Unknown,
    version: int,
) -> Result:
    """Store the offsets of partitions that exist as pending until the transaction ends."""
    check = _validate(state, request, version)
    answers = []
    records = []
    for topic in topics:
        answered = TxnOffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id)
        answers.append(answered)
        image = state.topics.find(topic.name)
        assert image is not None
        for partition in topic.partitions:
            metadata, error = partition.committed_metadata or "", 0
            if too_large(state, metadata):
                error = int(ErrorCode.OFFSET_METADATA_TOO_LARGE)
            else:
                if check is not None:
                    _check_partition(check, image, partition.partition_index)
                committed = CommittedOffset(
                    partition.committed_offset, partition.committed_leader_epoch, metadata, state.now
                )
                records.append(
                    offset_record(request.group_id, topic.name, partition.partition_index, committed)
                )
            answered.partitions.append(
                TxnOffsetCommitResponsePartition(partition_index=partition.partition_index, error_code=error)
            )
    cause = AppendCause(
        member_id=request.member_id or None, generation=request.generation_id_or_member_epoch,
        transactional_id=request.transactional_id,
    )  # fmt: skip
    response = TxnOffsetCommitResponse(topics=unknown.merged(answers))
    producer = request.producer_id, request.producer_epoch
    return Result(records, response, producer=producer, cause=cause)


def _validate(state: State, request: TxnOffsetCommitRequest, version: int) -> PartitionCheck | None:
    """Refuse a commit, or return what decides for each partition."""
    generation = request.generation_id_or_member_epoch
    if request.group_id not in state.groups and generation >= 0:
        raise OperationRefused(ErrorCode.ILLEGAL_GENERATION)
    commit = GroupCommit(
        request.member_id, request.group_instance_id, generation, version, transactional=True
    )
    try:
        return validate(state, request.group_id, commit)
    except OperationRefused as refusal:
        if refusal.code == ErrorCode.STALE_MEMBER_EPOCH:
            raise OperationRefused(ErrorCode.ILLEGAL_GENERATION) from None
        raise


def _check_partition(check: PartitionCheck, topic: TopicImage, partition: int) -> None:
    try:
        check(topic.name, topic.id, partition)
    except OperationRefused:
        raise OperationRefused(ErrorCode.ILLEGAL_GENERATION) from None
