"""What an admin does to a group: it removes members, sets committed offsets back and deletes them, changes
topics and settings."""

from __future__ import annotations

from coordwire.capture.entries import FrameEntry
from coordwire.messages import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
    JoinGroupRequest,
    LeaveGroupRequest,
    LeaveGroupResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
)
from coordwire.messages.create_partitions import CreatePartitionsTopic, CreatePartitionsTopicResult
from coordwire.messages.delete_topics import DeletableTopicResult, DeleteTopicState
from coordwire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
)
from coordwire.messages.join_group import JoinGroupRequestProtocol
from coordwire.messages.leave_group import MemberIdentity
from coordwire.messages.offset_commit import OffsetCommitRequestPartition, OffsetCommitRequestTopic
from coordwire.messages.offset_delete import OffsetDeleteResponsePartition, OffsetDeleteResponseTopic
from coordwire.timeline.event_json import event_json, read_event
from coordwire.timeline.events import (
    GroupConfigured,
    MemberLeft,
    OffsetReset,
    RebalanceEnded,
    TopicChanged,
)
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


# --- topics and settings ---


def deletes_topic(script: Script, name: str, *, error_code: int = 0) -> None:
    request = script.ask(DeleteTopicsRequest(topics=[DeleteTopicState(name=name)]), ADMIN)
    result = DeletableTopicResult(name=name, error_code=error_code)
    script.answer(request, DeleteTopicsResponse(responses=[result])).packet = 40


def enlarges_topic(script: Script, name: str, count: int) -> None:
    topic = CreatePartitionsTopic(name=name, count=count)
    request = script.ask(CreatePartitionsRequest(topics=[topic]), ADMIN)
    result = CreatePartitionsTopicResult(name=name)
    script.answer(request, CreatePartitionsResponse(results=[result])).packet = 41


def leader_joins_again(script: Script, generation: int) -> None:
    asked = script.join("a")
    script.heartbeat("b", generation - 1, 27)
    script.rebalance(generation, {"a": {"t": [0]}, "b": {"t": [1]}}, asked, script.join("b"))


def words(script: Script) -> str:
    return " ".join(overview(script).split())


def test_a_deleted_topic_is_told_with_what_follows() -> None:
    script = Script().steady("a", "b")
    script.now += 3
    deletes_topic(script, "other")
    deletes_topic(script, "t", error_code=29)
    deletes_topic(script, "t")
    leader_joins_again(script, 2)
    (event,) = only(script.events(), TopicChanged)
    assert (event.topic, event.deed, event.client_id, event.partitions) == ("t", "deleted", ADMIN, None)
    assert read_event(event_json(event)) == event
    ended = only(script.events(), RebalanceEnded)[-1]
    assert (ended.cause, ended.member_id) == ("leader_rejoined", "a-id")
    assert ended.detail == "topic t was deleted (packet 40)"
    assert f"topic t was deleted by {ADMIN} (packet 40) rebalance 2 follows from it" in words(script)


def test_an_enlarged_topic_is_told_with_its_partitions() -> None:
    script = Script().steady("a", "b")
    enlarges_topic(script, "t", 6)
    leader_joins_again(script, 2)
    assert [(event.deed, event.partitions) for event in only(script.events(), TopicChanged)] == [("grown", 6)]
    assert "a (a) joins again: topic t has more partitions (packet 41)" in words(script).replace("#1", "a")
    assert "was enlarged" not in words(script), "nobody waited for it"


def test_an_enlarged_topic_for_which_partitions_waited_is_an_incident() -> None:
    script = Script().steady("a", "b")
    enlarges_topic(script, "t", 6)
    asked = script.join("a", owned={})
    script.now += 3
    script.heartbeat("b", 1, 27)
    script.rebalance(2, {"a": {"t": [0]}, "b": {"t": [1]}}, asked, script.join("b"))
    assert f"topic t was enlarged to 6 partitions by {ADMIN} (packet 41) rebalance 2 follows" in words(script)


