"""A consumer group's state from its records: when a shard loads, and when an operation's take effect.

Rules: tombstones of what is not there change nothing, so that a compacted log loads. Records that contradict
the state are refused, as by Apache Kafka: a group ends after its members, a member after what it owns.
"""

from __future__ import annotations

from dataclasses import replace

from coordwire.codec import Message
from coordwire.coordinator.model.assignment import (
    NOTHING_OWNED,
    Owned,
    owned_from_lists,
    target_from_lists,
)
from coordwire.coordinator.model.classic_group import ClassicGroupModel
from coordwire.coordinator.model.consumer_group import ConsumerGroupModel, ResolvedPattern
from coordwire.coordinator.model.consumer_member import LEFT, ClassicSide, ConsumerMember
from coordwire.coordinator.model.consumer_states import MemberState
from coordwire.coordinator.refusal import OperationRefused
from coordwire.coordinator.state import State
from coordwire.enums import ErrorCode
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
from coordwire.messages.consumer_group_records import TopicPartitions

__all__ = ["replay_consumer_group"]


def replay_consumer_group(state: State, key: Message | bytes | None, value: Message | bytes | None) -> None:
    """Take up a record of a consumer group; others change nothing."""
    match key, value:
        case ConsumerGroupMetadataKey(group_id=group_id), ConsumerGroupMetadataValue() as found:
            _group(state, group_id).set_epoch(found.epoch, found.metadata_hash)
        case ConsumerGroupMetadataKey(group_id=group_id), None:
            _end(state, group_id)
        case ConsumerGroupPartitionMetadataKey(group_id=group_id), None:
            group = _known(state, group_id)
            if group is not None:
                group.set_partition_metadata(False)
        case ConsumerGroupPartitionMetadataKey(group_id=group_id), Message():
            _group(state, group_id).set_partition_metadata(True)
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
                _group(state, group_id).put_target(member_id, target_from_lists(found.topic_partitions))
            elif (group := _known(state, group_id)) is not None:
                group.targets.pop(member_id)
        case ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id), (
            ConsumerGroupCurrentMemberAssignmentValue() | None
        ) as found:
            _replay_owned(state, group_id, member_id, found)
        case ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex), (
            ConsumerGroupRegularExpressionValue() | None
        ) as found:
            _replay_pattern(state, group_id, regex, found)


def _group(state: State, group_id: str) -> ConsumerGroupModel:
    """The group, which a record of its own creates; it may take the place of a group of offsets only."""
    group = state.groups.get(group_id)
    if isinstance(group, ConsumerGroupModel):
        return group
    if isinstance(group, ClassicGroupModel) and not group.is_simple:
        raise OperationRefused(ErrorCode.UNKNOWN_SERVER_ERROR)
    made = ConsumerGroupModel(group_id, state.snapshots)
    state.groups[group_id] = made
    return made


def _known(state: State, group_id: str) -> ConsumerGroupModel | None:
    group = state.groups.get(group_id)
    return None if group is None else _group(state, group_id)


def _refused() -> OperationRefused:
    return OperationRefused(ErrorCode.UNKNOWN_SERVER_ERROR)


def _end(state: State, group_id: str) -> None:
    group = _known(state, group_id)
    if group is None:
        return
    if group.members or group.targets or group.assignment_epoch != -1:
        raise _refused()
    state.groups.pop(group_id)


def _replay_member(
    state: State, group_id: str, member_id: str, value: ConsumerGroupMemberMetadataValue | None
) -> None:
    if value is None:
        group = _known(state, group_id)
        member = None if group is None else group.members.get(member_id)
        if group is None or member is None:
            return
        if member.epoch != LEFT or member_id in group.targets:
            raise _refused()
        group.remove_member(member_id)
        return
    group = _group(state, group_id)
    classic = value.classic_member_metadata
    side = None
    if classic is not None:
        protocols = tuple((one.name, one.metadata) for one in classic.supported_protocols)
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
        _group(state, group_id).set_assignment(value.assignment_epoch, value.assignment_timestamp)
        return
    group = _known(state, group_id)
    if group is None:
        return
    if group.targets:
        raise _refused()
    group.clear_assignment()


def _replay_owned(
    state: State, group_id: str, member_id: str, value: ConsumerGroupCurrentMemberAssignmentValue | None
) -> None:
    if value is None:
        group = _known(state, group_id)
        member = None if group is None else group.members.get(member_id)
        if group is not None and member is not None:
            group.put_member(
                replace(member, epoch=LEFT, previous_epoch=LEFT, owned=NOTHING_OWNED, revoking=NOTHING_OWNED)
            )
        return
    group = _group(state, group_id)
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
    return owned_from_lists(((one.topic_id, one.partitions, one.assignment_epochs) for one in topics), epoch)


def _replay_pattern(
    state: State, group_id: str, regex: str, value: ConsumerGroupRegularExpressionValue | None
) -> None:
    if value is not None:
        topics = tuple(sorted(set(value.topics)))
        _group(state, group_id).put_resolved(regex, ResolvedPattern(topics, value.version, value.timestamp))
    elif (group := _known(state, group_id)) is not None:
        group.put_resolved(regex, None)
