"""Arrow arrays of what functions on columns are given, and of the rows that they make.

Rules: an argument is an array, a chunked array, a scalar or a value for all rows; pyarrow is imported when it
is first needed.
"""

from __future__ import annotations

__all__ = ["ColumnValues", "argument_values", "byte_array", "in_order", "repeated", "structs", "together"]

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, TypeAlias

from coordwire.tables.columns import arrow_type

if TYPE_CHECKING:
    import pyarrow

ColumnValues: TypeAlias = "Sequence[Any] | None"

TOGETHER, BYTES_TOGETHER = 256, 1 << 20
"""So many rows, and about so many bytes of arguments, are objects at a time: the garbage collector looks at
few of them, and the memory of long texts comes again."""

_PYTHON_TYPES = {"binary": bytes, "string": str, "int": int, "boolean": bool}


def argument_values(column: Any, name: str, kind: str) -> list[Any]:
    """An argument's values; one if it is for all rows. Raises `TypeError` for values of another type."""
    import pyarrow as pa

    if isinstance(column, pa.Scalar):
        column = column.as_py()
    values = column.to_pylist() if isinstance(column, pa.Array | pa.ChunkedArray) else [column]
    first = next((value for value in values if value is not None), None)
    if first is not None and not isinstance(first, _PYTHON_TYPES[kind]):
        raise TypeError(f"{name}: expected {kind}, got {type(first).__name__}")
    return values


def byte_array(column: Any, name: str) -> pyarrow.LargeBinaryArray:
    """An argument of bytes as one array. Raises `TypeError` for values of another type."""
    import pyarrow as pa

    is_array = isinstance(column, pa.Array | pa.ChunkedArray)
    if not (is_array and (pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type))):
        return pa.array(argument_values(column, name, "binary"), pa.large_binary())
    wide = column.cast(pa.large_binary())
    return wide.combine_chunks() if isinstance(wide, pa.ChunkedArray) else wide


def repeated(arrays: Sequence[pyarrow.Array]) -> list[pyarrow.Array]:
    """Arguments of one length: those of one value have it in all rows."""
    import pyarrow as pa

    length = next((len(array) for array in arrays if len(array) != 1), 1)
    return [pa.repeat(array[0], length) if len(array) == 1 != length else array for array in arrays]


def together(columns: Iterable[Any], length: int) -> int:
    """Of how many rows of such arguments the results are objects at a time."""
    size = sum(getattr(column, "nbytes", 0) for column in columns)
    return max(min(TOGETHER, BYTES_TOGETHER * length // max(size, 1)), 1)


def structs(
    rows: Iterator[ColumnValues], result: Mapping[str, str], at_once: int = TOGETHER
) -> pyarrow.StructArray:
    """An array of rows, None for null. result: names and types of their values, in Spark's DDL."""
    import pyarrow as pa

    null_row = (None,) * len(result)
    fields = [pa.field(name, arrow_type(kind)) for name, kind in result.items()]
    parts: list[pyarrow.StructArray] = []
    while (row_list := list(islice(rows, at_once))) or not parts:
        columns = (
            zip(*(row or null_row for row in row_list), strict=True) if row_list else ((),) * len(result)
        )
        arrays = [pa.array(column, type=field.type) for column, field in zip(columns, fields, strict=True)]
        mask = pa.array([row is None for row in row_list], type=pa.bool_())
        parts.append(pa.StructArray.from_arrays(arrays, fields=fields, mask=mask))
    return parts[0] if len(parts) == 1 else pa.concat_arrays(parts)


def in_order(parts: Sequence[tuple[Sequence[int], pyarrow.Array]]) -> pyarrow.Array:
    """Arrays as one. Each has the rows of these places, and together they have all."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if len(parts) == 1:
        return parts[0][1]
    places = pa.array(chain.from_iterable(places for places, _ in parts), pa.int64())
    return pa.concat_arrays([rows for _, rows in parts]).take(pc.sort_indices(places))
