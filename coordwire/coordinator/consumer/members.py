"""The member of a heartbeat or a JoinGroup: a known one, a new one, or a static one that returns.

A static member that returns without its id takes over its predecessor's target and partitions, at epoch 0;
with KIP-848 only after the predecessor has left for now (-2).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from coordwire.coordinator.model.assignment import Reported
from coordwire.coordinator.model.consumer_group import LEFT_FOR_NOW, ConsumerGroupModel, ConsumerMember
from coordwire.coordinator.model.members import fenced_epoch, static_member, unreleased
from coordwire.coordinator.records import member_record, member_tombstones, owned_record, target_record
from coordwire.coordinator.refusal import OperationRefused
from coordwire.coordinator.state import State
from coordwire.enums import ErrorCode
from coordwire.logs import LogRecord


def refuse_if_full(state: State, group: ConsumerGroupModel, member_id: str, instance_id: str | None) -> None:
    returns = instance_id is not None and instance_id in group.static_members
    if returns and state.rules.static_members_return_to_full_groups:
        return
    limit = state.config.consumer_group_max_size
    if len(group.members) >= limit and member_id not in group.members:
        raise OperationRefused(
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            f"The consumer group has reached its maximum capacity of {limit} members.",
        )


def joining_static_member(
    group: ConsumerGroupModel,
    member_id: str,
    instance_id: str,
    records: list[LogRecord],
    *,
    classic: bool,
) -> ConsumerMember:
    """A static member that joins; adds the records that replace its predecessor."""
    old = static_member(group, instance_id)
    if old is None:
        return group.members.get(member_id) or ConsumerMember(member_id)
    if not classic and old.classic is None and old.epoch != LEFT_FOR_NOW:
        raise unreleased(member_id, instance_id, old)
    new = replace(old, member_id=member_id, epoch=0, previous_epoch=0)
    group_id = group.group_id
    # The old timers stay: if the records can't be written, the old member is still there.
    records += member_tombstones(group_id, old.member_id)
    records.append(member_record(group_id, new))
    records.append(target_record(group_id, member_id, group.target(old.member_id)))
    records.append(owned_record(group_id, new))
    return new


def validate_epoch(member: ConsumerMember, epoch: int, reported: Reported) -> None:
    """Refuse a member that is in another epoch than the group has for it.

    Epoch 0 always joins. The previous epoch is accepted from a member that owns nothing but its assignment:
    the answer with the new epoch may have been lost.
    """
    if epoch in (0, member.epoch):
        return
    if member.epoch > epoch == member.previous_epoch and _is_part(reported, member):
        return
    raise fenced_epoch("consumer", epoch, member.epoch)


def _is_part(reported: Reported, member: ConsumerMember) -> bool:
    if reported is None:
        return False
    unowned: Mapping[int, int] = {}
    return all(
        topic.topic_id in member.owned
        and all(partition in member.owned.get(topic.topic_id, unowned) for partition in topic.partitions)
        for topic in reported
    )


def record_member(
    group: ConsumerGroupModel, old: ConsumerMember, new: ConsumerMember, records: list[LogRecord]
) -> bool:
    """Add the record of a changed member; whether it names other topics."""
    if new is old or new == old:
        return False
    records.append(member_record(group.group_id, new))
    return new.topics != old.topics
