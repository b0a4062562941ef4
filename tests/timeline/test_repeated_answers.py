"""Answers that are known by their bytes or their text: the same stories as from reading each of them."""

from __future__ import annotations

import io
import lzma
import random
from collections.abc import Iterator
from itertools import chain, islice
from operator import itemgetter
from pathlib import Path
from uuid import UUID

import pytest

from coordwire.capture.body_text import body_text
from coordwire.capture.entries import Entry, FrameEntry
from coordwire.capture.formats.pcap import as_pcap
from coordwire.capture.frame_decoding import LazyEntry
from coordwire.capture.reader import Capture
from coordwire.codec import Message
from coordwire.frames import encode_request, encode_response
from coordwire.messages import (
    FetchRequest,
    FetchResponse,
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
    MetadataResponse,
)
from coordwire.messages.fetch import FetchableTopicResponse, PartitionData
from coordwire.messages.metadata import MetadataResponseTopic
from coordwire.timeline.events import GroupEvent, TopicPartition
from coordwire.timeline.from_wire import group_conversations, repeated_answers
from coordwire.timeline.from_wire.cluster_timeline import ClusterTimeline
from coordwire.timeline.from_wire.group_table import TopicsById
from coordwire.timeline.from_wire.timeline import USED_APIS, Timeline, timeline
from tests.bench import group_traffic
from tests.capture.test_walks import HEADER, damaged, records

DATA = Path(__file__).parents[1] / "data"
CAPTURES = sorted((DATA / "captures").glob("*.pcap"))
RECORDED = sorted((DATA / "groups").glob("*.pcap.xz"))
DAMAGED = sorted((DATA / "engines").glob("*.pcap.xz"))


def read(data: bytes, *, lazy: bool = True) -> list[Entry]:
    return list(Capture(io.BytesIO(data), "x", lazy=lazy).entries())


def story(data: bytes, *, lazy: bool = True) -> list[GroupEvent]:
    """Of the entries in the lists in which they are read."""
    whole = Timeline(ends=True)
    batches = Capture(io.BytesIO(data), "x", lazy=lazy).batches()
    return [*chain.from_iterable(map(whole.feed_all, batches)), *whole.finish()]


