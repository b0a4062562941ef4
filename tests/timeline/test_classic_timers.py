"""The timers of a classic group's coordinator, replayed: when those go that are not heard any more."""

from __future__ import annotations

import random

import pytest

from coordwire.timeline.evidence import Seen
from coordwire.timeline.from_wire.classic_silence import MS, SilentMembers
from coordwire.timeline.from_wire.classic_timers import MOST_GENERATIONS, Awaited, Departures, replayed
from coordwire.timeline.members import Member
from coordwire.timeline.rebalance import Rebalance, Trigger
from coordwire.timeline.session_clocks import SessionClocks

SESSION, PATIENCE = 10, 5


def member(over: int | None, *, static: bool = False, patience: int = PATIENCE) -> Awaited:
    return Awaited(over, SESSION, patience, static)


def gone(
    members: dict[str, Awaited], *, joins: tuple[tuple[int, str], ...] = (), unsynced: str = "",
    formed: int | None = 0, until: int = 100,
) -> Departures:  # fmt: skip
    return replayed(members, unsynced, formed, joins, until).departures


def test_a_session_ends_and_the_others_are_awaited_for_a_join_phase() -> None:
    members = {"a": member(12), "b": member(20), "c": member(14)}
    assert gone(members) == {
        "a": (12, "session_timeout"), "c": (14, "session_timeout"), "b": (17, "not_rejoined"),
    }  # fmt: skip
    assert gone(members, until=13) == {"a": (12, "session_timeout")}
    assert gone(members, until=11) == {}


def test_static_members_stay_until_their_sessions_end() -> None:
    members = {"a": member(12), "b": member(20, static=True)}
    assert gone(members) == {"a": (12, "session_timeout"), "b": (20, "session_timeout")}


def test_a_member_that_never_asks_for_its_assignment_is_out_with_the_sync_phase() -> None:
    members = {"a": member(10, static=True), "b": member(20)}
    assert gone(members, unsynced="a", until=8) == {"a": (5, "not_rejoined")}
    assert gone(members, until=8) == {}


def test_another_reason_to_join_begins_a_phase() -> None:
    assert gone({"a": member(20)}, joins=((3, ""),)) == {"a": (8, "not_rejoined")}


def test_a_generation_that_formed_unseen_begins_sessions_anew() -> None:
    members = {"a": member(None), "b": member(6)}
    # b's session ends, so that a is alone: it is answered, and hears nothing of it.
    assert gone(members, joins=((2, "a"),)) == {"b": (6, "session_timeout"), "a": (11, "not_rejoined")}


def test_a_member_that_is_not_known_yet_is_awaited_too() -> None:
    members = {"a": member(20)}
    assert gone(members, joins=((3, "a"), (4, "new")), until=8) == {}
    # Both have joined at 4: neither asks for its assignment by 9.
    assert gone(members, joins=((3, "a"), (4, "new"))) == {"a": (9, "not_rejoined")}


def test_an_answered_sync_begins_a_session() -> None:
    members = {"a": member(4), "b": member(None)}
    assert gone(members, unsynced="", until=9) == {"a": (4, "session_timeout"), "b": (9, "not_rejoined")}
    static = {"a": member(4), "b": member(None, static=True)}
    assert gone(static) == {"a": (4, "session_timeout"), "b": (14, "session_timeout")}


def test_what_is_unknown_ends_nothing() -> None:
    assert gone({"a": Awaited(None, 0, 0, static=False)}, joins=((3, ""),)) == {}
    assert gone({"a": member(9, patience=0), "b": member(30, patience=0)}, until=29) == {
        "a": (9, "session_timeout")
    }


@pytest.mark.parametrize("patience", [1, 3])
def test_the_replay_of_generations_is_bounded(patience: int) -> None:
    """A join after each generation forms another, of all static members: each looks at all of them."""
    count = 10 * MOST_GENERATIONS
    members = {str(number): Awaited(10**9, 10**9, patience, static=True) for number in range(50)}
    joins = tuple((2 * patience * number, f"new{number}") for number in range(count))
    assert gone(members, joins=joins, formed=None, until=10**6) is not None


def test_timers_are_replayed_wherever_one_may_end() -> None:
    """Who is out without a replay, where none seems to be needed, is who is out by the replay."""
    rng = random.Random(1)
    replayed_ones = 0
    for _ in range(3000):
        members = {
            name: Member(
                name, instance_id=rng.choice([None, None, name]), last_seen_ns=rng.randrange(40) * MS,
                session_timeout_ms=rng.choice([None, 0, 10, 30]), parked=rng.random() < 0.4,
                rebalance_timeout_ms=rng.choice([None, 5, 20, 60]), asked_ns=rng.randrange(40) * MS,
            )
            for name in "abc"[: rng.randrange(1, 4)]
        }  # fmt: skip
        silence = SilentMembers(members, SessionClocks(rng.randrange(20) * MS))
        if rng.random() < 0.7:
            silence.formed = Rebalance(Seen(0, "", 1), Trigger("unknown"), None)
            silence.formed.joined_ns = rng.choice([None, rng.randrange(60) * MS])
            silence.formed.syncing |= set(rng.choice(["", "a", "abc"]))
        if rng.random() < 0.1:
            silence.gone_by = {"a": (rng.randrange(40) * MS, "session_timeout")}
        joins = [(rng.randrange(70) * MS, rng.choice(["", "a", "b", "x"])) for _ in range(rng.randrange(4))]
        absent = {"y": rng.randrange(50) * MS} if rng.random() < 0.1 else {}
        until_ns = rng.randrange(80) * MS
        slow = silence.replayed(joins, absent, until_ns).departures
        assert silence.departures(joins, absent, until_ns) == slow
        replayed_ones += bool(slow)
    assert 500 < replayed_ones < 2500
