"""Classic groups: each cause of a rebalance, what comes of it, and frames missing or out of order."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordwire.capture.entries import FrameEntry
from coordwire.errors import Malformed
from coordwire.messages import (
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
    SyncGroupResponse,
)
from coordwire.messages.leave_group import MemberIdentity, MemberResponse
from coordwire.messages.offset_commit import (
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from coordwire.timeline.events import (
    ErrorMet,
    MemberJoined,
    MemberLeft,
    RebalanceBegan,
    RebalanceEnded,
    TopicPartition,
    Unanswered,
)
from coordwire.timeline.from_wire.timeline import timeline
from tests.timeline.script import SECOND, START, Script, only

REBALANCE_IN_PROGRESS, UNKNOWN_MEMBER_ID, NOT_COORDINATOR, FENCED = 27, 25, 16, 82
MEMBER_ID_REQUIRED = 79


def last_rebalance(script: Script) -> RebalanceEnded:
    result: RebalanceEnded = only(script.events(), RebalanceEnded)[-1]
    return result


def cause(script: Script) -> tuple[str, str | None, bool]:
    """What caused the last rebalance, who, and whether that is inferred."""
    result = last_rebalance(script)
    return result.cause, result.member_id, result.inferred


def test_the_first_member() -> None:
    script = Script()
    asked = script.join("a", member="")
    asked.api_version = asked.body_version = 3  # later ones are only given an id
    script.rebalance(1, {"a": {"t": [0]}}, asked)
    began, joined, ended = script.events()
    assert isinstance(began, RebalanceBegan)
    assert isinstance(joined, MemberJoined)
    assert (joined.client_id, joined.host, joined.topics, joined.rejoined) == ("a", "a:1", ("t",), False)
    assert isinstance(ended, RebalanceEnded)
    assert (ended.cause, ended.inferred, ended.outcome) == ("first_member", False, "steady")
    assert (ended.generation_before, ended.generation) == (None, 1)
    assert (ended.protocol, ended.leader, ended.members) == ("range", "a-id", ("a-id",))
    assert ended.last_to_join is None
    assert ended.began_ns == START
    assert ended.length_ns == 3_000_000
    assert [(assignment.member_id, assignment.partitions) for assignment in ended.assignments] == [
        ("a-id", (TopicPartition("t", 0),))
    ]


def test_the_first_member_of_some_with_one_client_id_is_who_asked_first() -> None:
    """All of them wait for the group's first rebalance, are answered in another order, and the one whose
    request was read first leads."""
    script = Script()
    asked = [script.join(name, member="") for name in "abc"]
    for request in asked:
        request.api_version = request.body_version = 3  # later ones are only given an id
    script.now += 3
    script.joined(1, "a-id", *reversed(asked), members=["a-id", "b-id", "c-id"])
    script.sync(1, {"a": {"t": [0]}, "c": {"t": [1]}, "b": {"t": [2]}})
    for entry in script.entries:
        if isinstance(entry, FrameEntry):
            entry.client_id = "app"
    (began,), (ended,) = only(script.events(), RebalanceBegan), only(script.events(), RebalanceEnded)
    assert (began.cause, began.member_id, began.client_id) == ("first_member", None, "app")
    assert (ended.cause, ended.member_id, ended.client_id) == ("first_member", "a-id", None)


def test_a_first_join_that_is_given_an_id_is_no_join_yet() -> None:
    script = Script()
    first = script.join("a", member="")
    script.answer(first, JoinGroupResponse(error_code=79, member_id="a-id"))
    script.now = 2
    script.steady("a")
    assert only(script.events(), ErrorMet) == []
    assert last_rebalance(script).began_ns == START + 2_000_000_000


def test_a_join_without_an_id_counts_from_its_request_on() -> None:
    script = Script()
    joins = script.join("a", member="")
    script.now = 3
    script.rebalance(1, {"a": {"t": [0]}}, joins)
    result = last_rebalance(script)
    assert (result.cause, result.began_ns, result.members) == ("first_member", START, ("a-id",))


def test_a_new_member_and_who_was_last_to_join() -> None:
    script = Script().steady("a")
    script.now = 10
    late = script.join("b")
    script.heartbeat("a", 1, REBALANCE_IN_PROGRESS)
    script.now = 13
    script.rebalance(2, {"a": {"t": [0]}, "b": {"t": [1]}}, late, script.join("a"))
    assert cause(script) == ("new_member", "b-id", False)
    result = last_rebalance(script)
    assert result.last_to_join == "a-id"
    assert (result.generation_before, result.generation) == (1, 2)
    assert result.began_ns == START + 10_000_000_000
    assert result.length_ns is not None
    assert 3 < result.length_ns / 1e9 < 3.1
    assert [tuple(one) for one in result.moved] == [("t", 1, None, "b-id")]


def test_partitions_that_changed_hands() -> None:
    script = Script().steady("a", "b")
    asked = [script.join("a", "t", "u"), script.join("b")]
    script.rebalance(2, {"a": {"t": [1]}, "b": {"t": [0]}}, *asked)
    result = last_rebalance(script)
    assert [tuple(one) for one in result.moved] == [("t", 0, "a-id", "b-id"), ("t", 1, "b-id", "a-id")]
    assert (result.cause, result.detail) == ("subscription_changed", "t → t, u")


def test_a_member_that_leaves() -> None:
    script = Script().steady("a", "b")
    script.leave("b", "going home")
    script.heartbeat("a", 1, REBALANCE_IN_PROGRESS)
    script.rebalance(2, {"a": {"t": [0, 1]}}, script.join("a"))
    (departure,) = only(script.events(), MemberLeft)
    assert (departure.member_id, departure.how, departure.reason, departure.inferred) == (
        "b-id",
        "left",
        "going home",
        False,
    )
    assert cause(script) == ("member_left", "b-id", False)
    assert [tuple(one) for one in last_rebalance(script).moved] == [("t", 1, "b-id", "a-id")]


def test_the_last_member_leaves_and_another_is_first_again() -> None:
    script = Script().steady("a")
    script.leave("a")
    assert len(only(script.events(), RebalanceEnded)) == 1
    script.rebalance(2, {"b": {"t": [0]}}, script.join("b"))
    assert cause(script) == ("first_member", "b-id", False)


def test_a_session_that_timed_out_is_inferred_from_silence() -> None:
    script = Script().steady("a", "b")
    for script.now in (3, 6, 9):
        script.heartbeat("a", 1)
    script.now = 12
    script.heartbeat("a", 1, REBALANCE_IN_PROGRESS)
    script.rebalance(2, {"a": {"t": [0, 1]}}, script.join("a"))
    assert cause(script) == ("session_timeout", "b-id", True)
    (departure,) = only(script.events(), MemberLeft)
    assert (departure.member_id, departure.how, departure.inferred) == ("b-id", "session_timeout", True)


def test_a_member_that_the_coordinator_no_longer_knows() -> None:
    script = Script().steady("a", "b")
    script.heartbeat("b", 1, UNKNOWN_MEMBER_ID)
    assert cause(script)[:2] == ("member_removed", "b-id")
    silent = Script().steady("a", "b")
    silent.now = 60
    silent.heartbeat("b", 1, UNKNOWN_MEMBER_ID)
    assert cause(silent) == ("session_timeout", "b-id", True)
    (error,) = only(silent.events(), ErrorMet)
    assert (error.api, error.error_code, error.member_id) == ("Heartbeat", UNKNOWN_MEMBER_ID, "b-id")


def test_a_member_that_is_silent_until_the_end() -> None:
    script = Script().steady("a", "b")
    for script.now in (4, 8, 12):
        script.heartbeat("a", 1)
    (departure,) = only(script.events(), MemberLeft)
    assert (departure.member_id, departure.how, departure.inferred) == ("b-id", "session_timeout", True)


def test_an_operator_removes_a_static_member_and_fails_with_another() -> None:
    script = Script()
    joined = script.join("a", instance="i"), script.join("b", instance="j")
    script.rebalance(1, {"a": {"t": [0]}, "b": {"t": [1]}}, *joined)
    gone = [MemberIdentity(member_id="", group_instance_id=name) for name in ("i", "j")]
    outcomes = [
        MemberResponse(member_id="", group_instance_id="i"),
        MemberResponse(member_id="", group_instance_id="j", error_code=UNKNOWN_MEMBER_ID),
    ]
    request = script.ask(LeaveGroupRequest(group_id="g", members=gone), "operator")
    script.answer(request, LeaveGroupResponse(members=outcomes))
    (departure,) = only(script.events(), MemberLeft)
    assert (departure.member_id, departure.instance_id) == ("a-id", "i")
    (error,) = only(script.events(), ErrorMet)
    assert error.error_code == UNKNOWN_MEMBER_ID


@pytest.mark.parametrize(
    ("flow", "version", "names", "how"),
    [
        ("a:1", 5, ["a-id"], "left"),
        ("a:2", 5, ["a-id"], "left"),  # over a new connection
        ("b:1", 5, ["a-id"], "removed"),
        ("b:1", 1, ["a-id"], "removed"),
        ("c:1", 5, ["a-id"], "removed"),
        ("a:2", 5, ["a-id", "b-id"], "removed"),
    ],
)
def test_clients_of_one_id_are_told_apart_by_their_connections(
    flow: str, version: int, names: list[str], how: str
) -> None:
    """A LeaveGroup of a's client id: its own, that of a neighbour, or of another machine."""
    script = Script().steady("a", "b")
    listed = [MemberIdentity(member_id=name) for name in names]
    asked = LeaveGroupRequest(group_id="g", members=listed)
    if version < 3:
        asked = LeaveGroupRequest(group_id="g", member_id=names[0])
    request = script.ask(asked, "a", version)
    request.flow = f"{flow} > {script.broker}"
    script.answer(request, LeaveGroupResponse())
    departure = only(script.events(ends=True), MemberLeft)[0]
    assert (departure.member_id, departure.how) == ("a-id", how)


