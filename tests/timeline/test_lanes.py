"""The picture of a story: where its bars are, what is in it of recordings, what is escaped and left out."""

from __future__ import annotations

import io
import lzma
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from coordwire.capture import Capture
from coordwire.timeline import timeline
from coordwire.timeline.events import (
    BrokerAway,
    CoordinatorStalled,
    GroupEvent,
    Idle,
    MemberJoined,
    MemberLeft,
    RebalanceEnded,
)
from coordwire.timeline.story import lanes
from coordwire.timeline.story.collected import CollectedEvents
from coordwire.timeline.story.contents import StoryContents
from coordwire.timeline.story.lanes import AWAY, GAP, LANE, MEMBER, REBALANCE, lanes_svg

DATA = Path(__file__).parents[1] / "data"
SECOND = 1_000_000_000
START = 1_795_249_012 * SECOND
EVIL = "</title></svg><script>alert(1)</script>\"'><img onerror=alert(1)>\x1b[31m\u202e"


def at(seconds: float, group: str = "g") -> dict[str, Any]:
    return {"group": group, "time_ns": START + round(seconds * SECOND), "source": "x", "number": 1}


def joined(seconds: float, member: str, client: str = "till", instance: str | None = None) -> GroupEvent:
    return MemberJoined(
        **at(seconds), kind="classic", member_id=member, client_id=client, host=None, instance_id=instance,
        rejoined=instance is not None,
    )  # fmt: skip


def left(seconds: float, member: str) -> GroupEvent:
    return MemberLeft(**at(seconds), member_id=member, client_id="till")


def rebalance(begin: float, end: float, gaps: int = 0, topic: str = "t", member: str = "a") -> GroupEvent:
    idle = tuple(
        Idle(topic, number, START + round(begin * SECOND), START + round(end * SECOND))
        for number in range(gaps)
    )
    began_ns, ended_ns = START + round(begin * SECOND), START + round(end * SECOND)
    return RebalanceEnded(
        **at(end), kind="classic", outcome="steady", cause="new_member", member_id=member, inferred=False,
        detail="", began_ns=began_ns, joined_ns=None, ended_ns=ended_ns, length_ns=ended_ns - began_ns,
        generation_before=1, generation=2, protocol=None, leader=None, members=("a",), last_to_join=None,
        assignments=(), moved=(), idle=idle,
    )  # fmt: skip


def drawn(events: list[GroupEvent]) -> ElementTree.Element:
    (group,) = CollectedEvents(events).groups.values()
    return ElementTree.fromstring(lanes_svg(StoryContents(group)))


def bars(picture: ElementTree.Element, colour: str) -> list[tuple[float, float, int]]:
    """Where bars of a colour begin, how wide they are, in percent, and at how many pixels from the top."""
    rects = [rect for rect in picture.iter("rect") if rect.get("fill") == colour]
    return [
        (float(rect.attrib["x"][:-1]), float(rect.attrib["width"][:-1]), int(rect.attrib["y"]))
        for rect in rects
    ]


def texts(picture: ElementTree.Element) -> list[str]:
    return ["".join(text.itertext()) for text in picture.iter("text")]


def test_bars_are_at_their_times() -> None:
    events = [
        joined(0, "a"),
        joined(25, "b"),
        left(50, "b"),
        rebalance(50, 60, 1),
        joined(75, "b"),
        left(100, "a"),
    ]
    picture = drawn(events)
    top = lanes.TOP + 16
    assert sorted(bars(picture, MEMBER)) == [
        (0, 100, top), (25, 25, top + LANE), (75, 25, top + LANE),
    ]  # fmt: skip
    assert bars(picture, REBALANCE) == [(50, 10, lanes.TOP)]
    assert bars(picture, GAP) == [(50, 10, top + 2 * LANE)]
    assert [text for text in texts(picture) if text[0] in "#t"] == ["#1 (till)", "#2 (till)", "t-0"]
    tips = [title.text or "" for title in picture.iter("title")]
    assert "rebalance 1, 08:17:42.0: #1 (till) joins, 10.0 s" in tips
    assert "no consumer for 10.0 s from 08:17:42.0" in tips
    assert "in 08:17:17.0, left 08:17:42.0" in tips