def test_a_topic_is_not_blamed_for_a_group_whose_topics_are_not_known() -> None:
    """Workers of Connect create topics, and lead groups whose metadata is their own."""

    def joins(client: str) -> FrameEntry:
        protocol = JoinGroupRequestProtocol(name="sessioned", metadata=b"\x00")
        request = JoinGroupRequest(
            group_id="g", session_timeout_ms=10_000, protocol_type="connect", member_id=f"{client}-id",
            protocols=[protocol],
        )  # fmt: skip
        return script.ask(request, client)

    script = Script()
    script.rebalance(1, {"a": {}, "b": {}}, joins("a"), joins("b"))
    script.now += 3
    enlarges_topic(script, "t", 6)
    asked = joins("a")
    script.heartbeat("b", 1, 27)
    script.rebalance(2, {"a": {}, "b": {}}, asked, joins("b"))
    ended = only(script.events(), RebalanceEnded)[-1]
    assert (ended.cause, ended.detail) == ("leader_rejoined", "its metadata may have changed")


def test_nothing_follows_from_a_topic_that_changed_long_before() -> None:
    script = Script().steady("a", "b")
    deletes_topic(script, "t")
    for _ in range(80):
        script.now += 5
        script.heartbeat("a", 1)
        script.heartbeat("b", 1)
    leader_joins_again(script, 2)
    assert "follows from it" not in words(script)
    assert "its metadata may have changed" in words(script)


def configures(script: Script, *, kind: int = 32, error_code: int = 0) -> None:
    """consumer.session.timeout.ms becomes 5000, and something that is no number."""
    configs = [
        AlterableConfig(name="consumer.session.timeout.ms", value="5000"),
        AlterableConfig(name="secret", value="swordfish"),
    ]
    resource = AlterConfigsResource(resource_type=kind, resource_name="g", configs=configs)
    request = script.ask(IncrementalAlterConfigsRequest(resources=[resource]), ADMIN)
    result = AlterConfigsResourceResponse(resource_type=kind, resource_name="g", error_code=error_code)
    script.answer(request, IncrementalAlterConfigsResponse(responses=[result]))


def test_changed_settings_of_a_group_are_told_without_their_secrets() -> None:
    script = Script().steady("a")
    configures(script, error_code=29)
    configures(script, kind=2)
    configures(script)
    (event,) = only(script.events(), GroupConfigured)
    assert event.settings == (("consumer.session.timeout.ms", "5000"), ("secret", None))
    assert read_event(event_json(event)) == event
    told = (
        f"settings of the group were changed by {ADMIN}: consumer.session.timeout.ms = 5000, secret changed"
    )
    assert told in words(script)


def test_a_rebalance_that_is_not_over_has_its_cost_so_far() -> None:
    """The partitions that a member gave up as it joined again have no consumer until the input ends."""
    script = Script().steady("a", "b")
    script.join("a", owned={})
    script.now += 5
    script.heartbeat("b", 1, 27)
    ended = only(script.events(), RebalanceEnded)[-1]
    assert ended.outcome == "unfinished"
    assert [(gap.topic, gap.partition) for gap in ended.idle] == [("t", 0)]
    assert 5_000_000_000 <= ended.idle_ns < 5_100_000_000


def test_a_deleted_topic_waits_for_no_consumer() -> None:
    script = Script().steady("a", "b")
    deletes_topic(script, "t")
    script.join("a", owned={})
    script.now += 5
    script.heartbeat("b", 1, 27)
    assert only(script.events(), RebalanceEnded)[-1].idle == ()


def test_who_is_listed_is_counted() -> None:
    """A member that was in before the input began did not join in it."""
    script = Script()
    script.heartbeat("a", 4)
    asked = script.join("b", member="")
    script.heartbeat("a", 4, 27)
    script.rebalance(5, {"a": {"t": [0]}, "b": {"t": [1]}}, script.join("a"), asked)
    assert "2 members (1 joined, 1 in before)" in words(script)
