"""Every table's columns: name, type, meaning.

Strategy: one text a table, whose lines become `Column`s; data sources, the pipeline's Parquet files and the
documentation all read them from here. Rules: types are Spark's in DDL; every column is nullable, as Spark
makes them anyway; times are UTC, in microseconds, with the exact number beside them where there is more.
"""

from __future__ import annotations

__all__ = [
    "ARROW_NAMES",
    "PARTITIONS",
    "ROWS_FORMAT",
    "TABLES",
    "Column",
    "arrow_schema",
    "arrow_type",
    "ddl",
    "default_columns",
    "select_tables",
    "table_schema",
]

import re
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING, NamedTuple

from coordwire.errors import CoordwireError

if TYPE_CHECKING:
    import pyarrow


ROWS_FORMAT = "0.1.0.2"
"""The version of the rows that the pipeline writes: the first release of this package that made them so. With
another one all inputs are read again, so that it changes with the columns, their meaning and what readers
make of the same bytes, and with nothing else (`tests/tables/test_rows_format.py`)."""


class Column(NamedTuple):
    """name, type (Spark's DDL), meaning; on_request: only there when `.schema()` names it."""

    name: str
    type: str
    meaning: str
    on_request: bool = False


HEADERS = "array<struct<key:string,value:binary>>"


def _columns(text: str) -> tuple[Column, ...]:
    """The columns that a text has, each on a line: name (with * if on request), type, meaning; indented lines
    go on with the meaning."""
    columns = []
    for line in re.split(r"\n(?! )", text.strip()):
        name, kind, meaning = line.split(maxsplit=2)
        columns.append(Column(name.removesuffix("*"), kind, " ".join(meaning.split()), name.endswith("*")))
    return tuple(columns)


# --- columns that several tables have ---

_PLACE = """\
topic     string From the folder's name, TOPIC-PARTITION, or as remote storage has it; null where it says
    nothing.
partition int    The same."""

_FILE = """\
input_file string The file."""

_CAPTURE = """\
input_file string The capture; of several files that were joined, the first."""

_BROKER = """\
broker_id  string The broker whose file it is: node.id of meta.properties in its log folder; without one, the
    log folder's path. Null in remote storage, and where there is no log folder.
cluster_id string The cluster's id, of meta.properties; null if unknown.
file_state string What its name says: live; deleted, cleaned or swap by the file's suffix; deleted, future or
    stray by the folder's; checkpoint (a snapshot of the cluster's metadata, with offsets of its own); remote;
    null for a name of another form."""

_PRODUCER = """\
producer_id    bigint   Of its batch; -1 for none.
producer_epoch smallint -1 for none."""

_LEADER = """\
partition_leader_epoch int The epoch of the leader that appended it; -1 for none."""

_CONNECTION = """\
client_address string The connection's client, 'host:port'; null where the input has no connections.
broker_address string The connection's other side, 'host:port'."""

_FRAME = """\
frame  bigint The frame in the capture that shows it; null for a log.
packet bigint The packet with that frame's last byte, as Wireshark counts; null where there are no packets."""

_SOURCE = """\
input_file string The capture or segment where it was seen.
seen_in    string What that is: capture or log, which may both have one event."""

_SEEN = f"""\
{_SOURCE}
{_FRAME}
log_offset bigint The record in the log that shows it; null for a capture."""

_CLUSTER = """\
cluster_id string Of a capture that shows several clusters, the one that the group is of: its id, or the
    address of a broker where it has none; null for one cluster."""

# --- the tables ---

RECORDS = _columns(f"""
{_PLACE}
log_offset      bigint    The record's offset.
time            timestamp Its timestamp; null for none, or if out of range for microseconds.
key             binary    Null if it has none.
value           binary    Null for a tombstone.
headers         {HEADERS} In order; keys may repeat.
is_control      boolean   Whether it is a transaction marker or another control record.
{_FILE}
{_BROKER}
{_PRODUCER}
sequence        int       Its own sequence number; -1 for none.
{_LEADER}
transactional   boolean   Whether it is part of a transaction.
codec           string    That of its batch: none, gzip, snappy, lz4 or zstd.
key_size        int       Bytes of the key; null if it has none.
value_size      int       Bytes of the value; null for a tombstone.
timestamp_ms*   bigint    Milliseconds since 1970; -1 for none.
batch_position* bigint    The byte in the file at which its batch begins.
batch_size*     int       Bytes of its batch, header included.
magic*          tinyint   The format of its batch: 0, 1 or 2.
base_sequence*  int       The sequence number of its batch's first record; -1 for none.
timestamp_type* string    CreateTime, LogAppendTime or NoTimestampType.
""")

