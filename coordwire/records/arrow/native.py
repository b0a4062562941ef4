"""The native half of `coordwire.records.arrow`: columns filled by the kernel, batch after batch.

Strategy: the kernel reads all that is uncompressed, sound and of magic 2 by itself, long stretches of it on
several threads, a table each; compressed batches are decompressed a little ahead
(`coordwire.records.readahead`) and handed to it. Python reads all other batches: the reader raises for bad
ones or passes over them, and `PythonColumns` takes those of old formats, and those after bad batches that
claim much more than there is before them, so that the kernel doesn't read the same bytes again for each.
Rules: the kernel's memory is pyarrow's while a table lives, and afterwards a kernel's again (up to 32 MB stay
with the process); what belongs to the batch is computed once a batch and spread over its rows.

Tables from the buffers that the Arrow kernel filled: its memory becomes the buffers of pyarrow's arrays.

Strategy: the parts of each column are worked out once, and a table is then a few calls; after megabytes of
records pyarrow is no longer in the processor's caches, so that each call counts. Rules: nothing is copied;
the columns of a batch's header are computed once a batch, from the header that the kernel has read, and
spread over its rows; an empty array is always the same.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import cycle
from typing import TYPE_CHECKING, Any

from coordwire.errors import CoordwireError
from coordwire.records import backend
from coordwire.records.arrow.fallback import RENAMED, PythonColumns
from coordwire.records.batch import CONTROL, HEADER, LOG_OVERHEAD, RecordBatch, claimed_size
from coordwire.records.batch_reader import Batches
from coordwire.records.readahead import THREADS, Readahead
from coordwire.records.resync import WASTE

if TYPE_CHECKING:
    import pyarrow

    from coordwire._speedups import _native
if TYPE_CHECKING:
    import pyarrow

# As columns.h numbers them.
(
    _OFFSETS,
    _TIMESTAMPS,
    _MILLISECONDS,
    _BATCH_INDEX,
    _KEY_PLACES,
    _VALUE_PLACES,
    _HEADER_PLACES,
    _TIMESTAMP_BITS,
    _KEY_BITS,
    _VALUE_BITS,
    _KEY_DATA,
    _VALUE_DATA,
    _NAME_PLACES,
    _NAME_DATA,
    _CONTENT_PLACES,
    _CONTENT_DATA,
    _CONTENT_BITS,
    _BATCHES,
) = range(18)

_NOTED = 72
"""Bytes that the kernel notes of a batch: its position, and its header as it was when it was read."""

_FLAGS = 8 + 22
"""Where the last byte of a batch's attributes is among these."""

MakeColumn = Callable[[int, int, "list[Any]", "list[Any]"], Any]
"""A table's array: from its rows, its headers, what the kernel filled, the buffers that views point into."""


def noted_batches(memory: memoryview) -> Iterator[RecordBatch]:
    """The batches of a table, as the kernel read them; without their records."""
    for at in range(0, len(memory), _NOTED):
        position = int.from_bytes(memory[at : at + 8], sys.byteorder)
        batch = RecordBatch(memory[at + 8 : at + 8 + HEADER.size], position)
        batch.size = LOG_OVERHEAD + batch._head[1]
        yield batch


