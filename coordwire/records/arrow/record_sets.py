"""A column of record sets as tables: all of their records, and how many each set has.

Strategy: the kernel goes from set to set and fills the same table, so that a small set costs a call and no
table of its own. A set with anything that the kernel leaves to Python is read by `iter_batches`, from its
start, and so are all without the extension. Rules: each set is read as if it were alone: nothing in it
reaches into the next, and what is bad in one takes nothing from the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from coordwire.errors import CoordwireError, UnreadableRange
from coordwire.records import backend
from coordwire.records.arrow import MOST, arrow_package, iter_batches, schema
from coordwire.records.arrow.native import Filler
from coordwire.records.batch_reader import batches
from coordwire.records.readahead import Readahead

if TYPE_CHECKING:
    import pyarrow


@dataclass(slots=True)
class RecordSets:
    """tables: the records of all sets, in order; counts: how many of them each set has; reasons: by the
    index of a set that could not be read whole, why its first bad bytes could not, or all of it."""

    tables: list[pyarrow.RecordBatch] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)
    reasons: dict[int, str] = field(default_factory=dict)


def read_record_sets(source: memoryview, ends: Sequence[int], columns: Sequence[str]) -> RecordSets:
    """The records of the sets that `source` consists of. ends: where each set ends, the first begins at 0;
    columns: as `iter_batches` takes them. Raises `CoordwireError` without pyarrow."""
    reader = _Reader(source, columns)
    start = 0
    with Readahead(source, {}) as ahead:
        for end in ends:
            if start == end:
                reader.sets.counts.append(0)
            elif not (reader.fills and reader.fill(start, end, ahead)):
                reader.read_alone(start, end)
            start = end
    reader.take()
    return reader.sets


class _Reader:
    """sets: what was read so far, but for the rows of the table that the kernel fills."""

    def __init__(self, source: memoryview, columns: Sequence[str]) -> None:
        self.sets = RecordSets()
        self.fills = backend.columns is not None
        self._source = source
        self._columns = columns
        self._row_count = 0  # rows of the tables
        if self.fills:
            self._filler = self._new_filler()

    def _new_filler(self) -> Filler:
        return Filler(arrow_package(), self._source, schema(self._columns), MOST, True)

    def take(self) -> None:
        """End the table at hand."""
        if self.fills and self._filler.has_rows:
            self._keep(self._filler.last_table())

    def _keep(self, tables: Iterator[pyarrow.RecordBatch]) -> int:
        """Add tables; returns their rows."""
        before = self._row_count
        for table in tables:
            self.sets.tables.append(table)
            self._row_count += table.num_rows
        return self._row_count - before

    def fill(self, start: int, end: int, ahead: Readahead) -> bool:
        """Have the kernel read a set; False, and without any of its records, if it can't read all of it."""
        filler, part, position = self._filler, self._source[:end], start
        before = self._row_count + filler.row_count
        body: bytes | None = None
        while position < end:
            full, reached = filler.run_part(part, position, body)
            if full:
                self._keep(iter((filler.table(),)))
            elif reached == position:
                body = ahead.body(position) if body is None else None
                if body is None:
                    self._drop(before)
                    return False
                continue
            if reached != position:
                position, body = reached, None
        self.sets.counts.append(self._row_count + filler.row_count - before)
        return True

    def _drop(self, count: int) -> None:
        """Keep so many rows, those of the sets before."""
        self.take()
        while self._row_count > count:
            table = self.sets.tables.pop()
            self._row_count -= table.num_rows
            if self._row_count < count:
                self._keep(iter((table.slice(0, count - self._row_count),)))
        self._filler = self._new_filler()

    def read_alone(self, start: int, end: int) -> None:
        """Read a set by itself, past what is bad in it."""
        self.take()
        data, skipped = self._source[start:end], list[UnreadableRange]()
        reason, before = None, self._row_count
        try:
            self._keep(iter_batches(data, columns=self._columns, on_error="skip", skipped=skipped))
        except CoordwireError as error:  # a codec's library is missing, a limit
            reason = str(error)
        if skipped:
            first = skipped[0]
            reason = f"bytes {first.position} to {first.position + first.length}: {first.reason}"
        elif reason is None and (size := _incomplete(data)):
            reason = f"{size} bytes at the end are not a whole batch"
        if reason is not None:
            self.sets.reasons[len(self.sets.counts)] = reason
        self.sets.counts.append(self._row_count - before)


def _incomplete(data: memoryview) -> int:
    """Bytes after the last whole batch."""
    walk: Any = batches(data, on_error="skip")
    for _ in walk.heads(len(data)):
        pass
    return len(walk.remainder)
