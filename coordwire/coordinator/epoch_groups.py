"""What consumer and streams groups, whose members have epochs, have in common: who commits and fetches
offsets, and the replay of the group and of its target's epoch.

Rules: an operator names no member and a negative epoch, and may commit while the group is empty. Members need
a version of OffsetCommit that knows STALE_MEMBER_EPOCH. The group of a record may replace a classic group
that only has offsets.
"""

from __future__ import annotations

from typing import Protocol, TypeVar

from coordwire.coordinator.model.classic_group import ClassicGroupModel
from coordwire.coordinator.model.consumer_group import ConsumerGroupModel
from coordwire.coordinator.model.streams_group import StreamsGroupModel
from coordwire.coordinator.refusal import OperationRefused, contradiction
from coordwire.coordinator.snapshots import TimelineHashMap
from coordwire.coordinator.state import GroupCommit, State
from coordwire.enums import ErrorCode
from coordwire.messages import (
    ConsumerGroupTargetAssignmentMetadataValue,
    StreamsGroupTargetAssignmentMetadataValue,
)

__all__ = [
    "check_version",
    "committing_member",
    "fetching_member",
    "find_or_make",
    "find_recorded",
    "replay_assignment_epoch",
]


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


def find_recorded(state: State, group_id: str, model: type[G]) -> G | None:
    """The group of a tombstone, if there is one. Raises `OperationRefused` for a group of another kind."""
    return find_or_make(state, group_id, model) if group_id in state.groups else None


def replay_assignment_epoch(
    state: State,
    group_id: str,
    model: type[G],
    value: ConsumerGroupTargetAssignmentMetadataValue | StreamsGroupTargetAssignmentMetadataValue | None,
) -> None:
    """Replay the epoch of a group's target, which ends after the members' targets."""
    if value is not None:
        group = find_or_make(state, group_id, model)
        group.set_assignment(value.assignment_epoch, value.assignment_timestamp)
        return
    known = find_recorded(state, group_id, model)
    if known is None:
        return
    if known.targets:
        raise contradiction()
    known.clear_assignment()
