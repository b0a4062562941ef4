"""The records that a coordinator writes; `replay` reads them.

type  key                      value
1     group, topic, partition  a committed offset
2     group                    a classic group with its members and their assignments, as of a generation
3     group                    a consumer group's epoch and the hash of its topics' metadata
4     group                    only a tombstone: Kafka 4.0 kept the topics' metadata in it
5     group, member            the member, as its requests describe it
6     group                    the target's epoch, and when it was computed
7     group, member            the member's target
8     group, member            the partitions that the member owns
16    group, regex             the topics that a pattern matches
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from coordwire.codec import Message
from coordwire.coordinator.effects import NO_CLIENT_ID
from coordwire.coordinator.model.assignment import Owned, Target
from coordwire.coordinator.model.classic_group import ClassicGroupModel
from coordwire.coordinator.model.consumer_group import ConsumerGroupModel, ConsumerMember
from coordwire.coordinator.model.offsets import NO_EXPIRY, CommittedOffset
from coordwire.coordinator.model.patterns import ResolvedPattern
from coordwire.coordinator.refusal import OperationRefused, fits
from coordwire.enums import ErrorCode
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
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
    ShareGroupMemberMetadataValue,
    StreamsGroupMemberMetadataValue,
)
from coordwire.messages.classic_group_records import MemberMetadata
from coordwire.messages.consumer_group_records import (
    ClassicMemberMetadata,
    ClassicProtocol,
    TopicPartition,
    TopicPartitions,
)

# --- classic groups ---

_CLASSIC_TYPE = 2
_CLASSIC_VERSION = 3


def classic_group_record(group: ClassicGroupModel, assignments: Mapping[str, bytes]) -> LogRecord:
    """The record of a group with all members and their assignments."""
    members = []
    for member in group.members.values():
        if group.protocol is None:
            raise OperationRefused(ErrorCode.UNKNOWN_SERVER_ERROR)
        members.append(
            MemberMetadata(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout=member.rebalance_timeout_ms,
                session_timeout=member.session_timeout_ms,
                subscription=member.metadata(group.protocol),
                assignment=assignments[member.member_id],
            )
        )
    value = GroupMetadataValue(
        protocol_type=group.protocol_type or "", generation=group.generation, protocol=group.protocol,
        leader=group.leader, current_state_timestamp=_state_timestamp(group), members=members,
    )  # fmt: skip
    return _classic_record(group.group_id, value)


def new_classic_group_record(group: ClassicGroupModel) -> LogRecord:
    """The record of a new group, which has no members yet."""
    value = GroupMetadataValue(
        protocol_type="", generation=0, protocol=None, leader=None,
        current_state_timestamp=_state_timestamp(group),
        members=[],
    )  # fmt: skip
    return _classic_record(group.group_id, value)


def classic_tombstone(group_id: str) -> LogRecord:
    return LogRecord(log="consumer_offsets", type=_CLASSIC_TYPE, key=GroupMetadataKey(group=group_id))


def _classic_record(group_id: str, value: GroupMetadataValue) -> LogRecord:
    key = GroupMetadataKey(group=group_id)
    return LogRecord(
        log="consumer_offsets", type=_CLASSIC_TYPE, key=key, value=value, version=_CLASSIC_VERSION
    )


def _state_timestamp(group: ClassicGroupModel) -> int:
    return -1 if group.state_since is None else group.state_since


# --- consumer groups ---


def _consumer_record(record_type: int, key: Message, value: Message | None) -> LogRecord:
    version = None if value is None else 0
    return LogRecord(log="consumer_offsets", type=record_type, key=key, value=value, version=version)


def epoch_record(group_id: str, epoch: int, metadata_hash: int) -> LogRecord:
    value = ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)
    return _consumer_record(3, ConsumerGroupMetadataKey(group_id=group_id), value)


def partition_metadata_tombstone(group_id: str) -> LogRecord:
    return _consumer_record(4, ConsumerGroupPartitionMetadataKey(group_id=group_id), None)


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
    return _consumer_record(
        5, ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id), value
    )


def assignment_epoch_record(group_id: str, epoch: int, assigned_at: int) -> LogRecord:
    value = ConsumerGroupTargetAssignmentMetadataValue(
        assignment_epoch=epoch, assignment_timestamp=assigned_at
    )
    return _consumer_record(6, ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), value)


def target_record(group_id: str, member_id: str, target: Target) -> LogRecord:
    value = ConsumerGroupTargetAssignmentMemberValue(
        topic_partitions=[
            TopicPartition(topic_id=topic_id, partitions=list(partitions))
            for topic_id, partitions in target.items()
        ]
    )
    key = ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id)
    return _consumer_record(7, key, value)


def owned_record(group_id: str, member: ConsumerMember) -> LogRecord:
    value = ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=member.epoch, previous_member_epoch=member.previous_epoch, state=member.state.value,
        assigned_partitions=_topic_partitions(member.owned),
        partitions_pending_revocation=_topic_partitions(member.revoking),
    )  # fmt: skip
    key = ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id)
    return _consumer_record(8, key, value)


def _topic_partitions(owned: Owned) -> list[TopicPartitions]:
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
    return _consumer_record(
        16, ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex), value
    )


def pattern_tombstone(group_id: str, regex: str) -> LogRecord:
    return _consumer_record(
        16, ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex), None
    )


def _owned_tombstone(group_id: str, member_id: str) -> LogRecord:
    return _consumer_record(
        8, ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id), None
    )


def _target_tombstone(group_id: str, member_id: str) -> LogRecord:
    return _consumer_record(
        7, ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), None
    )


def _member_tombstone(group_id: str, member_id: str) -> LogRecord:
    return _consumer_record(5, ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id), None)


def member_tombstones(group_id: str, member_id: str) -> list[LogRecord]:
    """The end of a member, in an order of which no prefix leaves partitions without their owner."""
    return [
        _owned_tombstone(group_id, member_id),
        _target_tombstone(group_id, member_id),
        _member_tombstone(group_id, member_id),
    ]


def consumer_tombstones(group: ConsumerGroupModel, renamed: dict[str, str] | None = None) -> list[LogRecord]:
    """The end of a group. renamed: the new ids of members whose records are under another id by now."""
    group_id = group.group_id
    members = [member.member_id for member in group.members.values()]
    members = [(renamed or {}).get(member_id, member_id) for member_id in members]
    return [
        *(_owned_tombstone(group_id, member_id) for member_id in members),
        *(_target_tombstone(group_id, member_id) for member_id in members),
        _consumer_record(6, ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), None),
        *(_member_tombstone(group_id, member_id) for member_id in members),
        *(pattern_tombstone(group_id, regex) for regex in group.resolved),
        partition_metadata_tombstone(group_id),
        _consumer_record(3, ConsumerGroupMetadataKey(group_id=group_id), None),
    ]


def consumer_group_records(group: ConsumerGroupModel) -> Iterable[LogRecord]:
    """All records of a group, for a log without it."""
    group_id = group.group_id
    members = group.members.values()
    return [
        *(member_record(group_id, member) for member in members),
        epoch_record(group_id, group.epoch, group.metadata_hash),
        *(target_record(group_id, member.member_id, group.target(member.member_id)) for member in members),
        assignment_epoch_record(group_id, group.assignment_epoch, group.assigned_at),
        *(owned_record(group_id, member) for member in members),
    ]


# --- offsets ---

_OFFSET_TYPE = 1
_OFFSET_VERSION = 4
_OFFSET_VERSION_WITH_EXPIRY = 1


def offset_record(group_id: str, topic: str, partition: int, committed: CommittedOffset) -> LogRecord:
    """The record of a commit; one with its own expiry has the old version that has a field for it."""
    value = OffsetCommitValue(
        offset=committed.offset, leader_epoch=committed.leader_epoch, metadata=committed.metadata,
        commit_timestamp=committed.committed_at, expire_timestamp=committed.expires_at,
        topic_id=committed.topic_id,
    )  # fmt: skip
    version = _OFFSET_VERSION if committed.expires_at == NO_EXPIRY else _OFFSET_VERSION_WITH_EXPIRY
    key = OffsetCommitKey(group=group_id, topic=topic, partition=partition)
    return LogRecord(log="consumer_offsets", type=_OFFSET_TYPE, key=key, value=value, version=version)


def offset_tombstone(group_id: str, topic: str, partition: int) -> LogRecord:
    key = OffsetCommitKey(group=group_id, topic=topic, partition=partition)
    return LogRecord(log="consumer_offsets", type=_OFFSET_TYPE, key=key)


# --- limits ---


_MEMBER_VALUES = (
    ConsumerGroupMemberMetadataValue,
    ShareGroupMemberMetadataValue,
    StreamsGroupMemberMetadataValue,
)


def is_unwritable(record: LogRecord) -> bool:
    """Whether a record can't be written: it lacks a client's id, or a member's id is too long."""
    value = record.value
    if not fits(getattr(record.key, "member_id", None)):
        return True
    if isinstance(value, _MEMBER_VALUES):
        return value.client_id is NO_CLIENT_ID
    if isinstance(value, GroupMetadataValue):
        return any(member.client_id is NO_CLIENT_ID or not fits(member.member_id) for member in value.members)
    return False
