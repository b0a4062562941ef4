"""A segment's indexes from its batches, byte for byte as a broker's recovery writes them.

Strategy: what Kafka's `LogSegment.recover` does. An entry is due when more than `index.interval.bytes` lie
between a batch and the one that has the last entry; it has the batch's last offset and position, and, in the
time index, the largest timestamp so far. The time index ends with the largest of all. Rule: while it is
written, a segment gets an entry for each append, which may hold several batches: such an index has fewer
entries than this one, and is as sound.
"""

from __future__ import annotations

__all__ = ["INTERVAL", "Indexes", "rebuild"]

from collections.abc import Iterable
from dataclasses import dataclass, field

from coordwire.errors import CorruptBatch
from coordwire.records import RecordBatch
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
