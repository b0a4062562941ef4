"""Audits of logs: batches or records in, findings out, as DataFrames of Spark or as relations of DuckDB.

    from coordwire.tables import audits
    batches = coordwire.spark.table(spark, "tables", "batches")
    batches = duckdb.read_parquet("tables/batches/**/*.parquet")
    audits.offset_gaps(batches, compacted=["*-changelog"]).show()
    audits.offset_coverage(batches).show()                  # a row a log; its numbers add up

Strategy: one text of each query for both engines (`engine_sql`), so that nothing leaves them. A log is one
replica's copy of one partition: the folder of its files. Rules: an audit reads the columns that it names and
passes over others; a window looks back and never ahead, which would take Spark time for each pair of rows; a
finding says where it is (file, position, offsets) and what explains it; what a log cannot prove is not
claimed. Files that a broker has renamed (`.deleted`, `.cleaned`, `.swap`) repeat offsets of others, and
snapshots of the cluster's metadata have offsets of their own: both are left out, by the column `file_state`,
or by `input_file` where an older table has none.

- Offsets: a gap is not a loss where something explains it: unreadable bytes between the two batches, or
  compaction (a topic that is named, a topic that brokers compact, or a log with a trace of it: a batch with
  fewer records than offsets, or a delete horizon). A replica that fetched a compacted log has its gaps in any
  segment, the last one too. A transaction's marker takes an offset and is a batch of its own; consumers never
  see it, and it is not a gap. What is before the first batch is unknown: retention, or DeleteRecords.
- Consumers at read_committed: a transactional record's outcome is the next marker of its producer in the log.
  Aborted records are left out, and so are those whose transaction was open when the log ended; records of
  others after them stay (a consumer would wait there). A tombstone removes its key, whatever compaction has
  done so far; records without a key, which a compacted topic can't have, are left out.
- Sequences: a producer's batch goes on where the one before it ended, at 0 after 2^31 - 1, and a new epoch
  begins at 0. A broker refuses what is out of sequence as long as it knows the producer. The first batch that
  a log has of a producer may have any number, since retention took what was before; where compaction removed
  batches, a gap is explained by it. Markers of transactions have no sequence.
- Replicas: batches are matched by topic, partition and base offset, so that segments may end elsewhere. A
  follower writes what it fetched as it is: the same batch has the same size, leader epoch and checksum, and a
  checksum covers all other bytes but the base offset. A log that ends earlier is shorter or truncated, one
  that begins later has a shorter retention: neither is a difference in content; compaction runs on each
  replica by itself, so that compacted topics differ without a fault.
"""

from __future__ import annotations

__all__ = [
    "KEYS", "batch_bytes", "committed", "compare_replicas", "latest_by_key", "leader_epochs",
    "offset_coverage", "offset_gaps", "once", "once_sql", "producer_sequences", "producer_throughput",
    "repeated_records", "replica_divergence",
]  # fmt: skip

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from coordwire.errors import CoordwireError
from coordwire.tables.engine_sql import Frame, is_spark, names_of, pattern_of, run_query

if TYPE_CHECKING:
    from pyspark.sql import Row

COMPACTED = ("__consumer_offsets", "__transaction_state", "__share_group_state")
"""Topics that brokers always compact."""

_STALE = "[.](deleted|cleaned|swap|checkpoint)$|(-delete|-future|-stray)/[^/]*$"
"""Paths of files that a broker is about to remove or to put into place."""

_LOG = "topic, partition, log"
"""What divides rows into logs."""

_PLACES = "topic NULLS FIRST, partition NULLS FIRST"
"""The order of partitions. Files outside of a partition's folder have null, of which engines differ."""

_BEFORE = "ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING"


def _by_log(rows: Frame) -> Frame:
    """The rows of live files, with the column `log`: the folder that they are in."""
    log, is_live = "regexp_replace(input_file, '/[^/]*$', '')", f"NOT regexp_like(input_file, '{_STALE}')"
    if "file_state" in rows.columns:
        # Remote segments lie in a folder each: their partition is their log.
        log = f"IF(file_state = 'remote', 'remote', {log})"
        is_live = "coalesce(file_state, 'live') IN ('live', 'remote')"
    return run_query(f"SELECT *, {log} AS log FROM {{rows}} WHERE {is_live}", rows=rows)