class Tables:
    """Tables of the schema `form`."""

    def __init__(self, pa: Any, form: pyarrow.Schema) -> None:
        self._pa = pa
        self._form = form
        self._columns = [self._column(field) for field in form]

    def table(
        self, rows: int, headers: int, memories: Sequence[Any], buffers: list[Any]
    ) -> pyarrow.RecordBatch:
        """The table of so many rows and headers; `buffers`: what views point into."""
        wrap = self._pa.py_buffer
        parts = [None if memory is None else wrap(memory) for memory in memories]
        arrays = [column(rows, headers, parts, buffers) for column in self._columns]
        return self._pa.RecordBatch.from_arrays(arrays, schema=self._form)

    def _column(self, field: pyarrow.Field) -> MakeColumn:
        match field.name:
            case "offset":
                return self._numbers(field.type, None, _OFFSETS)
            case "timestamp":
                return self._numbers(field.type, _TIMESTAMP_BITS, _TIMESTAMPS)
            case "timestamp_ms":
                return self._numbers(field.type, None, _MILLISECONDS)
            case "key":
                return self._bytes(field.type, _KEY_BITS, _KEY_PLACES, _KEY_DATA)
            case "value":
                return self._bytes(field.type, _VALUE_BITS, _VALUE_PLACES, _VALUE_DATA)
            case "headers":
                return self._headers(field.type)
        return self._of_batches(field)

    def _numbers(self, kind: Any, bits: int | None, numbers: int) -> MakeColumn:
        make = self._pa.Array.from_buffers
        if bits is None:
            return lambda rows, _, parts, __: make(kind, rows, [None, parts[numbers]])
        return lambda rows, _, parts, __: make(kind, rows, [parts[bits], parts[numbers]])

    def _bytes(self, kind: Any, bits: int, places: int, data: int) -> MakeColumn:
        make, no_bytes = self._pa.Array.from_buffers, self._pa.py_buffer(b"")
        if kind == self._pa.binary_view():
            return lambda rows, _, parts, buffers: make(kind, rows, [parts[bits], parts[places], *buffers])
        return lambda rows, _, parts, __: make(
            kind, rows, [parts[bits], parts[places], parts[data] or no_bytes]
        )

    def _headers(self, kind: Any) -> MakeColumn:
        make, pair = self._pa.Array.from_buffers, kind.value_type
        empty = self._pa.array([], type=pair)
        no_bytes = self._pa.py_buffer(b"")

        def column(rows: int, count: int, parts: list[Any], _: list[Any]) -> Any:
            pairs = empty
            if count:
                names = [None, parts[_NAME_PLACES], parts[_NAME_DATA] or no_bytes]
                contents = [parts[_CONTENT_BITS], parts[_CONTENT_PLACES], parts[_CONTENT_DATA] or no_bytes]
                children = [make(pair[0].type, count, names), make(pair[1].type, count, contents)]
                pairs = make(pair, count, [None], children=children)
            return make(kind, rows, [None, parts[_HEADER_PLACES]], children=[pairs])

        return column

    def _of_batches(self, field: pyarrow.Field) -> MakeColumn:
        """A column of the values in the batches' headers."""
        pa, kind = self._pa, field.type
        name = RENAMED.get(field.name, field.name)

        def column(rows: int, _: int, parts: list[Any], __: list[Any]) -> Any:
            index = pa.Array.from_buffers(pa.int32(), rows, [None, parts[_BATCH_INDEX]])
            memory = memoryview(parts[_BATCHES])
            if name == "is_control":  # without an object for each batch
                values = [bool(flags & CONTROL) for flags in bytes(memory)[_FLAGS::_NOTED]]
            else:
                values = [getattr(batch, name) for batch in noted_batches(memory)]
            return pa.array(values, type=kind).take(index)

        return column


# --- the kernel ---


SLICE = 1 << 30
"""The bytes between two of the buffers that views point into, whose places in one are 32 bits."""

ROW = 24
"""What a row counts for in a table's size, beyond its bytes in the batch: a little less than that."""

NONE = -1, -1
"""No batch, as the kernel has it: where one begins and its last offset."""

SPREAD = THREADS
"""Over how many threads long stretches are spread; not over one."""

MANY = 4 << 20
"""The bytes from which on it is worth to spread them over threads."""

_WANTED = {"offset": 1, "timestamp": 2, "timestamp_ms": 4, "key": 16, "value": 32, "headers": 64}
_BATCH_WANTED = 8


