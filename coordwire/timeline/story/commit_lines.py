"""The lines of a story about commits and the lags that are measured with them.

Strategy: what a member commits within a second is one line; folded, all that it commits between two lines
that matter more is one, with the number of its commits. Rules: a commit that was refused, and an offset that
was taken back, are never folded with those that hold; a lag below 0 is an event of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

from coordwire.capture.printable import Pieces, shown
from coordwire.timeline.events import GroupEvent, LagMeasured, OffsetCommitted, TopicPartition
from coordwire.timeline.story.event_lines import EventLines
from coordwire.timeline.story.wording import count, error_name, offset_text, ranges

__all__ = ["CommitLine", "CommitLines"]

MOST_LISTED = 4
"""In a folded story a commit of more partitions is one of ranges."""

TOGETHER_NS = 1_000_000_000
"""Commits of one member that are nearer to each other are on one line."""


class CommitLine:
    """One line. `events`: its commits and lags."""

    def __init__(self, words: EventLines, *, folded: bool) -> None:
        self._words = words
        self._folded = folded
        self.events: list[GroupEvent] = []

    def pieces(self) -> Pieces:
        first, last = self.events[0], self.events[-1]
        offsets: dict[TopicPartition, int | None] = {}
        lags: dict[TopicPartition, int] = {}
        member = ""
        for event in self.events:
            if isinstance(event, OffsetCommitted):
                partition = TopicPartition(event.topic, event.partition)
                offsets[partition] = None if event.removed else event.offset
                member = event.member_id or event.client_id or member
            elif isinstance(event, LagMeasured):
                lags[TopicPartition(event.topic, event.partition)] = event.lag
        verb = "lag" if not offsets else f"{self._words.name(member)} commits" if member else "committed"
        if any(isinstance(event, OffsetCommitted) and event.transactional_id for event in self.events):
            verb += " in a transaction"
        if isinstance(first, OffsetCommitted) and first.error_code:
            refusal = f"{verb} {_enumerated(offsets, lags)}: {error_name(first.error_code)}"
            return [("✗ ", "bad"), (f"{refusal}{self._words.fenced(first)}", "bad")]
        kind = OffsetCommitted if offsets else LagMeasured
        times = len({(event.source, event.number) for event in self.events if isinstance(event, kind)})
        if not self._folded or (times == 1 and len({**offsets, **lags}) <= MOST_LISTED):
            return [("· ", "note"), (f"{verb} ", "note"), (_enumerated(offsets, lags), "number")]
        until = f" until {self._words.clock(last)}" if times > 1 else ""
        lag = f"{sum(lags.values()):,}{' at last' if times > 1 else ''}"
        if not offsets:
            words = f"lag {lag} in ", shown(ranges(lags))
        else:
            often = f" {count(times, 'time')}:" if times > 1 else ""
            if all(offset is None for offset in offsets.values()):
                verb, often = "forgotten:", ""
            words = f"{verb}{often} ", f"{shown(ranges(offsets))}{f' (lag {lag})' if lags else ''}"
        return [("· ", "note"), (words[0], "note"), (words[1], "number"), (until, "note")]


def _enumerated(offsets: dict[TopicPartition, int | None], lags: dict[TopicPartition, int]) -> str:
    parts = []
    for partition in {**offsets, **lags}:
        path = "" if partition not in offsets else f" → {offset_text(offsets[partition])}"
        lag = f" (lag {lags[partition]:,})" if partition in lags else ""
        parts.append(f"{partition.topic}-{partition.partition}{path}{lag}")
    return shown(", ".join(parts))


class CommitLines:
    """The lines of one stretch of a story. folded: whether a member has one for all of its commits."""

    def __init__(self, words: EventLines, *, folded: bool) -> None:
        self._make: Callable[[], CommitLine] = lambda: CommitLine(words, folded=folded)
        self._folded = folded
        self._pending: CommitLine | None = None
        self._lines: dict[Hashable, CommitLine] = {}
        self._owners: dict[TopicPartition, CommitLine] = {}

    def add(self, event: GroupEvent) -> CommitLine | None:
        """The line that an event begins; None where it is part of one."""
        line = self._folded_line(event) if self._folded else self._pending
        if line is not None and (self._folded or _go_together(line.events[0], event)):
            new_line = None if line.events else line
        else:
            new_line = line = self._pending = self._make()
        line.events.append(event)
        return new_line

    def interrupt(self) -> None:
        """Note that another event comes between."""
        self._pending = None

    def end(self) -> None:
        """Note that a more important line comes between."""
        self._pending = None
        self._lines.clear()
        self._owners.clear()

    def _folded_line(self, event: GroupEvent) -> CommitLine:
        partition = _partition(event)
        if not isinstance(event, OffsetCommitted):
            return self._owners.get(partition) or self._lines.setdefault("lag", self._make())
        refused = (event.error_code, event.source, event.number) if event.error_code else None
        key = event.member_id or event.client_id, event.transactional_id, event.removed, refused
        line = self._lines.setdefault(key, self._make())
        if refused is None:
            self._owners[partition] = line
        return line


def _partition(event: GroupEvent) -> TopicPartition:
    assert isinstance(event, OffsetCommitted | LagMeasured)
    return TopicPartition(event.topic, event.partition)


def _go_together(first: GroupEvent, event: GroupEvent) -> bool:
    """Whether two positions may be on one line: those of one member within a second."""
    if isinstance(event, OffsetCommitted) and isinstance(first, OffsetCommitted):
        if event.member_id != first.member_id or event.transactional_id != first.transactional_id:
            return False
        if event.error_code != first.error_code or (event.error_code and event.number != first.number):
            return False
    elif (isinstance(first, OffsetCommitted) and first.error_code) or isinstance(event, OffsetCommitted):
        return False
    return abs((event.time_ns or 0) - (first.time_ns or 0)) < TOGETHER_NS
