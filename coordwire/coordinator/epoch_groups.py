"""What groups whose members have epochs have in common: who commits and fetches the offsets of consumer and
streams groups, and the replay of groups, of members that leave, and of the target's epoch.

Rules: an operator names no member and a negative epoch, and may commit while the group is empty. Members need
a version of OffsetCommit that knows STALE_MEMBER_EPOCH. The group of a record may replace a classic group
that only has offsets.
"""

from __future__ import annotations

from typing import Protocol, TypeVar

from coordwire.coordinator.model.classic_group import ClassicGroupModel
from coordwire.coordinator.model.consumer_group import LEFT, ConsumerGroupModel
from coordwire.coordinator.model.share_group import ShareGroupModel
from coordwire.coordinator.model.streams_group import StreamsGroupModel
from coordwire.coordinator.refusal import OperationRefused, contradiction
from coordwire.coordinator.snapshots import TimelineHashMap
from coordwire.coordinator.state import GroupCommit, State
from coordwire.enums import ErrorCode
from coordwire.messages import (
    ConsumerGroupTargetAssignmentMetadataValue,
    ShareGroupTargetAssignmentMetadataValue,
    StreamsGroupTargetAssignmentMetadataValue,
)

M = TypeVar("M")

_KNOWS_STALE_EPOCHS = 9
"""The first version of OffsetCommit that such members may use."""


class _Group(Protocol[M]):
    members: TimelineHashMap[str, M]

    @property
    def is_empty(self) -> bool: ...


def committing_member(group: _Group[M], commit: GroupCommit) -> M | None:
    """The member that commits; None for an operator, and for a producer that names no member.

    Raises `OperationRefused` for an unknown member.
    """
    epoch = commit.generation
    if epoch < 0 and group.is_empty:
        return None
    anonymous = not commit.member_id and commit.instance_id is None
    if commit.transactional and epoch == -1 and anonymous:
        return None
    member = group.members.get(commit.member_id)
    if member is None:
        raise OperationRefused(ErrorCode.UNKNOWN_MEMBER_ID)
    return member


def check_version(commit: GroupCommit) -> None:
    """Refuse a member's commit in a version that has no answer for an old epoch."""
    if not commit.transactional and commit.version < _KNOWS_STALE_EPOCHS:
        raise OperationRefused(ErrorCode.UNSUPPORTED_VERSION)


def fetching_member(group: _Group[M], member_id: str | None, epoch: int, *, stable: bool) -> M | None:
    """The member that fetches; None for an operator. stable: whether changes count that are not durable yet.

    Raises `OperationRefused` for an unknown member, and for an epoch without a member.
    """
    if member_id is None:
        if epoch < 0:
            return None
        raise OperationRefused(ErrorCode.UNKNOWN_SERVER_ERROR)
    members = group.members
    member = members.get(member_id) if stable else members.committed(member_id)
    if member is None:
        raise OperationRefused(ErrorCode.UNKNOWN_MEMBER_ID)
    return member


# --- replay ---


G = TypeVar("G", ConsumerGroupModel, StreamsGroupModel)


def find_or_make(state: State, group_id: str, model: type[G]) -> G:
    """The group of a record with a value. Raises `OperationRefused` for a group of another kind."""
    group = state.groups.get(group_id)
    if isinstance(group, model):
        return group
    if group is not None and not (isinstance(group, ClassicGroupModel) and group.is_simple):
        raise contradiction()
    group = model(group_id, state.snapshots)
    state.groups[group_id] = group
    return group


def find_recorded(state: State, key: object, value: object, model: type[G]) -> G | None:
    """The group of a record; None for a tombstone in a group that there is not.

    Raises `OperationRefused` for a group of another kind.
    """
    group_id: str = getattr(key, "group_id", "")
    return None if value is None and group_id not in state.groups else find_or_make(state, group_id, model)


def replay_assignment_epoch(
    group: ConsumerGroupModel | ShareGroupModel | StreamsGroupModel,
    value: ConsumerGroupTargetAssignmentMetadataValue
    | ShareGroupTargetAssignmentMetadataValue
    | StreamsGroupTargetAssignmentMetadataValue
    | None,
) -> None:
    """Replay the epoch of a group's target, which ends after the members' targets."""
    if value is not None:
        group.set_assignment(value.assignment_epoch, value.assignment_timestamp)
    elif group.targets:
        raise contradiction()
    else:
        group.clear_assignment()


def replay_leaving(group: ConsumerGroupModel | ShareGroupModel | StreamsGroupModel, member_id: str) -> None:
    """Replay the tombstone of a member, which ends after its partitions and its target."""
    member = group.members.get(member_id)
    if member is None:
        return
    if member.epoch != LEFT or member_id in group.targets:
        raise contradiction()
    group.remove_member(member_id)
