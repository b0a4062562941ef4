"""Frames that are known by their bytes or their text: the same stories as from reading each of them."""

from __future__ import annotations

import io
import lzma
import random
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path

import pytest

from coordwire._speedups import native
from coordwire.capture.entries import Entry, FrameEntry
from coordwire.capture.formats.pcap import as_pcap
from coordwire.capture.reader import Capture
from coordwire.timeline.events import GroupEvent
from coordwire.timeline.from_wire import steady_beats
from coordwire.timeline.from_wire import timeline as wire_timeline
from coordwire.timeline.from_wire.timeline import Timeline, timeline
from tests.bench import group_traffic
from tests.capture.test_walks import damaged

DATA = Path(__file__).parents[1] / "data"
CAPTURES = sorted((DATA / "captures").glob("*.pcap"))
DAMAGED = sorted((DATA / "engines").glob("*.pcap.xz"))


def read(data: bytes, *, lazy: bool = True) -> list[Entry]:
    return list(Capture(io.BytesIO(data), "x", lazy=lazy).entries())


def story(data: bytes, *, lazy: bool = True) -> list[GroupEvent]:
    """Of the entries in the lists in which they are read."""
    whole = Timeline(ends=True)
    batches = Capture(io.BytesIO(data), "x", lazy=lazy).batches()
    return [*chain.from_iterable(map(whole.feed_all, batches)), *whole.finish()]


def slow_story(data: bytes, monkeypatch: pytest.MonkeyPatch) -> list[GroupEvent]:
    """Each frame read, and nothing known by its bytes."""
    with monkeypatch.context() as patch:
        patch.setattr(steady_beats, "LONGEST", -1)
        patch.setattr(wire_timeline, "LONG", -1)
        patch.setattr(wire_timeline, "has_no_codes", lambda entry: False)
        return list(timeline(Capture(io.BytesIO(data), "x").entries_and_ends(), ends=True))


@pytest.mark.parametrize("path", [*CAPTURES, *DAMAGED], ids=lambda path: path.stem)
def test_stories_of_captures(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = path.read_bytes() if path in CAPTURES else lzma.decompress(path.read_bytes())
    for one in (data, damaged(data, random.Random(path.name))):
        assert story(one) == slow_story(one, monkeypatch)


def made(chance: random.Random, frames: int, mostly: str = "heartbeats") -> bytes:
    """Groups' traffic, with frames that are missing, come twice, late or long after the frame before."""

    def rows() -> Iterator[tuple[int, int, bool, bytes]]:
        now = 0
        for time_ns, connection, back, frame in islice(group_traffic.traffic(mostly), frames):
            drawn = chance.random()
            now += chance.choice((0, 0, 0, 0, 3_000_000_000, 90_000_000_000)) if drawn < 0.004 else 0
            if frame and drawn > 0.995:
                continue
            if frame and drawn > 0.985:
                at = chance.randrange(4, len(frame))
                frame = frame[:at] + bytes([frame[at] ^ 1 << chance.randrange(8)]) + frame[at + 1 :]
            yield now + time_ns, connection, back, frame

    return as_pcap(rows())


@pytest.mark.parametrize(("seed", "mostly"), [*enumerate(group_traffic.MIXES), (4, "heartbeats")])
def test_stories_of_made_traffic(seed: int, mostly: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_traffic, "GROUPS", 8)
    chance = random.Random(seed)
    if seed % 2:
        monkeypatch.setattr(steady_beats, "MOST", 5)
    data = made(chance, 2_500 if mostly == "heartbeats" else 1_000, mostly)
    expected = slow_story(data, monkeypatch)
    assert len(expected) > 100
    assert story(data) == expected


def test_steady_heartbeats_are_not_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_traffic, "GROUPS", 8)
    data = as_pcap(islice(group_traffic.traffic(), 6_000))
    story_of, beats, read_ones = Timeline(), 0, 0
    for entry in read(data):
        list(story_of.feed(entry))
        if isinstance(entry, FrameEntry) and entry.api_key in (12, 68) and entry.number > 1_500:
            beats += 1
            read_ones += type(entry) is FrameEntry
    assert beats > 1_000
    assert read_ones < beats / 5


@pytest.mark.skipif(native is None, reason="the native engine isn't built, or Python is forced")
def test_frames_that_say_nothing_of_groups_are_not_decoded() -> None:
    story_of = Timeline()
    counts = {False: 0, True: 0}
    for path in CAPTURES:
        for entry in read(path.read_bytes()):
            list(story_of.feed(entry))
            if isinstance(entry, FrameEntry) and (entry.api_key, entry.direction) == (1, "request"):
                counts[type(entry) is FrameEntry] += 1
    assert counts[False] > 10 * counts[True]
