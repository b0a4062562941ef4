"""Groups whose coordinator assigns: consumer (KIP-848), share and streams groups, by their heartbeats."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordwire.capture.entries import FrameEntry
from coordwire.messages import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    MetadataRequest,
    MetadataResponse,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)
from coordwire.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequestTopicPartitions,
    ConsumerGroupHeartbeatResponseTopicPartitions,
)
from coordwire.messages.create_partitions import CreatePartitionsTopicResult
from coordwire.messages.create_topics import CreatableTopicResult
from coordwire.messages.delete_topics import DeletableTopicResult
from coordwire.messages.metadata import MetadataResponseTopic
from coordwire.messages.share_group_heartbeat import Assignment as ShareAssignment
from coordwire.messages.share_group_heartbeat import TopicPartitions
from coordwire.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequestTaskIds,
    StreamsGroupHeartbeatResponseTaskIds,
)
from coordwire.timeline.events import (
    ErrorMet,
    MemberJoined,
    MemberLeft,
    RebalanceBegan,
    RebalanceEnded,
    TopicPartition,
)
from coordwire.timeline.from_wire.timeline import timeline
from tests.timeline.script import Script, only

ORDERS = UUID(int=7)
UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, FENCED_MEMBER_EPOCH = 25, 82, 110


def beat(
    script: Script, member: str, epoch: int, answer: int, *, owns: list[int] | None = None,
    given: list[int] | None = None, topics: list[str] | None = None, error_code: int = 0,
    instance: str | None = None,
) -> None:  # fmt: skip
    """A heartbeat and its answer. owns: what it reports; given: what it is told to own."""
    owned = None if owns is None else [
        ConsumerGroupHeartbeatRequestTopicPartitions(topic_id=ORDERS, partitions=owns)
    ]  # fmt: skip
    request = ConsumerGroupHeartbeatRequest(
        group_id="g", member_id=member, member_epoch=epoch, instance_id=instance, rack_id=None,
        subscribed_topic_names=topics, subscribed_topic_regex=None, server_assignor=None,
        topic_partitions=owned,
    )  # fmt: skip
    assignment = None if given is None else Assignment(topic_partitions=[
        ConsumerGroupHeartbeatResponseTopicPartitions(topic_id=ORDERS, partitions=given)
    ])  # fmt: skip
    script.answer(script.ask(request, member), ConsumerGroupHeartbeatResponse(
        error_code=error_code, error_message=None, member_id=member, member_epoch=answer,
        assignment=assignment,
    ))  # fmt: skip


def joined(script: Script, member: str, epoch: int, given: list[int], instance: str | None = None) -> None:
    """A member joins and takes up what it is given."""
    beat(script, member, 0, epoch, owns=[], given=given, topics=["orders"], instance=instance)
    script.now += 1
    beat(script, member, epoch, epoch, owns=given)


def rebalances(script: Script) -> list[RebalanceEnded]:
    return only(script.events(), RebalanceEnded)


def test_members_reconcile() -> None:
    script = Script()
    joined(script, "a", 1, [0, 1])
    script.now = 10
    beat(script, "b", 0, 2, owns=[], given=[], topics=["orders"])
    beat(script, "a", 1, 1, given=[0])
    beat(script, "a", 1, 2, owns=[0])
    script.now = 12
    beat(script, "b", 2, 2, given=[1])
    beat(script, "b", 2, 2, owns=[1])
    first, second = rebalances(script)
    assert (first.kind, first.cause, first.generation, first.outcome) == (
        "consumer",
        "first_member",
        1,
        "steady",
    )
    assert (second.cause, second.member_id, second.generation) == ("new_member", "b", 2)
    assert second.members == ("a", "b")
    assert [one.before for one in second.moved] == ["a"]
    assert [one.after for one in second.moved] == ["b"]
    assert second.length_ns is not None
    assert 2 < second.length_ns / 1e9 < 2.1


def test_topics_are_named_as_soon_as_somebody_says_their_names() -> None:
    script = Script()
    beat(script, "a", 0, 1, owns=[], given=[0], topics=["orders"])
    topic = MetadataResponseTopic(name="orders", topic_id=ORDERS)
    script.answer(script.ask(MetadataRequest(), "a"), MetadataResponse(topics=[topic]))
    beat(script, "a", 1, 1, owns=[0])
    (result,) = rebalances(script)
    assert result.assignments[0].partitions == (TopicPartition("orders", 0),)


def test_a_member_leaves_and_a_static_one_only_for_now() -> None:
    script = Script()
    joined(script, "a", 1, [0])
    joined(script, "s", 2, [1], instance="till-3")
    beat(script, "a", 1, 2)
    beat(script, "s", -2, -2)
    script.now = 20
    beat(script, "s2", 0, 2, owns=[], given=[1], topics=["orders"], instance="till-3")
    beat(script, "s2", 2, 2, owns=[1])
    beat(script, "s2", -1, -1)
    beat(script, "a", 2, 3, given=[0, 1])
    beat(script, "a", 3, 3, owns=[0, 1])
    for_now, departure = only(script.events(), MemberLeft)
    assert (for_now.member_id, for_now.how) == ("s", "left_for_now")
    assert (departure.member_id, departure.how, departure.instance_id) == ("s2", "left", "till-3")
    assert [rebalance.cause for rebalance in rebalances(script)] == [
        "first_member", "new_member", "static_member_returned", "member_left",
    ]  # fmt: skip
    assert rebalances(script)[-1].assignments[0].partitions[0].partition == 0


@pytest.mark.parametrize(
    ("error_code", "how", "cause"),
    [(FENCED_INSTANCE_ID, "fenced", "member_fenced"), (UNKNOWN_MEMBER_ID, "removed", "member_removed")],
)
def test_a_member_that_the_coordinator_refuses(error_code: int, how: str, cause: str) -> None:
    script = Script()
    joined(script, "a", 1, [0])
    joined(script, "b", 2, [1])
    beat(script, "a", 1, 2)
    beat(script, "b", 2, 0, error_code=error_code)
    (departure,) = only(script.events(), MemberLeft)
    assert (departure.member_id, departure.how) == ("b", how)
    assert rebalances(script)[-1].cause == cause
    (error,) = only(script.events(), ErrorMet)
    assert (error.api, error.error_code) == ("ConsumerGroupHeartbeat", error_code)


def test_a_subscription_changes_and_the_coordinator_reassigns() -> None:
    script = Script()
    joined(script, "a", 1, [0])
    beat(script, "a", 1, 2, topics=["orders", "more"], given=[0, 1])
    beat(script, "a", 2, 2, owns=[0, 1])
    beat(script, "a", 2, 3, given=[0, 1, 2])
    beat(script, "a", 3, 3, owns=[0, 1, 2])
    _, changed, reassigned = rebalances(script)
    assert (changed.cause, changed.detail) == ("subscription_changed", "orders → more, orders")
    assert (reassigned.cause, reassigned.inferred) == ("assignment_changed", True)


def test_a_member_that_was_in_before_the_capture() -> None:
    script = Script()
    beat(script, "a", 5, 5)
    (member,) = only(script.events(), MemberJoined)
    assert member.was_in
    assert rebalances(script) == []


def test_a_share_group() -> None:
    script = Script()
    assigned = ShareAssignment(topic_partitions=[TopicPartitions(topic_id=ORDERS, partitions=[0, 1])])
    request = ShareGroupHeartbeatRequest(
        group_id="g", member_id="a", member_epoch=0, rack_id=None, subscribed_topic_names=["orders"]
    )
    answer = ShareGroupHeartbeatResponse(
        error_message=None, member_id="a", member_epoch=1, assignment=assigned
    )
    script.answer(script.ask(request, "a"), answer)
    (result,) = rebalances(script)
    assert (result.kind, result.outcome, len(result.assignments[0].partitions)) == ("share", "steady", 2)


def test_a_streams_group() -> None:
    script = Script()
    shared: dict[str, Any] = {"standby_tasks": [], "warmup_tasks": []}

    def streams(epoch: int, owns: list[int], given: list[int] | None) -> None:
        owned = [StreamsGroupHeartbeatRequestTaskIds(subtopology_id="0", partitions=owns)]
        tasks = [StreamsGroupHeartbeatResponseTaskIds(subtopology_id="0", partitions=given or [])]
        request = StreamsGroupHeartbeatRequest(
            group_id="g", member_id="a", member_epoch=epoch, active_tasks=owned, **shared
        )
        answer = StreamsGroupHeartbeatResponse(
            member_id="a", member_epoch=1, active_tasks=None if given is None else tasks, **shared
        )
        script.answer(script.ask(request, "a"), answer)

    streams(0, [], [0, 1])
    streams(1, [0, 1], None)
    (result,) = rebalances(script)
    assert (result.kind, result.outcome) == ("streams", "steady")
    assert result.assignments[0].partitions == (TopicPartition("0", 0), TopicPartition("0", 1))


@given(st.data())
def test_any_order_and_any_loss_is_survived(data: st.DataObject) -> None:
    script = Script()
    joined(script, "a", 1, [0, 1])
    joined(script, "s", 2, [1], instance="i")
    beat(script, "s", -2, -2)
    beat(script, "a", 2, 0, error_code=UNKNOWN_MEMBER_ID)
    joined(script, "t", 3, [0], instance="i")
    beat(script, "t", -1, -1)
    numbers = st.sampled_from(range(len(script.entries)))
    chosen = data.draw(st.lists(numbers, max_size=2 * len(script.entries)))
    events = list(timeline(script.entries[number] for number in chosen))
    assert len(only(events, RebalanceBegan)) == len(only(events, RebalanceEnded))


def epochs_by_themselves(script: Script, *, in_before: bool) -> RebalanceEnded:
    """One member, whose epoch rises from 3 to 4 though it did nothing."""
    if in_before:
        beat(script, "a", 3, 3, owns=[0, 1])
    else:
        beat(script, "a", 0, 3, owns=[], given=[0, 1], topics=["orders"])
        script.now += 1
        beat(script, "a", 3, 3, owns=[0, 1])
    script.now += 12
    beat(script, "a", 3, 4, given=[0, 1, 2])
    script.now += 1
    beat(script, "a", 4, 4, owns=[0, 1, 2])
    rebalance: RebalanceEnded = rebalances(script)[-1]
    return rebalance


def test_a_group_that_began_before_the_capture_may_have_members_that_were_not_seen() -> None:
    unseen = epochs_by_themselves(Script(), in_before=True)
    assert (unseen.cause, unseen.inferred, unseen.member_id) == ("unknown", True, None)
    assert unseen.detail.endswith("others may have been in before the capture")
    seen = epochs_by_themselves(Script(), in_before=False)
    assert (seen.cause, seen.inferred) == ("assignment_changed", True)


def test_all_members_were_seen_once_a_session_has_passed() -> None:
    script = Script()
    for _ in range(10):
        beat(script, "a", 3, 3, owns=[0, 1])
        script.now += 5
    assert epochs_by_themselves(script, in_before=True).cause == "assignment_changed"


@pytest.mark.parametrize(
    ("request_", "answer", "change"),
    [
        (
            CreateTopicsRequest(),
            CreateTopicsResponse(topics=[CreatableTopicResult(name="new")]),
            "was created",
        ),
        (
            CreatePartitionsRequest(),
            CreatePartitionsResponse(results=[CreatePartitionsTopicResult(name="new")]),
            "has more partitions",
        ),
        (
            DeleteTopicsRequest(),
            DeleteTopicsResponse(responses=[DeletableTopicResult(name="new")]),
            "was deleted",
        ),
        (
            CreateTopicsRequest(validate_only=True),
            CreateTopicsResponse(topics=[CreatableTopicResult(name="new")]),
            "",
        ),
        (
            CreateTopicsRequest(),
            CreateTopicsResponse(topics=[CreatableTopicResult(name="new", error_code=36)]),
            "",
        ),
    ],
)
def test_a_topic_that_changed_is_why_the_coordinator_assigns(request_: Any, answer: Any, change: str) -> None:
    script = Script()
    beat(script, "a", 3, 3, owns=[0, 1])
    script.now += 4
    script.answer(script.ask(request_, "admin"), answer)
    script.now += 1
    beat(script, "a", 3, 4, given=[0, 1, 2])
    script.now += 1
    beat(script, "a", 4, 4, owns=[0, 1, 2])
    rebalance = rebalances(script)[-1]
    assert rebalance.cause == ("assignment_changed" if change else "unknown")
    assert rebalance.detail.startswith(f"topic new {change}" if change else "the group's epoch rose")


def test_a_change_of_a_topic_that_nobody_subscribes_to_is_no_cause() -> None:
    script = Script()
    joined(script, "a", 3, [0])
    script.now += 4
    answer = CreateTopicsResponse(topics=[CreatableTopicResult(name="other")])
    script.answer(script.ask(CreateTopicsRequest(), "admin"), answer)
    script.now += 1
    beat(script, "a", 3, 4, given=[0, 1])
    script.now += 1
    beat(script, "a", 4, 4, owns=[0, 1])
    assert "other" not in rebalances(script)[-1].detail


def test_the_first_request_raises_the_epoch_first_whichever_is_answered_first() -> None:
    script = Script()
    joined(script, "a", 1, [0, 1, 2])
    script.now = 10
    beat(script, "b", 0, 2, owns=[], given=[], topics=["orders"])
    beat(script, "c", 0, 2, owns=[], given=[], topics=["orders"])
    beat(script, "a", 1, 1, given=[0, 1])
    b, of_b, c, of_c, a, of_a = script.entries[-6:]
    assert isinstance(of_c, FrameEntry)
    assert isinstance(of_b, FrameEntry)
    late_ns = (of_a.time_ns or 0) if isinstance(of_a, FrameEntry) else 0
    late = [replace(of_c, time_ns=late_ns + 1_000_000), replace(of_b, time_ns=late_ns + 2_000_000)]
    script.entries[-6:] = [b, c, a, of_a, *late]
    script.now = 12
    beat(script, "a", 1, 2, owns=[0, 1])
    beat(script, "b", 2, 3, given=[2])
    beat(script, "c", 2, 3, given=[])
    beat(script, "a", 2, 3, given=[0])
    beat(script, "a", 3, 3, owns=[0])
    beat(script, "b", 3, 3, owns=[2])
    beat(script, "c", 3, 3, given=[1])
    beat(script, "c", 3, 3, owns=[1])
    told = {one.generation: one for one in rebalances(script) if one.generation is not None}
    assert isinstance(b, FrameEntry)
    assert (told[2].cause, told[2].member_id, told[2].began_ns) == ("new_member", "b", b.time_ns)
    assert (told[3].cause, told[3].member_id) == ("new_member", "c")