BATCHES = _columns(f"""
{_PLACE}
base_offset       bigint    The first record's offset.
last_offset       bigint    The last record's offset.
position          bigint    The byte in the file at which it begins.
size              int       Bytes, header included.
uncompressed_size bigint    Bytes without compression, header included; null where only headers are read.
magic             tinyint   0, 1 or 2.
codec             string    none, gzip, snappy, lz4 or zstd.
timestamp_type    string    CreateTime, LogAppendTime or NoTimestampType.
max_timestamp_ms  bigint    Milliseconds since 1970; -1 for none.
time              timestamp The max timestamp as a time; null for none.
checksum          bigint    CRC-32C (magic 2) or CRC-32, as stated; see `checksums`.
{_LEADER}
{_PRODUCER}
base_sequence     int       -1 for none.
last_sequence     int       -1 for none.
transactional     boolean   Whether it is part of a transaction.
is_control        boolean   Whether its records are control records.
delete_horizon_ms bigint    When compaction may drop its tombstones; null if not set.
count             int       Its header's record count; null for a compressed message set.
{_FILE}
{_BROKER}
""")

FRAMES = _columns(f"""
{_CAPTURE}
frame            bigint        Its number in the capture, from 1, in the order of last bytes.
flow             string        Direction and connection, 'client:port > broker:port'.
{_CONNECTION}
time             timestamp     Of its last byte; null where the capture has no times.
time_ns          bigint        The same in nanoseconds since 1970.
direction        string        request or response.
api_key          int           Null for a response without a captured request.
api              string        The api key's name; null if unknown.
api_version      int           The request's.
body_version     int           The body's own, where it is another.
correlation_id   int           Pairs request and response.
client_id        string        The client id of the request, also for its response.
size             int           Its bytes, without the size prefix.
latency_ms       double        From the request's last byte to the response's.
throttle_time_ms int           How long the broker has the client wait for a quota, by the response; null
    where it has no such field.
dialect          string        The dialect: kafka, or the name of another.
token            boolean       Whether it is a bare SASL token, without a header.
error_code       int           The response's own error code, or the first nested one that is not 0 where that
    is 0; 0 for none. Null for requests, and for responses that have no error codes, were refused, or are
    withheld.
error_name       string        Kafka's name for it; NONE for 0.
error_reason     string        Why it was refused; null if it wasn't.
error_position   bigint        The refusal's position, in bytes after the size prefix.
error_path       string        The refused field, as a path.
body             string        The message in Kafka's JSON form, as far as it was decoded.
header_tags      string        Unknown tagged fields of the header, JSON.
raw              binary        Its bytes, if it was refused, deviates, or would be written otherwise; null if
    withheld.
redacted         array<string> Paths of withheld fields; showSecrets includes them.
deviations       string        Deviations from the protocol that were tolerated, JSON.
""")

ERRORS = _columns(f"""
{_CAPTURE}
frame         bigint    The response's number in the capture.
time          timestamp Of its last byte; null where the capture has no times.
api           string    The api key's name.
api_version   int       The request's.
client_id     string    The client id of the request.
{_CONNECTION}
error_path    string    The field that holds the error code.
error_code    int       Not 0.
error_name    string    Kafka's name for it.
error_message string    The broker's words for it; null for none.
topic         string    The topic that it is about, if the response names one.
partition     int       The partition that it is about.
group_id      string    The group that it is about, by the response or the request.
""")

