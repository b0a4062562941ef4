"""The replay of records into the state, when a shard loads its log and when an operation takes effect.

Rules: tombstones of missing keys change nothing, so that a compacted log loads. Records that contradict
the state are refused, as by Apache Kafka: a group ends after its members, a member after its partitions. A
transaction's offset takes the place of an older one only; the log's offsets say which of two commits is
later, so that a compacted log leads to the same state.
"""

from __future__ import annotations

from dataclasses import replace

from coordwire.codec import Message
from coordwire.coordinator.log_entries import LogEntry, TransactionMarker
from coordwire.coordinator.model.assignment import (
    NOTHING_OWNED,
    Owned,
    owned_from_lists,
    target_from_lists,
)
from coordwire.coordinator.model.classic_group import ClassicGroupModel, ClassicMember, GroupState
from coordwire.coordinator.model.consumer_group import ConsumerGroupModel
from coordwire.coordinator.model.consumer_member import LEFT, ClassicSide, ConsumerMember, MemberState
from coordwire.coordinator.model.offsets import CommittedOffset
from coordwire.coordinator.model.patterns import ResolvedPattern
from coordwire.coordinator.refusal import OperationRefused
from coordwire.coordinator.state import State
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
    LegacyOffsetCommitKey,
    LegacyOffsetCommitValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from coordwire.messages.consumer_group_records import TopicPartitions

__all__ = ["replay", "replay_end", "replay_entry"]


# --- any record ---

_FORGOTTEN = frozenset({9})
"""Record types that no release has read since 4.1: the partition metadata of share groups."""


def replay_entry(state: State, entry: LogEntry) -> None:
    """Replay a record or a marker of a log.

    Raises `OperationRefused` for one that contradicts earlier ones, and for a value of an unknown version,
    without which later records would have another meaning.
    """
    record = entry.record
    if isinstance(record, TransactionMarker):
        replay_end(state, entry.producer_id, committed=record.committed)
    elif record.unknown is not None and isinstance(record.key, Message) and record.type not in _FORGOTTEN:
        raise OperationRefused(ErrorCode.UNKNOWN_SERVER_ERROR)
    else:
        replay(state, record, entry.offset, entry.producer_id)


def replay(state: State, record: LogRecord, offset: int, producer_id: int = -1) -> None:
    """Replay one record at an offset of the log; an unknown type changes nothing."""
    match record.key, record.value:
        case GroupMetadataKey(group=group_id), None:
            state.groups.pop(group_id)
        case GroupMetadataKey(group=group_id), GroupMetadataValue() as value:
            state.groups[group_id] = _classic_group(group_id, value)
        case OffsetCommitKey() as key, (OffsetCommitValue() | None) as value:
            _replay_offset(state, key, value, offset, producer_id)
        case LegacyOffsetCommitKey() as old_key, (LegacyOffsetCommitValue() | None) as old:
            _replay_legacy_offset(state, old_key, old, offset, producer_id)
        case _:
            _replay_consumer_group(state, record.key, record.value)


# --- classic groups ---


def _classic_group(group_id: str, value: GroupMetadataValue) -> ClassicGroupModel:
    """The group of a record; its members support the one protocol that the record names."""
    since = value.current_state_timestamp
    group = ClassicGroupModel(
        group_id,
        None if since == -1 else since,
        state=GroupState.STABLE if value.members else GroupState.EMPTY,
        generation=value.generation,
        protocol_type=value.protocol_type or None,
        protocol=value.protocol,
        leader=value.leader,
    )
    for member in value.members:
        rebalance = member.rebalance_timeout
        group.add(
            ClassicMember(
                member_id=member.member_id,
                instance_id=member.group_instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout_ms=member.session_timeout if rebalance == -1 else rebalance,
                session_timeout_ms=member.session_timeout,
                protocol_type=value.protocol_type,
                protocols=((value.protocol or "", member.subscription),),
                assignment=member.assignment,
            )
        )
    group.topics = group.computed_topics()
    return group


# --- consumer groups ---