def _with_compacted(batches: Frame, compacted: Iterable[str]) -> Frame:
    """The batches of each log, with whether it is taken for compacted: by its topic, or by a trace.

    compacted: names or globs of topics.
    """
    named = f"coalesce(regexp_like(topic, '{pattern_of((*COMPACTED, *compacted))}'), false)"
    trace = "delete_horizon_ms IS NOT NULL OR coalesce(`count` < last_offset - base_offset + 1, false)"
    return run_query(
        f"SELECT *, bool_or({named} OR {trace}) OVER (PARTITION BY {_LOG}) AS is_compacted FROM {{live}}",
        live=_by_log(batches),
    )


# --- offsets ---


_CAUSES = {
    "compacted": "compaction removed whole batches: no loss",
    "unreadable": "unreadable bytes lie between the two batches: see the table quarantine",
    "missing": "neither unreadable bytes nor a trace of compaction: lost, unless the topic is compacted",
    "repeated": "batches before it in the log have these offsets too",
}


def offset_gaps(batches: Frame, *, quarantine: Frame | None = None, compacted: Iterable[str] = ()) -> Frame:
    """A row for each range of offsets that is missing or repeated, in order.

    batches: a table of batches. quarantine: the table of that name, by which unreadable bytes are known.
    compacted: names or globs of topics with `cleanup.policy=compact`. Columns: topic, partition, log, kind
    (missing, unreadable, compacted, repeated), first_offset, last_offset, offsets, why; before_file,
    before_end: the file of the batch before and the byte after it; input_file, position: of the batch after.
    """
    causes = " ".join(f"WHEN '{kind}' THEN '{cause}'" for kind, cause in _CAUSES.items())
    return run_query(
        f"""
        SELECT {_LOG}, kind, first_offset, last_offset, last_offset - first_offset + 1 AS offsets,
            CASE kind {causes} END AS why, before_file, before_end, input_file, position
        FROM {{judged}} WHERE kind IS NOT NULL
        ORDER BY {_PLACES}, log, first_offset, input_file
        """,
        judged=_judged(batches, quarantine, compacted),
    )


def offset_coverage(
    batches: Frame, *, quarantine: Frame | None = None, compacted: Iterable[str] = ()
) -> Frame:
    """A row for each log, in which each of its offsets is accounted for. Arguments as `offset_gaps`.

    Columns: topic, partition, log, first_offset, end_offset (the next one to be written), batches, records,
    markers (control records), compacted (inside of batches too), unreadable, missing, repeated, is_compacted
    (whether compaction is assumed). `end_offset - first_offset = records + markers + compacted + unreadable +
    missing - repeated`. A compressed message set of before Kafka 0.11 does not state its count: all of its
    offsets count as records.
    """
    span, covered = "last - first + 1", "coalesce(`count`, last - first + 1)"
    gaps = {kind: f"sum(IF(kind = '{kind}', last_offset - first_offset + 1, 0))" for kind in _CAUSES}
    number = "CAST({} AS BIGINT)".format
    return run_query(
        f"""
        SELECT {_LOG}, min(first) AS first_offset, max(last) + 1 AS end_offset, count(*) AS batches,
            {number(f"sum(IF(is_control, 0, {covered}))")} AS records,
            {number(f"sum(IF(is_control, {covered}, 0))")} AS markers,
            {number(f"{gaps['compacted']} + sum({span} - {covered})")} AS compacted,
            {number(gaps["unreadable"])} AS unreadable, {number(gaps["missing"])} AS missing,
            {number(gaps["repeated"])} AS repeated, bool_or(is_compacted) AS is_compacted
        FROM {{judged}} GROUP BY {_LOG} ORDER BY {_PLACES}, log
        """,
        judged=_judged(batches, quarantine, compacted),
    )


