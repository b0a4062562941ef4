"""The events of groups, collected for their stories.

Strategy: what stories are made of is kept, and what is to have a line of its own. Commits and lags are
counted at once; all else once it is there, in the order of time, since some of it is found out later than it
happened. Rules: what is kept is bounded, for all groups together, and `left_out` counts what is not, which
counts in the sums at once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from coordwire.timeline.events import (
    GroupDeleted,
    GroupEvent,
    LagMeasured,
    MemberJoined,
    MemberLeft,
    OffsetCommitted,
)
from coordwire.timeline.totals import GroupStory

__all__ = ["MOST_EVENTS", "CollectedEvents", "CollectedGroup", "is_position"]

MOST_EVENTS = 100_000


def is_position(event: GroupEvent) -> bool:
    """Whether an event is a commit, or a lag of 0 or more: of these a story has sums only."""
    return isinstance(event, OffsetCommitted) or (isinstance(event, LagMeasured) and event.lag >= 0)


@dataclass(slots=True)
class CollectedGroup:
    """One group. events: what its story is made of; line_events: those that are to have a line, and has_lines
    whether there was any; members: who was in, of all times."""

    counted: GroupStory
    events: list[GroupEvent] = field(default_factory=list)
    line_events: list[GroupEvent] = field(default_factory=list)
    members: list[GroupEvent] = field(default_factory=list)
    has_lines: bool = False
    _is_whole: bool = False

    def totals(self) -> GroupStory:
        """What all events amount to, once all are there."""
        if not self._is_whole:
            self._is_whole = True
            self.events.sort(key=lambda event: event.time_ns or 0)
            for event in self.events:
                if not isinstance(event, GroupDeleted):
                    self.counted.add(event)
        return self.counted


class CollectedEvents:
    """groups: by their ids, in the order in which they came; lists: whether events are to have lines."""

    def __init__(self, events: Iterable[GroupEvent] = (), *, lists: bool = False) -> None:
        self.groups: dict[str, CollectedGroup] = {}
        self.left_out = 0
        self._lists = lists
        self._story_count = self._line_count = self._members = 0
        for event in events:
            self.add(event)

    def add(self, event: GroupEvent, *, is_listed: bool = True) -> None:
        """Add one event. is_listed: whether it may have a line; it counts in any case."""
        group = self._group(event)
        group.has_lines |= is_listed
        is_kept = is_position(event)
        if not is_kept:
            self._story_count += 1
            is_kept = self._story_count <= MOST_EVENTS
            if is_kept:
                group.events.append(event)
        if is_position(event) or not is_kept or isinstance(event, GroupDeleted):
            group.counted.add(event)
        if self._lists and is_listed:
            self._line_count += 1
            is_kept &= self._line_count <= MOST_EVENTS
            if self._line_count <= MOST_EVENTS:
                group.line_events.append(event)
        self.left_out += not is_kept
        self.learn(event)

    def learn(self, event: GroupEvent) -> None:
        """Remember a member's name, for events that mention it."""
        if isinstance(event, MemberJoined | MemberLeft) and self._members < MOST_EVENTS:
            self._members += 1
            self._group(event).members.append(event)

    def _group(self, event: GroupEvent) -> CollectedGroup:
        group = self.groups.get(event.group)
        if group is None:
            group = self.groups[event.group] = CollectedGroup(GroupStory(event.group))
        return group
