"""A coordinator that answers nothing for a while: an event of its own, and no silence of its members.

Scripted: sessions of 6 s, heartbeats each 1.5 s until 12 s, and from 13.5 s on no answers until 18.7 s.
"""

from __future__ import annotations

import pytest

from coordwire.capture.entries import FrameEntry
from coordwire.messages import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
)
from coordwire.messages.offset_commit import OffsetCommitResponsePartition, OffsetCommitResponseTopic
from coordwire.timeline.events import (
    CoordinatorStalled,
    GroupEvent,
    MemberJoined,
    MemberLeft,
    RebalanceEnded,
    TopicPartition,
)
from coordwire.timeline.story import story_lines
from coordwire.timeline.totals import stories
from tests.growth import assert_linear
from tests.timeline.script import SECOND, START, Script, only, says_session_timeout
from tests.timeline.test_modern import beat

NOT_COORDINATOR, UNKNOWN_MEMBER_ID, REBALANCE_IN_PROGRESS = 16, 25, 27


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


def test_a_stall_is_reported_once_though_some_are_answered_before_others() -> None:
    """One member asks again, and is answered, before the other's request is."""
    script = Stalling()
    a, b = script.beat("a"), script.beat("b")
    script.answers(18.7, a)
    script.heartbeat("a", 1)
    script.answers(18.71, b)
    for script.now in (20, 21.5):
        script.heartbeat("a", 1)
        script.heartbeat("b", 1)
    assert stall_of(script.events(ends=True)) == (13.5, 18.7, 2)


def test_a_request_without_an_answer_is_no_second_stall() -> None:
    script = Stalling()
    a, _ = script.beat("a"), script.beat("b")
    script.answers(18.7, a)
    script.now = 20
    script.heartbeat("a", 1)
    script.now = 20.4
    script.beat("a")
    assert stall_of(script.events(ends=True)) == (13.5, 18.7, 1)


def test_an_answer_after_the_stall_was_reported_is_of_that() -> None:
    script = Stalling()
    a, b = script.beat("a"), script.beat("b")
    script.answers(18.7, a)
    script.now = 20
    script.heartbeat("a", 1)
    script.answers(20.3, b)
    assert stall_of(script.events(ends=True)) == (13.5, 18.7, 1)


def test_requests_that_were_refused_do_not_wait() -> None:
    """The coordinator refuses at once, and another accepts 3 s later."""
    script = Script()
    beat(script, "a", 0, 1, given=[0])
    script.now = 3
    beat(script, "a", 1, 1, error_code=NOT_COORDINATOR)
    script.broker = "other:9092"
    for script.now in (6, 8):
        beat(script, "a", 1, 1)
    assert only(script.events(ends=True), CoordinatorStalled) == []


def test_a_late_refusal_is_no_stall() -> None:
    script = Stalling()
    waiting = script.beat("a"), script.beat("b")
    script.answers(18.7, *waiting, error_code=NOT_COORDINATOR)
    assert only(script.events(ends=True), CoordinatorStalled) == []


def test_requests_that_their_clients_gave_up_do_not_wait() -> None:
    script = Stalling()
    script.beat("a")
    script.beat("b")
    script.now = 14
    script.close("a", "b")
    other = Script("other")
    other.now = 30
    other.steady("c")
    script.entries += other.entries
    assert only(script.events(ends=True), CoordinatorStalled) == []


def test_another_broker_answers_while_requests_wait() -> None:
    script = Stalling()
    script.beat("a")
    script.beat("b")
    script.now = 17
    script.close("a", "b")
    script.broker = "other:9092"
    for script.now in (18.7, 20):
        script.heartbeat("a", 1)
        script.heartbeat("b", 1)
    events = script.events(ends=True)
    assert stall_of(events) == (13.5, 18.7, 2)
    (stall,) = only(events, CoordinatorStalled)
    assert (stall.broker, stall.answered_by) == ("broker:9092", "other:9092")


