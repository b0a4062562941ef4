"""A timeline for people: a block a group, with a line an event.

Strategy: events gather by group; at the end each group's story is written (`timeline.story`), in colours on a
terminal. Rules: the events are bounded: the oldest are dropped, which is reported; the last line is a command
to go on with.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from coordwire.capture.printable import Pieces
from coordwire.cli import Failure
from coordwire.cli.selection.times import TimeSpan
from coordwire.cli.terminal import folded, rich_console
from coordwire.timeline.events import GroupEvent
from coordwire.timeline.story.collected import MOST_GROUPS, CollectedEvents, CollectedGroup
from coordwire.timeline.story.contents import common_verdict, group_name
from coordwire.timeline.story.group_block import GroupBlock, GroupExcerpts
from coordwire.timeline.story.overview import wrapped
from coordwire.timeline.story.wording import day, duration, stamp
from coordwire.timeline.totals import StoryKey

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
        rebalance: int | None = None, command: str | None = None, is_part: bool = False,
        of_groups: bool = False,
    ) -> None:  # fmt: skip
        """summary: only the heads; by_events: a line an event; commits: list each commit; rebalance: the
        number of the only one that is written; command: what gives the whole story of the same inputs;
        is_part: whether only some times of it are written; of_groups: whether only some groups are."""
        self._command = command
        self._is_part = is_part
        self._of_groups = of_groups
        self._summary = summary
        self._commits = commits
        self._by_events = by_events or commits
        self._rebalance = rebalance
        self._console = rich_console("the story")
        self._width = max(self._console.width, 60)
        self._collected = CollectedEvents(lists=self._by_events and not summary)
        self._heading = ""
        self._written_group: GroupExcerpts | None = None
        self._excerpts: dict[int, GroupExcerpts] = {}

    @property
    def groups(self) -> Collection[StoryKey]:
        """The groups that events were about."""
        return self._collected.groups

    def write(self, event: GroupEvent, *, is_listed: bool = True) -> None:
        """Add one event. is_listed: whether it has a line; it counts in the head in any case."""
        self._collected.add(event, is_listed=is_listed)

    def learn(self, event: GroupEvent) -> None:
        """Remember a member's name, for events that mention it."""
        self._collected.learn(event)

    def heading(self, place: str, span: TimeSpan | None) -> None:
        if span is not None:
            self._heading = (
                f"   {place}: {stamp(span[0])} to {_until(*span)} UTC, {duration(span[1] - span[0])}"
            )

    def finish(self) -> None:
        groups = [group for group in self._collected.groups.values() if group.has_lines]
        blocks = [GroupBlock(group, self._width, commits=self._commits) for group in groups]
        if self._rebalance is not None:
            self._refuse_if_none_has(self._rebalance, blocks)
        if groups and self._heading:
            self._show([(self._heading, "plain")], 3)
        if len(blocks) > 1 and self._rebalance is None:
            text = common_verdict([block.contents for block in blocks])
            self._write_lines(
                ([("   ", "plain"), (line, "head")] for line in wrapped(text, self._width, 3)), 3
            )
        for number, block in enumerate(blocks):
            if number:
                self._console.print()
            self._write_lines(self._lines(block), block.margin)
        if self._collected.left_out:
            dropped = (
                f"… {self._collected.left_out:,} earlier events; --format json, --until or --group show them"
            )
            self._show([(dropped, "busy")], 3)
        if self._collected.groups_left_out:
            count = self._collected.groups_left_out
            dropped = f"… {count:,} more groups; --format json or --group shows them"
            self._show([(dropped, "busy")], 3)
        if self._command is not None and blocks:
            self._show([(f"Next: {self._command}{self._next(blocks)}", "note")], 3)

    def _next(self, blocks: Sequence[GroupBlock]) -> str:
        """The options with which the command shows more: of a story its most costly rebalance, of that the
        events, of all else the story."""
        worst = max((block.contents for block in blocks), key=lambda story: story.weight(story.worst_row))
        several = len(blocks) > 1
        if self._rebalance is not None:
            return f"{worst.group_option if several or self._of_groups else ''} --events"
        if self._summary or self._by_events or self._is_part:
            return ""
        return worst.next_options(names_group=several or self._of_groups)

    def _excerpts_of(self, collected: CollectedGroup) -> GroupExcerpts:
        """The lines of a group, which hold it, so that no other one gets its id."""
        excerpts = self._excerpts.get(id(collected))
        if excerpts is None:
            if len(self._excerpts) >= 2 * MOST_GROUPS:
                current_ids = {id(group) for group in self._collected.groups.values()}
                self._excerpts = {
                    number: lines for number, lines in self._excerpts.items() if number in current_ids
                }
            excerpts = self._excerpts[id(collected)] = GroupExcerpts(collected, commits=self._commits)
        return excerpts

    def write_events(self, key: StoryKey, events: list[GroupEvent]) -> None:
        """Write the lines of some events of a group now; its name first, unless it was the last one's. None
        of a group that was forgotten meanwhile, as there are too many."""
        collected = self._collected.groups.get(key)
        if collected is None:
            return
        excerpts = self._excerpts_of(collected)
        lines = list(excerpts.lines(events))
        if lines and excerpts is not self._written_group:
            self._written_group = excerpts
            name = f"── {group_name(excerpts.group.counted)} "
            times = [event.time_ns for event in events if event.time_ns is not None]
            date = f" {stamp(min(times)).partition(' ')[0]} UTC ──" if times else ""
            rule = "─" * max(self._width - len(name) - len(date), 2)
            self._write_lines([[(name, "head"), (f"{rule}{date}", "rule")]], 3)
        self._write_lines(lines, excerpts.margin)

    def _write_lines(self, lines: Iterable[Pieces], margin: int) -> None:
        for line in lines:
            self._show(line, margin)

    def _refuse_if_none_has(self, rebalance: int, blocks: Sequence[GroupBlock]) -> None:
        """Raise `Failure` where groups were found, and none has a rebalance of this number."""
        if not blocks or any(rebalance <= block.contents.numbered for block in blocks):
            return
        known = [f"{block.contents.name} has {_numbered(block.contents.numbered)}" for block in blocks]
        further = f", and {len(known) - MOST_NAMED:,} more groups fewer" if len(known) > MOST_NAMED else ""
        raise Failure(f"timeline: no rebalance {rebalance}: {', '.join(known[:MOST_NAMED])}{further}")

    def _lines(self, block: GroupBlock) -> Iterator[Pieces]:
        if self._by_events and not self._summary:
            return block.lines()
        if self._rebalance is not None:
            return block.rebalance(self._rebalance)
        return block.overview.head() if self._summary else block.overview.lines()

    def _show(self, line: Pieces, margin: int) -> None:
        """Write a line; on a terminal its continuation is indented to its words, beyond its time."""
        from rich.text import Text

        lines = folded(line, self._console.width, margin) if self._console.is_terminal else [line]
        for pieces in lines:
            self._console.print(
                Text.assemble(*((text, STYLES[style]) for text, style in pieces)), soft_wrap=True
            )


def _numbered(number: int) -> str:
    return f"1 to {number}" if number > 1 else "1 alone" if number else "none"


def _until(first_ns: int, last_ns: int) -> str:
    """The last time, with its day if that is another."""
    text = stamp(last_ns)
    return text.partition(" ")[2] if day(first_ns) == day(last_ns) else text
