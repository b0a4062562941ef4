"""A group's block of lines: a head with what its events amount to and a verdict, then a line an event.

Strategy: a rebalance's assignment is below its line; a member's commits between two lines that matter more
become one line, unless they are to be listed, as do lines that are equal but for their times. Rules: lines
are pieces of text with the names of styles; what a style looks like is for who shows them; text from outside
has its control characters escaped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from textwrap import wrap

from coordwire.capture.printable import Pieces, shown
from coordwire.enums import ErrorCode
from coordwire.timeline.events import (
    ErrorMet,
    GroupEvent,
    LagMeasured,
    MemberJoined,
    MemberLeft,
    RebalanceEnded,
    TransactionStep,
    Unanswered,
)
from coordwire.timeline.story.commit_lines import CommitLine, CommitLines, is_position
from coordwire.timeline.story.event_lines import EventLines
from coordwire.timeline.story.overview import Overview
from coordwire.timeline.story.story_links import StoryLinks
from coordwire.timeline.story.wording import (
    count,
    day,
    duration,
    error_name,
    short_names,
    stamp,
    verdict,
)
from coordwire.timeline.totals import GroupStory

ALIKE = 3
"""So many equal lines in a stretch become one."""

REPEATED = (ErrorMet, Unanswered, TransactionStep, LagMeasured)
"""What a client that retries does over and over; whatever else happens ends the stretch."""


def story_lines(events: Iterable[GroupEvent], width: int = 110) -> Iterator[str]:
    """The blocks of all groups as plain lines, without rich."""
    by_group: dict[str, list[GroupEvent]] = {}
    for event in events:
        by_group.setdefault(event.group, []).append(event)
    for number, (group, of_group) in enumerate(by_group.items()):
        if number:
            yield ""
        story = GroupStory(group)
        for event in of_group:
            story.add(event)
        members: list[GroupEvent] = [
            event for event in of_group if isinstance(event, MemberJoined | MemberLeft)
        ]
        for line in GroupBlock(story, of_group, members, width, commits=True).lines():
            yield "".join(text for text, _ in line)


class GroupBlock:
    """One group's lines. members: the events of who was in."""

    def __init__(
        self, story: GroupStory, events: list[GroupEvent], members: list[GroupEvent], width: int, *,
        commits: bool,
    ) -> None:  # fmt: skip
        self._commits = commits
        self._story = story
        self._events = sorted(events, key=lambda event: event.time_ns or 0)
        self._width = width
        self._overview = Overview(story, events, members, width)
        days = {day(event.time_ns) for event in events if event.time_ns is not None}
        packets = max((event.packet or 0 for event in events), default=0)
        width = len(str(packets)) if packets else 0
        self._of = EventLines(
            short_names(members), one_day=len(days) == 1, packet_width=width,
            links=StoryLinks.of(events, members),
        )  # fmt: skip
        self.margin = 19 + (width + 2 if width else 0)
        """Columns before an event's words: margin, time, packet, sign."""

    def overview(self) -> Iterator[Pieces]:
        """The head, what went wrong, a line a rebalance, and who is in at the end."""
        yield from self.head(brief=True)
        yield from self._overview.lines()

    @property
    def rebalances(self) -> int:
        """How many rebalances have a number."""
        return len(self._overview.rows)

    def rebalance(self, number: int) -> Iterator[Pieces]:
        """The rebalance of this number in full."""
        yield self._overview.title()
        if number <= self.rebalances:
            yield from self._overview.rebalance(number)
        else:
            yield [(f"   it has {count(self.rebalances, 'rebalance')}", "note")]

    def lines(self) -> Iterator[Pieces]:
        """The head, and a line an event."""
        yield from self.head()
        stretch: list[tuple[GroupEvent, Pieces | CommitLine]] = []
        positions = CommitLines(self._of, folded=not self._commits)
        for event in self._events:
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

    def head(self, *, brief: bool = False) -> Iterator[Pieces]:
        """The summary of the group's history. brief: without what the overview has below it."""
        yield self._overview.title()
        for text, style in self._sums(brief):
            for line in wrap(text, max(self._width - 3, 20), break_on_hyphens=False) or [""]:
                yield [("   ", "plain"), (line, style)]

    def _sums(self, brief: bool) -> Iterator[tuple[str, str]]:
        story = self._story
        span = ""
        if story.first_ns is not None and story.last_ns is not None and not brief:
            length = story.last_ns - story.first_ns
            span = f"{stamp(story.first_ns)}{f' for {duration(length)}' if length else ''}: "
        parts = [f"{count(story.joined, 'member')} joined"] if story.joined else []
        parts += [count(story.generations, "generation")] if story.generations else []
        parts += [count(story.commits, "commit")] if story.commits else []
        text = (span + ", ".join(parts)).removesuffix(": ")
        if text or story.first_ns is None:
            yield text or "no times are known", "plain"
        if story.rebalances:
            yield shown(verdict(story)), "head"
            if not brief or (story.unmeasured and not story.rebalancing_ns):
                yield from self._lengths()
        if text := self._overview.without_members():
            yield text, "bad"
        if story.lag:
            open_lag = {partition: lag for partition, lag in story.lag.items() if lag > 0}
            most = max(open_lag, key=lambda partition: open_lag[partition], default=None)
            text = f"lag at the end {sum(open_lag.values()):,}"
            if most is not None:
                text += f", most in {shown(most.topic)}-{most.partition}: {open_lag[most]:,}"
            yield text, "busy" if open_lag else "good"
        beyond = {partition: -lag for partition, lag in story.lag.items() if lag < 0}
        if beyond:
            most = max(beyond, key=lambda partition: beyond[partition])
            text = f"committed beyond the end in {count(len(beyond), 'partition')}"
            yield f"{text}, most in {shown(most.topic)}-{most.partition}: {beyond[most]:,}", "bad"
        errors = set(story.errors) - {ErrorCode.REBALANCE_IN_PROGRESS}
        if errors:
            counts = [entry for entry in story.errors.most_common() if entry[0] in errors]
            yield "errors: " + ", ".join(f"{error_name(code)} × {times:,}" for code, times in counts), "bad"

    def _lengths(self) -> Iterator[tuple[str, str]]:
        """How long rebalances took, as far as that is known: a log does not show when most of them began."""
        story = self._story
        if not story.rebalancing_ns:
            if story.unmeasured:
                yield "the input does not show how long that took", "plain"
            return
        text = f"{duration(story.rebalancing_ns)} of rebalancing in all"
        if story.unmeasured:
            text += f", without {story.unmeasured:,} of unknown length"
        if story.longest is not None and story.longest.length_ns:
            cause = self._of.cause(story.longest)
            text += f"; the longest {duration(story.longest.length_ns)}: {cause}"
        yield text, "plain"
