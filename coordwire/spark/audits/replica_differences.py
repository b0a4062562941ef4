"""Two replicas of a partition, batch by batch: where they part, and how.

Strategy: batches are matched by topic, partition and base offset, so that segments may end elsewhere. A
follower writes what it fetched as it is: the same batch has the same size, leader epoch and checksum, and a
checksum covers all other bytes but the base offset. Rules: a log that ends earlier is shorter or truncated,
one that begins later has a shorter retention: neither is a difference in content; compaction runs on each
replica by itself, so that compacted topics differ without a fault.
"""

from __future__ import annotations

__all__ = ["batch_bytes", "compare_replicas", "leader_epochs", "replica_divergence"]

from typing import TYPE_CHECKING, NamedTuple

from coordwire.spark.audits.audited_logs import LOG, by_log

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Row

_COMPARED = (
    "last_offset", "size", "checksum", "partition_leader_epoch", "count", "producer_id", "producer_epoch",
    "base_sequence", "max_timestamp_ms", "codec", "is_control", "transactional", "delete_horizon_ms",
)  # fmt: skip
_SHOWN = ("last_offset", "input_file", "position", "size", "partition_leader_epoch", "checksum")


def compare_replicas(left: DataFrame, right: DataFrame) -> DataFrame:
    """A row for each batch that the two replicas don't have alike, in order.

    left, right: batches of the two, such as one table's for two values of `broker_id`. Each partition is to
    be there once on either side. Columns: topic, partition, base_offset; kind: `differs` (the same base
    offset, other bytes), `cut differently` (the other side has some of the offsets in batches that begin
    elsewhere), `missing` (the other side has none of them, but earlier and later ones), `shorter` (the other
    side ends before), `before` (the other side begins later), `no log` (the other side has nothing of the
    partition); side: which one has the batch, `both` for those that differ; fields: which columns differ; and
    for both sides left_… and right_… of last_offset, input_file, position, size, partition_leader_epoch and
    checksum.
    """
    from pyspark.sql import functions as f

    first_side, second_side = _side(left, "left"), _side(right, "right")
    place = ["topic", "partition", "base_offset"]
    joined = first_side.join(second_side, place, "full")
    fields = f.array_compact(
        f.array(
            *(
                f.when(~f.col(f"left_{name}").eqNullSafe(f.col(f"right_{name}")), f.lit(name))
                for name in _COMPARED
            )
        )
    )
    joined = joined.withColumn("fields", f.when(_has_batch("left") & _has_batch("right"), fields))
    joined = _with_surroundings(joined)
    kind = (
        f.when(f.col("fields").isNotNull(), f.when(f.size("fields") > 0, "differs"))
        .when(_has_batch("left"), _alone("left", "right"))
        .otherwise(_alone("right", "left"))
    )
    side = f.when(f.col("fields").isNotNull(), "both").when(_has_batch("left"), "left").otherwise("right")
    return (
        joined.withColumns({"kind": kind, "side": side})
        .where("kind is not null")
        .select(*place, "kind", "side", "fields", *(f"{s}_{n}" for s in ("left", "right") for n in _SHOWN))
        .orderBy(*place)
    )


def _side(batches: DataFrame, side: str) -> DataFrame:
    from pyspark.sql import functions as f

    columns = dict.fromkeys([*_COMPARED, *_SHOWN])
    rows = by_log(batches).where("base_offset is not null")
    return rows.select(
        "topic", "partition", "base_offset", *(f.col(name).alias(f"{side}_{name}") for name in columns)
    )


def _has_batch(side: str) -> Column:
    from pyspark.sql import functions as f

    return f.col(f"{side}_input_file").isNotNull()


