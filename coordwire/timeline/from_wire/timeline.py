"""Recorded traffic to the timelines of groups: `timeline` reads entries and yields what happened.

Strategy: each cluster has a timeline of its own (`cluster_timeline`), which the entries of its connections go
to; while only one is known (`clusters`), that has all of them, at no cost. Rules: events name their cluster
once there are two; a `ClusterFound` says of which cluster the events before that are. An entry without a
connection is the first cluster's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain
from typing import Any

from coordwire.capture.entries import ConnectionSign, Entry, FrameEntry
from coordwire.connection.dialect import KAFKA
from coordwire.errors import UnreadableRange, counted
from coordwire.timeline.events import ClusterFound, GroupEvent
from coordwire.timeline.from_wire.cluster_timeline import (
    SECOND_CLUSTER,
    USED_APIS,
    ClusterTimeline,
    DialectGroups,
    TimelineDialect,
)
from coordwire.timeline.from_wire.clusters import CLUSTER_APIS, Clusters, FoundCluster
from coordwire.timeline.from_wire.group_frames import message_of

__all__ = ["USED_APIS", "DialectGroups", "Timeline", "TimelineDialect", "timeline"]

MOST_FLOWS = 10_000


def timeline(
    entries: Iterable[Entry | ConnectionSign], *, ends: bool = False, dialect: TimelineDialect | None = None
) -> Iterator[GroupEvent]:
    """The events of groups in the entries of one or several captures, in their order.

    Entries come in the order of time; those of several captures may be mixed. ends: whether they have the
    ends of connections among them (`Capture.entries_and_ends`), for `MemberLeft.ending`. dialect: the
    captures', if it is not Kafka's; frames of any other dialect add nothing.
    """
    story = Timeline(ends=ends, dialect=dialect)
    feed = story.feed
    for entry in entries:
        if events := feed(entry):  # most frames have none
            yield from events
    yield from story.finish()


class Timeline:
    """The events of groups, entry by entry: `timeline` gives those of all entries at once.

    >>> from coordwire.broker.harness import Kafka
    >>> from coordwire.client import connect_sync
    >>> from coordwire.messages import ConsumerGroupHeartbeatRequest
    >>> from coordwire.timeline import Timeline
    >>> join = ConsumerGroupHeartbeatRequest(
    ...     group_id="g",
    ...     member_id="m",
    ...     rebalance_timeout_ms=9,
    ...     subscribed_topic_names=["orders"],
    ...     topic_partitions=[],
    ... )
    >>> timeline = Timeline()
    >>> with Kafka() as kafka, connect_sync(kafka.bootstrap) as client:
    ...     _ = client.request(join)
    ...     events = [event for entry in kafka.traffic.entries() for event in timeline.feed(entry)]
    >>> timeline
    <Timeline: 1 group>
    """

    def __init__(self, *, ends: bool = False, dialect: TimelineDialect | None = None) -> None:
        self._ends = ends
        self._dialect = dialect
        self._clusters = Clusters()
        self._first = ClusterTimeline(ends=ends, dialect=dialect, clusters=self._clusters)
        self._further: dict[FoundCluster, ClusterTimeline] = {}
        self._flows: dict[tuple[str, str, str | None], tuple[ClusterTimeline, FoundCluster]] = {}
        self._changes = 0
        self._seen_ahead: set[int] = set()  # answers by their bytes, which are read once

    def look_ahead(self, entries: Iterable[Entry | ConnectionSign]) -> bool:
        """Learn of clusters from entries that are fed later. Gives whether there was an answer that shows
        one. Raises nothing."""
        has_shown = False
        for entry in entries:
            if not isinstance(entry, FrameEntry) or entry.api_key not in CLUSTER_APIS:
                continue
            repeated = hash((entry.capture, entry.flow, entry.api_version, entry.body[4:]))
            if (entry.body and repeated in self._seen_ahead) or (message := _showing(entry)) is None:
                continue
            self._seen_ahead.add(repeated)
            self._clusters.learn(entry, message, ahead=True)
            has_shown = True
        if self._clusters.several:
            self._first.clusters = None
        return has_shown

    def __repr__(self) -> str:
        number = sum(cluster.group_count for cluster in (self._first, *self._further.values()))
        return f"<Timeline: {counted(number, 'group')}>"

    def feed_all(self, entries: Iterable[Entry | ConnectionSign]) -> list[GroupEvent]:
        """The events of some entries, as `feed` gives them one by one."""
        events: list[GroupEvent] = []
        if not self._clusters.several:
            entries = iter(entries)
            events = self._first.feed_all(entries)
            if self._first.second is None:
                return events
            entries = chain((self._first.second,), entries)
        for entry in entries:
            events += self._of_cluster(entry)
        return events

    def feed(self, entry: Entry | ConnectionSign) -> Iterable[GroupEvent]:
        """The events of one entry. They must be drawn before the next entry is fed."""
        if not self._clusters.several:
            events = self._first.feed(entry)
            if events is not SECOND_CLUSTER:
                return events
        return self._of_cluster(entry)

    def finish(self) -> Iterator[GroupEvent]:
        """The events that only the end of the input shows."""
        if not self._clusters.several:
            yield from self._first.finish()
            return
        for cluster in self._clusters.every:
            story = self._first if cluster.number == 0 else self._further.get(cluster)
            if story is not None:
                yield from _named(story.finish(), cluster)

    # --- several clusters ---

    def _of_cluster(self, entry: Entry | ConnectionSign) -> list[GroupEvent]:
        """The events of one entry, where there are several clusters."""
        events = self._split(entry) if self._first.clusters is not None else []
        if isinstance(entry, FrameEntry) and (message := _showing(entry)) is not None:
            self._clusters.learn(entry, message)
        story, cluster = self._story_of(entry)
        events += _named(story.feed(entry), cluster)
        return events

    def _split(self, entry: Entry | ConnectionSign) -> list[GroupEvent]:
        """There is a second cluster: what came before is the first one's."""
        self._first.clusters = self._first.second = None
        return [
            ClusterFound(
                group="", time_ns=entry.time_ns, packet=entry.packet, cluster=self._clusters.every[0].name,
                source=entry.file if isinstance(entry, UnreadableRange) else entry.capture,
                number=entry.number if isinstance(entry, FrameEntry) else 0,
            )
        ]  # fmt: skip

    def _story_of(self, entry: Entry | ConnectionSign) -> tuple[ClusterTimeline, FoundCluster]:
        """The timeline that an entry goes to, and its cluster."""
        if self._changes != self._clusters.changes or len(self._flows) > MOST_FLOWS:
            self._flows.clear()
            self._changes = self._clusters.changes
        key = _connection_of(entry)
        known = self._flows.get(key)
        if known is None:
            known = self._flows[key] = self._find(*key)
        return known

    def _find(self, capture: str, flow: str, client_id: str | None) -> tuple[ClusterTimeline, FoundCluster]:
        sender, _, receiver = flow.partition(" > ")
        if self._clusters.is_broker(capture, sender) and not self._clusters.is_broker(capture, receiver):
            flow = f"{receiver} > {sender}"
        cluster = self._clusters.of(capture, flow, client_id) if flow else None
        if cluster is None or cluster.number == 0:
            return self._first, self._clusters.every[0]
        if cluster not in self._further:
            self._further[cluster] = ClusterTimeline(ends=self._ends, dialect=self._dialect)
        return self._further[cluster], cluster


def _showing(entry: FrameEntry) -> Any:
    """The message of an answer that shows clusters, read whole; None of any other."""
    request: Any = entry.request
    if entry.api_key not in CLUSTER_APIS or request is None or entry.dialect != KAFKA:
        return None
    message = message_of(entry)
    return None if message is None or request.message is None or request.error is not None else message


def _connection_of(entry: Entry | ConnectionSign) -> tuple[str, str, str | None]:
    """The capture of an entry, its connection in one of its directions, and the client."""
    if isinstance(entry, UnreadableRange):
        return entry.file, entry.flow, None
    if isinstance(entry, FrameEntry):
        return entry.capture, (entry.request or entry).flow, entry.client_id
    return entry.capture, entry.flow, None


def _named(events: Iterable[GroupEvent], cluster: FoundCluster) -> list[GroupEvent]:
    return [replace(event, cluster=cluster.name) for event in events]
