"""Requests that wait: what each counts, which are reduced and forgotten, and in what order."""

from __future__ import annotations

from sys import getsizeof
from typing import Any

import pytest

from coordwire.capture import pending_requests
from coordwire.capture.entries import FrameEntry
from coordwire.capture.pending_requests import (
    BUDGET,
    GUESS,
    REDUCED,
    SPARE,
    VALUES,
    AwaitedRequest,
    PendingRequests,
    _estimated,
    memory_of,
    size_of,
)
from coordwire.errors import Truncated
from coordwire.messages import HeartbeatRequest, LeaveGroupRequest, ProduceRequest
from coordwire.messages.leave_group import MemberIdentity


def entry(size: int, message: Any = None, **more: Any) -> FrameEntry:
    return FrameEntry(
        capture="c",
        number=1,
        flow="",
        time_ns=None,
        direction="request",
        body=bytes(size),
        message=message,
        **more,
    )


def asked(size: int, message: Any = None, *, gone: list[AwaitedRequest] | None = None) -> AwaitedRequest:
    return AwaitedRequest(entry(size, message), ([] if gone is None else gone).append)


def one_way(gone: list[AwaitedRequest] | None = None) -> AwaitedRequest:
    frame = entry(100, ProduceRequest(acks=0), api_key=0)
    return AwaitedRequest(frame, ([] if gone is None else gone).append)


def guessed(size: int) -> int:
    return REDUCED + GUESS * size


def measured(size: int) -> int:
    """Of a request without header and message."""
    return REDUCED + size + 2 * size_of(None)


def state(waiting: PendingRequests) -> tuple[int, int, int, int]:
    return waiting.cost, len(waiting), waiting.reduced, waiting.forgotten


def reduced(*those: AwaitedRequest) -> list[bool]:
    return [bool(one.entry.released) for one in those]


def test_nothing_waits() -> None:
    waiting = PendingRequests()
    assert (waiting.budget, waiting.place_count, state(waiting)) == (BUDGET, 0, (0, 0, 0, 0))
    assert waiting.get(0) is None


def test_who_is_answered_by_some_brokers_only() -> None:
    def may(api_key: int | None, message: Any) -> bool:
        return AwaitedRequest(entry(1, message, api_key=api_key), print).one_way

    assert may(0, ProduceRequest(acks=0)) is True
    assert may(0, ProduceRequest(acks=1)) is False
    assert may(0, None) is False
    assert may(0, HeartbeatRequest()) is False
    assert may(1, ProduceRequest(acks=0)) is False


def test_what_waits_is_found_by_its_serial_and_counted_by_its_size() -> None:
    waiting = PendingRequests()
    those = [asked(size) for size in (0, 10, 300)]
    for one in those:
        waiting.add(one)
    assert [one.serial for one in those] == [0, 1, 2]
    assert [one.cost for one in those] == [guessed(size) for size in (0, 10, 300)]
    assert [waiting.get(serial) for serial in range(4)] == [*those, None]
    assert state(waiting) == (sum(one.cost for one in those), 3, 0, 0)
    assert waiting.place_count == 3
    waiting.remove(those[1])
    waiting.remove(those[1])
    assert waiting.get(1) is None
    assert state(waiting) == (those[0].cost + those[2].cost, 2, 0, 0)


def test_what_is_forgotten_is_counted_and_reported_to_its_owner() -> None:
    waiting = PendingRequests()
    gone: list[AwaitedRequest] = []
    first, second, third = asked(10, gone=gone), one_way(gone), asked(10, gone=gone)
    for one in (first, second, third):
        waiting.add(one)
    assert reduced(first, second, third) == [False, True, False]
    assert second.cost == REDUCED
    waiting.forget(first)
    assert (gone, state(waiting)) == ([first], (REDUCED + third.cost, 2, 0, 1))
    waiting.forget(second)
    assert (gone, state(waiting)) == ([first, second], (third.cost, 1, 0, 1))


def test_guesses_within_the_budget_are_not_measured() -> None:
    waiting = PendingRequests(guessed(100) + guessed(50))
    first, second = asked(100), asked(50)
    waiting.add(first)
    waiting.add(second)
    assert (first.cost, second.cost) == (guessed(100), guessed(50))
    assert waiting.place_count == 2


