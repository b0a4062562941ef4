"""Consumer groups as a shard has them beside other kinds: listing, commits, expiry, replay of records,
descriptions, and requests: checks that need no group, and the forms of answers.

Members may commit and fetch in their epochs (KIP-848). A commit of an older epoch counts while the member has
owned the partition since that epoch or longer (KIP-1251). A member of the classic protocol gets
ILLEGAL_GENERATION where others get STALE_MEMBER_EPOCH. ConsumerGroupDescribe gives a consumer group as of the
last durable write.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from uuid import UUID

from coordwire.codec import Message
from coordwire.coordinator.consumer import sessions
from coordwire.coordinator.consumer.heartbeat import (
    consumer_group_heartbeat,
    steady_heartbeat,
    validate_heartbeat,
)
from coordwire.coordinator.epoch_groups import (
    check_version,
    committing_member,
    described_groups,
    fetching_member,
    find_recorded,
    refused_heartbeat,
    replay_assignment_epoch,
    replay_leaving,
)
from coordwire.coordinator.hash_tables import HashMap, HashSet
from coordwire.coordinator.model.assignment import (
    NO_TARGET,
    NOTHING_OWNED,
    Owned,
    owned_from_lists,
    target_from_lists,
)
from coordwire.coordinator.model.classic_group import CONSUMER_PROTOCOL_TYPE
from coordwire.coordinator.model.consumer_group import (
    LEFT,
    ClassicSide,
    ConsumerGroupModel,
    ConsumerMember,
    MemberState,
)
from coordwire.coordinator.model.offsets import CommittedOffset
from coordwire.coordinator.model.patterns import ResolvedPattern
from coordwire.coordinator.records import consumer_tombstones
from coordwire.coordinator.refusal import OperationRefused, contradiction
from coordwire.coordinator.state import GroupCommit, GroupKind, PartitionCheck, State
from coordwire.coordinator.topics import TopicsImage
from coordwire.coordinator.writes import Handler, ImmediateRequest, IncomingRequest
from coordwire.enums import ErrorCode, GroupMemberType
from coordwire.logs import LogRecord
from coordwire.messages import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
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
from coordwire.messages.consumer_group_describe import Assignment, DescribedGroup, Member
from coordwire.messages.consumer_group_describe import TopicPartitions as DescribedPartitions
from coordwire.messages.consumer_group_records import TopicPartitions
from coordwire.messages.list_groups import ListedGroup

CONSUMER_KEYS: tuple[type[Message], ...] = (
    ConsumerGroupMetadataKey,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupRegularExpressionKey,
)


class ConsumerKind(GroupKind[ConsumerGroupModel]):
    """Groups of KIP-848's protocol."""

    name = ConsumerGroupModel.kind
    record_keys = CONSUMER_KEYS

    def replay(self, state: State, key: object, value: object) -> None:
        replay_consumer_group(state, key, value)

    def resume(self, state: State, group: ConsumerGroupModel) -> None:
        """Begin members' sessions again, and their time to give up partitions."""
        for member in group.members.values():
            sessions.keep_alive(state, group.group_id, member.member_id)
            if member.state is MemberState.UNREVOKED_PARTITIONS:
                sessions.limit_revocation(state, group.group_id, member)

    def list_entry(self, group: ConsumerGroupModel) -> ListedGroup:
        return ListedGroup(
            group_id=group.group_id, protocol_type=CONSUMER_PROTOCOL_TYPE,
            group_state=group.committed_facts()[0].value, group_type=self.name,
        )  # fmt: skip

    def tombstones(self, state: State, group: ConsumerGroupModel) -> list[LogRecord]:
        return consumer_tombstones(group)

    def subscribes_to_any(self, group: ConsumerGroupModel, names: Iterable[str]) -> bool:
        return group.subscribes_to_any(names)

    def refresh(self, group: ConsumerGroupModel) -> None:
        group.refresh.request()

    # --- offsets ---

    def validate_commit(
        self, state: State, group: ConsumerGroupModel, commit: GroupCommit
    ) -> PartitionCheck | None:
        epoch = commit.generation
        member = committing_member(group, commit)
        if member is None:
            return None
        if member.classic is None:
            check_version(commit)
        if epoch > member.epoch:
            raise _stale(member)
        return None if epoch == member.epoch else _check_of_older_epoch(member, epoch)

    def validate_fetch(
        self, group: ConsumerGroupModel, member_id: str | None, epoch: int, *, stable: bool
    ) -> None:
        member = fetching_member(group, member_id, epoch, stable=stable)
        if member is not None and member.epoch != epoch:
            raise _stale(member)

    def retention_start(self, group: ConsumerGroupModel, committed: CommittedOffset) -> int:
        return committed.committed_at


def _stale(member: ConsumerMember) -> OperationRefused:
    return OperationRefused(
        ErrorCode.STALE_MEMBER_EPOCH if member.classic is None else ErrorCode.ILLEGAL_GENERATION
    )


def _check_of_older_epoch(member: ConsumerMember, epoch: int) -> PartitionCheck:
    unowned: Mapping[int, int] = {}

    def check(topic: str, topic_id: UUID, partition: int) -> None:
        since = member.owned.get(topic_id, unowned).get(partition)
        if since is None:
            since = member.revoking.get(topic_id, unowned).get(partition)
        if since is None or epoch < since:
            raise _stale(member)

    return check


# --- replay ---


