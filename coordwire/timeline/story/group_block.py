"""A group's block of lines: a head with what its events amount to and a verdict, then a line an event.

Strategy: a rebalance's assignment is below its line; a member's commits between two lines that matter more
become one line, unless they are to be listed, as do lines that are equal but for their times. Rules: lines
are pieces of text with the names of styles; what a style looks like is for who shows them; text from outside
has its control characters escaped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from coordwire.capture.printable import Pieces
from coordwire.timeline.events import (
    ErrorMet,
    GroupEvent,
    LagMeasured,
    RebalanceEnded,
    TransactionStep,
    Unanswered,
)
from coordwire.timeline.story.collected import CollectedEvents, CollectedGroup, is_position
from coordwire.timeline.story.commit_lines import CommitLine, CommitLines
from coordwire.timeline.story.contents import StoryContents
from coordwire.timeline.story.event_lines import EventLines
from coordwire.timeline.story.overview import Overview
from coordwire.timeline.story.story_links import StoryLinks
from coordwire.timeline.story.wording import count, day

ALIKE = 3
"""So many equal lines in a stretch become one."""

REPEATED = (ErrorMet, Unanswered, TransactionStep, LagMeasured)
"""What a client that retries does over and over; whatever else happens ends the stretch."""


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
        self._line_events = sorted(group.line_events, key=lambda event: event.time_ns or 0)
        self.contents = StoryContents(group)
        self.overview = Overview(self.contents, width)
        days = {day(event.time_ns) for event in group.line_events if event.time_ns is not None}
        packets = max((event.packet or 0 for event in group.line_events), default=0)
        packet_width = len(str(packets)) if packets else 0
        self._of = EventLines(
            self.contents.numbers, one_day=len(days) == 1, packet_width=packet_width,
            links=StoryLinks.of(group.line_events, group.members),
        )  # fmt: skip
        self.margin = 19 + (packet_width + 2 if packet_width else 0)
        """Columns before an event's words: margin, time, packet, sign."""

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
        yield from self.event_lines()

    def event_lines(self) -> Iterator[Pieces]:
        """A line an event."""
        stretch: list[tuple[GroupEvent, Pieces | CommitLine]] = []
        positions = CommitLines(self._of, folded=not self._commits)
        for event in self._line_events:
            if is_position(event):
                new_line = positions.add(event)
                if new_line is not None:
                    stretch.append((event, new_line))
                continue
            positions.interrupt()
            if not isinstance(event, REPEATED):
                yield from self._collapsed(stretch)
                stretch = []
                positions.end()
            stretch.append((event, self._of.pieces(event)))
            if isinstance(event, RebalanceEnded):
                yield from self._collapsed(stretch)
                stretch = []
                yield from self._of.below(event)
        yield from self._collapsed(stretch)

    def _collapsed(self, lines: list[tuple[GroupEvent, Pieces | CommitLine]]) -> Iterator[Pieces]:
        """The lines between two that matter more; many that are equal become one with their number."""
        stretch = [
            (event, line_or_commits.pieces() if isinstance(line_or_commits, CommitLine) else line_or_commits)
            for event, line_or_commits in lines
        ]
        texts = ["".join(text for text, _ in pieces) for _, pieces in stretch]
        counts = Counter(texts)
        last = dict(zip(texts, (event for event, _ in stretch), strict=True))
        for (event, pieces), text in zip(stretch, texts, strict=True):
            if not pieces or not counts[text]:
                continue
            line = [*self._of.time(event), *pieces]
            if counts[text] >= ALIKE:
                until = self._of.clock(last[text])
                line.append((f"  × {counts[text]:,} until {until}", "busy"))
                counts[text] = 0
            yield line
