"""Every table's columns: name, type, meaning.

Strategy: one tuple of `Column` a table; data sources, the pipeline's Parquet files and the documentation all
read them from here. Rules: types are Spark's in DDL, of those in `_ARROW`; every column is nullable, as Spark
makes them anyway; times are UTC, in microseconds, with the exact number beside them where there is more.
"""

from __future__ import annotations

__all__ = [
    "ARROW_NAMES",
    "PARTITIONS",
    "TABLES",
    "Column",
    "arrow_schema",
    "ddl",
    "default_columns",
    "select_tables",
    "table_schema",
]

from collections.abc import Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from coordwire.errors import CoordwireError

if TYPE_CHECKING:
    import pyarrow


class Column(NamedTuple):
    """name, type (Spark's DDL), meaning; on_request: only there when `.schema()` names it."""

    name: str
    type: str
    meaning: str
    on_request: bool = False


HEADERS = "array<struct<key:string,value:binary>>"

_PLACE = (
    Column(
        "topic",
        "string",
        "From the folder's name, TOPIC-PARTITION, or as remote storage has it; null where it says nothing.",
    ),
    Column("partition", "int", "The same."),
)
_FILE = Column("input_file", "string", "The file.")
_CAPTURE = Column("input_file", "string", "The capture; of several files that were joined, the first.")
_BROKER = (
    Column(
        "broker_id",
        "string",
        "The broker whose file it is: node.id of meta.properties in its log folder; without one, the log "
        "folder's path. Null in remote storage, and where there is no log folder.",
    ),
    Column("cluster_id", "string", "The cluster's id, of meta.properties; null if unknown."),
    Column(
        "file_state",
        "string",
        "What its name says: live; deleted, cleaned or swap by the file's suffix; deleted, future or stray "
        "by the folder's; checkpoint (a snapshot of the cluster's metadata, with offsets of its own); "
        "remote; null for a name of another form.",
    ),
)
_PRODUCER = (
    Column("producer_id", "bigint", "Of its batch; -1 for none."),
    Column("producer_epoch", "smallint", "-1 for none."),
)
_LEADER = Column("partition_leader_epoch", "int", "The epoch of the leader that appended it; -1 for none.")

RECORDS = (
    *_PLACE,
    Column("log_offset", "bigint", "The record's offset."),
    Column("time", "timestamp", "Its timestamp; null for none, or if out of range for microseconds."),
    Column("key", "binary", "Null if it has none."),
    Column("value", "binary", "Null for a tombstone."),
    Column("headers", HEADERS, "In order; keys may repeat."),
    Column("is_control", "boolean", "Whether it is a transaction marker or another control record."),
    _FILE,
    *_BROKER,
    *_PRODUCER,
    Column("sequence", "int", "Its own sequence number; -1 for none."),
    _LEADER,
    Column("transactional", "boolean", "Whether it is part of a transaction."),
    Column("codec", "string", "That of its batch: none, gzip, snappy, lz4 or zstd."),
    Column("key_size", "int", "Bytes of the key; null if it has none."),
    Column("value_size", "int", "Bytes of the value; null for a tombstone."),
    Column("timestamp_ms", "bigint", "Milliseconds since 1970; -1 for none.", True),
    Column("batch_position", "bigint", "The byte in the file at which its batch begins.", True),
    Column("batch_size", "int", "Bytes of its batch, header included.", True),
    Column("magic", "tinyint", "The format of its batch: 0, 1 or 2.", True),
    Column("base_sequence", "int", "The sequence number of its batch's first record; -1 for none.", True),
    Column("timestamp_type", "string", "CreateTime, LogAppendTime or NoTimestampType.", True),
)

