"""The incidents of a group: who did what, when, what it cost, and the packets that show it.

Strategy: the events that are incidents, each with what belongs to it: members that went within two seconds in
the same way are one; the partitions that had no consumer are those of the rebalances that it caused, and
those that a member had left, whichever rebalance gave them away; long gaps that belong to none are
incidents of their own. Rules: a member is named only for what it did itself; an ending is that of the same
departure; an answer that a client expects (REBALANCE_IN_PROGRESS, a coordinator that is not there while its
broker is away) is none.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from coordwire.capture.printable import quoted, shown
from coordwire.enums import ErrorCode
from coordwire.timeline.events import (
    BrokerAway,
    CaptureHole,
    CoordinatorStalled,
    ErrorMet,
    GroupEvent,
    Idle,
    Kind,
    LagMeasured,
    MemberJoined,
    MemberLeft,
    RebalanceEnded,
    TopicPartition,
)
from coordwire.timeline.story.admin_deeds import deeds
from coordwire.timeline.story.event_lines import stall_text
from coordwire.timeline.story.incident import Incident, gap_text, packets_text
from coordwire.timeline.story.member_numbers import MemberNumbers
from coordwire.timeline.story.rebalance_table import TableRow, causes
from coordwire.timeline.story.wording import clock, count, duration, error_name, ranges

__all__ = ["Emptied", "Incident", "incidents"]

TOGETHER_NS = 2_000_000_000
"""Members that went so near to each other, in the same way, are one incident."""

LONG_NS = 10_000_000_000
"""A rebalance that takes longer is an incident."""

MOST_REFUSALS = 8
"""So many kinds of refusals are shown."""

HOT_LOOP, HOT_NS = 100, 100_000_000
"""So many refusals are a loop without a pause, each within this time after the one before."""

MANY_MEMBERS = 4
"""So many members of one client that are refused alike are one incident."""

MOST_TOPICS = 3
"""So many topics are named with a refusal."""

MOST_LOST = 4
"""So many members whose connections ended are named with a rebalance."""

MOST_COMPARED = 20
"""So many incidents are compared with a gap."""

_EXPECTED = frozenset({
    ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.MEMBER_ID_REQUIRED, ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE,
})  # fmt: skip
_LOST = frozenset({"session_timeout", "removed", "not_rejoined", "fenced"})
_PLAIN = frozenset({
    "", "the consumer is being closed", "the consumer unsubscribed from all topics", "LeaveGroup",
    "client leaving group per normal operation",
})  # fmt: skip
"""Reasons with which members leave as they should."""

_MEMBER_GONE = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID})


class Emptied(NamedTuple):
    """A group without a member at the end. last: the one that was lost; since_ns: when it was last seen
    alive; until_ns: the group's last event."""

    last: MemberLeft
    since_ns: int
    until_ns: int


def incidents(
    events: Sequence[GroupEvent],
    members: Sequence[GroupEvent],
    rows: Sequence[TableRow],
    numbers: MemberNumbers,
    emptied: Emptied | None = None,
) -> list[Incident]:
    """All of a group, by time. members: the events of who was in, of all times; emptied: how it lost its last
    member."""
    costs = _Costs(rows)
    problems = [
        *_outages(events),
        *_holes(events, numbers),
        *_departures(events, members, costs, numbers, emptied),
        *_left_for_a_reason(events, costs, numbers),
        *_long(events, rows, numbers),
        *_refusals(events, members, numbers),
        *_beyond(events),
        *deeds(events, rows, numbers),
    ]
    problems += _gaps(problems, rows)
    return sorted(problems, key=lambda incident: incident.time_ns)


