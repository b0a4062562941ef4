"""Entries to rows of the tables: frames, errors, groups, offset_commits, lag, traffic, quarantine.

Strategy: rows are made by the pipeline's own readers; each capture's events come from a timeline of its own.
Filters choose the rows of frames, errors and quarantine, and what traffic counts; the timelines of groups
are made from all frames, since they would be wrong otherwise. Rules: rows go on to the writers at
once; memory is that of the timeline and of one batch.

Rows to one file of a table, in CSV or in Parquet.

CSV is that of RFC 4180 in UTF-8, with the columns' names in the first line: null is an empty cell, an empty
text is `""`; times are ISO 8601 in UTC, bytes hex, lists JSON, booleans true and false; texts are as they
are, in quotes where they hold a comma, a quote or a line's end. Parquet has the schema of the pipeline's
table.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

from coordwire._quantities import counted
from coordwire.capture.entries import ConnectionSign, Entry, FrameEntry
from coordwire.capture.flows import format_time
from coordwire.capture.jsonlines import encode
from coordwire.errors import UnreadableRange
from coordwire.tables.columns import TABLES, Column, arrow_schema
from coordwire.tables.local.owned_files import OwnedFiles
from coordwire.tables.options import MEBI
from coordwire.tables.readers.captures import bad_of
from coordwire.tables.readers.frame_rows import ErrorRows, FrameRows, row_size
from coordwire.tables.readers.group_rows import STORIES, RowMaker, event_rows, event_table
from coordwire.tables.readers.rows import Builder, quarantine_row
from coordwire.tables.readers.traffic_rows import TrafficRows
from coordwire.tables.storage.parquet_files import parquet_writer
from coordwire.tables.storage.unit_attempt import Sink
from coordwire.timeline.events import GroupEvent
from coordwire.timeline.from_wire.timeline import Timeline, TimelineDialect

__all__ = ["TABLES_OF_CAPTURES", "CsvTable", "TablesFormat"]

BUFFER = 1 << 18
"""Bytes that are written together, about."""

_QUOTED = re.compile(r'[",\r\n]|^\s|\s$|^$')


def _text(value: str) -> str:
    return '"' + value.replace('"', '""') + '"' if _QUOTED.search(value) else value


_FORMS: dict[str, Callable[[Any], str]] = {
    "string": _text,
    "binary": lambda value: value.hex(),
    "boolean": lambda value: "true" if value else "false",
    "timestamp": lambda value: format_time(value * 1000, 6),
    "double": repr,
    "array<string>": lambda value: _text(encode(value)),
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), str),
}
"""By Spark's names of the types."""


class CsvTable:
    """One table's file."""

    def __init__(self, sink: Sink, columns: Sequence[Column]) -> None:
        self._sink = sink
        self._forms = [_FORMS[column.type] for column in columns]
        self._lines = [",".join(column.name for column in columns)]
        self._used = 0

    def add(self, row: Sequence[Any], size: int) -> None:
        cells = ("" if value is None else form(value) for form, value in zip(self._forms, row, strict=True))
        self._lines.append(",".join(cells))
        self._used += size
        if self._used >= BUFFER:
            self._write()

    def close(self) -> None:
        self._write()

    def _write(self) -> None:
        # A lone surrogate has no UTF-8.
        self._sink.write("".join(f"{line}\r\n" for line in self._lines).encode("utf-8", "backslashreplace"))
        self._lines.clear()
        self._used = 0


BATCH = 8 * MEBI
"""Bytes of rows that are written together, about."""


class ParquetTable:
    """One table's file."""

    def __init__(self, sink: Sink, columns: Sequence[Column]) -> None:
        self._builder = Builder(arrow_schema(columns), BATCH)
        self._writer = parquet_writer(sink, self._builder.schema)

    def add(self, row: Sequence[Any], size: int) -> None:
        if (batch := self._builder.add(row, size)) is not None:
            self._writer.write_batch(batch)

    def close(self) -> None:
        if (batch := self._builder.take()) is not None:
            self._writer.write_batch(batch)
        self._writer.close()


# --- entries to rows ---


