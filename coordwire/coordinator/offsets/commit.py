"""OffsetCommit, and TxnOffsetCommit: offsets that hold if, and only if, their producer's transaction commits.

OffsetCommit: a group that uses a coordinator for offsets only ("simple") commits without a generation; its
first commit creates it. Rules: topics are stored by the name and id that the request has, whether they exist
or not; from version 10, which sends ids alone (KIP-848), the layer around the coordinator sets names.

TxnOffsetCommit (KIP-98, KIP-447): the group's checks are laxer than those of OffsetCommit: clients before
version 3 send neither member nor generation, and a rebalance does not matter. The broker around the shard has
asked the transaction's coordinator whether the transaction is open (KIP-890). Version 6 names topics by id
(KIP-1319); the layer around the coordinator sets their names.
"""

from __future__ import annotations

from uuid import UUID

from coordwire.coordinator.listener import AppendCause
from coordwire.coordinator.model.classic_group import ClassicGroupModel
from coordwire.coordinator.model.offsets import CommittedOffset
from coordwire.coordinator.records import offset_record
from coordwire.coordinator.refusal import OperationRefused
from coordwire.coordinator.state import GroupCommit, PartitionCheck, Result, State
from coordwire.coordinator.topics import NO_TOPIC_ID
from coordwire.enums import ErrorCode
from coordwire.messages import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)
from coordwire.messages.offset_commit import (
    OffsetCommitRequestPartition,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from coordwire.messages.txn_offset_commit import (
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

_NEWER_ERRORS = 9
"""The first version whose clients know GROUP_ID_NOT_FOUND."""

_NEWER_TRANSACTIONAL_ERRORS = 6
"""The first version of TxnOffsetCommit whose clients know GROUP_ID_NOT_FOUND and STALE_MEMBER_EPOCH."""

_NO_RETENTION = -1


def _answered(
    name: str, topic_id: UUID, partitions: list[OffsetCommitRequestPartition], error: int
) -> OffsetCommitResponseTopic:
    """A topic with one error for each of its partitions."""
    answered = [
        OffsetCommitResponsePartition(partition_index=partition.partition_index, error_code=error)
        for partition in partitions
    ]
    return OffsetCommitResponseTopic(name=name, topic_id=topic_id, partitions=answered)


def refused_commit(request: OffsetCommitRequest, error: int) -> OffsetCommitResponse:
    """An answer with one error for every partition."""
    return OffsetCommitResponse(
        topics=[_answered(topic.name, topic.topic_id, topic.partitions, error) for topic in request.topics]
    )


def commit(state: State, request: OffsetCommitRequest, version: int) -> Result:
    """Store the offsets of a request."""
    check = _validate(state, request, version)
    answers = []
    now = state.now
    retention = request.retention_time_ms
    expires_at = -1 if retention == _NO_RETENTION else _as_long(now + retention)
    records = []
    for topic in request.topics:
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
    return Result(records, OffsetCommitResponse(topics=answers), cause=cause)


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


# --- TxnOffsetCommit ---


def _answered_transactional(
    name: str, topic_id: UUID, partitions: list[TxnOffsetCommitRequestPartition], error: int
) -> TxnOffsetCommitResponseTopic:
    """A topic with one error for each of its partitions."""
    answered = [
        TxnOffsetCommitResponsePartition(partition_index=partition.partition_index, error_code=error)
        for partition in partitions
    ]
    return TxnOffsetCommitResponseTopic(name=name, topic_id=topic_id, partitions=answered)


def refused_transactional(request: TxnOffsetCommitRequest, error: int) -> TxnOffsetCommitResponse:
    """An answer with one error for every partition."""
    return TxnOffsetCommitResponse(
        topics=[
            _answered_transactional(topic.name, topic.topic_id, topic.partitions, error)
            for topic in request.topics
        ]
    )


def commit_transactional(state: State, request: TxnOffsetCommitRequest, version: int) -> Result:
    """Store the offsets of a request as pending until the transaction ends."""
    check = _validate_transactional(state, request, version)
    answers = []
    records = []
    for topic in request.topics:
        answered = TxnOffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id)
        answers.append(answered)
        topic_id = _id_of(state, topic)
        for partition in topic.partitions:
            metadata, error = partition.committed_metadata or "", 0
            if too_large(state, metadata):
                error = int(ErrorCode.OFFSET_METADATA_TOO_LARGE)
            else:
                if check is not None:
                    _check_partition(check, topic.name, topic_id, partition.partition_index, version)
                committed = CommittedOffset(
                    partition.committed_offset, partition.committed_leader_epoch, metadata, state.now,
                    topic_id=topic_id if state.rules.transactional_offsets_have_topic_ids else NO_TOPIC_ID,
                )  # fmt: skip
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
    response = TxnOffsetCommitResponse(topics=answers)
    producer = request.producer_id, request.producer_epoch
    return Result(records, response, producer=producer, cause=cause)


def _validate_transactional(
    state: State, request: TxnOffsetCommitRequest, version: int
) -> PartitionCheck | None:
    """Refuse a commit, or return what decides for each partition."""
    generation = request.generation_id_or_member_epoch
    if request.group_id not in state.groups and generation >= 0:
        newer = version >= _NEWER_TRANSACTIONAL_ERRORS
        raise OperationRefused(ErrorCode.GROUP_ID_NOT_FOUND if newer else ErrorCode.ILLEGAL_GENERATION)
    commit = GroupCommit(
        request.member_id, request.group_instance_id, generation, version, transactional=True
    )
    try:
        return validate(state, request.group_id, commit)
    except OperationRefused as refusal:
        if refusal.code == ErrorCode.STALE_MEMBER_EPOCH and version < _NEWER_TRANSACTIONAL_ERRORS:
            raise OperationRefused(ErrorCode.ILLEGAL_GENERATION) from None
        raise


def _id_of(state: State, topic: TxnOffsetCommitRequestTopic) -> UUID:
    """The id by which members own a topic."""
    image = state.topics.find(topic.name)
    return topic.topic_id if image is None else image.id


def _check_partition(check: PartitionCheck, topic: str, topic_id: UUID, partition: int, version: int) -> None:
    try:
        check(topic, topic_id, partition)
    except OperationRefused:
        if version >= _NEWER_TRANSACTIONAL_ERRORS:
            raise
        raise OperationRefused(ErrorCode.ILLEGAL_GENERATION) from None
