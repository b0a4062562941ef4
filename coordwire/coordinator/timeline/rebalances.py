"""The rebalances that are under way in a shard's groups, from what began each to its end.

Rules: a group has one at a time. Its end compares what members have with what they had when the group was
last steady.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from coordwire.timeline.events import (
    Assignment,
    Cause,
    GroupEvent,
    Kind,
    Moved,
    Outcome,
    RebalanceBegan,
    RebalanceEnded,
    TopicPartition,
    partitions_moved,
)

__all__ = ["NS", "SOURCE", "Assigned", "Rebalances", "UnderWay"]

NS = 1_000_000
"""Nanoseconds in a millisecond."""

SOURCE = "coordinator"

Assigned = Mapping[str, frozenset[TopicPartition]]
"""What each member has."""


@dataclass(slots=True)
class UnderWay:
    """One rebalance. began: in milliseconds; generation: the new one, once it is known; joined: when it
    was."""

    kind: Kind
    cause: Cause
    member_id: str | None
    detail: str
    began: int
    generation_before: int | None
    generation: int | None = None
    joined: int | None = None
    protocol: str | None = None
    leader: str | None = None
    members: tuple[str, ...] = ()


class Rebalances:
    """Of all groups. report: takes the events; number: gives what they say of their place."""

    def __init__(self, report: Callable[[GroupEvent], None], number: Callable[[], int]) -> None:
        self._report = report
        self._number = number
        self._of: dict[str, UnderWay] = {}
        self._settled: dict[str, Assigned] = {}

    def get(self, group_id: str) -> UnderWay | None:
        return self._of.get(group_id)

    def place(self, group_id: str, now: int) -> dict[str, Any]:
        """The fields of all events that say where they are from."""
        return {"group": group_id, "time_ns": now * NS, "source": SOURCE, "number": self._number()}

    def begin(
        self,
        group_id: str,
        now: int,
        kind: Kind,
        cause: Cause,
        member_id: str | None,
        generation: int | None,
        detail: str = "",
    ) -> UnderWay:
        """A rebalance begins. generation: the one before it."""
        rebalance = self._of[group_id] = UnderWay(kind, cause, member_id, detail, now, generation)
        self._report(
            RebalanceBegan(
                **self.place(group_id, now), kind=kind, cause=cause, member_id=member_id, inferred=False,
                detail=detail,
            )
        )  # fmt: skip
        return rebalance

    def end(self, group_id: str, now: int, outcome: Outcome, assigned: Assigned | None = None) -> None:
        """The rebalance under way is over, if there is one. assigned: what members have now, if they do."""
        rebalance = self._of.pop(group_id, None)
        if rebalance is None:
            return
        after = assigned or {}
        moved: tuple[Moved, ...] = ()
        if outcome in ("steady", "empty"):
            moved = tuple(partitions_moved(self._settled.get(group_id, {}), after))
            self.settle(group_id, after)
        self._report(
            RebalanceEnded(
                **self.place(group_id, now), kind=rebalance.kind, outcome=outcome, cause=rebalance.cause,
                member_id=rebalance.member_id, inferred=False, detail=rebalance.detail,
                began_ns=rebalance.began * NS,
                joined_ns=None if rebalance.joined is None else rebalance.joined * NS, ended_ns=now * NS,
                length_ns=(now - rebalance.began) * NS, generation_before=rebalance.generation_before,
                generation=rebalance.generation, protocol=rebalance.protocol, leader=rebalance.leader,
                members=rebalance.members, last_to_join=None, moved=moved,
                assignments=tuple(Assignment(name, tuple(sorted(after[name]))) for name in after),
            )
        )  # fmt: skip

    def settle(self, group_id: str, assigned: Assigned) -> None:
        """The group is steady with this."""
        if assigned:
            self._settled[group_id] = assigned
        else:
            self._settled.pop(group_id, None)

    def finish(self, now: int) -> None:
        """The coordinator gives up its groups."""
        for group_id in list(self._of):
            self.end(group_id, now, "unfinished")
