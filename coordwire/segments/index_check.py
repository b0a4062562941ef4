"""The faults of a segment's indexes, compared batch by batch; indexes from batches, byte for byte as a
broker's recovery writes them.

Strategy: each check goes through its index as the log goes on, entry by entry; an entry that isn't after the
one before it is wrong by itself and passed over, the others are compared with the batches. Rules: an entry of
the offset index names a batch's position, and the last offset of that batch or of one that was appended with
it; an entry of the time index the largest timestamp of a batch; one of the transaction index an abort marker.
`doubt` reports that bytes of the log were bad: an entry without its batch around there is not a fault of the
index.

Rebuilding: what Kafka's `LogSegment.recover` does. An entry is due when more than `index.interval.bytes` lie
between a batch and the one that has the last entry; it has the batch's last offset and position, and, in the
time index, the largest timestamp so far. The time index ends with the largest of all. Rule: while it is
written, a segment gets an entry for each append, which may hold several batches: such an index has fewer
entries than this one, and is as sound.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from coordwire.errors import CodecUnavailable, CorruptBatch, DecodeError, counted
from coordwire.records import ControlType, RecordBatch
from coordwire.segments.indexes import (
    AbortedTransaction,
    OffsetIndex,
    OffsetPosition,
    TimeIndex,
    TimestampOffset,
    TransactionIndex,
)
from coordwire.segments.names import FileKind
from coordwire.segments.producers import Producers
from coordwire.segments.state_files import write_snapshot

if TYPE_CHECKING:
    from coordwire.segments.segment import Segment


class Fault(NamedTuple):
    """What is wrong.

    file: the name of the file that it is in. position, length: which bytes of it; a length of 0 for what is
    missing there. reason: in words.
    """

    file: str
    position: int
    length: int
    reason: str


class _Check:
    """The common part of the checks. faults: those since the last call of `take`."""

    kind: FileKind
    size: int

    def __init__(self, segment: Segment) -> None:
        self.file = (segment.sibling_path(self.kind) or segment.path).name
        self.faults: list[Fault] = []
        self._doubted = False

    @property
    def is_open(self) -> bool:
        """Whether faults are unreported."""
        return bool(self.faults)

    def take(self) -> list[Fault]:
        """The faults since the last call."""
        faults, self.faults = self.faults, []
        return faults

    def doubt(self) -> None:
        """Note that bytes of the log were bad here."""
        self._doubted = True

    def _wrong(self, number: int, reason: str) -> None:
        self.faults.append(Fault(self.file, number * self.size, self.size, f"entry {number}: {reason}"))

    def _unless_doubted(self, number: int, reason: str) -> None:
        if not self._doubted:
            self._wrong(number, reason)

    def _ragged(self, used: int, trailing: int) -> None:
        if trailing:
            reason = f"{counted(trailing, 'byte')} after the last entry of {self.size}"
            self.faults.append(Fault(self.file, used, trailing, reason))


class OffsetCheck(_Check):
    """The `.index` file."""

    kind = "index"
    size = 8

    def __init__(self, segment: Segment) -> None:
        super().__init__(segment)
        self._entries = self._rising(segment)
        self._next = next(self._entries, None)
        self._awaited: tuple[int, int] | None = None

    @property
    def is_open(self) -> bool:
        """Whether entries are left to compare, or faults are unreported."""
        return self._next is not None or self._awaited is not None or super().is_open

    def _rising(self, segment: Segment) -> Iterator[tuple[int, OffsetPosition]]:
        index = segment.offset_index
        if index is None:
            return
        before = OffsetPosition(index.base_offset - 1, -1)
        for number, entry in enumerate(index):
            if entry.offset <= before.offset or entry.position <= before.position:
                self._wrong(number, f"{_entry_text(entry)} can't follow {_entry_text(before)}")
                continue
            before = entry
            yield number, entry
        self._ragged(index.size - index.trailing, index.trailing)

    def add(self, batch: RecordBatch) -> None:
        """Compare with the next batch."""
        position, last = batch.position, batch.last_offset
        while self._next is not None and self._next[1].position < position:
            number, entry = self._next
            self._unless_doubted(number, f"no batch begins at byte {entry.position}")
            self._next = next(self._entries, None)
        if self._awaited is not None and (self._doubted or last >= self._awaited[1]):
            number, offset = self._awaited
            if last != offset:
                self._unless_doubted(number, f"no batch ends with offset {offset}")
            self._awaited = None
        if self._next is not None and self._next[1].position == position:
            number, entry = self._next
            if entry.offset < last:
                reason = f"the batch at byte {position} ends with offset {last}"
                self._wrong(number, f"{reason}, not {entry.offset}")
            elif entry.offset > last:
                self._awaited = number, entry.offset
            self._next = next(self._entries, None)
        self._doubted = False

    def end(self) -> None:
        """Note the end of the log."""
        if self._awaited is not None:
            number, offset = self._awaited
            self._unless_doubted(number, f"offset {offset} is after the log's last")
        while self._next is not None:
            number, entry = self._next
            self._unless_doubted(number, f"byte {entry.position} is after the log's last batch")
            self._next = next(self._entries, None)


class TimeCheck(_Check):
    """The `.timeindex` file, whose entries are written when the offset index gets one, and at the end."""

    kind = "timeindex"
    size = 12

    def __init__(self, segment: Segment) -> None:
        super().__init__(segment)
        self._entries = self._rising(segment)
        self._next = next(self._entries, None)
        self._due = iter(segment.offset_index or () if segment.time_index is not None else ())
        self._mark = next(self._due, None)
        self._latest = self._entered = -1
        self._last = (segment.base_offset or 0) - 1

    @property
    def is_open(self) -> bool:
        """Whether entries of either index are left to compare, or faults are unreported."""
        return self._next is not None or self._mark is not None or super().is_open

    def _rising(self, segment: Segment) -> Iterator[tuple[int, TimestampOffset]]:
        index = segment.time_index
        if index is None:
            return
        before = TimestampOffset(-1, index.base_offset - 1)
        for number, entry in enumerate(index):
            if entry.timestamp <= before.timestamp or entry.offset < before.offset:
                self._wrong(number, f"{_entry_text(entry)} can't follow {_entry_text(before)}")
                continue
            before = entry
            yield number, entry
        self._ragged(index.size - index.trailing, index.trailing)

    def add(self, batch: RecordBatch) -> None:
        """Compare with the next batch."""
        first, last = batch.base_offset if batch.magic == 2 else self._last + 1, batch.last_offset
        while self._next is not None and self._next[1].offset <= last:
            number, entry = self._next
            if entry.offset < first:
                self._unless_doubted(number, f"no batch has the offset {entry.offset}")
            elif entry.timestamp != batch.max_timestamp:
                reason = f"the batch of offset {entry.offset} has the timestamp {batch.max_timestamp}"
                self._wrong(number, f"{reason}, not {entry.timestamp}")
            self._entered = entry.timestamp
            self._next = next(self._entries, None)
        self._latest = max(self._latest, batch.max_timestamp)
        self._last = last
        while self._mark is not None and self._mark.offset <= last:
            if self._latest > self._entered and self._mark.offset == last:
                at = self.size * (self._next[0] if self._next is not None else 0)
                reason = f"no entry for timestamp {self._latest}, though the offset index has one"
                self.faults.append(Fault(self.file, at, 0, f"{reason} for offset {last}"))
                self._entered = self._latest
            self._mark = next(self._due, None)
        self._doubted = False

    def end(self) -> None:
        """The log is at its end."""
        while self._next is not None:
            number, entry = self._next
            self._unless_doubted(number, f"offset {entry.offset} is after the log's last")
            self._next = next(self._entries, None)


class TransactionCheck(_Check):
    """The `.txnindex` file, with an entry for each abort marker that ends a transaction with records."""

    kind = "txnindex"
    size = 34

    def __init__(self, segment: Segment) -> None:
        super().__init__(segment)
        self._named = segment.sibling_path("txnindex") is not None
        self._entries = self._rising(segment)
        self._next = next(self._entries, None)
        self._writing: set[int] = set()

    def _rising(self, segment: Segment) -> Iterator[tuple[int, AbortedTransaction]]:
        index = segment.transaction_index
        if index is None:
            return
        last = index.base_offset - 1
        for number, entry in enumerate(index):
            if entry.version:
                self._wrong(number, f"expected entry version 0, got {entry.version}")
            elif entry.last_offset <= last or entry.first_offset > entry.last_offset:
                offsets = f"offsets {entry.first_offset} to {entry.last_offset}"
                self._wrong(number, f"{offsets} can't follow {last}")
            else:
                last = entry.last_offset
                yield number, entry
        used = len(index) * self.size
        self._ragged(used, index.reserved + index.trailing)

    def add(self, batch: RecordBatch) -> None:
        """Compare with the next batch."""
        if batch.producer_id < 0:
            return
        if not batch.is_control:
            if batch.count and batch.transactional:
                self._writing.add(batch.producer_id)
            return
        try:
            marker = next(batch.control_records(), None)
        except (DecodeError, CodecUnavailable):
            self._doubted = True
            return
        wrote = batch.producer_id in self._writing
        self._writing.discard(batch.producer_id)
        if marker is not None and marker.type == ControlType.ABORT:
            self._marker(batch, wrote)

    def _marker(self, batch: RecordBatch, wrote: bool) -> None:
        self._pass(batch.base_offset)
        if self._next is not None and self._next[1].last_offset == batch.base_offset:
            number, entry = self._next
            if entry.producer_id != batch.producer_id:
                reason = f"the marker at offset {batch.base_offset} is of producer {batch.producer_id}"
                self._wrong(number, f"{reason}, not {entry.producer_id}")
            self._next = next(self._entries, None)
        elif wrote and self._named:
            at = self.size * self._next[0] if self._next is not None else 0
            reason = f"no entry for the transaction that is aborted at offset {batch.base_offset}"
            self.faults.append(Fault(self.file, at, 0, reason))
        self._doubted = False

    def _pass(self, offset: int | None) -> None:
        while self._next is not None and (offset is None or self._next[1].last_offset < offset):
            number, entry = self._next
            self._unless_doubted(number, f"no abort marker at offset {entry.last_offset}")
            self._next = next(self._entries, None)

    def end(self) -> None:
        """The log is at its end."""
        self._pass(None)


def _entry_text(entry: OffsetPosition | TimestampOffset) -> str:
    return ", ".join(f"{name} {value}" for name, value in entry._asdict().items())


# --- index rebuild ---


INTERVAL = 4096
"""Kafka's default for `index.interval.bytes`."""

