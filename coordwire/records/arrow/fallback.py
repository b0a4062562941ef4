"""The Python half of `coordwire.records.arrow`: columns gathered from records.

Strategy: the columns are gathered flat (numbers as int64 arrays, keys and values as pieces with their
lengths) and become Arrow buffers whenever a table is full. Rules: what belongs to the batch is computed once
a batch and repeated; a table ends before the record that would make it larger than it may be.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from itertools import accumulate, islice
from typing import TYPE_CHECKING, Any, cast

from coordwire.errors import CoordwireError, LimitExceeded
from coordwire.records.batch import RecordBatch
from coordwire.records.record import Record

if TYPE_CHECKING:
    import pyarrow

RENAMED = {"batch_position": "position", "batch_size": "size"}
"""The columns that aren't named as `RecordBatch` names them."""

MICROSECONDS = ((1 << 63) - 1) // 1000
"""The milliseconds that microseconds can hold."""


LARGEST_NAMES = 0x7FFFFFFF
"""The bytes of header keys that one table can have."""


class PythonColumns:
    """Tables of the schema `form`, each of about `most` bytes of keys and values, as records come in."""

    def __init__(self, pa: Any, form: pyarrow.Schema, most: int) -> None:
        self._pa = pa
        self._form = form
        self._most = most
        self._columns = [_column(field) for field in form]
        self._rows = self._used = 0

    def tables(self, batch: RecordBatch, skip: int = 0) -> Iterator[pyarrow.RecordBatch]:
        """Add a batch's records but for the first `skip`; yield the tables that they fill.

        Raises what iterating the batch does, and `LimitExceeded` for a record whose header keys are beyond
        Arrow's int32 offsets; the records before that one are added.
        """
        part: list[Record] = []
        try:
            for record in islice(batch, skip, None):
                size = 32 + len(record.key or b"") + len(record.value or b"")
                if record.headers:
                    size += _headers_size(record, batch.position)
                if (self._rows or part) and self._used + size > self._most:
                    self._add(batch, part)
                    yield self._table()
                    part = []
                part.append(record)
                self._used += size
        except CoordwireError:
            self._add(batch, part)
            raise
        self._add(batch, part)

    def last_table(self) -> Iterator[pyarrow.RecordBatch]:
        """The last table, if there is anything in it."""
        if self._rows:
            yield self._table()

    def _add(self, batch: RecordBatch, records: list[Record]) -> None:
        if records:
            batch_values = [column.batch_value(batch) for column in self._columns]  # first, as it may raise
            for column, value in zip(self._columns, batch_values, strict=True):
                column.add(value, records)
            self._rows += len(records)

    def _table(self) -> pyarrow.RecordBatch:
        arrays = [column.take(self._pa, self._rows) for column in self._columns]
        self._rows = self._used = 0
        return self._pa.RecordBatch.from_arrays(arrays, schema=self._form)


def _headers_size(record: Record, position: int) -> int:
    """The size that a record's headers count for, in bytes. position: of its batch."""
    keys = sum(len(name) if name.isascii() else len(_bytes(name)) for name, _ in record.headers)
    values = sum(len(value or b"") for _, value in record.headers)
    if (
        3 * keys > LARGEST_NAMES
        and (size := sum(len(_utf8(name)) for name, _ in record.headers)) > LARGEST_NAMES
    ):
        reason = (
            f"record {record.offset} has {size} bytes of header keys, over a table's limit of {LARGEST_NAMES}"
        )
        raise LimitExceeded(reason, position, "records")
    return 16 * len(record.headers) + keys + values


class _Column:
    """One column as it grows; `take` returns the values so far and empties it."""

    def __init__(self, field: pyarrow.Field) -> None:
        self.name: str = field.name
        self.type: Any = field.type
        self.values: list[Any] = []

    def batch_value(self, batch: RecordBatch) -> Any:
        """The value that all records of a batch share. Raises what reading the batch raises."""
        return None

    def add(self, batch_value: Any, records: list[Record]) -> None:
        """Add these records of a batch. batch_value: as the method of this name gives it."""
        raise NotImplementedError

    def take(self, pa: Any, rows: int) -> Any:
        """The Arrow array of what was added."""
        values, self.values = self.values, []
        return pa.array(values, type=self.type)