def test_guesses_beyond_the_budget_are_measured() -> None:
    waiting = PendingRequests(guessed(100) + guessed(50) - 1)
    first, second = asked(100), asked(50)
    waiting.add(first)
    waiting.add(second)
    assert (first.cost, second.cost) == (measured(100), guessed(50))
    assert reduced(first, second) == [False, False]
    assert state(waiting) == (measured(100) + guessed(50), 2, 0, 0)
    assert waiting.place_count == 4  # both may be reduced, one of them measured


def test_a_measure_is_never_more_than_the_guess() -> None:
    waiting = PendingRequests(guessed(0) + guessed(3) - 1)
    values: Any = ["x" * 500]
    first, second = asked(0), asked(3, values)
    waiting.add(first)
    waiting.add(second)
    assert second.cost <= guessed(3)
    assert waiting.cost <= waiting.budget


def test_a_measure_that_meets_the_budget_is_enough() -> None:
    """Whether it is of the guess's magnitude or below."""
    for text in ("", "x" * 1100):
        size = 10
        cost = REDUCED + size + size_of(None) + size_of(text)
        assert (cost.bit_length() == guessed(size).bit_length()) is bool(text)
        for budget, whole in ((cost, True), (cost - 1, False)):
            waiting = PendingRequests(budget)
            one = asked(size, text)
            waiting.add(one)
            assert one.cost == (cost if whole else REDUCED)
            assert reduced(one) == [not whole]


def test_a_request_is_measured_once(monkeypatch: pytest.MonkeyPatch) -> None:
    measures: list[int] = []

    def counted(entry: FrameEntry, guess: int) -> int:
        measures.append(len(entry.body))
        return memory_of(entry, guess)

    monkeypatch.setattr(pending_requests, "memory_of", counted)
    waiting = PendingRequests(measured(6000) + REDUCED)
    for size in (5000, 6000, 7000):
        waiting.add(asked(size))
    assert sorted(measures) == [5000, 6000, 7000]
    assert waiting.reduced == 3


def test_a_request_of_many_values_counts_as_guessed() -> None:
    waiting = PendingRequests(guessed(10) + REDUCED)
    small, large = asked(0), asked(10, [0] * VALUES)
    waiting.add(small)
    waiting.add(large)
    assert state(waiting) == (guessed(10) + REDUCED, 2, 0, 0)
    more = asked(0)
    waiting.add(more)
    assert reduced(small, large, more) == [False, True, False]


def test_who_was_answered_is_passed_over_when_others_are_reduced() -> None:
    waiting = PendingRequests(measured(9000) + measured(5000) + REDUCED)
    first, second, third = asked(9000), asked(5000), asked(4000)
    waiting.add(first)
    waiting.add(second)
    waiting.remove(first)
    waiting.add(asked(8000))
    assert waiting.reduced == 0
    waiting.add(third)
    assert (waiting.reduced, waiting.forgotten, len(waiting)) == (1, 0, 3)


def test_the_dearest_are_reduced_first_and_among_their_like_the_oldest() -> None:
    sizes = (5000, 40_000, 5001, 41_000, 5002)
    those = [asked(size) for size in sizes]
    order = [1, 3, 0, 2, 4]
    for count in range(len(those) + 1):
        those = [asked(size) for size in sizes]
        kept = [sizes[at] for at in order[count:]]
        budget = sum(map(measured, kept)) + REDUCED * count
        waiting = PendingRequests(budget)
        for one in those:
            waiting.add(one)
        assert reduced(*those) == [at in order[:count] for at in range(len(those))]
        assert state(waiting) == (budget, 5, count, 0)


def test_those_that_come_later_may_be_reduced_too() -> None:
    first, second, third = asked(5000), asked(5000), asked(50_000)
    waiting = PendingRequests(measured(5000) * 2 + REDUCED)
    for one in (first, second, third):
        waiting.add(one)
    assert reduced(first, second, third) == [False, False, True]
    fourth = asked(60_000)
    waiting.add(fourth)
    assert reduced(first, second, third, fourth) == [True, False, True, True]
    assert waiting.cost == measured(5000) + 3 * REDUCED


