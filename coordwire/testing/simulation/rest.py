"""The rest after a test: how long its processes go on, before they get SIGTERM.

Strategy: what a test leaves under way comes to its end, or to light: a rebalance, the next error of a client
whose request was lost, a late commit. Where nothing is under way any more, only polls and heartbeats would
follow. Rule: time without an event counts; an event is a commit, an assignment, a record that is processed,
a process that starts or ends, and a warning in the log.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from coordwire.testing.simulation.checkers import PartitionPlace

if TYPE_CHECKING:
    from coordwire.testing.simulation.world import SimulatedWorld

__all__ = ["MOST", "QUIET", "come_to_rest"]

QUIET = 30.0
"""Seconds without an event, after which a rest is over: sessions of lost members, and requests that are
asked again, are over by then."""

MOST = 120.0
"""Seconds that a rest takes at most."""

_LOOK = 1.0


async def come_to_rest(world: SimulatedWorld) -> None:
    """Wait until nothing is under way, at most `MOST` seconds."""
    start = world.now
    while world.now < start + MOST:
        await asyncio.sleep(_LOOK)
        if world.now >= max(start, world.last_event) + QUIET and not _is_under_way(world):
            return


def _is_under_way(world: SimulatedWorld) -> bool:
    """Whether a fault, a transaction, or the work of a group is."""
    if world.now < world.driver.ends:
        return True
    places = [PartitionPlace(*place) for place in world.partitions(internal=True)]
    logs = {place: entry.log for place in places if (entry := world.partition(place)) is not None}
    if any(log.last_stable_offset < log.end_offset for log in logs.values()):
        return True
    return any(
        place in logs and offset < logs[place].end_offset
        for group, offsets in world.observed.offsets.items()
        if world.observed.members(group)
        for place, offset in offsets.items()
    )
