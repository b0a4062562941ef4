"""Values to Arrow batches, and Arrow batches to the schema that Spark wants.

Rules: a batch is of about `batchSize` bytes; a column that is not in the schema is never made; batches have
exactly the schema that was asked for.
"""

from __future__ import annotations

__all__ = [
    "Bad",
    "Builder",
    "RowBuffer",
    "builders_of",
    "conform",
    "part_columns",
    "quarantine_batch",
    "quarantine_row",
    "record_batch",
]

import struct
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from itertools import accumulate
from typing import TYPE_CHECKING, Any, TypeVar

from coordwire.capture.jsonlines import text
from coordwire.tables.columns import QUARANTINE, TABLES, arrow_schema

if TYPE_CHECKING:
    import pyarrow

    from coordwire.tables.readers.splits import Part

T = TypeVar("T")

KEPT = 64 << 10
"""Bytes of what couldn't be read that quarantine keeps."""

MOST_ROWS = 20_000

FEW = 4
"""So many rows are made one by one: columns cost something each."""


@dataclass(frozen=True, slots=True)
class Bad:
    """Bytes that couldn't be read. start, end: in the flow's stream, or in the file if `flow` is None.
    is_lost: whether the file has no rows, as it couldn't be read."""

    path: str
    start: int
    end: int
    reason: str
    data: bytes | None = dataclass_field(default=None, repr=False)
    flow: str | None = None
    time_ns: int | None = None
    is_lost: bool = False

    def __str__(self) -> str:
        flow = f" of {self.flow}" if self.flow else ""
        return f"{self.path}: bytes {self.start} to {self.end}{flow}: {self.reason}"


