"""A table in a store, read on the executors by pyarrow: without Hadoop, and with what the workers wrote with.

Strategy: a data source of Spark's Python API whose parts are the files that the manifest and the notes name.
Rules: a column that isn't asked for isn't fetched; the date, which is in the folder's name only, becomes a
column again.
"""

from __future__ import annotations

__all__ = ["StoredTable", "by_pyarrow", "read_rows"]

import re
from collections.abc import Iterator, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from coordwire.spark.pipeline.manifest import named_files
from coordwire.spark.pipeline.output import Output
from coordwire.spark.sources.compatibility import arrow_schema_of

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame, SparkSession

MOST_TASKS = 256
_DATE = re.compile(r"/date=(\d{4}-\d\d-\d\d)/")


class StoredTable(DataSource):
    """Options: out, table."""

    @classmethod
    def name(cls) -> str:
        return "coordwire-stored-table"

    def reader(self, schema: StructType) -> DataSourceReader:
        return _Reader(self.options["out"], self.options["table"], schema)


class _Reader(DataSourceReader):
    def __init__(self, out: str, table: str, schema: StructType) -> None:
        self.out = out
        self.table = table
        self.schema = schema

    def partitions(self) -> Sequence[InputPartition]:
        names, _ = named_files(Output(self.out), self.table)
        step = -(-len(names) // MOST_TASKS) or 1
        return [InputPartition(names[at : at + step]) for at in range(0, len(names), step)]

    def read(self, partition: InputPartition) -> Iterator[pyarrow.RecordBatch]:
        wanted = arrow_schema_of(self.schema)
        for name in partition.value or ():
            yield from read_rows(self.out, name, wanted)


def by_pyarrow(spark: SparkSession, out: str, table: str, schema: str) -> DataFrame:
    """The rows of a table. schema: the columns wanted, as Spark writes them."""
    spark.dataSource.register(StoredTable)
    reader = spark.read.format(StoredTable.name()).schema(schema)
    return reader.option("out", out).option("table", table).load()


def read_rows(out: str, name: str, schema: pyarrow.Schema) -> Iterator[pyarrow.RecordBatch]:
    """The rows of one file in batches of this schema."""
    import pyarrow as pa
    import pyarrow.parquet

    found = _DATE.search(name)
    day = date.fromisoformat(found[1]) if found else None
    with Output(out).folder.open(name) as stream:
        file = pyarrow.parquet.ParquetFile(stream)
        inside = [field.name for field in schema if field.name in file.schema_arrow.names]
        for batch in file.iter_batches(columns=inside):
            arrays: list[Any] = []
            for field in schema:
                if field.name in inside:
                    arrays.append(batch.column(field.name).cast(field.type))
                elif field.name == "date" and day is not None:
                    arrays.append(pa.repeat(pa.scalar(day, field.type), batch.num_rows))
                else:
                    arrays.append(pa.nulls(batch.num_rows, field.type))
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)
