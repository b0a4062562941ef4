"""Shares of the groups: their events together are those of one timeline, in its order."""

from __future__ import annotations

import heapq
import io
import lzma
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, partial
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import pytest

from coordwire.capture.entries import FrameEntry
from coordwire.capture.formats.pcap import as_pcap
from coordwire.capture.reader import Capture
from coordwire.capture.rotation import rejoined_batches
from coordwire.dialects.alternative import find_alternative
from coordwire.errors import DecodeError
from coordwire.timeline.events import GroupEvent, MemberLeft
from coordwire.timeline.from_wire import shares
from coordwire.timeline.from_wire.shares import Key, MergedShares, Question, ShareOfGroups
from coordwire.timeline.from_wire.timeline import Timeline
from coordwire.timeline.sightings import MemberName
from tests.bench.group_traffic import traffic
from tests.capture.test_walks import damaged
from tests.growth import assert_linear

DATA = Path(__file__).parent.parent / "data"
RECORDINGS = sorted(path for path in DATA.rglob("*.pcap*") if path.stat().st_size < 1 << 20)
SECOND = 1_000_000_000

Part = tuple[list[tuple[Key, str]], list[Question]]
Batches = Callable[[], Iterator[Any]]


@cache
def content(path: Path) -> bytes:
    data = path.read_bytes()
    return lzma.decompress(data) if path.suffix == ".xz" else data


def entries(data: bytes, name: str = "x") -> Iterator[list[Any]]:
    """Of a capture, up to what can't be read."""
    capture = Capture(io.BytesIO(data), name, lazy=True, alternative=find_alternative("kafka"))
    try:
        yield from capture.batches()
    except DecodeError:
        return


def of_one_reader(batches: Batches) -> list[GroupEvent]:
    story = Timeline(ends=True, dialect=find_alternative("kafka"))
    return [event for batch in batches() for event in story.feed_all(batch)] + list(story.finish())


def together(batches: Batches, count: int) -> list[GroupEvent]:
    """The events of so many shares, of which each reads entries of its own."""
    readers = [ShareOfGroups(index, count, dialect=find_alternative("kafka")) for index in range(count)]
    merge, events = MergedShares(), list[GroupEvent]()
    for parts in zip(*(batches() for _ in readers), strict=True):
        for reader, part in zip(readers, parts, strict=True):
            reader.feed_share(part)
        if readers[0].entries % 7 < 5:  # else they are taken later
            events += merge.merged([reader.take() for reader in readers])
    for reader in readers:
        reader.finish_share()
    events += merge.merged([reader.take() for reader in readers])
    return events


def check(batches: Batches, count: int) -> list[GroupEvent]:
    expected = of_one_reader(batches)
    assert together(batches, count) == expected
    return expected


def mixed(seed: int) -> Iterator[Any]:
    """The entries of several recordings at the same time, which have groups, connections and clients in
    common; some are damaged, or lack frames."""
    rng = Random(seed)
    streams = []
    for number in range(rng.randrange(2, 7)):
        data = content(rng.choice(RECORDINGS))
        if data[:4] == b"\xd4\xc3\xb2\xa1" and rng.random() < 0.3:
            data = damaged(data, rng)
        lost, begins_ns = rng.choice((0, 0, 0.002, 0.03)), rng.randrange(20) * SECOND
        stream = [entry for batch in entries(data, f"x{number}") for entry in batch]
        first_ns = next((entry.time_ns for entry in stream if entry.time_ns is not None), 0)
        streams.append(
            [
                moved(entry, 1_000_000_000 * SECOND + begins_ns - first_ns)
                for entry in stream
                if rng.random() >= lost
            ]
        )
    merged = list(heapq.merge(*streams, key=lambda entry: entry.time_ns or 0))
    while merged:
        size = rng.choice((1, 5, 100, 1000))
        yield merged[:size]
        merged = merged[size:]


