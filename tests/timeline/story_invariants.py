"""What holds of every timeline, whatever its input: found by looking at the events alone.

Strategy: one pass over the events, in the order in which they came. Rules: a member is not in after it is
out, unless it came again; a claim cites no packet that had not been read when it was made, and no time after
the input's last; a session ends once its coordinator has read nothing of the member for as long as it lasts,
and not while it answers nothing; a partition is not idle while the member that is given it has it; sums are
those of their parts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

from coordwire.timeline.events import (
    BrokerAway,
    CoordinatorStalled,
    ErrorMet,
    GroupEvent,
    Idle,
    MemberJoined,
    MemberLeft,
    RebalanceEnded,
    Unanswered,
)
from coordwire.timeline.totals import stories

__all__ = ["broken"]

MS = 1_000_000
SECOND = 1000 * MS


def broken(events: Iterable[GroupEvent], last_ns: int, *, is_whole: bool = True) -> Iterator[str]:
    """Each invariant that does not hold, in words. last_ns: the time of the input's last packet; is_whole:
    whether the input has all that was sent, without which nothing is known of silence."""
    every = list(events)
    groups = {event.group for event in every}
    for group in sorted(groups):
        own = [event for event in every if event.group == group]
        checks = [_members(own), _causes(own), _times(own, last_ns), _endings(own), _idle(own)]
        for texts in [*checks, _silence(own), _had(own)] if is_whole else checks:
            yield from (f"{group}: {text}" for text in texts)
    yield from _sums(every)


def _members(events: list[GroupEvent]) -> Iterator[str]:
    out: dict[str, MemberLeft] = {}
    for event in events:
        if isinstance(event, MemberJoined):
            out.pop(event.member_id, None)
        elif isinstance(event, MemberLeft):
            before = out.get(event.member_id)
            again = before is not None and before.how != "left_for_now"
            if again:
                yield f"{event.member_id} went ({event.how}) after it went, and did not come again"
            out[event.member_id] = event
        elif isinstance(event, RebalanceEnded) and event.outcome == "steady":
            for member_id in event.members:
                gone = out.get(member_id)
                if gone is not None and gone.how != "left_for_now" and _ns(gone) <= (event.began_ns or 0):
                    yield f"{member_id} is in {event.generation}, and went before that began"


def _causes(events: list[GroupEvent]) -> Iterator[str]:
    """A session that ended is that of a member of the same group, which is out."""
    gone = {event.member_id for event in events if isinstance(event, MemberLeft)}
    for event in events:
        if not isinstance(event, RebalanceEnded) or event.cause != "session_timeout":
            continue
        if event.member_id is not None and event.member_id not in gone:
            yield f"the rebalance to {event.generation} is for {event.member_id}, which is not out"


def _times(events: list[GroupEvent], last_ns: int) -> Iterator[str]:
    for event in events:
        if event.time_ns is not None and event.time_ns > last_ns:
            yield f"{type(event).__name__} is after the input's end"
        if isinstance(event, RebalanceEnded):
            times = [time for time in (event.began_ns, event.joined_ns, event.ended_ns) if time is not None]
            if times != sorted(times):
                yield f"the rebalance to {event.generation} has its times in another order"
        if isinstance(event, BrokerAway) and event.until_ns is not None and event.until_ns < _ns(event):
            yield "a broker was back before it went"


def _endings(events: list[GroupEvent]) -> Iterator[str]:
    """An ending is of its own departure: nothing in it is later than that."""
    for event in events:
        if not isinstance(event, MemberLeft) or event.ending is None:
            continue
        ending, moment_ns = event.ending, _ns(event)
        if (ending.ended_ns or 0) > moment_ns or (ending.heard_ns or 0) > moment_ns:
            yield f"{event.member_id} went at {moment_ns}, and its ending cites what came later"
        if event.how == "left":
            yield f"{event.member_id} left, and has an ending"
        if event.packet is not None and any(packet > event.packet for packet in ending.packets):
            yield f"{event.member_id}: its ending has a packet after the one that shows it"


def _silence(events: list[GroupEvent]) -> Iterator[str]:
    """A session ends after a silence of its length, as its coordinator read the requests. Those with which a
    member joins again in a generation that holds don't restart it, as Kafka's classic groups count."""
    sessions: dict[str, int] = {}
    held: dict[str, list[tuple[int, int]]] = {}
    for event in events:
        if isinstance(event, RebalanceEnded) and event.outcome == "not_needed" and event.member_id:
            held.setdefault(event.member_id, []).append((event.began_ns or 0, _ns(event) + SECOND))
    for event in events:
        if isinstance(event, MemberJoined):
            sessions[event.member_id] = (event.session_timeout_ms or 0) * MS
        elif isinstance(event, MemberLeft) and event.how == "session_timeout" and event.ending is not None:
            heard_ns, session_ns = event.ending.heard_ns, sessions.get(event.member_id, 0)
            if heard_ns is None or any(
                since <= heard_ns <= until for since, until in held.get(event.member_id, ())
            ):
                continue
            if _ns(event) - heard_ns < session_ns - SECOND:
                yield f"{event.member_id} is out {_ns(event) - heard_ns} ns after it was heard"
    for stall in events:
        if not isinstance(stall, CoordinatorStalled) or stall.until_ns is None:
            continue
        if stall.until_ns - _ns(stall) < 2 * SECOND or not stall.requests:
            yield f"a stall of {stall.until_ns - _ns(stall)} ns, of {stall.requests} requests"


def _had(events: list[GroupEvent]) -> Iterator[str]:
    """A partition has a consumer from the end of a rebalance that gives it one until the next begins, if the
    member that has it is heard until then."""
    departures = [event for event in events if isinstance(event, MemberLeft)]
    static = {event.member_id for event in events if isinstance(event, MemberJoined) and event.instance_id}
    gaps: dict[tuple[str, int], list[Idle]] = {}
    for event in events:
        for gap in event.idle if isinstance(event, RebalanceEnded) else ():
            gaps.setdefault((gap.topic, gap.partition), []).append(gap)
    ended = [event for event in events if isinstance(event, RebalanceEnded) and event.kind != "share"]
    stalls = [event for event in events if isinstance(event, CoordinatorStalled)]
    for event, following in pairwise(ended):
        if event.outcome != "steady":
            continue
        for member_id, partitions in event.assignments:
            if member_id in static:
                continue  # nothing says when one is dead whose place another takes
            until_ns = following.began_ns or 0
            for departure in departures:
                if departure.member_id == member_id and _ns(departure) >= (event.ended_ns or 0):
                    ending = departure.ending
                    heard = () if ending is None else (ending.heard_ns, ending.ended_ns)
                    until_ns = min(until_ns, _ns(departure), *filter(None, heard))
                    until_ns = 0 if departure.how == "left" else until_ns  # it asked before, perhaps
            refused = [_ns(error) for error in events if isinstance(error, ErrorMet | Unanswered)
                       if error.member_id == member_id and _ns(error) > (event.ended_ns or 0)]  # fmt: skip
            asks = [_ns(stall) for stall in stalls if _ns(stall) <= until_ns <= (stall.until_ns or until_ns)]
            until_ns = min([until_ns, *refused, *asks])  # it may have given up its partitions to join
            for partition in partitions:
                for gap in gaps.get((partition.topic, partition.partition), ()):
                    both = min(until_ns, gap.until_ns) - max(event.ended_ns or 0, gap.since_ns)
                    if both > 2 * SECOND:
                        name = f"{partition.topic}-{partition.partition}"
                        yield f"{name} is idle for {both} ns in which {member_id} has it"


def _idle(events: list[GroupEvent]) -> Iterator[str]:
    for event in events:
        if isinstance(event, RebalanceEnded):
            for gap in event.idle:
                if gap.until_ns < gap.since_ns:
                    yield f"{gap.topic}-{gap.partition} is idle for less than no time"
            longest = max((gap.until_ns - gap.since_ns for gap in event.idle), default=0)
            if not longest <= event.idle_ns <= sum(gap.until_ns - gap.since_ns for gap in event.idle):
                yield f"the rebalance to {event.generation}: its idle time is not that of its parts"


def _sums(events: list[GroupEvent]) -> Iterator[str]:
    for group, story in stories(events).items():
        ended = [event for event in events if event.group == group and isinstance(event, RebalanceEnded)]
        counted = [event for event in ended if event.outcome != "not_needed"]
        if story.rebalancing_ns != sum(event.length_ns or 0 for event in counted):
            yield f"{group}: rebalancing is not the sum of its rebalances"
        if story.idle_ns != sum(event.idle_ns for event in ended):
            yield f"{group}: the time without consumers is not that of its rebalances"
        if sum(causes.total() for causes in story.caused.values()) != len(counted):
            yield f"{group}: as many causes as rebalances were expected"


def _ns(event: GroupEvent) -> int:
    return event.time_ns or 0