def test_a_fenced_member() -> None:
    script = Script().steady("a", "b")
    script.heartbeat("b", 1, FENCED)
    (departure,) = only(script.events(), MemberLeft)
    assert (departure.how, departure.inferred) == ("fenced", False)
    assert cause(script) == ("member_fenced", "b-id", False)


def test_a_static_member_that_is_back_under_another_id() -> None:
    script = Script()
    script.rebalance(1, {"a": {"t": [0]}}, script.join("a", instance="till-3", member=""))
    again = script.join("a2", instance="till-3", member="")
    script.rebalance(2, {"a2": {"t": [0]}}, again)
    assert cause(script)[0] == "static_member_returned"
    assert last_rebalance(script).detail == "as till-3"
    first, back = only(script.events(), MemberJoined)
    assert (first.rejoined, back.rejoined, back.instance_id) == (False, True, "till-3")


@pytest.mark.parametrize(
    ("member", "is_given", "was_in"), [(None, False, True), (None, True, False), ("", False, False)]
)
def test_a_member_joins_whose_id_the_capture_shows_to_be_new(
    member: str | None, is_given: bool, was_in: bool
) -> None:
    """One that joins again in the first rebalance of a capture was in before."""
    script = Script()
    if is_given:
        nameless = script.join("a", member="")
        script.answer(nameless, JoinGroupResponse(error_code=MEMBER_ID_REQUIRED, member_id="a-id"))
    script.rebalance(5, {"a": {"t": [0]}}, script.join("a", member=member))
    (event,) = only(script.events(), MemberJoined)
    assert event.was_in is was_in


