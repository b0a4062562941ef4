"""The interface of the place that keeps a log's bytes, and the place that is memory.

Rules: batches are numbered as in the log's `BatchTable`, from its first; a place that cannot append raises
`OSError`, and has not changed.

Where a log's batches are: parallel arrays in the order of the log, searched by offset and by time.

Rules: offsets rise. A search by time uses the largest timestamp so far, which never falls, so that its first
place at or above a time is the first batch that reaches it.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Protocol

from coordwire._dataclasses import dataclass
from coordwire.broker.log.retention import LogSegment, SegmentRules
from coordwire.messages.producer_snapshot import ProducerEntry
from coordwire.records import RecordBatch
from coordwire.segments import AbortedTransaction


@dataclass(frozen=True, slots=True)
class BatchPlace:
    """A batch of the log. epoch: of the leader that appended it."""

    base_offset: int
    last_offset: int
    size: int
    max_timestamp: int
    epoch: int


class BatchTable:
    """The batches of a log, numbered from 0."""

    def __init__(self) -> None:
        self._bases, self._lasts = array("q"), array("q")
        self._times, self._highest = array("q"), array("q")
        self._ends = array("q")
        """How many bytes the log has up to each batch's end, counted from its first append."""
        self._epochs = array("i")
        self._dropped_bytes = 0

    def __len__(self) -> int:
        return len(self._bases)

    def __getitem__(self, number: int) -> BatchPlace:
        return BatchPlace(
            self._bases[number],
            self._lasts[number],
            self.bytes_between(number, number + 1),
            self._times[number],
            self._epochs[number],
        )

    def add(self, batch: BatchPlace) -> None:
        """Add the next batch."""
        self._bases.append(batch.base_offset)
        self._lasts.append(batch.last_offset)
        self._times.append(batch.max_timestamp)
        highest = self._highest[-1] if self._highest else batch.max_timestamp
        self._highest.append(max(highest, batch.max_timestamp))
        self._ends.append((self._ends[-1] if self._ends else self._dropped_bytes) + batch.size)
        self._epochs.append(batch.epoch)

    def reaching(self, offset: int) -> int:
        """The first batch whose last offset is at or after an offset; the number of batches if none is."""
        return bisect_left(self._lasts, offset)

    def beginning(self, offset: int) -> int:
        """The first batch that begins at or after an offset."""
        return bisect_left(self._bases, offset)

    def reaching_time(self, timestamp: int) -> int:
        """The first batch whose largest timestamp is at or after a time."""
        return bisect_left(self._highest, timestamp)

    def latest(self) -> int | None:
        """The first batch that has the largest timestamp of all; None without batches."""
        return self.reaching_time(self._highest[-1]) if self._highest else None

    def bytes_between(self, first: int, end: int) -> int:
        """The bytes of the batches from `first` up to, without, `end`."""
        before = self._ends[first - 1] if first else self._dropped_bytes
        return (self._ends[end - 1] if end else self._dropped_bytes) - before

    def within(self, first: int, end: int, most: int) -> int:
        """Which batch the bytes end before, if it holds as many whole batches from `first` on as fit."""
        before = self._ends[first - 1] if first else self._dropped_bytes
        if first < end and self._ends[end - 1] - before <= most:
            return end
        at = bisect_left(self._ends, before + most + 1, first, end)
        return at

    def drop_last(self, count: int) -> None:
        """Forget so many batches at the end."""
        for column in (self._bases, self._lasts, self._times, self._highest, self._ends, self._epochs):
            del column[len(column) - count :]

    def drop_first(self, count: int) -> None:
        """Forget so many batches at the start."""
        if not count:
            return
        self._dropped_bytes = self._ends[count - 1]
        for column in (self._bases, self._lasts, self._times, self._ends, self._epochs):
            del column[:count]
        del self._highest[:count]
        highest = None
        for number, stamp in enumerate(self._times):
            highest = stamp if highest is None else max(highest, stamp)
            if self._highest[number] == highest:
                break  # so are those that follow
            self._highest[number] = highest


# --- storage ---


