"""Differences between what a timeline tells of a recording and what the coordinator's own log says.

Strategy: the log's facts (`tests.groups.record.judge`) are looked up among the timeline's JSON lines: who came
and went, when and how; each generation with its members, its cause, its length and who has what. Rules: a
difference names the group, the generation or the member, what is told and what was; nothing but what the
wire can show is asked for: an epoch that never became steady need not be told, and an end may be seen as late
as the next heartbeat.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

__all__ = ["differences", "false_claims"]

NEAR = 400
"""Milliseconds between the log's time and the wire's of the same thing."""

HEARTBEAT = 1300
"""The next heartbeat shows it at the latest after so many."""

COMPUTED = 1000
"""The coordinator computes assignments once in so many at most; until then an epoch is nowhere on the wire."""

TAKEN_UP = 2000
"""A member reports that it has taken up what it was given after so many at most; its callbacks may take a while."""

CLASSIC_REASONS = (
    (r"Adding new member (?P<m>\S+) with", {"first_member", "new_member", "static_member_returned", "member_rejoined"}),
    (r"removing member (?P<m>\S+) on heartbeat expiration", {"session_timeout"}),
    (r"removing pending member (?P<m>\S+)", {"session_timeout", "new_member"}),
    (r"explicit `LeaveGroup` request for \((?P<m>[^)]*)\) members", {"member_left", "member_removed"}),
    (r"Leader (?P<m>\S+) re-joining.*need to revoke", {"partitions_revoked"}),
    (r"Leader (?P<m>\S+) re-joining.*subscription has changed", {"subscription_changed"}),
    (r"Leader (?P<m>\S+) re-joining", {"leader_rejoined", "subscription_changed", "partitions_revoked"}),
    (
        r"Updating metadata for (?:static )?member (?P<m>\S+)",
        {"subscription_changed", "partitions_revoked", "member_rejoined", "static_member_returned"},
    ),
    (r"Group's selectedProtocol will change", {"static_member_returned", "subscription_changed"}),
    (r"Downgrade group", {"member_left", "session_timeout"}),
)
MODERN_REASONS = (
    (r"joined: (?P<m>\S+)", {"first_member", "new_member", "static_member_returned", "member_rejoined"}),
    (r"static: (?P<m>\S+)", {"first_member", "new_member", "static_member_returned"}),
    (r"session_timeout: (?P<m>\S+)", {"session_timeout"}),
    (r"rebalance_timeout: (?P<m>\S+)", {"member_removed", "session_timeout"}),
    (r"left: (?P<m>\S+)", {"member_left", "member_removed"}),
    (r"Member (?P<m>\S+) updated its subscribed", {"subscription_changed"}),
)
HOW = {
    "left": {"left"},
    "left_for_now": {"left_for_now"},
    "session_timeout": {"session_timeout"},
    "rebalance_timeout": {"removed", "session_timeout", "fenced"},
    "replaced": {"fenced", "removed", "left_for_now"},
}

Event = dict[str, Any]


def differences(told: Sequence[Event], facts: dict[str, Any], end: int) -> Iterator[str]:
    """What the timeline's lines don't tell as the log does. facts: by group; end: the last packet's milliseconds."""
    for group, truth in facts.items():
        events = [one for one in told if one.get("group") == group]
        for text in _of_group(events, truth, end):
            yield f"{group}: {text}"


def _of_group(events: list[Event], truth: dict[str, Any], end: int) -> Iterator[str]:
    yield from _members(events, truth, end)
    ended = [one for one in events if one["event"] == "rebalanceEnded"]
    real = {one["generation"]: one for one in truth["generations"]}
    for one in ended:
        # A streams group's first member has an epoch before the group's first assignment is computed.
        first = truth["kind"] == "streams" and one["generation"] == min(real, default=0) - 1
        if one["outcome"] == "steady" and one["generation"] not in real and not first:
            yield f"generation {one['generation']} is told as steady and never was"
    epochs = _spans(truth)
    passed: list[str] = []  # why epochs began that went by before all members were in them
    for index, one in enumerate(truth["generations"]):
        modern = epochs[index]
        if modern and "steady" in one and passed:
            one = {**one, "passed": passed}
        passed = [] if not modern or "steady" in one else [*passed, one["reason"]]
        together = [
            left["member"] for left in truth["left"] if abs(left["time"] - one["began"]) < 1000
        ]
        yield from _generation(one, ended, modern, together)


def _spans(truth: dict[str, Any]) -> list[bool]:
    """Whether each generation is a modern one."""
    return ["assignments" in one or "formed" not in one for one in truth["generations"]]


