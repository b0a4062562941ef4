"""Which segments of a log go: its delete policies, and the rule of when a segment is full.

Source: Kafka's `UnifiedLog.deleteOldSegments` and `LogSegment.shouldRoll`; the implementation page, whose log
manager "allows pluggable delete policies" and has two of them. Strategy: a policy says how many of the oldest
segments may go, from what a storage knows of each. Rules: a log loses whole segments, the oldest first; the
policies follow one another, each with what those before have left.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from coordwire._dataclasses import dataclass

FURTHEST = (1 << 31) - 1
"""The largest offset in a segment, counted from its first: an index has 4 bytes for it."""


@dataclass(frozen=True, slots=True)
class SegmentRules:
    """The settings of a topic's segments. segment_bytes, index_interval: bytes; segment_ms: after how long,
    by the timestamps of its batches, a segment is full."""

    segment_bytes: int = 1 << 30
    index_interval: int = 4096
    segment_ms: int = 604_800_000

    def is_full(self, size: int, added: int, *, offset_delta: int, first: int, timestamp: int) -> bool:
        """Whether a batch begins a new segment. size: the segment's bytes; added: the batch's; offset_delta:
        its last offset, counted from the segment's first; first: the largest timestamp of the segment's first
        batch, timestamp: the batch's own; -1 for none."""
        is_late = first >= 0 and timestamp - first > self.segment_ms
        return size > 0 and (size + added > self.segment_bytes or offset_delta > FURTHEST or is_late)


@dataclass(frozen=True, slots=True)
class LogSegment:
    """A segment of a log. latest: its largest timestamp, -1 for none; modified_ms: when it was last written
    to, in milliseconds since the epoch."""

    base_offset: int
    size: int
    latest: int
    modified_ms: int


class DeletePolicy(Protocol):
    """Chooses which segments may go."""

    def count(self, segments: Sequence[LogSegment], now: int) -> int:
        """How many of these may go, from the first on; 0 or fewer for none. now: in milliseconds since the
        epoch."""


@dataclass(frozen=True, slots=True)
class OlderThan:
    """retention.ms: segments whose largest timestamp is older; of one without timestamps, when it was last
    written to. ms: negative for no bound."""

    ms: int

    def count(self, segments: Sequence[LogSegment], now: int) -> int:
        if self.ms < 0:
            return 0
        times = (segment.latest if segment.latest >= 0 else segment.modified_ms for segment in segments)
        return _leading(now - time > self.ms for time in times)


@dataclass(frozen=True, slots=True)
class LargerThan:
    """retention.bytes: segments without which the log is still at least this large. size: negative for no
    bound."""

    size: int

    def count(self, segments: Sequence[LogSegment], now: int) -> int:
        excess = sum(segment.size for segment in segments) - self.size
        number = 0
        while self.size >= 0 and number < len(segments) and segments[number].size <= excess:
            excess -= segments[number].size
            number += 1
        return number


@dataclass(frozen=True, slots=True)
class ModifiedBefore:
    """The implementation page's policy: segments that were last written to longer ago. ms: from 0."""

    ms: int

    def count(self, segments: Sequence[LogSegment], now: int) -> int:
        return _leading(now - segment.modified_ms > self.ms for segment in segments)


def _leading(conditions: Iterable[bool]) -> int:
    """How many are true before the first that is not."""
    number = 0
    for is_true in conditions:
        if not is_true:
            break
        number += 1
    return number


def count_deleted(
    segments: Sequence[LogSegment], policies: Iterable[DeletePolicy], *, now: int, end: int, stable: int
) -> int:
    """How many of a log's oldest segments go. end: the log's; stable: what follows it stays, with its
    segment. An empty last segment stays."""
    edges = [*(segment.base_offset for segment in segments[1:]), end]
    limit = _leading(edge <= stable for edge in edges)
    if limit == len(segments) and not segments[-1].size:
        limit -= 1
    number = 0
    for policy in policies:
        number += max(policy.count(segments[number:], now), 0)
    return min(number, limit)
