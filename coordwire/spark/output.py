"""Rows to Parquet, in folders by date and topic.

Strategy: pyarrow writes in the worker, which costs half of what Spark's own writer does; a unit's files bear
its name and a number, so that a second run writes the same files again. A file appears under its name when
it is whole. Rules: what stands in a folder's name doesn't stand in the file; a date or topic that is null has
Hive's folder for null; at most `MOST_OPEN` files are open, whatever dates a stranger's records have.
"""

from __future__ import annotations

__all__ = ["Output", "UnitFiles", "table_schema"]

import os
import posixpath
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from coordwire.spark.files import file_system, is_uri
from coordwire.spark.tables import PARTITIONS, TABLES, Column

if TYPE_CHECKING:
    import pyarrow
    from pyarrow.fs import FileSystem

MOST_OPEN = 64
FIRST_DAY, BEHIND_LAST_DAY = -62_135_596_800_000_000, 253_402_300_800_000_000
"""The years 1 to 9999, in microseconds: what a calendar's date can name."""

NULL = "__HIVE_DEFAULT_PARTITION__"
COMPRESSION = "snappy"
_REPEATED = {"path", "capture", "flow", "api", "direction", "client_id", "codec", "timestamp_type", "dialect"}
"""Columns whose values repeat: only those get a dictionary."""


def table_schema(name: str) -> list[Column]:
    """A table's columns as its files and folders have them: those of the folders last."""
    _, topic = PARTITIONS.get(name, (None, None))
    columns = [column for column in TABLES[name] if column.name != topic]
    if name in PARTITIONS:
        columns.append(Column("date", "date", "Of its time, UTC; from the folder's name."))
    if topic is not None:
        columns.append(Column("topic", "string", "From the folder's name."))
    return columns


class Output:
    """The folder that the tables are in: local, or a URI. uri: as Spark reads it; root: in its system."""

    def __init__(self, root: str) -> None:
        from pyarrow import fs

        self.system: FileSystem
        self.uri = root.rstrip("/")
        if is_uri(root):
            self.system, self.root = file_system(root)
        else:
            self.system, self.root = fs.LocalFileSystem(), os.path.abspath(root.removeprefix("file://"))
            self.uri = Path(self.root).as_uri()

    def path(self, name: str) -> str:
        return posixpath.join(self.root, name)

    def write(self, name: str, data: bytes) -> None:
        """A small file, whole or not at all."""
        path = self.path(name)
        self.system.create_dir(posixpath.dirname(path), recursive=True)
        hidden = _hidden(path)
        with self.system.open_output_stream(hidden) as stream:
            stream.write(data)
        self.system.move(hidden, path)

    def read(self, name: str) -> bytes | None:
        """A small file; None if it isn't there."""
        try:
            with self.system.open_input_stream(self.path(name)) as stream:
                data: bytes = stream.read()
        except FileNotFoundError:
            return None
        return data

    def names(self, folder: str) -> list[str]:
        """The files below a folder, by their paths from the root."""
        from pyarrow import fs

        selector = fs.FileSelector(self.path(folder), recursive=True, allow_not_found=True)
        start = len(self.root.rstrip("/")) + 1
        found = self.system.get_file_info(selector)
        return sorted(info.path[start:] for info in found if info.type == fs.FileType.File)

    def delete(self, name: str) -> None:
        """Remove a file, if it is there."""
        try:
            self.system.delete_file(self.path(name))
        except FileNotFoundError:
            return


def _hidden(path: str) -> str:
    """A name beside it that no reader looks at."""
    folder, name = posixpath.split(path)
    return posixpath.join(folder, f"_{name}.writing")


class UnitFiles:
    """The Parquet files of one unit."""

    def __init__(self, output: Output, unit: str) -> None:
        self._output = output
        self._unit = unit
        self._open: dict[tuple[str, str], tuple[Any, str]] = {}
        self._numbers: Counter[str] = Counter()
        self.names: list[str] = []
        self.rows: Counter[str] = Counter()

    def add(self, table: str, batch: pyarrow.RecordBatch) -> None:
        """Rows of a table."""
        self.rows[table] += batch.num_rows
        for folder, rows in _by_folder(table, batch):
            self._writer(table, folder, rows.schema).write_batch(rows)

    def _writer(self, table: str, folder: str, schema: pyarrow.Schema) -> Any:
        import pyarrow.parquet

        found = self._open.pop((table, folder), None)
        if found is None:
            if len(self._open) >= MOST_OPEN:
                self._close(next(iter(self._open)))
            name = posixpath.join(table, folder, f"{self._unit}-{self._numbers[table]:04}.parquet")
            self._numbers[table] += 1
            path = self._output.path(name)
            self._output.system.create_dir(posixpath.dirname(path), recursive=True)
            writer = pyarrow.parquet.ParquetWriter(
                _hidden(path), schema, filesystem=self._output.system, compression=COMPRESSION,
                use_dictionary=[column for column in schema.names if column in _REPEATED],
            )  # fmt: skip
            found = writer, name
        self._open[table, folder] = found  # the latest used stands last
        return found[0]

    def _close(self, key: tuple[str, str]) -> None:
        writer, name = self._open.pop(key)
        writer.close()
        path = self._output.path(name)
        self._output.system.move(_hidden(path), path)
        self.names.append(name)

    def close(self) -> None:
        """Make all files whole."""
        for key in list(self._open):
            self._close(key)


def _by_folder(table: str, batch: pyarrow.RecordBatch) -> Iterator[tuple[str, pyarrow.RecordBatch]]:
    """The rows of each date and topic, with the folder's name and without what it says."""
    time, topic = PARTITIONS.get(table, (None, None))
    if time is None:
        yield "", batch
        return
    import pyarrow as pa
    import pyarrow.compute as pc

    kept = [field.name for field in batch.schema if field.name != topic]
    when = batch.column(time).cast(pa.int64())
    known = pc.and_(pc.greater_equal(when, FIRST_DAY), pc.less(when, BEHIND_LAST_DAY))
    days = pc.if_else(known, pc.floor_temporal(batch.column(time), unit="day"), None)
    days = days.cast(pa.timestamp("us")).cast(pa.date32())
    keys = [days] if topic is None else [days, batch.column(topic)]
    rows = batch.select(kept)
    if _same(keys):
        yield _folder([key[0].as_py() for key in keys], topic), rows
        return
    names = ["date", "topic"][: len(keys)]
    places = pa.table([*keys, pa.array(range(len(rows)), pa.int64())], names=[*names, "row"])
    for one in places.group_by(names, use_threads=False).aggregate([("row", "list")]).to_pylist():
        yield _folder([one[name] for name in names], topic), rows.take(pa.array(one["row_list"]))


def _same(keys: list[Any]) -> bool:
    """Whether all rows have the same."""
    import pyarrow.compute as pc

    return all(len(pc.unique(key)) == 1 for key in keys)


def _folder(values: list[Any], topic: str | None) -> str:
    date = f"date={NULL if values[0] is None else values[0].isoformat()}"
    if topic is None:
        return date
    name = NULL if values[1] is None else quote(values[1], safe=" ")
    return f"{date}/topic={name}"
