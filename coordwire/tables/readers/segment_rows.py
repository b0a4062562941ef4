"""A part of a segment as rows, of its batches' headers or of its records, and what couldn't be read.

Strategy: intact batches that follow one another (`segment_reader`) go to Arrow in one piece; messages of
Kafka 0.7 do not. Rules: the rows
of all parts are those of the whole file; where no column of a record is asked for, records are counted, and
none is decoded.
"""

from __future__ import annotations

__all__ = ["BatchRows", "read_batches", "read_records"]

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from functools import reduce
from itertools import chain
from typing import TYPE_CHECKING, Any

from coordwire.errors import CorruptBatch, LimitExceeded
from coordwire.records import RecordBatch, UnreadableRange
from coordwire.records.batch import HEADER
from coordwire.tables.columns import ARROW_NAMES, BATCHES, RECORDS, arrow_schema
from coordwire.tables.options import Options
from coordwire.tables.readers.coordinator_logs import time_of
from coordwire.tables.readers.rows import MOST_ROWS, Bad, Builder, conform, part_columns
from coordwire.tables.readers.segment_reader import SegmentReader, unwanted
from coordwire.tables.readers.splits import Part

if TYPE_CHECKING:
    import pyarrow

# --- headers of batches ---


def read_batches(part: Part, options: Options, columns: Sequence[str]) -> Iterator[pyarrow.RecordBatch | Bad]:
    """The headers of the part's batches, and its bad ranges. Raises `OSError` where the
    file can't be read, in failfast mode `CorruptBatch` for the first bad range.

    A header counts if another follows it where its batch ends; bodies are read only where none does, or all
    of them under `checksums`. Records aren't looked at: what is malformed inside a batch of a right checksum
    doesn't show here.
    """
    header = BatchRows(part, columns)
    with closing(SegmentReader(part, options)) as reader:
        for item in reader.items() if options.checksums else reader.heads():
            if isinstance(item, Bad):
                yield item
            elif not unwanted(item, options) and (batch := header.add(item)) is not None:
                reader.file.confirm()
                yield batch
        if (batch := header.builder.take()) is not None:
            reader.file.confirm()
            yield batch


class BatchRows:
    """Batch headers as rows of the batches table."""

    def __init__(self, part: Part, columns: Sequence[str]) -> None:
        schema = arrow_schema([column for name in columns for column in BATCHES if column.name == name])
        constant_rows = part_columns(part)
        self.builder = Builder(schema, 8 << 20)
        self._getters = [_getter(name, constant_rows) for name in columns]
        self._size_index = columns.index(_SIZE) if _SIZE in columns else None

    def add(self, batch: RecordBatch, records_size: int | None = None) -> pyarrow.RecordBatch | None:
        """Add a batch's header; returns a batch of rows whenever it is large enough.

        records_size: bytes of its records without compression, if they were decompressed.
        """
        row = [get(batch) for get in self._getters]
        if records_size is not None and self._size_index is not None:
            row[self._size_index] = HEADER.size + records_size if batch.magic == 2 else records_size
        return self.builder.add(row, 200)


_SIZE = "uncompressed_size"


def _getter(name: str, constants: dict[str, Any]) -> Callable[[RecordBatch], Any]:
    if name in constants:
        value = constants[name]
        return lambda batch: value
    special: dict[str, Callable[[RecordBatch], Any]] = {
        "position": lambda batch: batch.position,
        "time": lambda batch: time_of(batch.max_timestamp),
        "max_timestamp_ms": lambda batch: batch.max_timestamp,
        "base_offset": _base_offset,
        "codec": _codec,
        _SIZE: lambda batch: batch.size if _codec(batch) == "none" else None,
    }
    return special.get(name) or (lambda batch: getattr(batch, name))


def _base_offset(batch: RecordBatch) -> int | None:
    try:
        return batch.base_offset
    except (CorruptBatch, LimitExceeded):  # a compressed message set has it inside
        return None


def _codec(batch: RecordBatch) -> str | None:
    try:
        return batch.codec
    except CorruptBatch:
        return None


# --- records ---


See = Callable[[RecordBatch, int | None], None]
"""What gets every batch whose records could be read, and how many bytes they are if decompressed."""

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
    see: See | None = None,
) -> Iterator[pyarrow.RecordBatch | Bad]:
    """The part's records in batches of these columns of the records table, and its bad ranges.

    see: called with every batch whose records could be read, and their size if they are compressed. Raises
    `OSError` where the file can't be read, in failfast mode `CorruptBatch` for the first bad range.
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
    see: See | None,
) -> Iterator[pyarrow.RecordBatch | Bad]:
    """The records of batches that follow one another, all with right checksums."""
    from coordwire.records.arrow import iter_batches

    if not run:
        return
    reader.file.confirm()
    start, end = run[0].position, run[-1].position + run[-1].size
    skipped: list[UnreadableRange] = []
    sizes: dict[int, int] = {}
    tables = iter_batches(
        reader.format.stretch(reader.view, start, end), columns=finish.inner,
        max_bytes=reader.options.batch_size, on_error="skip", skipped=skipped, sizes=sizes,
    )  # fmt: skip
    for table in tables:
        if (batch := finish(table, start)) is not None:
            yield batch
    for item in skipped:  # the checksum vouches for the length
        yield reader.verdict(start + item.position)
    if see is not None:
        unread = {start + item.position for item in skipped}
        for head in run:
            if head.position not in unread:
                size = sizes.get(head.position - start)
                see(head, records_size(head) if size is None else size)


def records_size(batch: RecordBatch) -> int | None:
    """Bytes of a sound batch's records without compression; None where it has none."""
    return None if batch.codec == "none" else len(batch.payload())


