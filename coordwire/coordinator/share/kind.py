"""Share groups as a shard has them beside other kinds: sessions, listing, replay of records, descriptions,
and requests: checks that need no group, and the forms of answers. They have no offsets of consumers: requests
for these are refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from uuid import UUID

from coordwire.codec import Message
from coordwire.coordinator.epoch_groups import (
    described_groups,
    refused_heartbeat,
    replay_assignment_epoch,
    replay_leaving,
)
from coordwire.coordinator.hash_tables import HashMap, HashSet
from coordwire.coordinator.model.assignment import NO_TARGET, target_from_lists
from coordwire.coordinator.model.offsets import CommittedOffset
from coordwire.coordinator.model.share_group import (
    LEFT,
    InitializedTopic,
    InitializedTopics,
    PartitionStates,
    ShareGroupModel,
    ShareMember,
)
from coordwire.coordinator.refusal import OperationRefused, contradiction, error_text
from coordwire.coordinator.share.heartbeat import (
    keep_alive,
    share_group_heartbeat,
    steady_heartbeat,
    validate_heartbeat,
)
from coordwire.coordinator.share.offsets import alter_offsets, delete_offsets, describe_offsets
from coordwire.coordinator.share.partition_states import deletion_of_group, without_topics
from coordwire.coordinator.share.records import group_tombstones
from coordwire.coordinator.share.simple_assignor import SIMPLE
from coordwire.coordinator.state import GroupCommit, GroupKind, State
from coordwire.coordinator.topics import TopicsImage
from coordwire.coordinator.writes import Handler, ImmediateRequest, IncomingRequest
from coordwire.enums import ErrorCode
from coordwire.logs import LogRecord
from coordwire.messages import (
    AlterShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequest,
    ShareGroupCurrentMemberAssignmentKey,
    ShareGroupCurrentMemberAssignmentValue,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
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
from coordwire.messages.list_groups import ListedGroup
from coordwire.messages.share_group_describe import Assignment, DescribedGroup, Member, TopicPartitions
from coordwire.messages.share_group_records import TopicPartitionsInfo

SHARE_KEYS: tuple[type[Message], ...] = (
    ShareGroupMemberMetadataKey,
    ShareGroupMetadataKey,
    ShareGroupTargetAssignmentMetadataKey,
    ShareGroupTargetAssignmentMemberKey,
    ShareGroupCurrentMemberAssignmentKey,
    ShareGroupStatePartitionMetadataKey,
)


class ShareKind(GroupKind[ShareGroupModel]):
    """Groups of KIP-932's protocol."""

    name = ShareGroupModel.kind
    record_keys = SHARE_KEYS
    expires = False

    def replay(self, state: State, key: object, value: object) -> None:
        replay_share_group(state, key, value)

    def resume(self, state: State, group: ShareGroupModel) -> None:
        """Restart the members' sessions."""
        timeout_ms = state.config.of_share_group(group.group_id).session_timeout_ms
        for member in group.members.values():
            keep_alive(state, group.group_id, member.member_id, timeout_ms)

    def list_entry(self, group: ShareGroupModel) -> ListedGroup:
        return ListedGroup(
            group_id=group.group_id, protocol_type=self.name, group_state=group.committed_state.value,
            group_type=self.name,
        )  # fmt: skip

    def deletion_error(self, group: ShareGroupModel) -> int:
        return 0 if group.is_empty else int(ErrorCode.NON_EMPTY_GROUP)

    def deletion_request(
        self, state: State, group: ShareGroupModel, records: list[LogRecord]
    ) -> Message | None:
        return deletion_of_group(state, group, records)

    def without_topics(self, state: State, group: ShareGroupModel, topics: set[UUID]) -> LogRecord | None:
        return without_topics(state, group, topics)

    def tombstones(self, state: State, group: ShareGroupModel) -> list[LogRecord]:
        return group_tombstones(group)

    def subscribes_to_any(self, group: ShareGroupModel, names: Iterable[str]) -> bool:
        return any(name in group.topics for name in names)

    def refresh(self, group: ShareGroupModel) -> None:
        group.refresh.request()

    # --- offsets of consumers ---

    def validate_commit(self, state: State, group: ShareGroupModel, commit: GroupCommit) -> None:
        raise _not_a_consumer_group(group)

    def validate_fetch(
        self, group: ShareGroupModel, member_id: str | None, epoch: int, *, stable: bool
    ) -> None:
        raise _not_a_consumer_group(group)

    def validate_deletion_of_offsets(self, group: ShareGroupModel) -> None:
        raise _not_a_consumer_group(group)

    def retention_start(self, group: ShareGroupModel, committed: CommittedOffset) -> None:
        """None: a share group has no such offsets."""


def _not_a_consumer_group(group: ShareGroupModel) -> OperationRefused:
    return OperationRefused(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group.group_id} is not a consumer group.")


# --- replay ---


