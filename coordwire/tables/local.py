"""Entries of captures into one CSV or Parquet file a table, for `coordwire decode --out`: rows
to one file, and the folder that these are written into.

Strategy: rows are made by the pipeline's own readers; each capture's events come from a timeline of its own.
Filters choose the rows of frames, errors and quarantine, and what traffic counts; the timelines of groups
are made from all frames, since they would be wrong otherwise. Rules: rows are made some at
a time; memory is that of the timeline and of one batch of each table.

CSV is that of RFC 4180 in UTF-8, with the columns' names in the first line: null is an empty cell, an empty
text is `""`; times are ISO 8601 in UTC, bytes hex, lists JSON, booleans true and false; texts are as they
are, in quotes where they hold a comma, a quote or a line's end, and after an apostrophe where spreadsheets
would take them for formulas. Parquet has the schema of the pipeline's table.

The folder: `coordwire-tables.json` has the size and the CRC-32C of each file that was written; a name is free
if there is no such file, and owned if its file still has that size and checksum. New files are written under
names that nothing else can have (random, created with O_EXCL), and get their own when all are complete: first
the list is written with what is to come, then each file takes its place. Rules: a file that isn't owned is
refused before anything is read or written; a name that is used meanwhile is refused too; no link below the
folder is followed (`LocalFolder`); what is left after a kill ends in `.part`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from itertools import compress
from secrets import token_hex
from types import TracebackType
from typing import Any

from coordwire._quantities import counted
from coordwire.capture.body_text import is_refused
from coordwire.capture.entries import ConnectionSign, Entry, FrameEntry
from coordwire.capture.flows import format_time
from coordwire.capture.jsonlines import encode
from coordwire.capture.plain_lines import PlainFrames
from coordwire.capture.printable import as_text
from coordwire.errors import CoordwireError, UnreadableRange
from coordwire.tables.columns import TABLES, Column, arrow_schema
from coordwire.tables.options import MEBI
from coordwire.tables.readers.captures import bad_of
from coordwire.tables.readers.frame_rows import ErrorRows, FrameRows
from coordwire.tables.readers.group_rows import STORIES, EventRows
from coordwire.tables.readers.rows import RowBuffer, quarantine_row, record_batch
from coordwire.tables.readers.traffic_rows import TrafficRows
from coordwire.tables.storage.folders import PART, LocalFolder
from coordwire.tables.storage.manifest_file import Proof
from coordwire.tables.storage.names import NOTES, WRITING
from coordwire.tables.storage.parquet_files import TableWriter
from coordwire.tables.storage.unit_attempt import Sink, digest
from coordwire.timeline.from_wire.timeline import Timeline, TimelineDialect

__all__ = ["LIST", "TABLES_OF_CAPTURES", "CsvTable", "OwnedFiles", "TablesFormat"]


BUFFER = 1 << 18
"""Bytes that are written together, about."""

_QUOTED = re.compile(r'[",\r\n]|^\s|\s$|^$')


def _text(value: str) -> str:
    cell = as_text(value)
    return '"' + cell.replace('"', '""') + '"' if _QUOTED.search(cell) else cell


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


class TableFile(RowBuffer):
    """One table's file, into which batches of rows are written. count: of the rows that it has."""

    count = 0

    def close(self) -> None:
        """Write the remaining rows, and complete the file."""
        self.take()


class CsvTable(TableFile):
    """One table's file in CSV."""

    def __init__(self, sink: Sink, columns: Sequence[Column]) -> None:
        super().__init__(BUFFER)
        self._sink = sink
        self._forms = [_FORMS[column.type] for column in columns]
        self._write([",".join(column.name for column in columns)])

    def _batch(self, columns: Iterable[Sequence[Any]]) -> None:
        cells = [
            ["" if value is None else form(value) for value in column]
            for form, column in zip(self._forms, columns, strict=True)
        ]
        self.count += len(cells[0])
        self._write(map(",".join, zip(*cells, strict=True)))

    def _write(self, lines: Iterable[str]) -> None:
        # A lone surrogate has no UTF-8.
        self._sink.write("".join([f"{line}\r\n" for line in lines]).encode("utf-8", "backslashreplace"))


