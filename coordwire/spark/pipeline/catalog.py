"""The tables of an output folder in a catalog, so that SQL finds them by name.

    pipeline.register(spark, "tables", "kafka")
    spark.sql("SELECT topic, count(*) FROM kafka.records_once GROUP BY topic")

Strategy: each table is external, over its folder, and its partitions are made known; `records_once` and
`batches_once` are views with each record once (`coordwire.spark.replicas`). Rules: done again it brings the
catalog up to date; what it replaces is a table over the same folder or a view that it made; a name that is
anything else is refused. The tables' files are never touched.
"""

from __future__ import annotations

__all__ = ["register"]

from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from coordwire.errors import CoordwireError
from coordwire.spark.columns import PARTITIONS, TABLES, ddl
from coordwire.spark.pipeline.manifest import check_folder
from coordwire.spark.pipeline.notes import load
from coordwire.spark.pipeline.output import Output, table_schema
from coordwire.spark.pipeline.table_formats import PARQUET
from coordwire.spark.replicas import KEYS, once_sql

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COMMENT = "Each row once, of table {table}; made by coordwire."


def register(spark: SparkSession, out: str, database: str | None = None) -> list[str]:
    """Make the tables of the folder `out` known to the session's catalog; their names, and those of views.

    database: made if it isn't there; None is the current one. With a catalog's name before it, CATALOG.NAME,
    it is in that catalog. Raises `CoordwireError` where a name is taken
    by something else, and for a folder that is not the pipeline's.
    """
    output = Output(out)
    check_folder(output)
    manifest = load(output)
    if manifest is None:
        raise CoordwireError(f"{output.shown} has no tables of this pipeline")
    if manifest.log.format != PARQUET:
        raise CoordwireError(
            f"the tables in {output.shown} are in {manifest.log.format}, expected parquet: their own catalog "
            "makes them known"
        )
    prefix = ""
    if database is not None:
        place = ".".join(map(_quoted, database.split(".")))
        spark.sql(f"CREATE DATABASE IF NOT EXISTS {place}")
        prefix = f"{place}."
    names = []
    for table in TABLES:
        _table(spark, output, table, f"{prefix}{_quoted(table)}")
        names.append(table)
    for table, key in KEYS.items():
        view = f"{table}_once"
        _view(spark, table, key, f"{prefix}{_quoted(view)}", f"{prefix}{_quoted(table)}")
        names.append(view)
    return names if database is None else [f"{database}.{name}" for name in names]


def _table(spark: SparkSession, output: Output, table: str, name: str) -> None:
    location = f"{output.root if output.local else output.shown.rstrip('/')}/{table}"
    if (there := _described(spark, name)) is not None:
        if there.get("Type") != "EXTERNAL" or not _same(there.get("Location", ""), location):
            raise CoordwireError(
                f"{name} is in the catalog already and is not over {location}: choose another database"
            )
        spark.sql(f"DROP TABLE {name}")  # of an external table the files stay
    partitioned = " PARTITIONED BY (`date`)" if table in PARTITIONS else ""
    columns = ddl(table_schema(table))
    spark.sql(f"CREATE TABLE {name} ({columns}) USING parquet{partitioned} LOCATION {_text(location)}")
    if partitioned and table in output.folder.entries(""):
        spark.sql(f"MSCK REPAIR TABLE {name}")


def _view(spark: SparkSession, table: str, key: str, name: str, source: str) -> None:
    comment = COMMENT.format(table=table)
    there = _described(spark, name)
    if there is not None and there.get("Comment") != comment:
        raise CoordwireError(f"{name} is in the catalog already, and not made by coordwire")
    columns = [column.name for column in table_schema(table)]
    query = once_sql(source, columns, key)
    spark.sql(f"CREATE OR REPLACE VIEW {name} COMMENT {_text(comment)} AS {query}")


def _described(spark: SparkSession, name: str) -> dict[str, str] | None:
    """What the catalog says of a table or view; None if there is none of this name."""
    if not spark.catalog.tableExists(name):
        return None
    rows: list[Any] = spark.sql(f"DESCRIBE TABLE EXTENDED {name}").collect()
    first = next((number for number, row in enumerate(rows) if row.col_name.startswith("# Detailed")), 0)
    return {row.col_name: row.data_type for row in rows[first:]}


def _same(there: str, location: str) -> bool:
    """Whether two places are one, however each is written."""

    def plain(place: str) -> str:
        scheme, found, rest = place.partition(":")
        return "/" + unquote(rest if found and scheme == "file" else place).lstrip("/").rstrip("/")

    return plain(there) == plain(location) or there.rstrip("/") == location


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _text(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