def test_a_session_that_ends_in_an_earlier_stall_is_told_after_it() -> None:
    """b dies in a stall; it is missed after another one."""
    script = Stalling()
    script.now = 12.5
    script.close("b")
    script.now = 13.5
    script.answers(18.7, script.beat("a"))
    script.now = 20
    script.heartbeat("a", 1)
    script.now = 21.5
    script.answers(24.5, script.beat("a"), error_code=REBALANCE_IN_PROGRESS)
    script.rebalance(2, {"a": {"t": [0, 1]}}, script.join("a", timeout_ms=6_000))
    events = script.events(ends=True)
    assert [seconds(event.time_ns) for event in only(events, CoordinatorStalled)] == [13.5, 21.5]
    (left,) = only(events, MemberLeft)
    assert (left.member_id, seconds(left.time_ns)) == ("b-id", 18.7)


def test_groups_of_one_coordinator_tell_the_same_stall() -> None:
    script = Stalling()
    script.group = "h"
    script.now = 12.8
    asked = script.join("c", timeout_ms=6_000)
    script.rebalance(1, {"c": {"t": [2]}}, asked)
    script.group = "g"
    script.now = 13.5
    waiting = [script.beat("a"), script.beat("b")]
    script.group = "h"
    script.now = 14.2
    waiting.append(script.beat("c"))
    script.answers(18.7, waiting[0], waiting[2], waiting[1])
    script.now = 20
    script.heartbeat("c", 1)
    script.group = "g"
    script.heartbeat("a", 1)
    stalls = only(script.events(ends=True), CoordinatorStalled)
    assert sorted(stall.group for stall in stalls) == ["g", "h"]
    assert {(seconds(stall.time_ns), seconds(stall.until_ns), stall.requests) for stall in stalls} == {
        (13.5, 18.7, 3)
    }


def test_a_commit_that_waits_while_other_groups_are_answered_is_no_stall() -> None:
    """Its answer waits for replicas."""
    script = Stalling()
    commit = script.ask(
        OffsetCommitRequest(group_id="g", generation_id_or_member_epoch=1, member_id="a-id"), "a"
    )
    script.group = "h"
    script.now = 14.5
    script.rebalance(1, {"c": {"t": [2]}}, script.join("c"))
    script.heartbeat("c", 1)
    script.now = 16.8
    script.answer(commit, OffsetCommitResponse())
    assert only(script.events(ends=True), CoordinatorStalled) == []


def test_an_answer_from_before_a_member_went_lets_it_not_in_again() -> None:
    """b's connection hangs, its session ends, and its last answer comes long afterwards."""
    script = Stalling()
    late = script.beat("b")
    for script.now in (15, 16.5, 18):
        script.heartbeat("a", 1)
    script.now = 19.6
    script.heartbeat("a", 1, REBALANCE_IN_PROGRESS)
    script.rebalance(2, {"a": {"t": [0, 1]}}, script.join("a", timeout_ms=6_000))
    script.answers(40, late)
    events = script.events(ends=True)
    assert [event.member_id for event in only(events, MemberJoined)] == ["a-id", "b-id"]
    assert [event.member_id for event in only(events, MemberLeft)] == ["b-id", "a-id"]


def addresses(count: int) -> Script:
    """A group of many, each of whose requests goes to another address."""
    script = Script()
    names = [f"m{number}" for number in range(count)]
    script.steady(*names)
    for number, name in enumerate(names):
        script.broker = f"b{number}:9092"
        script.heartbeat(name, 1)
    return script


def test_each_address_of_a_broker_costs_the_same_in_a_group_of_many() -> None:
    assert_linear(addresses, lambda script: script.events(ends=True), n=100)


def beating(member: str) -> ConsumerGroupHeartbeatRequest:
    """A heartbeat in epoch 2 that says nothing else."""
    return ConsumerGroupHeartbeatRequest(
        group_id="g", member_id=member, member_epoch=2, instance_id=None, rack_id=None,
        subscribed_topic_names=None, subscribed_topic_regex=None, server_assignor=None, topic_partitions=None,
    )  # fmt: skip


