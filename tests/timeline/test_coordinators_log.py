"""Timelines of captures against the log of the coordinator that was recorded: see tests/data/groups.

What the log says of each group (members that came and went, generations and epochs with their cause, members
and assignments) is what the timeline says of the same capture, and the timeline says nothing else.
"""

from __future__ import annotations

import lzma
import re
from collections import defaultdict
from datetime import UTC, datetime
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from coordwire.capture.entries import FrameEntry
from coordwire.capture.reader import Capture
from coordwire.messages import MetadataResponse
from coordwire.timeline.events import (
    GroupConverted,
    GroupEvent,
    MemberJoined,
    MemberLeft,
    RebalanceBegan,
    RebalanceEnded,
)
from coordwire.timeline.from_wire.group_table import TopicsById
from coordwire.timeline.from_wire.timeline import timeline
from tests.timeline.script import only

DATA = Path(__file__).parent.parent / "data" / "groups"
SECOND = 1_000_000_000
GROUPS = {
    "java-classic": "jg.classic", "java-848": "jg.new", "java-share": "jg.share", "java431-classic": "jq.cl",
    "java431-streams-streams": "js.streams", "confluent-848": "cg.new", "kafkago-groups": "gg.x",
}  # fmt: skip
CLASSIC = ["java-classic", "java431-classic", "kafkago-groups"]
MODERN = ["java-848", "java-share", "java431-streams-streams", "confluent-848"]


class Line(NamedTuple):
    time_ns: int
    text: str


class Recorded(NamedTuple):
    """A capture's timeline of its group, and what the coordinator logged meanwhile."""

    events: list[GroupEvent]
    names: TopicsById
    log: list[Line]


@cache
def logged() -> dict[str, list[Line]]:
    result = defaultdict(list)
    text = lzma.decompress((DATA / "kafka-4.4.0__coordinator.log.xz").read_bytes()).decode()
    for line in text.splitlines():
        time, group, text = line.split(" ", 2)
        moment = datetime.fromisoformat(time).replace(tzinfo=UTC)
        result[group].append(Line(round(moment.timestamp() * 1000) * 1_000_000, text))
    return result


@cache
def recorded(name: str) -> Recorded:
    data = lzma.decompress((DATA / f"kafka-4.4.0__{name}.pcap.xz").read_bytes())
    entries = list(Capture(BytesIO(data), name).entries())
    names = TopicsById()
    for entry in entries:
        if isinstance(entry, FrameEntry) and isinstance(entry.message, MetadataResponse):
            names.learn(entry.message)
    group = GROUPS[name]
    events = [event for event in timeline(entries) if event.group == group]
    last = max(entry.time_ns or 0 for entry in entries)
    return Recorded(events, names, [line for line in logged()[group] if line.time_ns <= last])


def matches(log: list[Line], pattern: str) -> list[tuple[int, re.Match[str]]]:
    return [(line.time_ns, result) for line in log if (result := re.search(pattern, line.text))]


def near(one_ns: int | None, other_ns: int, seconds: float) -> bool:
    return one_ns is not None and abs(one_ns - other_ns) <= seconds * SECOND


# --- members


GONE = (
    r"(?:Streams member|Member) (\S+) (?:fenced from the group|left the \w+ group)"
    r"|Member (\S+) in group \S+ has failed|[Mm]ember (\S+) has left group"
)


@pytest.mark.parametrize("name", GROUPS)
def test_who_went_and_when(name: str) -> None:
    result = recorded(name)
    gone = [(time, next(filter(None, match.groups()))) for time, match in matches(result.log, GONE)]
    departures = [
        (entry.time_ns, entry.member_id) for entry in only(result.events, MemberLeft) if entry.how != "fenced"
    ]
    for time, member in gone:
        assert any(who == member and near(when, time, 0.2) for when, who in departures), (
            member,
            "isn't reported",
        )
    for when, member in departures:
        assert any(who == member and near(when, time, 0.2) for time, who in gone), (member, "didn't go")


@pytest.mark.parametrize("name", MODERN)
def test_who_joined(name: str) -> None:
    result = recorded(name)
    joins = r"(?:[Mm]ember (\S+)|MemberId (\S+?)\] Member)(?: with instance id \S+)? joins the"
    joined = [event.member_id for event in only(result.events, MemberJoined)]
    assert joined == [next(filter(None, match.groups())) for _, match in matches(result.log, joins)]