BATCHES = (
    *_PLACE,
    Column("base_offset", "bigint", "The first record's offset."),
    Column("last_offset", "bigint", "The last record's offset."),
    Column("position", "bigint", "The byte in the file at which it begins."),
    Column("size", "int", "Bytes, header included."),
    Column(
        "uncompressed_size",
        "bigint",
        "Bytes without compression, header included; null where only headers are read.",
    ),
    Column("magic", "tinyint", "0, 1 or 2."),
    Column("codec", "string", "none, gzip, snappy, lz4 or zstd."),
    Column("timestamp_type", "string", "CreateTime, LogAppendTime or NoTimestampType."),
    Column("max_timestamp_ms", "bigint", "Milliseconds since 1970; -1 for none."),
    Column("time", "timestamp", "The max timestamp as a time; null for none."),
    Column("checksum", "bigint", "CRC-32C (magic 2) or CRC-32, as stated; see `checksums`."),
    _LEADER,
    *_PRODUCER,
    Column("base_sequence", "int", "-1 for none."),
    Column("last_sequence", "int", "-1 for none."),
    Column("transactional", "boolean", "Whether it is part of a transaction."),
    Column("is_control", "boolean", "Whether its records are control records."),
    Column(
        "delete_horizon_ms",
        "bigint",
        "When compaction may drop its tombstones; null if not set.",
    ),
    Column("count", "int", "Its header's record count; null for a compressed message set."),
    _FILE,
    *_BROKER,
)

_CONNECTION = (
    Column(
        "client_address",
        "string",
        "The connection's client, 'host:port'; null where the input has no connections.",
    ),
    Column("broker_address", "string", "The connection's other side, 'host:port'."),
)

FRAMES = (
    _CAPTURE,
    Column("frame", "bigint", "Its number in the capture, from 1, in the order of last bytes."),
    Column("flow", "string", "Direction and connection, 'client:port > broker:port'."),
    *_CONNECTION,
    Column("time", "timestamp", "Of its last byte; null where the capture has no times."),
    Column("time_ns", "bigint", "The same in nanoseconds since 1970."),
    Column("direction", "string", "request or response."),
    Column("api_key", "int", "Null for a response without a captured request."),
    Column("api", "string", "The api key's name; null if unknown."),
    Column("api_version", "int", "The request's."),
    Column("body_version", "int", "The body's own, where it is another."),
    Column("correlation_id", "int", "Pairs request and response."),
    Column("client_id", "string", "The client id of the request, also for its response."),
    Column("size", "int", "Its bytes, without the size prefix."),
    Column("latency_ms", "double", "From the request's last byte to the response's."),
    Column(
        "throttle_time_ms",
        "int",
        "How long the broker has the client wait for a quota, by the response; null where it has no such "
        "field.",
    ),
    Column("dialect", "string", "The dialect: kafka, or the name of another."),
    Column("token", "boolean", "Whether it is a bare SASL token, without a header."),
    Column(
        "error_code",
        "int",
        "The response's own error code, or the first nested one that is not 0 where that is 0; 0 for none. "
        "Null for requests, and for responses that have no error codes, were refused, or are withheld.",
    ),
    Column("error_name", "string", "Kafka's name for it; NONE for 0."),
    Column("error_reason", "string", "Why it was refused; null if it wasn't."),
    Column("error_position", "bigint", "The refusal's position, in bytes after the size prefix."),
    Column("error_path", "string", "The refused field, as a path."),
    Column("body", "string", "The message in Kafka's JSON form, as far as it was decoded."),
    Column("header_tags", "string", "Unknown tagged fields of the header, JSON."),
    Column(
        "raw",
        "binary",
        "Its bytes, if it was refused, deviates, or would be written otherwise; null if withheld.",
    ),
    Column("redacted", "array<string>", "Paths of withheld fields; showSecrets includes them."),
    Column("deviations", "string", "Deviations from the protocol that were tolerated, JSON."),
)

ERRORS = (
    _CAPTURE,
    Column("frame", "bigint", "The response's number in the capture."),
    Column("time", "timestamp", "Of its last byte; null where the capture has no times."),
    Column("api", "string", "The api key's name."),
    Column("api_version", "int", "The request's."),
    Column("client_id", "string", "The client id of the request."),
    *_CONNECTION,
    Column("error_path", "string", "The field that holds the error code."),
    Column("error_code", "int", "Not 0."),
    Column("error_name", "string", "Kafka's name for it."),
    Column("error_message", "string", "The broker's words for it; null for none."),
    Column("topic", "string", "The topic that it is about, if the response names one."),
    Column("partition", "int", "The partition that it is about."),
    Column("group_id", "string", "The group that it is about, by the response or the request."),
)

