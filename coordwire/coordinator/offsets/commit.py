"""OffsetCommit: who may commit, and what is stored.

A group that uses a coordinator for offsets only ("simple") commits without a generation; it comes into
being with its first commit. From version 10 topics are named by id (KIP-848).
"""

from __future__ import annotations

from coordwire.coordinator.classic.rebalancing import keep_alive
from coordwire.coordinator.model.classic_group import ClassicGroupModel
from coordwire.coordinator.model.classic_states import GroupState
from coordwire.coordinator.model.committed_offsets import CommittedOffset, offset_record
from coordwire.coordinator.model.consumer_group import ConsumerGroupModel
from coordwire.coordinator.model.consumer_member import ConsumerMember
from coordwire.coordinator.offsets.member_epochs import validate_consumer_commit, validate_older_epoch
from coordwire.coordinator.refusal import OperationRefused
from coordwire.coordinator.state import GroupModel, Result, State
from coordwire.coordinator.topics import NO_TOPIC_ID
from coordwire.enums import ErrorCode
from coordwire.messages import OffsetCommitRequest, OffsetCommitResponse
from coordwire.messages.offset_commit import (
    OffsetCommitRequestTopic,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

__all__ = ["commit", "refused_commit", "resolve_commit"]

_NEWER_ERRORS = 9
"""The first version whose clients know GROUP_ID_NOT_FOUND."""

_TOPIC_IDS = 10
_NO_RETENTION = -1


def resolve_commit(
    state: State, request: OffsetCommitRequest, version: int
) -> tuple[list[OffsetCommitRequestTopic], OffsetCommitResponse]:
    """The topics and partitions that exist, and the answer so far: those that do not."""
    known = []
    response = OffsetCommitResponse()
    for asked in request.topics:
        topic = (
            state.topics.find_id(asked.topic_id) if version >= _TOPIC_IDS else state.topics.find(asked.name)
        )
        if topic is None:
            by_id = version >= _TOPIC_IDS
            error = ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            name, topic_id = ("", asked.topic_id) if by_id else (asked.name, NO_TOPIC_ID)
            for partition in asked.partitions:
                _add(response, name, topic_id, partition.partition_index, int(error), version)
            continue
        valid = []
        for partition in asked.partitions:
            if state.topics.has(topic.name, partition.partition_index):
                valid.append(partition)
            else:
                error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                _add(response, topic.name, topic.id, partition.partition_index, int(error), version)
        if valid:
            known.append(OffsetCommitRequestTopic(name=topic.name, topic_id=topic.id, partitions=valid))
    return known, response


def _add(
    response: OffsetCommitResponse, name: str, topic_id: object, partition: int, error: int, version: int
) -> None:
    for topic in response.topics:
        if (topic.topic_id == topic_id) if version >= _TOPIC_IDS else (topic.name == name):
            break
    else:
        topic = OffsetCommitResponseTopic(name=name, topic_id=topic_id)  # type: ignore[arg-type]
        response.topics.append(topic)
    topic.partitions.append(OffsetCommitResponsePartition(partition_index=partition, error_code=error))


def _copy(response: OffsetCommitResponse) -> OffsetCommitResponse:
    topics = [
        OffsetCommitResponseTopic(name=one.name, topic_id=one.topic_id, partitions=list(one.partitions))
        for one in response.topics
    ]
    return OffsetCommitResponse(topics=topics)


def refused_commit(
    topics: list[OffsetCommitRequestTopic], response: OffsetCommitResponse, error: int, version: int
) -> OffsetCommitResponse:
    """An answer with one error for every partition that exists."""
    response = _copy(response)
    for topic in topics:
        for partition in topic.partitions:
            _add(response, topic.name, topic.topic_id, partition.partition_index, error, version)
    return response


def commit(
    state: State,
    request: OffsetCommitRequest,
    topics: list[OffsetCommitRequestTopic],
    refused: OffsetCommitResponse,
    version: int,
) -> Result:
    """Store what exists of a commit; `refused` has the rest's errors."""
    of_older_epoch = _validate(state, request, version)
    response = _copy(refused)
    now = state.now
    retention = request.retention_time_ms
    expires_at = -1 if retention == _NO_RETENTION else now + retention
    records = []
    for topic in topics:
        for partition in topic.partitions:
            metadata = partition.committed_metadata or ""
            error = 0
            if _utf16_length(metadata) > state.config.offset_metadata_max_size:
                error = int(ErrorCode.OFFSET_METADATA_TOO_LARGE)
            else:
                if of_older_epoch is not None:
                    generation = request.generation_id_or_member_epoch
                    validate_older_epoch(
                        of_older_epoch, topic.topic_id, partition.partition_index, generation
                    )
                epoch = partition.committed_leader_epoch
                committed = CommittedOffset(
                    partition.committed_offset, epoch if epoch >= 0 else -1, metadata, now, expires_at,
                    topic.topic_id,
                )  # fmt: skip
                records.append(
                    offset_record(request.group_id, topic.name, partition.partition_index, committed)
                )
            _add(response, topic.name, topic.topic_id, partition.partition_index, error, version)
    return Result(records, response)


def _utf16_length(text: str) -> int:
    return len(text) + sum(character > "\uffff" for character in text)


def _validate(state: State, request: OffsetCommitRequest, version: int) -> ConsumerMember | None:
    """Gives a member that commits in an epoch before its own, where each partition's epoch decides."""
    generation = request.generation_id_or_member_epoch
    group: GroupModel | None = state.groups.get(request.group_id)
    if group is None:
        if generation >= 0:
            newer = version >= _NEWER_ERRORS
            raise OperationRefused(ErrorCode.GROUP_ID_NOT_FOUND if newer else ErrorCode.ILLEGAL_GENERATION)
        group = ClassicGroupModel(request.group_id, state.now)
        state.groups[request.group_id] = group
    if isinstance(group, ConsumerGroupModel):
        return validate_consumer_commit(group, request.member_id, generation, version)
    _validate_member(group, request, generation)
    if group.state in (GroupState.STABLE, GroupState.PREPARING_REBALANCE):
        keep_alive(state, group, group.members[request.member_id])
    return None


def _validate_member(group: ClassicGroupModel, request: OffsetCommitRequest, generation: int) -> None:
    if group.state is GroupState.DEAD:
        raise OperationRefused(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    if generation < 0 and group.state is GroupState.EMPTY:
        return  # an operator's, or a consumer's that does without a membership
    if generation >= 0 or request.member_id or request.group_instance_id is not None:
        group.validate_member(request.member_id, request.group_instance_id)
        if generation != group.generation:
            raise OperationRefused(ErrorCode.ILLEGAL_GENERATION)
    elif group.state is not GroupState.EMPTY:
        raise OperationRefused(ErrorCode.UNKNOWN_MEMBER_ID)
    if group.state is GroupState.COMPLETING_REBALANCE:
        raise OperationRefused(ErrorCode.REBALANCE_IN_PROGRESS)