def _replay_consumer_group(state: State, key: Message | bytes | None, value: Message | bytes | None) -> None:
    """Replay a record of a consumer group; other records change nothing."""
    match key, value:
        case ConsumerGroupMetadataKey(group_id=group_id), ConsumerGroupMetadataValue() as found:
            _consumer_group(state, group_id).set_epoch(found.epoch, found.metadata_hash)
        case ConsumerGroupMetadataKey(group_id=group_id), None:
            _end_consumer_group(state, group_id)
        case ConsumerGroupPartitionMetadataKey(group_id=group_id), None:
            group = _known_consumer_group(state, group_id)
            if group is not None:
                group.set_partition_metadata(False)
        case ConsumerGroupPartitionMetadataKey(group_id=group_id), Message():
            _consumer_group(state, group_id).set_partition_metadata(True)
        case ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id), (
            ConsumerGroupMemberMetadataValue() | None
        ) as found:
            _replay_member(state, group_id, member_id, found)
        case ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), (
            ConsumerGroupTargetAssignmentMetadataValue() | None
        ) as found:
            _replay_assignment(state, group_id, found)
        case ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), (
            ConsumerGroupTargetAssignmentMemberValue() | None
        ) as found:
            if found is not None:
                _consumer_group(state, group_id).put_target(
                    member_id, target_from_lists(found.topic_partitions)
                )
            elif (group := _known_consumer_group(state, group_id)) is not None:
                group.targets.pop(member_id)
        case ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id), (
            ConsumerGroupCurrentMemberAssignmentValue() | None
        ) as found:
            _replay_owned(state, group_id, member_id, found)
        case ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex), (
            ConsumerGroupRegularExpressionValue() | None
        ) as found:
            _replay_pattern(state, group_id, regex, found)


def _consumer_group(state: State, group_id: str) -> ConsumerGroupModel:
    """Find or create the group of a record; it may replace a group that only has offsets."""
    group = state.groups.get(group_id)
    if isinstance(group, ConsumerGroupModel):
        return group
    if isinstance(group, ClassicGroupModel) and not group.is_simple:
        raise OperationRefused(ErrorCode.UNKNOWN_SERVER_ERROR)
    group = ConsumerGroupModel(group_id, state.snapshots)
    state.groups[group_id] = group
    return group


def _known_consumer_group(state: State, group_id: str) -> ConsumerGroupModel | None:
    group = state.groups.get(group_id)
    return None if group is None else _consumer_group(state, group_id)


def _contradiction() -> OperationRefused:
    return OperationRefused(ErrorCode.UNKNOWN_SERVER_ERROR)


def _end_consumer_group(state: State, group_id: str) -> None:
    group = _known_consumer_group(state, group_id)
    if group is None:
        return
    if group.members or group.targets or group.assignment_epoch != -1:
        raise _contradiction()
    state.groups.pop(group_id)


def _replay_member(
    state: State, group_id: str, member_id: str, value: ConsumerGroupMemberMetadataValue | None
) -> None:
    if value is None:
        group = _known_consumer_group(state, group_id)
        member = None if group is None else group.members.get(member_id)
        if group is None or member is None:
            return
        if member.epoch != LEFT or member_id in group.targets:
            raise _contradiction()
        group.remove_member(member_id)
        return
    group = _consumer_group(state, group_id)
    classic = value.classic_member_metadata
    side = None
    if classic is not None:
        protocols = tuple((protocol.name, protocol.metadata) for protocol in classic.supported_protocols)
        side = ClassicSide(classic.session_timeout_ms, protocols)
    group.put_member(
        replace(
            group.members.get(member_id) or ConsumerMember(member_id),
            instance_id=value.instance_id,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            topics=tuple(sorted(set(value.subscribed_topic_names))),
            regex=value.subscribed_topic_regex,
            rebalance_timeout_ms=value.rebalance_timeout_ms,
            assignor=value.server_assignor,
            classic=side,
        )
    )


