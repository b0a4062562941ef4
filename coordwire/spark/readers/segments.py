"""A part of a segment: its records, or its batches' headers, and what couldn't be read.

Strategy: the first batch at or after the part's start is found by walking headers, from an entry of the
`.index` a good way before it (looked at first), else from the file's start; that walk gives the places that
reading the whole file would come to. From there on checksums divide the part into sound runs and the rest. A
run goes to Arrow in one piece; about the rest `coordwire.records.batches` decides over the whole file, so
that a part's end changes no verdict. Rules: a batch belongs to the part in which it begins; the rows of all
parts are those of the whole file, and their bytes and the bad ones make up the file.
"""

from __future__ import annotations

__all__ = ["read_batches", "read_records"]

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from coordwire.capture.jsonlines import text
from coordwire.errors import CorruptBatch, LimitExceeded
from coordwire.records import RecordBatch, UnreadableRange, batches
from coordwire.segments.indexes import OffsetIndex
from coordwire.spark.columns import BATCHES, RECORDS, arrow_schema
from coordwire.spark.options import Options
from coordwire.spark.readers.files import open_bytes
from coordwire.spark.readers.parts import Part
from coordwire.spark.readers.rows import KEPT, Bad, Builder, conform

if TYPE_CHECKING:
    import pyarrow

RUN = 16 << 20
"""Bytes of sound batches that go to Arrow together."""

LEAD = 1 << 20
"""Bytes before a part's start at which the walk to its first batch begins, where an index says how."""

NO_TIME = -1
"""The timestamp of a record without one, which is in no range of times."""

CUT_SHORT = "the file ends inside a batch"


class _Reader:
    """One part's way through its file."""

    def __init__(self, part: Part, options: Options) -> None:
        self.part = part
        self.options = options
        self.view = open_bytes(part.path)
        self._judge = batches(self.view, on_error="report")

    def items(self) -> Iterator[RecordBatch | Bad]:
        """The part's batches with right checksums, unread, and its bad ranges."""
        part, end = self.part, min(self.part.end, len(self.view))
        reader = batches(self.view, on_error="report", check_records=False)
        reader.position = self._lead()
        reader.advance(part.start)
        while part.start <= reader.position < end:  # before the start: the file's last batch isn't all there
            item = next(reader, None)
            if item is None:
                yield self.bad(UnreadableRange(reader.position, len(reader.remainder), CUT_SHORT))
                return
            yield self.bad(item) if isinstance(item, UnreadableRange) else item

    def verdict(self, at: int) -> Bad:
        """Why the batch at `at` can't be read, whose checksum is right."""
        self._judge.position = at
        found = next(self._judge)
        assert isinstance(found, UnreadableRange)
        return self.bad(found)

    def bad(self, found: UnreadableRange) -> Bad:
        """It as a row of quarantine; raises it in failfast mode."""
        start, end = found.position, found.position + found.length
        data = bytes(self.view[start : min(end, start + KEPT)])
        bad = Bad(self.part.path, start, end, found.reason, data)
        if self.options.failfast:
            raise CorruptBatch(str(bad), start)
        return bad

    def _lead(self) -> int:
        """A batch's place from the index, well before the part's start; 0 if there is none to trust."""
        start = self.part.start - LEAD
        if start <= 0 or self.part.index is None:
            return 0
        try:
            index = OffsetIndex(open_bytes(self.part.index), 0)
        except OSError:
            return 0
        found = bisect_right(index, start, key=lambda entry: entry.position)
        position = index[found - 1].position if found else 0
        return position if self._batch_at(position) else 0

    def _batch_at(self, position: int) -> bool:
        """Whether a batch with the right checksum is there."""
        if not 0 <= position < len(self.view):
            return False
        reader = batches(self.view)
        reader.position = position
        try:
            batch = next(reader, None)
            if batch is not None:
                batch.check()
        except CorruptBatch:
            return False
        return batch is not None