def test_a_member_that_is_seen_to_be_in_was_in_before() -> None:
    script = Script()
    script.heartbeat("a", 4)
    script.heartbeat("b", 4)
    script.heartbeat("b", 4, UNKNOWN_MEMBER_ID)
    script.heartbeat("b", 4)
    events = only(script.events(), MemberJoined)
    assert [(event.member_id, event.was_in) for event in events] == [
        ("a-id", True), ("b-id", True), ("b-id", False),
    ]  # fmt: skip


def test_a_static_member_may_be_back_without_a_rebalance() -> None:
    script = Script()
    script.rebalance(1, {"a": {"t": [0]}}, script.join("a", instance="till-3"))
    again = script.join("a2", instance="till-3", member="")
    script.joined(1, "a-id", again)
    assert last_rebalance(script).outcome == "not_needed"


def test_cooperative_members_come_back_once_they_have_revoked() -> None:
    script = Script()
    script.rebalance(1, {"a": {"t": [0, 1]}}, script.join("a", owned={}))
    asked = [script.join("b"), script.join("a", owned={"t": [0, 1]})]
    script.rebalance(2, {"a": {"t": [0]}, "b": {}}, *asked)
    asked = [script.join("a", owned={"t": [0]}), script.join("b")]
    script.rebalance(3, {"a": {"t": [0]}, "b": {"t": [1]}}, *asked)
    assert cause(script) == ("partitions_revoked", "a-id", False)


