"""Whether the cause that a timeline tells is one that the coordinator's log allows, and its member the log's.

Strategy: the log's words for why it rebalances, each with the causes that say the same. Rules: several may be
true at once (two members die together; an epoch passes by before all are in it): any of them will do.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

__all__ = ["cause_differs"]

JOINS = {"first_member", "new_member", "static_member_returned", "member_rejoined"}

CLASSIC = (
    (r"Adding new member (?P<m>\S+) with", JOINS),
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

MODERN = (
    (r"joined: (?P<m>\S+)", JOINS),
    (r"static: (?P<m>\S+)", JOINS - {"member_rejoined"}),
    (r"session_timeout: (?P<m>\S+)", {"session_timeout"}),
    (r"rebalance_timeout: (?P<m>\S+)", {"member_removed", "session_timeout"}),
    (r"left: (?P<m>\S+)", {"member_left", "member_removed"}),
    (r"Member (?P<m>\S+) updated its subscribed", {"subscription_changed"}),
)

OF_ITSELF = {"assignment_changed", "unknown"}
"""The coordinator's own doing: topics have changed, or its assignor."""


def cause_differs(
    name: str,
    fact: dict[str, Any],
    told: Sequence[dict[str, Any]],
    passed: Sequence[str] = (),
    together: Sequence[str] = (),
) -> Iterator[str]:
    """told: the rebalances of one generation; passed: why epochs began that passed by just before; together:
    who went at the same time."""
    modern = "formed" not in fact
    allowed, who = _of(fact["reason"], modern)
    for reason in passed:
        causes, members = _of(reason, modern)
        allowed, who = allowed | causes, who | members
    causes = {one["cause"] for one in told}
    if allowed and not allowed & causes:
        yield f"{name}: {told[-1]['cause']} is told; {fact['reason'][:120] or 'no member'} was the cause"
        return
    named = {one["memberId"] for one in told if one["memberId"]}
    if who and named and not who.union(together) & named:
        yield f"{name}: by {sorted(named)} as told, {sorted(who)} in the log"


def _of(reason: str, modern: bool) -> tuple[set[str], set[str]]:
    """The causes that the log's reason allows, and the members that it names."""
    if modern and not reason:
        return OF_ITSELF, set()
    allowed: set[str] = set()
    who: set[str] = set()
    for part in reason.split("; ") if modern else [reason]:
        for pattern, causes in MODERN if modern else CLASSIC:
            if match := re.search(pattern, part):
                allowed |= causes
                who.update(filter(None, match.groupdict().get("m", "").split(", ")))
                break
    return allowed, who
