"""The requests of consumer groups: checks that need no group, and the forms of answers.

ConsumerGroupDescribe: a consumer group as of the last durable write.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from uuid import UUID

from coordwire.codec import Message
from coordwire.coordinator.consumer.heartbeat import (
    consumer_group_heartbeat,
    steady_heartbeat,
    validate_heartbeat,
)
from coordwire.coordinator.hash_tables import HashMap, HashSet
from coordwire.coordinator.model.assignment import NO_TARGET
from coordwire.coordinator.model.consumer_group import ConsumerGroupModel, ConsumerMember
from coordwire.coordinator.refusal import fits, writable_refusal
from coordwire.coordinator.state import State
from coordwire.coordinator.topics import TopicsImage
from coordwire.coordinator.writes import Handler, ImmediateRequest, IncomingRequest
from coordwire.enums import ErrorCode, GroupMemberType
from coordwire.messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from coordwire.messages.consumer_group_describe import Assignment, DescribedGroup, Member, TopicPartitions

__all__ = ["HANDLERS", "IMMEDIATE"]


def describe_consumer_group(state: State, group_id: str) -> DescribedGroup:
    """Describe a group as of the last durable write."""
    group = state.groups.committed(group_id)
    if not isinstance(group, ConsumerGroupModel):
        missing = f"Group {group_id} not found."
        if group is not None:
            missing = f"Group {group_id} is not a consumer group."
        error = int(ErrorCode.GROUP_ID_NOT_FOUND)
        return DescribedGroup(group_id=group_id, error_code=error, error_message=missing)
    status, epoch, assignment_epoch, preferred = group.committed_facts()
    return DescribedGroup(
        group_id=group_id,
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
                TopicPartitions(topic_id=topic_id, topic_name=topic.name, partitions=list(partitions))
            )
    return Assignment(topic_partitions=assigned)


# --- handlers ---


_INVALID_GROUP_ID = int(ErrorCode.INVALID_GROUP_ID)
_UNKNOWN_SERVER_ERROR = int(ErrorCode.UNKNOWN_SERVER_ERROR)


def _refused_consumer_heartbeat(error: int, message: str | None) -> ConsumerGroupHeartbeatResponse:
    error, message = writable_refusal(error, message)
    return ConsumerGroupHeartbeatResponse(error_code=error, error_message=message)


def _describe_consumer_groups(call: IncomingRequest) -> None:
    groups = []
    for group_id in call.request.group_ids:
        if not group_id:
            groups.append(DescribedGroup(group_id="", error_code=_INVALID_GROUP_ID))
    for group_id in call.request.group_ids:
        if group_id and call.error:
            groups.append(DescribedGroup(group_id=group_id, error_code=call.error))
        elif group_id:
            groups.append(describe_consumer_group(call.state, group_id))
    if not all(fits(group.error_message) for group in groups):
        error = _UNKNOWN_SERVER_ERROR
        groups = [DescribedGroup(group_id=group_id, error_code=error) for group_id in call.request.group_ids]
    call.reply.send(ConsumerGroupDescribeResponse(groups=groups))


IMMEDIATE: Mapping[type[Message], ImmediateRequest] = {
    ConsumerGroupHeartbeatRequest: ImmediateRequest(
        validate_heartbeat, consumer_group_heartbeat, _refused_consumer_heartbeat, steady_heartbeat
    ),
}

HANDLERS: Mapping[type[Message], Handler] = {
    ConsumerGroupDescribeRequest: _describe_consumer_groups,
}