def test_a_leader_that_joins_again() -> None:
    script = Script().steady("a", "b")
    script.rebalance(2, {"a": {"t": [0]}, "b": {"t": [1]}}, script.join("a"), script.join("b"))
    assert cause(script) == ("leader_rejoined", "a-id", False)
    later = Script().steady("a", "b")  # a follower that changes nothing can't begin a rebalance
    asked = later.join("b"), later.join("a")
    later.rebalance(2, {"a": {"t": [0]}, "b": {"t": [1]}}, *asked)
    assert cause(later) == ("leader_rejoined", "a-id", False)


def test_a_follower_that_joins_again() -> None:
    changed = Script().steady("a", "b")
    asked = changed.join("b", owned={"t": [1]}), changed.join("a")
    changed.rebalance(2, {"a": {"t": [0]}, "b": {"t": [1]}}, *asked)
    assert cause(changed) == ("member_rejoined", "b-id", False)
    same = Script().steady("a", "b", "c")
    asked = same.join("b"), same.join("c")
    same.joined(2, "a-id", *asked)  # the leader's own JoinGroup is not in the capture
    same.sync(2, {"b": {"t": [0]}, "c": {"t": [1]}})
    assert cause(same) == ("unknown", None, True)


def test_who_left_is_the_cause_though_a_follower_joins_again() -> None:
    script = Script().steady("a", "b", "c")
    again = script.join("b")
    script.leave("c")
    script.heartbeat("a", 1, REBALANCE_IN_PROGRESS)
    script.rebalance(2, {"a": {"t": [0]}, "b": {"t": [1]}}, again, script.join("a"))
    assert cause(script) == ("member_left", "c-id", False)


def test_a_coordinator_that_moved() -> None:
    script = Script().steady("a")
    script.heartbeat("a", 1, NOT_COORDINATOR)
    script.rebalance(2, {"a": {"t": [0]}}, script.join("a"))
    assert cause(script) == ("coordinator_moved", "a-id", True)


def test_a_cause_that_was_not_seen() -> None:
    script = Script().steady("a", "b")
    script.heartbeat("a", 1, REBALANCE_IN_PROGRESS)
    asked = script.join("a"), script.join("b")
    script.rebalance(2, {"a": {"t": [0]}, "b": {"t": [1]}}, *asked)
    assert cause(script) == ("unknown", None, True)


def test_a_commit_is_refused_while_the_group_rebalances() -> None:
    script = Script().steady("a")
    topic = OffsetCommitRequestTopic(
        name="t", partitions=[OffsetCommitRequestPartition(partition_index=0, committed_offset=5)]
    )
    request = OffsetCommitRequest(
        group_id="g", generation_id_or_member_epoch=1, member_id="a-id", topics=[topic]
    )
    answer = OffsetCommitResponseTopic(
        name="t", partitions=[OffsetCommitResponsePartition(partition_index=0, error_code=27)]
    )
    script.answer(script.ask(request, "a", version=8), OffsetCommitResponse(topics=[answer]))
    assert only(script.events(), RebalanceBegan)[-1].cause == "unknown"
    assert len(only(script.events(), ErrorMet)) == 1


