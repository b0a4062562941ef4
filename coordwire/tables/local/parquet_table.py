"""Rows to Parquet, with the schema of the pipeline's table."""

from __future__ import annotations

__all__ = ["ParquetTable"]

from collections.abc import Sequence
from typing import Any

from coordwire.tables.columns import Column, arrow_schema
from coordwire.tables.options import MEBI
from coordwire.tables.readers.rows import Builder
from coordwire.tables.storage.parquet_files import parquet_writer
from coordwire.tables.storage.unit_attempt import Sink

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
