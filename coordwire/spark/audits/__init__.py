"""Audits of logs: DataFrames of batches or records in, DataFrames of findings out.

    from coordwire.spark import audits, table
    batches = table(spark, "tables", "batches")    # or spark.read.format("kafka-segment-batches")
    audits.offset_gaps(batches, compacted=["*-changelog"]).show()
    audits.offset_coverage(batches).show()                  # a row a log; its numbers add up

    audited_logs.py         what all of them share: which rows are one replica's log, which are stale; what
                            consumers at read_committed see, and the latest record of each key
    continuity.py           offsets that are missing, repeated, compacted or unreadable; records sent twice
    replica_differences.py  two replicas batch by batch, and where they part; leader epochs
    producer_sequences.py   the sequence numbers of each producer, and how much each wrote

Strategy: Spark's own expressions and windows, so that nothing leaves the JVM; each log is sorted once. Rules:
an audit reads the columns that it names and passes over others; a finding says where it is (file, position,
offsets) and what explains it; what a log cannot prove is not claimed.
"""

from coordwire.spark.audits.audited_logs import committed, latest_by_key
from coordwire.spark.audits.continuity import offset_coverage, offset_gaps, repeated_records
from coordwire.spark.audits.producer_sequences import producer_sequences, producer_throughput
from coordwire.spark.audits.replica_differences import (
    batch_bytes,
    compare_replicas,
    leader_epochs,
    replica_divergence,
)

__all__ = [
    "batch_bytes", "committed", "compare_replicas", "latest_by_key", "leader_epochs", "offset_coverage",
    "offset_gaps", "producer_sequences", "producer_throughput", "repeated_records", "replica_divergence",
]  # fmt: skip
