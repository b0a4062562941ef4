"""A folder that grows, as a stream: `spark.readStream.format("kafka-segment")` and the other sources.

Strategy: files are ordered by the time of their last change, then by path; a stream's offset is the last file
that was read, a micro-batch the files after it, which the workers read as in a batch job. Rules: nothing is
kept but the offset, which Spark does; files are put there whole, by moving them in, and don't change after
(one that does comes again). Under `availableNow` what is there at the start is read, then the query ends;
`maxFilesPerTrigger` bounds a micro-batch.
"""

from __future__ import annotations

__all__ = ["FolderReader"]

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxFiles,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from coordwire.spark.options import Options
from coordwire.spark.readers.dispatch import SOURCES, plan_files
from coordwire.spark.readers.files import File, find_files
from coordwire.spark.sources.source_reader import arrow_rows, checked_columns

if TYPE_CHECKING:
    import pyarrow

Place = tuple[int, str]
"""A file in the order of reading: its time in nanoseconds since 1970, and its path."""


class FolderReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads what comes into the folders."""

    def __init__(self, name: str, options: Options, schema: StructType) -> None:
        self.source_name = name
        self.options = options
        self.schema = schema
        self._last: Place | None = None
        checked_columns(SOURCES[name], schema)

    def initialOffset(self) -> dict[str, Any]:
        return _offset((0, ""))

    def getDefaultReadLimit(self) -> ReadLimit:
        most = self.options.max_files_per_trigger
        return ReadAllAvailable() if most is None else ReadMaxFiles(most)

    def prepareForTriggerAvailableNow(self) -> None:
        files = self._files((0, ""))
        self._last = _place(files[-1]) if files else (0, "")

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        files = self._files(_from(start))
        if isinstance(limit, ReadMaxFiles):
            files = files[: limit.max_files]
        return _offset(_place(files[-1])) if files else start

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        files = [file for file in self._files(_from(start)) if _place(file) <= _from(end)]
        return [InputPartition(parts) for parts in plan_files(SOURCES[self.source_name], files, self.options)]

    def read(self, partition: InputPartition) -> Iterator[pyarrow.RecordBatch]:
        return arrow_rows(SOURCES[self.source_name], partition, self.options, self.schema)

    def _files(self, after: Place) -> list[File]:
        """The files after that place, up to where this query goes, in the order of reading."""
        found = find_files(self.options.paths, recursive=self.options.recursive)
        files = [file for file in found if _place(file) > after]
        if self._last is not None:
            files = [file for file in files if _place(file) <= self._last]
        return sorted(files, key=_place)


def _place(file: File) -> Place:
    return file.modified, file.path


def _offset(place: Place) -> dict[str, Any]:
    return {"modified": place[0], "path": place[1]}


def _from(offset: dict[str, Any]) -> Place:
    return offset["modified"], offset["path"]