def constants(part: Part) -> dict[str, str | int | None]:
    """The columns that are the same in all rows of a part."""
    return {
        "topic": part.topic, "partition": part.partition, "path": text(part.path), "broker": part.broker,
        "cluster_id": part.cluster_id, "file_state": part.state,
    }  # fmt: skip


def _unwanted(batch: RecordBatch, options: Options) -> bool:
    """Whether the header alone excludes any record in the ranges asked for."""
    if options.starting_offset is not None and batch.last_offset < options.starting_offset:
        return True
    if batch.magic < 2:  # its header says less
        return False
    if options.ending_offset is not None and batch.base_offset >= options.ending_offset:
        return True
    return options.starting_timestamp is not None and batch.max_timestamp < options.starting_timestamp


# --- records ---


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
    reader = _Reader(part, options)
    run: list[RecordBatch] = []
    for item in reader.items():
        if isinstance(item, Bad):
            yield from _run(reader, run, finish, see)
            run = []
            yield item
        elif not _unwanted(item, options):
            if run and (
                run[-1].position + run[-1].size != item.position or item.position - run[0].position >= RUN
            ):
                yield from _run(reader, run, finish, see)
                run = []
            run.append(item)
    yield from _run(reader, run, finish, see)


def _run(
    reader: _Reader, run: list[RecordBatch], finish: _Finisher, see: Callable[[RecordBatch], None] | None
) -> Iterator[pyarrow.RecordBatch | Bad]:
    """The records of batches that follow one another, all with right checksums."""
    from coordwire.records.arrow import iter_batches

    if not run:
        return
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


class _Finisher:
    """Makes of `iter_batches`' tables those that were asked for."""

    def __init__(self, part: Part, options: Options, schema: pyarrow.Schema) -> None:
        self.schema = schema
        self.options = options
        self.constants = constants(part)
        self._repeated: dict[str, pyarrow.Array] = {}
        asked = [name for name in schema.names if name not in self.constants]
        hidden = []
        if options.starting_offset is not None or options.ending_offset is not None:
            hidden.append("offset")
        if options.starting_timestamp is not None or options.ending_timestamp is not None:
            hidden.append("timestamp_ms")
        self.hidden = hidden
        self.inner = asked + [name for name in hidden if name not in asked] or ["offset"]

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


# --- headers ---


def read_batches(part: Part, options: Options, columns: Sequence[str]) -> Iterator[pyarrow.RecordBatch | Bad]:
    """The headers of the part's batches with right checksums, and its bad ranges. Raises as `read_records`.

    Records aren't looked at: what is malformed inside a batch of a right checksum doesn't show here.
    """
    reader = _Reader(part, options)
    header = Headers(part, columns)
    for item in reader.items():
        if isinstance(item, Bad):
            yield item
        elif not _unwanted(item, options) and (batch := header.add(item)) is not None:
            yield batch
    if (batch := header.builder.take()) is not None:
        yield batch


class Headers:
    """Batch headers as rows of the batches table."""

    def __init__(self, part: Part, columns: Sequence[str]) -> None:
        schema = arrow_schema([column for name in columns for column in BATCHES if column.name == name])
        same = constants(part)
        self.builder = Builder(schema, 8 << 20)
        self._getters = [_getter(name, same) for name in columns]

    def add(self, batch: RecordBatch) -> pyarrow.RecordBatch | None:
        """One more; a batch of rows whenever enough has come together."""
        return self.builder.add([get(batch) for get in self._getters], 200)


def _getter(name: str, constants: dict[str, Any]) -> Callable[[RecordBatch], Any]:
    if name in constants:
        value = constants[name]
        return lambda batch: value
    special: dict[str, Callable[[RecordBatch], Any]] = {
        "position": lambda batch: batch.position,
        "time": _time,
        "base_offset": _base_offset,
        "codec": _codec,
    }
    return special.get(name) or (lambda batch: getattr(batch, name))


def _time(batch: RecordBatch) -> int | None:
    stamp = batch.max_timestamp
    return stamp * 1000 if stamp != -1 and abs(stamp) < (1 << 63) // 1000 else None


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
