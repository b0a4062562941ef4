"""Where what a timeline tells differs from what happened in a history.

Strategy: the timeline's events go through their JSON and back. What the coordinator knows of each group is
compared as `tests.coordinator.stories` does, from one deletion of the group to the next; the invariants of
all stories hold; and what only the world knows is compared here: stalls and deaths of brokers, ends of
members' connections, deleted groups, and which topic's records a lag was measured by. `gaps` compares the
partitions without a consumer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from coordwire.capture.entries import FrameEntry
from coordwire.timeline import timeline
from coordwire.timeline.event_json import event_json, read_event
from coordwire.timeline.events import (
    BrokerAway,
    CoordinatorStalled,
    GroupConverted,
    GroupDeleted,
    GroupEvent,
    LagMeasured,
    MemberJoined,
    MemberLeft,
    RebalanceEnded,
)
from tests.coordinator.stories.causes import Difference
from tests.coordinator.stories.comparison import Comparison
from tests.coordinator.stories.events import MS, ns
from tests.timeline.histories.cluster import Span
from tests.timeline.histories.gaps import gap_differences
from tests.timeline.histories.script import END, History
from tests.timeline.story_invariants import broken

__all__ = ["Compared"]

NEAR_MS = 1_000
"""Between when a broker went or stalled, and when a request or a connection's end shows it."""

LATE_MS = 2_000
"""A request that waits for so long shows that its broker stalls."""

BY_ITS_CLOCK = ("session_timeout", "member_removed")
"""Causes that the coordinator has by itself, and no request shows earlier."""