def test_a_rebalance_that_another_interrupts() -> None:
    script = Script()
    script.joined(1, "a-id", script.join("a"))
    asked = script.join("b"), script.join("a")
    script.rebalance(2, {"a": {"t": [0]}, "b": {"t": [1]}}, *asked)
    first, second = only(script.events(), RebalanceEnded)
    assert (first.outcome, first.generation, first.moved) == ("superseded", 1, ())
    assert (second.outcome, second.generation, second.cause) == ("steady", 2, "new_member")


def test_the_group_was_there_before_the_capture() -> None:
    script = Script()
    script.joined(7, "a-id", script.join("a"), members=["a-id", "elsewhere"])
    script.sync(7, {"a": {"t": [0]}})
    result = last_rebalance(script)
    assert (result.cause, result.inferred, result.members) == ("new_member", True, ("a-id", "elsewhere"))
    assert result.outcome == "steady"


def test_what_nobody_answers_is_told() -> None:
    script = Script()
    script.join("a")
    (waiting,) = only(script.events(), Unanswered)
    assert (waiting.api, waiting.member_id, waiting.client_id, waiting.time_ns) == (
        "JoinGroup",
        "a-id",
        "a",
        START,
    )
    assert last_rebalance(script).outcome == "unfinished"


def test_an_answer_that_cannot_be_read_is_one_all_the_same() -> None:
    script = Script().steady("a")
    script.now = 5
    joins = script.join("b", member="")
    refused = script.answer(joins, JoinGroupResponse(error_code=NOT_COORDINATOR))
    refused.error = Malformed("a null where none may be", 9, "protocol_name")
    script.heartbeat("a", 1, REBALANCE_IN_PROGRESS)
    (waiting,) = only(script.events(), Unanswered)
    assert (waiting.api, waiting.client_id, waiting.unreadable) == ("JoinGroup", "b", True)
    first, _ = only(script.events(), ErrorMet)
    assert (first.api, first.error_code) == ("JoinGroup", NOT_COORDINATOR)
    assert cause(script) == ("unknown", None, True)  # nobody waits


def test_frames_without_a_time_have_no_lengths() -> None:
    script = Script().steady("a")
    for entry in script.entries:
        assert isinstance(entry, FrameEntry)
        entry.time_ns = None
    result = last_rebalance(script)
    assert (result.outcome, result.began_ns, result.ended_ns, result.length_ns) == (
        "steady",
        None,
        None,
        None,
    )


def test_an_assignment_that_is_no_consumers_stays_unknown() -> None:
    script = Script()
    joins = script.join("a")
    script.joined(1, "a-id", joins)
    script.sync(1, {"a": {}})
    reply = script.entries[-1]
    assert not isinstance(reply, str)
    object.__setattr__(reply, "message", SyncGroupResponse(assignment=b"\xff\xff\xff"))
    assert last_rebalance(script).outcome == "steady"


@pytest.mark.parametrize("count", [1, 3])
def test_captures_may_be_mixed(count: int) -> None:
    scripts = [Script(f"g{number}", f"capture-{number}").steady("a", "b") for number in range(count)]
    mixed = [
        entry for entries in zip(*(script.entries for script in scripts), strict=True) for entry in entries
    ]
    result = only(list(timeline(mixed)), RebalanceEnded)
    assert [(one.group, one.outcome) for one in result] == [(f"g{n}", "steady") for n in range(count)]


def everything() -> Script:
    """A long conversation with a bit of all."""
    script = Script().steady("a", "b")
    for client, code in (("a", 0), ("b", 27), ("a", 25), ("b", 16), ("b", 82)):
        script.heartbeat(client, 1, code)
    script.leave("a")
    script.rebalance(2, {"c": {"t": [0]}}, script.join("c", instance="i"))
    script.rebalance(3, {"d": {"t": [0]}}, script.join("d", instance="i", member=""))
    return script


