"""Every offset of a log accounted for: read, a marker, compacted away, unreadable, missing or repeated.

Strategy: the batches of a log in the order of their offsets; where one begins after the end of all before it,
offsets are missing, where it begins earlier, offsets are repeated. Rules: a gap is not a loss where something
explains it: unreadable bytes between the two batches, or compaction (a topic that is named, a topic that
brokers compact, or a log with a trace of it: a batch with fewer records than offsets, or a delete horizon).
A replica that fetched a compacted log has its gaps in any segment, the last one too. A transaction's marker
takes an offset and is a batch of its own; consumers never see it, and it is not a gap. What is before the
first batch is unknown: retention, or DeleteRecords.
"""

from __future__ import annotations

__all__ = ["offset_coverage", "offset_gaps", "repeated_records"]

from collections.abc import Iterable
from typing import TYPE_CHECKING

from coordwire.spark.audits.audited_logs import LOG, by_log, is_compacted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_WHY = {
    "compacted": "compaction removed whole batches: no loss",
    "unreadable": "unreadable bytes lie between the two batches: see the table quarantine",
    "missing": "neither unreadable bytes nor a trace of compaction: lost, unless the topic is compacted",
    "repeated": "batches before it in the log have these offsets too",
}


def offset_gaps(
    batches: DataFrame, *, quarantine: DataFrame | None = None, compacted: Iterable[str] = ()
) -> DataFrame:
    """A row for each range of offsets that is missing or repeated, in order.

    batches: a table of batches. quarantine: the table of that name, by which unreadable bytes are known.
    compacted: names or globs of topics with `cleanup.policy=compact`. Columns: topic, partition, log, kind
    (missing, unreadable, compacted, repeated), first_offset, last_offset, offsets, why; before_file,
    before_end: the file of the batch before and the byte after it; input_file, position: of the batch after.
    """
    from pyspark.sql import functions as f

    causes = f.create_map(*[f.lit(text) for item in _WHY.items() for text in item])
    return (
        _judged(batches, quarantine, compacted)
        .where("kind is not null")
        .select(
            *LOG, "kind", "first_offset", "last_offset",
            (f.col("last_offset") - f.col("first_offset") + 1).alias("offsets"),
            causes[f.col("kind")].alias("why"), "before_file", "before_end", "input_file", "position",
        )
        .orderBy(*LOG, "first_offset", "input_file")
    )  # fmt: skip


def offset_coverage(
    batches: DataFrame, *, quarantine: DataFrame | None = None, compacted: Iterable[str] = ()
) -> DataFrame:
    """A row for each log, in which each of its offsets is accounted for. Arguments as `offset_gaps`.

    Columns: topic, partition, log, first_offset, end_offset (the next one to be written), batches, records,
    markers (control records), compacted (inside of batches too), unreadable, missing, repeated, is_compacted
    (whether compaction is assumed). `end_offset - first_offset = records + markers + compacted + unreadable +
    missing - repeated`. A compressed message set of before Kafka 0.11 does not state its count: all of its
    offsets count as records.
    """
    from pyspark.sql import functions as f

    offsets = f.col("last_offset") - f.col("first_offset") + 1
    covered = f.coalesce(f.col("count").cast("bigint"), f.col("span"))

    def summed(name: str, condition: Column, value: Column) -> Column:
        return f.sum(f.when(condition, value).otherwise(f.lit(0))).alias(name)

    def gaps(kind: str) -> Column:
        return summed(kind, f.col("kind").eqNullSafe(f.lit(kind)), offsets)

    return (
        _judged(batches, quarantine, compacted)
        .groupBy(*LOG)
        .agg(
            f.min("first").alias("first_in_log"),
            (f.max("last") + 1).alias("end_offset"),
            f.count("*").alias("batches"),
            summed("records", ~f.col("is_control"), covered),
            summed("markers", f.col("is_control"), covered),
            f.sum(f.col("span") - covered).alias("inside"),
            *map(gaps, ("compacted", "unreadable", "missing", "repeated")),
            f.max("is_compacted").alias("is_compacted"),
        )
        .select(
            *LOG, f.col("first_in_log").alias("first_offset"), "end_offset", "batches", "records", "markers",
            (f.col("compacted") + f.col("inside")).alias("compacted"), "unreadable", "missing", "repeated",
            "is_compacted",
        )
        .orderBy(*LOG)
    )  # fmt: skip


