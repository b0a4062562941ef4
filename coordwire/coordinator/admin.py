"""DescribeGroups, ConsumerGroupDescribe, ListGroups and DeleteGroups (KIP-848, KIP-1043).

The first three show groups as of the last durable write.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from uuid import UUID

from coordwire.coordinator.hash_order import (
    MIN_CAPACITY,
    capacity_for,
    in_timeline_order,
    ordered_names,
    topics_in_order,
)
from coordwire.coordinator.model.assignment import NO_TARGET
from coordwire.coordinator.model.classic_group import (
    CONSUMER_PROTOCOL_TYPE,
    ClassicGroupModel,
    ClassicMember,
    GroupState,
)
from coordwire.coordinator.model.consumer_group import ConsumerGroupModel
from coordwire.coordinator.model.consumer_member import ConsumerMember
from coordwire.coordinator.records import group_tombstones, offset_tombstone
from coordwire.coordinator.state import Result, State
from coordwire.coordinator.topics import TopicsImage
from coordwire.enums import ErrorCode, GroupMemberType
from coordwire.logs import LogRecord
from coordwire.messages import DeleteGroupsResponse, ListGroupsRequest, ListGroupsResponse
from coordwire.messages.consumer_group_describe import Assignment, Member, TopicPartitions
from coordwire.messages.consumer_group_describe import DescribedGroup as DescribedConsumerGroup
from coordwire.messages.delete_groups import DeletableGroupResult
from coordwire.messages.describe_groups import DescribedGroup, DescribedGroupMember
from coordwire.messages.list_groups import ListedGroup

__all__ = ["delete_groups", "describe_consumer_group", "describe_group", "list_groups"]


_SAYS_NOT_FOUND = 6
_CLASSIC, _CONSUMER = "classic", "consumer"


def describe_group(state: State, group_id: str, version: int) -> DescribedGroup:
    group = state.groups.committed(group_id)
    if not isinstance(group, ClassicGroupModel):
        dead = DescribedGroup(group_id=group_id, group_state=GroupState.DEAD.value)
        if version >= _SAYS_NOT_FOUND:
            dead.error_code = int(ErrorCode.GROUP_ID_NOT_FOUND)
            problem = "not found" if group is None else "is not a classic group"
            dead.error_message = f"Group {group_id} {problem}."
        return dead
    stable = group.state is GroupState.STABLE
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state.value,
        protocol_type=group.protocol_type or "",
        protocol_data=(group.protocol or "") if stable else "",
        members=[_classic_member(member, group if stable else None) for member in group.members_in_order()],
    )


def _classic_member(member: ClassicMember, stable: ClassicGroupModel | None) -> DescribedGroupMember:
    return DescribedGroupMember(
        member_id=member.member_id, group_instance_id=member.instance_id, client_id=member.client_id,
        client_host=member.client_host, member_assignment=member.assignment,
        member_metadata=member.metadata(stable.protocol) if stable else b"",
    )  # fmt: skip


def list_groups(state: State, request: ListGroupsRequest) -> ListGroupsResponse:
    """List groups in one of the states and of one of the types, in upper or lower case; without any, all."""
    states = {name.lower().strip() for name in request.states_filter}
    types = {name.lower() for name in request.types_filter}
    response = ListGroupsResponse()
    for group_id, group in state.groups.committed_items():
        kind, status, protocol_type = _CONSUMER, "", CONSUMER_PROTOCOL_TYPE
        if isinstance(group, ClassicGroupModel):
            kind, status, protocol_type = _CLASSIC, group.state.value, group.protocol_type or ""
        else:
            status = group.committed_facts()[0].value
        if (states and status.lower() not in states) or (types and kind not in types):
            continue
        response.groups.append(
            ListedGroup(group_id=group_id, protocol_type=protocol_type, group_state=status, group_type=kind)
        )
    return response


def delete_groups(state: State, group_ids: list[str]) -> Result:
    """Delete empty groups with their offsets."""
    response = DeleteGroupsResponse()
    records: list[LogRecord] = []
    for group_id in dict.fromkeys(group_ids):
        group = state.groups.get(group_id)
        error = 0
        if group is None or group.is_dead:
            error = int(ErrorCode.GROUP_ID_NOT_FOUND)
        elif not group.is_empty:
            error = int(ErrorCode.NON_EMPTY_GROUP)
        else:
            offsets = state.offsets.groups.get(group_id)
            keys = [*([] if offsets is None else offsets), *state.pending_offsets.of_group(group_id)]
            keys = list(dict.fromkeys(keys))
            records += [offset_tombstone(group_id, topic, partition) for topic, partition in keys]
            records += group_tombstones(group)
        response.results.append(DeletableGroupResult(group_id=group_id, error_code=error))
    return Result(records, response)


# --- ConsumerGroupDescribe ---


def describe_consumer_group(state: State, group_id: str) -> DescribedConsumerGroup:
    """Describe a group as of the last durable write."""
    group = state.groups.committed(group_id)
    if not isinstance(group, ConsumerGroupModel):
        missing = f"Group {group_id} not found."
        if group is not None:
            missing = f"Group {group_id} is not a consumer group."
        error = int(ErrorCode.GROUP_ID_NOT_FOUND)
        return DescribedConsumerGroup(group_id=group_id, error_code=error, error_message=missing)
    status, epoch, assignment_epoch, preferred = group.committed_facts()
    members = dict(group.members.committed_items())
    return DescribedConsumerGroup(
        group_id=group_id,
        group_state=status.value,
        group_epoch=epoch,
        assignment_epoch=assignment_epoch,
        assignor_name=preferred or state.config.consumer_assignors[0],
        members=[
            _consumer_member(state.topics, group, members[member_id])
            for member_id in in_timeline_order(members, group.members.peak)
        ],
    )


def _consumer_member(image: TopicsImage, group: ConsumerGroupModel, member: ConsumerMember) -> Member:
    owned: dict[UUID, list[int]] = {}
    capacity = MIN_CAPACITY
    for part in (member.owned, member.revoking):
        for topic, partitions in part.items():
            if image.find_id(topic) is None:
                continue
            # Java's computeIfAbsent makes room first, and adds before the other keys of a bucket.
            capacity = capacity_for(len(owned), capacity)
            if topic in owned:
                owned[topic] += partitions
            else:
                owned[topic] = list(partitions)
    return Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=ordered_names(member.topics),
        subscribed_topic_regex=member.regex,
        assignment=_assignment(image, topics_in_order(dict(reversed(owned.items())), capacity)),
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
                TopicPartitions(topic_id=topic_id, topic_name=topic.name, partitions=list(partitions))
            )
    return Assignment(topic_partitions=assigned)