def _outages(events: Iterable[GroupEvent]) -> Iterator[Incident]:
    for event in events:
        if isinstance(event, CoordinatorStalled):
            length_ns = 0 if event.until_ns is None else event.until_ns - (event.time_ns or 0)
            text = stall_text(event, clock) + packets_text(event.packets)
            yield Incident(event.time_ns or 0, [text], length_ns)
        if not isinstance(event, BrokerAway):
            continue
        began_ns = event.time_ns or 0
        fins = f"it ended {count(event.connections, 'connection')}{packets_text(event.packets[:2])}"
        length_ns = 0 if event.until_ns is None else event.until_ns - began_ns
        if event.until_ns is None:
            text = f"the coordinator {shown(event.broker)} went away and did not come back: {fins}"
        else:
            text = f"the coordinator {shown(event.broker)} was away for {duration(length_ns)}"
            is_another = event.answered_by not in (None, event.broker)
            text += f", then {shown(event.answered_by or '')} took over" if is_another else ""
            text += f": {fins}; sessions began again at {clock(event.until_ns)}"
        yield Incident(began_ns, [text], length_ns)


def _holes(events: Iterable[GroupEvent], numbers: MemberNumbers) -> Iterator[Incident]:
    """What the capture lacks of the members' connections, once for all of it."""
    holes = [event for event in events if isinstance(event, CaptureHole)]
    if holes:
        first_ns, last_ns = holes[0].time_ns or 0, holes[-1].time_ns or 0
        size = count(sum(hole.size for hole in holes), "byte")
        times = f" in {len(holes):,} places until {clock(last_ns)}" if len(holes) > 1 else ""
        text = f"the capture lacks {size}{times}, of {numbers.names(hole.member_id for hole in holes)}"
        yield Incident(first_ns, [f"{text}; nothing is concluded from that"])


# --- members that went without leaving ---


def _departures(
    events: Iterable[GroupEvent],
    members: Iterable[GroupEvent],
    costs: _Costs,
    numbers: MemberNumbers,
    emptied: Emptied | None,
) -> Iterator[Incident]:
    lost = [
        event
        for event in events
        if isinstance(event, MemberLeft) and event.how in _LOST and not _by_another(event)
    ]
    lost.sort(key=lambda event: event.time_ns or 0)
    joins = _Joins(event for event in members if isinstance(event, MemberJoined))
    together: list[list[MemberLeft]] = []
    for event in lost:
        last = together[-1][-1] if together else None
        if last is not None and _kind(last) == _kind(event) and _near(last, event):
            together[-1].append(event)
        else:
            together.append([event])
    for group in together:
        began_ns = min(_began_ns(event) for event in group)
        cost_ns, cost = costs.of(group)
        if emptied is not None and emptied.last in group:
            empty_ns = emptied.until_ns - emptied.since_ns
            cost_ns = max(cost_ns, empty_ns)
            cost.append(f"no member was left from then on, for {duration(empty_ns)} at least")
        yield Incident(began_ns, [_departure(group, joins, numbers), *cost], cost_ns)


def _left_for_a_reason(
    events: Iterable[GroupEvent], costs: _Costs, numbers: MemberNumbers
) -> Iterator[Incident]:
    """Members that left since they polled too late, or that an operator removed."""
    for event in events:
        if not isinstance(event, MemberLeft):
            continue
        if _by_another(event) or (event.how == "left" and (event.reason or "") not in _PLAIN):
            packet = "" if event.packet is None else f" (packet {event.packet})"
            deed = "was removed by an admin's LeaveGroup" if _by_another(event) else "left"
            reason = f": {quoted(event.reason, 120)}" if event.reason else ""
            cost_ns, cost = costs.of([event])
            text = f"{numbers.name(event.member_id)} {deed}{reason}{packet}"
            yield Incident(event.time_ns or 0, [text, *cost], cost_ns)


def _by_another(event: MemberLeft) -> bool:
    """Whether a member did not leave by itself, but by the request of another client."""
    return event.how == "removed" and not event.inferred


def _kind(event: MemberLeft) -> tuple[str, str | None, bool]:
    ending = event.ending
    if ending is None:
        return event.how, None, False
    return event.how, ending.how, ending.unanswered_ns is not None


