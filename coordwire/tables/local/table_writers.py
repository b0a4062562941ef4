"""Rows to one file of a table, in CSV or in Parquet.

CSV is that of RFC 4180 in UTF-8, with the columns' names in the first line: null is an empty cell, an empty
text is `""`; times are ISO 8601 in UTC, bytes hex, lists JSON, booleans true and false; texts are as they
are, in quotes where they hold a comma, a quote or a line's end. Parquet has the schema of the pipeline's
table.
"""

from __future__ import annotations

__all__ = ["CsvTable", "ParquetTable"]

import re
from collections.abc import Callable, Sequence
from typing import Any

from coordwire.capture.flows import format_time
from coordwire.capture.jsonlines import encode
from coordwire.tables.columns import Column, arrow_schema
from coordwire.tables.options import MEBI
from coordwire.tables.readers.rows import Builder
from coordwire.tables.storage.parquet_files import parquet_writer
from coordwire.tables.storage.unit_attempt import Sink

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
