"""A rehearsal for programs: the group, each release with its rolls, and the advice. Times in milliseconds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from coordwire.designs.rehearsal import Rehearsal, Roll


def form(rehearsal: Rehearsal) -> dict[str, Any]:
    """The JSON object of a rehearsal."""
    group = rehearsal.group
    return {
        "group": group.group_id,
        "protocol_type": group.value.protocol_type,
        "protocol": group.value.protocol,
        "generation": group.value.generation,
        "since": group.since or None,
        "partitions": dict(group.partitions),
        "members": [
            {
                "name": member.name,
                "member_id": member.record.member_id,
                "instance_id": member.record.group_instance_id,
                "client_id": member.record.client_id,
                "session_timeout_ms": member.record.session_timeout,
                "rebalance_timeout_ms": member.record.rebalance_timeout,
                "topics": list(member.topics),
                "owned": [list(partition) for partition in member.owned],
                "problem": member.problem or None,
            }
            for member in group.members
        ],
        "orders": rehearsal.possible,
        "succeeds": rehearsal.succeeds,
        "releases": [
            {
                "release": release.release,
                "complete": release.complete,
                "best": None if release.best is None else list(release.best.order),
                "upgrades": _rolls(release.upgrades),
                "plain": _rolls(release.plain),
                "setbacks": _rolls(release.setbacks),
                "back": _rolls(release.back),
            }
            for release in rehearsal.releases
        ],
        "advice": [asdict(advice) | {"ticket": advice.ticket or None} for advice in rehearsal.advice],
    }


def _rolls(rolls: Iterable[Roll]) -> list[dict[str, Any]]:
    return [
        {
            "order": list(roll.order),
            "complete": roll.is_complete,
            "rebalances": roll.rebalances,
            "idle_ms": roll.idle_ms,
            "longest_ms": roll.longest_ms,
            "twice_ms": roll.twice_ms,
            "fallbacks": roll.fallbacks,
            "restarts": [asdict(restart) for restart in roll.restarts],
        }
        for roll in rolls
    ]
