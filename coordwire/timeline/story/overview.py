"""A group's story on a terminal: the verdict, what went wrong, each rebalance, then who is in.

Strategy: the texts of `contents` as pieces with the names of their styles, wrapped at the terminal's width.
Rules: no line is wider than the terminal, but for a table's at less than 70 columns.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from coordwire.capture.printable import Pieces
from coordwire.timeline.events import RebalanceEnded
from coordwire.timeline.story.contents import StoryContents
from coordwire.timeline.story.event_lines import EventLines
from coordwire.timeline.story.event_list import event_list
from coordwire.timeline.story.rebalance_table import TableRow, causes, table
from coordwire.timeline.story.story_links import StoryLinks
from coordwire.timeline.story.wording import clock

__all__ = ["Overview", "wrapped"]


def wrapped(text: str, width: int, margin: int) -> list[str]:
    """A text's lines, which have a margin, for a terminal of a width."""
    room = max(width - margin, 20)
    return textwrap.wrap(text, room, break_long_words=True, break_on_hyphens=False) or [""]


class Overview:
    """The lines of one group's story. width: of the terminal, in columns."""

    def __init__(self, contents: StoryContents, width: int) -> None:
        self._contents = contents
        self._width = width

    def title(self) -> Pieces:
        """The group, its protocol, its coordinator and its times, as far as there is room."""
        contents = self._contents
        kind = f"· {contents.kind} " if contents.kind else ""
        coordinator = f"· {contents.coordinator} " if contents.coordinator else ""
        name = f"── {contents.name} "
        day_and_times, times = (f" {span} ──" if span else "" for span in contents.times)
        for notes, span in (
            (kind + coordinator, day_and_times), (kind, day_and_times), (kind, times), (kind, ""), ("", ""),
        ):  # fmt: skip
            room = self._width - len(name) - len(notes) - len(span)
            if room >= 2:
                break
        return [(name, "head"), (notes, "note"), ("─" * max(room, 2) + span, "rule")]

    def head(self) -> Iterator[Pieces]:
        """The title, the verdict and the sums."""
        yield self.title()
        for text, style in self._contents.facts():
            yield from ([("   ", "plain"), (line, style)] for line in self._wrapped(text, 3))

    def lines(self) -> Iterator[Pieces]:
        """The whole story."""
        yield from self.head()
        contents = self._contents
        if contents.incidents:
            yield [("Incidents", "head")]
        for incident in contents.incidents:
            head = f"   {clock(incident.time_ns)}  "
            for number, text in enumerate(incident.lines):
                style = "busy" if number else "bad"
                for line in self._wrapped(text, len(head)):
                    yield [(head, "time"), (line, style)]
                    head = " " * len(head)
        if contents.rows:
            yield [(contents.rebalances_title(), "head")]
            yield from table(contents.table_rows, contents.numbers, self._width)
        yield from self._presence()

    def _presence(self) -> Iterator[Pieces]:
        for title, members, omitted in self._contents.presence():
            yield from ([(line, "head")] for line in self._wrapped(title, 0))
            for member in members:
                head = f"   {member.number:<4} "
                for line in self._wrapped("  ".join(member.notes), len(head)):
                    yield [(head, "member"), (line, "plain")]
                    head = " " * len(head)
            if omitted:
                yield [(f"   and {omitted:,} more", "note")]

    def _wrapped(self, text: str, margin: int) -> list[str]:
        return wrapped(text, self._width, margin)

    # --- one rebalance in full ---

    def rebalance(self, number: int) -> Iterator[Pieces]:
        """The rebalance of this number, and what it goes on in, with all events and assignments."""
        contents, numbers = self._contents, self._contents.numbers
        row = contents.row(number)
        several = "s" if len(row.parts) > 1 else ""
        text = f"Rebalance{several} {row.name} of {contents.numbered}: {causes(row, numbers)}"
        yield from ([(line, "head")] for line in self._wrapped(text, 0))
        yield from table([row], numbers, self._width)
        yield from self._parts(row)
        yield from self._presence()

    def _parts(self, row: TableRow) -> Iterator[Pieces]:
        contents = self._contents
        began_ns, ended_ns = row.began_ns, row.ended_ns
        links = StoryLinks.of(contents.events, contents.members)
        links.endings.clear()  # the line of a member that went has its own
        packets = len(str(max((event.packet or 0 for event in contents.events), default=0)))
        words = EventLines(contents.numbers, one_day=True, packet_width=packets, links=links)
        is_timed = None not in (began_ns, ended_ns)
        shown_events = [
            event
            for event in contents.events
            if any(event is part for part in row.parts)
            or (
                is_timed
                and (began_ns or 0) <= (event.time_ns or 0) <= (ended_ns or 0)
                and not isinstance(event, RebalanceEnded)
            )
        ]
        for line in event_list(shown_events, words, commits=False):
            yield from self._hung(line)

    def _hung(self, pieces: Pieces) -> Iterator[Pieces]:
        """A line, wrapped at the width."""
        text = "".join(part for part, _ in pieces)
        margin = len(text) - len(text.lstrip()) + 14
        first, *continued = textwrap.wrap(
            text, self._width, subsequent_indent=" " * margin, break_on_hyphens=False,
            drop_whitespace=True, initial_indent="",
        ) or [""]  # fmt: skip
        yield [(first, "plain")]
        yield from ([(line, "plain")] for line in continued)