def _near(last: MemberLeft, event: MemberLeft) -> bool:
    return abs((event.time_ns or 0) - (last.time_ns or 0)) <= TOGETHER_NS


def _began_ns(event: MemberLeft) -> int:
    ending = event.ending
    if ending is None:
        return event.time_ns or 0
    return ending.ended_ns or ending.unanswered_ns or ending.heard_ns or event.time_ns or 0


def _departure(group: Sequence[MemberLeft], joins: _Joins, numbers: MemberNumbers) -> str:
    first, names = group[0], numbers.names(event.member_id for event in group)
    ending = first.ending
    packets = sorted({packet for event in group if event.ending for packet in event.ending.packets})
    kinds = {kind for event in group for kind in joins.kinds[event.member_id]}
    static = kinds == {"classic"} and all(event.instance_id is not None for event in group)
    match None if ending is None else ending.how:
        case "closed":
            deed = "closed or was killed (static)" if static else "ended without leaving"
            text = f"{names} {deed}{packets_text(packets, 'FIN in packet')}"
        case "reset":
            text = f"{names} ended without leaving{packets_text(packets, 'RST in packet')}"
        case "closed_by_broker":
            text = f"{names} not heard since the broker ended the connection"
            text += packets_text(packets, "FIN in packet")
        case "open" if ending is not None and ending.unanswered_ns is not None:
            unanswered = [event.ending.unanswered_packet for event in group if event.ending]
            text = f"the coordinator did not answer {names} since {clock(ending.unanswered_ns)}"
            text += packets_text(unanswered)
        case "open":
            last_packets = [event.ending.heard_packet for event in group if event.ending]
            text = f"{names} fell silent, connection open{packets_text(last_packets, 'last packet')}"
        case _:
            text = f"{names} is out" if first.how != "session_timeout" else f"{names} fell silent"
    if ending is not None and any(event.ending and event.ending.fetched is False for event in group):
        text += ", no Fetch captured"
    reasons = {
        "session_timeout": "out", "removed": "no longer known to the coordinator",
        "not_rejoined": "did not join again in time, out", "fenced": "another took its place",
    }  # fmt: skip
    text += f"; {reasons[first.how]} {_times_out(group)}"
    returns = dict.fromkeys(filter(None, (joins.back(event, numbers) for event in group)))
    return "; ".join((text, *returns))


def _times_out(group: Sequence[MemberLeft]) -> str:
    """When members were out: each, or of more than two the first and the last."""
    texts = list(dict.fromkeys(_out(event) for event in group))
    if len(texts) <= 2:
        return " and ".join(texts)
    times = [event.time_ns or 0 for event in group]
    return f"from {clock(min(times))} to {clock(max(times))}"


def _out(event: MemberLeft) -> str:
    """When a member was out, and how long after it was last heard."""
    heard_ns = None if event.ending is None else event.ending.heard_ns
    if heard_ns is None or event.time_ns is None or event.time_ns <= heard_ns:
        return f"at {clock(event.time_ns or 0)}"
    return f"at {clock(event.time_ns)} (last request {duration(event.time_ns - heard_ns)} before)"