def test_a_late_answer_of_a_past_epoch_lets_nobody_in_again() -> None:
    """b's request waits, its session ends, a has its partition; then b is answered of the epoch before."""
    script = Script()
    beat(script, "a", 0, 1, topics=["orders"], given=[0])
    beat(script, "b", 0, 2, topics=["orders"], given=[1])
    beat(script, "a", 1, 2)
    for script.now in (5, 10, 15, 20, 25, 30, 35, 40, 45):
        beat(script, "a", 2, 2)
    script.now = 4
    late = script.ask(beating("b"), "b")
    script.now = 50
    beat(script, "a", 2, 3, given=[0, 1])
    script.now = 55
    beat(script, "a", 3, 3, owns=[0, 1])
    script.now = 60
    answer = ConsumerGroupHeartbeatResponse(
        error_message=None, member_id="b", member_epoch=2, assignment=None
    )
    script.answer(late, answer)
    script.entries.sort(key=lambda entry: entry.time_ns or 0)
    events = script.events(ends=True)
    assert [event.member_id for event in only(events, MemberJoined)] == ["a", "b"]
    assert [event.member_id for event in only(events, MemberLeft)] == ["b"]


@pytest.mark.parametrize("error_code", [0, UNKNOWN_MEMBER_ID])
def test_a_member_whose_commit_waits_in_a_stall_consumes_until_its_answer(error_code: int) -> None:
    """All sessions are over when the coordinator goes on; another's answer shows that first."""
    script = Script()
    beat(script, "a", 0, 1, topics=["orders"], given=[0])
    beat(script, "b", 0, 2, topics=["orders"], given=[1])
    beat(script, "a", 1, 2)
    script.now = 5
    commit = script.ask(
        OffsetCommitRequest(group_id="g", generation_id_or_member_epoch=2, member_id="b", topics=[]), "b"
    )
    waiting = script.ask(beating("a"), "a")
    script.now = 60
    script.answer(waiting, ConsumerGroupHeartbeatResponse(error_code=UNKNOWN_MEMBER_ID))
    part = OffsetCommitResponsePartition(error_code=error_code)
    topics = [OffsetCommitResponseTopic(name="orders", partitions=[part])]
    script.answer(commit, OffsetCommitResponse(topics=topics))
    script.now = 61
    beat(script, "a", 0, 5, topics=["orders"], given=[0, 1])
    beat(script, "a", 5, 5, owns=[0, 1])
    gaps = [gap for event in only(script.events(ends=True), RebalanceEnded) for gap in event.idle]
    assert {gap.partition: seconds(gap.since_ns) for gap in gaps} == {0: 60, 1: 60}


def test_a_member_that_asks_soon_after_its_last_request_lived_meanwhile() -> None:
    """It is out, as another's answer shows; it asks again before it is told so itself."""
    script = Script()
    beat(script, "a", 0, 1, topics=["orders"], given=[0])
    beat(script, "b", 0, 2, topics=["orders"], given=[1])
    beat(script, "a", 1, 2)
    script.now = 5
    waiting = script.ask(beating("a"), "a")
    script.now = 20
    script.ask(beating("b"), "b")
    script.now = 52
    script.answer(waiting, ConsumerGroupHeartbeatResponse(error_code=UNKNOWN_MEMBER_ID))
    beat(script, "b", 2, 0, error_code=UNKNOWN_MEMBER_ID)
    script.now = 61
    beat(script, "a", 0, 5, topics=["orders"], given=[0, 1])
    beat(script, "a", 5, 5, owns=[0, 1])
    gaps = [gap for event in only(script.events(ends=True), RebalanceEnded) for gap in event.idle]
    assert {gap.partition: seconds(gap.since_ns) for gap in gaps} == {0: 52, 1: 52}


def answered(script: Script, request: FrameEntry, epoch: int, error_code: int = 0) -> None:
    script.answer(request, ConsumerGroupHeartbeatResponse(
        error_code=error_code, error_message=None, member_id=request.client_id, member_epoch=epoch,
        assignment=None,
    ))  # fmt: skip


def leaving(member: str) -> ConsumerGroupHeartbeatRequest:
    request = beating(member)
    request.member_epoch = -1
    return request


