"""Rows to Parquet, in folders by date and topic, and from there.

Strategy: pyarrow writes in the worker, which costs half of what Spark's own writer does; each attempt at a
unit writes files of its own, which appear in their folders when they are complete and were read back (see
`unit_attempt`). Rules: a date is in the folder's name only, a topic in the file, whatever it is (see
`names`); at most `MOST_OPEN` files are open, whatever dates an untrusted producer's records have. The small
units of a task share files: each knows which rows of a file are its own, so that a file can be written again
without those of a unit that goes (`without_rows`). Few rows are held until more come, since what a row group
costs does not depend on its rows.
"""

from __future__ import annotations

__all__ = ["TableWriter", "UnitFiles", "UnitRows", "read_rows", "without_rows"]

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any

from coordwire.errors import CoordwireError
from coordwire.tables.columns import PARTITIONS
from coordwire.tables.storage.folders import Output
from coordwire.tables.storage.names import folder_of, partition_date
from coordwire.tables.storage.unit_attempt import Attempt, Sink

if TYPE_CHECKING:
    import pyarrow

MOST_OPEN = 64
FIRST_DAY, BEHIND_LAST_DAY = -62_135_596_800_000_000, 253_402_300_800_000_000
"""The years 1 to 9999, in microseconds: what a calendar's date can name."""

DAY = 86_400_000_000
"""Microseconds."""

READ_TOGETHER = 65_536
"""Rows of a file that are in memory at once, of each batch; one is read ahead."""

COMPRESSION = "snappy"
BUFFER = 1 << 12
"""Bytes that are given to a file's sink together, at least, but for the last."""

HELD, HELD_OF_ALL = 1 << 20, 32 << 20
"""Bytes of rows that are held for a file, and for all of them, until a row group is made of them."""

WRITTEN_TOGETHER = 8_192
"""Values of a column that its encoder takes at once."""

_REPEATED = {
    "input_file", "topic", "flow", "api", "direction", "client_id", "codec", "timestamp_type", "dialect",
    "client_address", "broker_address", "client_software_name", "client_software_version", "broker_id",
    "cluster_id", "file_state", "producer_id", "producer_epoch", "base_sequence", "partition_leader_epoch",
}  # fmt: skip
"""Columns whose values repeat: only those get a dictionary."""


class TableWriter:
    """Writes one file of a table; the sink gets its many small pieces together."""

    def __init__(self, sink: Sink, schema: pyarrow.Schema) -> None:
        import pyarrow as pa
        import pyarrow.parquet

        self._stream = pa.BufferedOutputStream(pa.PythonFile(sink, "w"), BUFFER)
        self._writer = pyarrow.parquet.ParquetWriter(
            self._stream, schema, compression=COMPRESSION,
            use_dictionary=[column for column in schema.names if column in _REPEATED],
            write_batch_size=WRITTEN_TOGETHER,
        )  # fmt: skip

    def write_batch(self, batch: pyarrow.RecordBatch) -> None:
        """Write rows."""
        self._writer.write_batch(batch)

    def write_together(self, batches: Sequence[pyarrow.RecordBatch]) -> None:
        """Write batches as one row group."""
        import pyarrow as pa

        self._writer.write_table(pa.Table.from_batches(batches))

    def close(self) -> None:
        """Complete the file; the sink stays open."""
        self._writer.close()
        self._stream.flush()


def read_rows(
    output: Output, name: str, schema: pyarrow.Schema, condition: Any = None
) -> Iterator[pyarrow.RecordBatch]:
    """A file's rows in batches of this schema: a column that it lacks is null, the date is its folder's.

    condition: of pyarrow.dataset; row groups that a footer excludes by it are not read.
    """
    import pyarrow.dataset as ds

    day = partition_date(name)
    known = None if day is None else ds.field("date") == date.fromisoformat(day)
    format = ds.ParquetFileFormat(coerce_int96_timestamp_unit="us")  # as Spark's compactions write times
    with output.open(name) as stream:
        yield from format.make_fragment(stream, partition_expression=known).to_batches(
            schema, columns=schema.names, filter=condition, batch_size=READ_TOGETHER, batch_readahead=1,
            use_threads=False,
        )  # fmt: skip


