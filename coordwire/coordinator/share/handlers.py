"""The requests of share groups: checks that need no group, descriptions, and the forms of answers."""

from __future__ import annotations

from collections.abc import Mapping

from coordwire.codec import Message
from coordwire.coordinator.hash_tables import HashSet
from coordwire.coordinator.model.share_group import ShareGroupModel, ShareMember
from coordwire.coordinator.refusal import fits, writable_refusal
from coordwire.coordinator.share.heartbeat import (
    share_group_heartbeat,
    steady_heartbeat,
    validate_heartbeat,
)
from coordwire.coordinator.share.offsets import alter_offsets, delete_offsets, describe_offsets, error_text
from coordwire.coordinator.share.simple_assignor import SIMPLE
from coordwire.coordinator.state import State
from coordwire.coordinator.topics import TopicsImage
from coordwire.coordinator.writes import Handler, ImmediateRequest, IncomingRequest
from coordwire.enums import ErrorCode
from coordwire.messages import (
    AlterShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequest,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from coordwire.messages.share_group_describe import Assignment, DescribedGroup, Member, TopicPartitions

__all__ = ["HANDLERS", "IMMEDIATE"]

_INVALID_GROUP_ID = int(ErrorCode.INVALID_GROUP_ID)
_UNKNOWN_SERVER_ERROR = int(ErrorCode.UNKNOWN_SERVER_ERROR)


# --- descriptions ---


def describe_share_group(state: State, group_id: str) -> DescribedGroup:
    """A share group as of the last durable write."""
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


# --- handlers ---


def _refused_heartbeat(error: int, message: str | None) -> ShareGroupHeartbeatResponse:
    error, message = writable_refusal(error, message)
    return ShareGroupHeartbeatResponse(error_code=error, error_message=message)


def _describe(call: IncomingRequest) -> None:
    group_request = call.request.group_ids
    groups = [
        DescribedGroup(group_id="", error_code=_INVALID_GROUP_ID)
        for group_id in group_request
        if not group_id
    ]
    for group_id in filter(None, group_request):
        if call.error:
            text = error_text(call.error)
            groups.append(DescribedGroup(group_id=group_id, error_code=call.error, error_message=text))
        else:
            groups.append(describe_share_group(call.state, group_id))
    if not all(fits(group.error_message) for group in groups):
        groups = [
            DescribedGroup(group_id=group_id, error_code=_UNKNOWN_SERVER_ERROR) for group_id in group_request
        ]
    call.reply.send(ShareGroupDescribeResponse(groups=groups))


IMMEDIATE: Mapping[type[Message], ImmediateRequest] = {
    ShareGroupHeartbeatRequest: ImmediateRequest(
        validate_heartbeat, share_group_heartbeat, _refused_heartbeat, steady_heartbeat
    ),
}

HANDLERS: Mapping[type[Message], Handler] = {
    ShareGroupDescribeRequest: _describe,
    AlterShareGroupOffsetsRequest: alter_offsets,
    DeleteShareGroupOffsetsRequest: delete_offsets,
    DescribeShareGroupOffsetsRequest: describe_offsets,
}
