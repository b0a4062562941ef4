"""Timers are due in the order of their deadlines, then in the order in which they were set."""

from __future__ import annotations

import random

import pytest

from coordwire.coordinator.timers import Timers


def drained(timers: Timers[str]) -> list[tuple[int, str]]:
    actions = []
    while (deadline := timers.next_deadline()) is not None:
        actions.append((deadline, timers.pop()()))
    return actions


def test_equal_deadlines_are_due_in_the_order_they_were_set() -> None:
    timers: Timers[str] = Timers()
    for key in "cab":
        timers.set(key, 5, lambda key=key: key)  # type: ignore[misc]
    timers.set("d", 4, lambda: "d")
    assert drained(timers) == [(4, "d"), (5, "c"), (5, "a"), (5, "b")]


def test_a_timer_set_anew_or_cancelled_is_due_once_or_never() -> None:
    timers: Timers[str] = Timers()
    timers.set("a", 1, lambda: "early")
    timers.set("b", 2, lambda: "b")
    timers.set("a", 3, lambda: "late")
    timers.cancel("b")
    timers.cancel("nothing")
    assert timers.deadlines() == {"a": 3}
    assert drained(timers) == [(3, "late")]


def test_renewals_leave_no_more_behind_than_there_are_timers() -> None:
    timers: Timers[str] = Timers()
    for now in range(10_000):
        timers.set(f"member-{now % 10}", now + 100, lambda: "")
    assert len(timers.heap) <= 2 * 10 + 65


def test_a_renewal_moves_nothing_in_the_heap_until_it_comes_up() -> None:
    timers: Timers[str] = Timers()
    timers.set("a", 100, lambda: "a")
    assert not timers.renew("a", 99)
    assert not timers.renew("b", 200)
    for now in range(1_000):
        assert timers.renew("a", 100 + now)
    assert len(timers.heap) == 1
    assert drained(timers) == [(1_099, "a")]


@pytest.mark.parametrize("seed", range(8))
def test_any_sequence_comes_out_as_from_a_sorted_list(seed: int) -> None:
    """Set, renewed, cancelled and due, against a list that is sorted each time."""
    chance = random.Random(seed)
    timers: Timers[str] = Timers()
    known: dict[str, tuple[int, int, str]] = {}
    now = 0
    for number in range(2_000):
        key = f"k{chance.randrange(50)}"
        deadline = now + chance.randrange(100)
        match chance.choice(["cancel", "set", "set", "renew", "renew", "due"]):
            case "cancel":
                timers.cancel(key)
                known.pop(key, None)
            case "set":
                timers.set(key, deadline, lambda key=key: key)  # type: ignore[misc]
                known[key] = deadline, number, key
            case "renew":
                if timers.renew(key, deadline):
                    known[key] = deadline, number, key
                else:
                    assert key not in known or deadline < known[key][0]
            case "due":
                first = min(known.values(), default=None)
                assert timers.next_deadline() == (None if first is None else first[0])
                if first is not None:
                    now = max(now, first[0])
                    assert timers.pop()() == first[2]
                    del known[first[2]]
        assert len(timers) == len(known)
        assert len(timers.heap) <= 2 * 50 + 65
    assert timers.deadlines() == {key: deadline for key, (deadline, _, _) in known.items()}
    assert drained(timers) == [(deadline, key) for deadline, _, key in sorted(known.values())]
