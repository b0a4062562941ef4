"""What a group's story says, whatever shows it: the verdict, its facts, incidents, rebalances, members.

Strategy: made once from the group's events; the terminal (`overview`), HTML (`story_page`), the picture
(`lanes`) and JSON lay out these texts, and add none of their own. Rules: texts are whole, and are not yet
escaped for what shows them but for control characters; lists are bounded, and say what they leave out.
"""

from __future__ import annotations

import shlex
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from coordwire.capture.printable import shown
from coordwire.enums import ErrorCode
from coordwire.timeline.events import Assignment, MemberJoined, MemberLeft
from coordwire.timeline.story.collected import CollectedGroup
from coordwire.timeline.story.event_lines import EventLines
from coordwire.timeline.story.incidents import Emptied, Incident, incidents
from coordwire.timeline.story.member_numbers import MemberNumbers, Stay
from coordwire.timeline.story.rebalance_table import TableRow, folded, rows
from coordwire.timeline.story.story_links import StoryLinks
from coordwire.timeline.story.wording import (
    LEAVINGS,
    clock,
    count,
    day,
    duration,
    error_name,
    ranges,
    stamp,
    verdict,
)
from coordwire.timeline.totals import GroupStory

__all__ = ["MemberLine", "StoryContents", "common_verdict", "group_name"]

MOST_IN, MOST_GONE = 200, 40
"""So many members that are in, and that went, are listed."""