@given(st.data())
def test_any_order_and_any_loss_is_survived(data: st.DataObject) -> None:
    entries = everything().entries
    chosen = data.draw(st.lists(st.sampled_from(range(len(entries))), max_size=2 * len(entries)))
    began = ended = 0
    for event in timeline(entries[number] for number in chosen):
        began += isinstance(event, RebalanceBegan)
        ended += isinstance(event, RebalanceEnded)
    assert began == ended


def test_the_first_member_is_the_leader_whichever_request_was_seen_first() -> None:
    """Before version 4 of JoinGroup a member has no id before its answer, and answers come all at once."""
    script = Script()
    requests = [replace(script.join(client, member=""), api_version=2) for client in "ba"]
    script.entries[-2:] = requests
    script.now = 3
    script.joined(1, "a-id", *requests, members=["a-id", "b-id"])
    script.sync(1, {"a": {"t": [0]}, "b": {"t": [1]}})
    (ended,) = only(script.events(), RebalanceEnded)
    assert (ended.cause, ended.member_id, ended.began_ns) == ("first_member", "a-id", requests[0].time_ns)


@pytest.mark.parametrize(
    ("refused", "about"),
    [
        ({("a", 0): 3}, {3: ("a", 0)}),
        ({("a", 0): 3, ("a", 1): 3, ("b", 0): 29}, {3: ("a", None), 29: ("b", 0)}),
        ({("a", 0): 3, ("b", 0): 3, ("b", 1): 0}, {3: (None, None)}),
        ({("a", 0): 25}, {25: (None, None)}),  # the member is refused, not the topic
    ],
)
def test_refused_commits_name_the_topic(
    refused: dict[tuple[str, int], int], about: dict[int, tuple[str | None, int | None]]
) -> None:
    script = Script().steady("a")
    request = OffsetCommitRequest(group_id="g", generation_id_or_member_epoch=1, member_id="a-id")
    topics = [
        OffsetCommitResponseTopic(
            name=topic, partitions=[OffsetCommitResponsePartition(partition_index=index, error_code=code)]
        )
        for (topic, index), code in refused.items()
    ]
    script.answer(script.ask(request, "a", version=8), OffsetCommitResponse(topics=topics))
    found = {event.error_code: (event.topic, event.partition) for event in only(script.events(), ErrorMet)}
    assert found == about


def test_who_is_missing_may_have_been_so_from_the_generation_before() -> None:
    """Of generation 2 no answer to a JoinGroup is seen; the one that begins the next comes late."""
    script = Script().steady("a", "b")
    script.now = 3
    script.heartbeat("a", 1, REBALANCE_IN_PROGRESS)
    script.join("a")
    script.sync(2, {"a": {"t": [0, 1]}})
    script.now = 5
    script.heartbeat("a", 2, REBALANCE_IN_PROGRESS)
    asked = script.join("a")
    script.joined(3, "a-id", asked, members=["a-id", "c-id"])
    unexplained = last_rebalance(script)
    assert (unexplained.cause, unexplained.member_id) == ("unknown", None)
    answered, script.now = script.now, 4.5
    late = script.join("c")
    script.now = answered
    script.joined(3, "a-id", late, members=[])
    script.sync(3, {"a": {"t": [0]}, "c": {"t": [1]}})
    rebalance = last_rebalance(script)
    assert (rebalance.cause, rebalance.member_id) == ("new_member", "c-id")
    assert (rebalance.began_ns or 0) - START == 4.5 * SECOND
    assert [left.member_id for left in only(script.events(), MemberLeft)] == ["b-id"]


def test_who_was_in_an_unseen_generation_is_why_the_next_one_began() -> None:
    script = Script().steady("a", "b")
    script.now = 3
    script.heartbeat("a", 1, REBALANCE_IN_PROGRESS)
    script.sync(2, {"a": {"t": [0]}, "b": {"t": [1]}})
    script.now = 5
    script.heartbeat("a", 2, REBALANCE_IN_PROGRESS)
    asked = script.join("a")
    script.joined(3, "a-id", asked)
    rebalance = last_rebalance(script)
    assert (rebalance.cause, rebalance.member_id) == ("session_timeout", "b-id")