class RowBuffer(ABC):
    """Gathers rows until they have about `most` bytes together, or are `MOST_ROWS`."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._columns: list[list[Any]] = []  # of rows before those of `_rows`
        self._rows: list[Sequence[Any]] = []
        self._count = 0
        self._used = 0

    def add(self, values: Sequence[Any], size: int) -> Any:
        """Add a row, in the order of the columns; the batch that is complete, if any. size: about how many
        bytes it has."""
        self._rows.append(values)
        self._count += 1
        self._used += size
        return self.take() if self._used >= self.most or self._count >= MOST_ROWS else None

    def add_all(self, rows: Iterable[Sequence[Any]], size: int) -> Iterator[Any]:
        """Add rows of about that many bytes each; gives the batches that are complete."""
        for row in rows:
            if (batch := self.add(row, size)) is not None:
                yield batch

    def add_items(
        self,
        items: Sequence[T],
        sizes: Sequence[int],
        columns: Callable[[Sequence[T]], Sequence[Sequence[Any]]],
    ) -> Iterator[Any]:
        """Add the rows of items, whose columns a function makes; gives the same batches as if each were added
        alone. sizes: about how many bytes each has."""
        while items:
            count = len(items)
            if self._used + sum(sizes) >= self.most or self._count + count > MOST_ROWS:
                used = list(accumulate(sizes, initial=self._used))
                count = min(bisect_left(used, self.most, 1), MOST_ROWS - self._count, count)
            self._gather()
            self._extend(columns(items[:count]))
            self._count += count
            self._used += sum(sizes[:count])
            is_complete = self._used >= self.most or self._count >= MOST_ROWS
            if is_complete and (batch := self.take()) is not None:
                yield batch
            items, sizes = items[count:], sizes[count:]

    def _gather(self) -> None:
        """Put the rows after the columns."""
        if self._rows:
            rows, self._rows = self._rows, []
            self._extend(list(zip(*rows, strict=True)))

    def _extend(self, columns: Sequence[Sequence[Any]]) -> None:
        if not self._columns:
            self._columns = list(map(list, columns))
            return
        for column, part in zip(self._columns, columns, strict=True):
            column += part

    def take(self) -> Any:
        """The batch of the remaining rows; None if there are none."""
        if not self._count:
            return None
        self._gather()
        columns, self._columns = self._columns, []
        self._count = self._used = 0
        return self._batch(columns)

    @abstractmethod
    def _batch(self, columns: Iterable[Sequence[Any]]) -> Any:
        """What is made of gathered rows: a batch, or None where they are written at once."""


class Builder(RowBuffer):
    """Rows of `schema` as Arrow batches."""

    def __init__(self, schema: pyarrow.Schema, most: int) -> None:
        super().__init__(most)
        self.schema = schema

    def _batch(self, columns: Iterable[Sequence[Any]]) -> pyarrow.RecordBatch:
        return record_batch(columns, self.schema)


def record_batch(columns: Iterable[Sequence[Any]], schema: pyarrow.Schema) -> pyarrow.RecordBatch:
    """A batch of these columns, in the schema's order."""
    import pyarrow as pa

    arrays = [_array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def builders_of(tables: Iterable[str], most: int) -> dict[str, Builder]:
    """A builder for each of these tables, with all of its columns."""
    return {name: Builder(arrow_schema(TABLES[name]), most) for name in tables}


def _array(values: Sequence[Any], kind: pyarrow.DataType) -> pyarrow.Array:
    """A column. Many have one value for all rows, which is converted once."""
    import pyarrow as pa

    first = values[0]
    may_repeat = values[-1] is first and (first is None or isinstance(first, (str, bool)))
    if may_repeat and values.count(first) == len(values):
        return pa.repeat(pa.scalar(first, type=kind), len(values))
    form = _PACKED.get(str(kind))
    if form is not None and isinstance(first, int):
        with suppress(struct.error):  # one of them is None, or too large
            packed = pa.py_buffer(struct.pack(f"{len(values)}{form}", *values))
            return pa.Array.from_buffers(kind, len(values), [None, packed])
    return pa.array(values, type=kind)


_PACKED = {"int32": "i", "int64": "q", "timestamp[us, tz=UTC]": "q"}
"""Types whose integers `struct` packs in less time than an array is made of them."""


def conform(batch: pyarrow.RecordBatch, schema: pyarrow.Schema) -> pyarrow.RecordBatch:
    """The same rows in exactly this schema, whose columns the batch has by name."""
    import pyarrow as pa

    arrays = []
    for field in schema:
        array = batch.column(field.name)
        arrays.append(array if array.type == field.type else array.cast(field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def microseconds(time_ns: int | None) -> int | None:
    """For a timestamp column; None for what 64 bits of microseconds can't hold."""
    if time_ns is None:
        return None
    value = time_ns // 1000
    return value if -(1 << 63) <= value < 1 << 63 else None


_QUARANTINE: dict[str, Callable[[Bad], Any]] = {
    "input_file": lambda item: text(item.path),
    "flow": lambda item: item.flow,
    "position": lambda item: item.start,
    "end_position": lambda item: item.end,
    "reason": lambda item: item.reason,
    "time": lambda item: microseconds(item.time_ns),
    "bytes": lambda item: item.data,
}


def quarantine_row(bad_range: Bad, columns: Iterable[str]) -> list[Any]:
    """A row of the quarantine table."""
    return [_QUARANTINE[name](bad_range) for name in columns]


def quarantine_batch(bads: Sequence[Bad], columns: Sequence[str] | None = None) -> pyarrow.RecordBatch:
    """Rows of the quarantine table."""
    import pyarrow as pa

    selected = [column for column in QUARANTINE if columns is None or column.name in columns]
    schema = arrow_schema(selected)
    arrays = [pa.array([_QUARANTINE[field.name](item) for item in bads], type=field.type) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def part_columns(part: Part) -> dict[str, str | int | None]:
    """The columns that are the same in all rows of a part."""
    return {
        "topic": part.topic, "partition": part.partition, "input_file": text(part.path),
        "broker_id": part.broker,
        "cluster_id": part.cluster_id, "file_state": part.state,
    }  # fmt: skip
