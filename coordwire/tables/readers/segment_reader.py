"""A part of a segment: its batches, unread, or their headers, and what couldn't be read.

Strategy: a local file is mapped, an object of a store is read in ranges (`object_ranges`); both have the same
methods, so that the reader takes the same steps. The walk to the part's first batch begins at an entry of the
`.index` a good way before the part; a range of offsets begins at an entry too. That walk gives the positions
that reading the whole file would come to. From there on checksums divide the part into batches that are
intact and the rest, about which `coordwire.records.batches` decides over the whole file, so that a part's end
changes no verdict. Of batches that headers exclude nothing else is read. Rules: an entry is trusted only as
far as the file bears it out: if the header of a batch is there and another one where that ends, or if the
batch's checksum is right. A batch belongs to the part in which it begins; the batches and bad ranges of all
parts make up the file, whatever the split. A log of Kafka 0.7 is one part, and always mapped, since nothing
beside it or in it says where its messages begin.
"""

from __future__ import annotations

__all__ = ["SegmentReader", "resume_position", "unwanted"]

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from functools import cached_property
from typing import Any

from coordwire.errors import CorruptBatch, LimitExceeded
from coordwire.records import RecordBatch, UnreadableRange
from coordwire.records.batch import HEADER, batch_size
from coordwire.records.batch_reader import Batches, open_batch
from coordwire.records.kafka_07 import Kafka07Batch
from coordwire.segments.indexes import OffsetIndex, OffsetPosition
from coordwire.segments.names import LogFormat, file_name, log_format
from coordwire.segments.remote_storage import remote_name
from coordwire.tables.options import Options
from coordwire.tables.readers.files import open_bytes
from coordwire.tables.readers.object_ranges import Ranges, read_small
from coordwire.tables.readers.rows import KEPT, Bad
from coordwire.tables.readers.splits import Part
from coordwire.tables.stores import is_uri

# --- the bytes of a segment ---


class _MappedSegment:
    """A file that is all there; as `Ranges` otherwise. size: as it was listed, though it may have grown."""

    def __init__(self, path: str, size: int, form: LogFormat) -> None:
        self.view = open_bytes(path)[:size]
        self.limit = 0
        self.reads_bodies = True
        self._format = form

    def batches(self, *, check_records: bool = False) -> Batches[Any]:
        return self._format.batches(self.view, on_error="report", check_records=check_records)

    def expect(self, places: Sequence[int]) -> None:
        """Do nothing: looking at memory is free."""

    def read_all(self) -> None:
        """Do nothing: the bytes are mapped."""

    def need(self, start: int, end: int) -> None:
        """Do nothing: the bytes are mapped."""

    have = need

    def confirm(self) -> None:
        """Do nothing: an open file keeps its content when it is replaced."""

    def close(self) -> None:
        """Do nothing: the memory is freed with the last view."""


def _is_mapped(path: str) -> bool:
    return not is_uri(path) or log_format(path).is_kafka_07


# --- the walk ---


LEAD = 1 << 20
"""Bytes before a part's start at which the walk to its first batch begins, where an index says how."""