class _Joins:
    """Who joined, by member, by the id that it had before, and by address. kinds: of groups, by member."""

    def __init__(self, joins: Iterable[MemberJoined]) -> None:
        self.kinds: defaultdict[str, set[Kind]] = defaultdict(set)
        self._last: dict[str, MemberJoined] = {}
        self._of_member: defaultdict[str, list[MemberJoined]] = defaultdict(list)
        self._of_host: defaultdict[str, list[MemberJoined]] = defaultdict(list)
        for join in sorted(joins, key=_time_ns):
            self.kinds[join.member_id].add(join.kind)
            self._last[join.member_id] = join
            for name in {join.member_id, join.former_id} - {None}:
                self._of_member[name or ""].append(join)
            if join.host is not None:
                self._of_host[join.host].append(join)

    def back(self, event: MemberLeft, numbers: MemberNumbers) -> str:
        """That a member's process or its client was in again later."""
        before = self._last.get(event.member_id)
        host = None if before is None else before.host
        own = self._of_member.get(event.member_id, [])
        joins = [_first_after(own, _time_ns(event))]
        if host is not None:
            joins.append(_first_after(self._of_host[host], _time_ns(event)))
        join = min(filter(None, joins), key=_time_ns, default=None)
        if join is None:
            return ""
        same_connection = host is not None and join.host == host
        name = "" if join.member_id == event.member_id else f" as {numbers.name(join.member_id)}"
        anew = ", new connection" if join.former_id == event.member_id and not same_connection else ""
        return f"back {clock(_time_ns(join))}{name} (same process{anew})"


def _time_ns(event: GroupEvent) -> int:
    return event.time_ns or 0


def _first_after(joins: Sequence[MemberJoined], time_ns: int) -> MemberJoined | None:
    at = bisect_right(joins, time_ns, key=_time_ns)
    return joins[at] if at < len(joins) else None


class _Costs:
    """What departures cost: by the rebalances that members caused, and by when they were last seen alive."""

    def __init__(self, rows: Iterable[TableRow]) -> None:
        self._caused: defaultdict[str | None, list[tuple[int, TableRow]]] = defaultdict(list)
        self._since: defaultdict[int, list[Idle]] = defaultdict(list)
        for row in rows:
            for part in row.parts:
                self._caused[part.member_id].append((part.began_ns or 0, row))
                for gap in part.idle:
                    self._since[gap.since_ns].append(gap)
        for caused in self._caused.values():
            caused.sort(key=_began)

    def of(self, group: Sequence[MemberLeft]) -> tuple[int, list[str]]:
        """For how long, and which partitions had no consumer, in the rebalances that these members caused or
        since they were last seen alive."""
        return gap_text(self._gaps(group))

    def _gaps(self, group: Sequence[MemberLeft]) -> Iterator[Idle]:
        times = [event.time_ns or 0 for event in group]
        first_ns, last_ns = min(times) - TOGETHER_NS, max(times) + TOGETHER_NS
        for event in group:
            caused = self._caused.get(event.member_id, [])
            begin = bisect_left(caused, first_ns, key=_began)
            for _, row in caused[begin : bisect_right(caused, last_ns, key=_began)]:
                yield from (gap for part in row.parts for gap in part.idle)
            if event.ending is not None:
                for time_ns in {event.ending.heard_ns, event.ending.ended_ns} - {None}:
                    yield from self._since.get(time_ns or 0, ())


def _began(caused: tuple[int, TableRow]) -> int:
    return caused[0]


def _gaps(problems: Iterable[Incident], rows: Iterable[TableRow]) -> Iterator[Incident]:
    """Long gaps that no other incident explains, one for all that ended with the same rebalance; not those of
    a group without members."""
    costly = sorted(
        (incident.time_ns, incident.cost_ns) for incident in problems if 2 * incident.cost_ns >= LONG_NS
    )
    for row in rows:
        if any(part.cause == "first_member" for part in row.parts):
            continue
        gaps: list[Idle] = []
        for gap in (gap for part in row.parts for gap in part.idle):
            length_ns = gap.until_ns - gap.since_ns
            at = bisect_left(costly, (gap.since_ns - TOGETHER_NS, 0))
            is_told = any(
                time_ns <= gap.until_ns and 2 * cost_ns >= length_ns
                for time_ns, cost_ns in costly[at : at + MOST_COMPARED]
            )
            if length_ns >= LONG_NS and not is_told:
                gaps.append(gap)
        cost_ns, texts = gap_text(gaps)
        for text in texts:
            since_ns = min(gap.since_ns for gap in gaps)
            yield Incident(since_ns, [f"{text}, until rebalance {row.numbers[-1]}"], cost_ns)


