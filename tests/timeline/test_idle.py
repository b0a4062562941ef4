"""No partition is idle while a member that is in fetches it: gaps against the Fetch requests of recordings.

Strategy: every Fetch that names a partition, with its client and time, is looked for in the gaps that the
timeline reports of that partition. Rules: a Fetch counts if its client is a member's at that time, by its
client id and address; a request under way when a member falls silent, or asks to join again, is within the
slack.
"""

from __future__ import annotations

import io
import lzma
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from coordwire.capture.entries import FrameEntry
from coordwire.capture.reader import Capture
from coordwire.timeline import timeline
from coordwire.timeline.consumer_data import id_text
from coordwire.timeline.events import GroupEvent, MemberJoined, MemberLeft, RebalanceEnded
from coordwire.versions import ApiKey

STORIES = Path(__file__).parent.parent / "data" / "stories"
NAMES = sorted(path.name.removesuffix(".pcap.xz") for path in STORIES.glob("c*.pcap.xz"))
SLACK_NS = 1_000_000_000


class Fetched(NamedTuple):
    """When a client named a partition in a Fetch."""

    time_ns: int
    client: tuple[str | None, str]


class Stay(NamedTuple):
    """When a member was in."""

    since_ns: int
    until_ns: int


def client_of(client_id: str | None, host: str | None) -> tuple[str | None, str]:
    return client_id, (host or "").rpartition(":")[0]


def fetches(entries: list[Any]) -> dict[tuple[str, int], list[Fetched]]:
    names: dict[str, str] = {}
    for entry in entries:
        if (
            isinstance(entry, FrameEntry)
            and entry.api_key == ApiKey.METADATA
            and entry.direction == "response"
        ):
            topics: Any = getattr(entry.message, "topics", ())
            names.update({id_text(topic.topic_id): topic.name for topic in topics if topic.name})
    fetched: dict[tuple[str, int], list[Fetched]] = defaultdict(list)
    for entry in entries:
        if (
            not isinstance(entry, FrameEntry)
            or entry.api_key != ApiKey.FETCH
            or entry.direction == "response"
        ):
            continue
        client = client_of(entry.client_id, entry.flow.partition(" > ")[0])
        message: Any = entry.message
        for topic in message.topics:
            name = topic.topic or names.get(id_text(topic.topic_id), "")
            for partition in topic.partitions:
                fetched[name, partition.partition].append(Fetched(entry.time_ns or 0, client))
    return fetched


def stays(events: list[GroupEvent], last_ns: int) -> dict[tuple[str | None, str], list[Stay]]:
    within: dict[str, MemberJoined] = {}
    every: dict[tuple[str | None, str], list[Stay]] = defaultdict(list)

    def ends(member_id: str, time_ns: int) -> None:
        join = within.pop(member_id, None)
        if join is not None:
            every[client_of(join.client_id, join.host)].append(Stay(join.time_ns or 0, time_ns))

    for event in events:
        if isinstance(event, MemberJoined):
            ends(event.member_id, event.time_ns or 0)
            within[event.member_id] = event
        elif isinstance(event, MemberLeft):
            ends(event.member_id, event.time_ns or 0)
    for member_id in list(within):
        ends(member_id, last_ns)
    return every


def wrong_gaps(
    events: list[GroupEvent], fetched: dict[tuple[str, int], list[Fetched]], last_ns: int
) -> Iterator[str]:
    """The gaps of one group in which a member that was in fetched the partition."""
    within = stays(events, last_ns)
    for event in events:
        for gap in event.idle if isinstance(event, RebalanceEnded) else ():
            for time_ns, client in fetched[gap.topic, gap.partition]:
                is_inside = gap.since_ns + SLACK_NS < time_ns < gap.until_ns - SLACK_NS
                is_in = any(stay.since_ns <= time_ns < stay.until_ns for stay in within[client])
                if is_inside and is_in:
                    yield f"{gap.topic}-{gap.partition} is idle, and {client} fetched it"


@pytest.mark.parametrize("name", NAMES)
def test_no_partition_is_idle_while_its_owner_fetches(name: str) -> None:
    capture = lzma.decompress((STORIES / f"{name}.pcap.xz").read_bytes())
    entries = list(Capture(io.BytesIO(capture), name).entries_and_ends())
    events = list(timeline(entries, ends=True))
    fetched, last_ns = fetches(entries), max(entry.time_ns or 0 for entry in entries)
    gaps = [gap for event in events if isinstance(event, RebalanceEnded) for gap in event.idle]
    assert gaps
    assert any(fetched[gap.topic, gap.partition] for gap in gaps)
    for group in {event.group for event in events}:
        own = [event for event in events if event.group == group]
        assert list(wrong_gaps(own, fetched, last_ns)) == []


def test_a_wrong_gap_is_found() -> None:
    """As if the members that were in had fetched what nobody had."""
    capture = lzma.decompress((STORIES / "classic-restart.pcap.xz").read_bytes())
    events = list(timeline(Capture(io.BytesIO(capture), "x").entries_and_ends(), ends=True))
    gaps = [gap for event in events if isinstance(event, RebalanceEnded) for gap in event.idle]
    gap = max(gaps, key=lambda gap: gap.until_ns - gap.since_ns)
    middle_ns = (gap.since_ns + gap.until_ns) // 2
    clients = stays(events, 1 << 63)
    fetched = defaultdict(
        list, {(gap.topic, gap.partition): [Fetched(middle_ns, client) for client in clients]}
    )
    assert list(wrong_gaps(events, fetched, 1 << 63))
