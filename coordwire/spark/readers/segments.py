"""A part of a segment: its records, or its batches' headers, and what couldn't be read.

Strategy: the first batch at or after the part's start is found by walking headers, from an entry of the
`.index` a good way before it (looked at first), else from the file's start; that walk gives the places that
reading the whole file would come to. From there on checksums divide the part into sound runs and the rest. A
run goes to Arrow in one piece; about the rest `coordwire.records.batches` decides over the whole file, so
that a part's end changes no verdict. Offsets that are asked for are found by the index as well, and of
batches that headers exclude nothing else is read. A store's object is read in ranges (`object_ranges`), by
the same steps. Rules: a batch belongs to the part in which it begins; the rows of all parts are those of the
whole file, and their bytes and the bad ones make up the file.
"""

from __future__ import annotations

__all__ = ["read_batches", "read_records", "resume_position"]

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from coordwire.capture.jsonlines import text
from coordwire.errors import CorruptBatch, LimitExceeded
from coordwire.records import RecordBatch, UnreadableRange, batches
from coordwire.records.batch import HEADER, open_batch
from coordwire.records.batch_reader import Batches
from coordwire.records.batch_sizes import batch_size
from coordwire.segments.indexes import OffsetIndex, OffsetPosition
from coordwire.segments.names import file_name
from coordwire.segments.remote_names import remote_name
from coordwire.spark.columns import BATCHES, RECORDS, arrow_schema
from coordwire.spark.options import Options
from coordwire.spark.readers.files import open_bytes
from coordwire.spark.readers.object_ranges import Ranges, read_small
from coordwire.spark.readers.parts import Part
from coordwire.spark.readers.rows import KEPT, MOST_ROWS, Bad, Builder, conform
from coordwire.spark.readers.stores import is_uri

if TYPE_CHECKING:
    import pyarrow

RUN = 16 << 20
"""Bytes of sound batches that go to Arrow together."""

LEAD = 1 << 20
"""Bytes before a part's start at which the walk to its first batch begins, where an index says how."""

NO_TIME = -1
"""The timestamp of a record without one, which is in no range of times."""

NOTHING: list[str] = []
"""The columns that batches are decoded for, where only their number is asked for."""

CUT_SHORT = "the file ends inside a batch"


class _Whole:
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


class _Reader:
    """One part's way through its file."""

    def __init__(self, part: Part, options: Options) -> None:
        self.part = part
        self.options = options
        self.file: _Whole | Ranges = (
            Ranges(part.path, (part.size, part.modified), part.start, part.end)
            if is_uri(part.path)
            else _Whole(part.path, part.size)
        )
        self.view = self.file.view
        self._judge = self.file.batches(check_records=True)
        self._index: OffsetIndex | None = None

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
            elif _unwanted(item, self.options):
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
        low, high = self._bounds()
        start, end = max(part.start, low), min(part.end, high)
        if start >= end:
            return None, start, end
        self.file.limit = end
        if not whole:
            self.file.expect(self._places())
        self.file.whole = whole
        reader = self.file.batches()
        reader.position = max(low, self._lead())
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

    # --- by the index ---

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

    def _places(self) -> list[int]:
        """Where batches begin by the index; nothing for a local file, where looking costs nothing."""
        return sorted({entry.position for entry in self.index()}) if is_uri(self.part.path) else []

    def _bounds(self) -> tuple[int, int]:
        """Between which bytes the offsets asked for are: the whole file, unless the index knows better.

        An entry is trusted if the header of a batch is there, and another one where it ends, and its offset
        shows that nothing is missed. That depends on the file alone, so that any split gives the same rows.
        """
        options = self.options
        index: Sequence[OffsetPosition] = self.index() if _has_offsets(options) else ()
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

    def _lead(self) -> int:
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


def _is_ranged(options: Options) -> bool:
    return _has_offsets(options) or options.starting_timestamp is not None


def _has_offsets(options: Options) -> bool:
    return options.starting_offset is not None or options.ending_offset is not None


def resume_position(part: Part, read: int) -> int:
    """Where the first batch begins that wasn't all there when the file had `read` bytes. Raises `OSError`."""
    local = not is_uri(part.path)
    seen = replace(part, start=read, size=read if local else part.size)  # an object is read at its own size
    with closing(_Reader(seen, Options())) as reader:
        walk = reader.file.batches()
        walk.position = reader._lead()
        if local:
            walk.advance(read)
            return min(walk.position, read)
        for item in walk.heads(read):
            size = item.length if isinstance(item, UnreadableRange) else item.size
            if item.position + size > read:
                return int(item.position)
        return min(walk.position, read)


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
    if finish.inner == NOTHING:
        with closing(_Reader(part, options)) as reader:
            yield from _counted(reader, finish, see)
        return
    run: list[RecordBatch] = []
    with closing(_Reader(part, options)) as reader:
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
    reader: _Reader, finish: _Finisher, see: Callable[[RecordBatch], None] | None
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
        self.constants = constants(part)
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


# --- headers ---


def read_batches(part: Part, options: Options, columns: Sequence[str]) -> Iterator[pyarrow.RecordBatch | Bad]:
    """The headers of the part's batches, and its bad ranges. Raises as `read_records`.

    A header counts if another follows it where its batch ends; bodies are read only where none does, or all
    of them under `checksums`. Records aren't looked at: what is malformed inside a batch of a right checksum
    doesn't show here.
    """
    header = Headers(part, columns)
    with closing(_Reader(part, options)) as reader:
        for item in reader.items() if options.checksums else reader.heads():
            if isinstance(item, Bad):
                yield item
            elif not _unwanted(item, options) and (batch := header.add(item)) is not None:
                reader.file.confirm()
                yield batch
        if (batch := header.builder.take()) is not None:
            reader.file.confirm()
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
