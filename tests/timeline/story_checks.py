"""Differences between what a timeline tells of a recording and what the coordinator's own log says.

Strategy: the log's facts (`tests.timeline.record.judge`) are looked up among the timeline's JSON lines, and
the lines among the facts: who came and went, when and how; each generation with its members, its cause, its
length and who has what. Rules: a difference names the group, the generation or the member, what is told and
what was; nothing but what the wire can show is asked for: an epoch that never became steady need not be
told, and an end may be seen as late as the member's next report.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from tests.timeline.story_causes import cause_differs

__all__ = ["differences", "false_claims"]

NEAR = 400
"""Milliseconds between the log's time and the wire's of the same thing."""

HEARTBEAT = 1300
"""The next heartbeat shows it after so many at the latest."""

COMPUTED = 1000
"""The coordinator computes assignments once in so many at most; until then the wire has no new epoch."""

TAKEN_UP = 2000
"""A member reports what it has taken up after so many at most; its callbacks may take a while."""

SHOWN = 10_000
"""Where packets are missing, a departure may only show so many later; never earlier."""

HOW = {
    "left": {"left"},
    "left_for_now": {"left_for_now"},
    "session_timeout": {"session_timeout"},
    "rebalance_timeout": {"not_rejoined", "removed", "session_timeout", "fenced"},
    "replaced": {"fenced", "removed", "left_for_now"},
}
"""How a member goes in the log, and what may be told of it."""

Event = dict[str, Any]
Facts = dict[str, Any]


def differences(told: Sequence[Event], facts: Facts, end: int) -> Iterator[str]:
    """What the timeline's lines don't tell as the log does. facts: by group; end: the last packet's
    milliseconds."""
    for group, truth in facts.items():
        events = [one for one in told if one.get("group") == group]
        if not events:
            yield f"{group}: nothing is told of it"
            continue
        for check in (_joined(events, truth), _left(events, truth, end), _in_at_the_end(events, truth, end)):
            yield from (f"{group}: {text}" for text in check)
        yield from (f"{group}: {text}" for text in _generations(events, truth))


# --- members ---


def _joined(events: list[Event], truth: Facts) -> Iterator[str]:
    joined = {event["memberId"] for event in events if event["event"] == "memberJoined"}
    for fact in truth["joined"]:
        if fact["member"] not in joined:
            yield f"{fact['member']} joined at {_clock(fact['time'])}, which isn't told"


def _agrees(event: Event, how: str) -> bool:
    """Whether a member went as its coordinator logged it, for which an admin's LeaveGroup is one as well."""
    by_admin = event["how"] == "removed" and not event["inferred"]
    return event["how"] in HOW[how] or (how == "left" and by_admin)


def _left(events: list[Event], truth: Facts, end: int) -> Iterator[str]:
    departures = [event for event in events if event["event"] == "memberLeft"]
    for fact in truth["left"]:
        who, when = fact["member"], fact["time"]
        same = [departure for departure in departures if departure["memberId"] == who]
        results = [one for one in same if abs(_ms(one["time"]) - when) <= HEARTBEAT]
        if not results and fact["how"] != "replaced" and when <= end:
            others = [one["time"] for one in same]
            told = f"which is told for {others}" if others else "which isn't told"
            yield f"{who} went ({fact['how']}) at {_clock(when)}, {told}"
        if results and not any(_agrees(result, fact["how"]) for result in results):
            yield f"{who} went by {fact['how']}, told as {[result['how'] for result in results]}"
    for one in departures:
        times = [fact["time"] for fact in truth["left"] if fact["member"] == one["memberId"]]
        if any(abs(_ms(one["time"]) - time) <= HEARTBEAT for time in times) or _comes_again(one, events):
            continue
        yield f"{_departure(one)}; it went at {_clocks(times)}"


def _departure(event: Event) -> str:
    return f"{event['memberId']} is told as gone ({event['how']}) at {_clock(_ms(event['time']))}"