def test_a_last_heartbeat_that_waits_in_a_stall_and_is_refused_is_no_leaving() -> None:
    """Both sessions of 6 s end in the stall; the answer to a shows it first."""
    script = Script()
    says_session_timeout(script, "consumer", 6_000)
    for member in "ab":
        beat(script, member, 0, 1, topics=["orders"], owns=[], given=[])
    for number in range(1, 9):
        script.now = 1.5 * number
        beat(script, "a", 1, 1)
        beat(script, "b", 1, 1)
    script.now = 13.5
    waiting = [script.ask(beating("a"), "a"), script.ask(leaving("b"), "b")]
    script.now = 21
    for request in waiting:
        answered(script, request, 0, error_code=UNKNOWN_MEMBER_ID)
    left = only(script.events(ends=True), MemberLeft)
    assert [(event.member_id, event.how) for event in left] == [
        ("a", "session_timeout"), ("b", "session_timeout"),
    ]  # fmt: skip
    assert {seconds(event.time_ns) for event in left} == {21.0}


def test_what_waited_in_a_stall_is_read_after_it_though_its_client_is_dead() -> None:
    """b asks shortly before the first request that shows the stall, and dies in it."""
    script = Stalling()
    script.now = 13.2
    script.beat("b")
    script.now = 13.5
    waiting = script.beat("a")
    script.now = 15
    script.close("b")
    script.answers(17.0, waiting)
    for script.now in (18.5, 20, 21.5, 23):
        script.heartbeat("a", 1)
    script.now = 23.5
    script.answers(23.5, script.beat("a"), error_code=REBALANCE_IN_PROGRESS)
    script.rebalance(2, {"a": {"t": [0, 1]}}, script.join("a", timeout_ms=6_000))
    (left,) = only(script.events(ends=True), MemberLeft)
    assert (left.member_id, left.how, seconds(left.time_ns)) == ("b-id", "session_timeout", 23.0)


def test_a_join_phase_that_is_over_in_a_stall_ends_with_it() -> None:
    """The first that is answered after the stall is the JoinGroup, which may wait as long as it likes."""
    script = Stalling()
    joining = script.join("a", owned={"t": [0]}, timeout_ms=6_000)
    waiting = script.beat("b")
    script.now = 30
    script.rebalance(2, {"a": {"t": [0, 1]}}, joining)
    script.answers(30.02, waiting, error_code=UNKNOWN_MEMBER_ID)
    (left,) = only(script.events(ends=True), MemberLeft)
    assert (left.member_id, seconds(left.time_ns)) == ("b-id", 30.0)


def test_a_client_that_gave_up_long_before_another_broker_answers_shows_no_stall_until_then() -> None:
    script = Stalling()
    script.beat("a")
    script.now = 16.5
    script.close("a")
    script.broker = "other:9092"
    script.now = 30
    script.heartbeat("c", 2)
    assert only(script.events(ends=True), CoordinatorStalled) == []


def idle_since(script: Script) -> dict[int, float]:
    gaps = [gap for event in only(script.events(ends=True), RebalanceEnded) for gap in event.idle]
    return {gap.partition: seconds(gap.since_ns) for gap in gaps if gap.until_ns - gap.since_ns > SECOND}


def test_a_member_that_waits_for_its_answer_consumes_meanwhile() -> None:
    """a waits for longer than its session lasts, and is answered; then it is told that it is out."""
    script = Stalling()
    waiting = [script.beat("a"), script.beat("b")]
    script.answers(21.0, *waiting, error_code=REBALANCE_IN_PROGRESS)
    script.joined(2, "b-id", script.join("b", timeout_ms=6_000))
    script.answer(script.join("a", timeout_ms=6_000), JoinGroupResponse(error_code=UNKNOWN_MEMBER_ID))
    script.now = 23
    script.sync(2, {"b": {"t": [0, 1]}})
    assert idle_since(script) == {0: 21.0, 1: 21.0}


def test_a_client_whose_request_waits_consumes_until_it_ends_its_connection() -> None:
    """Nothing shows that the coordinator stalls, as no client lives until it goes on."""
    script = Stalling()
    script.beat("a")
    script.beat("b")
    script.now = 21
    script.close("a", "b")
    script.now = 25
    script.heartbeat("c", 2, error_code=UNKNOWN_MEMBER_ID)
    script.rebalance(3, {"c": {"t": [0, 1]}}, script.join("c", timeout_ms=6_000))
    assert idle_since(script) == {0: 21.0, 1: 21.0}