# --- classic generations

REASONS = [
    (r"Adding new member (\S+) with", {"first_member", "new_member", "static_member_returned"}),
    (r"removing member (\S+) on heartbeat expiration", {"session_timeout"}),
    (r"LeaveGroup` request for \((\S+)\)", {"member_left"}),
    (r"Leader (\S+) re-joining", {"leader_rejoined", "subscription_changed", "partitions_revoked"}),
    (r"Updating metadata for member (\S+) ", {"subscription_changed", "partitions_revoked"}),
]


@pytest.mark.parametrize("name", CLASSIC)
def test_classic_generations_and_their_causes(name: str) -> None:
    result = recorded(name)
    ended = [event for event in only(result.events, RebalanceEnded) if event.kind == "classic"]
    formed = {
        rebalance.generation: rebalance
        for rebalance in ended
        if rebalance.outcome in ("steady", "superseded")
    }
    stable = {
        int(at[1]): (time, int(at[2])) for time, at in matches(result.log, r"generation (\d+) with (\d+)")
    }
    assert set(formed) == set(stable)
    for generation, (time, members) in stable.items():
        assert len(formed[generation].members) == members
        assert near(formed[generation].joined_ns, time, 0.05)
    reasons = {
        int(at[1]) + 1: (time, at[2])
        for time, at in matches(result.log, r"old generation (\d+) \(reason: (.*)\)")
    }
    for generation in set(reasons) & set(formed):
        time, reason = reasons[generation]
        event = formed[generation]
        for pattern, causes in REASONS:
            if match := re.search(pattern, reason):
                assert (event.cause in causes, event.member_id) == (True, match[1]), reason
                assert near(event.began_ns, time, 0.02), reason


def test_a_refused_join_begins_nothing() -> None:
    """kafka-go joins with an id that the coordinator doesn't know any longer; another client joins later."""
    ended = only(recorded("kafkago-groups").events, RebalanceEnded)
    (seventh,) = (rebalance for rebalance in ended if rebalance.generation == 7)
    assert near(seventh.length_ns, 0, 0.31)
    assert (seventh.cause, (seventh.member_id or "")[:2]) == ("first_member", "d-")


def test_a_pipelined_leave_takes_effect_after_the_join() -> None:
    events = recorded("java-classic").events
    joined = {entry.member_id: entry.time_ns for entry in only(events, MemberJoined)}
    for departures in only(events, MemberLeft):
        assert departures.time_ns >= joined[departures.member_id]


def test_a_group_that_converts_is_one() -> None:
    result = recorded("java431-classic")
    converted = only(result.events, GroupConverted)
    assert [(one.kind_before, one.kind) for one in converted] == [
        ("classic", "consumer"),
        ("consumer", "classic"),
    ]
    for event, (time, _) in zip(converted, matches(result.log, "Converted the"), strict=True):
        assert near(event.time_ns, time, 0.02)
    sixth = next(event for event in only(result.events, RebalanceEnded) if event.generation == 6)
    assert (sixth.kind, sixth.cause, sixth.outcome, len(sixth.members)) == (
        "consumer",
        "new_member",
        "steady",
        4,
    )
    assert sum(len(assignment.partitions) for assignment in sixth.assignments) == 6


# --- epochs of groups whose coordinator assigns

EPOCH = r"Bumped (?:streams )?group epoch to (\d+)|target assignment for epoch (\d+)"
SIGNS = {
    "joins the": {"first_member", "new_member", "static_member_returned"},
    "fenced from": {"session_timeout"},
    "left the": {"member_left"},
    "updated its subscribed topics": {"subscription_changed"},
}


def causes(log: list[Line]) -> dict[int, set[str]]:
    """The causes that the log has for each epoch: what happened since the one before."""
    result: dict[int, set[str]] = {}
    since: set[str] = set()
    for line in log:
        if match := re.search(EPOCH, line.text):
            epoch = int(match[1] or match[2])
            if epoch not in result:
                result[epoch], since = since, set()
        for sign, allowed in SIGNS.items():
            if sign in line.text:
                since |= allowed
    return result


