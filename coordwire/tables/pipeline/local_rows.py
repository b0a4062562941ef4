"""The report's rows without Spark: the tables' Parquet files, read by pyarrow.

Strategy: the files that the manifest and the notes name are read in batches of rows, of which those that may
be among the first are kept. Rules: memory is that of a few times `most` rows, however large the table; the
order is Spark's: null first, text by its bytes.
"""

from __future__ import annotations

__all__ = ["LocalRows"]

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from coordwire.tables.pipeline.manifest import named_files
from coordwire.tables.storage.output import Output

if TYPE_CHECKING:
    import pyarrow


class LocalRows:
    """`TableRows` by pyarrow."""

    def __init__(self, out: str, tables: Sequence[str]) -> None:
        self._output = Output(out)
        self._tables = tables

    def rows(
        self,
        name: str,
        columns: str,
        order: str,
        most: int,
        *,
        known: Sequence[str] = (),
        among: Mapping[str, Sequence[str]] | None = None,
    ) -> list[Any]:
        import pyarrow as pa
        import pyarrow.parquet

        if name not in self._tables:
            return []
        wanted, first = columns.split(), _First(order.split(), most)
        read = list(dict.fromkeys([*wanted, *order.split(), *known, *(among or {})]))
        for file in named_files(self._output, name)[0]:
            with self._output.folder.open(file) as stream:
                for batch in pyarrow.parquet.ParquetFile(stream).iter_batches(columns=read):
                    first.add(_chosen(pa.table(batch), known, among or {}))
        found = first.take()
        if found is None:
            return []
        values = {column: _values(found.column(column)) for column in wanted}
        return [
            SimpleNamespace(**dict(zip(wanted, row, strict=True)))
            for row in zip(*values.values(), strict=True)
        ]


def _chosen(table: pyarrow.Table, known: Sequence[str], among: Mapping[str, Sequence[str]]) -> pyarrow.Table:
    import pyarrow as pa
    import pyarrow.compute as pc

    for column in known:
        table = table.filter(pc.is_valid(table.column(column)))
    for column, values in among.items():
        table = table.filter(pc.is_in(table.column(column), pa.array(values, pa.string())))
    return table


def _values(column: pyarrow.ChunkedArray) -> list[Any]:
    """A datetime holds the years 1 to 9999 only, and a capture may say any time."""
    import pyarrow as pa

    found: list[Any] = (column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column).to_pylist()
    return found


class _First:
    """The first rows of all that are added, in the order of these columns."""

    def __init__(self, order: Sequence[str], most: int) -> None:
        self._order = order
        self._most = most
        self._kept: list[pyarrow.Table] = []
        self._count = 0

    def add(self, table: pyarrow.Table) -> None:
        self._kept.append(table)
        self._count += table.num_rows
        if self._count > 4 * self._most and len(self._kept) > 1:
            self._kept = [self._sorted()]
            self._count = self._kept[0].num_rows

    def take(self) -> pyarrow.Table | None:
        return self._sorted() if self._kept else None

    def _sorted(self) -> pyarrow.Table:
        import pyarrow as pa
        import pyarrow.compute as pc

        table = pa.concat_tables(self._kept)
        keys = {}
        for column in self._order:
            values = table.column(column)
            keys[f"{column} is known"] = pc.is_valid(values)  # null first, in every version of pyarrow
            keys[column] = values
        order = pc.sort_indices(pa.table(keys), sort_keys=[(key, "ascending") for key in keys])
        return table.take(order[: self._most])
