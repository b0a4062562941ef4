"""Functions on columns: bytes that an engine already has become typed values.

    commits = functions.decode_log_record(table["key"], table["value"])    # pyarrow
    functions.register(duckdb.connect())                                   # then by name in SQL
    frame.select(functions.polars("decode_records", "value"))

    decode_log_record      key and value of a record of __consumer_offsets and the other coordinators' logs
    decode_records         record batches, as Produce, Fetch and segments have them
    decode_message         a request or response, after its header
    consumer_subscription  what a consumer offers in JoinGroup
    consumer_assignment    what it gets in SyncGroup
    registry_schema        what serializers of a schema registry put before a payload

Strategy: one core over Arrow arrays; the shells for PySpark (`coordwire.spark.functions`), DuckDB and Polars
pass arrays on and name the types. Values have the names and forms of the pipeline's tables. Rules: no row
raises: what can't be read is null, and `error_reason` says why; a null where there is nothing to read;
secrets are withheld, as the command does. pyarrow is imported when it is first needed.
"""

from __future__ import annotations

__all__ = [
    "FUNCTIONS", "ColumnFunction", "consumer_assignment", "consumer_subscription", "decode_log_record",
    "decode_message", "decode_records", "polars", "register", "registry_schema",
]  # fmt: skip

import inspect
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING, Any
from uuid import UUID

from coordwire.capture.jsonlines import encode, text
from coordwire.capture.redaction import secret_fields
from coordwire.capture.redaction.secret_fields import redact
from coordwire.codec import Message
from coordwire.embedded import open_field
from coordwire.errors import CoordwireError, DecodeError
from coordwire.jsonform import to_json
from coordwire.messages import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    FetchResponse,
    SyncGroupResponse,
    find_message,
)
from coordwire.messages.join_group import JoinGroupRequestProtocol
from coordwire.tables.arrays import ColumnValues, argument_values, byte_array, structs, together
from coordwire.tables.columns import ARROW_NAMES, RECORDS, arrow_type
from coordwire.tables.log_records import LOG_RECORD, MessageTexts, log_record_structs

if TYPE_CHECKING:
    import duckdb
    import polars as pl
    import pyarrow

_VERSION = struct.Struct(">h")
_SCHEMA_ID = struct.Struct(">bi")


@dataclass(frozen=True)
class ColumnFunction:
    """A function. arguments, result: names and types, as Spark's DDL has them; an argument in `defaults` may
    be left out. make_rows: makes rows of lists of values; or make_array: all of them, of the columns as they
    come."""

    name: str
    arguments: Mapping[str, str]
    result: Mapping[str, str]
    make_rows: Callable[..., Iterator[ColumnValues]] | None = None
    defaults: Mapping[str, Any] = field(default_factory=dict)
    make_array: Callable[..., pyarrow.StructArray] | None = None

    @property
    def __signature__(self) -> inspect.Signature:
        """DuckDB counts the arguments there."""
        kind = inspect.Parameter.POSITIONAL_ONLY
        return inspect.Signature([inspect.Parameter(name, kind) for name in self.arguments])

    def __call__(self, *columns: Any) -> pyarrow.StructArray:
        """A struct for each row. columns: arrays, or a value for all rows (an array of one too), in the
        arguments' order. Raises `TypeError` for values of another type."""
        if self.make_rows is None:
            assert self.make_array is not None
            return self.make_array(*columns)
        missing = list(self.arguments)[len(columns) :]
        values = [*columns, *(self.defaults[name] for name in missing)]
        lists = list(map(argument_values, values, *zip(*self.arguments.items(), strict=True)))
        length = next((len(values) for values in lists if len(values) != 1), 1)
        all_rows = (values * length if len(values) == 1 else values for values in lists)
        return structs(self.make_rows(*all_rows), self.result, together(columns, length))


def struct_type(result: Mapping[str, str]) -> str:
    """A function's result as one type in Spark's DDL."""
    return f"struct<{','.join(f'{name}:{kind}' for name, kind in result.items())}>"


