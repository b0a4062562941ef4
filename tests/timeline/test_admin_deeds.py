"""What an admin does to a group: it removes members, sets committed offsets back, and deletes them."""

from __future__ import annotations

from coordwire.messages import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
)
from coordwire.messages.leave_group import MemberIdentity
from coordwire.messages.offset_commit import OffsetCommitRequestPartition, OffsetCommitRequestTopic
from coordwire.messages.offset_delete import OffsetDeleteResponsePartition, OffsetDeleteResponseTopic
from coordwire.timeline.events import MemberLeft, OffsetReset, RebalanceEnded
from coordwire.timeline.story.collected import CollectedEvents
from coordwire.timeline.story.group_block import GroupBlock
from tests.timeline.script import Script, only

ADMIN = "adminclient-1"


def overview(script: Script) -> str:
    events = script.events()
    block = GroupBlock(CollectedEvents(events).groups["g"], 160)
    return "\n".join("".join(text for text, _ in line) for line in block.overview.lines())


def removes(script: Script, client: str, by: str, reason: str | None) -> None:
    member = MemberIdentity(member_id=f"{client}-id", group_instance_id=None, reason=reason)
    request = script.ask(LeaveGroupRequest(group_id=script.group, members=[member]), by)
    script.answer(request, LeaveGroupResponse())
    script.heartbeat("a", 1, 27)
    script.rebalance(2, {"a": {"t": [0, 1]}}, script.join("a"))


def commits(script: Script, client: str, offset: int, *, member: str = "", generation: int = -1) -> None:
    part = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    topic = OffsetCommitRequestTopic(name="t", partitions=[part])
    request = OffsetCommitRequest(
        group_id="g", generation_id_or_member_epoch=generation, member_id=member, topics=[topic]
    )
    script.answer(script.ask(request, client, version=9), OffsetCommitResponse())


def test_a_member_that_another_client_removes_did_not_leave() -> None:
    script = Script().steady("a", "b")
    removes(script, "b", ADMIN, None)
    (left,) = only(script.events(), MemberLeft)
    assert (left.how, left.inferred, left.reason) == ("removed", False, None)
    ended = only(script.events(), RebalanceEnded)[-1]
    assert (ended.cause, ended.member_id, ended.inferred) == ("member_removed", "b-id", False)
    assert "#" in overview(script)
    assert "was removed by an admin's LeaveGroup" in overview(script)


def test_a_member_that_leaves_by_itself_does() -> None:
    script = Script().steady("a", "b")
    removes(script, "b", "b", "poll timed out")
    (left,) = only(script.events(), MemberLeft)
    assert (left.how, left.reason) == ("left", "poll timed out")


def test_an_admin_with_the_members_client_id_gives_its_reason() -> None:
    script = Script().steady("a", "b")
    removes(script, "b", "b", "member was removed by an admin: upgrade")
    assert [left.how for left in only(script.events(), MemberLeft)] == ["removed"]


def test_offsets_that_an_admin_sets_back_are_an_incident() -> None:
    script = Script().steady("a")
    commits(script, "a", 15, member="a-id", generation=1)
    commits(script, ADMIN, 15)
    commits(script, ADMIN, 3)
    events = script.events()
    (reset,) = only(events, OffsetReset)
    assert (reset.client_id, reset.topic, reset.partition) == (ADMIN, "t", 0)
    assert (reset.before, reset.offset) == (15, 3)
    assert "committed offsets changed by adminclient-1: t-0 15 → 3" in overview(script)


def test_a_member_that_commits_less_resets_nothing() -> None:
    script = Script().steady("a")
    commits(script, "a", 15, member="a-id", generation=1)
    commits(script, "a", 3, member="a-id", generation=1)
    assert only(script.events(), OffsetReset) == []


def test_offset_delete_is_an_event_and_forgets_what_was_committed() -> None:
    script = Script().steady("a")
    commits(script, "a", 15, member="a-id", generation=1)
    for error_code in (86, 0):  # GROUP_SUBSCRIBED_TO_TOPIC
        part = OffsetDeleteResponsePartition(partition_index=0, error_code=error_code)
        topic = OffsetDeleteResponseTopic(name="t", partitions=[part])
        request = script.ask(OffsetDeleteRequest(group_id="g"), ADMIN)
        script.answer(request, OffsetDeleteResponse(topics=[topic]))
    commits(script, ADMIN, 3)
    assert [(one.before, one.offset) for one in only(script.events(), OffsetReset)] == [(15, None)]
    assert "t-0 15 → deleted" in overview(script)


def test_who_polled_too_late_has_a_cost() -> None:
    """What it had consumed had no consumer until another took it up."""
    script = Script().steady("a", "b")
    script.now += 40
    removes(script, "b", "b", "consumer poll timeout has expired.")
    text = overview(script)
    assert 'left: "consumer poll timeout has expired."' in text
    assert "t-1 had no consumer for up to 7 ms, 1 more for 3 ms or less" in " ".join(text.split())
