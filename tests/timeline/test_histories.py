"""What a timeline tells of histories whose truth is known: some seeds, and those that showed something.

`python -m tests.timeline.histories COUNT --seed S` takes any number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from coordwire.timeline.events import (
    CoordinatorStalled,
    GroupDeleted,
    GroupEvent,
    LagMeasured,
    MemberLeft,
    RebalanceEnded,
)
from tests.timeline.histories.comparison import Compared
from tests.timeline.histories.script import EVERY_KIND, play

SECOND = 1_000_000_000
BLOCK = 25

SHOWED = {
    10: "a process that was frozen for longer than its session is answered that it is unknown",
    19: "a join phase ends during a stall: those who did not join consumed until they were answered",
    37: "a static member is dead, and the others have its partitions before it is out",
    40: "sessions end with a stall, and one of the members is read before that",
    58: "a member of a share group is dead, and another has its partitions before it is out",
    69: "all members of a rebalance are out before another joins",
    99: "a stall in which a request was answered after a little less than two seconds",
    161: "a member that asked during a stall is in, when another's session is over",
    219: "a member that sent JoinGroup and SyncGroup last is frozen",
    257: "a commit of a streams group's member, whose group was a classic one before it was deleted",
    448: "a stall just before another kind of group shows that this one was deleted",
    604: "a group is deleted just after a stall in which its last member left",
    431: "a stall that only the commit of a streams group's member shows",
    282: "a request that was never answered is of a stall that was over",
    41: "a streams group's member whose commit waits in a stall is out before its answer",
    163: "a member that asked once it was out, and had been heard shortly before",
    193: "a consumer group's member whose commit waits in a stall",
    100_149: "another member joins during a stall, with which the others' sessions end",
    100_294: "a join phase that is asked for during a stall lasts from its end on",
    100_418: "a member's last heartbeat is refused by a broker that loads the group",
    100_471: "sessions seem over when another member asks to join, and the coordinator has read nothing",
    100_202: "the commit of a member that is out was accepted before",
    110_041: "a member whose last request waited in a stall is dead, and its session began again with that",
    110_098: "members are out before a move that no frame shows, as the next one's epoch says",
    110_129: "a session that began with a move is longer than what was seen of it",
    110_144: "a client gave up what waited in a stall, and another broker is asked long afterwards",
    110_183: "a request that waited in a stall shows whose session was over before",
    110_201: "a commit of a streams group's member waits in a stall for longer than its session lasts",
    110_510: "the only clients whose requests wait in a stall end their connections",
    110_731: "a member leaves in vain while another broker loads its group",
    110_761: "a member's JoinGroups are refused for longer than its session lasts",
    110_287: "a JoinGroup is answered first after a stall",
    110_336: "a last heartbeat waited in a stall, and was refused",
    110_612: "a heartbeat that asks to give up partitions waited in a stall",
    110_230: "a share group's partition has three owners, of whom the second is dead when the first is out",
    110_290: "a share group's member is dead, and others have its partitions, when the capture ends",
    110_362: "the same while another machine is gone, and the coordinator has moved",
    130_113: "a static member's heir asks during a stall: it has nothing before the answer",
    110_431: "a share group was deleted before a move that the next group's first request shows",
    110_573: "a member is told that it is unknown after a move, and its session was over before that",
    110_600: "a topic that was made anew waits for a consumer since then at most",
    110_821: "the same of a classic group's",
    120_298: "a static member's heir asks during a stall, with which the static member's session ends",
    147: "all members of a classic group were out before a move that another's first heartbeat shows",
    140_025: "the same, and a static member's heir is refused before",
    140_127: "the same of a group that had been a consumer group before",
    155: "a JoinGroup that came during a stall waits on, though a generation was formed without it",
    110_760: "the same of a stall that nothing else shows: its client is known by the request",
    110_568: "a static member's heir is in a generation that is not steady yet",
    110_299: "the same of a member that was not to be waited for",
    110_899: "a heartbeat that was sent before a LeaveGroup is told of another cause",
    120_036: "JoinGroups are refused while another broker loads the group, where sessions begin again",
    120_309: "the same, and the heir of a static member is awaited",
    120_311: "a session ends with a stall, as long after the last heartbeat as it lasts",
    140_194: "the first generation of a group that was deleted unseen, as that of the one before",
    100_209: "a classic member's heartbeat waits in a stall, in which its group converts",
    110_746: "a dead member's heartbeat waited in a stall, as the epoch shows that another is given",
    140_264: "the same, where a member is told that it is unknown in between, and the coordinator moves",
    110_044: "requests wait in a stall, the first is accepted, and the others come too late",
    120_306: "several LeaveGroups wait in a stall, and their members are out before they are read",
    170_677: "a session is over before a LeaveGroup that waits in a stall is read",
    180_210: "a LeaveGroup and JoinGroups wait in a stall, with which their members' sessions end",
    181_281: "a join phase ends with a stall, before a JoinGroup is read that the generation has",
    170_286: "a static member is in a generation that a move has lost",
    170_401: "a member joins again in a generation that holds, which does not restart its session",
    170_534: "a KIP-848 member's commit waits in a stall, and is accepted before its session is over",
    181_058: "the same of a static member",
    170_088: "a LeaveGroup waits in a stall, before a JoinGroup that it begins a rebalance with",
    171_103: "the same before a static member's JoinGroup",
    171_138: "the same, and another member is heard before",
    180_810: "a sync phase is over with a stall, in which a JoinGroup waits",
    170_373: "a JoinGroup that waited in a stall is refused",
    170_443: "the only member is out before a JoinGroup is read that waits in a stall",
    171_361: "a member was out before a move, and a generation did not wait for it",
    85: "two static members of one name join one after the other, before either is answered",
    170_209: "a coordinator stalls again just after a stall, in which a client died",
    180_231: "a classic group converts with a stall's end, where its members' sessions begin again",
    180_669: "the same, where the heartbeat that shows it waited for less than two seconds",
    110_483: "nobody is asked while a broker is away: that is no silence",
    170_776: "the same while the coordinator moves",
}
"""Histories that a timeline was wrong about, and what they have."""

OPEN = {
    141: "a static member whose session is over with a conversion",
    185: "a streams group's target that was due when its coordinator stalled",
}
"""Histories that a timeline is wrong about still."""


@cache
def compared(seed: int) -> Compared:
    return Compared(play(seed))


@pytest.mark.parametrize("seed", SHOWED)
def test_what_a_history_showed(seed: int) -> None:
    assert list(compared(seed).differences()) == [], SHOWED[seed]


@pytest.mark.parametrize("first", range(0, 12, len(EVERY_KIND)))
def test_a_timeline_tells_what_happened(first: int) -> None:
    for seed in range(first, first + len(EVERY_KIND)):
        assert list(compared(seed).differences()) == [], seed


@pytest.mark.long
@pytest.mark.parametrize("first", range(0, 300, BLOCK))
def test_timelines_tell_what_happened(first: int) -> None:
    for seed in set(range(first, first + BLOCK)) - OPEN.keys():
        assert list(Compared(play(seed)).differences()) == [], seed


@pytest.mark.long
@pytest.mark.parametrize("seed", OPEN)
def test_what_is_open_differs_still(seed: int) -> None:
    assert list(compared(seed).differences()), f"{seed} is told as it was: take it from OPEN"


# --- a false claim is found ---


def _without(kind: type[GroupEvent]) -> Callable[[list[GroupEvent]], list[GroupEvent]]:
    return lambda told: [event for event in told if not isinstance(event, kind)]


def _changed(change: Callable[[GroupEvent], GroupEvent]) -> Callable[[list[GroupEvent]], list[GroupEvent]]:
    return lambda told: [change(event) for event in told]


def _without_gaps(event: GroupEvent) -> GroupEvent:
    return replace(event, idle=()) if isinstance(event, RebalanceEnded) else event


def _longer_gaps(event: GroupEvent) -> GroupEvent:
    if not isinstance(event, RebalanceEnded):
        return event
    return replace(event, idle=tuple(gap._replace(since_ns=gap.since_ns - 9 * SECOND) for gap in event.idle))


def _beyond(event: GroupEvent) -> GroupEvent:
    return replace(event, reason="committed_beyond_end") if isinstance(event, LagMeasured) else event


def _closed(event: GroupEvent) -> GroupEvent:
    if not isinstance(event, MemberLeft) or event.ending is None:
        return event
    return replace(event, ending=event.ending._replace(how="closed", ended_ns=event.time_ns))


def _later_stalls(event: GroupEvent) -> GroupEvent:
    if not isinstance(event, CoordinatorStalled):
        return event
    return replace(event, until_ns=(event.until_ns or 0) + 20 * SECOND)


FAULTS: dict[str, tuple[Callable[[list[GroupEvent]], list[GroupEvent]], str]] = {
    "no gap is told": (_changed(_without_gaps), "gap"),
    "gaps begin earlier": (_changed(_longer_gaps), "gap falsely"),
    "no stall is told": (_without(CoordinatorStalled), "stall"),
    "stalls end later": (_changed(_later_stalls), "stall falsely"),
    "lags are below 0": (_changed(_beyond), "beyond the end"),
    "all connections were closed": (_changed(_closed), "ending"),
    "no deletion is told": (_without(GroupDeleted), "deleted"),
    "nobody goes": (_without(MemberLeft), "left session_timeout"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_false_claim_is_found(fault: str) -> None:
    change, problem = FAULTS[fault]
    found: set[str] = set()
    for seed in range(6):
        one = Compared(play(seed))
        one.told = change(one.told)
        found.update(difference.problem for difference in one.differences())
    assert problem in found


def test_what_the_histories_have() -> None:
    """Each thing that they are for happens in the first few."""
    histories = [compared(seed).history for seed in range(12)]
    assert sum(len(history.world.stalls) for history in histories) > 5
    assert sum(len(history.world.kills) for history in histories) > 2
    assert sum(len(history.deleted) for history in histories) > 2
    assert {is_seen for history in histories for _, is_seen in history.deleted} == {True, False}
    lives: Iterable[Any] = (row for history in histories for row in history.world.lives)
    assert any(topic_id is None for _, _, topic_id in lives)
