"""Captures and segments in Apache Spark: data sources, and a pipeline into tables.

    coordwire.spark.register(spark)             # not needed where the package is installed as a wheel
    spark.read.format("kafka-segment").load("/backup/orders-*/")        # records
    spark.read.format("kafka-segment-batches").load("/backup")          # batch headers
    spark.read.format("kafka-capture").load("captures/*.pcap")          # frames
    spark.read.format("kafka-errors").load("captures/*.pcap")           # error codes of responses
    spark.read.format("kafka-lag").load("/backup")                      # what groups have left to read
    spark.read.format("kafka-offsets").load("/backup")                  # what coordinators wrote
    spark.read.format("kafka-quarantine").load("/backup")               # what none of them could read

    columns.py     every table's columns, with types and docs
    options.py     the options that a reader takes
    readers/       files to rows: what runs on the workers
    sources/       PySpark's data source API over the readers
    pipeline/      captures and segments into tables, and the report; by Spark or by processes of one machine
    audits/        offsets, replicas, producers and the state of topics, over the tables
    payloads.py    schema ids and GUIDs of a registry as columns
    plugins/       the top-level packages by which PySpark finds the sources, one each
    replicas.py    each record once, of several brokers' copies
    session.py     a session with the Java that there is

Strategy: everything but sources/, session.py, audits/, payloads.py and the pipeline's job in Spark is plain
Python over Arrow, and runs as well without Spark. Rules: nothing else in coordwire imports pyspark; a worker
imports the reader that it needs and keeps nothing between tasks; every byte of a file is in a row or in
quarantine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["register"]


def register(spark: SparkSession) -> None:
    """Make the data sources known to this session, by the names in the module's docstring.

    PySpark 4.3 and later find them by themselves where coordwire is installed as a wheel; registering again
    does no harm. Raises `CoordwireError` where PySpark is too old for Python data sources.
    """
    from coordwire.spark.sources.data_sources import register_all

    register_all(spark)
