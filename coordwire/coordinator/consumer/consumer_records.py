"""The records of a consumer group, one a fact: made here, and taken up again by `replay`.

type  key            value
3     group          epoch, hash of the topics' metadata
4     group          only a tombstone: Kafka 4.0 kept the topics' metadata in it
5     group, member  what the member said of itself
6     group          epoch of the target, when it was computed
7     group, member  the member's target
8     group, member  what the member owns
16    group, regex   the topics that a pattern matches
"""

from __future__ import annotations

from collections.abc import Iterable

from coordwire.codec import Message
from coordwire.coordinator.model.assignment import Owned, Target
from coordwire.coordinator.model.consumer_group import ConsumerGroupModel, ResolvedPattern
from coordwire.coordinator.model.consumer_member import ConsumerMember
from coordwire.logs import LogRecord
from coordwire.messages import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
)
from coordwire.messages.consumer_group_records import (
    ClassicMemberMetadata,
    ClassicProtocol,
    TopicPartition,
    TopicPartitions,
)

__all__ = [
    "assignment_epoch_record",
    "epoch_record",
    "group_records",
    "group_tombstones",
    "member_record",
    "member_tombstones",
    "owned_record",
    "partition_metadata_tombstone",
    "pattern_record",
    "pattern_tombstone",
    "target_record",
]


def _record(record_type: int, key: Message, value: Message | None) -> LogRecord:
    version = None if value is None else 0
    return LogRecord(log="consumer_offsets", type=record_type, key=key, value=value, version=version)


def epoch_record(group_id: str, epoch: int, metadata_hash: int) -> LogRecord:
    value = ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)
    return _record(3, ConsumerGroupMetadataKey(group_id=group_id), value)


def partition_metadata_tombstone(group_id: str) -> LogRecord:
    return _record(4, ConsumerGroupPartitionMetadataKey(group_id=group_id), None)


def member_record(group_id: str, member: ConsumerMember) -> LogRecord:
    classic = None
    if member.classic is not None:
        classic = ClassicMemberMetadata(
            session_timeout_ms=member.classic.session_timeout_ms,
            supported_protocols=[
                ClassicProtocol(name=name, metadata=metadata) for name, metadata in member.classic.protocols
            ],
        )
    value = ConsumerGroupMemberMetadataValue(
        instance_id=member.instance_id, rack_id=member.rack_id, client_id=member.client_id,
        client_host=member.client_host, subscribed_topic_names=list(member.topics),
        subscribed_topic_regex=member.regex, rebalance_timeout_ms=member.rebalance_timeout_ms,
        server_assignor=member.assignor, classic_member_metadata=classic,
    )  # fmt: skip
    return _record(5, ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id), value)


def assignment_epoch_record(group_id: str, epoch: int, assigned_at: int) -> LogRecord:
    value = ConsumerGroupTargetAssignmentMetadataValue(
        assignment_epoch=epoch, assignment_timestamp=assigned_at
    )
    return _record(6, ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), value)


def target_record(group_id: str, member_id: str, target: Target) -> LogRecord:
    value = ConsumerGroupTargetAssignmentMemberValue(
        topic_partitions=[
            TopicPartition(topic_id=topic_id, partitions=list(partitions))
            for topic_id, partitions in target.items()
        ]
    )
    key = ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id)
    return _record(7, key, value)


def owned_record(group_id: str, member: ConsumerMember) -> LogRecord:
    value = ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=member.epoch, previous_member_epoch=member.previous_epoch, state=member.state.value,
        assigned_partitions=_listed(member.owned), partitions_pending_revocation=_listed(member.revoking),
    )  # fmt: skip
    key = ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id)
    return _record(8, key, value)


def _listed(owned: Owned) -> list[TopicPartitions]:
    return [
        TopicPartitions(
            topic_id=topic_id, partitions=list(partitions), assignment_epochs=list(partitions.values())
        )
        for topic_id, partitions in owned.items()
    ]


def pattern_record(group_id: str, regex: str, resolved: ResolvedPattern) -> LogRecord:
    value = ConsumerGroupRegularExpressionValue(
        topics=list(resolved.topics), version=resolved.version, timestamp=resolved.timestamp
    )
    return _record(16, ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex), value)


def pattern_tombstone(group_id: str, regex: str) -> LogRecord:
    return _record(16, ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex), None)


def _owned_tombstone(group_id: str, member_id: str) -> LogRecord:
    return _record(8, ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id), None)


def _target_tombstone(group_id: str, member_id: str) -> LogRecord:
    return _record(7, ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), None)


def _member_tombstone(group_id: str, member_id: str) -> LogRecord:
    return _record(5, ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id), None)


def member_tombstones(group_id: str, member_id: str) -> list[LogRecord]:
    """A member's end; in this order, so that no prefix leaves partitions without their owner."""
    return [
        _owned_tombstone(group_id, member_id),
        _target_tombstone(group_id, member_id),
        _member_tombstone(group_id, member_id),
    ]


def group_tombstones(group: ConsumerGroupModel, renamed: dict[str, str] | None = None) -> list[LogRecord]:
    """A group's end. renamed: members whose records are under another id by now."""
    group_id = group.group_id
    members = [member.member_id for member in group.members_in_order()]
    members = [(renamed or {}).get(member_id, member_id) for member_id in members]
    return [
        *(_owned_tombstone(group_id, member_id) for member_id in members),
        *(_target_tombstone(group_id, member_id) for member_id in members),
        _record(6, ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), None),
        *(_member_tombstone(group_id, member_id) for member_id in members),
        *(pattern_tombstone(group_id, regex) for regex in group.resolved),
        partition_metadata_tombstone(group_id),
        _record(3, ConsumerGroupMetadataKey(group_id=group_id), None),
    ]


def group_records(group: ConsumerGroupModel) -> Iterable[LogRecord]:
    """A whole group, for a log that does not have it."""
    group_id = group.group_id
    members = group.members_in_order()
    return [
        *(member_record(group_id, member) for member in members),
        epoch_record(group_id, group.epoch, group.metadata_hash),
        *(target_record(group_id, one.member_id, group.target(one.member_id)) for one in members),
        assignment_epoch_record(group_id, group.assignment_epoch, group.assigned_at),
        *(owned_record(group_id, member) for member in members),
    ]