def fill(
    pa: Any,
    reader: Batches[RecordBatch],
    form: pyarrow.Schema,
    gathering: PythonColumns,
    most: int,
    sizes: dict[int, int],
    *,
    whole_batches: bool,
) -> Iterator[pyarrow.RecordBatch]:
    """The tables of the batches of `reader`; before an error those of all rows before it.

    sizes: gets those of the records of decompressed batches, by position.
    whole_batches: keep nothing of a batch unless all of it is sound; else keep its records before a bad one.
    """
    source = reader.remainder
    filler = Filler(pa, source, form, most, whole_batches)
    try:
        yield from _filled(
            lambda: Filler(pa, source, form, most, True), filler, reader, gathering, most, sizes
        )
    except CoordwireError:
        yield from filler.last_table()
        yield from gathering.last_table()
        raise


def _filled(
    make: Callable[[], Filler],
    filler: Filler,
    reader: Batches[RecordBatch],
    gathering: PythonColumns,
    most: int,
    sizes: dict[int, int],
) -> Iterator[pyarrow.RecordBatch]:
    """The tables; when it raises, the rows that aren't in any are still in `filler` or `gathering`."""
    source = filler.source
    spread = _Spread(make, most) if len(source) > MANY and SPREAD > 1 else None
    position = 0  # where to go on
    last = NONE  # the last batch that the kernel read,
    reader_position = -1  # and where the last one began that the reader gave
    walked = wasted = 0  # up to where headers were walked, and bytes of bad batches that were read
    with Readahead(source, sizes) as ahead:
        while True:
            if spread is not None and not filler.has_rows and position >= walked:
                walked = filler.span(position, MANY)
                if walked - position > MANY // 2:
                    yield from spread.tables(position)
                    position, last = spread.position, max(last, spread.last)
                    spread = spread if spread.is_sound else None
            body, before = ahead.body(position), position
            full, position = filler.run(position, body)
            if full:
                yield filler.table()
                continue
            if position != before and (body is not None or ahead.body(position) is not None):
                continue
            last = max(last, filler.last)
            reader.resume(position, last[1] if last[0] > reader_position else None)
            batch = next(reader, None)
            if batch is not None and batch.position != position:  # what it has passed over was read in vain
                wasted += claimed_size(source, position)
            if batch is not None and (batch.position == position or wasted > WASTE * batch.position):
                record_count = filler.record_count if batch.position == position else 0
                yield from filler.last_table()
                while batch is not None and (
                    batch.magic < 2 or batch.position == position or wasted > WASTE * batch.position
                ):
                    yield from gathering.tables(batch, record_count)
                    record_count, reader_position = 0, batch.position
                    batch = next(reader, None)
                yield from gathering.last_table()
            if batch is None:
                break
            position = reader_position = batch.position
    yield from filler.last_table()


_StretchResult = tuple[list[Any], int, tuple[int, int]]
"""Tables, where their batches end, and the last of these."""