def _comes_again(gone: Event, events: list[Event]) -> bool:
    """Whether a member was told that it is fenced, and comes again: its coordinator has kept it."""
    return gone["how"] == "fenced" and any(
        event["event"] == "memberJoined"
        and event["memberId"] == gone["memberId"]
        and event["time"] > gone["time"]
        for event in events
    )


def _in_at_the_end(events: list[Event], truth: Facts, end: int) -> Iterator[str]:
    within: dict[str, str | None] = {}
    for event in events:
        if event["event"] == "memberJoined":
            if event["instanceId"] is not None:
                within = {who: name for who, name in within.items() if name != event["instanceId"]}
            within[event["memberId"]] = event["instanceId"]
        elif event["event"] == "memberLeft":
            within.pop(event["memberId"], None)
    nameless = [one for one in truth["members"] if one.endswith("-?")]  # whose ids the log doesn't say
    alive = set(truth["members"]).difference(nameless)
    unseen = {departure["member"] for departure in truth["left"] if departure["time"] > end}
    for who in sorted(alive.difference(within)):
        yield f"{who} is in at the end, which isn't told"
    false = sorted(set(within) - alive - unseen)
    if len(false) > len(nameless):
        yield f"{false} are told as in at the end, and aren't"


# --- generations ---


def _generations(events: list[Event], truth: Facts) -> Iterator[str]:
    ended = [event for event in events if event["event"] == "rebalanceEnded"]
    real = {one["generation"] for one in truth["generations"]}
    times = Counter(rebalance["generation"] for rebalance in ended if rebalance["outcome"] == "steady")
    for number, count in times.items():
        # A streams group's first member has an epoch before the group's first assignment is computed.
        if number not in real and (truth["kind"], number) != ("streams", min(real, default=0) - 1):
            yield f"generation {number} is told as steady and never was"
        if count > 1:
            yield f"generation {number} is told as steady {count} times"
    passed: list[str] = []
    for fact in truth["generations"]:
        modern = "formed" not in fact
        if modern and "steady" not in fact:
            passed.append(fact["reason"])
            continue
        if fact["members"]:
            same = [rebalance for rebalance in ended if rebalance["generation"] == fact["generation"]]
            results = [one for one in same if one["outcome"] in ("steady", "superseded")]
            gone = [
                departure["member"]
                for departure in truth["left"]
                if abs(departure["time"] - fact["began"]) < 1000
            ]
            yield from _generation(fact, results, passed, gone)
        passed = []


def _generation(fact: Facts, found: list[Event], passed: list[str], gone: list[str]) -> Iterator[str]:
    """passed: the reasons of the epochs that passed by before this generation; gone: who went meanwhile."""
    modern = "formed" not in fact
    name = f"{'epoch' if modern else 'generation'} {fact['generation']}"
    if not found:
        yield f"{name} with {fact['members']} members ({fact['reason'][:90]}) isn't told"
        return
    last = found[-1]
    if len(last["members"]) != fact["members"]:
        yield f"{name}: {len(last['members'])} members told, {fact['members']} were"
    yield from cause_differs(name, fact, found, passed, gone)
    began, late = _ms(found[0]["began"]), NEAR
    if modern and not fact["reason"]:
        late = HEARTBEAT + COMPUTED
    if began - fact["began"] > late or (fact["began"] - began > HEARTBEAT and not passed):
        yield f"{name}: began {_clock(began)} as told, {_clock(fact['began'])} in the log ({last['cause']})"
    if last["outcome"] != "steady":
        return
    if "steady" in fact:
        end, late = _ms(last["ended"]), TAKEN_UP if modern else HEARTBEAT
        if end - fact["steady"] > late or fact["steady"] - end > NEAR:
            logged = f"{_clock(fact['steady'])} in the log"
            yield f"{name}: steady {_clock(end)} as told, {logged} ({last['cause']})"
    told = _shares(last)
    for member, has in fact.get("assignments", {}).items():
        if not _same(told.get(member, []), has):
            yield f"{name}: {member} has {_parts(told.get(member, []))} as told, {_parts(has)} in the log"


