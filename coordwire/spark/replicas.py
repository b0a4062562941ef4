"""Each record once, where several copies of it are in a table: of several brokers, or of a segment's names.

    once(table(spark, "tables", "records"))
    once(spark.read.format("kafka-segment").load(["/backup/broker-1", "/backup/broker-2"])).count()

It is one of the queries of `coordwire.tables.audits`, for relations of DuckDB too.
"""

from __future__ import annotations

from coordwire.tables.audits import KEYS, once, once_sql

__all__ = ["KEYS", "once", "once_sql"]