def _counted(
    reader: SegmentReader, finish: _Finisher, see: See | None
) -> Iterator[pyarrow.RecordBatch | Bad]:
    """As many rows as there are records, counted by the headers of batches that were checked."""
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
            see(item, records_size(item))
        while rows >= MOST_ROWS:
            yield finish.constant_rows(MOST_ROWS)
            rows -= MOST_ROWS
    if rows:
        yield finish.constant_rows(rows)


_COMPUTED = {
    "key_size": ("key",), "value_size": ("value",), "sequence": ("base_sequence", "base_offset", "offset"),
}  # fmt: skip
"""What columns are computed from."""

_SEQUENCES = 1 << 31
"""After the largest of so many sequence numbers the next is 0."""


def _inner_columns(names: Iterable[str]) -> list[str]:
    """The columns of `coordwire.records.arrow` that these columns of records are made from."""
    inner = (_COMPUTED.get(name) or (ARROW_NAMES.get(name, name),) for name in names)
    return list(dict.fromkeys(chain.from_iterable(inner)))


def _sequences(table: pyarrow.RecordBatch) -> Any:
    """Each record's sequence number; -1 where its batch has none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    first = table.column("base_sequence")
    if not len(first) or pc.max(first).as_py() < 0:
        return pa.repeat(pa.scalar(-1, pa.int32()), len(first))
    step = pc.subtract(table.column("offset"), table.column("base_offset"))
    number = pc.bit_wise_and(pc.add(step, pc.cast(first, pa.int64())), _SEQUENCES - 1)
    return pc.if_else(pc.less(first, 0), -1, number)


class _Finisher:
    """Converts the tables of `iter_batches` to the schema that was asked for."""

    def __init__(self, part: Part, options: Options, schema: pyarrow.Schema) -> None:
        self.schema = schema
        self.options = options
        self.constants = part_columns(part)
        self._repeated: dict[str, pyarrow.Array] = {}
        names = _inner_columns([name for name in schema.names if name not in self.constants])
        hidden = []
        if options.starting_offset is not None or options.ending_offset is not None:
            hidden.append("offset")
        if options.starting_timestamp is not None or options.ending_timestamp is not None:
            hidden.append("timestamp_ms")
        self.hidden = hidden
        self.inner = names + [name for name in hidden if name not in names]

    def __call__(self, table: pyarrow.RecordBatch, origin: int) -> pyarrow.RecordBatch | None:
        """The table in the schema; None if none of its rows is in the ranges. origin: of its run."""
        import pyarrow as pa
        import pyarrow.compute as pc

        mask = self._range_mask(table)
        if mask is not None:
            table = table.filter(mask)
        if not table.num_rows:
            return None
        arrays: list[Any] = []
        for field in self.schema:
            if field.name in self.constants:
                array = self._constant_column(field, table.num_rows)
            elif field.name in ("key_size", "value_size"):
                array = pc.binary_length(table.column(field.name.removesuffix("_size")))
            elif field.name == "sequence":
                array = _sequences(table)
            else:
                array = table.column(ARROW_NAMES.get(field.name, field.name))
                if field.name == "batch_position" and origin:
                    array = pc.add(array, origin)
            arrays.append(array)
        return conform(pa.RecordBatch.from_arrays(arrays, names=self.schema.names), self.schema)

    def constant_rows(self, rows: int) -> pyarrow.RecordBatch:
        """A batch of rows that all have the part's constants."""
        import pyarrow as pa

        arrays = [self._constant_column(field, rows) for field in self.schema]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _constant_column(self, field: pyarrow.Field, rows: int) -> pyarrow.Array:
        """A column with one value in all rows; its memory is shared by all tables."""
        import pyarrow as pa

        array = self._repeated.get(field.name)
        if array is None or len(array) < rows:
            value = self.constants[field.name]
            array = pa.repeat(pa.scalar(value, field.type), 2 * rows)
            self._repeated[field.name] = array
        return array.slice(0, rows)

    def _range_mask(self, table: pyarrow.RecordBatch) -> Any:
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
        return reduce(pc.and_, masks) if masks else None