BATCH = 8 * MEBI
"""Bytes of rows that are written together, about."""


class ParquetTable(TableFile):
    """One table's file in Parquet."""

    def __init__(self, sink: Sink, columns: Sequence[Column]) -> None:
        super().__init__(BATCH)
        self._schema = arrow_schema(columns)
        self._writer = TableWriter(sink, self._schema)

    def _batch(self, columns: Iterable[Sequence[Any]]) -> None:
        batch = record_batch(columns, self._schema)
        self.count += len(batch)
        self._writer.write_batch(batch)

    def close(self) -> None:
        super().close()
        self._writer.close()


# --- entries to rows ---


TABLES_OF_CAPTURES = ("frames", "errors", *STORIES, "traffic", "quarantine")
EVENT = 300
"""About how many bytes a row of any other table than frames has."""


class TablesFormat:
    """Makes rows of all tables from the entries of `coordwire decode`. dialect: of the groups, if any."""

    def __init__(
        self, files: OwnedFiles, format: str, *, show_secrets: bool, dialect: TimelineDialect | None = None
    ) -> None:
        self._names = {table: f"{table}.{format}" for table in TABLES_OF_CAPTURES}
        files.check(self._names.values())
        kind = CsvTable if format == "csv" else ParquetTable
        self._tables = {table: kind(files.open(name), TABLES[table]) for table, name in self._names.items()}
        names = {table: [column.name for column in TABLES[table]] for table in TABLES_OF_CAPTURES}
        self._frames = FrameRows(names["frames"], show_secrets=show_secrets)
        self._errors = ErrorRows(names["errors"], show_secrets=show_secrets)
        self._events = EventRows(self._tables, "capture")
        self._quarantine_columns = names["quarantine"]
        self._traffic = TrafficRows(show_secrets=show_secrets)
        self._show_secrets = show_secrets
        self._dialect = dialect
        self._timeline = Timeline(ends=True, dialect=dialect)
        self._capture = ""
        self._judge = PlainFrames(show_secrets=show_secrets)

    def add(
        self,
        entries: Sequence[Entry | ConnectionSign],
        frames: Sequence[FrameEntry],
        is_selected: Callable[[Entry | ConnectionSign], bool] | None,
    ) -> list[Entry]:
        """Add some of what is read of a capture (at least one entry), and the frames in it; timelines are
        of all. Returns the unreadable ranges and the refused frames of those selected.

        is_selected: asked for each in order; None for all.
        """
        first = entries[0]
        capture = first.file if isinstance(first, UnreadableRange) else first.capture
        if capture != self._capture:  # reading the one before may have failed
            self.finish()
            self._capture = capture
        plain, counted = self._judge.flags(frames), None
        self._events.add(self._timeline.feed_all(entries))
        if is_selected is not None:
            entries = list(filter(is_selected, entries))
            selected = set(map(id, entries))
            counted = [id(entry) in selected for entry in frames]
        self._count(self._traffic.feed(frames, plain, counted))
        if counted is not None:
            frames, plain = list(compress(frames, counted)), list(compress(plain, counted))
        for row in self._errors.rows(frames):
            self._tables["errors"].add(row, EVENT)
        for _ in self._frames.add(frames, self._tables["frames"], plain):
            pass  # the table writes its batches
        ranges = [entry for entry in entries if isinstance(entry, UnreadableRange)]
        for entry in ranges:
            bad_range = bad_of(entry, entry.file, show_secrets=self._show_secrets)
            size = EVENT + len(bad_range.data or b"")
            self._tables["quarantine"].add(quarantine_row(bad_range, self._quarantine_columns), size)
        unread = [entry for entry, flag in zip(frames, plain, strict=True) if not flag and is_refused(entry)]
        return [*ranges, *unread]

    def finish(self) -> None:
        """End the timeline of the current capture."""
        self._events.add(self._timeline.finish())
        self._timeline = Timeline(ends=True, dialect=self._dialect)
        self._count(self._traffic.finish())
        self._traffic = TrafficRows(show_secrets=self._show_secrets)

    def close(self) -> None:
        """End the last timeline and complete all tables."""
        self.finish()
        for _ in self._events.flush():
            pass
        for table in self._tables.values():
            table.close()

    def report(self) -> None:
        """Print the tables with their counts of rows on standard output."""
        for table, name in self._names.items():
            print(f"{name:<24} {counted(self._tables[table].count, 'row')}")

    def _count(self, rows: Iterable[Sequence[Any]]) -> None:
        for row in rows:
            self._tables["traffic"].add(row, EVENT)


