"""Each record once, where several copies of it are in a table: of several brokers, or of a segment's names.

    once(table(spark, "tables", "records"))
    once(spark.read.format("kafka-segment").load(["/backup/broker-1", "/backup/broker-2"])).count()

Strategy: rows of one cluster, topic, partition and offset are one record, of which one row is kept. Rules:
the copy of the latest leader counts, as in Kafka, where a replica drops what its leader doesn't have; then
a live file's before one that is about to go; then the first by broker and file, so that it is always the same
one. A snapshot of the cluster's metadata numbers its records for itself: its rows are left out. Rows without
a topic are compared within their own file only.
"""

from __future__ import annotations

__all__ = ["KEYS", "once", "once_sql"]

from collections.abc import Sequence
from typing import TYPE_CHECKING

from coordwire.errors import CoordwireError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

KEYS = {"records": "log_offset", "batches": "base_offset"}
"""What numbers the rows of a partition, by table."""

STATES = ("live", "remote", "swap", "future", "stray", "cleaned", "deleted")
"""The states of files, the most trusted first."""

_NEEDED = (
    "cluster_id", "topic", "partition", "input_file", "broker_id", "file_state", "partition_leader_epoch",
)  # fmt: skip


def once(frame: DataFrame) -> DataFrame:
    """The rows of a table of records or of batches, each record or batch once.

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
    return frame.sparkSession.sql(once_sql("{frame}", columns, key), frame=frame)


def once_sql(source: str, columns: Sequence[str], key: str) -> str:
    """A query of a table's columns with each record once. source: the table's name; key: its number."""
    names = ", ".join(f"`{name}`" for name in columns)
    ranks = " ".join(f"WHEN '{state}' THEN {rank}" for rank, state in enumerate(STATES))
    return (
        f"SELECT {names} FROM (SELECT *, row_number() OVER ("
        f"PARTITION BY cluster_id, topic, `partition`, if(topic IS NULL, input_file, NULL), `{key}` "
        f"ORDER BY partition_leader_epoch DESC, CASE file_state {ranks} ELSE 0 END, broker_id, input_file"
        f") AS copy_number FROM {source} WHERE file_state IS NULL OR file_state <> 'checkpoint') "
        "WHERE copy_number = 1"
    )
