"""A timeline for people: a block a group, with a line an event.

Strategy: events gather by group; at the end each group's block is written: a head with what it amounts to
and a verdict, then a line an event, with a rebalance's assignment below it; a member's commits between two
lines that matter more become one line, unless they are to be listed, as do lines that are equal but for their
times. Rules: the events are bounded, and dropped ones are
reported; text from outside reaches the terminal with its control characters escaped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from textwrap import wrap
from typing import TYPE_CHECKING

from coordwire.capture.printable import shown
from coordwire.cli.selection.times import TimeSpan
from coordwire.cli.terminal import Pieces, rich_console
from coordwire.cli.timeline.commit_lines import CommitLine, CommitLines, is_position
from coordwire.cli.timeline.event_lines import EventLines
from coordwire.cli.timeline.overview import Overview
from coordwire.cli.timeline.story_links import StoryLinks
from coordwire.cli.timeline.wording import (
    count,
    day,
    duration,
    error_name,
    short_names,
    stamp,
    verdict,
)
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
from coordwire.timeline.totals import GroupStory

if TYPE_CHECKING:
    from rich.text import Text

MOST_EVENTS = 100_000
STYLES = {
    "head": "bold", "rule": "dim", "time": "dim", "note": "dim", "plain": "", "good": "green",
    "in": "bold green", "out": "bold yellow", "busy": "bold yellow", "bad": "bold red",
    "number": "cyan", "member": "cyan",
}  # fmt: skip
ALIKE = 3
"""So many equal lines in a stretch become one."""

REPEATED = (ErrorMet, Unanswered, TransactionStep, LagMeasured)
"""What a client that retries does over and over; whatever else happens ends the stretch."""


class StoryFormat:
    """Writes blocks to standard output, at the end."""

    is_quiet = True

    def __init__(
        self, *, summary: bool = False, commits: bool = False, by_events: bool = False,
        rebalance: int | None = None,
    ) -> None:  # fmt: skip
        """summary: only the heads; by_events: a line an event; commits: list each commit; rebalance: the
        number of the only one that is written."""
        self._summary = summary
        self._commits = commits
        self._by_events = by_events or commits
        self._rebalance = rebalance
        self._console = rich_console("the story")
        self._width = max(self._console.width, 60)
        self._events: dict[str, list[GroupEvent]] = {}
        self._members: dict[str, list[GroupEvent]] = {}
        self._stories: dict[str, GroupStory] = {}
        self._count = 0
        self._heading = ""

    def write(self, event: GroupEvent, *, is_listed: bool = True) -> None:
        """Add one event. is_listed: whether it has a line; it counts in the head in any case."""
        group = event.group
        self._stories.setdefault(group, GroupStory(group)).add(event)
        self.learn(event)
        if is_listed:
            events = self._events.setdefault(group, [])
            self._count += 1
            if self._count <= MOST_EVENTS:
                events.append(event)

    def learn(self, event: GroupEvent) -> None:
        """Remember a member's name, for events that mention it."""
        if isinstance(event, MemberJoined | MemberLeft):
            members = self._members.setdefault(event.group, [])
            if len(members) < MOST_EVENTS:
                members.append(event)

    def heading(self, place: str, span: TimeSpan | None) -> None:
        if span is not None:
            self._heading = (
                f"   {place}: {stamp(span[0])} to {_until(*span)} UTC, {duration(span[1] - span[0])}"
            )

    def finish(self) -> None:
        from rich.text import Text

        if self._events and self._heading:
            self._show(Text(self._heading), 3)
        for number, (group, events) in enumerate(self._events.items()):
            if number:
                self._console.print()
            block = self._block(group, events)
            for line in self._lines(block):
                text = Text.assemble(*((text, STYLES[style]) for text, style in line))
                self._show(text, block.margin)
        if self._count > MOST_EVENTS:
            dropped = (
                f"… {self._count - MOST_EVENTS:,} more events; --format json, --since or --group show them"
            )
            self._console.print(dropped, style="bold yellow")

    def _lines(self, block: _Block) -> Iterator[Pieces]:
        if self._by_events and not self._summary:
            return block.lines()
        if self._rebalance is not None:
            return block.rebalance(self._rebalance)
        return block.head() if self._summary else block.overview()

    def _block(self, group: str, events: list[GroupEvent]) -> _Block:
        members = self._members.get(group, [])
        return _Block(self._stories[group], events, members, self._width, commits=self._commits)

    def _show(self, text: Text, margin: int) -> None:
        if self._console.is_terminal:
            self._hang(text, margin)
        else:
            self._console.print(text, soft_wrap=True)

    def _hang(self, text: Text, margin: int) -> None:
        """Write a line; its continuation is indented to its words, beyond its time."""
        first = text.wrap(self._console, self._console.width)[0]
        remaining = text.plain[len(first.plain) :].lstrip()
        first.rstrip()
        self._console.print(first)
        if remaining:
            margin = min(margin, self._console.width // 2)
            for line in text[-len(remaining) :].wrap(self._console, max(self._console.width - margin, 1)):
                line.rstrip()
                line.pad_left(margin)
                self._console.print(line)


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
        for line in _Block(story, of_group, members, width, commits=True).lines():
            yield "".join(text for text, _ in line)


class _Block:
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

    def rebalance(self, number: int) -> Iterator[Pieces]:
        """The rebalance of this number in full."""
        yield self._overview.title()
        rows = len(self._overview.rows)
        if number <= rows:
            yield from self._overview.rebalance(number)
        else:
            yield [(f"   it has {count(rows, 'rebalance')}", "note")]

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


def _until(first_ns: int, last_ns: int) -> str:
    """The last time, with its day if that is another."""
    text = stamp(last_ns)
    return text.partition(" ")[2] if day(first_ns) == day(last_ns) else text
