"""A part of a segment as records: batches of Arrow columns, and what couldn't be read.

Strategy: sound batches that follow one another (`segment_reader`) go to Arrow in one piece. Rules: the rows
of all parts are those of the whole file; where no column of a record is asked for, records are counted, and
none is decoded.
"""

from __future__ import annotations

__all__ = ["read_records"]

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

from coordwire.errors import CorruptBatch, LimitExceeded
from coordwire.records import RecordBatch, UnreadableRange
from coordwire.tables.columns import RECORDS, arrow_schema
from coordwire.tables.options import Options
from coordwire.tables.readers.rows import MOST_ROWS, Bad, conform, part_columns
from coordwire.tables.readers.segment_reader import SegmentReader, unwanted
from coordwire.tables.readers.splits import Part

if TYPE_CHECKING:
    import pyarrow

RUN = 16 << 20
"""Bytes of sound batches that go to Arrow together."""

NO_TIME = -1
"""The timestamp of a record without one, which is in no range of times."""

NOTHING: list[str] = []
"""The columns that batches are decoded for, where only their number is asked for."""


def read_records(
    part: Part,
    options: Options,
    columns: Sequence[str],
    see: Callable[[RecordBatch], None] | None = None,
) -> Iterator[pyarrow.RecordBatch | Bad]:
    """The part's records in batches of these columns of the records table, and its bad ranges.

    see: is shown every batch whose records could be read. Raises `OSError` where the file can't be read, in
    failfast mode `CorruptBatch` for the first bad range.
    """
    schema = arrow_schema([column for name in columns for column in RECORDS if column.name == name])
    finish = _Finisher(part, options, schema)
    if finish.inner == NOTHING:
        with closing(SegmentReader(part, options)) as reader:
            yield from _counted(reader, finish, see)
        return
    run: list[RecordBatch] = []
    with closing(SegmentReader(part, options)) as reader:
        for item in reader.items():
            if isinstance(item, Bad):
                yield from _run(reader, run, finish, see)
                run = []
                yield item
            elif not unwanted(item, options):
                if run and (
                    run[-1].position + run[-1].size != item.position or item.position - run[0].position >= RUN
                ):
                    yield from _run(reader, run, finish, see)
                    run = []
                run.append(item)
        yield from _run(reader, run, finish, see)


def _run(
    reader: SegmentReader,
    run: list[RecordBatch],
    finish: _Finisher,
    see: Callable[[RecordBatch], None] | None,
) -> Iterator[pyarrow.RecordBatch | Bad]:
    """The records of batches that follow one another, all with right checksums."""
    from coordwire.records.arrow import iter_batches

    if not run:
        return
    reader.file.confirm()
    start, end = run[0].position, run[-1].position + run[-1].size
    skipped: list[UnreadableRange] = []
    tables = iter_batches(
        reader.view[start:end], columns=finish.inner, max_bytes=reader.options.batch_size,
        on_error="skip", skipped=skipped,
    )  # fmt: skip
    for table in tables:
        if (batch := finish(table, start)) is not None:
            yield batch
    for bad in skipped:  # the checksum vouches for the length
        yield reader.verdict(start + bad.position)
    if see is not None:
        unread = {start + bad.position for bad in skipped}
        for one in run:
            if one.position not in unread:
                see(one)


def _counted(
    reader: SegmentReader, finish: _Finisher, see: Callable[[RecordBatch], None] | None
) -> Iterator[pyarrow.RecordBatch | Bad]:
    """As many rows as there are records, without making any: their batches are checked, and say how many."""
    rows = 0
    for item in reader.items():
        if isinstance(item, Bad):
            yield item
            continue
        try:
            item.verify()
        except (CorruptBatch, LimitExceeded):
            yield reader.verdict(item.position)
            continue
        count = item.count
        rows += sum(1 for _ in item) if count is None else count
        if see is not None:
            see(item)
        while rows >= MOST_ROWS:
            yield finish.same(MOST_ROWS)
            rows -= MOST_ROWS
    if rows:
        yield finish.same(rows)


class _Finisher:
    """Makes of `iter_batches`' tables those that were asked for."""

    def __init__(self, part: Part, options: Options, schema: pyarrow.Schema) -> None:
        self.schema = schema
        self.options = options
        self.constants = part_columns(part)
        self._repeated: dict[str, pyarrow.Array] = {}
        asked = [name for name in schema.names if name not in self.constants]
        hidden = []
        if options.starting_offset is not None or options.ending_offset is not None:
            hidden.append("offset")
        if options.starting_timestamp is not None or options.ending_timestamp is not None:
            hidden.append("timestamp_ms")
        self.hidden = hidden
        self.inner = asked + [name for name in hidden if name not in asked]

    def __call__(self, table: pyarrow.RecordBatch, origin: int) -> pyarrow.RecordBatch | None:
        """The table in the schema; None if none of its rows is in the ranges. origin: of its run."""
        import pyarrow as pa
        import pyarrow.compute as pc

        kept = self._kept(table)
        if kept is not None:
            table = table.filter(kept)
        if not table.num_rows:
            return None
        arrays: list[Any] = []
        for field in self.schema:
            if field.name in self.constants:
                array = self._same(field, table.num_rows)
            else:
                array = table.column(field.name)
                if field.name == "batch_position" and origin:
                    array = pc.add(array, origin)
            arrays.append(array)
        return conform(pa.RecordBatch.from_arrays(arrays, names=self.schema.names), self.schema)

    def same(self, rows: int) -> pyarrow.RecordBatch:
        """So many rows of columns that are the same in all."""
        import pyarrow as pa

        arrays = [self._same(field, rows) for field in self.schema]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _same(self, field: pyarrow.Field, rows: int) -> pyarrow.Array:
        """A column with one value in all rows; its memory is shared by all tables."""
        import pyarrow as pa

        array = self._repeated.get(field.name)
        if array is None or len(array) < rows:
            value = self.constants[field.name]
            array = pa.repeat(pa.scalar(value, field.type), 2 * rows)
            self._repeated[field.name] = array
        return array.slice(0, rows)

    def _kept(self, table: pyarrow.RecordBatch) -> Any:
        """Which rows are in the ranges; None for all."""
        import pyarrow.compute as pc

        limits: list[tuple[str, Callable[..., Any], int | None]] = [
            ("offset", pc.greater_equal, self.options.starting_offset),
            ("offset", pc.less, self.options.ending_offset),
            ("timestamp_ms", pc.greater_equal, self.options.starting_timestamp),
            ("timestamp_ms", pc.less, self.options.ending_timestamp),
            ("timestamp_ms", pc.not_equal, NO_TIME if "timestamp_ms" in self.hidden else None),
        ]
        masks = [compare(table.column(name), limit) for name, compare, limit in limits if limit is not None]
        kept = masks[0] if masks else None
        for mask in masks[1:]:
            kept = pc.and_(kept, mask)
        return kept
