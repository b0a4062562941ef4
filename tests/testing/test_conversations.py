"""Conversations of groups: they decode, match, and tell the history that the script says."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.errors import NoSuchExample

from coordwire import Connection, Role, decode_request, decode_response
from coordwire.capture import Capture
from coordwire.capture.entries import FrameEntry
from coordwire.capture.formats import pcap
from coordwire.connection.events import RequestReceived
from coordwire.messages import HeartbeatRequest, JoinGroupRequest
from coordwire.testing import conversation_strategies, strategies
from coordwire.testing.strategies import GroupConversation
from coordwire.timeline import (
    ErrorMet,
    MemberJoined,
    MemberLeft,
    OffsetCommitted,
    RebalanceEnded,
    Unanswered,
    timeline,
)

from .test_strategies import drawn, least

SOME = settings(max_examples=40, database=None)


@SOME
@given(strategies.group_conversations())
def test_they_decode_and_match(conversation: GroupConversation) -> None:
    waiting: dict[int, Any] = {}
    for frame in conversation.frames:
        if frame.direction == "request":
            asked = decode_request(frame.data)
            assert (asked.api_key, asked.api_version) == (frame.api_key, frame.version)
            assert asked.correlation_id == frame.correlation_id
            waiting[frame.correlation_id] = frame
        else:
            assert waiting.pop(frame.correlation_id).connection == frame.connection
            answered = decode_response(frame.data, api_key=frame.api_key, version=frame.version)
            assert answered.correlation_id == frame.correlation_id
    assert not waiting
    times = [frame.time_ns for frame in conversation.frames]
    assert times == sorted(set(times))


@SOME
@given(strategies.group_conversations())
def test_connections_take_them(conversation: GroupConversation) -> None:
    """A server that is asked so, and answers so, sends these bytes; each connection has one request at a
    time."""
    servers: dict[int, Connection] = {}
    asked: dict[int, RequestReceived] = {}
    for frame in conversation.frames:
        server = servers.setdefault(frame.connection, Connection(Role.SERVER, strict=True))
        if frame.direction == "request":
            server.receive_data(frame.data)
            [event] = server.events()
            assert isinstance(event, RequestReceived)
            assert frame.connection not in asked
            asked[frame.connection] = event
        else:
            answer = decode_response(frame.data, api_key=frame.api_key, version=frame.version)
            assert server.send(answer.message, request=asked.pop(frame.connection)) == frame.data
    assert not asked


@SOME
@given(strategies.group_conversations())
def test_the_timeline_is_the_scripts(conversation: GroupConversation) -> None:
    entries = list(Capture(io.BytesIO(conversation.pcap()), "made").entries())
    assert len(entries) == len(conversation.frames)
    for entry, frame in zip(entries, conversation.frames, strict=True):
        assert isinstance(entry, FrameEntry)
        assert (entry.error, entry.deviations) == (None, [])
        assert (entry.time_ns, entry.direction) == (frame.time_ns, frame.direction)
    events = list(timeline(entries))
    joined = [event for event in events if isinstance(event, MemberJoined)]
    assert [event.member_id for event in joined if not event.rejoined] == list(conversation.joiners)
    left = [event for event in events if isinstance(event, MemberLeft)]
    assert [(event.member_id, event.how) for event in left] == [(one, "left") for one in conversation.leavers]
    commits = [event for event in events if isinstance(event, OffsetCommitted)]
    assert [(event.member_id, event.partition, event.offset) for event in commits] == [*conversation.commits]
    assert {event.error_code for event in events if isinstance(event, ErrorMet)} <= {27}
    assert not [event for event in events if isinstance(event, Unanswered)]
    ended = [event for event in events if isinstance(event, RebalanceEnded)]
    if conversation.assignments:
        last = ended[-1]
        assert (last.outcome, last.generation) == ("steady", conversation.generation)
        found = {one.member_id: tuple(p.partition for p in one.partitions) for one in last.assignments}
        assert found == dict(conversation.assignments)


@SOME
@given(strategies.group_conversations())
def test_assignments_share_all_partitions(conversation: GroupConversation) -> None:
    shares = list(conversation.assignments.values())
    assert sorted(number for share in shares for number in share) == (
        list(range(conversation.partitions)) if shares else []
    )
    assert max(map(len, shares), default=0) - min(map(len, shares), default=0) <= 1
    assert set(conversation.assignments) == set(conversation.joiners) - set(conversation.leavers)


def test_all_that_may_happen_happens() -> None:
    found = drawn(strategies.group_conversations(), 400)
    assert {one.kind for one in found} == {"classic", "consumer"}
    assert any(len(one.assignments) == 4 for one in found)
    assert any(one.leavers and not one.assignments for one in found)
    assert any(len(one.joiners) > 4 for one in found)
    assert any(one.commits for one in found)
    versions = {(f.api_key, f.version) for one in found for f in one.frames}
    for cls in (JoinGroupRequest, HeartbeatRequest):
        spoken = {version for key, version in versions if key == cls.api_key}
        assert len(spoken) > len(cls.versions) // 2


def test_the_stream_reads_as_frames() -> None:
    for conversation in drawn(strategies.group_conversations(kinds=["classic"]), 10):
        entries = list(Capture(io.BytesIO(conversation.stream()), "made", input="frames").entries())
        assert [entry.size + 4 for entry in entries if isinstance(entry, FrameEntry)] == [
            len(frame.data) for frame in conversation.frames
        ]


def test_bounds() -> None:
    asked = strategies.group_conversations(kinds=["consumer"], max_members=2, max_partitions=1, max_steps=3)
    for conversation in drawn(asked, 60):
        assert conversation.kind == "consumer"
        assert conversation.partitions == 1
        assert len(conversation.joiners) <= 3
        assert len(conversation.assignments) <= 2
    with pytest.raises(ValueError, match="no conversations of 'share': expected classic, consumer"):
        strategies.group_conversations(kinds=["share"])  # type: ignore[list-item]
    for bound in ({"max_members": 0}, {"max_steps": 0}, {"max_partitions": 0}, {"kinds": ()}):
        with pytest.raises(ValueError, match="at least one"):
            strategies.group_conversations(**bound)


def test_the_pauses_of_many_steps_end_no_session() -> None:
    for conversation in drawn(strategies.group_conversations(max_members=50, max_steps=1_000), 40):
        times = [frame.time_ns for frame in conversation.frames]
        assert all(later - earlier <= 31_000_000 for earlier, later in pairwise(times))


def test_only_groups_of_kip_848_have_a_name_that_is_not_blank() -> None:
    names = conversation_strategies._GROUP_IDS
    assert least(names["classic"], str.isspace).isspace()
    with pytest.raises(NoSuchExample):
        least(names["consumer"], str.isspace)


@pytest.mark.parametrize("kind", ["classic", "consumer"])
def test_a_group_has_a_name_of_its_kind(
    monkeypatch: pytest.MonkeyPatch, kind: Literal["classic", "consumer"]
) -> None:
    names = {"classic": st.just(" "), "consumer": st.just("c")}
    monkeypatch.setattr(conversation_strategies, "_GROUP_IDS", names)
    conversations = drawn(strategies.group_conversations(kinds=[kind]), 3)
    assert {one.group_id for one in conversations} == {" " if kind == "classic" else "c"}


@pytest.mark.parametrize(("name", "is_imported"), [("messages", False), ("group_conversations", True)])
def test_the_coordinator_is_imported_for_conversations_alone(name: str, is_imported: bool) -> None:
    code = f"import sys; from coordwire.testing.strategies import {name}; print(*sys.modules)"
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ("coordwire.coordinator" in process.stdout.split()) is is_imported


def test_they_shrink_to_the_steps_that_matter() -> None:
    asked = strategies.group_conversations(kinds=["classic"])
    first = least(asked, lambda found: True)
    assert (first.group_id, len(first.topic), first.partitions) == ("0", 1, 1)
    assert (len(first.joiners), first.leavers, first.commits) == (1, (), ())
    gone = least(strategies.group_conversations(kinds=["consumer"]), lambda found: len(found.leavers) > 1)
    assert len(gone.joiners) == 2
    assert gone.commits == ()
    committed = least(asked, lambda found: bool(found.commits))
    assert committed.commits == ((committed.joiners[0], 0, 0),)
    assert len(committed.frames) == len(first.frames) + 2


@pytest.mark.parametrize(
    ("strategy", "most"),
    [
        (lambda: strategies.messages(JoinGroupRequest), 250),
        (strategies.requests, 600),
        (strategies.record_batches, 400),
        (strategies.log_records, 400),
        (strategies.group_conversations, 500),
    ],
    ids=["messages", "requests", "record_batches", "log_records", "group_conversations"],
)
def test_they_draw_little(strategy: Callable[[], st.SearchStrategy[Any]], most: int) -> None:
    """Hypothesis' own measure, of which an example may have 8,000: what drawing and shrinking cost."""
    used: list[int] = []

    @settings(max_examples=30, database=None, derandomize=True, suppress_health_check=[])
    @given(st.data())
    def draw(data: st.DataObject) -> None:
        data.draw(strategy())
        used.append(data.conjecture_data.length)

    draw()
    assert sum(used) / len(used) < most


def test_long_frames_are_cut_into_packets() -> None:
    frame = bytes(range(256)) * 300
    data = pcap.as_pcap([(5, 0, False, frame), (6, 0, True, b"x")])
    assert data.count(frame[:1000]) > 0
    assert len(data) < len(frame) + 1000