# --- records of the coordinators' logs ---

decode_log_record = ColumnFunction(
    "decode_log_record", {"key": "binary", "value": "binary", "log": "string"}, LOG_RECORD,
    make_array=log_record_structs,
)  # fmt: skip
"""A record of a coordinator's log, with the columns of the offsets table. log: the topic of the log."""


# --- record batches ---


def _record_lists(column: Any) -> pyarrow.StructArray:
    """The records of each record set, without an object for each."""
    import pyarrow as pa

    from coordwire.records.arrow.record_sets import read_record_sets

    data = byte_array(column, "data")
    _, places, content = data.buffers()
    first, *ends = memoryview(places).cast("q")[data.offset : data.offset + len(data) + 1] if places else [0]
    source = memoryview(content)[first : ends[-1]] if ends and content else memoryview(b"")
    sets = read_record_sets(source, [end - first for end in ends], _ARROW_COLUMNS)
    kind, reason = (arrow_type(kind) for kind in decode_records.result.values())
    parts = [_record_structs(table, kind.value_type) for table in sets.tables]
    records = pa.concat_arrays(parts or [pa.array([], kind.value_type)])
    lists = pa.ListArray.from_arrays(pa.array(accumulate(sets.counts, initial=0), pa.int32()), records)
    reasons = pa.array([sets.reasons.get(index) for index in range(len(data))], reason)
    fields = list(map(pa.field, decode_records.result, (kind, reason)))
    return pa.StructArray.from_arrays([lists.cast(kind), reasons], fields=fields, mask=data.is_null())


def _record_structs(table: pyarrow.RecordBatch, kind: pyarrow.StructType) -> pyarrow.StructArray:
    import pyarrow as pa

    fields = [kind.field(index) for index in range(kind.num_fields)]
    arrays = [table[_ARROW_COLUMNS[index]].cast(field.type) for index, field in enumerate(fields)]
    return pa.StructArray.from_arrays(arrays, fields=fields)


_RECORD = {
    column.name: column.type
    for column in RECORDS
    if column.name in ("log_offset", "time", "key", "value", "headers", "is_control")
}
_ARROW_COLUMNS = [ARROW_NAMES.get(name, name) for name in _RECORD]
decode_records = ColumnFunction(
    "decode_records", {"data": "binary"},
    {"records": f"array<{struct_type(_RECORD)}>", "error_reason": "string"}, make_array=_record_lists,
)  # fmt: skip
"""All records in some record batches, those after damaged ones too; `error_reason` is that of the first range
of bytes that could not be read."""


# --- messages ---


def _message_rows(
    bodies: Sequence[bytes | None], apis: Sequence[str | None], versions: Sequence[int | None],
    directions: Sequence[str | None],
) -> Iterator[ColumnValues]:  # fmt: skip
    texts = MessageTexts()
    classes: dict[tuple[str, str], type[Message] | None] = {}
    for body, api, version, direction in zip(bodies, apis, versions, directions, strict=True):
        if body is None or api is None or version is None or direction is None:
            yield None
            continue
        if (api, direction) not in classes:
            classes[api, direction] = _message_class(api, direction)
        cls = classes[api, direction]
        if cls is None:
            yield None, None, text(f"there is no {direction} of an API {api}"), None, None
        elif (written := _plain_text(texts, cls, version, body)) is not None:
            yield written, None, None, None, None
        else:
            yield _message_row(cls, version, body)


def _message_class(api: str, direction: str) -> type[Message] | None:
    try:
        return find_message(f"{api}{direction.capitalize()}")
    except KeyError:
        return None


def _plain_text(texts: MessageTexts, cls: type[Message], version: int, body: bytes) -> str | None:
    """The text of a message that has no secrets; None for what isn't known to be one."""
    if cls.__name__ in secret_fields.FIELDS:
        return None
    written = texts.of(cls, version, body)
    if written is None or cls is not FetchResponse:
        return written
    return None if secret_fields.find(cls.decode(body, version=version)) else written


