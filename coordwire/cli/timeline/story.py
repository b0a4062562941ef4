"""A timeline for people: a block a group, with a line an event.

Strategy: events gather by group; at the end each group's block is written (`timeline.story`), in colours on a
terminal. Rules: the events are bounded: the oldest are dropped, which is reported.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from coordwire.capture.printable import Pieces, shown
from coordwire.cli import Failure
from coordwire.cli.selection.times import TimeSpan
from coordwire.cli.terminal import rich_console
from coordwire.errors import counted
from coordwire.timeline.events import GroupEvent, MemberJoined, MemberLeft
from coordwire.timeline.story.commit_lines import is_position
from coordwire.timeline.story.group_block import GroupBlock
from coordwire.timeline.story.wording import day, duration, stamp
from coordwire.timeline.totals import GroupStory

if TYPE_CHECKING:
    from rich.text import Text

MOST_EVENTS = 100_000
MOST_NAMED = 10
"""Groups in an error."""
STYLES = {
    "head": "bold", "rule": "dim", "time": "dim", "note": "dim", "plain": "", "good": "green",
    "in": "bold green", "out": "bold yellow", "busy": "bold yellow", "bad": "bold red",
    "number": "cyan", "member": "cyan",
}  # fmt: skip


class StoryFormat:
    """Writes blocks to standard output, at the end."""

    is_quiet = True

    def __init__(
        self, *, summary: bool = False, commits: bool = False, by_events: bool = False,
        rebalance: int | None = None, keeps_commits: bool = True,
    ) -> None:  # fmt: skip
        """summary: only the heads; by_events: a line an event; commits: list each commit; rebalance: the
        number of the only one that is written; keeps_commits: whether commits are among the events that are
        kept for the end, or only counted."""
        self._summary = summary
        self._commits = commits
        self._by_events = by_events or commits
        self._rebalance = rebalance
        self._console = rich_console("the story")
        self._width = max(self._console.width, 60)
        self._keeps_commits = keeps_commits
        self._events: dict[str, deque[GroupEvent]] = {}
        self._order: deque[str] = deque()
        """The groups of the events that are kept, the oldest first."""
        self._members: dict[str, list[GroupEvent]] = {}
        self._stories: dict[str, GroupStory] = {}
        self._dropped = 0
        self._heading = ""
        self._written_group: str | None = None

    @property
    def groups(self) -> Collection[str]:
        """The groups that events were about."""
        return self._stories

    def write(self, event: GroupEvent, *, is_listed: bool = True) -> None:
        """Add one event. is_listed: whether it has a line; it counts in the head in any case."""
        group = event.group
        self._stories.setdefault(group, GroupStory(group)).add(event)
        self.learn(event)
        if is_listed:
            events = self._events.setdefault(group, deque())
            if not self._keeps_commits and is_position(event):
                return
            events.append(event)
            self._order.append(group)
            if len(self._order) > MOST_EVENTS:
                self._dropped += 1
                self._events[self._order.popleft()].popleft()

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

        blocks: Iterable[GroupBlock] = (
            self._block(group, list(events)) for group, events in self._events.items()
        )
        if self._rebalance is not None:
            blocks = list(blocks)
            self._refuse_if_none_has(self._rebalance, blocks)
        if self._events and self._heading:
            self._show(Text(self._heading), 3)
        for number, block in enumerate(blocks):
            if number:
                self._console.print()
            self._write_lines(self._lines(block), block.margin)
        if self._dropped:
            dropped = f"… {self._dropped:,} earlier events; --format json, --until or --group show them"
            self._console.print(dropped, style="bold yellow")

    def write_events(self, group: str, events: list[GroupEvent]) -> None:
        """Write the lines of some events of a group now; its name first, unless it was the last one's."""
        block = self._block(group, events)
        lines = list(block.event_lines())
        if lines and group != self._written_group:
            self._written_group = group
            name = f"── {shown(group) or 'no group that is known'} "
            times = [event.time_ns for event in events if event.time_ns is not None]
            date = f" {stamp(min(times)).partition(' ')[0]} UTC ──" if times else ""
            rule = "─" * max(self._width - len(name) - len(date), 2)
            self._write_lines([[(name, "head"), (f"{rule}{date}", "rule")]], 3)
        self._write_lines(lines, block.margin)

    def _write_lines(self, lines: Iterable[Pieces], margin: int) -> None:
        from rich.text import Text

        for line in lines:
            self._show(Text.assemble(*((text, STYLES[style]) for text, style in line)), margin)

    def _refuse_if_none_has(self, rebalance: int, blocks: Sequence[GroupBlock]) -> None:
        """Raise `Failure` where groups were found, and none has a rebalance of this number."""
        if not blocks or any(rebalance <= block.rebalances for block in blocks):
            return
        known = [
            f"{shown(group)} has {counted(block.rebalances, 'rebalance')}"
            for group, block in zip(self._events, blocks, strict=True)
        ]
        further = f", and {len(known) - MOST_NAMED:,} more groups fewer" if len(known) > MOST_NAMED else ""
        raise Failure(f"timeline: no rebalance {rebalance}: {', '.join(known[:MOST_NAMED])}{further}")

    def _lines(self, block: GroupBlock) -> Iterator[Pieces]:
        if self._by_events and not self._summary:
            return block.lines()
        if self._rebalance is not None:
            return block.rebalance(self._rebalance)
        return block.head() if self._summary else block.overview()

    def _block(self, group: str, events: list[GroupEvent]) -> GroupBlock:
        members = self._members.get(group, [])
        return GroupBlock(self._stories[group], events, members, self._width, commits=self._commits)

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


def _until(first_ns: int, last_ns: int) -> str:
    """The last time, with its day if that is another."""
    text = stamp(last_ns)
    return text.partition(" ")[2] if day(first_ns) == day(last_ns) else text