class SegmentReader:
    """One part's way through its file. Raises `OSError` where that can't be opened."""

    def __init__(self, part: Part, options: Options) -> None:
        self.part = part
        self.options = options
        self.format = log_format(part.path)
        self.file: _MappedSegment | Ranges = (
            _MappedSegment(part.path, part.size, self.format)
            if _is_mapped(part.path)
            else Ranges(part.path, (part.size, part.modified), part.start, part.end)
        )
        self.view = self.file.view
        self._judge = self.file.batches(check_records=True)

    def close(self) -> None:
        self.file.close()

    def items(self) -> Iterator[RecordBatch | Bad]:
        """The part's batches with right checksums, unread, and its bad ranges.

        With ranges of offsets or times, batches that their headers exclude may be left out unread.
        """
        if _is_ranged(self.options):
            yield from self._items_in_ranges()
            return
        reader, start, end = self._begin(reads_bodies=True)
        if reader is None:
            return
        while start <= reader.position < end:  # before the start: the file's last batch isn't all there
            item = next(reader, None)
            if item is None:
                yield self._cut_short(reader)
                return
            yield self.quarantine(item) if isinstance(item, UnreadableRange) else item

    def heads(self) -> Iterator[RecordBatch | Bad]:
        """The part's batches by their headers, and its bad ranges as far as headers show them."""
        reader, start, end = self._begin(reads_bodies=False)
        if reader is None or reader.position < start:
            return
        for item in reader.heads(end):
            yield self.quarantine(item) if isinstance(item, UnreadableRange) else item
        if reader.position < end:
            yield self._cut_short(reader)

    def _items_in_ranges(self) -> Iterator[RecordBatch | Bad]:
        """As `items`, but of batches outside of the ranges only headers are looked at."""
        reader, start, end = self._begin(reads_bodies=False, reads_ranges=True)
        if reader is None or reader.position < start:
            return
        for item in reader.heads(end):
            if isinstance(item, UnreadableRange):
                yield self.quarantine(item)
            elif unwanted(item, self.options):
                self.file.reads_bodies = False
            else:
                self.file.reads_bodies = True
                reader.position = item.position  # read it after all
                batch = next(reader)
                yield self.quarantine(batch) if isinstance(batch, UnreadableRange) else batch
        if reader.position < end:
            yield self._cut_short(reader)

    def _begin(
        self, *, reads_bodies: bool, reads_ranges: bool = False
    ) -> tuple[Batches[Any] | None, int, int]:
        """The batches from the part's first on; where its own begin, and end at the latest.

        reads_bodies: whether the bodies of all of them are wanted; reads_ranges: of those in the ranges asked
        for.
        """
        part = self.part
        low, high = self.bounds()
        start, end = max(part.start, low), min(part.end, high)
        if start >= end:
            return None, start, end
        self.file.limit = end
        self.file.reads_bodies = reads_bodies
        if reads_bodies or (reads_ranges and self._is_narrowed(low, high)):
            self.file.read_all()
        else:
            self.file.expect(self.known())
        reader = self.file.batches()
        reader.position = max(low, self.lead())
        reader.advance(start)
        return reader, start, end

    def _is_narrowed(self, low: int, high: int) -> bool:
        """Whether nearly all between these bounds is in the ranges asked for, by the index."""
        options = self.options
        return (
            options.starting_timestamp is None
            and (options.starting_offset is None or low > 0)
            and (options.ending_offset is None or high < len(self.view))
        )

    def _cut_short(self, reader: Batches[Any]) -> Bad:
        reason = f"the file ends inside a {self.format.unit}"
        return self.quarantine(UnreadableRange(reader.position, len(reader.remainder), reason))

    def verdict(self, at: int) -> Bad:
        """Why the batch at `at` can't be read, whose checksum is right."""
        self._judge.position = at
        item = next(self._judge)
        assert isinstance(item, UnreadableRange)
        return self.quarantine(item)

    def quarantine(self, item: UnreadableRange) -> Bad:
        """An unreadable range as a row of quarantine. Raises `CorruptBatch` in failfast mode."""
        start, end = item.position, item.position + item.length
        data_end = min(end, start + KEPT)
        self.file.need(start, data_end)
        self.file.confirm()
        bad_range = Bad(self.part.path, start, end, item.reason, bytes(self.view[start:data_end]))
        if self.options.failfast:
            raise CorruptBatch(str(bad_range), start)
        return bad_range

    # --- positions by the index ---

    @cached_property
    def index(self) -> OffsetIndex:
        """The index beside the file; empty if there is none that can be read."""
        path, name, data = self.part.index, self.part.path.rpartition("/")[2], None
        parsed = file_name(name) or remote_name(name)
        if path is not None:
            with suppress(OSError):
                data = read_small(path) if is_uri(path) else open_bytes(path)
        return OffsetIndex(data or b"", (parsed and parsed.offset) or 0)

    def known(self) -> list[int]:
        """The positions of batches by the index; none for a local file, where looking is free."""
        return sorted({entry.position for entry in self.index}) if is_uri(self.part.path) else []

    def bounds(self) -> tuple[int, int]:
        """The bytes between which the offsets of the options are: the whole file, unless the index narrows
        it.

        An entry is trusted if the header of a batch is there, and another one where it ends, and its offset
        shows that nothing is missed. That depends on the file alone, so that any split gives the same rows.
        """
        options = self.options
        has_offsets = options.starting_offset is not None or options.ending_offset is not None
        index: Sequence[OffsetPosition] = self.index if has_offsets else ()
        low, high = 0, len(self.view)
        if options.starting_offset is not None and index:
            at = bisect_right(index, options.starting_offset, key=lambda entry: entry.offset)
            batch = self._head_at(index[at - 1].position) if at else None
            if batch is not None and batch.base_offset <= options.starting_offset:
                low = batch.position
        if options.ending_offset is not None and index:
            at = bisect_left(index, options.ending_offset, key=lambda entry: entry.offset) + 1
            batch = self._head_at(index[at].position) if at < len(index) else None
            if batch is not None and batch.base_offset >= options.ending_offset and batch.position > low:
                high = batch.position
        return low, high

    def lead(self) -> int:
        """A batch's place from the index, well before the part's start; 0 if there is none to trust."""
        start = self.part.start - LEAD
        if start <= 0:
            return 0
        index = self.index
        number = bisect_right(index, start, key=lambda entry: entry.position)
        position = index[number - 1].position if number else 0
        return 0 if self._batch_at(position) is None else position

    def _head_at(self, position: int) -> RecordBatch | None:
        """The batch whose header is there, if another follows it."""
        if not 0 <= position < len(self.view):
            return None
        reader = self.file.batches()
        reader.position = position
        return reader.head()

    def _batch_at(self, position: int) -> RecordBatch | None:
        """The batch that is there, if its checksum is right."""
        if not 0 <= position < len(self.view):
            return None
        self.file.have(position, position + HEADER.size)
        try:
            size = batch_size(self.view, position, lambda _: False)
            if not size:
                return None
            self.file.have(position, position + size)
            batch = open_batch(self.view[position : position + size], position)
            batch.check()
        except (CorruptBatch, LimitExceeded):
            return None
        return batch


