"""The kept runs of the drafts: every message decodes, encodes back, and is a part of the timeline."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from coordwire.capture import Capture, FrameEntry
from coordwire.cli.__main__ import main
from coordwire.designs.simulator.drafts import DRAFT_DESIGNS
from coordwire.dialects import ConnectionDialect
from coordwire.dialects.grammar import CALLS
from coordwire.dialects.zookeeper import Broker, Coordinator, Offset, Owner, Registration, Topic, parse_node
from coordwire.timeline import MemberJoined, RebalanceEnded, timeline
from tests.designs.drafts.kept_runs import DRAFTS, MEMBERS, RUNS, capture, nodes


def kept(draft: str) -> Path:
    return RUNS / f"{draft}.pcap"


def frames(draft: str) -> list[FrameEntry]:
    stream = io.BytesIO(kept(draft).read_bytes())
    entries = list(Capture(stream, draft, dialect=ConnectionDialect(DRAFT_DESIGNS[draft])).entries())
    assert all(isinstance(entry, FrameEntry) for entry in entries)
    return [entry for entry in entries if isinstance(entry, FrameEntry)]


@pytest.mark.parametrize("draft", DRAFTS)
def test_every_message_decodes_and_encodes_back(draft: str) -> None:
    """Those with offsets also without: the fields are not there if a consumer does not commit."""
    seen, versions = set(), set()
    for entry in frames(draft):
        assert entry.error is None
        assert entry.message is not None
        assert entry.call is not None
        seen.add(type(entry.message).__name__)
        data = entry.call.encode(entry.message, entry.direction, version=entry.api_version or 0)
        assert data[4:] == entry.body
        versions.add((type(entry.message).__name__, entry.api_version or 0))
    calls = [one for one in CALLS[DRAFT_DESIGNS[draft]] if one.name != "CommitOffset"]  # only on request
    assert seen == {call.request for call in calls} | {call.response for call in calls if call.response}
    kinds = {
        "draft-1": ["Draft1PingResponse"],
        "draft-2": ["Draft2PingResponse", "Draft2StopFetcherResponse"],
    }
    assert {(kind, number) for kind in kinds.get(draft, ()) for number in (0, 1)} <= versions


@pytest.mark.parametrize("draft", DRAFTS)
def test_the_timeline_has_the_members_and_their_partitions(draft: str) -> None:
    events = list(timeline(frames(draft), dialect=ConnectionDialect(DRAFT_DESIGNS[draft])))
    assert {event.group for event in events} == {"group"}
    assert len({event.member_id for event in events if isinstance(event, MemberJoined)}) >= MEMBERS
    last = [event for event in events if isinstance(event, RebalanceEnded)][-1]
    owned = {
        (partition.topic.partition("/")[0], partition.partition)
        for row in last.assignments
        for partition in row.partitions
    }
    assert owned == {("orders", number) for number in range(3)}


@pytest.mark.parametrize("draft", DRAFTS)
def test_the_commands_show_them(draft: str, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert main(["decode", str(kept(draft)), "--dialect", draft, "--format", "json"]) == 0
    lines = capfdbinary.readouterr().out.splitlines()
    apis = {json.loads(line)["api"] for line in lines}
    assert len(apis) == len([one for one in CALLS[DRAFT_DESIGNS[draft]] if one.name != "CommitOffset"])
    assert main(["timeline", str(kept(draft)), "--dialect", draft, "--format", "story"]) == 0
    story = capfdbinary.readouterr().out.decode()
    assert story.splitlines()[1].startswith("── group ")
    assert "rebalance" in story


def test_what_is_left_in_zookeeper_parses_and_builds_to_the_same_bytes() -> None:
    remaining = json.loads((RUNS / "zookeeper-nodes.json").read_text())
    seen = set()
    for path, text in (one for found in remaining.values() for one in found.items()):
        node = parse_node(path, text)
        seen.add(type(node))
        assert node.build() == text.encode(), path
    assert seen == {Broker, Coordinator, Offset, Owner, Registration, Topic}


def test_the_command_makes_such_runs() -> None:
    for draft in DRAFTS:
        assert len(capture(draft)) > len(kept(draft).read_bytes()) / 2
    assert {type(parse_node(*one)) for one in nodes("zookeeper").items()} >= {Registration, Owner, Offset}