OFFSETS = (
    Column("log", "string", "consumer_offsets, transaction_state or share_group_state."),
    Column("log_partition", "int", "The log's partition, from the folder's name."),
    Column("log_offset", "bigint", "The record's offset in the log."),
    Column("time", "timestamp", "The record's own time."),
    Column("type", "int", "The record type."),
    Column("version", "int", "The value's version; null for a tombstone."),
    Column("kind", "string", "The type by name (OffsetCommit, GroupMetadata, …); null if unknown."),
    Column("group_id", "string", "The group it is about."),
    Column("topic", "string", "The topic whose offset it is."),
    Column("partition", "int", "The partition whose offset it is."),
    Column("committed_offset", "bigint", "The committed offset."),
    Column("leader_epoch", "int", "Of the committed offset; -1 or null for none."),
    Column("metadata", "string", "The committer's note."),
    Column("commit_time", "timestamp", "When it was committed."),
    Column("tombstone", "boolean", "Whether it is a tombstone, which removes its key's value."),
    Column("producer_id", "bigint", "Of the transaction that it is part of; null outside of one."),
    Column("marker", "string", "commit or abort, where it ends a transaction; else null."),
    Column("key", "string", "The key in Kafka's JSON form."),
    Column("value", "string", "The value in Kafka's JSON form."),
    Column("unknown", "string", "Why key or value was left as bytes."),
    Column("error_reason", "string", "Why key or value was refused."),
    Column("raw_key", "binary", "The key's bytes, where it couldn't be read."),
    Column("raw_value", "binary", "The value's bytes, where it couldn't be read."),
    _FILE,
    *_BROKER,
)

_FRAME = Column("frame", "bigint", "The frame in the capture that shows it; null for a log.")
_SOURCE = (
    Column("input_file", "string", "The capture or segment where it was seen."),
    Column("seen_in", "string", "What that is: capture or log, which may both have one event."),
)
_SEEN = (
    *_SOURCE,
    _FRAME,
    Column("log_offset", "bigint", "The record in the log that shows it; null for a capture."),
)

OFFSET_COMMITS = (
    Column(
        "time",
        "timestamp",
        "When it was seen, or written; of a commit in a transaction, in a log, when that was committed.",
    ),
    Column("group_id", "string", "The group."),
    Column("topic", "string", "Of the partition that is committed."),
    Column("partition", "int", "Its number."),
    Column("committed_offset", "bigint", "The next offset to read; -1 where it was removed."),
    Column("leader_epoch", "int", "Of the last record consumed; -1 for none."),
    Column("metadata", "string", "The committer's note."),
    Column("generation", "int", "The group's, or the member's epoch; -1 outside of a membership."),
    Column("member_id", "string", "The member that committed, if known."),
    Column("client_id", "string", "Its client id."),
    Column("error_code", "int", "0 for stored."),
    Column(
        "transactional_id",
        "string",
        "In captures the producer in whose transaction it was, which may still be aborted; null for none. In "
        "logs null for all, as they have producer ids only, and no row for what was aborted.",
    ),
    Column("removed", "boolean", "Whether the offset was removed (a tombstone in the log)."),
    *_SOURCE,
    _FRAME,
    Column(
        "log_offset",
        "bigint",
        "The record in the log that shows it, of a commit in a transaction the marker that committed it; "
        "null for a capture.",
    ),
)