def _message_row(cls: type[Message], version: int, body: bytes) -> ColumnValues:
    try:
        message = cls.decode(body, version=version)
    except DecodeError as error:
        return None, None, error.reason, error.position, error.path
    except CoordwireError as error:
        return None, None, str(error), None, None
    form, secrets = to_json(message, version=version), secret_fields.find(message)
    redact(form, secrets)
    return encode(form), secrets or None, None, None, None


decode_message = ColumnFunction(
    "decode_message", {"body": "binary", "api": "string", "version": "int", "direction": "string"},
    {"body": "string", "redacted": "array<string>", "error_reason": "string", "error_position": "bigint",
     "error_path": "string"},
    _message_rows,
)  # fmt: skip
"""A message in Kafka's JSON form. api: its name; direction: request or response; redacted: the paths of the
values that are withheld."""

_TOPIC_PARTITIONS = "array<struct<topic:string,partitions:array<int>>>"


def _topic_partitions(entries: Sequence[Any]) -> list[tuple[str, list[int]]]:
    return [(entry.topic, entry.partitions) for entry in entries]


def _embedded_structs(
    result: Mapping[str, str], field_of: tuple[type[Any], str], message_class: type[Message],
    columns: Callable[[Any], tuple[Any, ...]], values: Any,
) -> pyarrow.StructArray:  # fmt: skip
    """What is in a field of a class, of this class if it is sound: groups send the same again and again, and
    what is the same is read once. columns: those between version and reason."""
    encoded = byte_array(values, "data").dictionary_encode()
    count = len(result) - 2

    def row(data: bytes) -> Sequence[Any]:
        if (
            len(data) >= _VERSION.size
            and (version := _VERSION.unpack_from(data)[0]) in message_class.versions
        ):
            with suppress(DecodeError):
                message = message_class.decode(data[_VERSION.size :], version=version)
                return version, *columns(message), None
        embedded = open_field(*field_of, data, "consumer")
        if embedded is None:
            return *(None,) * (count + 1), "the bytes are not of the consumer protocol"
        reason = None if embedded.deviation is None else str(embedded.deviation)
        return embedded.version, *columns(embedded.message), reason

    rows = structs(
        map(row, encoded.dictionary.to_pylist()),
        result,
        together([encoded.dictionary], len(encoded.dictionary)),
    )
    return rows.take(encoded.indices)


_SUBSCRIPTION = {
    "version": "int", "topics": "array<string>", "owned_partitions": _TOPIC_PARTITIONS,
    "generation_id": "int", "rack_id": "string", "error_reason": "string",
}  # fmt: skip
consumer_subscription = ColumnFunction(
    "consumer_subscription", {"data": "binary"}, _SUBSCRIPTION,
    make_array=lambda values: _embedded_structs(
        _SUBSCRIPTION, (JoinGroupRequestProtocol, "metadata"), ConsumerProtocolSubscription,
        lambda m: (m.topics, _topic_partitions(m.owned_partitions), m.generation_id, m.rack_id), values,
    ),
)  # fmt: skip
"""A consumer's subscription, with its version's own fields only."""

_ASSIGNMENT = {"version": "int", "partitions": _TOPIC_PARTITIONS, "error_reason": "string"}
consumer_assignment = ColumnFunction(
    "consumer_assignment", {"data": "binary"}, _ASSIGNMENT,
    make_array=lambda values: _embedded_structs(
        _ASSIGNMENT, (SyncGroupResponse, "assignment"), ConsumerProtocolAssignment,
        lambda m: (_topic_partitions(m.assigned_partitions),), values,
    ),
)  # fmt: skip
"""A consumer's assignment."""


# --- what serializers of a schema registry write ---


MOST_INDEXES = 32
"""How deep protoc lets message types be nested."""


def _zigzag(data: bytes, at: int) -> tuple[int, int]:
    """A zigzag varint of 32 bits, as Kafka reads it, and where it ends; -1 for what isn't one."""
    value = 0
    for number, byte in enumerate(data[at : at + 5]):
        value |= (byte & 0x7F) << 7 * number
        if byte < 0x80:
            value &= 0xFFFF_FFFF
            return (value >> 1) ^ -(value & 1), at + number + 1
    return -1, at


