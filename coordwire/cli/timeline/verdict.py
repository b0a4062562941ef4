"""One line that says what a group's rebalances amount to.

    5 rebalances in 23 s, all from c's restarts; 1.9 s without consumption

Rules: a client that caused half of them or more is named, with what it did; "without consumption" is the time
in which at least one partition that had a consumer had none; the records that waited are those that a group's
lag grew by meanwhile, where it was measured.
"""

from __future__ import annotations

from collections.abc import Iterable

from coordwire.cli.timeline.timeline_words import COMES, GOES, count, duration
from coordwire.timeline.events import Cause
from coordwire.timeline.totals import GroupStory

__all__ = ["verdict"]

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
    """The line."""
    parts = [f"{count(story.rebalances, 'rebalance')}{_span(story)}{_blame(story)}"]
    if story.idle_ns:
        parts.append(f"{duration(story.idle_ns)} without consumption")
    if story.waited:
        parts.append(f"{count(story.waited, 'record')} waited")
    return "; ".join(parts)


def _span(story: GroupStory) -> str:
    if story.began_ns is None or story.ended_ns is None or story.rebalances < 2:
        return ""
    return f" in {duration(story.ended_ns - story.began_ns)}"


def _blame(story: GroupStory) -> str:
    """Who caused them, and by what."""
    clients = story.caused
    if not clients:
        return ""
    most = max(clients, key=lambda one: clients[one].total())
    number = clients[most].total()
    total = story.rebalances
    if 2 * number < total:
        return f", caused by {count(len(clients), 'client')}"
    if most is None:
        deed = "the coordinator's own doing" if "assignment_changed" in clients[most] else "an unknown cause"
    else:
        what = _deed(clients[most], most in story.restarted)
        deed = f"{most}'s {what}" if what else most
    if number >= total:
        return f", {'all ' if total > 1 else ''}from {deed}"
    return f", {number} of them from {deed}"


def _deed(causes: Iterable[Cause], restarted: bool) -> str:
    found = set(causes)
    if restarted:
        return "restarts"
    if found & COMES and found & GOES:
        return "coming and going"
    if found <= COMES:
        return "joining"
    if len(found) == 1:
        return DEEDS[found.pop()]
    return "leaving" if found <= GOES else ""