TABLES_OF_CAPTURES = ("frames", "errors", *STORIES, "traffic", "quarantine")
EVENT = 300
"""About how many bytes a row of any other table than frames has."""


class TableWriter(Protocol):
    """One table's file."""

    def add(self, row: Sequence[Any], size: int) -> None:
        """Add a row, in the order of the table's columns. size: about how many bytes it has."""

    def close(self) -> None:
        """Complete the table."""


class TablesFormat:
    """Makes rows of all tables from the entries of `coordwire decode`. dialect: of the groups, if any."""

    def __init__(
        self, files: OwnedFiles, format: str, *, show_secrets: bool, dialect: TimelineDialect | None = None
    ) -> None:
        self._names = {table: f"{table}.{format}" for table in TABLES_OF_CAPTURES}
        files.check(self._names.values())
        self._writers = {table: _writer(files, table, name, format) for table, name in self._names.items()}
        self._columns = {table: [column.name for column in TABLES[table]] for table in TABLES_OF_CAPTURES}
        self._frames = FrameRows(self._columns["frames"], show_secrets=show_secrets)
        self._errors = ErrorRows(self._columns["errors"], show_secrets=show_secrets)
        self._traffic = TrafficRows(show_secrets=show_secrets)
        self._show_secrets = show_secrets
        self._dialect = dialect
        self._timeline = Timeline(ends=True, dialect=dialect)
        self._capture = ""
        self._rows = dict.fromkeys(TABLES_OF_CAPTURES, 0)
        self._event_rows: dict[type[GroupEvent], RowMaker] = {}

    def observe(self, entry: Entry | ConnectionSign) -> None:
        """Take an entry of the capture for the timelines, before filters, or where a connection ends."""
        capture = entry.file if isinstance(entry, UnreadableRange) else entry.capture
        if capture != self._capture:  # reading the one before it may have failed
            self.finish()
            self._capture = capture
        if isinstance(entry, FrameEntry):
            self._count(self._traffic.feed(entry, counted=False))
        self._events(self._timeline.feed(entry))

    def write(self, entry: Entry, digits: int) -> None:
        """Write an entry that the filters selected."""
        if isinstance(entry, FrameEntry):
            self._add("frames", self._frames.row(entry), row_size(entry))
            self._count(self._traffic.feed(entry))
            for row in self._errors.rows(entry):
                self._add("errors", row, EVENT)
        else:
            bad_range = bad_of(entry, entry.file, show_secrets=self._show_secrets)
            row = quarantine_row(bad_range, self._columns["quarantine"])
            self._add("quarantine", row, EVENT + len(bad_range.data or b""))

    def finish(self) -> None:
        """End the timeline of the current capture."""
        self._events(self._timeline.finish())
        self._timeline = Timeline(ends=True, dialect=self._dialect)
        self._count(self._traffic.finish())
        self._traffic = TrafficRows(show_secrets=self._show_secrets)

    def close(self) -> None:
        """End the last timeline and complete all tables."""
        self.finish()
        for writer in self._writers.values():
            writer.close()

    def report(self) -> None:
        """Print the tables with their counts of rows on standard output."""
        for table, name in self._names.items():
            print(f"{name:<24} {counted(self._rows[table], 'row')}")

    def _events(self, events: Iterable[GroupEvent]) -> None:
        for event in events:
            table, cls = event_table(event), type(event)
            row = self._event_rows.get(cls)
            if row is None:
                row = self._event_rows[cls] = event_rows(cls, self._columns[table], "capture")
            self._add(table, row(event), EVENT)

    def _count(self, rows: Iterable[Sequence[Any]]) -> None:
        for row in rows:
            self._add("traffic", row, EVENT)

    def _add(self, table: str, row: Sequence[Any], size: int) -> None:
        self._rows[table] += 1
        self._writers[table].add(row, size)


def _writer(files: OwnedFiles, table: str, name: str, format: str) -> TableWriter:
    if format == "csv":
        from coordwire.tables.local.capture_tables import CsvTable

        return CsvTable(files.open(name), TABLES[table])
    from coordwire.tables.local.capture_tables import ParquetTable

    return ParquetTable(files.open(name), TABLES[table])