# --- captures that are not whole ---


def false_claims(told: Sequence[Event], facts: Facts) -> Iterator[str]:
    """What a timeline of a capture that isn't whole tells, and the log contradicts."""
    for event in told:
        truth = facts.get(event.get("group") or "")
        if truth is None:
            continue
        claims: Iterator[str] = iter(())
        if event["event"] == "memberLeft":
            claims = _false_departure(event, truth)
        elif event["event"] == "memberJoined":
            claims = _false_member(event, truth)
        elif event["event"] == "rebalanceEnded" and event["outcome"] == "steady":
            claims = _false_generation(event, truth)
        elif event["event"] == "rebalanceEnded":
            claims = _false_length(event, truth)
        yield from (f"{event['group']}: {text}" for text in claims)


def _false_departure(event: Event, truth: Facts) -> Iterator[str]:
    times = [departure["time"] for departure in truth["left"] if departure["member"] == event["memberId"]]
    at = _ms(event["time"])
    if event["how"] != "fenced" and not any(-HEARTBEAT <= at - time <= SHOWN for time in times):
        yield f"{_departure(event)}; it went at {_clocks(times)}"


def _false_member(event: Event, truth: Facts) -> Iterator[str]:
    known = {one["member"] for one in (*truth["joined"], *truth["left"])}.union(truth["members"])
    if event["memberId"] not in known:
        yield f"{event['memberId']} is told as in, and never was"


def _false_generation(event: Event, truth: Facts) -> Iterator[str]:
    number = event["generation"]
    real = [one for one in truth["generations"] if one["generation"] == number]
    if not real:
        if truth["kind"] != "streams":
            yield f"generation {number} is told as steady and never was"
        return
    fact, name = real[-1], f"generation {number}"
    if len(event["members"]) > (fact.get("members") or len(event["members"])):
        yield f"{name}: {len(event['members'])} members told, {fact['members']} were"
    if not event["inferred"]:
        yield from cause_differs(name, fact, [event])
    if fact["began"] - _ms(event["began"]) > 2 * HEARTBEAT:
        yield f"{name}: began {event['began']} as told, {_clock(fact['began'])} in the log"


def _false_length(event: Event, truth: Facts) -> Iterator[str]:
    """One rebalance that goes on while several begin and end."""
    if event["began"] and event["ended"]:
        began, ended = _ms(event["began"]) - NEAR, _ms(event["ended"])
        whole = [one for one in truth["generations"] if one["began"] >= began and "steady" in one]
        content = [one["generation"] for one in whole if one["steady"] <= ended]
        if len(content) > 2:
            yield f"one rebalance of {event['lengthMs']} ms is told for the generations {content}"


# --- words ---


def _shares(event: Event) -> dict[str, list[list[Any]]]:
    return {
        share["memberId"]: sorted([part["topic"], part["partition"]] for part in share["partitions"])
        for share in event["assignments"]
    }


def _same(told: list[list[Any]], has: list[list[Any]]) -> bool:
    """Whether two assignments are the same, but for topics told by ids whose names nobody had said yet."""
    named = [one for one in told if not re.fullmatch(r"[\w-]{22}", one[0])]
    return len(told) == len(has) and all(one in has for one in named)


def _parts(listed: list[list[Any]]) -> str:
    return ", ".join(f"{topic}-{number}" for topic, number in listed) or "nothing"


def _ms(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)


def _clock(millis: int) -> str:
    return f"{millis // 60000 % 60:02d}:{millis // 1000 % 60:02d}.{millis % 1000:03d}"


def _clocks(times: list[int]) -> str:
    return ", ".join(map(_clock, times)) or "no time"
