"""A group's story for an operator: what went wrong, then a line a rebalance, then who is in at the end.

Strategy: pieces of text with the names of their styles, made from the group's events; `incidents` and
`rebalance_table` have the first two parts. Rules: no line is wider than the terminal, but for a table's at
less than 70 columns; members go by numbers, and the last part says who they are.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from coordwire.capture.printable import Pieces, shown
from coordwire.timeline.events import Assignment, GroupEvent, RebalanceEnded
from coordwire.timeline.story.event_lines import EventLines
from coordwire.timeline.story.incidents import incidents
from coordwire.timeline.story.member_numbers import MemberNumbers, Stay
from coordwire.timeline.story.rebalance_table import TableRow, causes, rows, table
from coordwire.timeline.story.story_links import StoryLinks
from coordwire.timeline.story.wording import LEAVINGS, clock, day, ranges, stamp
from coordwire.timeline.totals import GroupStory

__all__ = ["Overview"]

MOST_GONE = 40
"""So many members that went are listed."""

_KINDS = {
    "classic": "classic group", "consumer": "consumer group (KIP-848)", "share": "share group",
    "streams": "streams group", "draft": "group of a draft", "zookeeper": "group in ZooKeeper",
}  # fmt: skip


class Overview:
    """One group. events: its own; members: the events of who was in, of all times."""

    def __init__(
        self, story: GroupStory, events: Sequence[GroupEvent], members: Sequence[GroupEvent], width: int
    ) -> None:
        self._story = story
        self._events = sorted(events, key=lambda event: event.time_ns or 0)
        self._members = members
        self._width = width
        self.numbers = MemberNumbers.of(members)
        self.rows = rows(self._events)

    def title(self) -> Pieces:
        """The group, its protocol, its coordinator and its times."""
        story = self._story
        kind = f"· {_KINDS[story.kind]} " if story.kind else ""
        coordinator = f"· coordinator {shown(story.coordinator)} " if story.coordinator else ""
        name = f"── {shown(story.group) if story.group else 'no group that is known'} "
        times = day_and_times = ""
        if story.first_ns is not None and story.last_ns is not None:
            first, last = stamp(story.first_ns)[:-4], stamp(story.last_ns)[:-4]
            one_day = day(story.first_ns) == day(story.last_ns)
            day_and_times = f" {first} to {last.partition(' ')[2] if one_day else last} UTC ──"
            times = f" {first.partition(' ')[2]} to {last.partition(' ')[2]} UTC ──" if one_day else ""
        for notes, span in (
            (kind + coordinator, day_and_times), (kind, day_and_times), (kind, times), (kind, ""), ("", ""),
        ):  # fmt: skip
            room = self._width - len(name) - len(notes) - len(span)
            if room >= 2:
                break
        return [(name, "head"), (notes, "note"), ("─" * max(room, 2) + span, "rule")]

    def lines(self) -> Iterator[Pieces]:
        """All parts below the head."""
        problems = incidents(self._events, self._members, self.rows, self.numbers)
        if problems:
            yield [("Incidents", "head")]
        for incident in problems:
            first, *costs = incident.lines
            head = f"   {clock(incident.time_ns)}  "
            for number, text in enumerate((first, *costs)):
                style = "bad" if not number else "busy"
                for at, line in enumerate(self._wrapped(text, len(head))):
                    pad = head if not number and not at else " " * len(head)
                    yield [(pad, "time"), (line, style)]
        if self.rows:
            number, needed = len(self.rows), self._story.rebalances
            merged = f"{needed} in {number} rows" if needed > number else f"{number}"
            yield [(f"Rebalances ({merged})", "head")]
            yield from table(self.rows, self.numbers, self._width)
        yield from self._presence()

    def _wrapped(self, text: str, margin: int) -> list[str]:
        width = max(self._width - margin, 20)
        return textwrap.wrap(text, width, break_long_words=True, break_on_hyphens=False) or [""]

    # --- one rebalance in full ---

    def rebalance(self, number: int) -> Iterator[Pieces]:
        """The row of this number, with all of its events and assignments."""
        row = self.rows[number - 1]
        text = f"Rebalance {number} of {len(self.rows)}: {causes(row, self.numbers)}"
        yield from ([(line, "head")] for line in self._wrapped(text, 0))
        yield from table([row], self.numbers, self._width, first=number)
        yield from self._parts(row)
        yield from self._presence()

    def _parts(self, row: TableRow) -> Iterator[Pieces]:
        began_ns, ended_ns = row.began_ns, row.ended_ns
        names = {member_id: self.numbers.name(member_id) for member_id in self.numbers.numbers}
        links = StoryLinks.of(self._events, self._members)
        links.endings.clear()  # the line of a member that went has its own
        words = EventLines(names, one_day=True, links=links)
        for event in self._events:
            own = any(event is part for part in row.parts)
            is_inside = None not in (began_ns, ended_ns) and (began_ns or 0) <= (event.time_ns or 0) <= (
                ended_ns or 0
            )
            if not own and (not is_inside or isinstance(event, RebalanceEnded)):
                continue
            pieces = words.pieces(event)
            if pieces:
                yield from self._hung([*words.time(event), *pieces])
            if isinstance(event, RebalanceEnded):
                for below in words.below(event):
                    yield from self._hung(below)

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

    # --- who is in ---

    def without_members(self) -> str:
        """Since when no member is in, where the last one was lost; "" where any is, or the last one left."""
        stays = self.numbers.stays.values()
        departures = [stay.departure for stay in stays if stay.departure is not None]
        if not departures or any(stay.is_in for stay in stays):
            return ""
        last = max(departures, key=lambda event: event.time_ns or 0)
        ending = last.ending
        last_ns = None if ending is None else ending.ended_ns or ending.heard_ns
        since_ns = last_ns or last.time_ns
        return f"no member is left since {clock(since_ns)}" if last.inferred and since_ns else ""

    def _presence(self) -> Iterator[Pieces]:
        stays = self.numbers.stays
        within = {name: stay for name, stay in stays.items() if stay.is_in}
        former = {name: stay for name, stay in stays.items() if not stay.is_in}
        has, standby = self._assigned()
        if stays:
            yield [(f"In at the end ({len(within)})", "head")]
        for name, stay in within.items():
            yield from self._member(name, stay, has.get(name), standby.get(name))
        if former:
            yield [(f"No longer in ({len(former)})", "head")]
        for name, stay in list(former.items())[:MOST_GONE]:
            yield from self._member(name, stay, None)
        if len(former) > MOST_GONE:
            yield [(f"   and {len(former) - MOST_GONE:,} more", "note")]

    def _assigned(self) -> tuple[dict[str, Assignment], dict[str, Assignment]]:
        """What each member has since the group was last steady, and its standby tasks."""
        for row in reversed(self.rows):
            if row.last.outcome == "steady":
                has, standby = row.last.assignments, row.last.standby
                return {part.member_id: part for part in has}, {part.member_id: part for part in standby}
        return {}, {}

    def _member(
        self, name: str, stay: Stay, assignment: Assignment | None, standby: Assignment | None = None
    ) -> Iterator[Pieces]:
        join, departure = stay.joined, stay.departure
        number = f"   {self.numbers.name(name):<4} "
        client = (join.client_id if join else departure.client_id if departure else None) or ""
        notes = [shown(client)] if client else []
        notes += [shown(name.removeprefix(f"{client}-")[:8] + "…" if len(name) > 16 else name)]
        if join is not None:
            notes += [f"from {shown(join.host)}"] if join.host else []
            notes += [f"static {shown(join.instance_id)}"] if join.instance_id is not None else []
            notes += (
                [f"assignor {shown(', '.join(join.protocols))}"]
                if join.kind == "consumer" and join.protocols
                else []
            )
            notes += (
                [("since " if departure is None else "in ") + clock(join.time_ns)] if join.time_ns else []
            )
        if departure is not None:
            notes += [
                f"{LEAVINGS[departure.how]} {clock(departure.time_ns)}"
                if departure.time_ns
                else LEAVINGS[departure.how]
            ]
        elif stay.heir is not None:
            notes += [f"its place has {self.numbers.name(stay.heir)}"]
        text = "  ".join(notes)
        if assignment is not None:
            text += f"  {shown(ranges(assignment.partitions)) or 'nothing'}"
        if standby is not None:
            text += f"  standby {shown(ranges(standby.partitions))}"
        for at, line in enumerate(self._wrapped(text, len(number))):
            yield [(number if not at else " " * len(number), "member"), (line, "plain")]
