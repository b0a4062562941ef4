"""Groups that are deleted: one of the same id that comes later is another group."""

from __future__ import annotations

import pytest

from coordwire.cli.timeline import story
from coordwire.cli.timeline.story import StoryFormat
from coordwire.codec import Message
from coordwire.enums import ErrorCode
from coordwire.messages import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    GroupMetadataKey,
    OffsetCommitKey,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
    ShareGroupMetadataKey,
)
from coordwire.messages.delete_groups import DeletableGroupResult
from coordwire.timeline.events import (
    GroupConverted,
    GroupDeleted,
    LagMeasured,
    MemberJoined,
    MemberLeft,
    RebalanceEnded,
    TopicPartition,
)
from coordwire.timeline.evidence import Seen
from coordwire.timeline.from_log.coordinator_log import CoordinatorRecord
from coordwire.timeline.from_log.events import log_timeline
from coordwire.timeline.from_wire import group_table
from coordwire.timeline.lag import Lag
from coordwire.timeline.story import collected
from coordwire.timeline.story.collected import CollectedEvents
from tests.timeline.script import Script, only
from tests.timeline.test_timeline import commit, end


def delete(script: Script, error_code: int = 0) -> None:
    request = script.ask(DeleteGroupsRequest(groups_names=["g"]), "admin")
    result = DeletableGroupResult(group_id="g", error_code=error_code)
    script.answer(request, DeleteGroupsResponse(results=[result]))


def beat(script: Script, client: str, epoch: int, *, share: bool = False) -> None:
    """A first heartbeat, or with an epoch below 0 a last one."""
    asks, answers = ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
    if share:
        asks, answers = ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse  # type: ignore[assignment]
    request = asks(group_id="g", member_id=f"{client}-id", member_epoch=epoch, subscribed_topic_names=["t"])
    answer = answers(
        member_id=f"{client}-id", member_epoch=max(epoch + 1, epoch), heartbeat_interval_ms=3_000
    )
    script.answer(script.ask(request, client), answer)


def test_a_group_that_was_deleted_does_not_convert() -> None:
    script = Script().steady("a")
    script.leave("a")
    delete(script)
    beat(script, "b", 0)
    events = script.events()
    assert only(events, GroupConverted) == []
    (deleted,) = only(events, GroupDeleted)
    assert (deleted.client_id, deleted.inferred) == ("admin", False)
    kept = Script().steady("a")
    kept.leave("a")
    delete(kept, ErrorCode.NON_EMPTY_GROUP)
    beat(kept, "b", 0)
    assert len(only(kept.events(), GroupConverted)) == 1
    assert only(kept.events(), GroupDeleted) == []


def test_the_next_group_begins_from_the_start() -> None:
    script = Script().steady("a")
    script.leave("a")
    script.now += 30
    delete(script)
    script.rebalance(1, {"b": {"t": [0]}}, script.join("b"))
    last = only(script.events(), RebalanceEnded)[-1]
    assert (last.cause, last.inferred, last.detail) == ("first_member", False, "the group was empty")
    assert last.idle == ()  # what was deleted lacks no consumer


def test_a_group_that_is_deleted_has_no_members() -> None:
    script = Script().steady("a", "b")
    script.leave("a")
    delete(script)  # its coordinator knows of b's leaving, which is not in the capture
    events = script.events()
    assert [(left.member_id, left.how, left.inferred) for left in only(events, MemberLeft)] == [
        ("a-id", "left", False),
        ("b-id", "removed", True),
    ]
    assert isinstance(events[-1], GroupDeleted)


def test_a_group_that_begins_before_the_deletion_is_answered_goes_on() -> None:
    script = Script().steady("a")
    script.leave("a")
    request = script.ask(DeleteGroupsRequest(groups_names=["g"]), "admin")
    script.rebalance(1, {"b": {"t": [0]}}, script.join("b"))
    script.answer(request, DeleteGroupsResponse(results=[DeletableGroupResult(group_id="g")]))
    script.rebalance(2, {"b": {"t": [0]}, "c": {"t": [1]}}, script.join("c"), script.join("b"))
    events = script.events()
    assert [left.member_id for left in only(events, MemberLeft)] == ["a-id"]
    assert [deleted.time_ns for deleted in only(events, GroupDeleted)] == [request.time_ns]
    last = only(events, RebalanceEnded)[-1]
    assert (last.cause, last.generation, len(last.assignments)) == ("new_member", 2, 2)


def test_a_group_of_another_kind_shows_that_the_one_before_was_deleted() -> None:
    script = Script().steady("a")
    script.leave("a")
    beat(script, "b", 0, share=True)
    beat(script, "b", -1, share=True)
    beat(script, "c", 0)
    events = script.events()
    assert only(events, GroupConverted) == []
    assert [one.inferred for one in only(events, GroupDeleted)] == [True, True]


def test_groups_of_one_id_in_two_clusters_are_not_deleted() -> None:
    script = Script().steady("a")
    beat(script, "b", 0, share=True)
    script.heartbeat("a", 1)
    assert only(script.events(), GroupDeleted) == []