def _judged(batches: Frame, quarantine: Frame | None, compacted: Iterable[str]) -> Frame:
    """The batches with `kind`, `first_offset` and `last_offset` of what is wrong before each, and `first` and
    `last`, the offsets of themselves."""
    order = f"PARTITION BY {_LOG} ORDER BY last_offset, base_offset NULLS FIRST, input_file, position"
    live = _with_compacted(batches, compacted)
    unread = "SELECT '' AS place_file, 0 AS place WHERE false"
    if quarantine is not None:
        unread = "SELECT input_file AS place_file, position AS place FROM {quarantine} WHERE flow IS NULL"
    # A message set that can't be opened doesn't say where it begins: it is taken for what follows.
    return run_query(
        f"""
        WITH unread AS ({unread}),
        placed AS (
            SELECT *, coalesce(base_offset, reached + 1, last_offset) AS first FROM (
                SELECT {_LOG}, base_offset, last_offset, `count`, is_control, input_file, position,
                    is_compacted, max(last_offset) OVER ({order} {_BEFORE}) AS reached,
                    lag(input_file) OVER ({order}) AS before_file,
                    lag(position + size) OVER ({order}) AS before_end
                FROM {{live}}
            )
        ),
        explained AS (
            SELECT *, EXISTS (SELECT 1 FROM unread WHERE place_file = input_file AND place < position
                    AND (input_file <> before_file OR place >= before_end))
                OR EXISTS (SELECT 1 FROM unread WHERE place_file = before_file AND input_file <> before_file
                    AND place >= before_end) AS is_unreadable
            FROM placed
        )
        SELECT {_LOG}, `count`, is_control, input_file, position, is_compacted, before_file, before_end,
            CASE WHEN first <= reached THEN 'repeated' WHEN first = reached + 1 OR reached IS NULL THEN NULL
                WHEN is_unreadable THEN 'unreadable' WHEN is_compacted THEN 'compacted' ELSE 'missing'
            END AS kind, first, last_offset AS last,
            CASE WHEN first > reached + 1 THEN reached + 1 WHEN first <= reached THEN first
            END AS first_offset,
            CASE WHEN first > reached + 1 THEN first - 1
                WHEN first <= reached THEN least(last_offset, reached) END AS last_offset
        FROM explained
        """,
        live=live, **({} if quarantine is None else {"quarantine": quarantine}),
    )  # fmt: skip


def repeated_records(records: Frame) -> Frame:
    """Records with the same time, key, value and headers at several offsets of a partition.

    A producer that sends a batch again, without idempotence, leaves those; equal records that were meant do
    too. Columns: topic, partition, time, key, value, headers, times, offsets (in order), producers
    (their ids, where the records have the column). Replicas' copies of one offset count once.
    """
    key = "topic, partition, time, key, value, headers"
    with_producers = "producer_id" in records.columns
    ids = "array_agg(DISTINCT producer_id) FILTER (WHERE producer_id IS NOT NULL)"
    producers = f"coalesce(array_sort({ids}), array()) AS producers, " if with_producers else ""
    return run_query(
        f"""
        SELECT {key}, offsets, {"producers, " if with_producers else ""}times FROM (
            SELECT {key}, array_sort(array_agg(DISTINCT log_offset)) AS offsets, {producers}
                CAST(count(DISTINCT log_offset) AS INT) AS times, min(log_offset) AS first_offset
            FROM {{records}} WHERE NOT is_control GROUP BY {key}
        ) WHERE times > 1 ORDER BY {_PLACES}, first_offset
        """,
        records=records,
    )


# --- what consumers see ---


def committed(records: Frame) -> Frame:
    """The records without markers, without aborted ones and those of open transactions; same columns.

    records: with the columns input_file, producer_id and transactional. Raises `CoordwireError` where one is
    missing.
    """
    missing = {"input_file", "producer_id", "transactional"} - set(records.columns)
    if missing:
        raise CoordwireError(
            f"the records have no column {', '.join(sorted(missing))}: ask for it by "
            ".schema() where they are read"
        )
    # A marker's key has its type after two bytes of version: 0 is an abort, 1 a commit. The next marker is
    # that of the least offset; twice the offset, and one more for a commit, says both.
    kind = "substring(hex(key), 5, 4)"
    marker = (
        f"IF(is_control AND producer_id >= 0 AND {kind} IN ('0000', '0001'), "
        f"log_offset * 2 + IF({kind} = '0001', 1, 0), NULL)"
    )
    return run_query(
        f"""
        SELECT {names_of(records.columns)} FROM (
            SELECT *, min({marker}) OVER (PARTITION BY {_LOG}, producer_id ORDER BY log_offset DESC {_BEFORE})
                AS outcome
            FROM {{rows}}
        ) WHERE NOT is_control AND (NOT transactional OR outcome % 2 = 1)
        """,
        rows=_by_log(records),
    )


