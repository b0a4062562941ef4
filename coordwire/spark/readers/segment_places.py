"""Where batches begin in a segment: by the `.index` beside it, and by walking headers.

Strategy: a range of offsets begins at an entry of the index; the walk to a part's first batch begins at one
a good way before the part. Rules: an entry is trusted only as far as the file bears it out: if the header of
a batch is there and another one where that ends, or if the batch's checksum is right. Rows are the same
whatever the split.
"""

from __future__ import annotations

__all__ = ["SegmentPlaces", "has_offsets", "resume_position"]

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace

from coordwire.errors import CorruptBatch, LimitExceeded
from coordwire.records import RecordBatch, UnreadableRange
from coordwire.records.batch import HEADER
from coordwire.records.batch_sizes import batch_size
from coordwire.records.formats import open_batch
from coordwire.segments.indexes import OffsetIndex, OffsetPosition
from coordwire.segments.names import file_name
from coordwire.segments.remote_storage import remote_name
from coordwire.spark.options import Options
from coordwire.spark.readers.files import open_bytes
from coordwire.spark.readers.object_ranges import read_small
from coordwire.spark.readers.parts import Part
from coordwire.spark.readers.segment_bytes import SegmentBytes, open_segment
from coordwire.spark.readers.stores import is_uri

LEAD = 1 << 20
"""Bytes before a part's start at which the walk to its first batch begins, where an index says how."""


class SegmentPlaces:
    """What is known of a part's file before it is read. file: it, as `open_segment` gave it."""

    def __init__(self, part: Part, options: Options, file: SegmentBytes) -> None:
        self.part = part
        self.options = options
        self.file = file
        self.view = file.view
        self._index: OffsetIndex | None = None

    def index(self) -> OffsetIndex:
        """The index beside the file; empty if there is none that can be read."""
        if self._index is None:
            name, data = self.part.path.rpartition("/")[2], None
            said = file_name(name) or remote_name(name)
            if self.part.index is not None:
                try:
                    data = _beside(self.part.index)
                except OSError:
                    data = None
            base = said.offset if said is not None and said.offset is not None else 0
            self._index = OffsetIndex(data or b"", base)
        return self._index

    def known(self) -> list[int]:
        """Where batches begin by the index; nothing for a local file, where looking costs nothing."""
        return sorted({entry.position for entry in self.index()}) if is_uri(self.part.path) else []

    def bounds(self) -> tuple[int, int]:
        """Between which bytes the offsets asked for are: the whole file, unless the index knows better.

        An entry is trusted if the header of a batch is there, and another one where it ends, and its offset
        shows that nothing is missed. That depends on the file alone, so that any split gives the same rows.
        """
        options = self.options
        index: Sequence[OffsetPosition] = self.index() if has_offsets(options) else ()
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
        index = self.index()
        found = bisect_right(index, start, key=lambda entry: entry.position)
        position = index[found - 1].position if found else 0
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


def _beside(path: str) -> memoryview | bytes | None:
    """A small file beside the segment; None for one that is too large. Raises `OSError`."""
    return read_small(path) if is_uri(path) else open_bytes(path)


def has_offsets(options: Options) -> bool:
    """Whether a range of offsets is asked for."""
    return options.starting_offset is not None or options.ending_offset is not None


def resume_position(part: Part, read: int) -> int:
    """Where the first batch begins that wasn't all there when the file had `read` bytes. Raises `OSError`."""
    local = not is_uri(part.path)
    seen = replace(part, start=read, size=read if local else part.size)  # an object is read at its own size
    with closing(open_segment(seen)) as file:
        walk = file.batches()
        walk.position = SegmentPlaces(seen, Options(), file).lead()
        if local:
            walk.advance(read)
            return walk.position
        for item in walk.heads(read):
            size = item.length if isinstance(item, UnreadableRange) else item.size
            if item.position + size > read:
                return int(item.position)
        return walk.position
