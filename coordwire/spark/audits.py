"""The audits of `coordwire.tables.audits`, which take DataFrames of Spark as well as relations of DuckDB.

from coordwire.spark import audits, table
audits.offset_gaps(table(spark, "tables", "batches"), compacted=["*-changelog"]).show()
"""

from __future__ import annotations

from coordwire.tables.audits import (
    batch_bytes,
    committed,
    compare_replicas,
    latest_by_key,
    leader_epochs,
    offset_coverage,
    offset_gaps,
    producer_sequences,
    producer_throughput,
    repeated_records,
    replica_divergence,
)

__all__ = [
    "batch_bytes", "committed", "compare_replicas", "latest_by_key", "leader_epochs", "offset_coverage",
    "offset_gaps", "producer_sequences", "producer_throughput", "repeated_records", "replica_divergence",
]  # fmt: skip
