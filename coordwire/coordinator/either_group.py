"""What can be asked of a group of either type."""

from __future__ import annotations

from coordwire.coordinator.classic.records import group_tombstone
from coordwire.coordinator.consumer.consumer_records import group_tombstones
from coordwire.coordinator.model.classic_group import ClassicGroupModel
from coordwire.coordinator.model.classic_states import GroupState
from coordwire.coordinator.state import GroupModel
from coordwire.logs import LogRecord

__all__ = ["is_dead", "is_empty", "tombstones"]


def is_empty(group: GroupModel) -> bool:
    return group.state is GroupState.EMPTY if isinstance(group, ClassicGroupModel) else group.is_empty


def is_dead(group: GroupModel) -> bool:
    return isinstance(group, ClassicGroupModel) and group.state is GroupState.DEAD


def tombstones(group: GroupModel) -> list[LogRecord]:
    """The records by which an empty group ends."""
    if isinstance(group, ClassicGroupModel):
        return [group_tombstone(group.group_id)]
    return group_tombstones(group)
