"""The target assignment: who shall have which partitions, computed anew when the group's epoch has risen.

KIP-1263: not more often than once in an assignment interval; until then members go on towards the last one.
"""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID

from coordwire.coordinator.assignors import ASSIGNORS, Assignor, GroupSpec, MemberSpec
from coordwire.coordinator.consumer.consumer_records import assignment_epoch_record, target_record
from coordwire.coordinator.consumer.subscriptions import subscribed_ids, subscribed_names
from coordwire.coordinator.hash_order import capacity_for, in_hash_order
from coordwire.coordinator.model.assignment import NO_TARGET, Target, same_target
from coordwire.coordinator.model.consumer_group import ConsumerGroupModel
from coordwire.coordinator.model.consumer_member import ConsumerMember
from coordwire.coordinator.state import State
from coordwire.logs import LogRecord

__all__ = ["TargetOfMember", "current_target", "update_target"]


class TargetOfMember(NamedTuple):
    """What one member shall have, as of which epoch."""

    epoch: int
    target: Target


def current_target(group: ConsumerGroupModel, member: ConsumerMember) -> TargetOfMember:
    """The last target; a static member that comes back under a new id has its predecessor's."""
    member_id = member.member_id
    if member.instance_id is not None:
        known = group.static_members.get(member.instance_id)
        if known is None:
            return TargetOfMember(group.assignment_epoch, NO_TARGET)
        member_id = known
    return TargetOfMember(group.assignment_epoch, group.target(member_id))


def update_target(
    state: State,
    group: ConsumerGroupModel,
    epoch: int,
    old: ConsumerMember,
    new: ConsumerMember,
    homogeneous: bool,
    records: list[LogRecord],
) -> TargetOfMember:
    """The member's target as of now: a new one, if the group's epoch asks for it and it is time."""
    if group.assignment_epoch >= epoch or not _is_time(state, group):
        return current_target(group, new)
    name = group.preferred_assignor(old, new) or state.config.consumer_assignors[0]
    spec = _spec(state, group, new, homogeneous)
    targets = _assignor(state, name)(spec)
    for member_id in spec.members:
        target = targets.get(member_id, NO_TARGET)
        known = group.targets.get(member_id)
        if known is not target and (known is None or not same_target(known, target)):
            records.append(target_record(group.group_id, member_id, target))
    records.append(assignment_epoch_record(group.group_id, epoch, state.now))
    return TargetOfMember(epoch, targets.get(new.member_id, NO_TARGET))


def _assignor(state: State, name: str) -> Assignor:
    return state.assignors.get(name) or ASSIGNORS[name]


def _is_time(state: State, group: ConsumerGroupModel) -> bool:
    interval = state.config.of_consumer_group(group.group_id).assignment_interval_ms
    return not group.assigned_at or not interval or state.now >= group.assigned_at + interval


def _spec(state: State, group: ConsumerGroupModel, new: ConsumerMember, homogeneous: bool) -> GroupSpec:
    """The group as it is with the new member, which may be in the place of a static one."""
    members = {member.member_id: member for member in group.members_in_order()} | {new.member_id: new}
    targets = dict(zip(members, map(group.targets.get, members), strict=True))
    capacity = capacity_for(len(members))
    replaced = None if new.instance_id is None else group.static_members.get(new.instance_id)
    if replaced is not None and replaced != new.member_id:
        targets[new.member_id] = group.targets.get(replaced)
        del members[replaced]
    known: dict[tuple[tuple[str, ...], str | None], tuple[tuple[UUID, ...], int]] = {}
    names: set[str] = set()
    specs = {}
    for member_id in in_hash_order(members, capacity):
        member = members[member_id]
        subscription = member.named or member.topics, member.regex
        if subscription not in known:
            found = subscribed_names(group, member)
            names.update(found)
            known[subscription] = subscribed_ids(state.topics, found), len(found)
        topics, count = known[subscription]
        target = targets[member_id]
        if target is None:
            target = NO_TARGET
        specs[member_id] = MemberSpec(member.instance_id, topics, count, target)
    found_topics = [topic for name in names if (topic := state.topics.find(name)) is not None]
    partitions = {topic.id: topic.partitions for topic in found_topics}
    return GroupSpec(specs, homogeneous, partitions, group.targets.values())
