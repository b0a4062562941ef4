"""What a capture lacks: an event of the members whose connections it is, and a line in the story."""

from __future__ import annotations

import io
import lzma
from pathlib import Path

import pytest

from coordwire.capture.reader import Capture
from coordwire.cli.__main__ import main
from coordwire.timeline import timeline
from coordwire.timeline.events import CaptureHole, GroupEvent, MemberJoined
from tests.timeline.derived import begins_late, loses, packets, snapped, written

STORY = Path(__file__).parent.parent / "data" / "stories" / "classic-freezes.pcap.xz"


@pytest.fixture(scope="module")
def capture() -> bytes:
    return lzma.decompress(STORY.read_bytes())


def events_of(capture: bytes) -> list[GroupEvent]:
    return list(timeline(Capture(io.BytesIO(capture), "x").entries_and_ends(), ends=True))


def holes(capture: bytes) -> list[CaptureHole]:
    return [event for event in events_of(capture) if isinstance(event, CaptureHole)]


def test_lost_packets_are_holes_of_the_members_whose_connections_they_are_of(capture: bytes) -> None:
    damaged = loses(capture)
    lost = holes(damaged)
    dropped = _payload(capture) - _payload(damaged)
    assert len(lost) > 10
    assert 0 < sum(hole.size for hole in lost) <= dropped
    members = {event.member_id for event in events_of(damaged) if isinstance(event, MemberJoined)}
    assert {hole.member_id for hole in lost} <= members
    assert [hole.time_ns for hole in lost] == sorted(hole.time_ns or 0 for hole in lost)
    assert all(":" in hole.flow for hole in lost)


def _payload(capture: bytes) -> int:
    return sum(packet.payload for packet in packets(capture))


@pytest.mark.parametrize("change", [bytes, begins_late, snapped])
def test_nothing_else_is_a_hole(capture: bytes, change: type[bytes]) -> None:
    """A whole capture has none, nor has one that begins late, or whose packets are cut short."""
    assert holes(change(capture)) == []


def test_one_lost_packet(capture: bytes) -> None:
    every = packets(capture)
    group_key = next(event for event in events_of(capture) if isinstance(event, MemberJoined)).group
    beats = [n for n, packet in enumerate(every) if packet.to_broker and group_key.encode() in packet.data]
    number = beats[len(beats) // 2]
    (hole,) = holes(written(capture, [packet for n, packet in enumerate(every) if n != number]))
    assert (hole.group, hole.size) == (group_key, every[number].payload)


def test_the_story_says_it_once_a_group(
    capture: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "lossy.pcap"
    path.write_bytes(loses(capture))
    main(["timeline", "--format", "story", str(path)])
    story = " ".join(capsys.readouterr().out.split())
    assert story.count("the capture lacks") == 1
    assert "nothing is concluded from that" in story
    main(["timeline", "--format", "story", "--errors", "--events", str(path)])
    assert capsys.readouterr().out.count("the capture lacks") == len(holes(loses(capture)))