class _Spread:
    """Stretches of uncompressed batches, each filled by a thread: their tables, in order.

    position: where they ended. last: the last batch, as `Filler.last` has it. is_sound: False once they
    ended at a bad batch, where the further work of the threads is dropped: it is then not tried again. Each
    filler's table is taken before its next turn.
    """

    def __init__(self, make: Callable[[], Filler], most: int) -> None:
        self._make = make
        self._most = most
        self._size = most  # of a stretch, in bytes
        self.position, self.last = 0, NONE
        self.is_sound = True

    def tables(self, begin: int) -> Iterator[pyarrow.RecordBatch]:
        """The tables from `begin` on. The last of each stretch may be smaller than the others."""
        fillers = [self._make() for _ in range(SPREAD + 1)]
        turns = cycle(fillers)
        stretches: deque[tuple[int, int, Future[_StretchResult]]] = deque()
        threads = ThreadPoolExecutor(SPREAD, "coordwire-arrow")
        self.position = begin
        try:
            while True:
                while len(stretches) <= SPREAD:
                    end = fillers[0].span(begin, self._size)
                    if end == begin:
                        break
                    stretches.append((begin, end, threads.submit(next(turns).stretch, begin, end)))
                    begin = end
                if not stretches:
                    return
                start, end, stretch = stretches.popleft()
                tables, self.position, last = stretch.result()
                self.last = max(self.last, last)
                del stretch
                self._learn(end - start, sum(table.num_rows for table in tables))
                tables.reverse()
                while tables:
                    yield tables.pop()
                if self.position != end:
                    self.is_sound = False
                    return
        finally:
            threads.shutdown(cancel_futures=True)

    def _learn(self, size: int, rows: int) -> None:
        """Set the size of a stretch that just fills a table, from a stretch of so many bytes and rows."""
        self._size = max(1, self._most * size // (size + ROW * rows))


class Filler:
    """The kernel and the tables that it fills."""

    def __init__(
        self, pa: Any, source: memoryview, form: pyarrow.Schema, most: int, whole_batches: bool
    ) -> None:
        assert backend.columns is not None
        column_bits = {_WANTED.get(name, _BATCH_WANTED) for name in form.names}
        self.view = any(field.type == pa.binary_view() for field in form)
        self._columns: _native.Columns = backend.columns(sum(column_bits), most, self.view, whole_batches)
        self._pa = pa
        self.source = source
        self._tables = Tables(pa, form)
        self._slices = [pa.py_buffer(source[at:]) for at in range(0, len(source), SLICE)] if self.view else []
        self._buffers = list(self._slices)
        self._body: bytes | None = None
        self._number = 0

    @property
    def has_rows(self) -> int:
        """Not zero if the current table has rows, or an earlier one has rows of the current batch."""
        return self._columns.rows or self._columns.done

    @property
    def row_count(self) -> int:
        """The rows of the current table."""
        return self._columns.rows

    def run_part(self, part: memoryview, position: int, body: bytes | None) -> tuple[bool, int]:
        """Read on from `position` in a beginning of the source, as `Columns.run` does; not for views."""
        return self._columns.run(part, position, body, 0)

    def span(self, begin: int, most: int) -> int:
        """The end of the uncompressed batches from `begin` on: at most `most` bytes, or one batch."""
        return self._columns.span(self.source, begin, most)

    def stretch(self, begin: int, end: int) -> _StretchResult:
        """The tables of the batches in this range, the end of the last one, and its position and offset."""
        tables = []
        part, position, full = self.source[:end], begin, True
        while full:
            full, position = self._columns.run(part, position, None, 0)
            if full:
                tables.append(self.table())
        tables += self.last_table()
        return tables, position, self.last

    @property
    def last(self) -> tuple[int, int]:
        """The position and last offset of the last batch read to its end; `NONE` for none."""
        return self._columns.last

    @property
    def record_count(self) -> int:
        """The number of records of the current batch that are in tables."""
        return self._columns.done

    def run(self, position: int, body: bytes | None) -> tuple[bool, int]:
        """Read on from `position`, as `Columns.run` does."""
        if not self.view or body is None:
            return self._columns.run(self.source, position, body, 0)
        if body is not self._body:
            self._body, self._number = body, len(self._buffers)
            view = memoryview(body)
            self._buffers += [self._pa.py_buffer(view[at:]) for at in range(0, len(body), SLICE)]
        return self._columns.run(self.source, position, body, self._number)

    def last_table(self) -> Iterator[pyarrow.RecordBatch]:
        """The last table, if there is anything in it."""
        if self._columns.rows:
            yield self.table()

    def table(self) -> pyarrow.RecordBatch:
        """The table that was filled so far; the next one begins."""
        rows, headers, memories = self._columns.take()
        table = self._tables.table(rows, headers, memories, self._buffers)
        if self._body is not None:
            self._buffers, self._body = list(self._slices), None
        return table