def latest_by_key(records: Frame, *, tombstones: bool = False) -> Frame:
    """The state of topics: the last committed record of each key in each partition, in the order of offsets.

    records: as for `committed`. tombstones: whether removed keys are there too, with a null value.
    """
    return run_query(
        f"""
        SELECT {names_of(records.columns)} FROM (
            SELECT *, row_number() OVER (PARTITION BY topic, partition, key ORDER BY log_offset DESC) AS nth
            FROM {{rows}} WHERE key IS NOT NULL
        ) WHERE nth = 1 AND ({tombstones} OR value IS NOT NULL) ORDER BY {_PLACES}, log_offset
        """,
        rows=committed(records),
    )


# --- producers ---


_NUMBERS = 1 << 31
"""Sequence numbers go from 0 to one less than that."""


def _modulo(number: str) -> str:
    return f"((({number}) % {_NUMBERS} + {_NUMBERS}) % {_NUMBERS})"


def producer_sequences(batches: Frame, *, compacted: Iterable[str] = ()) -> Frame:
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
    half, order = _NUMBERS // 2, "ORDER BY base_offset, position"
    epoch = f"{_LOG}, producer_id, producer_epoch"
    to_here = f"CAST(base_sequence AS BIGINT) - lag(base_sequence) OVER (PARTITION BY {epoch} {order})"
    # `step` is the shortest way from one number to the next: back, or on beyond 2^31 - 1; their sum goes on
    # beyond it, so that numbers can be compared.
    return run_query(
        f"""
        WITH stepped AS (
            SELECT *, CAST(base_sequence AS BIGINT) AS base,
                max(producer_epoch) OVER (PARTITION BY {_LOG}, producer_id {order} {_BEFORE}) AS epoch_before,
                row_number() OVER (PARTITION BY {epoch}, base_sequence, last_sequence {order}) > 1 AS seen,
                {_modulo("CAST(last_sequence AS BIGINT) - base_sequence")} AS length,
                coalesce({_modulo(f"{to_here} + {half}")} - {half}, 0) AS step
            FROM {{live}} WHERE producer_id >= 0 AND base_sequence >= 0 AND NOT is_control
        ),
        numbered AS (SELECT *, sum(step) OVER (PARTITION BY {epoch} {order}) AS number FROM stepped),
        compared AS (
            SELECT *, number - 1 - max(number + length) OVER (PARTITION BY {epoch} {order} {_BEFORE}) AS ahead
            FROM numbered
        ),
        judged AS (
            SELECT *, CAST({_modulo("base - ahead")} AS BIGINT) AS expected, CASE
                WHEN producer_epoch > epoch_before THEN IF(base = 0, 'new epoch', 'gap in new epoch')
                WHEN producer_epoch < epoch_before THEN 'old epoch'
                WHEN ahead IS NULL OR ahead = 0
                    THEN IF(last_sequence < base OR {_modulo("base - ahead")} = 0, 'wrap', NULL)
                WHEN seen THEN 'duplicate'
                WHEN ahead > 0 THEN IF(is_compacted, 'compacted', 'gap')
                ELSE 'out of order' END AS kind
            FROM compared
        )
        SELECT {_LOG}, producer_id, kind, base_offset, last_offset, producer_epoch, base_sequence,
            last_sequence, expected, epoch_before,
            CAST(IF(kind IN ('gap', 'compacted'), ahead, NULL) AS BIGINT) AS skipped, transactional,
            input_file, position
        FROM judged WHERE kind IS NOT NULL ORDER BY {_PLACES}, log, producer_id, base_offset
        """,
        live=_with_compacted(batches, compacted),
    )