# --- rebalances, refusals, commits, protocols ---


def _long(
    events: Sequence[GroupEvent], rows: Sequence[TableRow], numbers: MemberNumbers
) -> Iterator[Incident]:
    errors = [event for event in events if isinstance(event, ErrorMet)]
    for row in rows:
        for number, part in zip(row.numbers, row.parts, strict=True):
            length_ns, unsettled = part.length_ns or 0, part.outcome in ("superseded", "unfinished")
            if length_ns < LONG_NS and part.outcome != "unfinished":
                continue
            text = _length(number, part, errors, numbers, unsettled)
            yield Incident(part.began_ns or 0, [text], length_ns)


def _length(
    number: int, part: RebalanceEnded, errors: Sequence[ErrorMet], numbers: MemberNumbers, unsettled: bool
) -> str:
    subject = f"rebalance {number}" + ("" if part.generation is None else f" to {part.generation}")
    cause = causes(TableRow(number, [replace(part, outcome="steady")]), numbers)
    subject += f" ({cause})" if part.cause != "unknown" else ""
    verb = "was given up after" if part.outcome == "superseded" else "took"
    verb = "was not over when the input ends, after" if part.outcome == "unfinished" else verb
    text = f"{subject} {verb} {duration(part.length_ns or 0)}"
    waiting = part.waiting_for if unsettled else (part.last_to_join,) if part.last_to_join else ()
    if waiting:
        text += f", waiting for {numbers.names(waiting)}"
    refused = Counter(
        error_name(event.error_code)
        for event in errors
        if event.member_id in waiting
        and event.error_code not in _EXPECTED
        and (part.began_ns or 0) <= (event.time_ns or 0) <= (part.ended_ns or 0)
    )
    if refused:
        name, times = refused.most_common(1)[0]
        text += f", whose requests were refused meanwhile ({name} × {times:,})"
    for lost in part.lost[:MOST_LOST]:
        name, ended = (
            numbers.name(lost.member_id),
            f"ended at {clock(lost.ended_ns)}{packets_text([lost.packet])}",
        )
        is_named = lost.member_id in waiting
        text += (
            f"; the connection of {name} {ended}"
            if is_named
            else f", without {name}, whose connection {ended}"
        )
    return text


def _refusals(
    events: Iterable[GroupEvent], members: Iterable[GroupEvent], numbers: MemberNumbers
) -> Iterator[Incident]:
    """Refusals, one a member, API and code, or a client that has many members; without those that a client
    expects, or that follow from a member's end, unless it asks on and on without a pause."""
    ends: dict[str, int] = {}
    for departure in members:
        if isinstance(departure, MemberLeft) and departure.how in _LOST:
            ended_ns = ends.get(departure.member_id, 1 << 63)
            ends[departure.member_id] = min(departure.time_ns or 0, ended_ns)
    refusals: dict[_Refused, list[ErrorMet]] = {}
    expected: dict[_Refused, list[ErrorMet]] = {}
    for event in events:
        if not isinstance(event, ErrorMet):
            continue
        follows = event.member_id in ends and (event.time_ns or 0) >= ends[event.member_id]
        is_expected = event.error_code in _EXPECTED or (
            event.error_code in _MEMBER_GONE
            and (event.member_id is None or (follows and "Commit" not in event.api))
        )
        key = event.member_id, event.client_id, event.api, event.error_code
        (expected if is_expected else refusals).setdefault(key, []).append(event)
    yield from _hot_loops(expected, numbers)
    together = _by_client(refusals, numbers)
    for (names, api, code), refused in list(together.items())[:MOST_REFUSALS]:
        first, last = refused[0], refused[-1]
        deed = f"commits{_of_topics(refused)} were refused" if "Commit" in api else f"{api} was refused"
        packet = "" if first.packet is None else f" (packet {first.packet})"
        times = f" × {len(refused):,} until {clock(last.time_ns or 0)}" if len(refused) > 1 else ""
        text = f"{names} {deed}: {error_name(code)}{times}{packet}"
        if first.message and code not in _MEMBER_GONE:
            text += f", {quoted(_with_numbers(first.message, numbers), 160)}"
        yield Incident(first.time_ns or 0, [text])
    hidden = len(together) - MOST_REFUSALS
    if hidden > 0:
        later = list(together.values())[MOST_REFUSALS][0]
        yield Incident(later.time_ns or 0, [f"and {hidden:,} more kinds of refusals: --errors lists them"])


