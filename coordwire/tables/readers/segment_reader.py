"""A part of a segment: its batches, unread, or their headers, and what couldn't be read.

Strategy: the first batch at or after the part's start is found by walking headers (`segment_positions`); that
walk gives the places that reading the whole file would come to. From there on checksums divide the part into
sound batches and the rest, about which `coordwire.records.batches` decides over the whole file, so that a
part's end changes no verdict. Of batches that headers exclude nothing else is read. Rules: a batch belongs to
the part in which it begins; the batches and bad ranges of all parts make up the file.
"""

from __future__ import annotations

__all__ = ["SegmentReader", "unwanted"]

from collections.abc import Iterator
from typing import Any

from coordwire.errors import CorruptBatch
from coordwire.records import RecordBatch, UnreadableRange
from coordwire.records.batch_reader import Batches
from coordwire.tables.options import Options
from coordwire.tables.readers.rows import KEPT, Bad
from coordwire.tables.readers.segment_bytes import open_segment
from coordwire.tables.readers.segment_positions import SegmentPlaces, has_offsets
from coordwire.tables.readers.splits import Part

CUT_SHORT = "the file ends inside a batch"


class SegmentReader:
    """One part's way through its file."""

    def __init__(self, part: Part, options: Options) -> None:
        self.part = part
        self.options = options
        self.file = open_segment(part)
        self.view = self.file.view
        self._places = SegmentPlaces(part, options, self.file)
        self._judge = self.file.batches(check_records=True)

    def close(self) -> None:
        self.file.close()

    def items(self) -> Iterator[RecordBatch | Bad]:
        """The part's batches with right checksums, unread, and its bad ranges.

        Where offsets or times are asked for, batches that their headers exclude may be left out unseen.
        """
        if _is_ranged(self.options):
            yield from self._wanted()
            return
        reader, start, end = self._begin(whole=True)
        if reader is None:
            return
        while start <= reader.position < end:  # before the start: the file's last batch isn't all there
            item = next(reader, None)
            if item is None:
                yield self._cut_short(reader)
                return
            yield self.bad(item) if isinstance(item, UnreadableRange) else item

    def heads(self) -> Iterator[RecordBatch | Bad]:
        """The part's batches by their headers, and its bad ranges as far as headers show them."""
        reader, start, end = self._begin(whole=False)
        if reader is None or reader.position < start:
            return
        for item in reader.heads(end):
            yield self.bad(item) if isinstance(item, UnreadableRange) else item
        if reader.position < end:
            yield self._cut_short(reader)

    def _wanted(self) -> Iterator[RecordBatch | Bad]:
        """As `items`, but of batches that aren't wanted only headers are looked at."""
        reader, start, end = self._begin(whole=False)
        if reader is None or reader.position < start:
            return
        for item in reader.heads(end):
            if isinstance(item, UnreadableRange):
                yield self.bad(item)
            elif unwanted(item, self.options):
                self.file.whole = False
            else:
                self.file.whole = True
                reader.position = item.position  # read it after all
                found = next(reader)
                yield self.bad(found) if isinstance(found, UnreadableRange) else found
        if reader.position < end:
            yield self._cut_short(reader)

    def _begin(self, *, whole: bool) -> tuple[Batches[Any] | None, int, int]:
        """The batches from the part's first on; where its own begin, and end at the latest.

        whole: whether the bodies of all of them are wanted.
        """
        part = self.part
        low, high = self._places.bounds()
        start, end = max(part.start, low), min(part.end, high)
        if start >= end:
            return None, start, end
        self.file.limit = end
        if not whole:
            self.file.expect(self._places.known())
        self.file.whole = whole
        reader = self.file.batches()
        reader.position = max(low, self._places.lead())
        reader.advance(start)
        return reader, start, end

    def _cut_short(self, reader: Batches[Any]) -> Bad:
        return self.bad(UnreadableRange(reader.position, len(reader.remainder), CUT_SHORT))

    def verdict(self, at: int) -> Bad:
        """Why the batch at `at` can't be read, whose checksum is right."""
        self._judge.position = at
        found = next(self._judge)
        assert isinstance(found, UnreadableRange)
        return self.bad(found)

    def bad(self, found: UnreadableRange) -> Bad:
        """It as a row of quarantine; raises it in failfast mode."""
        start, end = found.position, found.position + found.length
        kept = min(end, start + KEPT)
        self.file.need(start, kept)
        self.file.confirm()
        bad = Bad(self.part.path, start, end, found.reason, bytes(self.view[start:kept]))
        if self.options.failfast:
            raise CorruptBatch(str(bad), start)
        return bad


def _is_ranged(options: Options) -> bool:
    return has_offsets(options) or options.starting_timestamp is not None


def unwanted(batch: RecordBatch, options: Options) -> bool:
    """Whether the header alone excludes any record in the ranges asked for."""
    if options.starting_offset is not None and batch.last_offset < options.starting_offset:
        return True
    if batch.magic < 2:  # its header says less
        return False
    if options.ending_offset is not None and batch.base_offset >= options.ending_offset:
        return True
    return options.starting_timestamp is not None and batch.max_timestamp < options.starting_timestamp