def slow(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(repeated_answers, "LONGEST", -1)
    patch.setattr(group_conversations, "has_no_codes", lambda entry: False)


def slow_story(data: bytes, monkeypatch: pytest.MonkeyPatch) -> list[GroupEvent]:
    """Each frame read, and nothing known by its bytes."""
    with monkeypatch.context() as patch:
        slow(patch)
        return list(timeline(Capture(io.BytesIO(data), "x").entries_and_ends(), ends=True))


@pytest.mark.parametrize("path", [*CAPTURES, *DAMAGED], ids=lambda path: path.stem)
def test_stories_of_captures(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = path.read_bytes() if path in CAPTURES else lzma.decompress(path.read_bytes())
    for one in (data, damaged(data, random.Random(path.name))):
        assert story(one) == slow_story(one, monkeypatch)


def at_the_same_time(paths: list[Path], *, lazy: bool) -> list[GroupEvent]:
    """The story of captures whose first frames are of one time."""
    turns = []
    for number, path in enumerate(paths):
        data = lzma.decompress(path.read_bytes())
        entries = list(Capture(io.BytesIO(data), f"x{number}", lazy=lazy).entries_and_ends())
        first_ns = entries[0].time_ns or 0
        turns += [((entry.time_ns or 0) - first_ns, number, at, entry) for at, entry in enumerate(entries)]
    return list(timeline((entry for *_, entry in sorted(turns, key=itemgetter(0, 1, 2))), ends=True))


@pytest.mark.parametrize("seed", range(4))
def test_stories_of_captures_at_the_same_time(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """They have groups, members, clients and topics in common."""
    paths = random.Random(seed).sample(RECORDED, 3)
    events = at_the_same_time(paths, lazy=True)
    slow(monkeypatch)
    assert events == at_the_same_time(paths, lazy=False)
    assert len({event.source for event in events}) == 3


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
    data = made(chance, 2_500 if mostly == "heartbeats" else 1_000, mostly)
    expected = slow_story(data, monkeypatch)
    assert len(expected) > 100
    assert story(data) == expected


def test_frames_that_say_nothing_of_groups_are_not_decoded() -> None:
    story_of = ClusterTimeline(ends=True)
    counts = {False: 0, True: 0}
    for path in CAPTURES:
        for entry in read(path.read_bytes()):
            list(story_of.feed(entry))
            if isinstance(entry, FrameEntry) and entry.api_key == 71:
                counts[type(entry) is FrameEntry] += 1
    assert counts == {False: 8, True: 0}


@pytest.mark.parametrize("path", [*CAPTURES, *DAMAGED], ids=lambda path: path.stem)
def test_frames_whose_text_is_known(path: Path) -> None:
    data = path.read_bytes() if path in CAPTURES else lzma.decompress(path.read_bytes())
    for one in (data, damaged(data, random.Random(path.name))):
        entries = list(Capture(io.BytesIO(one), "x", lazy=True).entries_and_ends())
        for entry in entries:
            if isinstance(entry, LazyEntry):
                body_text(entry)
        assert list(timeline(entries, ends=True)) == story(one)


def flipped(data: bytes, rng: random.Random) -> bytes:
    """Bits flipped in some frames, behind their first bytes."""
    kept = list(records(data))
    for at, record in enumerate(kept):
        if len(record) > 110 and rng.random() < 0.2:
            byte = rng.randrange(100, len(record))
            kept[at] = record[:byte] + bytes([record[byte] ^ 1 << rng.randrange(8)]) + record[byte + 1 :]
    return data[:HEADER] + b"".join(kept)


def refused(entries: list[Entry]) -> list[tuple[int, str, int]]:
    """Of entries of APIs that a timeline draws on, what can be seen of them without decoding more."""
    return [
        (entry.number, str(entry.error), len(entry.deviations))
        for entry in entries
        if type(entry) is FrameEntry and entry.api_key in USED_APIS and (entry.error or entry.deviations)
    ]


def requests(entries: list[Entry]) -> list[Entry]:
    return [entry for entry in entries if isinstance(entry, FrameEntry) and entry.direction == "request"]


@pytest.mark.parametrize("are_unanswered", [False, True])
@pytest.mark.parametrize("knows_texts", [False, True])
def test_what_was_refused_is_decoded(knows_texts: bool, are_unanswered: bool) -> None:
    count = 0
    for path in CAPTURES:
        data = flipped(path.read_bytes(), random.Random(path.name))
        entries = read(data)
        for entry in entries:
            if knows_texts and isinstance(entry, LazyEntry):
                body_text(entry)
        eager = read(data, lazy=False)
        if are_unanswered:
            entries, eager = map(requests, (entries, eager))
        Timeline(ends=True).feed_all(entries)
        expected = refused(eager)
        assert refused(entries) == expected
        count += len(expected)
    assert count > (2 if are_unanswered else 20)


def exchange(request: Message, answer: Message, damage: str | None) -> bytes:
    """A request and its answer, one of which may lack its last byte."""
    frames = {
        "request": encode_request(request, version=request.versions[-1], correlation_id=7, client_id="till"),
        "answer": encode_response(answer, version=request.versions[-1], correlation_id=7),
    }
    cut = {
        side: (len(frame) - 5).to_bytes(4) + frame[4:-1] if side == damage else frame
        for side, frame in frames.items()
    }
    return as_pcap([(0, 1, False, cut["request"]), (1, 1, True, cut["answer"])])


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize(("damage", "is_known"), [(None, True), ("request", False), ("answer", False)])
def test_a_connection_is_known_by_any_exchange_that_can_be_read(
    damage: str | None, is_known: bool, lazy: bool
) -> None:
    data = exchange(GetTelemetrySubscriptionsRequest(), GetTelemetrySubscriptionsResponse(), damage)
    story_of = ClusterTimeline(ends=True)
    entries = read(data, lazy=lazy)
    assert [entry.api_key for entry in entries if isinstance(entry, FrameEntry)] == [71, 71]
    story_of.feed_all(entries)
    assert story_of._ends is not None
    assert (story_of._ends.knows(entries[0]) is not None) is is_known  # type: ignore[arg-type]


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize(("damage", "is_known"), [(None, True), ("request", False), ("answer", False)])
def test_an_end_is_known_by_a_fetch_that_can_be_read(damage: str | None, is_known: bool, lazy: bool) -> None:
    partition = PartitionData(partition_index=0, high_watermark=5)
    answer = FetchResponse(responses=[FetchableTopicResponse(topic_id=UUID(int=1), partitions=[partition])])
    story_of = ClusterTimeline()
    story_of.feed_all(read(exchange(FetchRequest(), answer, damage), lazy=lazy))
    assert story_of._commits.lag.has_ends is is_known


def test_a_repeated_answer_is_read_again_once_a_topic_has_another_name() -> None:
    partition = PartitionData(partition_index=0, high_watermark=5)
    answer = FetchResponse(responses=[FetchableTopicResponse(topic_id=UUID(int=1), partitions=[partition])])
    entry = read(exchange(FetchRequest(), answer, None))[1]
    assert isinstance(entry, FrameEntry)
    names, ends = TopicsById(), [(TopicPartition("orders", 0), 5)]
    repeated = repeated_answers.RepeatedAnswers(names)
    assert repeated.find(entry) is None
    repeated.remember(entry, ends)
    assert repeated.find(entry) == ends
    names.learn(MetadataResponse(topics=[MetadataResponseTopic(name="payments", topic_id=UUID(int=1))]))
    assert repeated.find(entry) is None
    names.learn(MetadataResponse(topics=[MetadataResponseTopic(name="orders", topic_id=UUID(int=1))]))
    repeated.remember(entry, ends)
    assert repeated.find(entry) is None
