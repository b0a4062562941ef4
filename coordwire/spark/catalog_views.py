"""The tables of an output folder in a catalog, so that SQL finds them by name.

    register_views(spark, "tables", "kafka")
    spark.sql("SELECT topic, count(*) FROM kafka.records_once GROUP BY topic")

Strategy: each table is a view of its folder's files, whose partitions Spark finds whenever it is read: a
table of the catalog wouldn't look into the folders of topics, below those of dates. `records_once` and
`batches_once` have each record once (`coordwire.spark.replicas`); `coordwire.tables.views` has what happened
once, in captures and logs. Rules: a view's comment says what it is of, and only such a view is replaced; a
name that is anything else is refused. The tables' files are not touched.
"""

from __future__ import annotations

__all__ = ["check_place", "register_views"]

from typing import TYPE_CHECKING, Any

from coordwire.errors import CoordwireError
from coordwire.spark.engines import is_connect
from coordwire.spark.replicas import KEYS, once_sql
from coordwire.spark.stored_tables import hadoop_reads
from coordwire.tables.columns import TABLES, table_schema
from coordwire.tables.formats import PARQUET
from coordwire.tables.pipeline.ledger import Ledger
from coordwire.tables.pipeline.units import printable
from coordwire.tables.storage.folders import Output, open_output
from coordwire.tables.views import VIEWS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COMMENT = "{name} of {place}; made by coordwire."


def register_views(spark: SparkSession, out: str, database: str | None = None) -> list[str]:
    """Make the tables of the folder `out` known to the session's catalog, as views; returns their names.

    database: made if it isn't there; None is the current one. With a catalog's name before it, CATALOG.NAME,
    it is in that catalog. Raises `CoordwireError` where a name is taken by something else, for a database
    that Spark can't make, for a folder that is not the pipeline's, and for one that Spark itself can't read.
    """
    from pyspark.errors import PySparkException

    output = open_output(out)
    check_place(spark, output)
    table_format = Ledger(output).check_tables().log.format
    if table_format != PARQUET:
        raise CoordwireError(
            f"the tables in {output.place} are in {table_format}, expected parquet: their own catalog makes "
            "them known"
        )
    prefix = ""
    if database is not None:
        place = ".".join(map(_quoted, database.split(".")))
        try:
            spark.sql(f"CREATE DATABASE IF NOT EXISTS {place}")
        except PySparkException as error:
            reason = printable(f"{place}: Spark can't make this database: {error.getCondition() or error}")
            raise CoordwireError(reason) from None
        prefix = f"{place}."
    views = {table: _rows(output, table) for table in TABLES}
    for table, key in KEYS.items():
        columns = [column.name for column in table_schema(table)]
        views[f"{table}_once"] = once_sql(f"{prefix}{_quoted(table)}", columns, key)
    views |= {name: query(prefix=prefix) for name, query in VIEWS.items()}
    for name, query in views.items():
        comment = COMMENT.format(name=name, place=output.place if not output.local else output.root)
        _view(spark, f"{prefix}{_quoted(name)}", query, comment)
    names = list(views)
    return names if database is None else [f"{database}.{name}" for name in names]


def check_place(spark: SparkSession, output: Output) -> None:
    """Raises `CoordwireError` for a folder in a store that Spark itself can't read."""
    if not output.local and not is_connect(spark) and not hadoop_reads(spark, output.place):
        scheme = output.place.partition("://")[0]
        raise CoordwireError(
            f"{output.place}: views need a Hadoop file system for {scheme}://, and this session has none "
            "(hadoop-aws has one for s3a://); coordwire.spark.table reads the tables without"
        )


def _rows(output: Output, table: str) -> str:
    """A query of all rows of a table's folder."""
    columns = table_schema(table)
    if not output.names(table):
        empty = ", ".join(f"CAST(NULL AS {column.type}) AS {_quoted(column.name)}" for column in columns)
        return f"SELECT {empty} WHERE false"
    names = ", ".join(
        f"CAST({_quoted(column.name)} AS {column.type}) AS {_quoted(column.name)}" for column in columns
    )
    return f"SELECT {names} FROM parquet.{_quoted(f'{output.uri}/{table}')}"


def _view(spark: SparkSession, name: str, query: str, comment: str) -> None:
    description = _described(spark, name)
    if description is not None and description.get("Comment") != comment:
        raise CoordwireError(
            f"{name} is in the catalog already, and is not: {comment} Choose another database"
        )
    spark.sql(f"CREATE OR REPLACE VIEW {name} COMMENT {_text(comment)} AS {query}")


def _described(spark: SparkSession, name: str) -> dict[str, str] | None:
    """The catalog's description of a table or view; None if there is none of this name."""
    if not spark.catalog.tableExists(name):
        return None
    rows: list[Any] = spark.sql(f"DESCRIBE TABLE EXTENDED {name}").collect()
    first = next((number for number, row in enumerate(rows) if row.col_name.startswith("# Detailed")), 0)
    return {row.col_name: row.data_type for row in rows[first:]}


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _text(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
