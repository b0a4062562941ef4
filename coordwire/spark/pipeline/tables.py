"""The tables of an output folder: their names, and reading one."""

from __future__ import annotations

__all__ = ["hadoop_reads", "table", "tables_named"]

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from coordwire.errors import CoordwireError
from coordwire.spark.columns import TABLES, ddl
from coordwire.spark.pipeline.manifest import named_files, table_format
from coordwire.spark.pipeline.notes import load
from coordwire.spark.pipeline.output import Output, table_schema
from coordwire.spark.pipeline.table_formats import PARQUET
from coordwire.spark.readers.stores import is_uri

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def tables_named(names: Iterable[str] | None) -> tuple[str, ...]:
    """The tables to write: those named, or all. Raises `CoordwireError` for an unknown one."""
    wanted = tuple(TABLES) if names is None else tuple(names)
    unknown = [name for name in wanted if name not in TABLES]
    if unknown:
        raise CoordwireError(f"no such table: {', '.join(unknown)}; there are {', '.join(TABLES)}")
    return wanted


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
    tables_named([name])
    output = Output(out)
    if load(output) is None:
        raise CoordwireError(f"{output.shown} has no tables of this pipeline")
    wanted = [one for one in table_schema(name) if columns is None or one.name in columns]
    schema = ddl(wanted)
    by_spark = output.local or (hadoop and hadoop_reads(spark, out))
    format_name = table_format(output)
    if by_spark and format_name != PARQUET and (found := _read(spark, output, name, format_name)) is not None:
        return found
    names, alone = named_files(output, name)
    if not names:
        return spark.createDataFrame([], schema)
    if not by_spark:
        from coordwire.spark.pipeline.stored_tables import by_pyarrow

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

    place = f"file://{output.root}/{name}" if output.local else f"{output.shown.rstrip('/')}/{name}"
    try:
        found = spark.read.format(format_name).load(place)
        there = set(found.columns)
    except PySparkException:
        return None
    return found.selectExpr(*(
        f"CAST({f'`{column.name}`' if column.name in there else 'NULL'} AS {column.type}) AS `{column.name}`"
        for column in table_schema(name)
    ))  # fmt: skip