_Refused = tuple[str | None, str | None, str, int]
"""A member, its client, the API and the error code."""


def _by_client(
    refusals: Mapping[_Refused, list[ErrorMet]], numbers: MemberNumbers
) -> dict[tuple[str, str, int], list[ErrorMet]]:
    """Refusals by who was refused, in words: a client with many members counts as one."""
    members = Counter((client, api, code) for _, client, api, code in refusals)
    together: dict[tuple[str, str, int], list[ErrorMet]] = {}
    for (member_id, client, api, code), refused in refusals.items():
        alike = members[client, api, code]
        names = numbers.name(member_id, client)
        if client and alike >= MANY_MEMBERS:
            names = f"{alike:,} members with the client id {shown(client)}:"
        elif client and member_id and member_id not in numbers.numbers:
            names = f"{shown(client)} ({shown(member_id[:8])}…) never was in:"
        together.setdefault((names, api, code), []).extend(refused)
    for refused in together.values():
        refused.sort(key=lambda event: event.time_ns or 0)
    return together


def _hot_loops(refusals: Mapping[_Refused, Sequence[ErrorMet]], numbers: MemberNumbers) -> Iterator[Incident]:
    """Members that send one request again and again, without a pause, though it is refused."""
    for (member_id, client, api, code), refused in refusals.items():
        longest, run = 0, 0
        for at, event in enumerate(refused):
            is_at_once = at and (event.time_ns or 0) - (refused[at - 1].time_ns or 0) < HOT_NS
            run = run + 1 if is_at_once else 1
            longest = max(longest, run)
        if longest >= HOT_LOOP:
            first, last = refused[0], refused[-1]
            text = (
                f"{numbers.name(member_id, client)} is in a hot loop: {api} was refused, {error_name(code)}"
            )
            text += f" × {len(refused):,} until {clock(last.time_ns or 0)}{packets_text([first.packet])}"
            yield Incident(first.time_ns or 0, [text])


def _of_topics(refused: Iterable[ErrorMet]) -> str:
    """Which topics refused commits were of, as far as that is known of each."""
    topics = dict.fromkeys(event.topic for event in refused)
    if None in topics:
        return ""
    names = [shown(topic or "") for topic in topics]
    suffix = f" and {len(names) - MOST_TOPICS:,} more" if len(names) > MOST_TOPICS else ""
    return f" of {', '.join(names[:MOST_TOPICS])}{suffix}"


def _with_numbers(message: str, numbers: MemberNumbers) -> str:
    """A coordinator's message with the numbers of members instead of their ids."""
    return " ".join(
        numbers.name(word) if word in numbers.numbers else word for word in message[:1_000].split(" ")
    )


def _beyond(events: Iterable[GroupEvent]) -> Iterator[Incident]:
    first: dict[TopicPartition, LagMeasured] = {}
    for event in events:
        if isinstance(event, LagMeasured) and event.lag < 0 and event.reason == "committed_beyond_end":
            first.setdefault(TopicPartition(event.topic, event.partition), event)
    if first:
        worst = min(first.values(), key=lambda event: event.lag)
        partitions = shown(ranges(first))
        text = f"{partitions} committed beyond the end, by up to {-worst.lag:,} (packet {worst.packet})"
        yield Incident(min(event.time_ns or 0 for event in first.values()), [text])
