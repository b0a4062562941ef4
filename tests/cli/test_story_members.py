"""Members in a story: what they ask for, why they join, which of them others wait for, which were refused."""

from __future__ import annotations

from typing import Any

import pytest

from coordwire.cli.timeline.story import StoryFormat
from coordwire.errors import UnreadableRange
from coordwire.messages import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    JoinGroupResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)
from coordwire.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatResponseTopicPartitions,
)
from coordwire.messages.offset_commit import OffsetCommitResponsePartition, OffsetCommitResponseTopic
from coordwire.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequestTaskIds,
    StreamsGroupHeartbeatResponseTaskIds,
)
from coordwire.timeline.events import Assignment as Assigned
from coordwire.timeline.events import GroupConverted, MemberJoined, RebalanceEnded, TopicPartition
from coordwire.timeline.story.collected import CollectedEvents
from coordwire.timeline.story.group_block import GroupBlock
from tests.timeline.script import Script, only
from tests.timeline.test_modern import ORDERS, beat, joined

GROUP_MAX_SIZE_REACHED, UNRELEASED_INSTANCE_ID = 81, 111
UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_MEMBER_ID, REBALANCE_IN_PROGRESS = 3, 25, 27


def story(script: Script, capsys: pytest.CaptureFixture[str]) -> str:
    """The story as one line of words."""
    pytest.importorskip("rich", reason="rich isn't installed: pip install 'coordwire[cli]'")
    output = StoryFormat()
    for event in script.events():
        output.write(event)
    output.finish()
    return " ".join(capsys.readouterr().out.split())


def heartbeat(script: Script, client: str, *, error_code: int = 0, message: str = "", assignor: str) -> None:
    request = ConsumerGroupHeartbeatRequest(
        group_id="g", member_id=f"{client}-member-id", member_epoch=0, subscribed_topic_names=["orders"],
        subscribed_topic_regex=None, rack_id=None, server_assignor=assignor or None, topic_partitions=[],
    )  # fmt: skip
    part = ConsumerGroupHeartbeatResponseTopicPartitions(topic_id=ORDERS, partitions=[0])
    answer = ConsumerGroupHeartbeatResponse(
        error_code=error_code, error_message=message or None, member_id=request.member_id,
        member_epoch=0 if error_code else 1, assignment=Assignment(topic_partitions=[part]),
    )  # fmt: skip
    script.answer(script.ask(request, client), answer)


def test_the_server_assignor_that_a_member_asks_for(capsys: pytest.CaptureFixture[str]) -> None:
    script = Script()
    heartbeat(script, "a", assignor="range")
    (member,) = only(script.events(), MemberJoined)
    assert member.protocols == ("range",)
    assert "assignor range" in story(script, capsys)


def test_the_reason_with_which_a_member_joins_again(capsys: pytest.CaptureFixture[str]) -> None:
    script = Script()
    a, b = script.join("a", member=""), script.join("b", member="")
    script.rebalance(1, {"a": {"t": [0]}, "b": {"t": [1]}}, a, b)
    script.now = 20
    again = script.join(
        "b", owned={"t": [1]}, reason="rebalance enforced by user"
    )  # other metadata: it counts
    leader = script.join("a")
    script.rebalance(2, {"a": {"t": [0]}, "b": {"t": [1]}}, leader, again)
    end = only(script.events(), RebalanceEnded)[-1]
    assert (end.cause, end.member_id, end.detail) == (
        "member_rejoined", "b-id", "rebalance enforced by user"
    )  # fmt: skip
    assert "#2 (b) joins again" in story(script, capsys)


def test_the_member_that_holds_up_an_epoch(capsys: pytest.CaptureFixture[str]) -> None:
    script = Script()
    joined(script, "a", 1, [0, 1])
    script.now = 10
    beat(script, "b", 0, 2, owns=[], given=[], topics=["orders"])
    for second in range(12):
        script.now = 10.5 + second
        beat(script, "a", 1, 1, given=[0])
        beat(script, "b", 2, 2)
    end = only(script.events(), RebalanceEnded)[-1]
    assert (end.outcome, end.waiting_for) == ("unfinished", ("a",))
    assert "was not over when the input ends, after 11.5 s, waiting for #1" in story(script, capsys)


def unfinished(*asking: str, seconds: int = 6, hole: bool = False) -> Script:
    """A group of a and b in which b joins again; these send heartbeats meanwhile."""
    script = Script().steady("a", "b")
    script.now += 1
    script.join("b", owned={"t": [1]}, reason="rebalance enforced by user")
    if hole:
        flow = script.entries[-1].flow
        script.entries.append(UnreadableRange(0, 9, "lost", flow=flow))
    for _ in range(seconds):
        script.now += 1
        for client in asking:
            script.heartbeat(client, 1, REBALANCE_IN_PROGRESS)
    script.heartbeat("other", 1, UNKNOWN_MEMBER_ID)  # the input goes on
    return script


def test_the_member_that_does_not_join(capsys: pytest.CaptureFixture[str]) -> None:
    script = unfinished("a", seconds=12)
    end = only(script.events(), RebalanceEnded)[-1]
    assert (end.outcome, end.waiting_for) == ("unfinished", ("a-id",))
    text = story(script, capsys)
    assert "was not over when the input ends, after 12.0 s, waiting for #1 (a)" in text