def _members(events: list[Event], truth: dict[str, Any], end: int) -> Iterator[str]:
    joined = [one for one in events if one["event"] == "memberJoined"]
    left = [one for one in events if one["event"] == "memberLeft"]
    if not events:
        yield "nothing is told of it"
        return
    unseen = {one["member"] for one in truth["left"] if one["time"] > end}
    for fact in truth["joined"]:
        if not any(one["memberId"] == fact["member"] for one in joined):
            yield f"{fact['member']} joined at {_clock(fact['time'])}, which isn't told"
    for fact in truth["left"]:
        found = [one for one in left if one["memberId"] == fact["member"]]
        if not found and (fact["how"] == "replaced" or fact["time"] > end):
            continue
        if not found:
            yield f"{fact['member']} went ({fact['how']}) at {_clock(fact['time'])}, which isn't told"
            continue
        if not any(one["how"] in HOW[fact["how"]] for one in found):
            yield f"{fact['member']} went by {fact['how']}, told as {[one['how'] for one in found]}"
        nearest = min(found, key=lambda one: abs(_ms(one["time"]) - fact["time"]))
        if fact["time"] > end:
            continue
        if abs(_ms(nearest["time"]) - fact["time"]) > HEARTBEAT:
            yield f"{fact['member']} went at {_clock(fact['time'])}, told for {nearest['time']}"
    gone = {one["member"] for one in truth["left"] if one["how"] != "left_for_now"}
    for one in left:
        again = any(j["memberId"] == one["memberId"] and j["time"] > one["time"] for j in joined)
        if one["how"] == "fenced" and again:
            continue  # it was told so, and comes again; the coordinator has kept it
        if one["memberId"] not in gone and one["how"] != "left_for_now":
            yield f"{one['memberId']} is told as gone ({one['how']}) at {one['time']} and never went"
    within = _standing(events)
    alive = {one for one in truth["members"] if not one.endswith("-?")}
    nameless = len(truth["members"]) - len(alive)
    for one in sorted(alive - within):
        yield f"{one} is in at the end, which isn't told"
    if len(within - alive - unseen) > nameless:
        yield f"at the end {sorted(within - alive - unseen)} are told as in, and aren't"


def _standing(events: list[Event]) -> set[str]:
    """Who is in at the end by what is told."""
    within: dict[str, str | None] = {}
    for one in events:
        if one["event"] == "memberJoined":
            if one["instanceId"] is not None:
                within = {who: name for who, name in within.items() if name != one["instanceId"]}
            within[one["memberId"]] = one["instanceId"]
        elif one["event"] == "memberLeft":
            within.pop(one["memberId"], None)
    return set(within)


def _generation(
    fact: dict[str, Any], ended: list[Event], modern: bool, together: list[str]
) -> Iterator[str]:
    """together: who went within a second of its beginning; any of them may be named."""
    number, members = fact["generation"], fact.get("members")
    if not members or (modern and "steady" not in fact):
        return
    name = f"{'epoch' if modern else 'generation'} {number}"
    found = [one for one in ended if one["generation"] == number and one["outcome"] in ("steady", "superseded")]
    if not found:
        yield f"{name} with {members} members ({fact['reason'][:90]}) isn't told"
        return
    one = found[-1]
    if len(one["members"]) != members:
        yield f"{name}: {len(one['members'])} members told, {members} were"
    yield from _cause(name, fact, found, modern, together)
    began = _ms(found[0]["began"])
    late = HEARTBEAT + COMPUTED if modern and not fact["reason"] else NEAR
    if began - fact["began"] > late or (fact["began"] - began > HEARTBEAT and "passed" not in fact):
        yield f"{name}: began {_clock(began)} as told, {_clock(fact['began'])} in the log ({one['cause']})"
    if "steady" in fact and one["outcome"] == "steady":
        end = _ms(one["ended"])
        if end - fact["steady"] > (TAKEN_UP if modern else HEARTBEAT) or fact["steady"] - end > NEAR:
            yield f"{name}: steady at {_clock(end)} as told, {_clock(fact['steady'])} in the log ({one['cause']})"
    if modern and one["outcome"] == "steady":
        yield from _assignments(name, fact, one)


def _cause(
    name: str, fact: dict[str, Any], found: list[Event], modern: bool, together: list[str]
) -> Iterator[str]:
    passed = fact.get("passed", [])
    reasons = [one for text in (fact["reason"], *passed) for one in text.split("; ")] if modern else [fact["reason"]]
    allowed: set[str] = set()
    who: set[str] = set()
    for reason in reasons:
        for pattern, causes in MODERN_REASONS if modern else CLASSIC_REASONS:
            if match := re.search(pattern, reason):
                allowed |= causes
                who.update(filter(None, match.groupdict().get("m", "").split(", ")))
                break
    if not fact["reason"] or passed:
        allowed |= {"assignment_changed", "unknown"}
    causes_told = {one["cause"] for one in found}
    if allowed and not allowed & causes_told:
        yield f"{name}: {found[-1]['cause']} is told, {fact['reason'][:120] or 'the coordinator’s own doing'} was"
        return
    named = {one["memberId"] for one in found if one["memberId"]}
    if who and named and not who.union(together) & named:
        yield f"{name}: by {sorted(named)} as told, {sorted(who)} in the log"


