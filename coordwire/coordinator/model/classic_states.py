"""The five states of a classic group, and from which one each may be entered."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

__all__ = ["CLASSIC_TRANSITIONS", "ENTERED_FROM", "GroupState"]


class GroupState(Enum):
    """A state, by the name that DescribeGroups gives it."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


CLASSIC_TRANSITIONS: Mapping[tuple[GroupState, GroupState], str] = {
    (GroupState.EMPTY, GroupState.PREPARING_REBALANCE): "a member joins",
    (GroupState.PREPARING_REBALANCE, GroupState.EMPTY): "all members are gone",
    (GroupState.PREPARING_REBALANCE, GroupState.COMPLETING_REBALANCE): "all have joined, or time is up",
    (GroupState.COMPLETING_REBALANCE, GroupState.STABLE): "the leader's SyncGroup is durable",
    (GroupState.COMPLETING_REBALANCE, GroupState.PREPARING_REBALANCE): "a member joins, leaves or fails",
    (GroupState.STABLE, GroupState.PREPARING_REBALANCE): "a member joins, changes, leaves or fails",
} | {(state, GroupState.DEAD): "the partition moves away" for state in GroupState}
"""What leads from one state to another; a group enters none in another way.

Empty waits for members; PreparingRebalance for their JoinGroup; CompletingRebalance for the leader's
SyncGroup; Stable has assignments; Dead is a group whose coordinator gave it up.
"""

ENTERED_FROM: Mapping[GroupState, frozenset[GroupState]] = {
    state: frozenset(before for before, after in CLASSIC_TRANSITIONS if after is state)
    for state in GroupState
}
