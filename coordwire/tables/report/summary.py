"""The contents of the report: the summary of a run, by the notes of its units, and rows of the tables.

Strategy: whichever engine ran, the Parquet files are read by pyarrow in batches of rows, of which those that
may be among the first are kept; what a footer excludes is not read. Rules: rows take the memory of a few
times `most` rows, however large the table; their order is Spark's: null first, text by its bytes.
"""

from __future__ import annotations

__all__ = ["PipelineSummary", "TableRows", "summary_of"]

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from coordwire.tables.columns import TABLES, arrow_schema
from coordwire.tables.readers.files import File
from coordwire.tables.storage.folders import Output
from coordwire.tables.storage.manifest_file import Notes
from coordwire.tables.storage.parquet_files import read_rows

if TYPE_CHECKING:
    import pyarrow


@dataclass(slots=True)
class PipelineSummary:
    """The results of a run over its inputs.

    bytes: of the input files; read_bytes: in rows; quarantined_bytes, bad_ranges: in quarantine; refused:
    frames that were not decoded whole; units, reused: of work, and those that were complete before. pruned:
    the files whose rows were removed since the files are gone. notices: sentences for the user: on a run
    before this one that was killed, on files that aren't the pipeline's. apis: by API name, frames and
    refused frames; error_codes: by API name, how many responses carry each code but 0.
    """

    files: int = 0
    bytes: int = 0
    frames: int = 0
    records: int = 0
    batches: int = 0
    refused: int = 0
    bad_ranges: int = 0
    read_bytes: int = 0
    quarantined_bytes: int = 0
    units: int = 0
    reused: int = 0
    seconds: float = 0.0
    pruned: list[str] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    apis: dict[str, tuple[int, int]] = field(default_factory=dict)
    error_codes: dict[str, dict[int, int]] = field(default_factory=dict)

    @property
    def unread(self) -> int:
        """How many refused frames and unreadable ranges there are."""
        return self.refused + self.bad_ranges


def summary_of(files: dict[str, File], notes: Notes) -> PipelineSummary:
    """The summary of a run over these files, by the notes of its units."""
    rows: Counter[str] = Counter()
    apis: dict[str, tuple[int, int]] = {}
    summary = PipelineSummary(
        files=len(files), bytes=sum(file.size for file in files.values()), units=len(notes)
    )
    for note in notes.values():
        rows.update(note["rows"])
        if note["kind"] == "capture":
            summary.frames += note["units_rows"]
        elif note["kind"] == "segment":
            summary.batches += note["units_rows"]
        summary.read_bytes += note["read_bytes"]
        summary.quarantined_bytes += note["quarantined_bytes"]
        summary.bad_ranges += note["bad_ranges"]
        summary.refused += note["refused"]
        for api, is_refused, count in note["apis"]:
            total, refused = apis.get(api, (0, 0))
            apis[api] = (total + count, refused + count * is_refused)
        for api, code, count in note.get("error_codes", ()):
            codes = summary.error_codes.setdefault(api, {})
            codes[code] = codes.get(code, 0) + count
    summary.records = rows["records"]
    summary.apis = dict(sorted(apis.items()))
    return summary


class TableRows:
    """Bounded parts of the tables. files: of each table that is written, by their names in the folder."""

    def __init__(self, output: Output, files: Mapping[str, Sequence[str]]) -> None:
        self._output = output
        self._files = files

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
        """The first rows: an attribute for each column, times in microseconds since 1970.

        None where the table isn't written. columns, order: names with spaces between them, null first.
        known: columns that are not null; among: the values that a column has one of.
        """
        import pyarrow as pa
        import pyarrow.dataset as ds

        names, count = columns.split(), 0
        tables: list[pyarrow.Table] = []
        condition = ds.scalar(True)
        for column in known:
            condition &= ds.field(column).is_valid()
        for column, values in (among or {}).items():
            condition &= ds.field(column).isin(pa.array(values, pa.string()))
        read = dict.fromkeys([*names, *order.split(), *known, *(among or {})])
        schema = pa.schema([arrow_schema(TABLES[name]).field(column) for column in read])
        for file in self._files.get(name, ()):
            for batch in read_rows(self._output, file, schema, condition):
                tables.append(pa.Table.from_batches([batch]))
                count += batch.num_rows
                if count > 4 * most and len(tables) > 1:
                    tables = [_first(tables, order.split(), most)]
                    count = tables[0].num_rows
        if not tables:
            return []
        rows = _first(tables, order.split(), most)
        cells = [
            (column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column).to_pylist()
            for column in map(rows.column, names)  # a datetime holds the years 1 to 9999 only
        ]
        return [SimpleNamespace(**dict(zip(names, row, strict=True))) for row in zip(*cells, strict=True)]


def _first(tables: Sequence[pyarrow.Table], order: Sequence[str], most: int) -> pyarrow.Table:
    """The first rows of these tables, in the order of these columns."""
    import pyarrow as pa
    import pyarrow.compute as pc

    table = pa.concat_tables(tables)
    keys = {}
    for column in order:
        values = table.column(column)
        keys[f"{column} is known"] = pc.is_valid(values)  # null first, in every version of pyarrow
        keys[column] = values
    indices = pc.sort_indices(pa.table(keys), sort_keys=[(key, "ascending") for key in keys])
    return table.take(indices[:most])
