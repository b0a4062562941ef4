"""The timeline of Kafka 0.8.2.2's own ZooKeeper consumers, from the wire, against what their nodes were."""

from __future__ import annotations

import io
import json
import lzma
from pathlib import Path
from typing import Any

import pytest

from coordwire.capture import Capture, FrameEntry
from coordwire.dialects import ConnectionDialect
from coordwire.timeline.events import GroupEvent, MemberJoined, MemberLeft, OffsetCommitted, RebalanceEnded
from coordwire.timeline.from_wire.timeline import timeline

DATA = Path(__file__).parents[1] / "data" / "zookeeper"
HISTORIES = sorted(path.name.removesuffix(".pcap.xz") for path in DATA.glob("consumers-*.pcap.xz"))
ZOOKEEPER = ConnectionDialect("zookeeper")

State = tuple[frozenset[str], frozenset[tuple[str, int, str]]]
"""A group's consumers, and who owns which partition."""


def steps(name: str) -> list[dict[str, Any]]:
    lines = map(json.loads, lzma.decompress((DATA / f"{name}.jsonl.xz").read_bytes()).splitlines())
    return [line for line in lines if line["kind"] == "step"]


def captured(name: str) -> list[Any]:
    data = io.BytesIO(lzma.decompress((DATA / f"{name}.pcap.xz").read_bytes()))
    return list(Capture(data, name, alternative=ZOOKEEPER).entries_and_ends())


def events_of(name: str) -> list[GroupEvent]:
    return list(timeline(captured(name), ends=True, dialect=ZOOKEEPER))


def groups_of(step: dict[str, Any]) -> dict[str, State]:
    """The groups' states, by the nodes."""
    ids: dict[str, set[str]] = {}
    owners: dict[str, set[tuple[str, int, str]]] = {}
    for node in step["nodes"]:
        parts = node["path"].split("/")[1:]
        if parts[0] == "consumers" and len(parts) == 4 and parts[2] == "ids":
            ids.setdefault(parts[1], set()).add(parts[3])
        elif parts[0] == "consumers" and len(parts) == 5 and parts[2] == "owners":
            consumer = node["data"].rpartition("-")[0]
            owners.setdefault(parts[1], set()).add((parts[3], int(parts[4]), consumer))
    names = ids.keys() | owners.keys()
    return {name: (frozenset(ids.get(name, ())), frozenset(owners.get(name, ()))) for name in names}


def states(events: list[GroupEvent]) -> dict[str, list[State]]:
    """The states after each rebalance, by group."""
    result: dict[str, list[State]] = {}
    for event in events:
        if isinstance(event, RebalanceEnded):
            owned = {
                (p.topic, p.partition, row.member_id) for row in event.assignments for p in row.partitions
            }
            members = frozenset(row.member_id for row in event.assignments)
            result.setdefault(event.group, []).append((members, frozenset(owned)))
    return result


@pytest.mark.parametrize("name", HISTORIES)
def test_all_frames_are_read(name: str) -> None:
    result = captured(name)
    frames = [entry for entry in result if isinstance(entry, FrameEntry)]
    assert len(frames) > 2000
    assert {entry.dialect for entry in frames} == {"zookeeper"}
    assert not [entry for entry in frames if entry.error is not None or entry.deviations]


@pytest.mark.parametrize("name", HISTORIES)
def test_groups_are_what_the_nodes_were_at_each_quiet_point(name: str) -> None:
    """Each state of the nodes, in its order, is one that the timeline has after a rebalance."""
    of_timeline = {group: iter(state) for group, state in states(events_of(name)).items()}
    before: dict[str, State] = {}
    compared = 0
    for step in steps(name):
        for group, state in groups_of(step).items():
            if state == before.get(group, (frozenset(), frozenset())):
                continue
            before[group] = state
            compared += 1
            assert state in of_timeline[group], (step["step"], step["action"], state)
    assert compared >= 6


@pytest.mark.parametrize("name", HISTORIES)
def test_members_come_and_go_as_their_nodes(name: str) -> None:
    events = events_of(name)
    joined = [event.member_id for event in events if isinstance(event, MemberJoined)]
    departures = [(event.member_id, event.how) for event in events if isinstance(event, MemberLeft)]
    ids = {consumer for step in steps(name) for state in groups_of(step).values() for consumer in state[0]}
    assert ids <= set(joined)
    actions = [action for step in steps(name) for action in step["action"].get("actions", [step["action"]])]
    killed = sum(action["do"] == "kill" for action in actions)
    assert sum(how == "session_timeout" for _, how in departures) >= min(killed, 1)


@pytest.mark.parametrize("name", HISTORIES)
def test_commits_are_the_offsets_nodes(name: str) -> None:
    committed = {
        (event.group, event.topic, event.partition): event.offset
        for event in events_of(name)
        if isinstance(event, OffsetCommitted)
    }
    nodes = {}
    for node in steps(name)[-1]["nodes"]:
        parts = node["path"].split("/")[1:]
        if parts[0] == "consumers" and len(parts) == 5 and parts[2] == "offsets":
            nodes[parts[1], parts[3], int(parts[4])] = int(node["data"])
    assert nodes
    assert nodes == committed