GROUPS = (
    Column("time", "timestamp", "When it happened."),
    Column(
        "event",
        "string",
        "As in the JSON of timelines: memberJoined, rebalanceEnded, … but for commits and lag.",
    ),
    Column("group_id", "string", "The group."),
    Column("kind", "string", "classic, consumer, share, streams, draft or zookeeper."),
    Column("generation", "int", "The new generation, or group epoch."),
    Column("generation_before", "int", "The one before it."),
    Column("cause", "string", "Of a rebalance, as in the JSON of timelines: new_member, session_timeout, …"),
    Column("inferred", "boolean", "Whether it was not seen itself, but follows from other frames."),
    Column("detail", "string", "The evidence for the cause."),
    Column(
        "outcome",
        "string",
        "Of a rebalance: steady, superseded, not_needed, empty or unfinished; of a member that left without "
        "a request, how its connections ended: closed, closed_by_broker, reset or open.",
    ),
    Column(
        "began",
        "timestamp",
        "Of a rebalance, the time of its first sign; of a broker, since when it is away.",
    ),
    Column(
        "ended",
        "timestamp",
        "The time when the last member seen had its assignment; until when a broker is away.",
    ),
    Column("length_ms", "double", "Between the two."),
    Column("members", "array<string>", "All members of the new generation that were seen."),
    Column("leader", "string", "Its leader."),
    Column("protocol", "string", "The assignor chosen."),
    Column("moved", "int", "Partitions that changed their owner."),
    Column("last_to_join", "string", "The member that the others waited for."),
    Column("member_id", "string", "The member that the event is about, or that caused it."),
    Column("client_id", "string", "That member's client id."),
    Column("host", "string", "That member's address."),
    Column("instance_id", "string", "A static member's group instance id."),
    Column("topics", "array<string>", "The topics that it subscribes to."),
    Column(
        "how", "string", "How it left: left, left_for_now, session_timeout, removed, fenced or not_rejoined."
    ),
    Column("reason", "string", "The reason that the member gave; null for none."),
    Column("api", "string", "Of an error or an unanswered request."),
    Column("error_code", "int", "Of an error or a transaction's step."),
    Column("broker_id", "string", "The coordinator."),
    Column("broker_address", "string", "Its 'host:port'; that of a broker that is away."),
    Column("transactional_id", "string", "The transaction's; empty in a log, which has producer ids only."),
    Column("step", "string", "Its step: init, add_partitions, add_offsets, commit or abort."),
    Column("producer_id", "bigint", "Of the transaction."),
    *_SEEN,
)

LAG = (
    Column(
        "time",
        "timestamp",
        "When it was measured: in a capture the frame's time, on disk the later one of the commit and the "
        "last batch.",
    ),
    Column("group_id", "string", "The group."),
    Column("topic", "string", "The partition's topic."),
    Column("partition", "int", "Its number."),
    Column(
        "committed_offset",
        "bigint",
        "The offset last committed, or returned by the coordinator; no row where it was removed, or is -1.",
    ),
    Column(
        "end_offset",
        "bigint",
        "The partition's end: the latest high watermark seen, on disk the offset after the last record of "
        "any copy; null where no copy is among the files.",
    ),
    Column(
        "lag",
        "bigint",
        "end_offset less committed_offset; below 0 where what is committed is beyond the end; null with "
        "end_offset.",
    ),
    Column(
        "reason",
        "string",
        "Why lag is below 0: committed_beyond_end, or end_seen_earlier where a capture has the end only from "
        "before the commit; else null.",
    ),
    *_SEEN,
)

TRAFFIC = (
    Column("time", "timestamp", "The beginning of the minute; null where the capture has no times."),
    Column("client_id", "string", "The client id of the requests."),
    *_CONNECTION,
    Column(
        "client_software_name",
        "string",
        "The client's name for itself, in ApiVersions from version 3 on; null if the capture lacks it.",
    ),
    Column("client_software_version", "string", "Its version, from the same request."),
    Column("api_key", "int", "Null for responses without a captured request."),
    Column("api", "string", "The api key's name; null if unknown."),
    Column(
        "topic",
        "string",
        "Null for whole frames; for their parts the topic of Produce, Fetch or ShareFetch, by its name, or "
        "by its id where the capture lacks that.",
    ),
    Column("partition", "int", "The partition of that topic."),
    Column(
        "requests",
        "bigint",
        "Without a topic the requests in this minute, each once; with a topic those of them that produce to "
        "the partition, or were answered with its records or an error.",
    ),
    Column("responses", "bigint", "Without a topic all responses, with one those about the partition."),
    Column("records", "bigint", "Records of the partition, produced or fetched; null without a topic."),
    Column(
        "bytes",
        "bigint",
        "Without a topic those of the frames, without size prefixes; with one those of the partition's "
        "record batches, as they were sent.",
    ),
    Column("errors", "bigint", "Responses with an error code other than 0, with a topic for its partition."),
    Column("latency_p50_ms", "double", "The least latency that half of the responses do not exceed."),
    Column("latency_p95_ms", "double", "The same for 95 % of them."),
    Column("latency_p99_ms", "double", "The same for 99 % of them."),
    Column("latency_max_ms", "double", "The longest latency."),
    _CAPTURE,
)

