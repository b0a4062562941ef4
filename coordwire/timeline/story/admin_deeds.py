"""What others than a group's members did to it: deleted or converted it, set its offsets, changed its topics
and settings, took a producer's transactional id; and what followed, where a rebalance's cause names it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from coordwire.capture.printable import shown
from coordwire.timeline.events import (
    GroupConfigured,
    GroupConverted,
    GroupDeleted,
    GroupEvent,
    OffsetReset,
    ProducerFenced,
    RebalanceEnded,
    TopicChanged,
)
from coordwire.timeline.story.event_lines import (
    deletion_text,
    fenced_text,
    reset_text,
    settings_text,
    topic_text,
)
from coordwire.timeline.story.incident import Incident, gap_text, packets_text
from coordwire.timeline.story.member_numbers import MemberNumbers
from coordwire.timeline.story.rebalance_table import TableRow
from coordwire.timeline.story.wording import clock
from coordwire.timeline.topic_changes import TOPIC_DEEDS

__all__ = ["deeds"]

COSTLY_NS = 1_000_000_000
"""A topic that was created or enlarged is an incident if partitions had no consumer for so long."""

MOST_RESETS = 6
"""So many partitions of one request are named."""


def deeds(
    events: Sequence[GroupEvent], rows: Sequence[TableRow], numbers: MemberNumbers
) -> Iterator[Incident]:
    """All of a group's."""
    yield from _conversions(events, numbers)
    yield from _resets(events)
    yield from _fenced(events, numbers)
    yield from _changes(events, rows)


def _conversions(events: Iterable[GroupEvent], numbers: MemberNumbers) -> Iterator[Incident]:
    for event in events:
        if isinstance(event, GroupConverted):
            by = f" by {numbers.name(event.member_id)}" if event.member_id else ""
            text = f"the {event.kind_before} group goes on as a {event.kind} group{by}"
            yield Incident(event.time_ns or 0, [text])
        elif isinstance(event, GroupDeleted):
            yield Incident(event.time_ns or 0, [deletion_text(event) + packets_text([event.packet])])


def _resets(events: Iterable[GroupEvent]) -> Iterator[Incident]:
    """Committed offsets that an admin set back or deleted, once a request."""
    requests: dict[tuple[str, int], list[OffsetReset]] = {}
    for event in events:
        if isinstance(event, OffsetReset):
            requests.setdefault((event.source, event.number), []).append(event)
    for resets in requests.values():
        first = resets[0]
        text = ", ".join(map(reset_text, resets[:MOST_RESETS]))
        text += f" and {len(resets) - MOST_RESETS:,} more" if len(resets) > MOST_RESETS else ""
        by = f" by {shown(first.client_id)}" if first.client_id else ""
        yield Incident(
            first.time_ns or 0, [f"committed offsets changed{by}: {text}{packets_text([first.packet])}"]
        )


def _changes(events: Iterable[GroupEvent], rows: Sequence[TableRow]) -> Iterator[Incident]:
    """Topics and settings that an admin changed; and what follows, where its cause names the topic."""
    followers: defaultdict[str, list[tuple[int, RebalanceEnded]]] = defaultdict(list)
    for row in rows:
        for number, part in zip(row.numbers, row.parts, strict=True):
            followers[part.detail.partition(";")[0]].append((number, part))
    for event in events:
        if isinstance(event, GroupConfigured):
            yield Incident(event.time_ns or 0, [settings_text(event) + packets_text([event.packet])])
        elif isinstance(event, TopicChanged):
            change, packet = f"topic {event.topic} {TOPIC_DEEDS[event.deed]}", packets_text([event.packet])
            cost_ns, cost = _costs(followers.get(change + packet) or followers.get(change) or [])
            if event.deed == "deleted" or cost_ns >= COSTLY_NS:  # else the rebalance says it
                yield Incident(event.time_ns or 0, [topic_text(event) + packet, *cost], cost_ns)


def _costs(followers: Sequence[tuple[int, RebalanceEnded]]) -> tuple[int, list[str]]:
    """What the rebalances of some numbers cost, which follow from a topic's change."""
    if not followers:
        return 0, []
    first, last = followers[0][0], followers[-1][0]
    numbers = f" {first} follows" if first == last else f"s {first} to {last} follow"
    cost_ns, cost = gap_text(gap for _, part in followers for gap in part.idle)
    return cost_ns, [f"rebalance{numbers} from it", *cost]


def _fenced(events: Iterable[GroupEvent], numbers: MemberNumbers) -> Iterator[Incident]:
    """Producers whose transactional id another one has."""
    for event in events:
        if isinstance(event, ProducerFenced):
            text = fenced_text(event, numbers.name(event.member_id), clock)
            yield Incident(event.time_ns or 0, [text + packets_text(event.packets)])