def producer_throughput(batches: Frame, *, every: str | None = None) -> Frame:
    """How much each producer wrote into each topic, as its batches have it: compressed, headers included.

    every: an interval such as "1 minute", for a row each; by default one row for all time. Raises
    `CoordwireError` for what can't be one. Columns:
    [begins, ends,] topic, producer_id (null for all that are not idempotent), idempotent, transactional,
    partitions, batches, records, bytes, first_time, last_time, records_per_batch, records_per_second,
    bytes_per_second (of the interval, or between the first and the last batch; null for less than a second).
    Times are the batches' max timestamps. Give it one replica of each partition: copies count again.
    """
    rows, interval, began, ended = _by_log(batches), "", "first_time", "last_time"
    if every is not None:
        if not re.fullmatch(r"[\w. ]+", every, re.ASCII):
            raise CoordwireError(f'expected an interval such as "1 minute", got {every!r}')
        span = f"window(time, '{every}').start AS begins, window(time, '{every}').end AS ends"
        if not is_spark(rows):
            # As in Spark a day has 24 hours, whatever the session's time zone.
            begins = f"time_bucket(INTERVAL '{every}', timezone('UTC', time), TIMESTAMP '1970-01-01')"
            ends = f"{begins} + INTERVAL '{every}'"
            span = f"timezone('UTC', {begins}) AS begins, timezone('UTC', {ends}) AS ends"
        rows = run_query(f"SELECT *, {span} FROM {{rows}} WHERE time IS NOT NULL", rows=rows)
        interval, began, ended = "begins, ends, ", "begins", "ends"
    return run_query(
        f"""
        SELECT {interval}topic, producer_id, idempotent, transactional, partitions, batches, records, bytes,
            first_time, last_time, round(records / batches, 3) AS records_per_batch,
            IF(seconds >= 1, round(records / seconds, 3), NULL) AS records_per_second,
            IF(seconds >= 1, round(bytes / seconds, 3), NULL) AS bytes_per_second
        FROM (
            SELECT *, (unix_micros({ended}) - unix_micros({began})) / 1e6 AS seconds FROM (
                SELECT {interval}topic, IF(producer_id >= 0, producer_id, NULL) AS producer_id,
                    producer_id >= 0 AS idempotent, bool_or(transactional) AS transactional,
                    count(DISTINCT partition) AS partitions, count(*) AS batches,
                    CAST(sum(`count`) AS BIGINT) AS records, CAST(sum(size) AS BIGINT) AS bytes,
                    min(time) AS first_time, max(time) AS last_time
                FROM {{rows}} WHERE NOT is_control
                GROUP BY {interval}topic, IF(producer_id >= 0, producer_id, NULL), producer_id >= 0
            )
        ) ORDER BY {"begins, " if every is not None else ""}bytes DESC, topic NULLS FIRST,
            producer_id NULLS FIRST
        """,
        rows=rows,
    )


# --- replicas ---


_COMPARED = (
    "last_offset", "size", "checksum", "partition_leader_epoch", "count", "producer_id", "producer_epoch",
    "base_sequence", "max_timestamp_ms", "codec", "is_control", "transactional", "delete_horizon_ms",
)  # fmt: skip
_SHOWN = ("last_offset", "input_file", "position", "size", "partition_leader_epoch", "checksum")
_SIDES = ("left", "right")


