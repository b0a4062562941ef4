"""A group's story in numbers: what its events amount to.

Strategy: one `GroupStory` a group, fed event by event. Rules: counts and sums only, and what is standing at
the end, so that it stays small whatever the traffic.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from coordwire.groups.timeline_events import (
    CoordinatorFound,
    ErrorMet,
    GroupEvent,
    Kind,
    LagMeasured,
    MemberJoined,
    MemberLeft,
    OffsetCommitted,
    RebalanceBegan,
    RebalanceEnded,
    TopicPartition,
    Unanswered,
)

__all__ = ["GroupStory", "stories"]


@dataclass(slots=True)
class GroupStory:
    """What happened to one group.

    members: those still in, by id, with their client ids. generations: how many began. rebalancing_ns: the
    sum of the rebalances' lengths; longest: the longest of them. lag: the last of each partition. errors: how
    often each code was met.
    """

    group: str
    kind: Kind | None = None
    first_ns: int | None = None
    last_ns: int | None = None
    coordinator: str | None = None
    members: dict[str, str | None] = field(default_factory=dict)
    joined: int = 0
    left: int = 0
    generations: int = 0
    rebalances: int = 0
    rebalancing_ns: int = 0
    longest: RebalanceEnded | None = None
    commits: int = 0
    lag: dict[TopicPartition, int] = field(default_factory=dict)
    errors: Counter[int] = field(default_factory=Counter)
    unanswered: int = 0

    def add(self, event: GroupEvent) -> None:
        """Count one event."""
        if event.time_ns is not None:
            self.first_ns = event.time_ns if self.first_ns is None else min(self.first_ns, event.time_ns)
            self.last_ns = event.time_ns if self.last_ns is None else max(self.last_ns, event.time_ns)
        match event:
            case CoordinatorFound():
                self.coordinator = f"{event.node_id} at {event.host}:{event.port}"
            case MemberJoined():
                self.kind = event.kind
                self.joined += not event.rejoined
                self.members[event.member_id] = event.client_id
            case MemberLeft():
                self.left += 1
                self.members.pop(event.member_id, None)
            case RebalanceBegan():
                self.kind = event.kind
                self.rebalances += 1
            case RebalanceEnded():
                self.generations += event.generation not in (None, event.generation_before)
                length = event.length_ns or 0
                self.rebalancing_ns += length
                if self.longest is None or length > (self.longest.length_ns or 0):
                    self.longest = event
            case OffsetCommitted():
                self.commits += not (event.error_code or event.removed)
            case LagMeasured():
                self.lag[TopicPartition(event.topic, event.partition)] = event.lag
            case ErrorMet():
                self.errors[event.error_code] += 1
            case Unanswered():
                self.unanswered += 1


def stories(events: Iterable[GroupEvent]) -> dict[str, GroupStory]:
    """The stories of all groups that events are about, by their ids."""
    found: dict[str, GroupStory] = {}
    for event in events:
        found.setdefault(event.group, GroupStory(event.group)).add(event)
    return found
