"""The events of groups, collected for their stories.

Strategy: what stories are made of is kept, and what is to have a line of its own. Commits and lags are
counted at once; all else once it is there, in the order of time, since some of it is found out later than it
happened. Rules: what is kept is bounded, for all groups together: the oldest goes, is counted in the sums
then, and in `left_out`. So are groups: those that were deleted go first, then the oldest.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from coordwire.timeline.events import (
    ClusterFound,
    GroupDeleted,
    GroupEvent,
    LagMeasured,
    MemberJoined,
    MemberLeft,
    OffsetCommitted,
)
from coordwire.timeline.totals import GroupStory, StoryKey, named, story_key

__all__ = ["MOST_EVENTS", "MOST_GROUPS", "CollectedEvents", "CollectedGroup", "is_position"]

MOST_EVENTS = 100_000
MOST_GROUPS = 10_000


def is_position(event: GroupEvent) -> bool:
    """Whether an event is a commit, or a lag of 0 or more: of these a story has sums only."""
    return isinstance(event, OffsetCommitted) or (isinstance(event, LagMeasured) and event.lag >= 0)


@dataclass(slots=True)
class CollectedGroup:
    """One group. events: what its story is made of; line_events: those that are to have a line, and has_lines
    whether there was any; members: who was in, of all times."""

    counted: GroupStory
    events: deque[GroupEvent] = field(default_factory=deque)
    line_events: deque[GroupEvent] = field(default_factory=deque)
    members: list[GroupEvent] = field(default_factory=list)
    has_lines: bool = False
    _is_whole: bool = False

    def count(self, event: GroupEvent) -> None:
        """Count what is not counted yet: of what is kept a deletion alone is, among the commits before it."""
        if not isinstance(event, GroupDeleted):
            self.counted.add(event)

    def totals(self) -> GroupStory:
        """What all events amount to, once all are there."""
        if not self._is_whole:
            self._is_whole = True
            self.events = deque(sorted(self.events, key=lambda event: event.time_ns or 0))
            for event in self.events:
                self.count(event)
        return self.counted


class CollectedEvents:
    """groups: by their `story_key`, in the order in which they came; lists: whether events are to have lines;
    left_out: the events that have no line, or, where there are none, no part in the story; groups_left_out:
    how many groups have no story."""

    def __init__(self, events: Iterable[GroupEvent] = (), *, lists: bool = False) -> None:
        self.groups: OrderedDict[StoryKey, CollectedGroup] = OrderedDict()
        self.left_out = self.groups_left_out = 0
        self._deleted: OrderedDict[StoryKey, None] = OrderedDict()  # keys of groups that are
        self._lists = lists
        self._story_order: deque[CollectedGroup] = deque()
        self._line_order: deque[CollectedGroup] = deque()
        """The groups of what is kept, the oldest event's first."""
        self._members = 0
        for event in events:
            self.add(event)

    def add(self, event: GroupEvent, *, is_listed: bool = True) -> None:
        """Add one event. is_listed: whether it may have a line; it counts in any case."""
        if isinstance(event, ClusterFound):
            self._name_cluster(event)
            return
        group = self._group(event)
        group.has_lines |= is_listed
        if isinstance(event, GroupDeleted):
            self._deleted[story_key(event)] = None
        elif self._deleted and not is_position(event):
            self._deleted.pop(story_key(event), None)
        if is_position(event) or isinstance(event, GroupDeleted):
            group.counted.add(event)
        if not is_position(event):
            group.events.append(event)
            self._story_order.append(group)
            if len(self._story_order) > MOST_EVENTS:
                oldest = self._story_order.popleft()
                oldest.count(oldest.events.popleft())
                self.left_out += not self._lists
        if self._lists and is_listed:
            group.line_events.append(event)
            self._line_order.append(group)
            if len(self._line_order) > MOST_EVENTS:
                self._line_order.popleft().line_events.popleft()
                self.left_out += 1
        self.learn(event)

    def learn(self, event: GroupEvent) -> None:
        """Remember a member's name, for events that mention it."""
        if isinstance(event, MemberJoined | MemberLeft) and self._members < MOST_EVENTS:
            self._members += 1
            self._group(event).members.append(event)

    def _group(self, event: GroupEvent) -> CollectedGroup:
        key = story_key(event)
        group = self.groups.get(key)
        if group is None:
            if len(self.groups) >= MOST_GROUPS:
                deleted = next(iter(self._deleted), None)
                if deleted is not None:
                    del self._deleted[deleted]
                del self.groups[next(iter(self.groups)) if deleted is None else deleted]
                self.groups_left_out += 1
            group = self.groups[key] = CollectedGroup(GroupStory(event.group, event.cluster))
        return group

    def _name_cluster(self, event: ClusterFound) -> None:
        """The groups so far are this cluster's."""
        self.groups = OrderedDict(named(self.groups, event.cluster or ""))
        self._deleted = OrderedDict(named(self._deleted, event.cluster or ""))
        for group in self.groups.values():
            group.counted.part(event)