def replay_share_group(state: State, key: object, value: object) -> None:
    """Replay a record with one of `SHARE_KEYS`."""
    group_id: str = getattr(key, "group_id", "")
    group = state.groups.get(group_id)
    if group is None:
        if value is None:
            return
        group = ShareGroupModel(group_id, state.snapshots)
        state.groups[group_id] = group
    if not isinstance(group, ShareGroupModel):
        raise contradiction()
    match key, value:
        case ShareGroupMetadataKey(), ShareGroupMetadataValue() as content:
            group.set_epoch(content.epoch, content.metadata_hash)
        case ShareGroupMetadataKey(), None:
            if group.members or group.targets or group.assignment_epoch != -1:
                raise contradiction()
            state.groups.pop(group_id)
        case ShareGroupMemberMetadataKey(member_id=member_id), (
            ShareGroupMemberMetadataValue() | None
        ) as content:
            _replay_member(group, member_id, content)
        case ShareGroupTargetAssignmentMetadataKey(), (
            ShareGroupTargetAssignmentMetadataValue() | None
        ) as content:
            replay_assignment_epoch(group, content)
        case ShareGroupTargetAssignmentMemberKey(member_id=member_id), (
            ShareGroupTargetAssignmentMemberValue() | None
        ) as content:
            if content is None:
                group.targets.pop(member_id)
            else:
                group.targets[member_id] = target_from_lists(content.topic_partitions)
        case ShareGroupCurrentMemberAssignmentKey(member_id=member_id), (
            ShareGroupCurrentMemberAssignmentValue() | None
        ) as content:
            _replay_assignment(group, member_id, content)
        case ShareGroupStatePartitionMetadataKey(), (
            ShareGroupStatePartitionMetadataValue() | None
        ) as content:
            group.set_states(None if content is None else _states(content, state.now))


def _replay_member(
    group: ShareGroupModel, member_id: str, value: ShareGroupMemberMetadataValue | None
) -> None:
    if value is None:
        replay_leaving(group, member_id)
        return
    group.put_member(
        replace(
            group.members.get(member_id) or ShareMember(member_id),
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            topics=tuple(sorted(set(value.subscribed_topic_names))),
            named=(),
        )
    )


def _replay_assignment(
    group: ShareGroupModel, member_id: str, value: ShareGroupCurrentMemberAssignmentValue | None
) -> None:
    member = group.members.get(member_id)
    if value is not None:
        group.put_member(
            replace(
                member or ShareMember(member_id),
                epoch=value.member_epoch,
                previous_epoch=value.previous_member_epoch,
                state=value.state if value.state in (0, 1, 2) else 127,
                assigned=target_from_lists(value.assigned_partitions),
            )
        )
    elif member is not None:
        group.put_member(replace(member, epoch=LEFT, previous_epoch=LEFT, assigned=NO_TARGET))


def _states(value: ShareGroupStatePartitionMetadataValue, now: int) -> PartitionStates:
    return PartitionStates(
        _topics(value.initializing_topics, now),
        _topics(value.initialized_topics, now),
        HashSet.of(topic.topic_id for topic in value.deleting_topics),
    )


def _topics(topics: list[TopicPartitionsInfo], now: int) -> InitializedTopics:
    return HashMap.of(
        (topic.topic_id, InitializedTopic(topic.topic_name, HashSet.copy_of(topic.partitions), now))
        for topic in topics
    )


# --- descriptions ---


def _described(state: State, group: ShareGroupModel) -> DescribedGroup:
    epoch, assignment_epoch = group.committed_epochs
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.committed_state.value,
        group_epoch=epoch,
        assignment_epoch=assignment_epoch,
        assignor_name=SIMPLE,
        members=[_member(state.topics, member) for _, member in group.members.committed_items()],
    )


def _member(image: TopicsImage, member: ShareMember) -> Member:
    assigned = []
    for topic_id, partitions in member.assigned.items():
        topic = image.find_id(topic_id)
        if topic is not None:
            assigned.append(
                TopicPartitions(topic_id=topic_id, topic_name=topic.name, partitions=list(partitions))
            )
    return Member(
        member_id=member.member_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=list(HashSet.copy_of(member.topics)),
        assignment=Assignment(topic_partitions=assigned),
    )


# --- handlers ---


def _describe_groups(call: IncomingRequest) -> None:
    refusal = error_text(call.error) if call.error else None
    groups = described_groups(call, ShareGroupModel, DescribedGroup, _described, refusal)
    call.reply.send(ShareGroupDescribeResponse(groups=groups))


IMMEDIATE: Mapping[type[Message], ImmediateRequest] = {
    ShareGroupHeartbeatRequest: ImmediateRequest(
        validate_heartbeat,
        share_group_heartbeat,
        partial(refused_heartbeat, ShareGroupHeartbeatResponse),
        steady_heartbeat,
    ),
}

HANDLERS: Mapping[type[Message], Handler] = {
    ShareGroupDescribeRequest: _describe_groups,
    AlterShareGroupOffsetsRequest: alter_offsets,
    DeleteShareGroupOffsetsRequest: delete_offsets,
    DescribeShareGroupOffsetsRequest: describe_offsets,
}