_KINDS = {
    "classic": "classic group", "consumer": "consumer group (KIP-848)", "share": "share group",
    "streams": "streams group", "draft": "group of a draft", "zookeeper": "group in ZooKeeper",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class MemberLine:
    """A member's line: its number, and the parts of what is known of it."""

    number: str
    notes: tuple[str, ...]


def group_name(totals: GroupStory) -> str:
    """A group's name; with its cluster's where the input shows several."""
    name = shown(totals.group) if totals.group else "no group that is known"
    return name if totals.cluster is None else f"{name} in cluster {shown(totals.cluster)}"


def common_verdict(stories: Sequence[StoryContents]) -> str:
    """What happened in several groups: how many have incidents, and which of these cost most time."""
    concerned = [story for story in stories if story.incidents]
    groups = count(len(stories), "group")
    if not concerned:
        return f"{groups}: no incident"
    worst = max(concerned, key=lambda story: story.worst_cost_ns)
    number = sum(len(story.incidents) for story in concerned)
    head = f"{groups}: {count(number, 'incident')}"
    if number > 1:
        head += f" in {len(concerned):,} of them, the worst"
    return f"{head} in {worst.name} at {_summary(worst._worst_incident)}"


def _summary(incident: Incident) -> str:
    """When it was, what happened, who, what it cost."""
    deed, *costs = incident.lines
    return f"{clock(incident.time_ns)}: {', '.join((deed.partition('; ')[0], *costs))}"


class StoryContents:
    """One group's story. rows: its rebalances, as the table has them; numbers: its members'."""

    def __init__(self, group: CollectedGroup) -> None:
        self.totals = group.totals()
        self.events = group.events
        self.members = group.members
        self.numbers = MemberNumbers.of(group.members)
        self.links = StoryLinks.of(self.events, group.members)
        self.rows: list[TableRow] = rows(self.events)

    # --- the head ---

    @property
    def name(self) -> str:
        return group_name(self.totals)

    @property
    def kind(self) -> str:
        return _KINDS[self.totals.kind] if self.totals.kind else ""

    @property
    def coordinator(self) -> str:
        return f"coordinator {shown(self.totals.coordinator)}" if self.totals.coordinator else ""

    @property
    def times(self) -> tuple[str, str]:
        """From when to when, to the second: with the day, and without it if it is one day's; "" for none."""
        first_ns, last_ns = self.totals.first_ns, self.totals.last_ns
        if first_ns is None or last_ns is None:
            return "", ""
        first, last = stamp(first_ns)[:-4], stamp(last_ns)[:-4]
        if day(first_ns) != day(last_ns):
            return f"{first} to {last} UTC", ""
        last = last.partition(" ")[2]
        return f"{first} to {last} UTC", f"{first.partition(' ')[2]} to {last} UTC"

    @cached_property
    def incidents(self) -> list[Incident]:
        last = self._last_departure()
        emptied = None
        if last is not None and self._since_ns(last) is not None:
            emptied = Emptied(last, self._since_ns(last) or 0, self.totals.last_ns or 0)
        return incidents(self.events, self.members, self.rows, self.numbers, emptied)

    @cached_property
    def verdict(self) -> str:
        """What happened, who, what it cost: the incident that cost most time, of several the first; where
        there is none, the rebalances."""
        if not self.incidents:
            return shown(verdict(self.totals)) if self.totals.rebalances else "no incident"
        number = len(self.incidents)
        head = "1 incident, at" if number == 1 else f"{number:,} incidents, the worst at"
        return f"{head} {_summary(self._worst_incident)}"

    @property
    def worst_cost_ns(self) -> int:
        """What the worst incident cost, in nanoseconds; -1 if there is none."""
        return self._worst_incident.cost_ns if self.incidents else -1

    @property
    def _worst_incident(self) -> Incident:
        return max(self.incidents, key=lambda incident: incident.cost_ns)

    def facts(self) -> Iterator[tuple[str, str]]:
        """The sentences at the head, the verdict first, each with the name of its style."""
        totals = self.totals
        yield self.verdict, "bad" if self.incidents else "head"
        if totals.parted_ns is not None:
            shows = f"a second cluster shows at {clock(totals.parted_ns)}"
            yield f"{shows}: what came before is taken for this one's", "busy"
        if totals.rebalances:
            if self.incidents:
                yield shown(verdict(totals)), "head"
            yield from self._lengths()
        if text := self.without_members():
            yield text, "bad"
        parts = [text] if (text := self._stays()) else []
        parts += [count(totals.generations, "generation")] if totals.generations else []
        parts += [count(totals.commits, "commit")] if totals.commits else []
        if totals.first_ns is None:
            parts += ["no times are known"]
        elif parts and totals.last_ns != totals.first_ns:
            parts[-1] += f" in {duration((totals.last_ns or 0) - totals.first_ns)}"
        if parts:
            yield ", ".join(parts), "plain"
        if totals.lag:
            open_lag = {partition: lag for partition, lag in totals.lag.items() if lag > 0}
            most = max(open_lag, key=lambda partition: open_lag[partition], default=None)
            text = f"lag at the end {sum(open_lag.values()):,}"
            if most is not None:
                text += f", most in {shown(most.topic)}-{most.partition}: {open_lag[most]:,}"
            yield text, "busy" if open_lag else "good"
        beyond = {partition: -lag for partition, lag in totals.lag.items() if lag < 0}
        if beyond:
            most = max(beyond, key=lambda partition: beyond[partition])
            text = f"committed beyond the end in {count(len(beyond), 'partition')}"
            yield f"{text}, most in {shown(most.topic)}-{most.partition}: {beyond[most]:,}", "bad"
        errors = set(totals.errors) - {ErrorCode.REBALANCE_IN_PROGRESS}
        if errors:
            counts = [entry for entry in totals.errors.most_common() if entry[0] in errors]
            yield "errors: " + ", ".join(f"{error_name(code)} × {times:,}" for code, times in counts), "bad"

    def _stays(self) -> str:
        """How many members there are in the lists below, and how they came; of some events alone, how many
        joined in these."""
        stays, joined = self.numbers.stays, self.totals.joined
        if joined != sum(isinstance(event, MemberJoined) and not event.rejoined for event in self.members):
            return f"{count(joined, 'member')} joined" if joined else ""
        if not stays:
            return ""
        heirs = {stay.heir for stay in stays.values()}
        new = {
            event.member_id
            for event in self.members
            if isinstance(event, MemberJoined) and not event.rejoined
        }
        inherited = sum(name in heirs and name not in new for name in stays)
        ways = {
            "joined": len(new),
            "in a static member's place": inherited,
            "in before": len(stays.keys() - new) - inherited,
        }
        members = count(len(stays), "member")
        if len(new) == len(stays):
            return f"{members} joined"
        return f"{members} ({', '.join(f'{number:,} {way}' for way, number in ways.items() if number)})"

    def without_members(self) -> str:
        """That no member is in, where the last one was lost; "" where any is, or the last one left."""
        last = self._last_departure()
        since_ns = None if last is None else self._since_ns(last)
        return f"no member is left; the last one was last seen at {clock(since_ns)}" if since_ns else ""

    def _last_departure(self) -> MemberLeft | None:
        """That of the last member, if it was lost."""
        stays = self.numbers.stays.values()
        departures = [stay.departure for stay in stays if stay.departure is not None]
        if not departures or any(stay.is_in for stay in stays):
            return None
        last = max(departures, key=lambda event: event.time_ns or 0)
        return last if last.inferred else None

    @staticmethod
    def _since_ns(last: MemberLeft) -> int | None:
        """When a member that was lost was last seen alive."""
        ending = last.ending
        return (None if ending is None else ending.ended_ns or ending.heard_ns) or last.time_ns

    def _lengths(self) -> Iterator[tuple[str, str]]:
        """How long rebalances took, as far as that is known: a log does not show when most of them began."""
        totals = self.totals
        if not totals.rebalancing_ns:
            if totals.unmeasured:
                yield "the input does not show how long that took", "plain"
            return
        text = f"{duration(totals.rebalancing_ns)} of rebalancing in all"
        if totals.unmeasured:
            text += f", without {totals.unmeasured:,} of unknown length"
        if totals.longest is not None and totals.longest.length_ns:
            cause = EventLines(self.numbers, one_day=True, links=self.links).cause(totals.longest)
            text += f"; the longest {duration(totals.longest.length_ns)}: {cause}"
        yield text, "plain"

    # --- rebalances ---

    def rebalances_title(self) -> str:
        """How many rebalances; those that were not needed, which the head does not count, apart."""
        idle = sum(part.outcome == "not_needed" for row in self.rows for part in row.parts)
        needed = self.numbered - idle
        return f"Rebalances ({needed:,}, and {idle:,} not needed)" if idle else f"Rebalances ({needed:,})"

    @property
    def numbered(self) -> int:
        """How many rebalances have a number, from 1 on."""
        return self.rows[-1].numbers[-1] if self.rows else 0

    @cached_property
    def table_rows(self) -> list[TableRow]:
        """The rows of the table, of which one may be a loop of many."""
        return folded(self.rows)

    def row(self, number: int) -> TableRow:
        """The row with the rebalance of a number, which it has."""
        return self.rows[bisect_right(self.rows, number, key=lambda row: row.first) - 1]

    @property
    def worst_row(self) -> TableRow | None:
        """The rebalance with the longest gap, else the longest; None if there are none."""
        return max(self.rows, key=self.weight, default=None)

    @property
    def group_option(self) -> str:
        """The option of `coordwire timeline` that selects the group."""
        return f" --group {shlex.quote(shown(self.totals.group))}"

    def next_options(self, *, names_group: bool) -> str:
        """The options of `coordwire timeline` that show more: the most costly rebalance, else the events."""
        of_group = self.group_option if names_group else ""
        row = self.worst_row
        return of_group + (" --events" if row is None else f" --rebalance {row.first}")

    def weight(self, row: TableRow | None) -> tuple[int, int]:
        """How long partitions had no consumer in a rebalance, and how long it took."""
        if row is None:
            return -1, -1
        return row.longest_idle_ns, row.length_ns or 0

    # --- members ---

    def presence(self) -> Iterator[tuple[str, list[MemberLine], int]]:
        """Who is in at the end, and who went: a title, the lines, and how many more there are."""
        stays = self.numbers.stays
        within = {name: stay for name, stay in stays.items() if stay.is_in}
        former = {name: stay for name, stay in stays.items() if not stay.is_in}
        has, standby = self._assigned()
        if stays:
            selected = list(within.items())[:MOST_IN]
            lines = [self._member(name, stay, has.get(name), standby.get(name)) for name, stay in selected]
            yield f"In at the end ({len(within)})" + self._all_are(within), lines, len(within) - len(selected)
        if former:
            selected = list(former.items())[:MOST_GONE]
            lines = [self._member(name, stay) for name, stay in selected]
            yield f"No longer in ({len(former)})" + self._all_are(former), lines, len(former) - len(selected)

    @cached_property
    def _common_software(self) -> str:
        """What all members' clients are; "" if they are several, or one is not known."""
        joins = [stay.joined for stay in self.numbers.stays.values()]
        software = {(join.software or "") if join is not None else "" for join in joins}
        return software.pop() if len(software) == 1 else ""

    def _all_are(self, stays: Mapping[str, Stay]) -> str:
        """The software that all members have, beside a title of some of them."""
        quantifier = ", all" if len(stays) > 1 else ","
        return f"{quantifier} {shown(self._common_software)}" if stays and self._common_software else ""

    def _assigned(self) -> tuple[dict[str, Assignment], dict[str, Assignment]]:
        """What each member has since the group was last steady, and its standby tasks."""
        for row in reversed(self.rows):
            if row.last.outcome == "steady":
                has, standby = row.last.assignments, row.last.standby
                return {part.member_id: part for part in has}, {part.member_id: part for part in standby}
        return {}, {}

    def _member(
        self, name: str, stay: Stay, assignment: Assignment | None = None, standby: Assignment | None = None
    ) -> MemberLine:
        join, departure = stay.joined, stay.departure
        client = self.numbers.client(name)
        notes = [shown(client)] if client else []
        notes += [shown(name.removeprefix(f"{client}-")[:8] + "…" if len(name) > 16 else name)]
        if join is not None:
            notes += [f"from {shown(join.host)}"] if join.host else []
            notes += [shown(join.software)] if join.software and not self._common_software else []
            notes += [f"static {shown(join.instance_id)}"] if join.instance_id is not None else []
            if join.kind == "consumer" and join.protocols:
                notes.append(f"assignor {shown(', '.join(join.protocols))}")
            if join.time_ns:
                notes.append(("since " if departure is None else "in ") + clock(join.time_ns))
        if departure is not None:
            time = f" {clock(departure.time_ns)}" if departure.time_ns else ""
            notes.append(f"{LEAVINGS[departure.how]}{time}")
        elif stay.heir is not None:
            notes.append(f"its place has {self.numbers.name(stay.heir)}")
        if assignment is not None:
            notes.append(shown(ranges(assignment.partitions)) or "nothing")
        if standby is not None:
            notes.append(f"standby {shown(ranges(standby.partitions))}")
        return MemberLine(f"#{self.numbers.numbers[name]}", tuple(notes))