def _assignments(name: str, fact: dict[str, Any], one: Event) -> Iterator[str]:
    told = {
        share["memberId"]: sorted([part["topic"], part["partition"]] for part in share["partitions"])
        for share in one["assignments"]
    }
    for member, has in fact["assignments"].items():
        if told.get(member, []) != has and not _nameless(told.get(member, []), has):
            yield f"{name}: {member} has {_parts(told.get(member))} as told, {_parts(has)} in the log"


def _nameless(told: list[list[Any]], has: list[list[Any]]) -> bool:
    """Whether what is told is the same but for topics that are told by their ids, as nobody had said their names."""
    ids = [one for one in told if re.fullmatch(r"[\w-]{22}", one[0])]
    rest = [one for one in told if one not in ids]
    return bool(ids) and len(told) == len(has) and all(one in has for one in rest)


def _parts(listed: list[list[Any]] | None) -> str:
    return "what isn't told" if listed is None else ", ".join(f"{topic}-{number}" for topic, number in listed) or "nothing"


def _ms(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)


def _clock(millis: int) -> str:
    return f"{millis // 60000 % 60:02d}:{millis // 1000 % 60:02d}.{millis % 1000:03d}"


def false_claims(told: Sequence[Event], facts: dict[str, Any]) -> Iterator[str]:
    """What a timeline of a capture that isn't whole tells and the log contradicts; what it leaves out may be so."""
    for event in told:
        truth = facts.get(event.get("group") or "")
        if truth is None:
            continue
        if event["event"] == "memberLeft" and event["how"] != "left_for_now":
            times = [one["time"] for one in truth["left"] if one["member"] == event["memberId"]]
            at = _ms(event["time"])
            if not times:
                yield f"{event['group']}: {event['memberId']} is told as gone ({event['how']}), and never went"
            elif event["how"] != "fenced" and min(abs(one - at) for one in times) > 3 * HEARTBEAT:
                yield (
                    f"{event['group']}: {event['memberId']} is told as gone ({event['how']}) at {_clock(at)}; it went at "
                    f"{', '.join(map(_clock, times))}"
                )
        elif event["event"] == "memberJoined":
            known = {one["member"] for one in (*truth["joined"], *truth["left"])} | set(truth["members"])
            if event["memberId"] not in known:
                yield f"{event['group']}: {event['memberId']} is told as in, and never was"
        elif event["event"] == "rebalanceEnded":
            if event["outcome"] == "steady":
                yield from _claims(event, truth)
            elif event["began"] and event["ended"]:
                began, ended = _ms(event["began"]) - NEAR, _ms(event["ended"])
                inside = [
                    one["generation"]
                    for one in truth["generations"]
                    if one["began"] >= began and one.get("steady", ended + 1) <= ended
                ]
                if len(inside) > 2:
                    yield f"{event['group']}: one rebalance is told for the generations {inside}"


def _claims(event: Event, truth: dict[str, Any]) -> Iterator[str]:
    number = event["generation"]
    real = [one for one in truth["generations"] if one["generation"] == number]
    if not real and truth["kind"] != "streams":
        yield f"{event['group']}: generation {number} is told as steady and never was"
    if not real:
        return
    members = real[-1].get("members")
    if members is not None and len(event["members"]) > members:
        yield f"{event['group']}: generation {number}: {len(event['members'])} members told, {members} were"
    modern = "formed" not in real[-1]
    if not event["inferred"]:
        yield from _cause(f"{event['group']}: generation {number}", real[-1], [event], modern, [])
    if real[-1]["began"] - _ms(event["began"]) > 2 * HEARTBEAT:
        yield f"{event['group']}: generation {number}: began {event['began']} as told, {_clock(real[-1]['began'])} in the log"
    if modern:
        for share in event["assignments"]:
            has = (real[-1].get("assignments") or {}).get(share["memberId"])
            listed = sorted([part["topic"], part["partition"]] for part in share["partitions"])
            if has is not None and listed and listed != has:
                yield (
                    f"{event['group']}: generation {number}: {share['memberId']} has {_parts(listed)} as told, "
                    f"{_parts(has)} in the log"
                )
