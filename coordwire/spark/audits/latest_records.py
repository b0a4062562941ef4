"""What a consumer at read_committed sees, and the latest record of each key.

Strategy: a transactional record's outcome is the next marker of its producer in the log. Rules: aborted
records are left out, and so are those whose transaction was open when the log ended, which no consumer at
read_committed sees; records of others after them stay (a consumer would wait there). Markers are never
records. A tombstone removes its key, whatever compaction has done so far; records without a key, which a
compacted topic can't have, are left out.
"""

from __future__ import annotations

__all__ = ["committed", "latest_by_key"]

from typing import TYPE_CHECKING

from coordwire.errors import CoordwireError
from coordwire.spark.audits.audited_logs import LOG, by_log

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_COMMIT = 1
"""The type in a marker's key, after two bytes of version; 0 is an abort."""


def committed(records: DataFrame) -> DataFrame:
    """The records without markers, without aborted ones and those of open transactions; same columns.

    records: with the columns input_file, producer_id and transactional. Raises `CoordwireError` where one is
    missing.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    missing = {"input_file", "producer_id", "transactional"} - set(records.columns)
    if missing:
        raise CoordwireError(
            f"the records have no column {', '.join(sorted(missing))}: ask for it by "
            ".schema() where they are read"
        )
    order = (
        Window.partitionBy(*LOG, "producer_id")
        .orderBy("log_offset")
        .rowsBetween(1, Window.unboundedFollowing)
    )
    kind = f.conv(f.hex(f.substring("key", 3, 2)), 16, 10).cast("int")
    is_marker = f.col("is_control") & (f.col("producer_id") >= 0) & kind.isin(0, _COMMIT)
    outcome = f.first(f.when(is_marker, kind), ignorenulls=True).over(order)
    return (
        by_log(records)
        .withColumn("outcome", outcome)
        .where(~f.col("is_control") & (~f.col("transactional") | (f.col("outcome") == _COMMIT)))
        .select(*records.columns)
    )


def latest_by_key(records: DataFrame, *, tombstones: bool = False) -> DataFrame:
    """The state of topics: the last committed record of each key in each partition, in the order of offsets.

    records: as for `committed`. tombstones: whether removed keys are there too, with a null value.
    """
    from pyspark.sql import functions as f

    rows = committed(records).where("key is not null")
    columns = [name for name in records.columns if name not in ("topic", "partition", "key")]
    latest = f.max_by(f.struct(*columns), f.col("log_offset")).alias("latest")
    latest_rows = rows.groupBy("topic", "partition", "key").agg(latest)
    latest_rows = latest_rows.select(
        "topic", "partition", "key", *(f.col("latest")[name].alias(name) for name in columns)
    )
    result = latest_rows if tombstones else latest_rows.where("value is not null")
    return result.select(*records.columns).orderBy("topic", "partition", "log_offset")