_FURTHEST = (1 << 31) - 1
"""The largest offset, relative to the base, and the largest position."""


@dataclass(slots=True)
class Indexes:
    """The indexes of a segment.

    base_offset: the segment's. end_offset: the one after its last batch. producers: as of there.
    """

    base_offset: int
    producers: Producers
    end_offset: int = 0
    offsets: list[OffsetPosition] = field(default_factory=list)
    times: list[TimestampOffset] = field(default_factory=list)
    aborted: list[AbortedTransaction] = field(default_factory=list)

    def files(self) -> dict[FileKind, bytes]:
        """The bytes of the files; no `txnindex` where nothing was aborted, as Kafka has none then."""
        files: dict[FileKind, bytes] = {
            "index": OffsetIndex.pack(self.offsets, self.base_offset),
            "timeindex": TimeIndex.pack(self.times, self.base_offset),
        }
        if self.aborted:
            files["txnindex"] = TransactionIndex.pack(self.aborted)
        return files

    def snapshot(self) -> bytes:
        """The `.snapshot` of `end_offset`, which is beside the next segment."""
        return write_snapshot(self.producers.entries())


def rebuild(
    batches: Iterable[RecordBatch],
    base_offset: int,
    *,
    interval: int = INTERVAL,
    producers: Producers | None = None,
) -> Indexes:
    """The indexes of a segment with these batches, one after the other from its first byte on.

    interval: `index.interval.bytes` of its topic. producers: as of `base_offset`; by default none. They are
    updated with the batches. Raises `CorruptBatch` for a batch that Kafka's recovery would stop at: with a
    wrong checksum, or with an offset that no index of this segment can hold, or that isn't after the last.
    """
    indexes = Indexes(base_offset, producers or Producers(), base_offset)
    latest = TimestampOffset(-1, base_offset)
    indexed, last = 0, base_offset - 1
    for batch in batches:
        batch.check()
        offset, position = batch.last_offset, batch.position
        if not base_offset <= offset <= base_offset + _FURTHEST or position > _FURTHEST:
            reason = f"offset {offset} doesn't fit in an index of base offset {base_offset}"
            raise CorruptBatch(reason, position, "last_offset")
        if offset <= last:
            raise CorruptBatch(f"offset {offset} after offset {last}", position, "last_offset")
        last = offset
        if batch.max_timestamp > latest.timestamp:
            latest = TimestampOffset(batch.max_timestamp, offset)
        if position - indexed > interval:
            indexes.offsets.append(OffsetPosition(offset, position))
            _stamp(indexes.times, latest)
            indexed = position
        if batch.magic >= 2 and (aborted := indexes.producers.add(batch)):
            indexes.aborted.append(aborted)
        indexes.end_offset = offset + 1
    _stamp(indexes.times, latest)
    return indexes


def _stamp(times: list[TimestampOffset], latest: TimestampOffset) -> None:
    if latest.timestamp > (times[-1].timestamp if times else -1):
        times.append(latest)