def _registry_row(data: bytes | None, header: bytes | None, protobuf: bool | None) -> ColumnValues:
    head = data if header is None else header
    if head is None:
        return None
    schema_id = guid = indexes = None
    if head[:1] == b"\0" and len(head) >= _SCHEMA_ID.size:
        at, schema_id = _SCHEMA_ID.size, _SCHEMA_ID.unpack_from(head)[1]
        if schema_id < 0:
            return None
    elif head[:1] == b"\1" and header is not None and len(head) >= 17:
        at, guid = 17, str(UUID(bytes=head[1:17]))
    else:
        return None
    if protobuf:
        size, at = _zigzag(head, at)
        if not 0 <= size <= MOST_INDEXES:
            return None
        indexes = []
        for _ in range(size):
            index, at = _zigzag(head, at)
            indexes.append(index)
        if min(indexes, default=0) < 0:
            return None
    return schema_id, guid, [0] if indexes == [] else indexes, head[at:] if header is None else data


def _registry_rows(*columns: Sequence[Any]) -> Iterator[ColumnValues]:
    return map(_registry_row, *columns)


registry_schema = ColumnFunction(
    "registry_schema", {"data": "binary", "header": "binary", "protobuf": "boolean"},
    {"id": "int", "guid": "string", "message_indexes": "array<int>", "payload": "binary"}, _registry_rows,
    {"header": None, "protobuf": False},
)  # fmt: skip
"""What Confluent's serializers write: a byte 0, the schema's id (4 bytes, big-endian), the payload. header:
the value of `__key_schema_id` or `__value_schema_id`, the last of several: a byte 1 and the schema's GUID (16
bytes), or a byte 0 and its id; then the payload is all of data. protobuf: whether the id or GUID is followed
by the indexes of the message type in its file, from the outermost type inwards: how many there are, and each,
as zigzag varints; a single byte 0 means [0]. Null for what is none of this, is cut short, or has more than
`MOST_INDEXES`. Any bytes may begin with a 0 by chance: what a topic holds must be known, or follow from its
ids."""

FUNCTIONS = {
    function.name: function
    for function in (
        decode_log_record, decode_records, decode_message, consumer_subscription, consumer_assignment,
        registry_schema,
    )
}  # fmt: skip


# --- shells ---


def register(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """Make the functions known to a connection of DuckDB, with all arguments; returns their names."""
    import duckdb
    import pyarrow as pa

    def types(kinds: Iterable[str]) -> list[Any]:
        """DuckDB's types for those of Spark's DDL."""
        empty = [pa.array([], arrow_type(kind)) for kind in kinds]
        return connection.from_arrow(pa.table(empty, [str(number) for number in range(len(empty))])).types

    create: Any = connection.create_function
    for function in FUNCTIONS.values():
        with suppress(duckdb.InvalidInputException):  # it isn't known yet
            connection.remove_function(function.name)
        create(
            function.name, function, types(function.arguments.values()),
            *types([struct_type(function.result)]), type="arrow", null_handling="special",
        )  # fmt: skip
    return list(FUNCTIONS)


def polars(name: str, *columns: Any) -> pl.Expr:
    """A function as an expression of Polars: `polars("decode_log_record", "key", "value")`. columns: names or
    expressions. Raises `KeyError` for an unknown function."""
    import polars as pl
    import pyarrow as pa

    function = FUNCTIONS[name]

    def apply(series: Sequence[pl.Series]) -> pl.Series:
        return pl.Series(name, function(*(column.to_arrow() for column in series)))

    empty = pa.array([], type=arrow_type(struct_type(function.result)))
    return pl.map_batches(
        [pl.col(column) if isinstance(column, str) else column for column in columns],
        apply, return_dtype=pl.Series(empty).dtype,
    )  # fmt: skip