QUARANTINE = (
    _FILE,
    Column("flow", "string", "The stream that the positions are in; null for the file itself."),
    Column("position", "bigint", "That of the first unreadable byte."),
    Column("end_position", "bigint", "The position after the last byte."),
    Column("reason", "string", "Why."),
    Column("time", "timestamp", "The time of the bytes, in a capture."),
    Column("bytes", "binary", "The bytes themselves, at most 64 KB; of a capture only with showSecrets."),
)

FILES = (
    _FILE,
    Column("kind", "string", "segment, capture, index (of a segment) or other."),
    *_PLACE,
    *_BROKER,
    Column("size", "bigint", "Bytes."),
    Column("modified", "timestamp", "The time of its last change."),
    Column("rows", "bigint", "Batches of a segment, frames of a capture."),
    Column("read_bytes", "bigint", "Bytes in those rows."),
    Column("quarantined_bytes", "bigint", "Bytes in quarantine (of a capture: of its streams)."),
    Column(
        "other_bytes",
        "bigint",
        "Packet headers, other protocols; all bytes of a file that isn't read.",
    ),
    Column("joined_to", "string", "For further files of a rotated capture: the first, which has the counts."),
)

ARROW_NAMES = {"log_offset": "offset", "time": "timestamp"}
"""What `coordwire.records.arrow` calls columns of records that have other names in the tables."""

TABLES: dict[str, tuple[Column, ...]] = {
    "files": FILES,
    "batches": BATCHES,
    "records": RECORDS,
    "frames": FRAMES,
    "errors": ERRORS,
    "offset_commits": OFFSET_COMMITS,
    "groups": GROUPS,
    "lag": LAG,
    "traffic": TRAFFIC,
    "quarantine": QUARANTINE,
}
"""The pipeline's tables."""

PARTITIONS: dict[str, tuple[str | None, str | None]] = {
    "batches": ("time", "topic"),
    "records": ("time", "topic"),
    "frames": ("time", None),
    "errors": ("time", None),
    "offset_commits": ("time", "topic"),
    "groups": ("time", None),
    "lag": ("time", "topic"),
    "traffic": ("time", None),
}
"""The columns that a table's folders are made of: date=YYYY-MM-DD (UTC) of one, topic-T of the
other, whose column stays in the files (see `storage.names`)."""


def default_columns(columns: Sequence[Column]) -> tuple[Column, ...]:
    """The columns that a reader gives without a schema."""
    return tuple(column for column in columns if not column.on_request)


def ddl(columns: Sequence[Column]) -> str:
    """The columns as a schema in Spark's DDL."""
    return ", ".join(f"`{column.name}` {column.type}" for column in columns)


def arrow_schema(columns: Sequence[Column]) -> pyarrow.Schema:
    """The columns as an Arrow schema, with the types that Spark gives them."""
    import pyarrow

    types = _arrow_types()
    return pyarrow.schema([pyarrow.field(column.name, types[column.type]) for column in columns])


@cache
def _arrow_types() -> dict[str, pyarrow.DataType]:
    import pyarrow as pa

    pair = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])
    return {
        "string": pa.string(),
        "binary": pa.binary(),
        "boolean": pa.bool_(),
        "tinyint": pa.int8(),
        "smallint": pa.int16(),
        "int": pa.int32(),
        "bigint": pa.int64(),
        "double": pa.float64(),
        "date": pa.date32(),
        "timestamp": pa.timestamp("us", tz="UTC"),
        "array<string>": pa.list_(pa.field("element", pa.string())),
        HEADERS: pa.list_(pa.field("element", pair)),
    }


def select_tables(names: Iterable[str] | None) -> tuple[str, ...]:
    """The tables to write: the named ones, or all. Raises `CoordwireError` for an unknown one."""
    selected = tuple(TABLES) if names is None else tuple(names)
    unknown = [name for name in selected if name not in TABLES]
    if unknown:
        raise CoordwireError(f"no such table: {', '.join(unknown)}; there are {', '.join(TABLES)}")
    return selected


def table_schema(name: str) -> list[Column]:
    """A table's columns, those of its files before those of its folders."""
    columns = list(TABLES[name])
    if name in PARTITIONS:
        columns.append(Column("date", "date", "Of its time, UTC; from the folder's name."))
    return columns
