"""Recordings with parts missing: cut, thinned, out of order, of one side, at random places.

What is said of such a recording must hold by itself (`story_invariants`), and must not be what the
coordinator's log denies: a member that never was, one that went when it was in, a generation that never was.
A few places are tried by default; `long` tries two hundred of each recording.
"""

from __future__ import annotations

import io
import json
import lzma
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import pytest

from coordwire.capture.reader import Capture
from coordwire.timeline import timeline
from coordwire.timeline.events import GroupEvent, MemberJoined, MemberLeft, RebalanceEnded
from tests.timeline.derived import Packet, packets, written
from tests.timeline.story_invariants import broken

STORIES = Path(__file__).parent.parent / "data" / "stories"
NAMES = sorted(path.stem for path in STORIES.glob("*.json"))
FEW = ("classic-freezes", "classic-static", "consumer-freezes", "cooperative-deaths", "share-causes")
PLACES, ALL_PLACES = 3, 50
"""Of each way."""

SLACK_MS = 1500
ONE_SIDE_MS = 2000
"""The same where one side is missing: what a member sent may show by its answers alone."""

AWAY_MS = 8000
"""The same of a broker that restarts: if its side is missing, nothing shows that all sessions began again."""

FOUND = (
    ("classic-causes", "thinned", 7),
    ("classic-causes", "thinned", 11),
    ("classic-cooperative", "thinned", 13),
    ("classic-cooperative", "one side", 23),
    ("classic-franz", "one side", 41),
    ("classic-franz", "one side", 21),
    ("classic-freezes", "one side", 24),
    ("classic-freezes", "one side", 26),
    ("classic-python", "thinned", 18),
    ("classic-python", "thinned", 1),
    ("classic-raw", "one side", 6),
    ("classic-refused", "one side", 9),
    ("classic-refused", "thinned", 16),
    ("consumer-causes", "thinned", 37),
    ("consumer-freezes", "thinned", 11),
    ("conversions", "one side", 23),
    ("conversions", "thinned", 35),
    ("share-causes", "thinned", 33),
    ("streams-causes", "thinned", 19),
    ("streams-standby", "thinned", 9),
)
"""What was wrong once: an answer that came late was taken for what happens now."""

WAYS = ("cut", "thinned", "reordered", "one side")


def mutilated(capture: bytes, way: str, random: Random) -> tuple[bytes, int]:
    """The capture, and the time of its last packet in nanoseconds."""
    every = packets(capture)
    first, last = sorted((random.randrange(len(every)), random.randrange(len(every))))
    match way:
        case "cut":
            kept = every[first:] if random.random() < 0.5 else every[:last]
        case "thinned":
            share = random.choice((0.01, 0.03, 0.1))
            kept = [packet for packet in every if random.random() > share]
        case "reordered":
            kept = list(reordered(every, random))
        case _:
            requests = random.random() < 0.5
            kept = [
                packet
                for number, packet in enumerate(every)
                if not first <= number < last or packet.to_broker is requests
            ]
    kept = kept or every[:1]
    return written(capture, kept), max(packet.micros for packet in kept) * 1000


def reordered(every: list[Packet], random: Random) -> Iterator[Packet]:
    """Some packets are captured up to 4 ms later."""
    late = [(packet.micros + (4000 if random.random() < 0.15 else 0), packet) for packet in every]
    for micros, packet in sorted(late, key=lambda row: row[0]):
        yield packet._replace(micros=micros)


def events_of(capture: bytes) -> list[GroupEvent]:
    entries = Capture(io.BytesIO(capture), "mutilated").entries_and_ends()
    return list(timeline(entries, ends=True))


def denied(events: list[GroupEvent], truth: dict[str, Any], slack_ms: int) -> Iterator[str]:
    """What the log denies, which knows the members, when they went, and all generations. slack_ms: by how
    much a time may be early."""
    for event in events:
        facts = truth.get(event.group)
        if facts is None:
            continue
        names = {fact["member"] for fact in (*facts["joined"], *facts["left"])} | set(facts["members"])
        if isinstance(event, MemberJoined) and event.member_id not in names:
            yield f"{event.member_id} was never in"
        elif isinstance(event, MemberLeft) and event.how == "session_timeout":
            times = [fact["time"] for fact in facts["left"] if fact["member"] == event.member_id]
            at_ms = (event.time_ns or 0) // 1_000_000
            if not times or at_ms < min(times) - slack_ms:
                yield f"{event.member_id} timed out at {at_ms}, it went at {times}"
        elif isinstance(event, RebalanceEnded) and event.outcome == "steady" and facts["kind"] != "streams":
            numbers = {fact["generation"] for fact in facts["generations"]}
            if event.generation is not None and numbers and event.generation > max(numbers):
                yield f"generation {event.generation} never was"


@cache
def recorded(name: str) -> tuple[bytes, dict[str, Any]]:
    """A recording, and the truth about its groups."""
    capture = lzma.decompress((STORIES / f"{name}.pcap.xz").read_bytes())
    truth: dict[str, Any] = json.loads((STORIES / f"{name}.json").read_text())["groups"]
    return capture, truth


def problems(name: str, way: str, place: int) -> list[str]:
    capture, truth = recorded(name)
    damaged, last_ns = mutilated(capture, way, Random(f"{name} {way} {place}"))
    events = events_of(damaged)
    slack_ms = SLACK_MS
    if way == "one side":
        slack_ms = AWAY_MS if name.endswith("-restart") else ONE_SIDE_MS
    texts = [*broken(events, last_ns, is_whole=False), *denied(events, truth, slack_ms)]
    return [f"{name}, {way} {place}: {text}" for text in texts]


def check(name: str, places: int) -> list[str]:
    return [text for way in WAYS for place in range(places) for text in problems(name, way, place)]


@pytest.mark.parametrize("name", FEW)
def test_nothing_is_said_that_the_log_denies(name: str) -> None:
    assert check(name, PLACES) == []


@pytest.mark.parametrize(("name", "way", "place"), FOUND)
def test_what_was_wrong_once(name: str, way: str, place: int) -> None:
    assert problems(name, way, place) == []


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_said_that_the_log_denies_at_many_places(name: str) -> None:
    assert check(name, ALL_PLACES) == []


def test_whole_recordings_break_no_invariant() -> None:
    kinds: Counter[str] = Counter()
    for name in FEW:
        capture = lzma.decompress((STORIES / f"{name}.pcap.xz").read_bytes())
        events = events_of(capture)
        assert list(broken(events, packets(capture)[-1].micros * 1000)) == []
        kinds.update(type(event).__name__ for event in events)
    assert min(kinds["MemberJoined"], kinds["MemberLeft"], kinds["RebalanceEnded"]) > 20


def test_a_broken_invariant_is_found() -> None:
    capture = lzma.decompress((STORIES / "classic-freezes.pcap.xz").read_bytes())
    events = events_of(capture)
    last_ns = packets(capture)[-1].micros * 1000
    (gone, *_) = [event for event in events if isinstance(event, MemberLeft)]
    assert any("after it went" in text for text in broken([*events, gone], last_ns))
    assert any("after the input's end" in text for text in broken(events, last_ns // 2))
