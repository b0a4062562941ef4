"""The records of share groups in `__consumer_offsets`, in the versions that Kafka 4.3 writes."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from coordwire.codec import Message
from coordwire.coordinator.model.assignment import Target
from coordwire.coordinator.model.share_group import (
    InitializedTopics,
    ShareGroupModel,
    ShareMember,
)
from coordwire.logs import LogRecord
from coordwire.messages import (
    ShareGroupCurrentMemberAssignmentKey,
    ShareGroupCurrentMemberAssignmentValue,
    ShareGroupMemberMetadataKey,
    ShareGroupMemberMetadataValue,
    ShareGroupMetadataKey,
    ShareGroupMetadataValue,
    ShareGroupStatePartitionMetadataKey,
    ShareGroupStatePartitionMetadataValue,
    ShareGroupTargetAssignmentMemberKey,
    ShareGroupTargetAssignmentMemberValue,
    ShareGroupTargetAssignmentMetadataKey,
    ShareGroupTargetAssignmentMetadataValue,
)
from coordwire.messages.share_group_records import (
    TopicInfo,
    TopicPartition,
    TopicPartitions,
    TopicPartitionsInfo,
)

_MEMBER, _EPOCH, _ASSIGNMENT_EPOCH, _TARGET, _ASSIGNMENT, _STATES = range(10, 16)


def _record(kind: int, key: Message, value: Message | None = None) -> LogRecord:
    version = None if value is None else 0
    return LogRecord(log="consumer_offsets", type=kind, key=key, value=value, version=version)


def member_record(group_id: str, member: ShareMember) -> LogRecord:
    value = ShareGroupMemberMetadataValue(
        rack_id=member.rack_id, client_id=member.client_id, client_host=member.client_host,
        subscribed_topic_names=list(member.topics),
    )  # fmt: skip
    return _record(_MEMBER, ShareGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id), value)


def epoch_record(group_id: str, epoch: int, metadata_hash: int) -> LogRecord:
    value = ShareGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)
    return _record(_EPOCH, ShareGroupMetadataKey(group_id=group_id), value)


def assignment_epoch_record(group_id: str, epoch: int, assigned_at: int) -> LogRecord:
    value = ShareGroupTargetAssignmentMetadataValue(assignment_epoch=epoch, assignment_timestamp=assigned_at)
    return _record(_ASSIGNMENT_EPOCH, ShareGroupTargetAssignmentMetadataKey(group_id=group_id), value)


def target_record(group_id: str, member_id: str, target: Target) -> LogRecord:
    value = ShareGroupTargetAssignmentMemberValue(
        topic_partitions=[
            TopicPartition(topic_id=topic_id, partitions=list(partitions))
            for topic_id, partitions in target.items()
        ]
    )
    return _record(
        _TARGET, ShareGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), value
    )


def assignment_record(group_id: str, member: ShareMember) -> LogRecord:
    value = ShareGroupCurrentMemberAssignmentValue(
        member_epoch=member.epoch, previous_member_epoch=member.previous_epoch, state=member.state,
        assigned_partitions=[
            TopicPartitions(topic_id=topic_id, partitions=list(partitions))
            for topic_id, partitions in member.assigned.items()
        ],
    )  # fmt: skip
    key = ShareGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id)
    return _record(_ASSIGNMENT, key, value)


def states_record(
    group_id: str,
    initializing: InitializedTopics,
    initialized: InitializedTopics,
    deleting: Iterable[tuple[UUID, str]],
) -> LogRecord:
    value = ShareGroupStatePartitionMetadataValue(
        initializing_topics=_topics(initializing),
        initialized_topics=_topics(initialized),
        deleting_topics=[TopicInfo(topic_id=topic_id, topic_name=name) for topic_id, name in deleting],
    )
    return _record(_STATES, ShareGroupStatePartitionMetadataKey(group_id=group_id), value)


def _topics(topics: InitializedTopics) -> list[TopicPartitionsInfo]:
    return [
        TopicPartitionsInfo(topic_id=topic_id, topic_name=topic.name, partitions=list(topic.partitions))
        for topic_id, topic in topics.items()
    ]


# --- tombstones ---


def _assignment_tombstone(group_id: str, member_id: str) -> LogRecord:
    return _record(_ASSIGNMENT, ShareGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id))


def _target_tombstone(group_id: str, member_id: str) -> LogRecord:
    return _record(_TARGET, ShareGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id))


def _member_tombstone(group_id: str, member_id: str) -> LogRecord:
    return _record(_MEMBER, ShareGroupMemberMetadataKey(group_id=group_id, member_id=member_id))


def member_tombstones(group_id: str, member_id: str) -> list[LogRecord]:
    """The end of a member."""
    return [
        _assignment_tombstone(group_id, member_id),
        _target_tombstone(group_id, member_id),
        _member_tombstone(group_id, member_id),
    ]


def group_tombstones(group: ShareGroupModel) -> list[LogRecord]:
    """The end of a group."""
    group_id = group.group_id
    members = [member.member_id for member in group.members.values()]
    return [
        *(_assignment_tombstone(group_id, member_id) for member_id in members),
        *(_target_tombstone(group_id, member_id) for member_id in members),
        _record(_ASSIGNMENT_EPOCH, ShareGroupTargetAssignmentMetadataKey(group_id=group_id)),
        *(_member_tombstone(group_id, member_id) for member_id in members),
        _record(_STATES, ShareGroupStatePartitionMetadataKey(group_id=group_id)),
        _record(_EPOCH, ShareGroupMetadataKey(group_id=group_id)),
    ]
