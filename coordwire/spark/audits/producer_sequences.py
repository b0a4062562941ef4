"""The sequence numbers of each producer in each log, and how much it wrote.

Strategy: a producer's batches in the order of their offsets; a batch goes on where the one before it ended,
at 0 after 2^31 - 1, and a new producer epoch begins at 0. Rules: a broker refuses what is out of sequence as
long as it knows the producer, so that a finding says what the log lacks or has twice; the first batch that a
log has of a producer may have any number, since retention took what was before; where compaction removed
batches, a gap is explained by it, as in `continuity`. Markers of transactions have no sequence.
"""

from __future__ import annotations

__all__ = ["producer_sequences", "producer_throughput"]

from collections.abc import Iterable
from typing import TYPE_CHECKING

from coordwire.spark.audits.audited_logs import LOG, by_log, is_compacted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_NUMBERS = 1 << 31
"""Sequence numbers go from 0 to one less than that."""


def producer_sequences(batches: DataFrame, *, compacted: Iterable[str] = ()) -> DataFrame:
    """A row for each batch that does not simply go on where its producer's batch before it ended.

    compacted: as for `offset_gaps`. Columns: topic, partition, log, producer_id, kind, base_offset,
    last_offset, producer_epoch, base_sequence, last_sequence, expected (the sequence that would go on),
    epoch_before (the highest so far), skipped (how many numbers, for a gap), transactional, input_file,
    position.
    kind:

    - `gap`: numbers are missing; `compacted`: the same in a log with traces of compaction
    - `duplicate`: the same numbers as an earlier batch of this epoch
    - `out of order`: numbers from before, but not those of one earlier batch
    - `new epoch`: the producer began a new epoch, with sequence 0: each transaction does (KIP-890), and an
      idempotent producer after an error
    - `gap in new epoch`: it begins with another sequence than 0
    - `old epoch`: an epoch below one before it: a fenced producer whose batch was accepted
    - `wrap`: it goes on at 0 after 2^31 - 1, in this batch or before it; no fault
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    producer = Window.partitionBy(*LOG, "producer_id").orderBy("base_offset", "position")
    in_epoch = Window.partitionBy(*LOG, "producer_id", "producer_epoch").orderBy("base_offset", "position")
    before = (Window.unboundedPreceding, -1)
    numbers = ["producer_id", "producer_epoch", "base_sequence", "last_sequence"]
    sequence_window = Window.partitionBy(*LOG, *numbers).orderBy("base_offset", "position")
    base, epoch = f.col("base_sequence").cast("bigint"), f.col("producer_epoch")
    rows = (
        by_log(batches)
        .withColumn("is_compacted", is_compacted(compacted))
        .where("producer_id >= 0 and base_sequence >= 0 and not is_control")
        .withColumns(
            {
                "epoch_before": f.max(epoch).over(producer.rowsBetween(*before)),
                "step": f.coalesce(_signed(base - f.lag(base).over(in_epoch)), f.lit(0)),
                "seen": f.row_number().over(sequence_window) > 1,
                "length": _modulo(f.col("last_sequence").cast("bigint") - base),
            }
        )
        # A number that goes on beyond 2^31 - 1, so that numbers can be compared.
        .withColumn("number", f.sum("step").over(in_epoch))
        .withColumn("furthest", f.max(f.col("number") + f.col("length")).over(in_epoch.rowsBetween(*before)))
        .withColumn("ahead", f.col("number") - f.col("furthest") - 1)
        .withColumn("expected", _modulo(base - f.col("ahead")))
    )
    ahead = f.col("ahead")
    wraps = f.when((f.col("last_sequence") < base) | (f.col("expected") == 0), "wrap")
    kind = (
        f.when(epoch > f.col("epoch_before"), f.when(base == 0, "new epoch").otherwise("gap in new epoch"))
        .when(epoch < f.col("epoch_before"), "old epoch")
        .when(ahead.isNull() | (ahead == 0), wraps)
        .when(f.col("seen"), "duplicate")
        .when((ahead > 0) & f.col("is_compacted"), "compacted")
        .when(ahead > 0, "gap")
        .otherwise("out of order")
    )
    skipped = f.when(f.col("kind").isin("gap", "compacted"), ahead)
    return (
        rows.withColumn("kind", kind)
        .where("kind is not null")
        .select(
            *LOG, "producer_id", "kind", "base_offset", "last_offset", "producer_epoch", "base_sequence",
            "last_sequence", "expected", "epoch_before", skipped.alias("skipped"), "transactional",
            "input_file",
            "position",
        )
        .orderBy(*LOG, "producer_id", "base_offset")
    )  # fmt: skip


def _modulo(number: Column) -> Column:
    from pyspark.sql import functions as f

    return f.pmod(number, f.lit(_NUMBERS))


def _signed(number: Column) -> Column:
    """The shortest way from one sequence number to another: back, or on beyond 2^31 - 1."""
    return _modulo(number + _NUMBERS // 2) - _NUMBERS // 2


def producer_throughput(batches: DataFrame, *, every: str | None = None) -> DataFrame:
    """How much each producer wrote into each topic, as its batches have it: compressed, headers included.

    every: an interval such as "1 minute", for a row each; by default one row for all time. Columns:
    [begins, ends,] topic, producer_id (null for all that are not idempotent), idempotent, transactional,
    partitions, batches, records, bytes, first_time, last_time, records_per_batch, records_per_second,
    bytes_per_second (of the interval, or between the first and the last batch; null for less than a second).
    Times are the batches' max timestamps. Give it one replica of each partition: copies count again.
    """
    from pyspark.sql import functions as f

    rows = by_log(batches).where("not is_control").withColumn("idempotent", f.col("producer_id") >= 0)
    rows = rows.withColumn("producer_id", f.when(f.col("idempotent"), f.col("producer_id")))
    keys: list[Column | str] = ["topic", "producer_id", "idempotent"]
    began, ended = f.col("first_time"), f.col("last_time")
    if every is not None:
        rows = rows.where("time is not null").withColumn("window", f.window("time", every))
        keys = [f.col("window.start").alias("begins"), f.col("window.end").alias("ends"), *keys]
        began, ended = f.col("begins"), f.col("ends")
    seconds = (f.unix_micros(ended) - f.unix_micros(began)) / 1e6

    def rate(name: str) -> Column:
        return f.when(f.col("seconds") >= 1, f.round(f.col(name) / f.col("seconds"), 3))

    return (
        rows.groupBy(*keys)
        .agg(
            f.max("transactional").alias("transactional"),
            f.count_distinct("partition").alias("partitions"),
            f.count("*").alias("batches"),
            f.sum(f.col("count").cast("bigint")).alias("records"),
            f.sum(f.col("size").cast("bigint")).alias("bytes"),
            f.min("time").alias("first_time"),
            f.max("time").alias("last_time"),
        )
        .withColumn("records_per_batch", f.round(f.col("records") / f.col("batches"), 3))
        .withColumn("seconds", seconds)
        .withColumns({"records_per_second": rate("records"), "bytes_per_second": rate("bytes")})
        .drop("seconds")
        .orderBy(*(["begins"] if every is not None else []), f.desc("bytes"), "topic", "producer_id")
    )