Runs = list[list[int]]
"""Rows of a file: the first of each run, and the one after its last."""


class _OpenFile:
    """A file being written. rows: that were added to it; pending: those of them that aren't written yet."""

    def __init__(self, name: str, writer: TableWriter) -> None:
        self.name = name
        self.writer = writer
        self.rows = self.pending_bytes = 0
        self.pending: list[pyarrow.RecordBatch] = []

    def flush(self) -> None:
        if self.pending:
            batches, self.pending, self.pending_bytes = self.pending, [], 0
            self.writer.write_together(batches)


class UnitFiles:
    """The Parquet files of one unit, or of the small ones of a task, in an attempt. unit: what they are named
    after."""

    def __init__(self, attempt: Attempt, unit: str) -> None:
        self.attempt = attempt
        self._unit = unit
        self._open: dict[tuple[str, str], _OpenFile] = {}
        self._pending_bytes = 0
        self.names: list[str] = []
        self.rows: Counter[str] = Counter()

    def add(self, table: str, batch: pyarrow.RecordBatch) -> list[tuple[str, int, int]]:
        """Rows of a table; returns the files that they are in, with the first row and the one after the
        last."""
        self.rows[table] += batch.num_rows
        places = []
        for folder, rows in _by_folder(table, batch):
            file = self._file(table, folder, rows.schema)
            places.append((file.name, file.rows, file.rows + rows.num_rows))
            file.rows += rows.num_rows
            file.pending.append(rows)
            file.pending_bytes += rows.nbytes
            self._pending_bytes += rows.nbytes
            if file.pending_bytes >= HELD:
                self._pending_bytes -= file.pending_bytes
                file.flush()
            elif self._pending_bytes >= HELD_OF_ALL:
                self._pending_bytes = 0
                for open_file in self._open.values():
                    open_file.flush()
        return places

    def _file(self, table: str, folder: str, schema: pyarrow.Schema) -> _OpenFile:
        file = self._open.pop((table, folder), None)
        if file is None:
            if len(self._open) >= MOST_OPEN:
                self._close(next(iter(self._open)))
            name, sink = self.attempt.open(self._unit, table, folder)
            file = _OpenFile(name, TableWriter(sink, schema))
        self._open[table, folder] = file  # the latest used is last
        return file

    def _close(self, key: tuple[str, str]) -> None:
        file = self._open.pop(key)
        try:
            self._pending_bytes -= file.pending_bytes
            file.flush()
            file.writer.close()
            self.attempt.finish(file.name, file.rows)
        except BaseException:
            self._open[key] = file
            raise
        self.names.append(file.name)

    def close(self) -> None:
        """Complete all files."""
        for key in list(self._open):
            self._close(key)

    def discard(self) -> None:
        """Remove all files of the attempt."""
        self.attempt.discard()
        for file in self._open.values():
            with suppress(Exception):  # its file is gone
                file.writer.close()
        self._open.clear()


class UnitRows:
    """The rows of one unit in files that it may share. ranges: which rows of each file are its own."""

    def __init__(self, files: UnitFiles) -> None:
        self.files = files
        self.rows: Counter[str] = Counter()
        self.ranges: dict[str, Runs] = {}

    def add(self, table: str, batch: pyarrow.RecordBatch) -> None:
        """Rows of a table."""
        self.rows[table] += batch.num_rows
        for name, start, end in self.files.add(table, batch):
            runs = self.ranges.setdefault(name, [])
            if runs and runs[-1][1] == start:
                runs[-1][1] = end
            elif start < end:
                runs.append([start, end])