def tombstone(kind: str, key: Message, at_ms: int, value: Message | None = None) -> CoordinatorRecord:
    return CoordinatorRecord(
        file="log", log="consumer_offsets", log_partition=0, log_offset=at_ms, timestamp_ms=at_ms, type=None,
        version=None, kind=kind, key=key, value=value, raw_key=b"",
    )  # fmt: skip


def test_a_log_shows_a_deleted_group_by_its_tombstones() -> None:
    offset = OffsetCommitKey(group="g", topic="t", partition=0)
    write = tombstone("OffsetCommit", offset, 5), tombstone("GroupMetadata", GroupMetadataKey(group="g"), 5)
    (deleted,) = only(list(log_timeline(write)), GroupDeleted)
    assert (deleted.group, deleted.time_ns, deleted.client_id) == ("g", 5_000_000, None)
    shares = tombstone("ShareGroupMetadata", ShareGroupMetadataKey(group_id="s"), 5)
    assert [one.group for one in only(list(log_timeline([shares])), GroupDeleted)] == ["s"]


def test_a_log_of_a_group_that_becomes_another_kind_shows_no_deletion() -> None:
    gone = tombstone("GroupMetadata", GroupMetadataKey(group="g"), 5)
    epoch = tombstone(
        "ConsumerGroupMetadata", ConsumerGroupMetadataKey(group_id="g"), 5, ConsumerGroupMetadataValue()
    )
    assert only(list(log_timeline([gone, epoch])), GroupDeleted) == []
    replaced = tombstone("ConsumerGroupMetadata", ConsumerGroupMetadataKey(group_id="g"), 5)
    assert only(list(log_timeline([replaced])), GroupDeleted) == []  # its offsets are a classic group's now
    expired = tombstone("OffsetCommit", OffsetCommitKey(group="g", topic="t", partition=0), 5)
    assert only(list(log_timeline([expired, gone, epoch])), GroupDeleted) == []


def test_what_a_deleted_group_committed_has_no_lag() -> None:
    lag, partition, place = Lag(), TopicPartition("t", 0), Seen(1, "", 1)
    list(lag.ends(partition, 10, place))
    list(lag.committed("g", partition, 4, place))
    assert lag.known("g", partition) == 6
    lag.group_deleted("g")
    assert lag.known("g", partition) is None
    assert list(lag.ends(partition, 12, place)) == []
    list(lag.committed("g", partition, 0, place))
    assert lag.known("g", partition) == 12


@pytest.mark.parametrize("shown", ["answer", "next group"])
def test_the_ends_of_partitions_say_nothing_of_a_group_that_is_gone(shown: str) -> None:
    script = Script().steady("a")
    end(script, 9)
    commit(script, 4)
    script.leave("a")
    if shown == "answer":
        delete(script)
    else:
        beat(script, "b", 0, share=True)
    script.now += 5
    end(script, 19)
    events = script.events()
    assert len(only(events, GroupDeleted)) == 1
    assert [measured.lag for measured in only(events, LagMeasured)] == [5]


def test_groups_that_were_deleted_are_forgotten_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cleaning of old groups must not take the living ones from a timeline."""
    monkeypatch.setattr(group_table, "MOST_GROUPS", 3)
    script = Script().steady("a")
    for number in range(5):
        request = script.ask(DeleteGroupsRequest(groups_names=[f"old-{number}"]), "admin")
        result = DeletableGroupResult(group_id=f"old-{number}")
        script.answer(request, DeleteGroupsResponse(results=[result]))
    script.leave("a")
    assert [event.client_id for event in only(script.events(), MemberLeft)] == ["a"]


def test_a_story_leaves_out_deleted_groups_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collected, "MOST_GROUPS", 3)
    place = {"time_ns": 1, "source": "s", "number": 1}
    groups = CollectedEvents()
    for name in ("a", "b", "c"):
        groups.add(joins(name))
    groups.add(GroupDeleted(group="b", **place))  # type: ignore[arg-type]
    groups.add(joins("d"))
    assert list(groups.groups) == ["a", "c", "d"]
    groups.add(joins("e"))
    assert (list(groups.groups), groups.groups_left_out) == (["c", "d", "e"], 2)


def test_lines_of_more_groups_than_are_kept(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each has its own lines, those that were forgotten before have none, and what is kept is bounded."""
    monkeypatch.setattr(collected, "MOST_GROUPS", 3)
    monkeypatch.setattr(story, "MOST_GROUPS", 3)
    format = StoryFormat()
    for number in range(50):
        event = joins(f"g{number}")
        format.write(event)
        format.write_events(event.group, [event])
        assert len(format._excerpts) <= 6
    format.write_events("g0", [joins("g0")])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[1] for line in lines if line.startswith("──")] == [f"g{n}" for n in range(50)]
    assert sum("#1 (c)" in line for line in lines) == 50


def joins(group: str) -> MemberJoined:
    return MemberJoined(
        group=group, time_ns=1, source="s", number=1, kind="classic", member_id="m", client_id="c", host=None
    )
