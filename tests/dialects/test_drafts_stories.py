"""What the drafts' coordinators take for answered, and for gone."""

from __future__ import annotations

import pytest

from coordwire.dialects import ConnectionDialect
from coordwire.messages import (
    Draft1PingRequest,
    Draft1PingResponse,
    Draft2PingRequest,
    Draft3JoinGroupRequest,
)
from coordwire.timeline.events import GroupEvent, MemberLeft, RebalanceEnded
from coordwire.timeline.from_wire.timeline import timeline
from tests.dialects.test_drafts_growth import MS, Script
from tests.timeline.script import only

TIMEOUT_MS = 3_000


def events(script: Script) -> list[GroupEvent]:
    return list(timeline(script.entries, ends=True, dialect=ConnectionDialect(script.dialect)))


@pytest.mark.parametrize(("waits_ms", "ended"), [(1_900, 2), (2_100, 1)])
def test_a_start_that_is_answered_after_two_thirds_of_the_timeout_is_a_failed_attempt(
    waits_ms: int, ended: int
) -> None:
    script = Script("draft-2")
    script.accepts("c", session_timeout_ms=TIMEOUT_MS)
    for wait_ms in (waits_ms, 0):
        script.stops("c")
        answer = script.starts("c", 0)
        script.now += wait_ms * MS
        answer()
    rebalances = only(events(script), RebalanceEnded)
    assert [event.outcome for event in rebalances] == ["steady"] * ended
    assert rebalances[-1].ended_ns == script.now


@pytest.mark.parametrize(("waits_ms", "how"), [(2_000, "session_timeout"), (500, "removed")])
def test_a_consumer_whose_connection_ends_after_a_ping_in_vain_is_out_at_once(
    waits_ms: int, how: str
) -> None:
    script = Script("draft-2")
    for name in ("c", "silent"):
        script.accepts(name, session_timeout_ms=TIMEOUT_MS)
    script.rebalances(["c", "silent"])
    script.ask("silent", Draft2PingRequest(consumer_id="silent"))
    script.now += waits_ms * MS
    script.end("silent")
    ended_ns = script.now
    script.now += 5 * MS
    script.rebalances(["c"])
    (left,) = only(events(script), MemberLeft)
    assert (left.member_id, left.how, left.time_ns) == ("silent", how, ended_ns)
    assert left.ending is not None
    assert left.ending.how == "closed_by_broker"


def test_a_stop_after_a_start_is_another_attempt() -> None:
    script = Script("draft-1")
    first = script.members(2)
    for name, number in (("c1", 1), ("c0", 0)):  # each time without the other, whose connection has ended
        script.end("c1" if name == "c0" else "c0")
        script.registers(name)
        script.accepts(name)
        script.stops(name)
        script.starts(name, number)()
    script.registers("c1")
    script.accepts("c1")
    assert len(only(events(script), RebalanceEnded)) == 2
    assert only(events(script), RebalanceEnded)[-1].outcome == "unfinished"
    script.rebalances(first)
    last = only(events(script), RebalanceEnded)[-1]
    assert (last.outcome, last.ended_ns) == ("steady", script.now)


def test_a_consumer_that_started_and_is_lost_has_its_partitions() -> None:
    script = Script("draft-1")
    names = script.members(2)
    for name in names:
        script.stops(name)
    answers = [script.starts(name, number) for number, name in enumerate(names)]
    answers[0]()
    script.end("c0", "client")
    answers[1]()
    last = only(events(script), RebalanceEnded)[-1]
    assert last.outcome == "steady"
    assert [row.member_id for row in last.assignments if row.partitions] == names


def test_a_start_in_vain_counts_like_a_ping() -> None:
    script = Script("draft-1")
    for name in ("c0", "c1"):
        script.registers(name, ping_interval_ms=2_000, max_ping_retries=1)
        script.answer(name, script.ask(name, Draft1PingRequest()), Draft1PingResponse())
    script.rebalances(["c0", "c1"])
    for _ in range(2):
        script.stops("c1")
        script.starts("c1", 1)
        script.now += 2_000 * MS
    script.end("c1")
    ended_ns = script.now
    script.stops("c0")
    script.starts("c0", 0)()
    (left,) = only(events(script), MemberLeft)
    assert (left.member_id, left.how, left.time_ns) == ("c1", "session_timeout", ended_ns)


@pytest.mark.parametrize(("waits_ms", "how", "out_ms"), [
    (1_000, "removed", 0),  # it does not wait for it, so the connection was lost
    (9_000, "not_rejoined", 4_000),
])  # fmt: skip
def test_an_overview_waits_for_four_thirds_of_a_session(waits_ms: int, how: str, out_ms: int) -> None:
    script = Script("draft-2")
    requests = [script.registers(name, session_timeout_ms=TIMEOUT_MS) for name in ("c", "silent")]
    for number, request in enumerate(requests):
        script.serves(("c", "silent")[number], request, number)
    script.end("silent")
    broken_ns = script.now
    script.end("c")
    script.now += waits_ms * MS
    script.serves("c", script.registers("c", session_timeout_ms=TIMEOUT_MS), 0)
    (left,) = only(events(script), MemberLeft)
    assert left.how == how
    assert abs(left.time_ns - broken_ns - out_ms * MS) <= 2 * MS


def test_an_overview_s_registration_without_a_refusal_was_taken_up() -> None:
    script = Script("draft-2")
    script.serves("c", script.registers("c", session_timeout_ms=TIMEOUT_MS), 0)
    script.registers("d", session_timeout_ms=TIMEOUT_MS)
    script.now += 200 * MS
    script.end("d", "client")
    (left,) = only(events(script), MemberLeft)
    assert (left.member_id, left.how, left.time_ns) == ("d", "left", script.now)


@pytest.mark.parametrize(("generation", "cause"), [(2, "session_timeout"), (1, "coordinator_moved")])
def test_a_coordinator_that_continues_the_generations_has_kept_the_sessions(
    generation: int, cause: str
) -> None:
    script = Script("draft-3")
    request = script.ask("c", Draft3JoinGroupRequest(group_id="g", session_timeout=TIMEOUT_MS))
    script.joined("c", request, 1, 0)
    joined_ns = script.now
    script.end("c")
    script.now += 5_000 * MS
    script.joined("d", script.joins("d"), generation, 0)
    (left,) = only(events(script), MemberLeft)
    assert (left.how, left.time_ns) == ("session_timeout", joined_ns + TIMEOUT_MS * MS)
    causes = [event.cause for event in only(events(script), RebalanceEnded)]
    assert (cause == "coordinator_moved") == ("coordinator_moved" in causes)
