"""The lines of plain frames are those of the slow path."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from coordwire._speedups import native
from coordwire.capture.entries import FrameEntry
from coordwire.capture.formats.pcap import as_pcap
from coordwire.capture.jsonlines import line
from coordwire.capture.plain_lines import MOST_PLACES, PlainJsonLines
from tests.capture.test_lazy import broken, read
from tests.capture.test_share import CAPTURES, traffic, traffic_rows
from tests.capture.test_walks import damaged

with_texts = pytest.mark.skipif(native is None, reason="no native extension, which makes the texts")


def plain_count(data: bytes, *, digits: int, show_secrets: bool) -> int:
    """How many entries have a plain line; each is compared."""
    lines = PlainJsonLines(show_secrets=show_secrets)
    count = 0
    for eager, lazy in zip(read(data, lazy=False), read(data, lazy=True), strict=True):
        text = lines.line(lazy, digits)
        assert lines.line(eager, digits) == text
        if text is not None:
            count += 1
            assert text == line(eager, digits, show_secrets=show_secrets)
    return count


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.stem)
def test_plain_lines_of_captures(path: Path) -> None:
    data = path.read_bytes()
    plain_count(data, digits=6, show_secrets=False)
    plain_count(damaged(data, random.Random(path.name)), digits=9, show_secrets=True)


@pytest.mark.parametrize("seed", range(20))
def test_plain_lines_of_frames_that_are_refused(seed: int) -> None:
    chance = random.Random(seed)
    frames = [(n, c, back, broken(chance, data)) for n, c, back, data in traffic_rows(20)]
    plain_count(as_pcap(frames), digits=seed % 10, show_secrets=bool(seed % 2))


@with_texts
def test_most_frames_of_groups_are_plain() -> None:
    data = traffic(300)
    frames = [entry for entry in read(data, lazy=True) if isinstance(entry, FrameEntry)]
    assert plain_count(data, digits=9, show_secrets=False) > 0.8 * len(frames)


@with_texts
def test_places_are_bounded() -> None:
    lines = PlainJsonLines(show_secrets=False)
    entry = next(entry for entry in read(traffic(20), lazy=False) if lines.line(entry, 9) is not None)
    lines._places.update(dict.fromkeys(range(-MOST_PLACES, 0), (None, "", "", "", "")))
    assert isinstance(entry, FrameEntry)
    entry.flow = "another > flow"
    assert '"flow":"another > flow"' in str(lines.line(entry, 9))
    assert len(lines._places) == 1
