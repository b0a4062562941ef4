"""Sessions after a coordinator's broker died: they end at the new coordinator, once another is named.

Scripted: sessions of 6 s, heartbeats each 1.5 s until 12 s, and the broker n1 ends its connections at 12.5 s.
"""

from __future__ import annotations

import pytest

from coordwire.messages import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from coordwire.timeline.events import BrokerAway, GroupEvent, MemberLeft, RebalanceEnded
from coordwire.timeline.story import story_lines
from tests.timeline.script import SECOND, START, Script, only, says_session_timeout
from tests.timeline.test_modern import beat


class Moving(Script):
    """Three members, which have two partitions each."""

    broker = "n1:9092"

    def __init__(self, group: str = "g", clients: str = "abc", into: Script | None = None) -> None:
        super().__init__(group)
        if into is not None:
            self.entries = into.entries
        self.find("a", 1)
        asked = [self.join(client, timeout_ms=6_000) for client in clients]
        shares = {client: {"t": [2 * n, 2 * n + 1]} for n, client in enumerate(clients)}
        self.rebalance(1, shares, *asked)
        for number in range(1, 9):
            self.now = 1.5 * number
            for client in clients:
                self.heartbeat(client, 1)

    def find(self, client: str, node: int) -> None:
        request = self.ask(FindCoordinatorRequest(key=self.group, key_type=0), client, version=3)
        self.answer(request, FindCoordinatorResponse(node_id=node, host=f"n{node}", port=9092))

    def dies(self, clients: str) -> None:
        self.now = 12.5
        self.close(*clients, sender="broker")


def out(events: list[GroupEvent], group: str = "g") -> dict[str, float]:
    left = [event for event in only(events, MemberLeft) if event.group == group]
    return {event.member_id: round(((event.time_ns or 0) - START) / SECOND, 1) for event in left}


def test_sessions_of_members_that_ask_nobody_end_at_the_named_coordinator() -> None:
    script = Moving()
    script.dies("abc")
    script.broker = "n2:9092"
    for second in (15, 40):
        script.now = second
        script.find("z", 2)
    events = script.events(ends=True)
    assert out(events) == {"a-id": 21.0, "b-id": 21.0, "c-id": 21.0}
    assert [event.until_ns for event in only(events, BrokerAway)] == [None]
    assert "no member is left; the last one was last seen at 22:13:32.5" in "\n".join(story_lines(events))


def test_while_no_other_is_named_nobody_is_out() -> None:
    script = Moving()
    script.dies("abc")
    script.broker = "n2:9092"
    for second in (15, 40):
        script.now = second
        script.find("z", 1)
    assert out(script.events(ends=True)) == {}


def test_a_killed_member_is_out_a_session_after_the_other_was_named() -> None:
    script = Moving()
    script.now = 12.1
    script.close("b")
    script.dies("ac")
    script.broker = "n2:9092"
    script.now = 15
    script.find("a", 2)
    for script.now in (20, 20.5):
        script.heartbeat("a", 1)
        script.heartbeat("c", 1)
    script.now = 21.4
    script.heartbeat("a", 1, 27)
    joins = [script.join(client, timeout_ms=6_000) for client in "ac"]
    script.rebalance(2, {"a": {"t": [0, 1, 2]}, "c": {"t": [3, 4, 5]}}, *joins)
    events = script.events(ends=True)
    assert out(events) == {"b-id": 21.0}
    ended = only(events, RebalanceEnded)[-1]
    assert (ended.cause, ended.member_id) == ("session_timeout", "b-id")
    assert {round((gap.since_ns - START) / SECOND, 1) for gap in ended.idle if gap.partition in (2, 3)} == {
        12.1
    }


def test_another_group_of_the_broker_shows_that_all_are_back() -> None:
    script = Moving()
    other = Moving("other", "xy", script)
    script.now = other.now = 12.5
    script.close(*"abcxy", sender="broker")
    other.broker = "n2:9092"
    for other.now in (16, 17.5, 40):
        other.heartbeat("x", 1)
    events = script.events(ends=True)
    assert out(events) == {"a-id": 22.0, "b-id": 22.0, "c-id": 22.0}


def shares(script: Script, member: str, epoch: int, answer: int) -> None:
    """A share group's heartbeat and its answer."""
    topics = None if epoch else ["orders"]
    request = ShareGroupHeartbeatRequest(
        group_id="g", member_id=member, member_epoch=epoch, rack_id=None, subscribed_topic_names=topics
    )
    response = ShareGroupHeartbeatResponse(
        error_message=None, member_id=member, member_epoch=answer, assignment=None
    )
    script.answer(script.ask(request, member), response)


def moved_unseen(epoch: int) -> Script:
    """a and b of a share group fall silent at n1 in epoch 2; c joins at n2, in this epoch."""
    script = Script()
    script.broker = "n1:9092"
    says_session_timeout(script, "share", 9_000)
    shares(script, "a", 0, 1)
    shares(script, "b", 0, 2)
    for number in range(1, 9):
        script.now = 1.5 * number
        shares(script, "a", 2, 2)
        shares(script, "b", 2, 2)
    script.now, script.broker = 60, "n2:9092"
    shares(script, "c", 0, epoch)
    shares(script, "c", epoch, epoch)
    return script


@pytest.mark.parametrize("epoch", [5, 2])
def test_the_epoch_that_a_member_joins_in_shows_who_was_out_before_an_unseen_move(epoch: int) -> None:
    """Two sessions have raised it, or the group is a new one."""
    events = moved_unseen(epoch).events(ends=True)
    assert out(events) == {"a": 21.0, "b": 21.0}
    assert [event.members for event in only(events, RebalanceEnded)][-1] == ("c",)


def test_sessions_may_have_begun_again_with_an_unseen_move() -> None:
    assert out(moved_unseen(3).events(ends=True)) == {}


def test_a_session_that_began_with_a_move_says_not_how_long_sessions_are() -> None:
    """It began before the first answer that shows the move."""
    script = Script()
    script.broker = "n1:9092"
    for member, epoch in (("a", 1), ("b", 2), ("c", 3)):
        beat(script, member, 0, epoch, topics=["orders"], owns=[], given=[epoch - 1])
    for script.now in (5, 10):
        for member in "abc":
            beat(script, member, 3, 3)
    script.broker = "n2:9092"
    epoch = 3
    for script.now in range(25, 116, 5):
        given = {65: [0, 1], 115: [0, 1, 2]}.get(script.now)  # b's session is over, and c's
        beat(script, "a", epoch, epoch := epoch + (given is not None), given=given)
        if script.now < 66:
            beat(script, "c", 3, epoch)
    assert out(script.events(ends=True)) == {"b": 65.0, "c": 110.0}
