"""The faults of a segment: in its batches, their order, and the files beside them.

Strategy: one walk over the batches; the indexes' entries are compared batch by batch. As long as batches are
plain (one after the other, all records there), they are opened by the reader that raises and judged by their
headers; the reader that reports goes on at the first other one, and alone words what is wrong. Rules: a fault
is what a broker never writes, so that a sound segment has none, whatever Kafka wrote it. That leaves out how
close the entries of an index are: a broker writes one for an append, which may be any number of batches
(`rebuild` gives an index to compare with where that matters).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from struct import Struct
from typing import TYPE_CHECKING

from coordwire.errors import CodecUnavailable, CoordwireError, CorruptBatch, LimitExceeded, counted
from coordwire.records import RecordBatch, UnreadableRange
from coordwire.records.batch import CHUNK
from coordwire.records.kafka_07 import Kafka07Batch
from coordwire.segments.index_check import Fault, OffsetCheck, TimeCheck, TransactionCheck
from coordwire.segments.state_files import EPOCHS, METADATA

if TYPE_CHECKING:
    from coordwire.segments.segment import Segment

_FURTHEST = (1 << 31) - 1
_LAST = (1 << 63) - 1
_PLACES = Struct(">q4xi7xi16xq").unpack_from
"""Of a header: base offset, leader epoch, last offset delta, producer id."""
_EPOCH_AT, _NO_EPOCH = 12, -1
"""Where a batch has its leader epoch, and what it is where there is none."""


@dataclass(slots=True)
class SegmentCounts:
    """Counts of a walk: batches that can be read, their records, and bytes that can't be.

    records: None where the records weren't read. first_offset, last_offset: of the batches; None for none.
    unread: batches with the right checksum whose codec's library isn't installed; needs: what to install,
    None for nothing.
    """

    batches: int = 0
    records: int | None = None
    bad_bytes: int = 0
    first_offset: int | None = None
    last_offset: int | None = None
    unread: int = 0
    needs: str | None = None


def verify(segment: Segment, counts: SegmentCounts, *, check_records: bool) -> Iterator[Fault]:
    """The faults of a segment, in the order of the log; see `Segment.verify`."""
    name = segment.path.name
    checks = (OffsetCheck(segment), TimeCheck(segment), TransactionCheck(segment))
    order = _Order(segment)
    counts.records = 0 if check_records else None
    position = yield from _plain_batches(segment, counts, order, checks)
    reader = segment.batches(on_error="report", check_records=False, start=position)
    reader.resume(position, order.last)
    for item in reader:
        unreadable = (
            item if isinstance(item, UnreadableRange) else _read(item, counts) if check_records else None
        )
        if unreadable is not None:
            counts.bad_bytes += unreadable.length
            yield Fault(name, unreadable.position, unreadable.length, unreadable.reason)
            for check in checks:
                check.doubt()
            continue
        assert isinstance(item, RecordBatch)
        counts.batches += 1
        yield from (Fault(name, *wrong) for wrong in order.add(item))
        for check in checks:
            check.add(item)
            yield from check.take()
    if remaining := len(reader.remainder):
        counts.bad_bytes += remaining
        yield Fault(
            name, reader.position, remaining, f"the file ends {counted(remaining, 'byte')} into a batch"
        )
    counts.first_offset, counts.last_offset = order.first, order.last
    for check in checks:
        if remaining:
            check.doubt()
        check.end()
        yield from check.take()
    yield from _sibling_faults(segment)
    if counts.needs is not None:
        raise CodecUnavailable(counts.needs)


def _plain_batches(
    segment: Segment,
    counts: SegmentCounts,
    order: _Order,
    checks: tuple[OffsetCheck, TimeCheck, TransactionCheck],
) -> Generator[Fault, None, int]:
    """Check the batches up to the first that isn't plain; its position. What is faulty is in indexes only."""
    reader = segment.batches()
    view, is_open, base = segment.data, True, order.base
    position, before, epoch = 0, -1 if base is None else base - 1, order.epoch
    furthest = _LAST if base is None else base + _FURTHEST
    for batch in _until_refused(reader):
        if batch.__class__ is not RecordBatch:
            break
        start, size = batch.position, batch.size
        first, batch_epoch, delta, producer = _PLACES(view, start)
        last = first + delta
        if not before < first <= last <= furthest or not epoch <= batch_epoch:
            break
        count = _plain_records(batch, first, check_records=counts.records is not None)
        if not 0 <= count <= delta + 1:
            break
        if counts.records is not None:
            counts.records += count
        counts.batches += 1
        if order.first is None:
            order.first = first
        order.last, order.epoch = before, epoch = last, batch_epoch
        position = start + size
        if is_open or producer >= 0:
            for check in checks:
                check.add(batch)
                yield from check.take()
            is_open = any(check.is_open for check in checks)
    return position