def _judged(batches: DataFrame, quarantine: DataFrame | None, compacted: Iterable[str]) -> DataFrame:
    """The batches with `kind`, `first_offset` and `last_offset` of what is wrong before each, and `first`,
    `last`, `span` of themselves."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    log = Window.partitionBy(*LOG)
    order = log.orderBy("last_offset", "base_offset", "input_file", "position")
    before = order.rowsBetween(Window.unboundedPreceding, -1)
    rows = by_log(batches).select(
        *LOG, "base_offset", "last_offset", "count", "is_control", "input_file", "position",
        is_compacted(compacted).alias("is_compacted"),
        f.max("last_offset").over(before).alias("end"),
        f.lag("input_file").over(order).alias("before_file"),
        f.lag(f.col("position") + f.col("size")).over(order).alias("before_end"),
    )  # fmt: skip
    # A message set that can't be opened doesn't say where it begins: it is taken for what follows.
    rows = rows.withColumn("first", f.coalesce("base_offset", f.col("end") + 1, "last_offset"))
    rows = rows.withColumn("span", f.col("last_offset") - f.col("first") + 1)
    is_gap = f.col("first") > f.col("end") + 1
    is_repeated = f.col("first") <= f.col("end")
    kind = (
        f.when(is_gap & _unreadable_before(), "unreadable")
        .when(is_gap & f.col("is_compacted"), "compacted")
        .when(is_gap, "missing")
        .when(is_repeated, "repeated")
    )
    rows = _with_unreadable(rows, quarantine).withColumn("kind", kind)
    first = f.when(is_gap, f.col("end") + 1).when(is_repeated, f.col("first"))
    last = f.when(is_gap, f.col("first") - 1).when(is_repeated, f.least("last_offset", "end"))
    return rows.withColumns({"last": f.col("last_offset"), "first_offset": first, "last_offset": last})


_BAD = "array<struct<position:bigint,end_position:bigint>>"


def _with_unreadable(rows: DataFrame, quarantine: DataFrame | None) -> DataFrame:
    """The rows with the unreadable ranges of their file (`bad`), and of the file before (`bad_before`)."""
    from pyspark.sql import functions as f

    if quarantine is None:
        none = f.lit(None).cast(_BAD)
        return rows.withColumns({"bad": none, "bad_before": none})
    ranges = (
        quarantine.where("flow is null")
        .groupBy("input_file")
        .agg(f.collect_list(f.struct("position", "end_position")).alias("bad"))
    )
    ranges_before = ranges.withColumnsRenamed({"input_file": "before_file", "bad": "bad_before"})
    return rows.join(f.broadcast(ranges), "input_file", "left").join(
        f.broadcast(ranges_before), "before_file", "left"
    )


def _unreadable_before() -> Column:
    """Whether unreadable bytes lie between a batch and the one before it."""
    from pyspark.sql import functions as f

    same_file = f.col("input_file") == f.col("before_file")
    in_file = f.exists(
        "bad",
        lambda span: (
            (span["position"] < f.col("position")) & (~same_file | (span["position"] >= f.col("before_end")))
        ),
    )
    in_file_before = f.exists(
        "bad_before", lambda span: ~same_file & (span["position"] >= f.col("before_end"))
    )
    return f.coalesce(in_file, f.lit(False)) | f.coalesce(in_file_before, f.lit(False))


def repeated_records(records: DataFrame) -> DataFrame:
    """Records with the same time, key, value and headers at several offsets of a partition.

    A producer that sends a batch again, without idempotence, leaves those; equal records that were meant do
    too. Columns: topic, partition, time, key, value, headers, times, offsets (in order), producers
    (their ids, where the records have the column). Replicas' copies of one offset count once.
    """
    from pyspark.sql import functions as f

    key_columns = ["topic", "partition", "time", "key", "value", "headers"]
    offsets = f.sort_array(f.collect_set("log_offset"))
    producers = [f.sort_array(f.collect_set("producer_id")).alias("producers")]
    return (
        records.where("not is_control")
        .groupBy(*key_columns)
        .agg(offsets.alias("offsets"), *(producers if "producer_id" in records.columns else []))
        .where("size(offsets) > 1")
        .withColumn("times", f.size("offsets"))
        .orderBy("topic", "partition", f.col("offsets")[0])
    )
