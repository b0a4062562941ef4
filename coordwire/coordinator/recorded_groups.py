"""The replay of records that consumer and streams groups have alike: the group, and its target's epoch.

Rules: the group of a record may replace a classic group that only has offsets.
"""

from __future__ import annotations

from typing import TypeVar

from coordwire.coordinator.model.classic_group import ClassicGroupModel
from coordwire.coordinator.model.consumer_group import ConsumerGroupModel
from coordwire.coordinator.model.streams_group import StreamsGroupModel
from coordwire.coordinator.refusal import contradiction
from coordwire.coordinator.state import State
from coordwire.messages import (
    ConsumerGroupTargetAssignmentMetadataValue,
    StreamsGroupTargetAssignmentMetadataValue,
)

__all__ = ["find_or_make", "find_recorded", "replay_assignment_epoch"]

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
