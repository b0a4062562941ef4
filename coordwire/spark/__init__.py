"""Captures and segments in Apache Spark: data sources, and the engine and tables of the pipeline.

    coordwire.spark.register(spark)             # not needed where the package is installed as a wheel
    spark.read.format("kafka-segment").load("/backup/orders-*/")        # records
    spark.read.format("kafka-segment-batches").load("/backup")          # batch headers
    spark.read.format("kafka-capture").load("captures/*.pcap")          # frames
    spark.read.format("kafka-errors").load("captures/*.pcap")           # error codes of responses
    spark.read.format("kafka-lag").load("/backup")                      # what groups have left to read
    spark.read.format("kafka-offsets").load("/backup")                  # what coordinators wrote
    spark.read.format("kafka-quarantine").load("/backup")               # what none of them could read

    sources/       PySpark's data source API over `coordwire.tables.readers`
    engines.py     the engines of `coordwire.tables.pipeline` that run in a Spark session
    stored_tables.py   the pipeline's tables as DataFrames; catalog_views.py: as views of Spark's catalog
    audits.py, replicas.py   the queries of `coordwire.tables.audits`, under their names for Spark
    functions.py   the functions of `coordwire.tables.functions` on columns; schema ids of a registry
    session.py     a session with the Java that there is
    plugins/       the top-level packages by which PySpark finds the sources, one each

Rules: nothing else in coordwire imports pyspark; importing this package alone does not import it either.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coordwire._lazy import exports

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from coordwire.spark.catalog_views import register_views as register_views
    from coordwire.spark.engines import engine as engine
    from coordwire.spark.stored_tables import table as table

__all__ = ["engine", "register", "register_views", "table"]

__getattr__, __dir__ = exports(
    __name__,
    __all__,
    {"engine": "engines", "register_views": "catalog_views", "table": "stored_tables"},
)


def register(spark: SparkSession) -> None:
    """Make the data sources known to this session, by the names in the module's docstring.

    PySpark 4.3 and later find them by themselves where coordwire is installed as a wheel; registering again
    does no harm. Raises `CoordwireError` where PySpark is too old for Python data sources.
    """
    from coordwire.spark.sources.data_sources import register_all

    register_all(spark)