class Compared:
    """One history with what is told of it. excused: how often which excuse was taken."""

    def __init__(self, history: History) -> None:
        self.history = history
        world = history.world
        rows = [event_json(event) for event in timeline(world.entries, ends=True)]
        self.told: list[GroupEvent] = [read_event(row) for row in rows]
        self.excused: Counter[str] = Counter()

    def differences(self) -> Iterator[Difference]:
        for part in (
            self._groups(), self._invariants(), self._stalls(), self._brokers(), self._deletions(),
            self._conversions(), self._endings(), self._lags(), gap_differences(self.history, self.told),
        ):  # fmt: skip
            yield from part

    # --- what the coordinator knows ---

    def _groups(self) -> Iterator[Difference]:
        world = self.history.world
        cuts = [time * MS for time, _ in self.history.deleted]
        frames = [entry for entry in world.entries if isinstance(entry, FrameEntry)]
        unseen = [span.until for span in world.stalls if not _late(span)]
        marks = [*world.loaded, *world.failed, *unseen]
        for since, until in zip([0, *cuts], [*cuts, (END + 1) * MS], strict=True):
            compared = Comparison(
                [entry for entry in frames if since <= (entry.time_ns or 0) < until],
                [event for event in world.events if since <= ns(event) < until],
                [self._read_at(event) for event in self.told if since <= ns(event) < until],
                shifted=marks,
                reloaded=[row for row in world.reloaded if since <= row[0] < until],
                session_ms=max(self.history.session_ms, world.config.consumer.session_timeout_ms),
            )
            yield from compared.differences()
            self.excused.update(compared.excused)

    def _read_at(self, event: GroupEvent) -> GroupEvent:
        """What members ask for while the coordinator stalls is told for then, and it reads it at the end; so
        is what its clock does before a request shows that it stalls."""
        if isinstance(event, MemberLeft):
            asks = event.how in ("left", "left_for_now")
            return replace(event, time_ns=self._after_stall(ns(event), asks=asks))
        if isinstance(event, RebalanceEnded):
            asks = event.cause not in BY_ITS_CLOCK
            return replace(event, began_ns=self._after_stall(event.began_ns or 0, asks=asks))
        return event

    def _after_stall(self, time_ns: int, *, asks: bool) -> int:
        for span in self.history.world.stalls:
            late = _late(span)
            shown = late[0] if late and not asks else span.until
            if span.since * MS <= time_ns < shown * MS:
                return span.until * MS
        return time_ns

    def _invariants(self) -> Iterator[Difference]:
        last_ns = max(entry.time_ns or 0 for entry in self.history.world.entries)
        for text in broken(self.told, last_ns):
            yield Difference("invariant", text)

    # --- brokers ---

    def _stalls(self) -> Iterator[Difference]:
        told = [event for event in self.told if isinstance(event, CoordinatorStalled)]
        last_ns = self.history.world.entries[-1].time_ns or 0
        for event in told:
            spans = [span for span in self.history.world.stalls if span.broker == event.broker]
            until = (event.until_ns or last_ns) / MS
            fits = [
                span
                for span in spans
                if span.since - NEAR_MS <= ns(event) / MS and until <= min(span.until, END) + NEAR_MS
            ]
            if not fits:
                yield Difference("stall falsely", f"{event.broker} told from {_at(ns(event))} to {until}")
        for span in self.history.world.stalls:
            late = _late(span)
            if not late or span.until > END - NEAR_MS:
                continue
            near = [
                event
                for event in told
                if event.broker == span.broker and span.since - NEAR_MS <= ns(event) / MS <= late[0] + NEAR_MS
            ]  # the client of an earlier request may be dead
            if not any(abs((event.until_ns or 0) / MS - span.until) <= NEAR_MS for event in near):
                yield Difference("stall", f"{span.broker} from {_at(span.since * MS)}, {len(late)} waited")

    def _brokers(self) -> Iterator[Difference]:
        kills = self.history.world.kills
        for event in self.told:
            if isinstance(event, BrokerAway):
                fits = [
                    span
                    for span in kills
                    if span.broker == event.broker and abs(span.since - ns(event) / MS) <= NEAR_MS
                    and (event.until_ns is None or event.until_ns >= span.until * MS)
                ]  # fmt: skip
                if not fits:
                    yield Difference("broker falsely", f"{event.broker} told at {_at(ns(event))}")

    # --- groups ---

    def _deletions(self) -> Iterator[Difference]:
        told = [event for event in self.told if isinstance(event, GroupDeleted)]
        seen = [time for time, is_seen in self.history.deleted if is_seen]
        hidden = [time for time, is_seen in self.history.deleted if not is_seen]
        for event in told:
            near = [time for time in seen if abs(time - ns(event) / MS) <= 50]
            late = event.inferred and any(time * MS <= ns(event) for time in hidden)
            if not near and not late:
                yield Difference("deleted falsely", f"told at {_at(ns(event))}")
        for time in seen:
            if not any(abs(time - ns(event) / MS) <= 50 for event in told if not event.inferred):
                yield Difference("deleted", f"deleted at {_at(time * MS)}, which isn't told")

    def _conversions(self) -> Iterator[Difference]:
        """A group that was deleted and made anew did not change its protocol; if no frame shows that it was
        deleted, an empty group may have."""
        true = [event for event in self.history.world.events if isinstance(event, GroupConverted)]
        hidden = [time * MS for time, is_seen in self.history.deleted if not is_seen]
        for event in self.told:
            if not isinstance(event, GroupConverted) or any(time <= ns(event) for time in hidden):
                continue
            if not any(one.kind == event.kind for one in true):
                yield Difference("converted falsely", f"told at {_at(ns(event))} to {event.kind}")

    # --- members ---

    def _endings(self) -> Iterator[Difference]:
        """How the connections ended of members that went without a word."""
        world = self.history.world
        clients = {event.member_id: event.client_id for event in self.told if isinstance(event, MemberJoined)}
        for event in self.told:
            if not isinstance(event, MemberLeft) or event.ending is None:
                continue
            death = world.deaths.get(clients.get(event.member_id) or "")
            ending = event.ending
            if ending.how == "closed" and (death is None or death.how != "closed"):
                yield Difference("ending", f"{event.member_id} told as closed at {_at(ns(event))}; {death}")
            is_dead = death is not None and death.time * MS < ns(event)
            if death is None or not is_dead or death.how != "closed" or self._was_cut(event, death.time):
                continue
            if ending.how != "closed" or abs((ending.ended_ns or 0) / MS - death.time) > 5:
                yield Difference(
                    "ending", f"{event.member_id} told {ending.how} {ending.ended_ns}; {_at(death.time * MS)}"
                )

    def _was_cut(self, event: MemberLeft, death: int) -> bool:
        """Whether a broker ended the member's connection before its client died, or it had just another."""
        return any(span.since <= death + NEAR_MS for span in self.history.world.kills) or any(
            mark <= death + NEAR_MS for mark in self.history.world.loaded
        )

    # --- offsets ---

    def _lags(self) -> Iterator[Difference]:
        """What is committed in a topic is held against that topic's ends."""
        for event in self.told:
            if isinstance(event, LagMeasured) and event.reason == "committed_beyond_end":
                text = f"{event.topic}-{event.partition} at {_at(ns(event))} by {-event.lag}"
                yield Difference("beyond the end", text)


def _late(span: Span) -> list[int]:
    """When the requests were sent that show a stall."""
    return sorted(at for at in span.asked if span.until - at >= LATE_MS + 10)


def _at(time_ns: int) -> str:
    return f"{time_ns / 1e9 % 10_000:.3f}"