# --- owned files ---


LIST = "coordwire-tables.json"
MADE_BY = "coordwire decode"
FORMAT = 1
TOLD = 3
"""Names that an error lists."""


class OwnedFiles:
    """A context: new files until `publish`; its end removes what is not published."""

    def __init__(self, root: str) -> None:
        self.root = root
        self._folder = LocalFolder(root)
        self._known = self._load()
        self._parts: dict[str, tuple[str, Sink]] = {}

    def __enter__(self) -> OwnedFiles:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for part, sink in self._parts.values():
            sink.drop()
            with suppress(OSError, CoordwireError):
                self._folder.delete(part)

    def _load(self) -> dict[str, list[Proof]]:
        data = self._folder.read(LIST)
        if data is None:
            return {}
        try:
            form = json.loads(data)
            if (form["made_by"], form["format"]) == (MADE_BY, FORMAT):
                return {
                    str(name): [[int(size), int(crc)] for size, crc in proofs]
                    for name, proofs in form["files"].items()
                }
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            pass
        raise CoordwireError(
            f"{self.root}/{LIST} is not as coordwire decode writes it: expected its own list of tables; "
            "nothing was read or written; choose another --out"
        )

    def check(self, names: Iterable[str]) -> None:
        """Raises `CoordwireError` if a file of one of these names is not provably owned."""
        entries = set(self._folder.entries(""))
        foreign = [name for name in names if name in entries and not self._is_ours(name)]
        if foreign:
            suffix = f" and {len(foreign) - TOLD} more" if len(foreign) > TOLD else ""
            raise CoordwireError(
                f"{self.root} has files that coordwire decode did not write, or that changed since: "
                f"{', '.join(foreign[:TOLD])}{suffix}; nothing was overwritten; move them away, or choose "
                "another --out"
            )

    def _is_ours(self, name: str) -> bool:
        try:
            with self._folder.open(name) as stream:
                return digest(stream) in self._known.get(name, [])
        except (OSError, CoordwireError):  # a link, a folder, or not to be read
            return False

    def open(self, name: str) -> Sink:
        """Open a new file, which gets this name when it is published."""
        part = f".{name}.{token_hex(16)}{PART}"
        sink = Sink(self._folder.open_new(part))
        self._parts[name] = part, sink
        return sink

    def publish(self) -> None:
        """Give all files their names. Raises `CoordwireError` where one is in use by now."""
        new: dict[str, Proof] = {}
        for name, (_, sink) in self._parts.items():
            sink.close()
            new[name] = [sink.size, sink.crc]
        self._known = self._load()
        self.check(new)
        self._list({**self._known, **{name: [*self._known.get(name, []), new[name]] for name in new}})
        for name in new:
            self._place(name)
            self._known[name] = [new[name]]
        self._list(self._known)

    def _place(self, name: str) -> None:
        part, _ = self._parts[name]
        with suppress(FileNotFoundError):
            if self._is_ours(name):
                self._folder.delete(name)
        try:
            self._folder.move(part, name)
        except FileExistsError:
            raise CoordwireError(
                f"{self.root}/{name} appeared while the tables were written; nothing was overwritten"
            ) from None
        del self._parts[name]

    def _list(self, known: dict[str, list[Proof]]) -> None:
        form = {"made_by": MADE_BY, "format": FORMAT, "files": known}
        self._folder.write(LIST, json.dumps(form).encode() + b"\n")
        for folder in (WRITING, NOTES):  # where it was until it was whole; the pipeline's own are not empty
            self._folder.remove_folder(folder)
