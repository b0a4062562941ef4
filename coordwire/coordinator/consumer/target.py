"""The epoch of a consumer group, and its target assignment, computed again after the epoch has risen.

KIP-1263: a target is computed at most once in an assignment interval; until then members move towards the
last one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple
from uuid import UUID

from coordwire.coordinator.assignors import ASSIGNORS, Assignor, GroupSpec, MemberSpec, computed_targets
from coordwire.coordinator.hash_tables import HashMap, HashSet
from coordwire.coordinator.model.assignment import NO_TARGET, Target, same_target
from coordwire.coordinator.model.consumer_group import ConsumerGroupModel, ConsumerMember
from coordwire.coordinator.records import (
    assignment_epoch_record,
    epoch_record,
    partition_metadata_tombstone,
    target_record,
)
from coordwire.coordinator.state import State
from coordwire.coordinator.topics import TopicsImage, group_hash
from coordwire.logs import LogRecord

# --- subscriptions ---


def subscribed_names(group: ConsumerGroupModel, member: ConsumerMember) -> list[str]:
    """The member's topics, each once; an unresolved pattern matches none (KIP-848)."""
    resolved = group.resolved.get(member.regex) if member.regex else None
    if resolved is None or not resolved.topics:
        return list(HashSet.copy_of(member.named or member.topics))
    if not member.topics:
        return list(HashSet.copy_of(resolved.topics))
    larger, smaller = resolved.topics, member.named or member.topics
    if len(member.topics) > len(resolved.topics):
        larger, smaller = smaller, larger
    return list(dict.fromkeys([*HashSet.copy_of(larger), *HashSet.copy_of(smaller)]))


def subscribed_ids(image: TopicsImage, names: list[str]) -> tuple[UUID, ...]:
    """The topics of these names that exist."""
    return tuple(topic.id for topic in map(image.find, names) if topic is not None)


# --- the epoch ---


def refresh_epoch(
    state: State,
    group: ConsumerGroupModel,
    old: ConsumerMember,
    new: ConsumerMember,
    records: list[LogRecord],
    *,
    changed: bool,
) -> tuple[int, bool]:
    """The group's epoch after a change of a member, and whether all members then have one subscription.

    The epoch rises if a subscription changed, or the metadata of subscribed topics did.
    """
    if not changed and not group.refresh.is_due(state.now, group.epoch):
        return group.epoch, group.homogeneous
    group_id = group.group_id
    patterns = dict(group.patterns.items())
    dropped = []
    if old.regex != new.regex:
        if old.regex and patterns.get(old.regex) is not None:
            patterns[old.regex] -= 1
            if not patterns[old.regex]:
                del patterns[old.regex]
                dropped.append(old.regex)
        if new.regex:
            patterns[new.regex] = patterns.get(new.regex, 0) + 1
    topics = group.topics_after([old], new, dropped)
    metadata_hash = group_hash(state.topics, topics)
    size = len(group.members)
    known = new.instance_id is not None and new.instance_id in group.static_members
    if new.member_id not in group.members and not known:
        size += 1
    homogeneous = group.is_homogeneous(patterns.values(), topics.values(), size)
    epoch = group.epoch
    if changed or metadata_hash != group.metadata_hash:
        epoch += 1
        records.append(epoch_record(group_id, epoch, metadata_hash))
    group.refresh.complete(state.now, epoch)
    if group.has_partition_metadata:
        records.append(partition_metadata_tombstone(group_id))
    return epoch, homogeneous


# --- the target ---


class TargetOfMember(NamedTuple):
    """One member's target, and its epoch."""

    epoch: int
    target: Target


def current_target(group: ConsumerGroupModel, member: ConsumerMember) -> TargetOfMember:
    """The member's last target; a static member under a new id has its predecessor's."""
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
    """The member's target; computes a new one if the group's epoch has risen and the interval is over."""
    if group.assignment_epoch >= epoch or not _is_time(state, group):
        return current_target(group, new)
    name = group.preferred_assignor(old, new) or state.config.consumer_assignors[0]
    spec = _spec(state, group, new, homogeneous)
    targets = computed_targets(group.group_id, epoch, name, lambda: _assignor(state, name)(spec))
    known_targets = _known_targets(state, group, new)
    for member_id in spec.members:
        target = targets.get(member_id, NO_TARGET)
        known = known_targets(member_id)
        if known is not target and (known is None or not same_target(known, target)):
            records.append(target_record(group.group_id, member_id, target))
    records.append(assignment_epoch_record(group.group_id, epoch, state.now))
    return TargetOfMember(epoch, targets.get(new.member_id, NO_TARGET))


def _known_targets(
    state: State, group: ConsumerGroupModel, new: ConsumerMember
) -> Callable[[str], Target | None]:
    """The targets that need no record; a static member under a new id has its predecessor's, or none."""
    replaced = None if new.instance_id is None else group.static_members.get(new.instance_id)
    if replaced is None or replaced == new.member_id or not state.rules.returning_members_keep_targets:
        return group.targets.get
    target = group.targets.get(replaced)
    if target is None:
        target = group.targets.get(new.member_id)
    return lambda member_id: target if member_id == new.member_id else group.targets.get(member_id)


def _assignor(state: State, name: str) -> Assignor:
    return state.assignors.get("consumer", {}).get(name) or ASSIGNORS[name]


def _is_time(state: State, group: ConsumerGroupModel) -> bool:
    interval = state.config.of_consumer_group(group.group_id).assignment_interval_ms
    return not group.assigned_at or not interval or state.now >= group.assigned_at + interval


def _spec(state: State, group: ConsumerGroupModel, new: ConsumerMember, homogeneous: bool) -> GroupSpec:
    """The input of the assignor: the group with the new member, which may replace a static one."""
    members = HashMap.of(group.members.items())
    members[new.member_id] = new
    targets = dict(zip(members, map(group.targets.get, members), strict=True))
    replaced = None if new.instance_id is None else group.static_members.get(new.instance_id)
    if replaced is not None and replaced != new.member_id:
        targets[new.member_id] = group.targets.get(replaced)
        members.discard(replaced)
    known: dict[tuple[tuple[str, ...], str | None], tuple[tuple[UUID, ...], int]] = {}
    names: dict[str, None] = {}
    specs = {}
    for member_id, member in members.items():
        subscription = member.named or member.topics, member.regex
        if subscription not in known:
            subscribed = subscribed_names(group, member)
            names.update(dict.fromkeys(subscribed))
            known[subscription] = subscribed_ids(state.topics, subscribed), len(subscribed)
        topics, count = known[subscription]
        target = targets[member_id]
        if target is None:
            target = NO_TARGET
        specs[member_id] = MemberSpec(member.instance_id, topics, count, target)
    images = [topic for name in names if (topic := state.topics.find(name)) is not None]
    partitions = {topic.id: topic.partitions for topic in images}
    return GroupSpec(specs, homogeneous, partitions, group.targets.values())
