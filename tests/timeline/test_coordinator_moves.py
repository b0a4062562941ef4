"""Sessions after a coordinator's broker died: they end at the new coordinator, once another is named.

Scripted: sessions of 6 s, heartbeats each 1.5 s until 12 s, and the broker n1 ends its connections at 12.5 s.
"""

from __future__ import annotations

from coordwire.messages import FindCoordinatorRequest, FindCoordinatorResponse
from coordwire.timeline.events import BrokerAway, GroupEvent, MemberLeft, RebalanceEnded
from coordwire.timeline.story import story_lines
from tests.timeline.script import SECOND, START, Script, only


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
    assert "no member is left since 22:13:32.5" in "\n".join(story_lines(events))


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
