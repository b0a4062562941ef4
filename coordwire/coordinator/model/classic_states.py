"""The five states of a classic group, and from which one each may be entered."""

from __future__ import annotations

from enum import Enum

__all__ = ["ENTERED_FROM", "GroupState"]


class GroupState(Enum):
    """A state, by the name that DescribeGroups gives it."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


ENTERED_FROM: dict[GroupState, frozenset[GroupState]] = {
    GroupState.EMPTY: frozenset({GroupState.PREPARING_REBALANCE}),
    GroupState.PREPARING_REBALANCE: frozenset(
        {GroupState.STABLE, GroupState.COMPLETING_REBALANCE, GroupState.EMPTY}
    ),
    GroupState.COMPLETING_REBALANCE: frozenset({GroupState.PREPARING_REBALANCE}),
    GroupState.STABLE: frozenset({GroupState.COMPLETING_REBALANCE}),
    GroupState.DEAD: frozenset(GroupState),
}
"""Empty waits for members; PreparingRebalance for their JoinGroup; CompletingRebalance for the leader's
SyncGroup; Stable has assignments; Dead is a group whose coordinator gave it up."""
