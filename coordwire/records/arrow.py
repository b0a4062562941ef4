"""Records as Arrow: `iter_batches` gives tables of one fixed schema, without a detour through Python objects
on the other side.

Strategy: the columns are gathered flat (numbers as int64 arrays, keys and values as pieces with their
lengths) and become Arrow buffers whenever `max_bytes` are full. Rules: pyarrow is imported when it is first
needed (`coordwire[arrow]` brings it); what belongs to the batch is computed once a batch and repeated. A
timestamp of -1, or beyond what microseconds can hold in 64 bits, is null; `timestamp_ms` has every one.
"""

from __future__ import annotations

__all__ = ["BATCH_COLUMNS", "RECORD_COLUMNS", "iter_batches", "schema"]

from array import array
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Literal, cast

from coordwire.errors import CoordwireError
from coordwire.records.batch import RecordBatch
from coordwire.records.reading import BadRange, Buffer, batches
from coordwire.records.record import Record

if TYPE_CHECKING:
    import pyarrow

RECORD_COLUMNS = ("offset", "timestamp", "key", "value", "headers")
"""What is in every table unless other columns are asked for."""

BATCH_COLUMNS = {
    "timestamp_ms": "int64",
    "batch_position": "int64",
    "batch_size": "int32",
    "magic": "int8",
    "codec": "string",
    "base_offset": "int64",
    "last_offset": "int64",
    "timestamp_type": "string",
    "max_timestamp": "int64",
    "checksum": "uint32",
    "partition_leader_epoch": "int32",
    "producer_id": "int64",
    "producer_epoch": "int16",
    "base_sequence": "int32",
    "last_sequence": "int32",
    "transactional": "bool_",
    "is_control": "bool_",
    "delete_horizon_ms": "int64",
    "count": "int32",
}
"""What else can be asked for, with its type: `timestamp_ms` (int64, -1 for none) and what the record's batch
says, by the names that `RecordBatch` gives them."""

_RENAMED = {"batch_position": "offset", "batch_size": "size"}
_MICROSECONDS = ((1 << 63) - 1) // 1000
"""The milliseconds that microseconds can hold."""

LARGEST = 1 << 30
"""The most that one table takes, as its binary offsets are int32."""


def _arrow() -> Any:
    try:
        import pyarrow
    except ImportError:
        raise CoordwireError("Arrow needs the package pyarrow: pip install 'coordwire[arrow]'") from None
    return pyarrow


def schema(columns: Sequence[str] | None = None) -> pyarrow.Schema:
    """The tables' schema: of the columns asked for, by default `RECORD_COLUMNS`.

    offset int64; timestamp timestamp[us, UTC]; key, value binary; headers list<struct<key string, value
    binary>>; the others as `BATCH_COLUMNS` says. Raises `ValueError` for an unknown column.
    """
    pa = _arrow()
    pair = pa.struct([pa.field("key", pa.string(), nullable=False), pa.field("value", pa.binary())])
    fields = {
        "offset": pa.field("offset", pa.int64(), nullable=False),
        "timestamp": pa.field("timestamp", pa.timestamp("us", tz="UTC")),
        "key": pa.field("key", pa.binary()),
        "value": pa.field("value", pa.binary()),
        "headers": pa.field("headers", pa.list_(pa.field("item", pair, nullable=False)), nullable=False),
    }
    for name, kind in BATCH_COLUMNS.items():
        fields[name] = pa.field(name, getattr(pa, kind)(), nullable=name in ("delete_horizon_ms", "count"))
    chosen = RECORD_COLUMNS if columns is None else columns
    unknown = [name for name in chosen if name not in fields]
    if unknown:
        raise ValueError(f"no such column: {', '.join(map(repr, unknown))}; there are {', '.join(fields)}")
    return pa.schema([fields[name] for name in chosen])


def iter_batches(
    buffer: Buffer,
    *,
    columns: Sequence[str] | None = None,
    max_bytes: int = 8 << 20,
    on_error: Literal["raise", "skip"] = "raise",
    skipped: list[BadRange] | None = None,
) -> Iterator[pyarrow.RecordBatch]:
    """The records in `buffer` as tables of `schema(columns)`, each of about `max_bytes` of keys and values.

    on_error: as `coordwire.records.batches` has it; the ranges passed over are appended to `skipped`. Control
    records are among the others: ask for "is_control" to tell them. Header keys that aren't UTF-8 have U+FFFD
    for what isn't. Raises `ValueError` for an unknown column, what reading the batches raises, and
    `CoordwireError` without pyarrow.
    """
    if on_error not in ("raise", "skip"):
        raise ValueError(f'on_error is "raise" or "skip", not {on_error!r}')
    return _tables(buffer, schema(columns), min(max_bytes, LARGEST), on_error, skipped)


