"""Answers that wait for requests which the capture lacks: the reader says at once that it holds them."""

from __future__ import annotations

import io
import lzma
from pathlib import Path

import pytest

from coordwire.capture.entries import AnswerHeld, FrameEntry
from coordwire.capture.reader import Capture
from tests.timeline.derived import packets, written

STORY = Path(__file__).parent.parent / "data" / "stories" / "classic-freezes.pcap.xz"


def read(capture: bytes) -> list[object]:
    return list(Capture(io.BytesIO(capture), "x").entries_and_ends())


@pytest.fixture(scope="module")
def capture() -> bytes:
    return lzma.decompress(STORY.read_bytes())


def test_a_whole_capture_holds_none(capture: bytes) -> None:
    assert not any(isinstance(entry, AnswerHeld) for entry in read(capture))


def test_each_answer_is_named_before_it_is_given_out(capture: bytes) -> None:
    every = packets(capture)
    middle = len(every) // 2
    kept = [packet for number, packet in enumerate(every) if number < middle or not packet.to_broker]
    held: set[tuple[int | None, int | None]] = set()
    late = 0
    for entry in read(written(capture, kept)):
        if isinstance(entry, AnswerHeld):
            assert entry.flow.split(" > ")[1].startswith("127.0.0.1")
            held.add((entry.time_ns, entry.packet))
        elif isinstance(entry, FrameEntry) and entry.direction == "response" and entry.request is None:
            assert (entry.time_ns, entry.packet) in held
            late += 1
    assert late > 50


def test_only_who_asks_for_connections_is_told(capture: bytes) -> None:
    every = packets(capture)
    kept = [packet for number, packet in enumerate(every) if number < 100 or not packet.to_broker]
    entries = list(Capture(io.BytesIO(written(capture, kept)), "x").entries())
    assert not any(isinstance(entry, AnswerHeld) for entry in entries)
