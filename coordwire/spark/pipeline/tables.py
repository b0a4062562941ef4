"""The tables of an output folder: their names, and reading one."""

from __future__ import annotations

__all__ = ["table", "tables_named"]

from collections.abc import Iterable
from typing import TYPE_CHECKING

from coordwire.errors import CoordwireError
from coordwire.spark.columns import TABLES, ddl
from coordwire.spark.pipeline.manifest import named_files
from coordwire.spark.pipeline.output import Output, table_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def tables_named(names: Iterable[str] | None) -> tuple[str, ...]:
    """The tables to write: those named, or all. Raises `CoordwireError` for an unknown one."""
    wanted = tuple(TABLES) if names is None else tuple(names)
    unknown = [name for name in wanted if name not in TABLES]
    if unknown:
        raise CoordwireError(f"no such table: {', '.join(unknown)}; there are {', '.join(TABLES)}")
    return wanted


def table(spark: SparkSession, out: str, name: str) -> DataFrame:
    """One of the tables in `out`, with the column types that are documented, whatever is in it.

    Reads what the manifest and the notes name, and nothing else that is in the folder.
    """
    tables_named([name])
    output = Output(out)
    schema = ddl(table_schema(name))
    names, alone = named_files(output, name)
    place = f"{output.uri}/{name}"
    if not names:
        return spark.createDataFrame([], schema)
    reader = spark.read.schema(schema)
    if alone:
        return reader.parquet(place)
    base = f"{'file://' if output.local else ''}{output.root}/{name}" if output.local else place
    return reader.option("basePath", base).parquet(*(f"{output.uri}/{file}" for file in names))
