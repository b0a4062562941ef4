"""The tables of an output folder as DataFrames.

Strategy: Spark reads the files that the manifest and the notes name. In a store for which Spark's Hadoop has
no file system, the executors read them by pyarrow, with what the workers wrote them with: a data source of
Spark's Python API whose partitions are those files. Rules: a column that isn't asked for isn't fetched; the
date, which is in the folder's name only, becomes a column again.
"""

from __future__ import annotations

__all__ = ["hadoop_reads", "table"]

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from coordwire.spark.sources.compatibility import arrow_schema_of
from coordwire.tables.columns import ddl, select_tables, table_schema
from coordwire.tables.formats import PARQUET
from coordwire.tables.pipeline.ledger import Ledger
from coordwire.tables.storage.folders import Output, open_output
from coordwire.tables.storage.parquet_files import read_rows
from coordwire.tables.stores import is_uri

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame, SparkSession

MOST_TASKS = 256


def table(
    spark: SparkSession, out: str, name: str, *, columns: Sequence[str] | None = None, hadoop: bool = True
) -> DataFrame:
    """One of the tables in `out`, with the column types that are documented, whatever is in it.

    Reads what the manifest and the notes name, and nothing else that is in the folder. A table in Delta or
    Iceberg is read by the format's own reader, where the session has it; where not, its files are, which its
    log names. A store is read by Spark itself where Hadoop has a file system for the URI's scheme, else by
    pyarrow on the executors. columns: the only ones wanted. hadoop: False for pyarrow in any case. Raises
    `CoordwireError` where files alone don't make the rows, and for a folder that has no tables.
    """
    select_tables([name])
    output = open_output(out)
    ledger = Ledger(output)
    format_name = ledger.check_tables().log.format
    selected = [column for column in table_schema(name) if columns is None or column.name in columns]
    schema = ddl(selected)
    by_spark = output.local or (hadoop and hadoop_reads(spark, out))
    if by_spark and format_name != PARQUET and (frame := _read(spark, output, name, format_name)) is not None:
        return frame
    names, alone = ledger.named_files(name)
    if not names:
        return spark.createDataFrame([], schema)
    if not by_spark:
        return by_pyarrow(spark, out, name, schema)
    place = f"{output.uri}/{name}"
    reader = spark.read.schema(schema)
    if alone:
        return reader.parquet(place)
    base = f"{'file://' if output.local else ''}{output.root}/{name}" if output.local else place
    return reader.option("basePath", base).parquet(
        *(file if is_uri(file) else f"{output.uri}/{file}" for file in names)
    )


def hadoop_reads(spark: SparkSession, out: str) -> bool:
    """Whether Spark's Hadoop has a file system for a URI's scheme."""
    try:
        context: Any = spark.sparkContext
        classes = context._jvm.org.apache.hadoop.fs.FileSystem
        classes.getFileSystemClass(out.partition("://")[0], context._jsc.hadoopConfiguration())
    except Exception:  # Java says no, or the session is a remote one
        return False
    return True


def _read(spark: SparkSession, output: Output, name: str, format_name: str) -> DataFrame | None:
    """The table by its format's own reader; None where the session has none, or none that is set up."""
    from pyspark.errors import PySparkException

    place = f"file://{output.root}/{name}" if output.local else f"{output.place.rstrip('/')}/{name}"
    try:
        frame = spark.read.format(format_name).load(place)
        names = set(frame.columns)
    except PySparkException:
        return None
    return frame.selectExpr(*(
        f"CAST({f'`{column.name}`' if column.name in names else 'NULL'} AS {column.type}) AS `{column.name}`"
        for column in table_schema(name)
    ))  # fmt: skip


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
        names, _ = Ledger(open_output(self.out)).named_files(self.table)
        step = -(-len(names) // MOST_TASKS) or 1
        return [InputPartition(names[at : at + step]) for at in range(0, len(names), step)]

    def read(self, partition: InputPartition) -> Iterator[pyarrow.RecordBatch]:
        output, arrow_schema = open_output(self.out), arrow_schema_of(self.schema)
        for name in partition.value or ():
            yield from read_rows(output, name, arrow_schema)


def by_pyarrow(spark: SparkSession, out: str, table: str, schema: str) -> DataFrame:
    """The rows of a table. schema: the columns wanted, as Spark writes them."""
    spark.dataSource.register(StoredTable)
    reader = spark.read.format(StoredTable.name()).schema(schema)
    return reader.option("out", out).option("table", table).load()
