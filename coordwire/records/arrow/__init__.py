"""Records as Arrow: `iter_batches` yields tables of one fixed schema, without Python objects in between.

Strategy: the native half fills the columns straight from the bytes (`coordwire.records.arrow.native`), or
Python gathers them from records (`coordwire.records.arrow.fallback`). Rules: pyarrow is imported when it is
first needed (`coordwire[arrow]` brings it). A timestamp of -1, or beyond what microseconds can hold in 64
bits, is null; `timestamp_ms` has every one.
"""

from __future__ import annotations

__all__ = ["BATCH_COLUMNS", "RECORD_COLUMNS", "iter_batches", "schema"]

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal

from coordwire.errors import CoordwireError, UnreadableRange
from coordwire.records import backend
from coordwire.records.arrow.fallback import PythonColumns
from coordwire.records.arrow.native import fill
from coordwire.records.batch import RecordBatch
from coordwire.records.batch_reader import Batches, Buffer, batches

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

MOST = 4 << 20
"""About how many bytes of keys and values a table has unless another number is asked for."""

LARGEST = 0x7FFFFFFF // 3
"""The most that one table takes, as its offsets are int32 and header keys may become 3 times as long."""


def arrow_package() -> Any:
    """pyarrow. Raises `CoordwireError` without it."""
    try:
        import pyarrow
    except ImportError:
        raise CoordwireError("Arrow needs the package pyarrow: pip install 'coordwire[arrow]'") from None
    return pyarrow


def schema(columns: Sequence[str] | None = None, *, view: bool = False) -> pyarrow.Schema:
    """The tables' schema: of the columns asked for, by default `RECORD_COLUMNS`.

    offset int64; timestamp timestamp[us, UTC]; key, value binary, or binary_view with `view`; headers
    list<struct<key string, value binary>>; the others as `BATCH_COLUMNS` says. Raises `ValueError` for an
    unknown column.
    """
    pa = arrow_package()
    flat = pa.binary_view() if view else pa.binary()
    pair = pa.struct([pa.field("key", pa.string(), nullable=False), pa.field("value", pa.binary())])
    fields = {
        "offset": pa.field("offset", pa.int64(), nullable=False),
        "timestamp": pa.field("timestamp", pa.timestamp("us", tz="UTC")),
        "key": pa.field("key", flat),
        "value": pa.field("value", flat),
        "headers": pa.field("headers", pa.list_(pa.field("item", pair, nullable=False)), nullable=False),
    }
    for name, kind in BATCH_COLUMNS.items():
        fields[name] = pa.field(name, getattr(pa, kind)(), nullable=name in ("delete_horizon_ms", "count"))
    selection = RECORD_COLUMNS if columns is None else columns
    unknown = [name for name in selection if name not in fields]
    if unknown:
        raise ValueError(f"no such column: {', '.join(map(repr, unknown))}; there are {', '.join(fields)}")
    return pa.schema([fields[name] for name in selection])


def iter_batches(
    buffer: Buffer | Batches[Any],
    *,
    columns: Sequence[str] | None = None,
    max_bytes: int = MOST,
    on_error: Literal["raise", "skip"] = "raise",
    skipped: list[UnreadableRange] | None = None,
    view: bool = False,
    sizes: dict[int, int] | None = None,
) -> Iterator[pyarrow.RecordBatch]:
    """The records in `buffer` as tables of `schema(columns)`, each of about `max_bytes` of keys and values.

    buffer: or what `coordwire.records.kafka_07.batches` gives for the same `on_error`.

    Larger tables are slower: the one at hand and the next should both fit into the processor's cache. Up to
    32 MB of the memory of released tables stay with the process, for the next ones.

    view: keys and values as binary_view, which point into `buffer` where that isn't compressed; it then lives
    as long as the tables do, and may not change.

    on_error: with "raise" the records before the first bad one come first, as iterating the batches gives
    them, then the error; with "skip" no record of a bad batch comes, and the ranges passed over are appended
    to `skipped`. sizes: gets, by their positions, how many bytes the records of those batches have that the
    native half decompressed.

    Control records are among the others: the column "is_control" distinguishes them. Header keys that aren't
    UTF-8 have U+FFFD for what isn't. Raises `ValueError` for an unknown column and for batches of another
    `on_error`, what reading the batches raises, `LimitExceeded` for a record with more than 2 GB of header
    keys, and `CoordwireError` without pyarrow.
    """
    if on_error not in ("raise", "skip"):
        raise ValueError(f'expected "raise" or "skip" as on_error, got {on_error!r}')
    form = schema(columns, view=view)
    reader = buffer if isinstance(buffer, Batches) else batches(buffer, on_error=on_error)
    if reader._on_error != on_error:
        raise ValueError(f"expected batches of on_error={on_error!r}, got those of {reader._on_error!r}")
    return _tables(
        reader, form, max(0, min(max_bytes, LARGEST)), on_error, [] if skipped is None else skipped,
        {} if sizes is None else sizes,
    )  # fmt: skip


def _tables(
    reader: Batches[RecordBatch],
    form: pyarrow.Schema,
    most: int,
    on_error: Literal["raise", "skip"],
    skipped: list[UnreadableRange],
    sizes: dict[int, int],
) -> Iterator[pyarrow.RecordBatch]:
    pa = arrow_package()
    known_count = 0
    gathering = PythonColumns(pa, form, most)
    if backend.columns is not None and reader.reads_natively:
        tables = fill(pa, reader, form, gathering, most, sizes, whole_batches=on_error == "skip")
    else:
        tables = _gather(reader, gathering)
    try:
        for table in tables:
            skipped += reader.skipped[known_count:]
            known_count = len(reader.skipped)
            yield table
            del table
    finally:
        skipped += reader.skipped[known_count:]


def _gather(reader: Batches[RecordBatch], gathering: PythonColumns) -> Iterator[pyarrow.RecordBatch]:
    try:
        for batch in reader:
            yield from gathering.tables(batch)
    except CoordwireError:
        yield from gathering.last_table()
        raise
    yield from gathering.last_table()
