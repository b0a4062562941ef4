"""A coordinator that answers nothing for a while: an event of its own, and no silence of its members.

Scripted: sessions of 6 s, heartbeats each 1.5 s until 12 s, and from 13.5 s on no answers until 18.7 s.
"""

from __future__ import annotations

from coordwire.capture.entries import FrameEntry
from coordwire.messages import HeartbeatRequest, HeartbeatResponse
from coordwire.timeline.events import (
    CoordinatorStalled,
    GroupEvent,
    MemberLeft,
    RebalanceEnded,
    TopicPartition,
)
from coordwire.timeline.story import story_lines
from coordwire.timeline.totals import stories
from tests.timeline.script import SECOND, START, Script, only

UNKNOWN_MEMBER_ID, REBALANCE_IN_PROGRESS = 25, 27


class Stalling(Script):
    """Members a and b, which have partitions 0 and 1, until the coordinator stops to answer."""

    def __init__(self) -> None:
        super().__init__()
        asked = [self.join(client, timeout_ms=6_000) for client in "ab"]
        self.rebalance(1, {"a": {"t": [0]}, "b": {"t": [1]}}, *asked)
        for number in range(1, 9):
            self.now = 1.5 * number
            self.heartbeat("a", 1)
            self.heartbeat("b", 1)
        self.now = 13.5

    def beat(self, client: str, generation: int = 1) -> FrameEntry:
        request = HeartbeatRequest(group_id=self.group, generation_id=generation, member_id=f"{client}-id")
        return self.ask(request, client)

    def answers(self, second: float, *asked: FrameEntry, error_code: int = 0) -> None:
        self.now = second
        for request in asked:
            self.answer(request, HeartbeatResponse(error_code=error_code))


def seconds(time_ns: int | None) -> float:
    return round(((time_ns or 0) - START) / SECOND, 1)


def stall_of(events: list[GroupEvent]) -> tuple[float, float | None, int]:
    (stall,) = only(events, CoordinatorStalled)
    until = None if stall.until_ns is None else seconds(stall.until_ns)
    return seconds(stall.time_ns), until, stall.requests


def test_a_stall_that_all_survive_is_an_event_and_ends_no_session() -> None:
    script = Stalling()
    waiting = [script.beat("a"), script.beat("b")]
    script.answers(18.7, *waiting)
    script.now = 20
    script.heartbeat("a", 1)
    events = script.events(ends=True)
    assert stall_of(events) == (13.5, 18.7, 2)
    assert only(events, MemberLeft) == []
    assert "did not answer for 5.2 s" in "\n".join(story_lines(events))


def test_a_session_that_ends_during_a_stall_is_no_silence_of_its_member() -> None:
    script = Stalling()
    a, b = script.beat("a"), script.beat("b")
    script.answers(18.7, a, error_code=REBALANCE_IN_PROGRESS)
    script.answers(18.7, b, error_code=UNKNOWN_MEMBER_ID)
    script.rebalance(2, {"a": {"t": [0, 1]}}, script.join("a", timeout_ms=6_000))
    events = script.events(ends=True)
    (left,) = only(events, MemberLeft)
    assert (left.member_id, left.how, seconds(left.time_ns)) == ("b-id", "session_timeout", 18.7)
    assert left.ending is not None
    assert (seconds(left.ending.heard_ns), seconds(left.ending.unanswered_ns)) == (12.0, 13.5)
    lost = only(events, RebalanceEnded)[-1]
    assert (lost.cause, lost.member_id, seconds(lost.began_ns)) == ("session_timeout", "b-id", 18.7)
    text = "\n".join(story_lines(events))
    assert "silent for longer" not in text
    assert "nothing sent since" not in text
    assert stall_of(events) == (13.5, 18.7, 2)


def test_one_that_waits_while_others_are_answered_is_no_stall() -> None:
    script = Stalling()
    late = script.beat("b")
    for number in range(4):
        script.now = 14 + number
        script.heartbeat("a", 1)
    script.answers(18.7, late)
    script.now = 20
    script.heartbeat("a", 1)
    assert only(script.events(ends=True), CoordinatorStalled) == []


def test_a_stall_that_the_input_ends_in_has_no_end() -> None:
    script = Stalling()
    script.beat("a")
    script.beat("b")
    script.now = 17
    script.beat("a")
    assert stall_of(script.events(ends=True)) == (13.5, None, 2)


def test_a_killed_member_has_no_consumer_from_its_death_on() -> None:
    """Its session ends with the stall, long after its connection did."""
    script = Stalling()
    script.now = 12.5
    script.close("b")
    script.now = 13.5
    waiting = script.beat("a")
    script.answers(18.7, waiting, error_code=REBALANCE_IN_PROGRESS)
    script.rebalance(2, {"a": {"t": [0, 1]}}, script.join("a", timeout_ms=6_000))
    events = script.events(ends=True)
    (left,) = only(events, MemberLeft)
    assert (left.member_id, left.how) == ("b-id", "session_timeout")
    gaps = {gap.partition: gap for gap in only(events, RebalanceEnded)[-1].idle}
    assert seconds(gaps[1].since_ns) == 12.5
    story = stories(events)["g"]
    assert 6.1 < story.idle[TopicPartition("t", 1)] / SECOND < 6.3
    assert story.idle_ns == story.idle[TopicPartition("t", 1)]