OFFSETS = _columns(f"""
log              string    consumer_offsets, transaction_state or share_group_state.
log_partition    int       The log's partition, from the folder's name.
log_offset       bigint    The record's offset in the log.
time             timestamp The record's own time.
type             int       The record type.
version          int       The value's version; null for a tombstone.
kind             string    The type by name (OffsetCommit, GroupMetadata, …); null if unknown.
group_id         string    The group it is about.
topic            string    The topic whose offset it is.
partition        int       The partition whose offset it is.
committed_offset bigint    The committed offset.
leader_epoch     int       Of the committed offset; -1 or null for none.
metadata         string    The committer's note.
commit_time      timestamp When it was committed.
tombstone        boolean   Whether it is a tombstone, which removes its key's value.
producer_id      bigint    Of the transaction that it is part of; null outside of one.
marker           string    commit or abort, where it ends a transaction; else null.
key              string    The key in Kafka's JSON form.
value            string    The value in Kafka's JSON form.
unknown          string    Why key or value was left as bytes.
error_reason     string    Why key or value was refused.
raw_key          binary    The key's bytes, where it couldn't be read.
raw_value        binary    The value's bytes, where it couldn't be read.
{_FILE}
{_BROKER}
""")

OFFSET_COMMITS = _columns(f"""
time             timestamp When it was seen, or written; of a commit in a transaction, in a log, when that was
    committed.
group_id         string    The group.
topic            string    Of the partition that is committed.
partition        int       Its number.
committed_offset bigint    The next offset to read; -1 where it was removed.
leader_epoch     int       Of the last record consumed; -1 for none.
metadata         string    The committer's note.
generation       int       The group's, or the member's epoch; -1 outside of a membership.
member_id        string    The member that committed, if known.
client_id        string    Its client id.
error_code       int       0 for stored.
transactional_id string    In captures the producer in whose transaction it was, which may still be aborted;
    null for none. In logs null for all, as they have producer ids only, and no row for what was aborted.
removed          boolean   Whether the offset was removed (a tombstone in the log).
{_SOURCE}
{_FRAME}
log_offset       bigint    The record in the log that shows it, of a commit in a transaction the marker that
    committed it; null for a capture.
{_CLUSTER}
""")

GROUPS = _columns(f"""
time              timestamp     When it happened.
event             string        As in the JSON of timelines: memberJoined (memberFound where it has `wasIn`),
    rebalanceEnded, … but for commits and lag.
group_id          string        The group.
kind              string        classic, consumer, share, streams, draft or zookeeper.
generation        int           The new generation, or group epoch.
generation_before int           The one before it.
cause             string        Of a rebalance, as in the JSON of timelines: new_member, session_timeout, …
inferred          boolean       Whether it was not seen itself, but follows from other frames.
detail            string        The evidence for the cause.
outcome           string        Of a rebalance: steady, superseded, not_needed, empty or unfinished; of a
    member that left without a request, how its connections ended: closed, closed_by_broker, reset or open.
began             timestamp     Of a rebalance, the time of its first sign; of a broker, since when it is
    away.
ended             timestamp     The time when the last member seen had its assignment; until when a broker is
    away.
length_ms         double        Between the two.
members           array<string> All members of the new generation that were seen.
leader            string        Its leader.
protocol          string        The assignor chosen.
moved             int           Partitions that changed their owner.
last_to_join      string        The member that the others waited for.
member_id         string        The member that the event is about, or that caused it.
client_id         string        That member's client id.
host              string        That member's address.
instance_id       string        A static member's group instance id.
topics            array<string> The topics that it subscribes to.
how               string        How it left: left, left_for_now, session_timeout, removed, fenced or
    not_rejoined.
reason            string        The reason that the member gave; null for none.
api               string        Of an error or an unanswered request.
error_code        int           Of an error or a transaction's step.
broker_id         string        The coordinator.
broker_address    string        Its 'host:port'; that of a broker that is away.
transactional_id  string        The transaction's; empty in a log, which has producer ids only.
step              string        Its step: init, add_partitions, add_offsets, commit or abort.
producer_id       bigint        Of the transaction.
body              string        The whole event, as a line of the JSON of timelines.
{_SEEN}
{_CLUSTER}
""")