@pytest.mark.parametrize(
    ("script", "waiting_for"),
    [
        pytest.param(unfinished("a", "b"), ("a-id",), id="one that has joined, and asks on"),
        pytest.param(unfinished(), (), id="of one that is silent nothing is known"),
        pytest.param(unfinished("a", hole=True), (), id="its JoinGroup may be missing"),
    ],
)
def test_who_a_rebalance_waits_for(script: Script, waiting_for: tuple[str, ...]) -> None:
    end = only(script.events(), RebalanceEnded)[-1]
    assert (end.outcome, end.waiting_for) == ("unfinished", waiting_for)


def test_the_topic_of_refused_commits(capsys: pytest.CaptureFixture[str]) -> None:
    script = Script().steady("a")
    for topic in ("gone", "lost"):
        request = OffsetCommitRequest(group_id="g", generation_id_or_member_epoch=1, member_id="a-id")
        partition = OffsetCommitResponsePartition(partition_index=0, error_code=UNKNOWN_TOPIC_OR_PARTITION)
        refusal = OffsetCommitResponse(topics=[OffsetCommitResponseTopic(name=topic, partitions=[partition])])
        script.answer(script.ask(request, "a", version=8), refusal)
    text = story(script, capsys)
    assert "#1 (a) commits of gone, lost were refused: UNKNOWN_TOPIC_OR_PARTITION × 2" in text


def test_equal_lines_of_a_rebalance_are_one() -> None:
    script = Script().steady("a", "b")
    script.now += 1
    script.join("b")
    for _ in range(12):
        script.now += 1
        script.heartbeat("a", 1, REBALANCE_IN_PROGRESS)
    (group,) = CollectedEvents(script.events()).groups.values()
    lines = ["".join(text for text, _ in line) for line in GroupBlock(group, 120).rebalance(2)]
    (repeated,) = [line for line in lines if "REBALANCE_IN_PROGRESS" in line]
    assert "× 12 until" in repeated


def test_a_refused_member_has_a_name(capsys: pytest.CaptureFixture[str]) -> None:
    script = Script()
    beat(script, "a-member-id", 0, 1, owns=[], given=[0], topics=["orders"], instance="till-3")
    owner = "Static member b-member-id cannot join, as the instance id is owned by a-member-id member."
    heartbeat(script, "b", assignor="", error_code=UNRELEASED_INSTANCE_ID, message=owner)
    text = story(script, capsys)
    assert "b (b-member…) never was in: ConsumerGroupHeartbeat was refused: UNRELEASED_INSTANCE_ID" in text
    assert "owned by #1 (a-member-id) member." in text


def test_a_refused_classic_member_goes_by_its_client(capsys: pytest.CaptureFixture[str]) -> None:
    script = Script()
    script.rebalance(1, {"a": {"t": [0]}}, script.join("a", member=""))
    script.answer(script.join("late", member=""), JoinGroupResponse(error_code=GROUP_MAX_SIZE_REACHED))
    assert "late JoinGroup was refused: GROUP_MAX_SIZE_REACHED" in story(script, capsys)


def test_a_group_that_changes_its_kind(capsys: pytest.CaptureFixture[str]) -> None:
    script = Script()
    script.rebalance(1, {"a": {"t": [0]}}, script.join("a", member=""))
    script.now = 5
    heartbeat(script, "b", assignor="")
    converted = only(script.events(), GroupConverted)
    assert [(event.kind_before, event.kind) for event in converted][:1] == [("classic", "consumer")]
    assert "the classic group goes on as a consumer group by #2" in story(script, capsys)


def streams(script: Script, epoch: int, active: list[int], standby: list[int], *, owns: bool) -> None:
    """A streams group's heartbeat. owns: whether its member reports these tasks; else it is given them."""
    tasks = {"active_tasks": active, "standby_tasks": standby, "warmup_tasks": []}
    request_ids: dict[str, Any] = {
        name: [StreamsGroupHeartbeatRequestTaskIds(subtopology_id="0", partitions=numbers)] if owns else []
        for name, numbers in tasks.items()
    }
    answer_ids: dict[str, Any] = {
        name: None if owns else [StreamsGroupHeartbeatResponseTaskIds(subtopology_id="0", partitions=numbers)]
        for name, numbers in tasks.items()
    }
    request = StreamsGroupHeartbeatRequest(group_id="g", member_id="a", member_epoch=epoch, **request_ids)
    answer = StreamsGroupHeartbeatResponse(member_id="a", member_epoch=1, **answer_ids)
    script.answer(script.ask(request, "a"), answer)


def test_the_standby_tasks_of_a_streams_member(capsys: pytest.CaptureFixture[str]) -> None:
    script = Script()
    streams(script, 0, [0, 1], [2, 3], owns=False)
    streams(script, 1, [0, 1], [2, 3], owns=True)
    end = only(script.events(), RebalanceEnded)[-1]
    assert end.outcome == "steady"
    assert end.standby == (Assigned("a", (TopicPartition("0", 2), TopicPartition("0", 3))),)
    assert "0-0..1 standby 0-2..3" in story(script, capsys)
