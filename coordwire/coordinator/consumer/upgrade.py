"""The creation of consumer groups: of none, of an empty classic group, or online of one with members.

Classic members stay, with their last assignment, and the group's generation as their epoch. Their parked
requests are answered with REBALANCE_IN_PROGRESS.
"""

from __future__ import annotations

from collections.abc import Iterator

from coordwire.coordinator.consumer import sessions
from coordwire.coordinator.model.assignment import NO_TARGET, Target
from coordwire.coordinator.model.classic_group import ClassicGroupModel, GroupState
from coordwire.coordinator.model.consumer_group import ClassicSide, ConsumerGroupModel, ConsumerMember
from coordwire.coordinator.model.embedded_protocol import (
    ImpossibleLength,
    MalformedProtocol,
    read_assignment,
    read_subscription,
)
from coordwire.coordinator.records import classic_tombstone, consumer_group_records
from coordwire.coordinator.refusal import OperationRefused
from coordwire.coordinator.snapshots import Snapshots
from coordwire.coordinator.state import State
from coordwire.coordinator.topics import group_hash
from coordwire.enums import ErrorCode
from coordwire.logs import LogRecord
from coordwire.messages import JoinGroupResponse, SyncGroupResponse


def find_or_make_consumer_group(
    state: State, group_id: str, records: list[LogRecord], *, join: bool
) -> ConsumerGroupModel:
    """Find the group of a heartbeat; one that joins may create or convert it, and adds the records.

    A new group is outside of the shard's state until its records are replayed.
    """
    group = state.groups.get(group_id)
    if isinstance(group, ConsumerGroupModel):
        return group
    if group is None:
        if not join:
            raise OperationRefused(ErrorCode.GROUP_ID_NOT_FOUND, f"Consumer group {group_id} not found.")
        return ConsumerGroupModel(group_id, Snapshots())
    if not join or not isinstance(group, ClassicGroupModel):
        raise OperationRefused(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a consumer group.")
    if group.state is GroupState.EMPTY:
        records.append(classic_tombstone(group_id))
        return ConsumerGroupModel(group_id, Snapshots())
    _validate(state, group)
    return _upgraded(state, group, records)


def _refused(group_id: str, reason: str) -> OperationRefused:
    return OperationRefused(
        ErrorCode.GROUP_ID_NOT_FOUND,
        f"Cannot upgrade classic group {group_id} to consumer group because {reason}.",
    )


def _validate(state: State, group: ClassicGroupModel) -> None:
    if not state.config.migration_policy.upgrades:
        raise _refused(group.group_id, "online upgrade is disabled")
    if not group.is_consumer:
        raise _refused(group.group_id, "the group does not use the consumer embedded protocol")
    if len(group.members) > state.config.consumer_group_max_size:
        raise _refused(group.group_id, "the group size exceeds the consumer group maximum size")


def _upgraded(state: State, group: ClassicGroupModel, records: list[LogRecord]) -> ConsumerGroupModel:
    error = int(ErrorCode.REBALANCE_IN_PROGRESS)
    for member in group.members.values():
        group.answer_join(member, JoinGroupResponse(member_id=member.member_id, error_code=error))
    for member in group.members.values():
        group.answer_sync(member, SyncGroupResponse(error_code=error))
    records.append(classic_tombstone(group.group_id))
    upgraded = ConsumerGroupModel(group.group_id, Snapshots())
    upgraded.set_assignment(group.generation, 0)
    for member_id, target, new in _members(state, group):
        upgraded.put_target(member_id, target)
        upgraded.put_member(new)
    upgraded.set_epoch(group.generation, group_hash(state.topics, upgraded.topics))
    records += consumer_group_records(upgraded)
    for new in upgraded.members.values():
        assert new.classic is not None
        sessions.keep_alive(state, group.group_id, new.member_id, new.classic.session_timeout_ms)
    return upgraded


def _members(state: State, group: ClassicGroupModel) -> Iterator[tuple[str, Target, ConsumerMember]]:
    """Convert members one after the other: the caller checks each before the next is read."""
    epoch = group.generation
    for member in group.members.values():
        try:
            target, custom = NO_TARGET, False
            if member.assignment:
                target, custom = read_assignment(member.assignment, state.topics)
            if custom:
                raise _refused(
                    group.group_id,
                    "an unsupported custom assignor is in use. Please refer to the documentation or switch "
                    "to a default assignor before re-attempting the upgrade",
                )
            if group.protocol is None:
                raise OperationRefused(ErrorCode.UNKNOWN_SERVER_ERROR)
            subscription = read_subscription(member.metadata(group.protocol))
        except (MalformedProtocol, ImpossibleLength) as error:
            if isinstance(error, ImpossibleLength) and not state.rules.impossible_lengths_are_malformed:
                raise
            raise _refused(group.group_id, "the embedded consumer protocol is malformed") from None
        new = ConsumerMember(
            member.member_id,
            epoch=epoch,
            previous_epoch=epoch,
            instance_id=member.instance_id,
            rack_id=subscription.rack_id or None,
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            client_id=member.client_id,
            client_host=member.client_host,
            topics=tuple(sorted(set(subscription.topics))),
            named=tuple(subscription.topics),
            owned={topic: dict.fromkeys(partitions, epoch) for topic, partitions in target.items()},
            classic=ClassicSide(member.session_timeout_ms, member.protocols),
        )
        yield member.member_id, target, new
