"""ShareGroupDescribe: a share group as of the last durable write."""

from __future__ import annotations

from coordwire.coordinator.hash_tables import HashSet
from coordwire.coordinator.model.share_group import ShareGroupModel, ShareMember
from coordwire.coordinator.share.simple_assignor import SIMPLE
from coordwire.coordinator.state import State
from coordwire.coordinator.topics import TopicsImage
from coordwire.enums import ErrorCode
from coordwire.messages.share_group_describe import Assignment, DescribedGroup, Member, TopicPartitions

__all__ = ["describe_share_group"]


def describe_share_group(state: State, group_id: str) -> DescribedGroup:
    group = state.groups.committed(group_id)
    if not isinstance(group, ShareGroupModel):
        problem = "not found" if group is None else "is not a share group"
        return DescribedGroup(
            group_id=group_id,
            error_code=int(ErrorCode.GROUP_ID_NOT_FOUND),
            error_message=f"Group {group_id} {problem}.",
        )
    epoch, assignment_epoch = group.committed_epochs
    return DescribedGroup(
        group_id=group_id,
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
