"""The common part of audits: which rows are one log, which of them are stale, which topics are
compacted, and what a consumer at read_committed sees of one.

Strategy: a log is one replica's copy of one partition: the folder of its files. Rules: files that a broker
has renamed (`.deleted`, `.cleaned`, `.swap`) repeat offsets of others, and snapshots of the cluster's
metadata have offsets of their own: both are left out, by the column `file_state`, or by `input_file` where an
older table has none.

Of what a consumer sees: a transactional record's outcome is the next marker of its producer in the log.
Aborted records are left out, and so are those whose transaction was open when the log ended; records of
others after them stay (a consumer would wait there). Markers are never records. A tombstone removes its key,
whatever compaction has done so far; records without a key, which a compacted topic can't have, are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from fnmatch import translate
from functools import reduce
from typing import TYPE_CHECKING

from coordwire.errors import CoordwireError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["LOG", "by_log", "committed", "is_compacted", "latest_by_key"]

COMPACTED = ("__consumer_offsets", "__transaction_state", "__share_group_state")
"""Topics that brokers always compact."""

LOG = ("topic", "partition", "log")
"""What divides rows into logs."""

_STALE = r"\.(deleted|cleaned|swap|checkpoint)$|(-delete|-future|-stray)/[^/]*$"
"""Paths of files that a broker is about to remove or to put into place."""


def by_log(rows: DataFrame) -> DataFrame:
    """The rows of live files, with the column `log`: the folder that they are in."""
    from pyspark.sql import functions as f

    path = f.col("input_file")
    if "file_state" in rows.columns:
        # Remote segments lie in a folder each: their partition is their log.
        state = f.coalesce(f.col("file_state"), f.lit("live"))
        rows = rows.where(state.isin("live", "remote"))
        folder = f.when(state == "remote", f.lit("remote")).otherwise(_folder(path))
    else:
        rows = rows.where(~path.rlike(_STALE))
        folder = _folder(path)
    return rows.withColumn("log", folder)


def _folder(path: Column) -> Column:
    from pyspark.sql import functions as f

    return f.regexp_replace(path, r"/[^/]*$", "")


def is_compacted(compacted: Iterable[str]) -> Column:
    """Whether a batch's log is taken for compacted: by its name, or by a trace that compaction left.

    compacted: names or globs of topics. A trace is a batch of the log with fewer records than offsets, or
    with a delete horizon.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    topic, span = f.col("topic"), f.col("last_offset") - f.col("base_offset") + 1
    signs = [
        topic.isin(*COMPACTED),
        f.col("delete_horizon_ms").isNotNull(),
        f.col("count").cast("bigint") < span,
        *(topic.rlike(f"^{_java(glob)}$") for glob in compacted),
    ]
    any_sign = reduce(lambda sign, next_sign: sign | f.coalesce(next_sign, f.lit(False)), signs, f.lit(False))
    return f.max(any_sign).over(Window.partitionBy(*LOG))


def _java(glob: str) -> str:
    """A glob as a regular expression that Java reads as Python does."""
    match = re.fullmatch(r"\(\?s:(.*)\)\\[zZ]", translate(glob), re.DOTALL)
    return f"(?:{match[1] if match else re.escape(glob)})"


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
