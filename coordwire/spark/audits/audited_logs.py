"""The common part of audits: which rows are one log, which of them are stale, and which topics are compacted.

Strategy: a log is one replica's copy of one partition: the folder of its files. Rules: files that a broker
has renamed (`.deleted`, `.cleaned`, `.swap`) repeat offsets of others, and snapshots of the cluster's
metadata have offsets of their own: both are left out, by the column `file_state`, or by `input_file` where an
older table has none.
"""

from __future__ import annotations

__all__ = ["LOG", "by_log", "is_compacted"]

import re
from collections.abc import Iterable
from fnmatch import translate
from functools import reduce
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

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
