"""The words of a timeline for people: causes, lengths of time, partitions in short, and the verdict
on a group's rebalances, such as `5 rebalances in 23 s, all from c's restarts; t-0 had no consumer for 1.9 s`.

Rules of the verdict: a client that caused half of the rebalances or more is named, with its deed; of the
partitions that had a consumer and then none, those are named that had none for longest in all; the records
that waited are those by which the group's lag grew meanwhile, where it was measured.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from coordwire.capture.flows import format_time
from coordwire.enums import ErrorCode
from coordwire.timeline.events import (
    Cause,
    Leaving,
    TopicPartition,
)
from coordwire.timeline.totals import GroupStory

LONG_NAMES = 40
"""If the names of partitions have more characters, they are counted."""

CAUSES: dict[Cause, str] = {
    "first_member": "{} is the first member",
    "new_member": "{} joins",
    "static_member_returned": "{} is back, a static member",
    "member_left": "{} left",
    "session_timeout": "{} was silent for longer than its session timeout",
    "member_removed": "{} was removed",
    "member_fenced": "{} was fenced",
    "subscription_changed": "{} changed its subscription",
    "partitions_revoked": "{} gave up partitions and joins again",
    "leader_rejoined": "the leader {} joined again",
    "member_rejoined": "{} joined again",
    "assignment_changed": "the coordinator changed the assignment",
    "coordinator_moved": "the coordinator moved",
    "unknown": "the members were asked to join again",
}
COMES: frozenset[Cause] = frozenset({
    "first_member", "new_member", "static_member_returned", "member_rejoined",
})  # fmt: skip
GOES: frozenset[Cause] = frozenset({"member_left", "session_timeout", "member_removed", "member_fenced"})
LEAVINGS: dict[Leaving, str] = {
    "left": "left", "left_for_now": "left for now (static)", "session_timeout": "timed out",
    "removed": "was removed", "fenced": "was fenced", "not_rejoined": "didn't join again",
}  # fmt: skip


def ranges(partitions: Iterable[TopicPartition]) -> str:
    """Partitions in short: "orders-0..3,7 payments-1"."""
    topics: dict[str, list[tuple[int, int]]] = {}
    for topic, number in sorted(partitions):
        runs = topics.setdefault(topic, [])
        if runs and runs[-1][1] == number - 1:
            runs[-1] = runs[-1][0], number
        else:
            runs.append((number, number))
    return " ".join(
        f"{topic}-{','.join(str(low) if low == high else f'{low}..{high}' for low, high in runs)}"
        for topic, runs in topics.items()
    )


def duration(ns: int) -> str:
    """A length of time in units that people read."""
    if ns < 1_000_000:
        return f"{ns / 1e3:.0f} µs"
    if ns < 1_000_000_000:
        return f"{ns / 1e6:.0f} ms"
    if ns < 100_000_000_000:
        return f"{ns / 1e9:.3g} s" if ns < 10_000_000_000 else f"{ns / 1e9:.1f} s"
    minutes, seconds = divmod(ns // 1_000_000_000, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {seconds} s"


def offset_text(offset: int | None) -> str:
    """A committed offset; None for one that was taken back."""
    return "forgotten" if offset is None else str(offset)


def error_name(code: int) -> str:
    """Kafka's name of an error code."""
    return ErrorCode(code).name


def count(number: int, noun: str) -> str:
    """A number with its noun: "1 member", "1,200 members"."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def stamp(time_ns: int) -> str:
    """A date and a time of day, to the millisecond."""
    return format_time(time_ns, 3).replace("T", " ").removesuffix("Z")


def clock(time_ns: int) -> str:
    """A time of day, to a tenth of a second."""
    return stamp(time_ns).partition(" ")[2][:-2]


def day(time_ns: int) -> int:
    """The day of a time, counted from 1970."""
    return time_ns // 86_400_000_000_000


# --- the verdict on a group ---

DEEDS: dict[Cause, str] = {
    "session_timeout": "silence",
    "member_left": "leaving",
    "member_removed": "removal",
    "member_fenced": "being fenced",
    "subscription_changed": "changes of subscription",
    "partitions_revoked": "giving up partitions",
    "leader_rejoined": "joining again",
    "member_rejoined": "joining again",
    "coordinator_moved": "joining again after the coordinator moved",
}


def verdict(story: GroupStory) -> str:
    """One line about a group's rebalances."""
    parts = [f"{count(story.rebalances, 'rebalance')}{_span(story)}{_blame(story)}"]
    if story.idle_ns:
        parts.append(_idle(story))
    if story.waited:
        parts.append(f"{count(story.waited, 'record')} waited")
    return "; ".join(parts)


def _idle(story: GroupStory) -> str:
    """The partitions that were without a consumer for longest, and for how long any was."""
    longest_ns = max(story.idle.values(), default=0)
    length = duration(longest_ns)
    longest = [partition for partition, idle_ns in story.idle.items() if duration(idle_ns) == length]
    names = ranges(longest)
    if len(names) > LONG_NAMES:
        names = count(len(longest), "partition")
    text = f"{names} had no consumer for {length}"
    if duration(story.idle_ns) != length:
        text += f", at least one of {len(story.idle)} for {duration(story.idle_ns)}"
    return text


def _span(story: GroupStory) -> str:
    if story.began_ns is None or story.ended_ns is None or story.rebalances < 2:
        return ""
    return f" in {duration(story.ended_ns - story.began_ns)}"


_NAMELESS: dict[Cause, str] = {
    "assignment_changed": "the coordinator's own doing",
    "session_timeout": "the end of a member of which no frame is captured",
}
"""What causes that name no member are."""


def _and_nameless(causes: Collection[Cause]) -> str:
    """Who else caused rebalances, beside clients."""
    if "assignment_changed" in causes:
        return " and the coordinator"
    return " and others" if causes else ""


def _blame(story: GroupStory) -> str:
    """The client that caused the rebalances, and its deed."""
    clients = story.caused
    if not clients:
        return ""
    most = max(clients, key=lambda client: clients[client].total())
    number = clients[most].total()
    total = story.rebalances
    if 2 * number < total:
        number_text = count(len(clients.keys() - {None}), "client")
        return f", caused by {number_text}{_and_nameless(clients.get(None, ()))}"
    if most is None:
        deed = next((deed for cause, deed in _NAMELESS.items() if cause in clients[most]), "an unknown cause")
    else:
        shared = most in story.shared
        deed_words = _deed(clients[most], most in story.restarted and not shared)
        name = f"members with the client id {most}" if shared else most
        deed = (
            f"{name}: {deed_words}"
            if shared and deed_words
            else f"{name}'s {deed_words}"
            if deed_words
            else name
        )
    if number >= total:
        return f", {'all ' if total > 1 else ''}from {deed}"
    return f", {number} of them from {deed}"


def _deed(causes: Iterable[Cause], restarted: bool) -> str:
    kinds = set(causes)
    if restarted and kinds <= COMES | GOES:
        return "restarts"
    if kinds & COMES and kinds & GOES:
        return "coming and going"
    if kinds <= COMES:
        return "joining"
    if len(kinds) == 1:
        return DEEDS[kinds.pop()]
    return "leaving" if kinds <= GOES else ""