def _is_ranged(options: Options) -> bool:
    limits = options.starting_offset, options.ending_offset, options.starting_timestamp
    return any(limit is not None for limit in limits)


def unwanted(batch: RecordBatch, options: Options) -> bool:
    """Whether the header alone excludes any record in the ranges asked for."""
    if isinstance(batch, Kafka07Batch):  # which has no time, and one offset for all records
        low, high = options.starting_offset, options.ending_offset
        is_in_range = (low is None or batch.base_offset >= low) and (high is None or batch.base_offset < high)
        times = options.starting_timestamp, options.ending_timestamp
        return not is_in_range or times != (None, None)
    if options.starting_offset is not None and batch.last_offset < options.starting_offset:
        return True
    if batch.magic < 2:  # its header says less
        return False
    if options.ending_offset is not None and batch.base_offset >= options.ending_offset:
        return True
    return options.starting_timestamp is not None and batch.max_timestamp < options.starting_timestamp


def resume_position(part: Part, read: int) -> int:
    """Where the first batch begins that was incomplete when the file had `read` bytes. Raises `OSError`."""
    is_mapped = _is_mapped(part.path)
    tail = replace(part, start=read, size=read if is_mapped else part.size)  # an object is read at its size
    with closing(SegmentReader(tail, Options())) as reader:
        walk = reader.file.batches()
        walk.position = reader.lead()
        if is_mapped:
            walk.advance(read)
            return walk.position
        for item in walk.heads(read):
            size = item.length if isinstance(item, UnreadableRange) else item.size
            if item.position + size > read:
                return int(item.position)
        return walk.position