def without_rows(attempt: Attempt, name: str, staying: Sequence[Sequence[int]]) -> str:
    """Write those rows of a file that stay to a new file of the attempt, in the same folder; gives its name.

    staying: runs of rows, in order. Raises `CoordwireError` where the file hasn't these rows.
    """
    import pyarrow as pa
    import pyarrow.parquet

    table, *folders, _ = name.split("/")
    new_name, sink = attempt.open(name.rpartition("/")[2][:24], table, "/".join(folders))
    try:
        with attempt.output.open(name) as stream, pyarrow.parquet.ParquetFile(stream) as file:
            writer = TableWriter(sink, file.schema_arrow)
            position = written = 0
            for batch in file.iter_batches(READ_TOGETHER, use_threads=False):
                slices = [
                    batch.slice(
                        max(start - position, 0), min(end, position + len(batch)) - max(start, position)
                    )
                    for start, end in staying
                    if start < position + len(batch) and end > position
                ]
                position += len(batch)
                written += sum(map(len, slices))
                if slices:
                    writer.write_together(slices)
            writer.close()
    except pa.ArrowException as error:
        raise CoordwireError(f"{attempt.output.path(name)} can't be read: {error}") from None
    expected = sum(end - start for start, end in staying)
    if written != expected:
        raise CoordwireError(
            f"{attempt.output.path(name)} has {position} rows, expected {expected} that stay, got {written}"
        )
    attempt.finish(new_name, written)
    return new_name


def _by_folder(table: str, batch: pyarrow.RecordBatch) -> Iterator[tuple[str, pyarrow.RecordBatch]]:
    """The rows of each date and topic, with the folder's name."""
    time, topic = PARTITIONS.get(table, (None, None))
    if time is None:
        yield "", batch
        return
    import pyarrow as pa
    import pyarrow.compute as pc

    day = _only_day(batch.column(time))
    if day is not None and topic is None:
        yield folder_of([day], False), batch
        return
    days = _days(batch.column(time)) if day is None else pa.repeat(pa.scalar(day, pa.date32()), len(batch))
    keys = [days] if topic is None else [days, batch.column(topic)]
    if _is_constant(keys):
        yield folder_of([key[0].as_py() for key in keys], topic is not None), batch
        return
    names = ["date", "topic"][: len(keys)]
    numbers = pc.cumulative_sum(pa.repeat(pa.scalar(1, pa.int64()), len(batch)), start=-1)
    places = pa.table([*keys, numbers], names=[*names, "row"])
    groups = places.group_by(names, use_threads=False).aggregate([("row", "list")])
    values = zip(*(groups.column(name).to_pylist() for name in names), strict=True)
    for key, rows in zip(values, groups.column("row_list"), strict=True):
        yield folder_of(list(key), topic is not None), batch.take(rows.values)


def _only_day(times: pyarrow.Array) -> date | None:
    """The date of all times; None if they have several, or none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    bounds = pc.min_max(times.cast(pa.int64()), skip_nulls=False)
    first, last = bounds["min"].as_py(), bounds["max"].as_py()
    if first is None or first // DAY != last // DAY or not FIRST_DAY <= first < BEHIND_LAST_DAY:
        return None
    return date(1970, 1, 1) + timedelta(microseconds=first)


def _days(times: pyarrow.Array) -> pyarrow.Array:
    """The date of each time; null for what is beyond what a date can be made of."""
    import pyarrow as pa
    import pyarrow.compute as pc

    time_us = times.cast(pa.int64())
    known = pc.and_(pc.greater_equal(time_us, FIRST_DAY), pc.less(time_us, BEHIND_LAST_DAY))
    days = pc.floor_temporal(pc.if_else(known, times, None), unit="day")
    return days.cast(pa.timestamp("us")).cast(pa.date32())


def _is_constant(keys: list[Any]) -> bool:
    """Whether all rows have the same keys."""
    import pyarrow.compute as pc

    return all(len(pc.unique(key)) == 1 for key in keys)