def _until_refused(reader: Iterator[RecordBatch]) -> Iterator[RecordBatch]:
    """The batches up to the first that the reader refuses."""
    with suppress(CoordwireError):  # the reader that reports words it
        yield from reader


def _plain_records(batch: RecordBatch, first: int, *, check_records: bool) -> int:
    """The number of a sound batch's records, if their offsets are one after the other; 0 where they are not
    read, -1 for any other batch."""
    try:
        if not check_records:
            batch.check()
            return 0
        records, count = iter(batch), 0
        while chunk := [record.offset for record in islice(records, CHUNK)]:
            if chunk != [*range(first + count, first + count + len(chunk))]:
                return -1
            count += len(chunk)
    except CoordwireError:
        return -1
    return count


def read_records(batch: RecordBatch) -> tuple[int, str | None]:
    """Read a batch's records; return their number, and what is wrong with their offsets, which must rise
    within its own; in Kafka 0.7 all of them have that of the batch.

    Raises as iterating does.
    """
    before, number, last = batch.base_offset - 1 if batch.magic == 2 else -1, 0, batch.last_offset
    for number, record in enumerate(batch, 1):
        offset = record.offset
        if not before < offset <= last and not (offset == last and isinstance(batch, Kafka07Batch)):
            reason = f"records[{number - 1}] has offset {offset}, after {before}"
            return number, f"{reason} in a batch up to {last}"
        before = offset
    return number, None


def _read(batch: RecordBatch, counts: SegmentCounts) -> UnreadableRange | None:
    """The fault in a batch's records; None, and they are counted, if there is none."""
    count = 0
    try:
        count, reason = read_records(batch)
    except CodecUnavailable as error:
        counts.unread += 1
        counts.needs = counts.needs or error.reason
        return None
    except (CorruptBatch, LimitExceeded) as error:
        reason = str(error)
    if reason is not None:
        return UnreadableRange(batch.position, batch.size, reason)
    counts.records = (counts.records or 0) + count
    return None


class _Order:
    """The order of batches, compared with that of a broker's appends."""

    def __init__(self, segment: Segment) -> None:
        self.base = segment.base_offset
        self.first: int | None = None
        self.last: int | None = None
        self.epoch = _NO_EPOCH

    def add(self, batch: RecordBatch) -> Iterator[tuple[int, int, str]]:
        """The faults of the next batch's offsets and epoch: position, length and reason."""
        last = batch.last_offset
        first = batch.base_offset if batch.magic == 2 else last
        place = batch.position, batch.size
        offsets = f"offset {last}" if first == last else f"offsets {first} to {last}"
        if last < first:
            yield *place, f"the last offset, {last}, is below the first, {first}"
        elif self.last is not None and first <= self.last:
            yield *place, f"{offsets} after offset {self.last}"
        elif self.base is not None and not self.base <= first <= last <= self.base + _FURTHEST:
            yield *place, f"{offsets} in a segment that begins at {self.base}"
        epoch = batch.partition_leader_epoch
        if epoch != _NO_EPOCH and epoch < self.epoch:
            reason = f"leader epoch {epoch} after {self.epoch}"
            yield batch.position + _EPOCH_AT, 4, reason
        if self.first is None:
            self.first = first
        self.last = last
        if epoch != _NO_EPOCH:  # neither message sets nor what no leader has appended have one
            self.epoch = epoch


def _sibling_faults(segment: Segment) -> Iterator[Fault]:
    """The faults of the small files."""
    snapshot = segment.sibling_path("snapshot")
    files: list[tuple[str, Callable[[], object]]] = [
        (EPOCHS, lambda: segment.leader_epochs),
        (METADATA, lambda: segment.metadata),
    ]
    if snapshot is not None:
        files.append((snapshot.name, lambda: segment.producer_snapshot))
    for name, read in files:
        try:
            read()
        except CoordwireError as error:
            yield Fault(name, getattr(error, "position", 0), 0, str(error))
