"""Answers that repeat an earlier one: those to consumers that wait for records, and to clients that ask for
versions or topics again.

Strategy: an answer that was read whole is remembered by its API, its version and its bytes without the
correlation id; the same bytes say the same again, and nothing is decoded. Rules: only short answers without
deviations are remembered, and only as long as no topic's name changes; memory is bounded, and everything is
forgotten at the bound.
"""

from __future__ import annotations

__all__ = ["PartitionEnd", "RepeatedAnswers"]

from collections.abc import Sequence

from coordwire.capture.entries import FrameEntry
from coordwire.timeline.events import TopicPartition
from coordwire.timeline.from_wire.group_table import TopicsById

MOST = 4_000
"""So many answers are remembered."""

SHORTEST, LONGEST = 9, 2_048
"""Bytes of an answer that is; one that was not read from bytes has none."""

PartitionEnd = tuple[TopicPartition, int]
"""A partition and its high watermark."""

AnswerKey = tuple[int | None, int | None, bytes]
"""The API, the version and the bytes without the correlation id."""


class RepeatedAnswers:
    """Those to Fetch, and those that say nothing of partitions' ends. names: of topics, which they may say or
    are read by."""

    def __init__(self, names: TopicsById) -> None:
        self._names = names
        self._changes = names.changes
        self._known: dict[AnswerKey, Sequence[PartitionEnd]] = {}
        self._missed: tuple[FrameEntry, AnswerKey] | None = None

    def find(self, entry: FrameEntry) -> Sequence[PartitionEnd] | None:
        """The ends of partitions in an answer that is known; None for one that isn't."""
        body, self._missed = entry.body, None
        if not SHORTEST <= len(body) <= LONGEST:
            return None
        if self._changes != self._names.changes:
            self._known.clear()
            self._changes = self._names.changes
        key = entry.api_key, entry.api_version, body[4:]
        ends = self._known.get(key)
        if ends is None:
            self._missed = entry, key
        return ends

    def remember(self, entry: FrameEntry, ends: Sequence[PartitionEnd] = ()) -> None:
        """The answer that was not found last, which was read whole and has had its effect."""
        missed, self._missed = self._missed, None
        if missed is None or missed[0] is not entry or entry.deviations:
            return
        if self._changes != self._names.changes:  # by the answer itself
            return
        if len(self._known) >= MOST:
            self._known.clear()
        self._known[missed[1]] = ends