def _with_surroundings(joined: DataFrame) -> DataFrame:
    """With what each side has around a batch: its first and last offset, the end of all that begins before
    (`SIDE_before`), and the next beginning (`SIDE_after`)."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    partition = Window.partitionBy("topic", "partition")
    order = partition.orderBy("base_offset")
    surroundings: dict[str, Column] = {}
    for side in ("left", "right"):
        begins = f.when(_has_batch(side), f.col("base_offset"))
        last = f.col(f"{side}_last_offset")
        before, after = (
            order.rowsBetween(Window.unboundedPreceding, -1),
            order.rowsBetween(1, Window.unboundedFollowing),
        )
        surroundings[f"{side}_first"] = f.min(begins).over(partition)
        surroundings[f"{side}_last"] = f.max(last).over(partition)
        surroundings[f"{side}_before"] = f.max(last).over(before)
        surroundings[f"{side}_after"] = f.min(begins).over(after)
    return joined.withColumns(surroundings)


def _alone(side: str, opposite: str) -> Column:
    """The kind of a batch that only one side has."""
    from pyspark.sql import functions as f

    last = f.col(f"{side}_last_offset")
    overlaps = (f.col(f"{opposite}_before") >= f.col("base_offset")) | (f.col(f"{opposite}_after") <= last)
    return (
        f.when(f.col(f"{opposite}_first").isNull(), "no log")
        .when(overlaps, "cut differently")
        .when(f.col("base_offset") > f.col(f"{opposite}_last"), "shorter")
        .when(last < f.col(f"{opposite}_first"), "before")
        .otherwise("missing")
    )


def replica_divergence(left: DataFrame, right: DataFrame) -> DataFrame:
    """A row for each partition: whether the replicas agree, and the first offset at which they don't.

    Columns: topic, partition; verdict: `equal`, `diverged` (content differs, or is missing in the midst), or
    `shorter` (one ends earlier, and what both have is equal), by the names of the sides: `left is shorter`,
    `right is shorter`; `no log` where one has nothing; first_offset and first_kind: of the first difference
    in content; left_epoch, right_epoch: leader epochs there; differing (batches), left_first, left_end,
    right_first, right_end: offsets, ends exclusive.
    """
    from pyspark.sql import functions as f

    content = f.col("kind").isin("differs", "cut differently", "missing")
    first = f.min_by(
        f.struct("base_offset", "kind", "left_partition_leader_epoch", "right_partition_leader_epoch"),
        f.when(content, f.col("base_offset")),
    )
    differences = (
        compare_replicas(left, right)
        .groupBy("topic", "partition")
        .agg(first.alias("at"), f.count_if(content).alias("differing"))
    )
    ends = _ends(left, "left").join(_ends(right, "right"), ["topic", "partition"], "full")
    differing = f.coalesce(f.col("differing"), f.lit(0))
    verdict = (
        f.when(f.col("left_end").isNull() | f.col("right_end").isNull(), "no log")
        .when(differing > 0, "diverged")
        .when(f.col("left_end") < f.col("right_end"), "left is shorter")
        .when(f.col("left_end") > f.col("right_end"), "right is shorter")
        .otherwise("equal")
    )
    at = f.when(differing > 0, f.col("at"))
    return (
        ends.join(differences, ["topic", "partition"], "left")
        .select(
            "topic", "partition", verdict.alias("verdict"),
            at["base_offset"].alias("first_offset"), at["kind"].alias("first_kind"),
            at["left_partition_leader_epoch"].alias("left_epoch"),
            at["right_partition_leader_epoch"].alias("right_epoch"),
            differing.alias("differing"), "left_first", "left_end", "right_first", "right_end",
        )
        .orderBy("topic", "partition")
    )  # fmt: skip


def _ends(batches: DataFrame, side: str) -> DataFrame:
    from pyspark.sql import functions as f

    return (
        by_log(batches)
        .groupBy("topic", "partition")
        .agg(f.min("base_offset").alias(f"{side}_first"), (f.max("last_offset") + 1).alias(f"{side}_end"))
    )


def leader_epochs(batches: DataFrame) -> DataFrame:
    """The leader epochs of each log: topic, partition, log, epoch, first_offset, end_offset, batches.

    Two replicas that part have the same epochs up to the one in which they do. An epoch after a higher one
    (`falls` is true) is what a broker never appends.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    log = Window.partitionBy(*LOG).orderBy("last_offset")
    epoch = f.col("partition_leader_epoch")
    highest = f.max(epoch).over(log.rowsBetween(Window.unboundedPreceding, -1))
    return (
        by_log(batches)
        .withColumn("falls", f.coalesce(epoch < highest, f.lit(False)))
        .groupBy(*LOG, epoch.alias("epoch"))
        .agg(
            f.min("base_offset").alias("first_offset"),
            (f.max("last_offset") + 1).alias("end_offset"),
            f.count("*").alias("batches"),
            f.max("falls").alias("falls"),
        )
        .orderBy(*LOG, "first_offset")
    )


class DifferingBytes(NamedTuple):
    """left, right: the bytes of a batch on either side. first: the position in the batch of the first byte
    that differs, None for none; differing: how many do, those that one side alone has included."""

    left: bytes
    right: bytes
    first: int | None
    differing: int


def batch_bytes(row: Row) -> DifferingBytes:
    """The bytes that a row of `compare_replicas` is about, from the files; none for a side without it."""
    from coordwire.tables.readers.files import open_bytes

    sides = []
    for side in ("left", "right"):
        path, position, size = (row[f"{side}_{name}"] for name in ("input_file", "position", "size"))
        sides.append(b"" if path is None else bytes(open_bytes(path)[position : position + size]))
    left, right = sides
    differ = [
        at
        for at, (left_byte, right_byte) in enumerate(zip(left, right, strict=False))
        if left_byte != right_byte
    ]
    shorter, longer = sorted(map(len, sides))
    first = differ[0] if differ else shorter if longer > shorter else None
    return DifferingBytes(left, right, first, len(differ) + longer - shorter)