def compare_replicas(left: Frame, right: Frame) -> Frame:
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
    sides = ", ".join(
        f"{side}_side AS (SELECT topic, partition, base_offset, true AS has_{side}, "
        + ", ".join(f"`{name}` AS {side}_{name}" for name in dict.fromkeys((*_COMPARED, *_SHOWN)))
        + f" FROM {{{side}_rows}} WHERE base_offset IS NOT NULL)"
        for side in _SIDES
    )
    fields = ", ".join(f"IF(left_{name} IS DISTINCT FROM right_{name}, '{name}', NULL)" for name in _COMPARED)
    partition = "PARTITION BY topic, partition"
    order = f"{partition} ORDER BY base_offset"
    # Of each side its first and last offset, the end of all that begins before, and the next beginning.
    surroundings = ", ".join(
        f"""
        min(IF(has_{side}, base_offset, NULL)) OVER ({partition}) AS {side}_first,
        max({side}_last_offset) OVER ({partition}) AS {side}_last,
        max({side}_last_offset) OVER ({order} {_BEFORE}) AS {side}_before,
        min(IF(has_{side}, base_offset, NULL)) OVER ({order} DESC {_BEFORE}) AS {side}_after"""
        for side in _SIDES
    )
    alone = " ".join(
        f"""
        WHEN has_{side} THEN CASE
            WHEN {opposite}_first IS NULL THEN 'no log'
            WHEN {opposite}_before >= base_offset OR {opposite}_after <= {side}_last_offset
                THEN 'cut differently'
            WHEN base_offset > {opposite}_last THEN 'shorter'
            WHEN {side}_last_offset < {opposite}_first THEN 'before'
            ELSE 'missing' END"""
        for side, opposite in (_SIDES, _SIDES[::-1])
    )
    shown = ", ".join(f"{side}_{name}" for side in _SIDES for name in _SHOWN)
    return run_query(
        f"""
        WITH {sides},
        joined AS (
            SELECT *, IF(has_left AND has_right, concat_ws(' ', {fields}), NULL) AS fields
            FROM left_side FULL JOIN right_side USING (topic, partition, base_offset)
        ),
        surrounded AS (SELECT *, {surroundings} FROM joined),
        judged AS (
            SELECT *, CASE WHEN fields IS NOT NULL THEN IF(fields <> '', 'differs', NULL) {alone}
                END AS kind,
                CASE WHEN fields IS NOT NULL THEN 'both' WHEN has_left THEN 'left' ELSE 'right' END AS side
            FROM surrounded
        )
        SELECT topic, partition, base_offset, kind, side, split(fields, ' ') AS fields, {shown}
        FROM judged WHERE kind IS NOT NULL ORDER BY {_PLACES}, base_offset
        """,
        left_rows=_by_log(left), right_rows=_by_log(right),
    )  # fmt: skip


def replica_divergence(left: Frame, right: Frame) -> Frame:
    """A row for each partition: whether the replicas agree, and the first offset at which they don't.

    Columns: topic, partition; verdict: `equal`, `diverged` (content differs, or is missing in the midst), or
    `shorter` (one ends earlier, and what both have is equal), by the names of the sides: `left is shorter`,
    `right is shorter`; `no log` where one has nothing; first_offset and first_kind: of the first difference
    in content; left_epoch, right_epoch: leader epochs there; differing (batches), left_first, left_end,
    right_first, right_end: offsets, ends exclusive.
    """
    ends = ", ".join(
        f"""
        {side}_side AS (
            SELECT topic, partition, min(base_offset) AS {side}_first, max(last_offset) + 1 AS {side}_end
            FROM {{{side}_rows}} GROUP BY topic, partition
        )"""
        for side in _SIDES
    )
    return run_query(
        f"""
        WITH {ends},
        differences AS (
            SELECT *, count(*) OVER (PARTITION BY topic, partition) AS number,
                row_number() OVER (PARTITION BY topic, partition ORDER BY base_offset) AS nth
            FROM {{differences}} WHERE kind IN ('differs', 'cut differently', 'missing')
        )
        SELECT topic, partition, CASE
                WHEN left_end IS NULL OR right_end IS NULL THEN 'no log'
                WHEN number > 0 THEN 'diverged'
                WHEN left_end < right_end THEN 'left is shorter'
                WHEN left_end > right_end THEN 'right is shorter'
                ELSE 'equal' END AS verdict,
            base_offset AS first_offset, kind AS first_kind, left_partition_leader_epoch AS left_epoch,
            right_partition_leader_epoch AS right_epoch, coalesce(number, 0) AS differing, left_first,
            left_end, right_first, right_end
        FROM left_side FULL JOIN right_side USING (topic, partition)
        LEFT JOIN (SELECT * FROM differences WHERE nth = 1) AS found USING (topic, partition)
        ORDER BY {_PLACES}
        """,
        left_rows=_by_log(left), right_rows=_by_log(right), differences=compare_replicas(left, right),
    )  # fmt: skip


