"""Members go: by themselves, for now, or because their time is over. The group's epoch rises each time.

A static member that will be back (-2) keeps its place, its target and its partitions; others see nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from coordwire.codec import Message
from coordwire.coordinator.consumer.consumer_records import (
    epoch_record,
    member_tombstones,
    owned_record,
    pattern_tombstone,
)
from coordwire.coordinator.consumer.downgrade import downgrade, downgrades_without
from coordwire.coordinator.consumer.joining_members import find_member, find_static_member
from coordwire.coordinator.consumer.sessions import MemberTimers, cancel_timers
from coordwire.coordinator.listener import BY_ITSELF, Because, Leaving
from coordwire.coordinator.model.assignment import NOTHING_OWNED
from coordwire.coordinator.model.consumer_group import ConsumerGroupModel
from coordwire.coordinator.model.consumer_member import LEFT_FOR_NOW, ConsumerMember
from coordwire.coordinator.state import Result, State
from coordwire.coordinator.topics_hash import group_hash
from coordwire.logs import LogRecord
from coordwire.messages import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse

__all__ = ["SESSIONS", "leave_consumer_group", "remove_members"]


def leave_consumer_group(
    group: ConsumerGroupModel, request: ConsumerGroupHeartbeatRequest, state: State
) -> Result:
    """A heartbeat with epoch -1 or -2."""
    if request.instance_id is None:
        member = find_member(group, request.member_id)
    else:
        member = find_static_member(group, request.member_id, request.instance_id)
        if request.member_epoch == LEFT_FOR_NOW:
            return _leave_for_now(group, member)
    response = ConsumerGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.member_epoch)
    return remove_members(state, group, [member], response)


def _leave_for_now(group: ConsumerGroupModel, member: ConsumerMember) -> Result:
    # A member that comes back has the partitions from its first epoch on.
    owned: Mapping[object, object] = {
        topic: dict.fromkeys(partitions, 0) for topic, partitions in member.owned.items()
    }
    left = replace(member, epoch=LEFT_FOR_NOW, owned=owned, revoking=NOTHING_OWNED)  # type: ignore[arg-type]
    response = ConsumerGroupHeartbeatResponse(member_id=member.member_id, member_epoch=LEFT_FOR_NOW)
    return Result([owned_record(group.group_id, left)], response)


def remove_members(
    state: State,
    group: ConsumerGroupModel,
    members: Sequence[ConsumerMember],
    response: Message | None = None,
    because: Because = BY_ITSELF,
) -> Result:
    """Members are out; what they had is free at once."""
    if not members:
        return Result(response=response)
    records: list[LogRecord] = []
    group_id = group.group_id
    if downgrades_without(state, group, members):
        gone = {member.member_id for member in members}
        downgrade(state, group, records, gone=gone, how=because.how, rebalance=True)
        return Result(records, response, replay=False)
    for member in members:
        records += member_tombstones(group_id, member.member_id)
    counts: dict[str, int] = {}
    for member in members:
        if member.regex:
            counts[member.regex] = counts.get(member.regex, 0) + 1
    dropped = [regex for regex, count in counts.items() if group.patterns.get(regex) == count]
    records += [pattern_tombstone(group_id, regex) for regex in dropped]
    topics = group.topics_after(members, None, dropped)
    records.append(epoch_record(group_id, group.epoch + 1, group_hash(state.topics, topics)))
    for member in members:
        cancel_timers(state, group_id, member.member_id)
    return Result(records, response, because=because)


def _fence(state: State, group: ConsumerGroupModel, member: ConsumerMember, how: Leaving) -> Result:
    return remove_members(state, group, [member], because=Because(how=how))


SESSIONS = MemberTimers(_fence)
"""The timers of all consumer groups; a member whose time is over is out."""
