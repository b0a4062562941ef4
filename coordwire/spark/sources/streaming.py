"""A folder that grows, as a stream: `spark.readStream.format("kafka-segment")` and the other sources.

Strategy: `stream_offsets` decides which files are new and keeps that in the offset; here its decisions are
turned into what the workers read, as in a batch job. Rules: nothing is kept but the offset, which Spark does;
files are put there whole, by moving them in, whatever their times; segments may grow. Under `availableNow`
what is there at the start is read, then the query ends; `maxFilesPerTrigger` bounds a micro-batch. Before
PySpark 4.2 Spark asks for the latest offset alone: `maxFilesPerTrigger` is refused, and `availableNow` is one
batch. Captures that are still written (the option `growing`) are read in the driver, where their reader waits
between two micro-batches (`coordwire.tables.readers.growing_captures`); workers are given the rows.
"""

from __future__ import annotations

__all__ = ["FolderReader", "GrowingReader", "stream_reader"]

import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from coordwire.errors import CoordwireError
from coordwire.spark.sources.compatibility import (
    BOUNDED_STREAMS,
    SupportsTriggerAvailableNow,
    arrow_schema_of,
    limits,
)  # fmt: skip
from coordwire.spark.sources.source_reader import arrow_rows, checked_columns
from coordwire.tables.options import Options
from coordwire.tables.readers.files import File, find_files
from coordwire.tables.readers.growing_captures import (
    Chains,
    GrowingCaptures,
    Listing,
    growing_offset,
    next_growing_offset,
)
from coordwire.tables.readers.rows import Bad, conform, quarantine_batch
from coordwire.tables.readers.segment_reader import resume_position
from coordwire.tables.readers.sources import SOURCES, plan_files
from coordwire.tables.readers.splits import Part
from coordwire.tables.readers.stream_offsets import (
    Arrival,
    ReadFiles,
    arrivals_between,
    initial_offset,
    next_offset,
    read_between,
)

if TYPE_CHECKING:
    import pyarrow

_LOG = logging.getLogger(__name__)


class FolderReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Files that are there whole. PySpark 4.0 and 4.1 don't say where a stream is: it is where its last batch
    ended. After a restart that isn't known at first; the offset then names all files, and `partitions`, which
    is given both ends, leaves out what was read. The last methods are those of PySpark 4.2 and later.
    """

    def __init__(self, name: str, options: Options, schema: StructType) -> None:
        if options.max_files_per_trigger is not None and not BOUNDED_STREAMS:
            raise CoordwireError("the option maxFilesPerTrigger of a stream needs PySpark 4.2 or later")
        self.source_name = name
        self.options = options
        self.schema = schema
        self._start = initial_offset()
        self._remembered: ReadFiles = {}
        self._listing: list[File] | None = None
        checked_columns(SOURCES[name], schema)

    def initialOffset(self) -> dict[str, Any]:
        return initial_offset()

    def latestOffset(self, start: Any = None, limit: Any = None) -> dict[str, Any]:
        files = self._files() if self._listing is None else self._listing
        kinds = SOURCES[self.source_name].readers
        if start is None:
            return next_offset(self._start, files, kinds, remembered=self._remembered)
        most = limit.max_files if isinstance(limit, limits.ReadMaxFiles) else None
        return next_offset(start, files, kinds, most=most)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        source, options = SOURCES[self.source_name], self.options
        if not BOUNDED_STREAMS:
            self._start, self._remembered = end, read_between(start, end)
        arrivals = arrivals_between(start, end)
        changes = [(arrival.file, arrival.change) for arrival in arrivals]
        changed = tuple(Bad(file.path, 0, file.size, change) for file, change in changes if change)
        if changed and options.failfast:
            raise CoordwireError(str(changed[0]))
        for change in changed:
            _LOG.warning("%s", change)
        new_files = [arrival.file for arrival in arrivals if not arrival.read]
        groups: list[tuple[Part | Bad, ...]] = [*plan_files(source, new_files, options)]
        for arrival in arrivals:
            if arrival.grown:
                groups += _remaining(plan_files(source, [arrival.file], options), arrival)
        return [InputPartition(group) for group in (*groups, changed) if group]

    def read(self, partition: InputPartition) -> Iterator[pyarrow.RecordBatch]:
        source, items = SOURCES[self.source_name], partition.value or ()
        if not any(isinstance(item, Bad) for item in items):
            yield from arrow_rows(source, partition, self.options, self.schema)
        elif source.name == "kafka-quarantine":
            columns = checked_columns(source, self.schema)
            yield conform(quarantine_batch(items, columns), arrow_schema_of(self.schema))

    def _files(self) -> list[File]:
        return find_files(self.options.paths, recursive=self.options.recursive)

    def getDefaultReadLimit(self) -> Any:
        most = self.options.max_files_per_trigger
        return limits.ReadAllAvailable() if most is None else limits.ReadMaxFiles(most)

    def prepareForTriggerAvailableNow(self) -> None:
        self._listing = self._files()


class GrowingReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Captures that are still written; where a stream is, and which methods are called, as above."""

    def __init__(self, name: str, options: Options, schema: StructType) -> None:
        source = SOURCES[name]
        if "capture" not in source.readers:
            raise CoordwireError(f"{name} reads no captures: it can't have the option growing")
        self.options = options
        self.schema = schema
        self._captures = GrowingCaptures(source, options, checked_columns(source, schema))
        self._listing = Listing()
        self._start = growing_offset()
        self._fixed: Chains | None = None

    def initialOffset(self) -> dict[str, Any]:
        return growing_offset()

    def latestOffset(self, start: Any = None, limit: Any = None) -> dict[str, Any]:
        if start is None:
            return next_growing_offset(self._start, self._chains(), most=None)
        return next_growing_offset(start, self._fixed or self._chains())

    def _chains(self) -> Chains:
        files = find_files(self.options.paths, recursive=self.options.recursive)
        return self._listing.chains(files)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        self._start = end
        return list(map(InputPartition, self._captures.rows(start, end)))

    def read(self, partition: InputPartition) -> Iterator[pyarrow.RecordBatch]:
        yield conform(partition.value, arrow_schema_of(self.schema))

    def stop(self) -> None:
        self._captures.close()

    def getDefaultReadLimit(self) -> Any:
        return limits.ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        self._fixed = self._chains()


def stream_reader(name: str, options: Options, schema: StructType) -> DataSourceStreamReader:
    """The reader for these options. Raises `CoordwireError` for one that it can't have."""
    if name == "kafka-lag":
        raise CoordwireError("kafka-lag is what is on disk at one time: read it in batches, with spark.read")
    return (GrowingReader if options.growing else FolderReader)(name, options, schema)


def _remaining(groups: Iterable[tuple[Part, ...]], arrival: Arrival) -> Iterator[tuple[Part, ...]]:
    """The parts of a segment that grew, from the first batch that wasn't all there."""
    groups = list(groups)
    if not groups:
        return
    begin = arrival.read
    with suppress(OSError):  # the worker reports it
        begin = resume_position(groups[0][0], arrival.read)
    for group in groups:
        if parts := tuple(replace(part, start=max(part.start, begin)) for part in group if part.end > begin):
            yield parts