class _Offsets(_Column):
    def add(self, batch_value: Any, records: list[Record]) -> None:
        self.values += [record.offset for record in records]

    def take(self, pa: Any, rows: int) -> Any:
        values, self.values = self.values, []
        return pa.Array.from_buffers(self.type, rows, [None, pa.py_buffer(array("q", values))])


class _Milliseconds(_Offsets):
    def add(self, batch_value: Any, records: list[Record]) -> None:
        self.values += [record.timestamp for record in records]


class _Timestamps(_Milliseconds):
    def take(self, pa: Any, rows: int) -> Any:
        values, self.values = self.values, []
        valid = [stamp != -1 and -MICROSECONDS <= stamp <= MICROSECONDS for stamp in values]
        flat = array(
            "q", [stamp * 1000 if is_valid else 0 for stamp, is_valid in zip(values, valid, strict=True)]
        )
        return pa.Array.from_buffers(self.type, rows, [_validity(pa, valid), pa.py_buffer(flat)])


class _Keys(_Column):
    def add(self, batch_value: Any, records: list[Record]) -> None:
        self.values += [record.key for record in records]

    def take(self, pa: Any, rows: int) -> Any:
        values, self.values = self.values, []
        return _binary(pa, self.type, values)


class _Values(_Keys):
    def add(self, batch_value: Any, records: list[Record]) -> None:
        self.values += [record.value for record in records]


class _Headers(_Column):
    def add(self, batch_value: Any, records: list[Record]) -> None:
        self.values += [record.headers for record in records]

    def take(self, pa: Any, rows: int) -> Any:
        values, self.values = self.values, []
        places = array("i", accumulate(map(len, values), initial=0))
        pairs = [pair for headers in values for pair in headers]
        item = self.type.value_type
        keys = _binary(pa, item[0].type, [_utf8(name) for name, _ in pairs])
        contents = _binary(pa, item[1].type, [value for _, value in pairs])
        entries = pa.StructArray.from_arrays([keys, contents], fields=[item[0], item[1]])
        return pa.Array.from_buffers(self.type, rows, [None, pa.py_buffer(places)], children=[entries])


class _OfBatch(_Column):
    def __init__(self, field: pyarrow.Field) -> None:
        super().__init__(field)
        self.attribute = RENAMED.get(self.name, self.name)

    def batch_value(self, batch: RecordBatch) -> Any:
        return getattr(batch, self.attribute)

    def add(self, batch_value: Any, records: list[Record]) -> None:
        self.values += [batch_value] * len(records)


_KINDS: dict[str, type[_Column]] = {
    "offset": _Offsets,
    "timestamp": _Timestamps,
    "timestamp_ms": _Milliseconds,
    "key": _Keys,
    "value": _Values,
    "headers": _Headers,
}


def _column(field: pyarrow.Field) -> _Column:
    return _KINDS.get(field.name, _OfBatch)(field)


def _binary(pa: Any, kind: Any, values: list[bytes | None]) -> Any:
    """An array of binary or string from its pieces, None for null."""
    if kind == pa.binary_view():
        return pa.array(values, type=kind)
    validity = None
    if None in values:
        validity = _validity(pa, [value is not None for value in values])
        pieces = [value or b"" for value in values]
    else:
        pieces = cast("list[bytes]", values)
    places = array("i", accumulate(map(len, pieces), initial=0))
    flat = pa.py_buffer(b"".join(pieces))
    return pa.Array.from_buffers(kind, len(pieces), [validity, pa.py_buffer(places), flat])


def _validity(pa: Any, valid: list[bool]) -> Any:
    return None if all(valid) else pa.array(valid, type=pa.bool_()).buffers()[1]


def _bytes(name: str) -> bytes:
    """A header's key as it was on the wire."""
    return name.encode("utf-8", "surrogateescape")


def _utf8(name: str) -> bytes:
    try:
        return name.encode()
    except UnicodeEncodeError:
        return _bytes(name).decode("utf-8", "replace").encode()
