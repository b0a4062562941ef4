"""What a story says of why: whose death holds a rebalance up, and what a coordinator changed by itself."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from coordwire.messages import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupResponse,
    MetadataRequest,
    MetadataResponse,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)
from coordwire.messages.metadata import MetadataResponseTopic
from coordwire.timeline.events import GroupEvent, LostMember, MemberJoined, Moved, RebalanceEnded
from coordwire.timeline.story import story_lines
from coordwire.timeline.story.collected import CollectedEvents
from coordwire.timeline.story.group_block import GroupBlock
from tests.timeline.script import SECOND, START, Script, only
from tests.timeline.test_modern import ORDERS, beat, joined


def overview(events: list[GroupEvent]) -> str:
    """The lines of the story, as one."""
    (group,) = CollectedEvents(events).groups.values()
    return " ".join("".join(text for text, _ in line) for line in GroupBlock(group, 300).overview.lines())


# --- a death that a rebalance waits for ---


def test_a_member_whose_connection_ended_explains_a_rebalance_that_is_not_over() -> None:
    script = Script().steady("a", "b")
    script.now = 5
    script.close("b")
    script.now = 6
    script.join("c")
    script.heartbeat("a", 1, 27)
    script.join("a")
    events = script.events(ends=True)
    ended = only(events, RebalanceEnded)[-1]
    assert (ended.outcome, ended.lost) == ("unfinished", (LostMember("b-id", START + 5 * SECOND, None),))
    assert "without #2 (b), whose connection ended at 22:13:25.0" in overview(events)


def test_a_member_that_may_still_join_does_not() -> None:
    script = Script().steady("a", "b")
    script.now = 6
    script.join("c")
    script.heartbeat("a", 1, 27)
    script.join("a")
    script.close("a")  # after it has joined
    events = script.events(ends=True)
    assert only(events, RebalanceEnded)[-1].lost == ()
    assert "whose connection ended" not in overview(events)


# --- the same process under another id ---


def returns(*, under_old_id: bool) -> list[GroupEvent]:
    """A member is out; later its client joins on another connection. under_old_id: whether it asks for its
    old membership first."""
    script = Script().steady("a", "b")
    script.now = 9
    script.heartbeat("b", 1)
    script.now = 12
    script.heartbeat("b", 1, 27)
    script.rebalance(2, {"b": {"t": [0, 1]}}, script.join("b"))
    script.now = 15
    script.port = 2
    if under_old_id:
        script.answer(script.join("a"), JoinGroupResponse(error_code=25, member_id="a-id"))
    request = script.join("a", member="")
    script.answer(request, JoinGroupResponse(error_code=79, member_id="a-new"))
    script.port = 1
    script.heartbeat("b", 2, 27)
    second = script.join("b")
    script.port = 2
    request = script.join("a", member="a-new")
    script.now = 16
    for asked, name in ((request, "a-new"), (second, "b-id")):
        script.answer(asked, JoinGroupResponse(
            generation_id=3, protocol_type="consumer", protocol_name="range", leader="b-id", member_id=name,
        ))  # fmt: skip
    return script.events(ends=True)


def test_a_process_that_asks_under_its_old_id_on_a_new_connection_is_the_same() -> None:
    events = returns(under_old_id=True)
    assert [event.former_id for event in only(events, MemberJoined)][-1] == "a-id"
    assert "back 22:13:36.0 as #3 (a) (same process, new connection)" in overview(events)
    assert "the same process as #1 (a), which timed out" in "\n".join(story_lines(events))


def test_a_client_of_the_same_name_may_be_another_process() -> None:
    events = returns(under_old_id=False)
    assert {event.former_id for event in only(events, MemberJoined)} == {None}
    assert "same process" not in overview(events)
    assert "the same client as #1 (a), which timed out" in "\n".join(story_lines(events))


# --- what the coordinator changed ---


def reassigned(given: list[int]) -> list[GroupEvent]:
    """A member has partitions 0 and 1 of orders; later its coordinator gives it others."""
    script = Script()
    topic = MetadataResponseTopic(name="orders", topic_id=ORDERS)
    script.answer(script.ask(MetadataRequest(), "a"), MetadataResponse(topics=[topic]))
    joined(script, "a", 1, [0, 1])
    script.now = 20
    beat(script, "a", 1, 2, given=given)
    script.now = 21
    beat(script, "a", 2, 2, owns=given)
    return script.events()


def test_partitions_that_a_coordinator_adds_are_named() -> None:
    assert "by the coordinator: orders-2..3 added " in overview(reassigned([0, 1, 2, 3]))


def test_partitions_that_are_gone_are_named() -> None:
    *events, ended = reassigned([0, 1, 2])
    assert isinstance(ended, RebalanceEnded)
    gone = replace(ended, moved=(Moved("orders", 1, "a", None),))
    assert "by the coordinator: orders-1 gone " in overview([*events, gone])


def test_of_very_many_their_number_is_named() -> None:
    odd = list(range(3, 200, 2))
    assert f"by the coordinator: {len(odd)} partitions of orders added " in overview(reassigned([0, 1, *odd]))


# --- hot loops ---

UNKNOWN_MEMBER, FENCED, INCONSISTENT = 25, 110, 23

Kind = tuple[type[Any], type[Any], dict[str, Any]]
KINDS: dict[str, Kind] = {
    "classic": (HeartbeatRequest, HeartbeatResponse, {"generation_id": 1}),
    "consumer": (
        ConsumerGroupHeartbeatRequest,
        ConsumerGroupHeartbeatResponse,
        {"member_epoch": 1, "subscribed_topic_names": None, "topic_partitions": None},
    ),
    "share": (ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse, {"member_epoch": 1}),
    "streams": (StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse, {"member_epoch": 1}),
}


def refused(kind: str, code: int, number: int, pause: float) -> str:
    """The story of a member whose heartbeats are refused."""
    script = Script()
    request, response, values = KINDS[kind]
    for _ in range(number):
        asked = script.ask(request(group_id="g", member_id="a-id", **values), "a")
        script.answer(asked, response(error_code=code))
        script.now += pause
    return overview(script.events())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("code", [UNKNOWN_MEMBER, FENCED, INCONSISTENT])
def test_a_member_that_is_refused_again_and_again_is_one_incident(kind: str, code: int) -> None:
    text = refused(kind, code, 182, 0.005)
    assert text.count("1 incident,") == 1
    assert "× 182" in text


def test_a_refusal_that_a_client_expects_is_an_incident_only_without_a_pause() -> None:
    rebalance = 27
    assert "is in a hot loop: Heartbeat was refused, REBALANCE_IN_PROGRESS × 182" in refused(
        "classic", rebalance, 182, 0.005
    )
    assert "hot loop" not in refused("classic", rebalance, 182, 1)
    assert "hot loop" not in refused("classic", rebalance, 60, 0.005)


def test_a_client_that_is_refused_under_one_id_after_another_is_one_incident() -> None:
    script = Script()
    for number in range(182):
        asked = script.join("a", member=f"{number}-id")
        script.answer(asked, JoinGroupResponse(error_code=INCONSISTENT))
    text = overview(script.events())
    assert "1 incident," in text
    assert (
        "182 members with the client id a: JoinGroup was refused: INCONSISTENT_GROUP_PROTOCOL × 182" in text
    )
