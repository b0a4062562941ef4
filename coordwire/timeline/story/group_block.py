"""A group's block of lines: a head with what its events amount to and a verdict, then a line an event.

Rules: lines are pieces of text with the names of styles; what a style looks like is for who shows them; text
from outside has its control characters escaped.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from coordwire.capture.printable import Pieces
from coordwire.timeline.events import GroupEvent
from coordwire.timeline.story.collected import CollectedEvents, CollectedGroup
from coordwire.timeline.story.contents import StoryContents
from coordwire.timeline.story.event_lines import EventLines
from coordwire.timeline.story.event_list import event_list
from coordwire.timeline.story.member_numbers import MemberNumbers
from coordwire.timeline.story.overview import Overview
from coordwire.timeline.story.story_links import StoryLinks
from coordwire.timeline.story.wording import count, day


def story_lines(events: Iterable[GroupEvent], width: int = 110) -> Iterator[str]:
    """The blocks of all groups as plain lines, without rich: a line an event."""
    for number, group in enumerate(CollectedEvents(events, lists=True).groups.values()):
        if number:
            yield ""
        for line in GroupBlock(group, width, commits=True).lines():
            yield "".join(text for text, _ in line)


class GroupBlock:
    """One group's lines. width: of the terminal, in columns; commits: whether each commit has a line."""

    def __init__(self, group: CollectedGroup, width: int, *, commits: bool = False) -> None:
        self._commits = commits
        self._line_events = group.line_events
        self.contents = StoryContents(group)
        self.overview = Overview(self.contents, width)
        links = StoryLinks.of(group.line_events, group.members)
        self._words = _words(group.line_events, self.contents.numbers, links)
        self.margin = self._words.margin

    def rebalance(self, number: int) -> Iterator[Pieces]:
        """The rebalance of this number in full."""
        yield self.overview.title()
        if number <= self.contents.numbered:
            yield from self.overview.rebalance(number)
        else:
            yield [(f"   it has {count(self.contents.numbered, 'rebalance')}", "note")]

    def lines(self) -> Iterator[Pieces]:
        """The head, and a line an event."""
        yield from self.overview.head()
        yield from event_list(self._line_events, self._words, self._commits)


class GroupExcerpts:
    """The lines of one group's events while more come; a member keeps its number. commits: whether each
    commit has a line."""

    def __init__(self, group: CollectedGroup, *, commits: bool = False) -> None:
        self.group = group
        self._members_read = 0
        self._numbers = MemberNumbers()
        self._links = StoryLinks()
        self._commits = commits
        self.margin = 0
        """Columns before the words of the last events."""

    def lines(self, events: Sequence[GroupEvent]) -> Iterator[Pieces]:
        """A line an event of some that are new."""
        new_members = self.group.members[self._members_read :]
        self._members_read += len(new_members)
        self._numbers.add(new_members)
        self._links.add_members(new_members)
        self._links.add(events)
        words = _words(events, self._numbers, self._links)
        self.margin = words.margin
        return event_list(events, words, self._commits)


def _words(events: Collection[GroupEvent], numbers: MemberNumbers, links: StoryLinks) -> EventLines:
    days = {day(event.time_ns) for event in events if event.time_ns is not None}
    packets = max((event.packet or 0 for event in events), default=0)
    packet_width = len(str(packets)) if packets else 0
    return EventLines(numbers, one_day=len(days) == 1, packet_width=packet_width, links=links)