def test_one_way_requests_are_not_reduced_again() -> None:
    waiting = PendingRequests(REDUCED + measured(5000))
    produce, first = one_way(), asked(5000)
    waiting.add(produce)
    waiting.add(first)
    assert (reduced(first), state(waiting)) == ([False], (REDUCED + measured(5000), 2, 0, 0))
    assert waiting.place_count == 3


def test_those_that_waited_longest_are_forgotten() -> None:
    waiting = PendingRequests(3 * REDUCED)
    gone: list[AwaitedRequest] = []
    those = [asked(5000, gone=gone) for _ in range(6)]
    for count, one in enumerate(those, 1):
        waiting.add(one)
        assert gone == those[: max(count - 3, 0)]
        assert state(waiting) == (REDUCED * min(count, 3), min(count, 3), count, max(count - 3, 0))


def test_who_was_answered_is_passed_over_when_others_are_forgotten() -> None:
    waiting = PendingRequests(3 * REDUCED)
    gone: list[AwaitedRequest] = []
    those = [asked(5000, gone=gone) for _ in range(7)]
    for one in those[:4]:
        waiting.add(one)
    waiting.remove(those[1])
    waiting.add(those[4])
    waiting.add(those[5])
    assert gone == [those[0], those[2]]
    waiting.remove(those[3])
    waiting.add(those[6])
    assert gone == [those[0], those[2]]


def test_the_last_is_never_forgotten() -> None:
    waiting = PendingRequests(0)
    gone: list[AwaitedRequest] = []
    first, second = asked(10, gone=gone), asked(10, gone=gone)
    waiting.add(first)
    assert (gone, state(waiting)) == ([], (REDUCED, 1, 1, 0))
    waiting.add(second)
    assert (gone, state(waiting)) == ([first], (REDUCED, 1, 2, 1))


def test_those_that_wait_no_longer_are_dropped_from_the_order() -> None:
    waiting = PendingRequests(2 * measured(400) + guessed(1))
    stays = [asked(400), asked(400)]
    for one in stays:
        waiting.add(one)
    assert waiting.place_count == 4
    for count in range(1, SPARE + 5):  # at most twice those that wait, and `SPARE`
        one = asked(1)
        waiting.add(one)
        waiting.remove(one)
        assert waiting.place_count == 4 + count
    waiting.add(asked(1))
    assert waiting.place_count == 6


# --- what is measured


def test_a_message_is_measured_value_by_value() -> None:
    body = 7
    assert memory_of(entry(body), 0) == body + 2 * size_of(None)
    member = MemberIdentity(member_id="m" * 40)
    message = LeaveGroupRequest(group_id="group", members=[member], tags={7: b"seven"})
    values: list[object] = [None, message, message.group_id, message.member_id, message.members, message.tags]
    values += [member, member.member_id, member.group_instance_id, member.reason, member.tags, b"seven"]
    assert memory_of(entry(body, message), 0) == body + sum(map(size_of, values))


def test_what_was_decoded_before_a_refusal_is_measured() -> None:
    error = Truncated("short", 0, "", "partial")
    assert memory_of(entry(0, error=error), 0) == 2 * size_of(None) + size_of("partial")


@pytest.mark.parametrize("more", [0, 1])
def test_a_message_of_many_values_counts_as_guessed(more: int) -> None:
    numbers = [0] * ((VALUES - 2) // 2 + more)
    total = size_of(None) + size_of(numbers) + len(numbers) * size_of(0)
    assert memory_of(entry(0, numbers), 99) == (99 if more else total)
    named = dict(enumerate(numbers))
    total += size_of(named) - size_of(numbers)
    assert memory_of(entry(0, named), 99) == (99 if more else total)
    assert memory_of(entry(0, numbers + [0] * 10_000), 99) == 99


def test_it_counts_what_it_says() -> None:
    assert (pending_requests.BUDGET, pending_requests.REDUCED, pending_requests.GUESS) == (
        64 << 20,
        1024,
        128,
    )


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        7,
        1 << 40,
        1.5,
        "",
        "a" * 500,
        b"",
        bytes(70_000),
        [],
        [None] * 900,
        {},
        {1: 2},
        dict.fromkeys(range(400)),
    ],
)
def test_what_pypy_can_not_say_is_estimated(value: object) -> None:
    exact = getsizeof(value, 0)
    if not exact:
        pytest.skip("this interpreter can't say it")
    assert exact / 2 <= _estimated(value) <= 2 * exact
