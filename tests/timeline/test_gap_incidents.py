"""Gaps as incidents: which have one of their own, and what they cost who lost its last member."""

from __future__ import annotations

import re

import pytest

from coordwire.timeline.events import Idle, MemberEnding, MemberJoined, MemberLeft, RebalanceEnded
from coordwire.timeline.story.collected import CollectedEvents
from coordwire.timeline.story.contents import StoryContents
from coordwire.timeline.story.incidents import incidents
from coordwire.timeline.story.member_numbers import MemberNumbers
from coordwire.timeline.story.rebalance_table import rows
from tests.growth import assert_linear
from tests.timeline.script import Script

SECOND = 1_000_000_000


def contents(script: Script) -> StoryContents:
    return StoryContents(CollectedEvents(script.events()).groups["g"])


def test_partitions_that_nobody_is_assigned_are_an_incident() -> None:
    script = Script().steady("a", "b")
    script.rebalance(2, {"a": {"t": [0]}, "b": {}}, script.join("a"), script.join("b"))
    script.now += 30
    script.rebalance(3, {"a": {"t": [0]}, "b": {"t": [1]}}, script.join("a"), script.join("b"))
    (incident,) = contents(script).incidents
    assert incident.lines == ["t-1 had no consumer for up to 30.0 s, until rebalance 3"]
    assert incident.cost_ns // SECOND == 30


def test_a_group_that_nobody_was_in_has_none() -> None:
    script = Script().steady("a")
    script.leave("a")
    script.now += 3_600
    script.steady("b")
    assert contents(script).incidents == []


@pytest.mark.parametrize("since_s", [10, 11])
def test_gaps_have_the_cost_of_who_was_last_seen_when_they_began(since_s: int) -> None:
    """Whichever rebalance gives the partition away; another gap of that time is not the member's."""
    ending = MemberEnding("open", None, (), 10 * SECOND, 7, True)
    events = [
        left(20, ending),
        ended(25, [Idle("t", 0, since_s * SECOND, 25 * SECOND), Idle("t", 1, 24 * SECOND, 25 * SECOND)]),
    ]
    told = incidents(events, events, rows(events), MemberNumbers.of(events))
    cost = "t-0 had no consumer for up to 15.0 s"
    if since_s == 10:
        assert [one.lines[1:] for one in told] == [[cost]]
    else:
        assert told[0].lines[1:] == []
        assert told[1].lines == ["t-0 had no consumer for up to 14.0 s, until rebalance 1"]


def test_the_loss_of_the_last_member_costs_the_time_until_the_end() -> None:
    ending = MemberEnding("closed", 12 * SECOND, (8,), 10 * SECOND, 7, True)
    joined = MemberJoined(
        group="g", source="s", number=1, packet=1, time_ns=SECOND, cluster=None, kind="classic",
        member_id="a", client_id="a", host="h",
    )  # fmt: skip
    story = StoryContents(CollectedEvents([joined, left(20, ending)]).groups["g"])
    (incident,) = story.incidents
    assert incident.lines[1:] == ["no member was left from then on, for 8 s at least"]
    assert incident.cost_ns == 8 * SECOND
    assert "no member is left; the last one was last seen at" in story.without_members()


def test_many_gaps_are_compared_with_few_incidents_each() -> None:
    def many(n: int) -> list[RebalanceEnded | MemberLeft]:
        events: list[RebalanceEnded | MemberLeft] = []
        for at in range(n):
            events.append(left(at * 3, MemberEnding("open", None, (), at * 3 * SECOND, 7, True), f"m{at}"))
            events.append(ended(40 + n * 3 + at, [Idle("t", at, at * 3 * SECOND - 1, (40 + n * 3) * SECOND)]))
        return events

    numbers = MemberNumbers.of([])
    assert_linear(many, lambda events: incidents(events, [], rows(events), numbers), 100)


def test_many_departures_are_compared_with_the_joins_of_their_members_alone() -> None:
    def many(n: int) -> tuple[list[MemberLeft], list[MemberJoined]]:
        lost = [left(at * 3, MemberEnding("open", None, (), None, 7, True), f"m{at}") for at in range(n)]
        return lost, [joined(1 + at, f"m{at}") for at in range(n)]

    numbers = MemberNumbers.of([])
    assert_linear(many, lambda made: incidents(made[0], [*made[1], *made[0]], [], numbers), 100)


@pytest.mark.parametrize(
    ("later", "text"),
    [
        ({"name": "a"}, "back 00:00:30.0 (same process)"),
        ({"name": "b", "former": "a"}, "back 00:00:30.0 as b (same process, new connection)"),
        ({"name": "b", "host": "of-a"}, "back 00:00:30.0 as b (same process)"),
        ({"name": "b"}, None),
    ],
)
def test_who_was_lost_is_back_by_its_id_its_former_id_or_its_address(
    later: dict[str, str], text: str | None
) -> None:
    members = [joined(1, "a"), left(20, MemberEnding("open", None, (), None, 7, True)), joined(30, **later)]
    (incident,) = incidents([members[1]], members, [], MemberNumbers.of(members))
    found = incident.lines[0].partition("; ")[2].partition("; ")[2]
    assert (re.sub(r"#\d+ \(\w+\)", "b", found) or None) == text


def joined(at_s: int, name: str, former: str | None = None, host: str | None = None) -> MemberJoined:
    return MemberJoined(
        group="g", source="s", number=1, packet=1, time_ns=at_s * SECOND, cluster=None, kind="classic",
        member_id=name, client_id=name, host=host or f"of-{name}", former_id=former,
    )  # fmt: skip


def left(at_s: int, ending: MemberEnding, name: str = "a") -> MemberLeft:
    return MemberLeft(
        group="g", source="s", number=2, packet=9, time_ns=at_s * SECOND, cluster=None, member_id=name,
        client_id="a", how="session_timeout", inferred=True, ending=ending,
    )  # fmt: skip


def ended(at_s: int, idle: list[Idle]) -> RebalanceEnded:
    return RebalanceEnded(
        group="g", source="s", number=3, packet=10, time_ns=at_s * SECOND, cluster=None, kind="classic",
        outcome="steady", cause="new_member", member_id="n", inferred=False, detail="",
        began_ns=(at_s - 1) * SECOND, joined_ns=None, ended_ns=at_s * SECOND, length_ns=SECOND,
        generation_before=1, generation=2, protocol=None, leader=None, members=(), last_to_join=None,
        assignments=(), moved=(), idle=tuple(idle),
    )  # fmt: skip
