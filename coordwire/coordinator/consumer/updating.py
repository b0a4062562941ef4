"""What follows when a member joins or changes: records of what it said, the group's epoch, its next step.

Both kinds of members go this way, with ConsumerGroupHeartbeat and with JoinGroup.
"""

from __future__ import annotations

from coordwire.coordinator.consumer.consumer_records import (
    epoch_record,
    member_record,
    owned_record,
    partition_metadata_tombstone,
)
from coordwire.coordinator.consumer.leaving import SESSIONS
from coordwire.coordinator.consumer.next_assignment import Reported, reconciled
from coordwire.coordinator.consumer.target import TargetOfMember
from coordwire.coordinator.model.consumer_group import ConsumerGroupModel
from coordwire.coordinator.model.consumer_member import ConsumerMember
from coordwire.coordinator.model.consumer_states import MemberState
from coordwire.coordinator.state import State
from coordwire.coordinator.topics_hash import group_hash
from coordwire.logs import LogRecord

__all__ = ["reconcile", "record_member", "refresh_epoch"]


def record_member(
    group: ConsumerGroupModel, old: ConsumerMember, new: ConsumerMember, records: list[LogRecord]
) -> bool:
    """Keep what a member says of itself; whether it names other topics."""
    if new is old or new == old:
        return False
    records.append(member_record(group.group_id, new))
    return new.topics != old.topics


def refresh_epoch(
    state: State,
    group: ConsumerGroupModel,
    old: ConsumerMember,
    new: ConsumerMember,
    records: list[LogRecord],
    *,
    changed: bool,
) -> tuple[int, bool]:
    """The group's epoch and whether all subscribe to the same: as they will be.

    The epoch rises if a subscription changed, or the topics that the group subscribes to did.
    """
    if not changed and not group.refresh_due(state.now):
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
    group.refreshed(state.now, epoch)
    if group.has_partition_metadata:
        records.append(partition_metadata_tombstone(group_id))
    return epoch, homogeneous


def reconcile(
    state: State,
    group: ConsumerGroupModel,
    member: ConsumerMember,
    target: TargetOfMember,
    reported: Reported,
    records: list[LogRecord],
    *,
    subscription_changed: bool,
) -> ConsumerMember:
    """The member's next step towards its target, with its record and its timer."""
    if not subscription_changed and member.is_reconciled_to(target.epoch):
        return member
    found = reconciled(state, group, member, target, reported, subscription_changed=subscription_changed)
    if found is member or found == member:
        return found
    records.append(owned_record(group.group_id, found))
    if found.classic is None:
        if found.state is MemberState.UNREVOKED_PARTITIONS:
            SESSIONS.limit_revocation(state, group.group_id, found)
        else:
            SESSIONS.unlimit_revocation(state, group.group_id, found.member_id)
    return found