def replay_consumer_group(state: State, key: object, value: object) -> None:
    """Replay a record with one of `CONSUMER_KEYS`."""
    group = find_recorded(state, key, value, ConsumerGroupModel)
    if group is None:
        return
    match key, value:
        case ConsumerGroupMetadataKey(), ConsumerGroupMetadataValue() as content:
            group.set_epoch(content.epoch, content.metadata_hash)
        case ConsumerGroupMetadataKey(group_id=group_id), None:
            if group.members or group.targets or group.assignment_epoch != -1:
                raise contradiction()
            state.groups.pop(group_id)
        case ConsumerGroupPartitionMetadataKey(), (Message() | None):
            group.set_partition_metadata(value is not None)
        case ConsumerGroupMemberMetadataKey(member_id=member_id), (
            ConsumerGroupMemberMetadataValue() | None
        ) as content:
            _replay_member(state, group, member_id, content)
        case ConsumerGroupTargetAssignmentMetadataKey(), (
            ConsumerGroupTargetAssignmentMetadataValue() | None
        ) as content:
            replay_assignment_epoch(group, content)
        case ConsumerGroupTargetAssignmentMemberKey(member_id=member_id), (
            ConsumerGroupTargetAssignmentMemberValue() | None
        ) as content:
            if content is None:
                group.targets.pop(member_id)
            else:
                group.put_target(member_id, target_from_lists(content.topic_partitions))
        case ConsumerGroupCurrentMemberAssignmentKey(member_id=member_id), (
            ConsumerGroupCurrentMemberAssignmentValue() | None
        ) as content:
            _replay_owned(state, group, member_id, content)
        case ConsumerGroupRegularExpressionKey(regular_expression=regex), (
            ConsumerGroupRegularExpressionValue() | None
        ) as content:
            resolved = None
            if content is not None:
                topics = tuple(sorted(set(content.topics)))
                resolved = ResolvedPattern(topics, content.version, content.timestamp)
            group.put_resolved(regex, resolved)


def _replay_member(
    state: State, group: ConsumerGroupModel, member_id: str, value: ConsumerGroupMemberMetadataValue | None
) -> None:
    if value is None:
        replay_leaving(group, member_id)
        return
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
        ),
        frees_instance_id=state.rules.earlier_instance_ids_are_free,
    )


def _replay_owned(
    state: State,
    group: ConsumerGroupModel,
    member_id: str,
    value: ConsumerGroupCurrentMemberAssignmentValue | None,
) -> None:
    frees = state.rules.earlier_instance_ids_are_free
    member = group.members.get(member_id)
    if value is None:
        if member is not None:
            group.put_member(
                replace(member, epoch=LEFT, previous_epoch=LEFT, owned=NOTHING_OWNED, revoking=NOTHING_OWNED),
                frees_instance_id=frees,
            )
        return
    group.put_member(
        replace(
            member or ConsumerMember(member_id),
            epoch=value.member_epoch,
            previous_epoch=value.previous_member_epoch,
            state=MemberState.of(value.state),
            owned=_owned(value.assigned_partitions, value.member_epoch),
            revoking=_owned(value.partitions_pending_revocation, value.member_epoch),
        ),
        frees_instance_id=frees,
    )


def _owned(topics: list[TopicPartitions], epoch: int) -> Owned:
    return owned_from_lists(
        ((topic.topic_id, topic.partitions, topic.assignment_epochs) for topic in topics), epoch
    )


# --- descriptions ---


def _described(state: State, group: ConsumerGroupModel) -> DescribedGroup:
    status, epoch, assignment_epoch, preferred = group.committed_facts()
    return DescribedGroup(
        group_id=group.group_id,
        group_state=status.value,
        group_epoch=epoch,
        assignment_epoch=assignment_epoch,
        assignor_name=preferred or state.config.consumer_assignors[0],
        members=[
            _consumer_member(state.topics, group, member) for _, member in group.members.committed_items()
        ],
    )


def _consumer_member(image: TopicsImage, group: ConsumerGroupModel, member: ConsumerMember) -> Member:
    owned: HashMap[UUID, list[int]] = HashMap()
    for part in (member.owned, member.revoking):
        for topic, partitions in part.items():
            if image.find_id(topic) is not None:
                owned.find_or_add(topic, list).extend(partitions)
    return Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=list(HashSet.copy_of(member.topics)),
        subscribed_topic_regex=member.regex,
        assignment=_assignment(image, owned.in_order()),
        target_assignment=_assignment(image, group.targets.committed(member.member_id) or NO_TARGET),
        member_type=int(GroupMemberType.CONSUMER if member.classic is None else GroupMemberType.CLASSIC),
    )


def _assignment(image: TopicsImage, topics: Mapping[UUID, Iterable[int]]) -> Assignment:
    """The topics that still exist."""
    assigned = []
    for topic_id, partitions in topics.items():
        topic = image.find_id(topic_id)
        if topic is not None:
            assigned.append(
                DescribedPartitions(topic_id=topic_id, topic_name=topic.name, partitions=list(partitions))
            )
    return Assignment(topic_partitions=assigned)


# --- handlers ---


def _describe_groups(call: IncomingRequest) -> None:
    groups = described_groups(call, ConsumerGroupModel, DescribedGroup, _described)
    call.reply.send(ConsumerGroupDescribeResponse(groups=groups))


IMMEDIATE: Mapping[type[Message], ImmediateRequest] = {
    ConsumerGroupHeartbeatRequest: ImmediateRequest(
        validate_heartbeat,
        consumer_group_heartbeat,
        partial(refused_heartbeat, ConsumerGroupHeartbeatResponse),
        steady_heartbeat,
    ),
}

HANDLERS: Mapping[type[Message], Handler] = {
    ConsumerGroupDescribeRequest: _describe_groups,
}