def test_a_static_member_hands_its_lane_over() -> None:
    picture = drawn([joined(0, "a", instance="i"), joined(40, "b", instance="i"), left(100, "b")])
    top = lanes.TOP + 16
    assert sorted(bars(picture, MEMBER)) == [(0, 40, top), (40, 60, top + LANE)]


def test_a_coordinator_that_is_away_or_silent() -> None:
    stalled = CoordinatorStalled(
        **at(2), broker="b:1", until_ns=START + 4 * SECOND, answered_by="b:1", requests=1, packets=()
    )
    away = BrokerAway(**at(6), broker="b:1", until_ns=None, answered_by=None, connections=1, packets=())
    picture = drawn([joined(0, "a"), stalled, away, left(10, "a")])
    assert bars(picture, AWAY) == [(60, 40, lanes.TOP), (20, 20, lanes.TOP)]
    tips = [title.text for title in picture.iter("title")]
    assert {"coordinator b:1 answers nothing", "coordinator b:1 away"} <= set(tips)


def test_names_are_only_texts() -> None:
    events = [joined(0, EVIL, EVIL), rebalance(1, 5, 1, EVIL, EVIL), left(9, EVIL)]
    picture = drawn(events)  # which has to be well-formed
    assert {element.tag for element in picture.iter()} == {"svg", "text", "tspan", "rect", "line", "title"}
    assert not any("\x1b" in text or "\u202e" in text for text in picture.itertext())
    assert any(text.startswith("#1 (</title>") for text in texts(picture))


def test_what_is_left_out_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanes, "MOST_MARKS", 30)
    events = [joined(number / 10, f"m{number}") for number in range(100)]
    events += [rebalance(20 + number, 20.5 + number, 20) for number in range(50)]
    picture = drawn(events)
    assert texts(picture)[-1] == "not shown: 76 members, 12 partitions, 20 rebalances, 370 gaps"
    assert len(bars(picture, MEMBER)) == lanes.MOST_MEMBERS
    assert len(bars(picture, GAP)) == len(bars(picture, REBALANCE)) == 30


def test_no_time_no_picture() -> None:
    for events in ([joined(0, "a")], [rebalance(0, 5)]):
        (group,) = CollectedEvents(events).groups.values()
        assert lanes_svg(StoryContents(group)) == ""


@pytest.mark.parametrize(
    "name", ["stories/classic-freezes", "outages/broker-killed", "stories/classic-static"]
)
def test_a_recording(name: str) -> None:
    """Every member has a lane, every rebalance a band, every gap a bar, and all are inside."""
    capture = Capture(io.BytesIO(lzma.decompress((DATA / f"{name}.pcap.xz").read_bytes())), "x", lazy=True)
    for group in CollectedEvents(timeline(capture.entries_and_ends(), ends=True)).groups.values():
        contents = StoryContents(group)
        picture = ElementTree.fromstring(lanes_svg(contents))
        assert len(bars(picture, REBALANCE)) == len(contents.rows)
        gaps = sum(len(part.idle) for row in contents.rows for part in row.parts)
        assert len(bars(picture, GAP)) == gaps
        named = {text.split(" ")[0] for text in texts(picture) if text.startswith("#")}
        assert named == {f"#{number}" for number in contents.numbers.numbers.values()}
        for colour in (MEMBER, REBALANCE, GAP):
            assert all(0 <= x <= x + width <= 100.01 for x, width, _ in bars(picture, colour))
        assert re.fullmatch(r"display:block;width:100%;height:\d+px;margin:.5em 0", picture.attrib["style"])