class Storage(Protocol):
    """The place that keeps the bytes of a log."""

    def append(
        self,
        data: bytes,
        batch: BatchPlace,
        producers: Callable[[], Iterable[ProducerEntry]],
        now: int,
    ) -> None:
        """Add a batch. producers: gives them as of before it, for the snapshot that a new segment has.
        now: in milliseconds since the epoch."""

    def roll(self, offset: int, producers: Iterable[ProducerEntry]) -> None:
        """Begin a new segment at the log's end, unless the last one is empty. Raises `OSError`."""

    def segments(self) -> list[LogSegment]:
        """The segments, in their order: at least one."""

    def aborted(self, transaction: AbortedTransaction) -> None:
        """The last batch aborted a transaction."""

    def sync(self) -> None:
        """Force what was appended to the disk. Raises `OSError`."""

    def read(self, first: int, end: int) -> bytes:
        """The bytes of the batches from number `first` up to, without, `end`."""

    def drop_first(self, count: int, start_offset: int) -> None:
        """The log begins at an offset now; so many batches at the start are no longer needed, nor are the
        segments before it."""

    @property
    def can_rewrite(self) -> bool:
        """Whether `rewrite` can be done here."""

    def rewrite(self, first: int, batches: list[bytes | None]) -> None:
        """The batches from number `first` on are these now, without those that are None."""

    def drop_last(self, count: int, end_offset: int) -> None:
        """The log loses so many batches at its end, and ends at an offset now. Raises `OSError`."""

    def epochs_changed(self, encoded: bytes) -> None:
        """The leader epochs are these now, as the file's bytes."""

    def relocate(self, folder: Path) -> None:
        """Move what is in a folder into another, which is not there yet. Raises `OSError`."""

    def close(self, end_offset: int, producers: Iterable[ProducerEntry]) -> None:
        """The log is not used any more."""

    def let_go(self) -> None:
        """Close it as if the process had ended."""

    def delete(self) -> None:
        """The partition was deleted: remove what this storage wrote. It is closed afterwards."""


@dataclass(slots=True)
class _MemorySegment:
    """count: its batches that the log still has. size, latest: as of `LogSegment`. first: the largest
    timestamp of its first batch, -1 for none."""

    base_offset: int
    modified_ms: int = -1
    count: int = 0
    size: int = 0
    latest: int = -1
    first: int = -1


class MemoryStorage:
    """Bytes in memory, an object a batch, in segments as on disk."""

    def __init__(self, rules: SegmentRules | None = None) -> None:
        self._rules = rules or SegmentRules()
        self._batches: list[bytes] = []
        self._segments = [_MemorySegment(0)]

    def append(
        self, data: bytes, batch: BatchPlace, producers: Callable[[], Iterable[ProducerEntry]], now: int
    ) -> None:
        segment = self._segments[-1]
        if self._rules.is_full(
            segment.size, len(data), offset_delta=batch.last_offset - segment.base_offset,
            first=segment.first, timestamp=batch.max_timestamp,
        ):  # fmt: skip
            segment = _MemorySegment(batch.base_offset)
            self._segments.append(segment)
        if not segment.size:
            segment.first = batch.max_timestamp
        segment.count += 1
        segment.size += len(data)
        segment.latest = max(segment.latest, batch.max_timestamp)
        segment.modified_ms = now
        self._batches.append(data)

    def roll(self, offset: int, producers: Iterable[ProducerEntry]) -> None:
        if self._segments[-1].size:
            self._segments.append(_MemorySegment(offset))

    def segments(self) -> list[LogSegment]:
        return [
            LogSegment(segment.base_offset, segment.size, segment.latest, segment.modified_ms)
            for segment in self._segments
        ]

    def aborted(self, transaction: AbortedTransaction) -> None:
        pass

    def sync(self) -> None:
        pass

    def read(self, first: int, end: int) -> bytes:
        return self._batches[first] if end - first == 1 else b"".join(self._batches[first:end])

    def drop_first(self, count: int, start_offset: int) -> None:
        del self._batches[:count]
        for segment in self._segments:
            dropped = min(count, segment.count)
            segment.count -= dropped
            count -= dropped
        following = bisect_right(self._segments, start_offset, 1, key=lambda segment: segment.base_offset)
        del self._segments[: following - 1]

    can_rewrite = True

    def rewrite(self, first: int, batches: list[bytes | None]) -> None:
        end = first + len(batches)
        new = [*self._batches[:first], *batches, *self._batches[end:]]
        number = 0
        for segment in self._segments:
            following = number + segment.count
            remaining = [data for data in new[number:following] if data is not None]
            segment.size += sum(map(len, remaining)) - sum(map(len, self._batches[number:following]))
            segment.latest = _latest(remaining)
            number, segment.count = following, len(remaining)
        self._batches = [data for data in new if data is not None]

    def drop_last(self, count: int, end_offset: int) -> None:
        while count:
            segment = self._segments[-1]
            dropped = min(count, segment.count)
            if dropped == segment.count and len(self._segments) > 1:
                self._segments.pop()
            elif dropped:
                remaining = self._batches[len(self._batches) - segment.count : -dropped]
                segment.size -= sum(map(len, self._batches[-dropped:]))
                segment.latest = _latest(remaining)
                segment.count -= dropped
            if dropped:
                del self._batches[-dropped:]
            count -= dropped

    def epochs_changed(self, encoded: bytes) -> None:
        pass

    def relocate(self, folder: Path) -> None:
        pass

    def close(self, end_offset: int, producers: Iterable[ProducerEntry]) -> None:
        pass

    def let_go(self) -> None:
        pass

    def delete(self) -> None:
        self._batches.clear()
        self._segments = [_MemorySegment(0)]


def _latest(batches: Iterable[bytes]) -> int:
    """The largest timestamp of these; -1 for none."""
    return max((RecordBatch(memoryview(data)).max_timestamp for data in batches), default=-1)