def leader_epochs(batches: Frame) -> Frame:
    """The leader epochs of each log: topic, partition, log, epoch, first_offset, end_offset, batches.

    Two replicas that part have the same epochs up to the one in which they do. An epoch after a higher one
    (`falls` is true) is what a broker never appends.
    """
    return run_query(
        f"""
        SELECT {_LOG}, epoch, min(base_offset) AS first_offset, max(last_offset) + 1 AS end_offset,
            count(*) AS batches, bool_or(coalesce(epoch < highest, false)) AS falls
        FROM (
            SELECT *, partition_leader_epoch AS epoch, max(partition_leader_epoch) OVER (
                PARTITION BY {_LOG} ORDER BY last_offset {_BEFORE}) AS highest
            FROM {{rows}}
        ) GROUP BY {_LOG}, epoch ORDER BY {_PLACES}, log, first_offset
        """,
        rows=_by_log(batches),
    )


class DifferingBytes(NamedTuple):
    """left, right: the bytes of a batch on either side. first: the position in the batch of the first byte
    that differs, None for none; differing: how many do, those that one side alone has included."""

    left: bytes
    right: bytes
    first: int | None
    differing: int


def batch_bytes(row: Row | Mapping[str, Any]) -> DifferingBytes:
    """The bytes that a row of `compare_replicas` is about, from the files; none for a side without it."""
    from coordwire.tables.readers.files import open_bytes

    sides = []
    for side in _SIDES:
        path, position, size = (row[f"{side}_{name}"] for name in ("input_file", "position", "size"))
        sides.append(b"" if path is None else bytes(open_bytes(path)[position : position + size]))
    shorter, longer = sorted(map(len, sides))
    differ = [at for at, pair in enumerate(zip(*sides, strict=False)) if pair[0] != pair[1]]
    first = differ[0] if differ else shorter if longer > shorter else None
    return DifferingBytes(sides[0], sides[1], first, len(differ) + longer - shorter)


# --- copies of one record ---


KEYS = {"records": "log_offset", "batches": "base_offset"}
"""What numbers the rows of a partition, by table."""

STATES = ("live", "remote", "swap", "future", "stray", "cleaned", "deleted")
"""The states of files, the most trusted first."""

_NEEDED = (
    "cluster_id", "topic", "partition", "input_file", "broker_id", "file_state", "partition_leader_epoch",
)  # fmt: skip


def once(frame: Frame) -> Frame:
    """The rows of a table of records or of batches, each record or batch once.

    The copy of the latest leader counts, as in Kafka, where a replica drops what its leader doesn't have;
    then a live file's before one that is about to go; then the first by broker and file, so that it is always
    the same one. A snapshot of the cluster's metadata numbers its records for itself: its rows are left out.
    Rows without a topic are compared within their own file only.

    frame: with all columns that the key and the choice need. Raises `CoordwireError` if it lacks one.
    """
    columns = frame.columns
    key = next((key for key in KEYS.values() if key in columns), None)
    missing = [name for name in _NEEDED if name not in columns]
    if key is None or missing:
        raise CoordwireError(
            f"each record once needs the columns {', '.join(_NEEDED)} and log_offset or base_offset; "
            f"{', '.join(missing or ['log_offset'])} is missing"
        )
    return run_query(once_sql("{frame}", columns, key), frame=frame)


def once_sql(source: str, columns: Sequence[str], key: str) -> str:
    """A query of a table's columns with each record once. source: the table's name; key: its number."""
    ranks = " ".join(f"WHEN '{state}' THEN {rank}" for rank, state in enumerate(STATES))
    return (
        f"SELECT {names_of(columns)} FROM (SELECT *, row_number() OVER ("
        f"PARTITION BY cluster_id, topic, `partition`, if(topic IS NULL, input_file, NULL), `{key}` "
        f"ORDER BY partition_leader_epoch DESC, CASE file_state {ranks} ELSE 0 END, "
        "broker_id NULLS FIRST, input_file"
        f") AS copy_number FROM {source} WHERE file_state IS NULL OR file_state <> 'checkpoint') "
        "WHERE copy_number = 1"
    )