def _replay_assignment(
    state: State, group_id: str, value: ConsumerGroupTargetAssignmentMetadataValue | None
) -> None:
    if value is not None:
        _consumer_group(state, group_id).set_assignment(value.assignment_epoch, value.assignment_timestamp)
        return
    group = _known_consumer_group(state, group_id)
    if group is None:
        return
    if group.targets:
        raise _contradiction()
    group.clear_assignment()


def _replay_owned(
    state: State, group_id: str, member_id: str, value: ConsumerGroupCurrentMemberAssignmentValue | None
) -> None:
    if value is None:
        group = _known_consumer_group(state, group_id)
        member = None if group is None else group.members.get(member_id)
        if group is not None and member is not None:
            group.put_member(
                replace(member, epoch=LEFT, previous_epoch=LEFT, owned=NOTHING_OWNED, revoking=NOTHING_OWNED)
            )
        return
    group = _consumer_group(state, group_id)
    group.put_member(
        replace(
            group.members.get(member_id) or ConsumerMember(member_id),
            epoch=value.member_epoch,
            previous_epoch=value.previous_member_epoch,
            state=MemberState.of(value.state),
            owned=_owned(value.assigned_partitions, value.member_epoch),
            revoking=_owned(value.partitions_pending_revocation, value.member_epoch),
        )
    )


def _owned(topics: list[TopicPartitions], epoch: int) -> Owned:
    return owned_from_lists(
        ((topic.topic_id, topic.partitions, topic.assignment_epochs) for topic in topics), epoch
    )


def _replay_pattern(
    state: State, group_id: str, regex: str, value: ConsumerGroupRegularExpressionValue | None
) -> None:
    if value is not None:
        topics = tuple(sorted(set(value.topics)))
        _consumer_group(state, group_id).put_resolved(
            regex, ResolvedPattern(topics, value.version, value.timestamp)
        )
    elif (group := _known_consumer_group(state, group_id)) is not None:
        group.put_resolved(regex, None)


# --- offsets ---

_NO_PRODUCER = -1


def _replay_offset(
    state: State, key: OffsetCommitKey, value: OffsetCommitValue | None, offset: int, producer_id: int
) -> None:
    """Replay a commit or a tombstone at this offset of the log."""
    group_id, topic, partition = key.group, key.topic, key.partition
    if value is None:
        state.offsets.remove(group_id, topic, partition)
        state.pending_offsets.remove(group_id, topic, partition)
        return
    if group_id not in state.groups:
        state.groups[group_id] = ClassicGroupModel(group_id, state.now)
    committed = CommittedOffset(
        value.offset, value.leader_epoch, value.metadata, value.commit_timestamp, value.expire_timestamp,
        value.topic_id, offset,
    )  # fmt: skip
    if producer_id == _NO_PRODUCER:
        state.offsets.put(group_id, topic, partition, committed)
    else:
        state.pending_offsets.put(producer_id, group_id, topic, partition, committed)


def _replay_legacy_offset(
    state: State,
    key: LegacyOffsetCommitKey,
    value: LegacyOffsetCommitValue | None,
    offset: int,
    producer_id: int,
) -> None:
    """Replay a record of the format before that of Kafka 0.8.2."""
    current_value = None
    if value is not None:
        current_value = OffsetCommitValue(
            offset=value.offset, metadata=value.metadata, commit_timestamp=value.commit_timestamp
        )
    current_key = OffsetCommitKey(group=key.group, topic=key.topic, partition=key.partition)
    _replay_offset(state, current_key, current_value, offset, producer_id)


def replay_end(state: State, producer_id: int, *, committed: bool) -> None:
    """End a producer's transaction; one without offsets here changes nothing."""
    ended = state.pending_offsets.end(producer_id)
    if ended is None or not committed:
        return
    for group_id, offsets in ended.groups.items():
        for (topic, partition), offset in offsets.items():
            known = state.offsets.find(group_id, topic, partition)
            if known is None or offset.log_offset > known.log_offset:
                state.offsets.put(group_id, topic, partition, offset)