@pytest.mark.parametrize("name", MODERN)
def test_epochs_and_their_causes(name: str) -> None:
    result = recorded(name)
    states = r"(?:Member (\S+)|MemberId (\S+?)\] Member's) new assignment state: epoch=(\d+), .*state=STABLE"
    stable = defaultdict(list)
    for time, match in matches(result.log, states):
        stable[int(match[3])].append(time)
    expected = causes(result.log)
    steady = [event for event in only(result.events, RebalanceEnded) if event.outcome == "steady"]
    assert len({one.generation for one in steady}) == len(steady)
    for event in steady:
        assert event.generation is not None
        assert any(near(event.ended_ns, time, 1) for time in stable[event.generation]), event
        # A pattern resolves, or a share group's partitions are initialized, after the join that it is for.
        allowed = expected[event.generation] or {"assignment_changed", "new_member", "first_member"}
        assert event.cause in allowed, (event, allowed)
        assert (event.length_ns or 0) < 2 * SECOND


@pytest.mark.parametrize("name", MODERN)
def test_assignments(name: str) -> None:
    result = recorded(name)
    targets = {}
    for _, match in matches(result.log, r"target assignment for epoch (\d+) .*?in \d+ms: (\{.*\})"):
        targets[int(match[1])] = assigned(match[2], result.names)
    checked = 0
    for event in only(result.events, RebalanceEnded):
        if event.outcome == "steady" and event.generation in targets:
            ours: dict[str, Any] = {
                assignment.member_id: {*map(tuple, assignment.partitions)} for assignment in event.assignments
            }
            assert ours == targets[event.generation], event.generation
            checked += 1
    assert checked >= 3


def assigned(text: str, names: TopicsById) -> dict[str, set[tuple[str, int]]]:
    """The log's assignment of each member: {member=MemberAssignment(partitions={topic=[0, 1]})}, of a streams
    group {member=(active=[0-0, 0-1], …)}."""
    result = {}
    for member, parts in re.findall(r"([^\s,{}=]+)=MemberAssignment\(partitions=\{(.*?)\}\)", text):
        result[member] = {
            (names.name_of(topic), int(number))
            for topic, numbers in re.findall(r"(\S+)=\[(.*?)\]", parts)
            for number in numbers.split(", ")
        }
    for member, tasks in re.findall(r"([^\s,{}=]+)=\(active=\[(.*?)\]", text):
        result[member] = {
            (task.rpartition("-")[0], int(task.rpartition("-")[2])) for task in tasks.split(", ") if task
        }
    return result


# --- what any timeline keeps


@pytest.mark.parametrize("name", GROUPS)
def test_rebalances_begin_and_end_once(name: str) -> None:
    events = recorded(name).events
    assert len(only(events, RebalanceBegan)) == len(only(events, RebalanceEnded))
    for event in only(events, RebalanceEnded):
        assert event.idle_ns >= 0
        assert all(one.since_ns <= one.until_ns for one in event.idle)


@pytest.mark.parametrize("name", GROUPS)
@pytest.mark.parametrize("part", ["middle", "requests", "responses", "holes"])
def test_a_part_of_a_capture_is_survived(name: str, part: str) -> None:
    """One that begins in the middle, one with one side only, one with packets missing."""
    data = lzma.decompress((DATA / f"kafka-4.4.0__{name}.pcap.xz").read_bytes())
    packets, at = [], 24
    while at < len(data):
        size = int.from_bytes(data[at + 8 : at + 12], "little")
        packets.append(data[at : at + 16 + size])
        at += 16 + size
    kept = {
        "middle": packets[len(packets) // 2 :],
        "requests": [packet for packet in packets if port(packet, 36) in (39192, 39193)],
        "responses": [packet for packet in packets if port(packet, 34) in (39192, 39193)],
        "holes": [packet for number, packet in enumerate(packets) if number % 29],
    }[part]
    events = list(timeline(Capture(BytesIO(data[:24] + b"".join(kept)), name).entries()))
    assert len(only(events, RebalanceBegan)) == len(only(events, RebalanceEnded))


def port(packet: bytes, at: int) -> int:
    return int.from_bytes(packet[16 + at : 18 + at], "big")
