"""The lines of plain frames are those of the slow path."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from coordwire._speedups import native
from coordwire.capture.entries import Entry, FrameEntry
from coordwire.capture.formats.pcap import as_pcap
from coordwire.capture.jsonlines import line
from coordwire.capture.plain_lines import MOST_PLACES, PlainJsonLines
from coordwire.capture.redaction import entry_secrets
from coordwire.capture.redaction.entry_secrets import NOTHING, withheld
from coordwire.frames import encode_request
from coordwire.messages import LeaveGroupRequest
from coordwire.messages.leave_group import MemberIdentity
from tests.capture.samples import CAPTURES, traffic, traffic_rows
from tests.capture.test_lazy import broken, read
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
def test_a_leave_group_that_names_its_group_is_judged_by_its_text(monkeypatch: pytest.MonkeyPatch) -> None:
    names = "", "g", '"', "\\", "\0", "é"
    messages = [
        LeaveGroupRequest(group_id=group, members=[MemberIdentity(member_id=member)])
        for group in names
        for member in names
    ]
    frames = [
        (number, 0, False, encode_request(message, version=5, correlation_id=number, client_id="c"))
        for number, message in enumerate(messages)
    ]
    by_text = read(as_pcap(frames), lazy=True)
    judged = [withheld(entry) for entry in by_text if isinstance(entry, FrameEntry)]
    monkeypatch.setattr(entry_secrets, "_names_group", lambda entry: False)
    by_message = read(as_pcap(frames), lazy=True)
    assert judged == [withheld(entry) for entry in by_message if isinstance(entry, FrameEntry)]
    assert len(judged) == len(names) ** 2
    assert 0 < judged.count(NOTHING) < len(judged)


def entry_key(entry: Entry) -> int | None:
    return entry.api_key if isinstance(entry, FrameEntry) else None


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.stem)
@with_texts
def test_runs_have_the_same_lines(path: Path) -> None:
    data = path.read_bytes()
    for content in (data, damaged(data, random.Random(path.name))):
        singles, runs = (PlainJsonLines(show_secrets=False) for _ in range(2))
        entries = read(content, lazy=True)
        expected = [singles.line(entry, 6) for entry in read(content, lazy=True)]
        stops = frozenset(key for key in map(entry_key, entries[:3]) if key is not None)
        at = 0
        while at < len(entries):
            assert runs.run is not None
            text, after = runs.run(entries, at, 6, stops)
            assert text == "".join(map(str, expected[at:after]))
            if after < len(entries) and len(text) < 1 << 16:
                assert expected[after] is None or entry_key(entries[after]) in stops
            at = after + 1


@with_texts
def test_a_run_ends_where_its_text_is_long() -> None:
    lines = PlainJsonLines(show_secrets=False)
    assert lines.run is not None
    entries = [entry for entry in read(traffic(2_000), lazy=True) if lines.line(entry, 9) is not None]
    text, after = lines.run(entries, 0, 9, frozenset())
    assert 1 << 16 <= len(text) < 1 << 17
    assert after == text.count("\n") < len(entries)
    assert lines.run(entries, len(entries), 9, frozenset()) == ("", len(entries))
    with pytest.raises(TypeError):
        lines.run(entries, 0, 10, frozenset())


@with_texts
def test_places_are_bounded() -> None:
    lines = PlainJsonLines(show_secrets=False)
    entry = next(entry for entry in read(traffic(20), lazy=False) if lines.line(entry, 9) is not None)
    lines._places.update(dict.fromkeys(range(-MOST_PLACES, 0), (None, "", "", "", "")))
    assert isinstance(entry, FrameEntry)
    entry.flow = "another > flow"
    assert '"flow":"another > flow"' in str(lines.line(entry, 9))
    assert len(lines._places) == 1