def moved(entry: Any, by_ns: int) -> Any:
    if entry.time_ns is None:
        return entry
    if isinstance(entry, FrameEntry):
        entry.time_ns += by_ns
        return entry
    change = entry._replace if hasattr(entry, "_replace") else partial(replace, entry)
    return change(time_ns=entry.time_ns + by_ns)


def check_mixed(seed: int) -> int:
    """How many groups there were."""
    count = 2 + seed % 3
    return len({event.group for event in check(lambda: rejoined_batches(mixed(seed)), count)})


SEEDS = (9, 27)
NAMES = (
    "stories/classic-static.pcap.xz",
    "stories/consumer-freezes.pcap.xz",
    "groups/java__kafka-4.3.0__groups.pcap.xz",
    "outages/broker-killed.pcap.xz",
)


@pytest.mark.parametrize("name", NAMES)
def test_shares_of_recordings_together(name: str) -> None:
    assert len(check(partial(entries, content(DATA / name)), 2)) > 5


@pytest.mark.slow
@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.name)
def test_shares_of_any_recording_together(path: Path) -> None:
    for count in (2, 3):
        check(partial(entries, content(path)), count)


def test_shares_of_recordings_at_the_same_time() -> None:
    assert sum(check_mixed(seed) for seed in SEEDS) > 8


@pytest.mark.long
def test_shares_of_many_recordings_at_the_same_time() -> None:
    assert sum(check_mixed(seed) for seed in range(1_000, 1_250)) > 1_000


@pytest.mark.slow
@pytest.mark.parametrize("mostly", ["joins", "heartbeats", "commits", "fetches"])
def test_shares_of_many_groups_together(mostly: str) -> None:
    data = as_pcap(islice(traffic(mostly), 6_000))
    rng = Random(mostly)
    for part in (data, damaged(data, rng), damaged(data, rng)):
        events = check(partial(entries, part), rng.choice((2, 3, 5)))
        assert len({event.group for event in events}) == 60


def test_groups_beyond_those_that_are_dealt_out_go_by_their_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shares, "MOST_DEALT", 5)
    data = as_pcap(islice(traffic("joins"), 600))
    assert len({event.group for event in check(partial(entries, data), 3)}) > 20


def test_a_client_of_members_of_several_shares() -> None:
    """Which can't be a dead member's own, as another share's member has it too, or had."""
    dead, living, client = MemberName("g", "a"), MemberName("h", "b"), ("10.0.0.1", "c")

    def ends(*before: Question) -> list[str]:
        question = Question((9,), dead, None, 1, "shared")
        first: Part = [((1,), "joined"), ((9,), "own")], [Question((1,), dead, client), question]
        second: Part = [((2,), "other")], list(before)
        return list(MergedShares().merged([first, second]))

    joins, leaves = Question((2,), living, client), Question((3,), living)
    assert ends() == ["joined", "other", "own"]
    assert ends(joins) == ends(joins, leaves) == ["joined", "other", "shared"]
    assert ends(Question((0,), living, client), Question((0,), living)) == ["joined", "other", "own"]


def test_recorded_members_share_clients() -> None:
    """The recordings at the same time have what a share can't know."""
    open_questions = 0
    for seed in SEEDS:
        reader = ShareOfGroups(0, 2)
        for batch in rejoined_batches(mixed(seed)):
            reader.feed_share(batch)
        reader.finish_share()
        events, questions = reader.take()
        for question in questions:
            if question.alternative is not None:
                open_questions += 1
                own_event: Any = events[question.position][1]
                assert isinstance(own_event, MemberLeft)
                assert replace(own_event, ending=None) == replace(question.alternative, ending=None)
    assert open_questions


@pytest.mark.growth
@pytest.mark.parametrize("mostly", ["joins", "fetches"])
def test_shares_take_time_that_is_linear(mostly: str) -> None:
    def batches(n: int) -> list[bytes]:
        return [as_pcap(islice(traffic(mostly), n))]

    def read(datas: list[bytes]) -> None:
        together(partial(entries, datas[0]), 2)

    assert_linear(batches, read, 4_000)