LAG = _columns(f"""
time             timestamp When it was measured: in a capture the frame's time, on disk the later one of the
    commit and the last batch.
group_id         string    The group.
topic            string    The partition's topic.
partition        int       Its number.
committed_offset bigint    The offset last committed, or returned by the coordinator; no row where it was
    removed, or is -1.
end_offset       bigint    The partition's end: the latest high watermark seen, on disk the offset after the
    last record of any copy; null where no copy is among the files.
lag              bigint    end_offset less committed_offset; below 0 where what is committed is beyond the
    end; null with end_offset.
reason           string    Why lag is below 0: committed_beyond_end, or end_seen_earlier where a capture has
    the end only from before the commit; else null.
{_SEEN}
{_CLUSTER}
""")

TRAFFIC = _columns(f"""
time                    timestamp The beginning of the minute; null where the capture has no times.
client_id               string    The client id of the requests.
{_CONNECTION}
client_software_name    string    The client's name for itself, in ApiVersions from version 3 on; null if the
    capture lacks it.
client_software_version string    Its version, from the same request.
api_key                 int       Null for responses without a captured request.
api                     string    The api key's name; null if unknown.
topic                   string    Null for whole frames; for their parts the topic of Produce, Fetch or
    ShareFetch, by its name, or by its id where the capture lacks that.
partition               int       The partition of that topic.
requests                bigint    Without a topic the requests in this minute, each once; with a topic those
    of them that produce to the partition, or were answered with its records or an error.
responses               bigint    Without a topic all responses, with one those about the partition.
records                 bigint    Records of the partition, produced or fetched; null without a topic.
bytes                   bigint    Without a topic those of the frames, without size prefixes; with one those
    of the partition's record batches, as they were sent.
errors                  bigint    Responses with an error code other than 0, with a topic for its partition.
latency_p50_ms          double    The least latency that half of the responses do not exceed.
latency_p95_ms          double    The same for 95 % of them.
latency_p99_ms          double    The same for 99 % of them.
latency_max_ms          double    The longest latency.
{_CAPTURE}
""")

QUARANTINE = _columns(f"""
{_FILE}
flow         string    The stream that the positions are in; null for the file itself.
position     bigint    That of the first unreadable byte.
end_position bigint    The position after the last byte.
reason       string    Why.
time         timestamp The time of the bytes, in a capture.
bytes        binary    The bytes themselves, at most 64 KB; of a capture only with showSecrets.
""")

FILES = _columns(f"""
{_FILE}
kind              string    segment, capture, index (of a segment) or other.
{_PLACE}
{_BROKER}
size              bigint    Bytes.
modified          timestamp The time of its last change.
rows              bigint    Batches of a segment, frames of a capture.
read_bytes        bigint    Bytes in those rows.
quarantined_bytes bigint    Bytes in quarantine (of a capture: of its streams).
other_bytes       bigint    Packet headers, other protocols; all bytes of a file that isn't read.
joined_to         string    For further files of a rotated capture: the first one there, which has the counts.
""")

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
    return _schema(tuple(columns))


@lru_cache(maxsize=64)
def _schema(columns: tuple[Column, ...]) -> pyarrow.Schema:
    import pyarrow

    return pyarrow.schema([pyarrow.field(column.name, arrow_type(column.type)) for column in columns])


_SIMPLE = {
    "string": "string", "binary": "binary", "boolean": "bool_", "tinyint": "int8", "smallint": "int16",
    "int": "int32", "bigint": "int64", "double": "float64", "date": "date32",
}  # fmt: skip
"""Arrow's names of types."""


@cache
def arrow_type(kind: str) -> pyarrow.DataType:
    """The Arrow type of a type in Spark's DDL."""
    import pyarrow as pa

    name, _, inner = kind.partition("<")
    inner = inner.removesuffix(">")
    match name:
        case "timestamp":
            return pa.timestamp("us", tz="UTC")
        case "array":
            return pa.list_(pa.field("element", arrow_type(inner)))
        case "struct":
            fields = (field.partition(":") for field in _outer_parts(inner))
            return pa.struct([pa.field(field, arrow_type(of)) for field, _, of in fields])
    simple_type: pyarrow.DataType = getattr(pa, _SIMPLE[name])()
    return simple_type


def _outer_parts(text: str) -> list[str]:
    """What commas separate that are in no angle brackets."""
    depth, parts = 0, [""]
    for letter in text:
        depth += (letter == "<") - (letter == ">")
        if letter == "," and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


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