def _tables(
    buffer: Buffer,
    form: pyarrow.Schema,
    most: int,
    on_error: Literal["raise", "skip"],
    skipped: list[BadRange] | None,
) -> Iterator[pyarrow.RecordBatch]:
    columns = [_column(field) for field in form]
    reader = batches(buffer, on_error=on_error)
    rows = used = noted = 0
    for batch in reader:
        part: list[Record] = []
        for record in batch:
            size = 32 + len(record.key or b"") + len(record.value or b"")
            if record.headers:
                size += sum(16 + len(name) + len(value or b"") for name, value in record.headers)
            if rows and used + size > most:
                _add(columns, batch, part)
                yield _table(form, columns, rows)
                part, rows, used = [], 0, 0
            part.append(record)
            rows += 1
            used += size
        _add(columns, batch, part)
        if skipped is not None:
            skipped += reader.skipped[noted:]
            noted = len(reader.skipped)
    if skipped is not None:
        skipped += reader.skipped[noted:]
    if rows:
        yield _table(form, columns, rows)


def _add(columns: list[_Column], batch: RecordBatch, records: list[Record]) -> None:
    if records:
        for column in columns:
            column.add(batch, records)


def _table(form: pyarrow.Schema, columns: list[_Column], rows: int) -> pyarrow.RecordBatch:
    pa = _arrow()
    return pa.RecordBatch.from_arrays([column.take(pa, rows) for column in columns], schema=form)


class _Column:
    """One column as it grows; `take` gives what has come together and begins anew."""

    def __init__(self, field: pyarrow.Field) -> None:
        self.name: str = field.name
        self.type: Any = field.type
        self.values: list[Any] = []

    def add(self, batch: RecordBatch, records: list[Record]) -> None:
        """Take in what these records of a batch say."""
        raise NotImplementedError

    def take(self, pa: Any, rows: int) -> Any:
        """The Arrow array of what was added."""
        values, self.values = self.values, []
        return pa.array(values, type=self.type)


class _Offsets(_Column):
    def add(self, batch: RecordBatch, records: list[Record]) -> None:
        self.values += [record.offset for record in records]

    def take(self, pa: Any, rows: int) -> Any:
        values, self.values = self.values, []
        return pa.Array.from_buffers(self.type, rows, [None, pa.py_buffer(array("q", values))])


class _Milliseconds(_Offsets):
    def add(self, batch: RecordBatch, records: list[Record]) -> None:
        self.values += [record.timestamp for record in records]


class _Timestamps(_Milliseconds):
    def take(self, pa: Any, rows: int) -> Any:
        values, self.values = self.values, []
        valid = [stamp != -1 and -_MICROSECONDS <= stamp <= _MICROSECONDS for stamp in values]
        flat = array("q", [stamp * 1000 if there else 0 for stamp, there in zip(values, valid, strict=True)])
        return pa.Array.from_buffers(self.type, rows, [_validity(pa, valid), pa.py_buffer(flat)])


class _Keys(_Column):
    def add(self, batch: RecordBatch, records: list[Record]) -> None:
        self.values += [record.key for record in records]

    def take(self, pa: Any, rows: int) -> Any:
        values, self.values = self.values, []
        return _binary(pa, self.type, values)


class _Values(_Keys):
    def add(self, batch: RecordBatch, records: list[Record]) -> None:
        self.values += [record.value for record in records]


class _Headers(_Column):
    def add(self, batch: RecordBatch, records: list[Record]) -> None:
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
        self.attribute = _RENAMED.get(self.name, self.name)

    def add(self, batch: RecordBatch, records: list[Record]) -> None:
        self.values += [getattr(batch, self.attribute)] * len(records)


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


def _utf8(name: str) -> bytes:
    try:
        return name.encode()
    except UnicodeEncodeError:
        return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace").encode()
