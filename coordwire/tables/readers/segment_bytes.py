"""The bytes of one segment, whether they are a local file or an object of a store.

Strategy: a local file is mapped, and all of it is there; a store's object is read in ranges
(`object_ranges`). Rules: both are asked the same things, so that their reader takes the same steps.
"""

from __future__ import annotations

__all__ = ["LocalSegment", "SegmentBytes", "open_segment"]

from collections.abc import Sequence
from typing import Any

from coordwire.records import batches
from coordwire.records.batch_reader import Batches
from coordwire.tables.readers.files import open_bytes
from coordwire.tables.readers.object_ranges import Ranges
from coordwire.tables.readers.splits import Part
from coordwire.tables.stores import is_uri


class LocalSegment:
    """A local file, which is all there; as `Ranges` otherwise. size: as it was listed, though it may have
    grown."""

    def __init__(self, path: str, size: int) -> None:
        self.view = open_bytes(path)[:size]
        self.limit = 0
        self.whole = True

    def batches(self, *, check_records: bool = False) -> Batches[Any]:
        return batches(self.view, on_error="report", check_records=check_records)

    def expect(self, places: Sequence[int]) -> None:
        """Nothing: it costs nothing to look."""

    def need(self, start: int, end: int) -> None:
        """Nothing: it is there."""

    have = need

    def confirm(self) -> None:
        """Nothing: a file that is replaced stays what it was for who has it open."""

    def close(self) -> None:
        """Nothing: the memory goes with its last view."""


SegmentBytes = LocalSegment | Ranges


def open_segment(part: Part) -> SegmentBytes:
    """The file of a part. Raises `OSError`."""
    if is_uri(part.path):
        return Ranges(part.path, (part.size, part.modified), part.start, part.end)
    return LocalSegment(part.path, part.size)
