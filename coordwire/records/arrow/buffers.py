"""Tables from the buffers that the Arrow kernel filled: its memory becomes the buffers of pyarrow's arrays.

Strategy: the parts of each column are worked out once, and a table is then a few calls; after megabytes of
records pyarrow is no longer in the processor's caches, so that each call counts. Rules: nothing is copied;
the columns of a batch's header are computed once a batch, from the header that the kernel has read, and
spread over its rows; an empty array is always the same.
"""

from __future__ import annotations

__all__ = ["Tables", "noted_batches"]

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from coordwire.records.arrow.fallback import RENAMED
from coordwire.records.batch import HEADER, RecordBatch
from coordwire.records.batch_sizes import LOG_OVERHEAD

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
            values = [getattr(batch, name) for batch in noted_batches(memoryview(parts[_BATCHES]))]
            return pa.array(values, type=kind).take(index)

        return column
