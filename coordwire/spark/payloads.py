"""What serializers of a schema registry put before a payload, or into a header, as columns.

    from coordwire.spark import payloads
    rows = payloads.with_schemas(records)               # or with_schemas(records, protobuf=True)
    rows.groupBy("topic", "value_schema_id").count()
    rows.select(from_avro("value_payload", schema))     # Spark's own function

Two forms, both of Confluent's serializers. The prefix: a byte 0, the schema's id (4 bytes, big-endian), the
payload. The header `__key_schema_id` or `__value_schema_id`: a byte 1 and the schema's GUID (16 bytes), or a
byte 0 and its id; the payload is the whole key or value. With Protobuf the id or GUID is followed by the
indexes of the message type in its file, from the outermost type inwards: how many there are, and each, as
zigzag varints; a single byte 0 means [0].

Strategy: Spark's expressions on binary columns, no Python worker. Rules: a header wins over a prefix, the
last of several; a header of another form means no such payload, as serializers leave none; a registry's ids
are not negative; what is cut short is null, as is a list of more than `MOST_INDEXES`. Any bytes may begin
with a 0 by chance: what a topic holds must be known, or follow from its ids.
"""

from __future__ import annotations

__all__ = ["KEY_HEADER", "VALUE_HEADER", "registry_payload", "with_schemas"]

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

KEY_HEADER, VALUE_HEADER = "__key_schema_id", "__value_schema_id"

MOST_INDEXES = 32
"""How deep protoc lets message types be nested."""

_ID, _GUID = 5, 17
"""Bytes of an id and of a GUID, with the magic byte."""

_VARINT = 5
"""Bytes of a varint at most."""

_VARINTS = r"\G(?:[89A-F].){0,4}[0-7]."
"""Each of the varints that follow one another from the start on, in hex digits."""


def with_schemas(records: DataFrame, *, protobuf: bool = False) -> DataFrame:
    """The records with key_schema_id, key_schema_guid, key_payload, and the same of the value.

    protobuf: whether payloads are Protobuf; then there are key_message_indexes and value_message_indexes too,
    and the payload begins after them. The columns key, value and headers are read as far as they are there.
    """
    from pyspark.sql import functions as f

    headers = f.col("headers") if "headers" in records.columns else None
    names = {"id": "schema_id", "guid": "schema_guid", "message_indexes": "message_indexes",
             "payload": "payload"}  # fmt: skip
    for side, header in (("key", KEY_HEADER), ("value", VALUE_HEADER)):
        if side in records.columns:
            fields = registry_payload(f.col(side), headers, header=header, protobuf=protobuf)
            records = records.withColumn("_found", fields)
            for field, name in names.items():
                if protobuf or field != "message_indexes":
                    records = records.withColumn(f"{side}_{name}", f.col("_found")[field])
            records = records.drop("_found")
    return records


def registry_payload(
    data: Column, headers: Column | None = None, *, header: str = VALUE_HEADER, protobuf: bool = False
) -> Column:
    """A struct of id (int), guid (string), message_indexes (array<int>) and payload (binary); null for what
    isn't such a payload.

    data: a key or a value. headers: as the records table has them; None to look at prefixes only.
    """
    from pyspark.sql import functions as f

    id_header = f.lit(None).cast("binary")
    if headers is not None:
        id_header = f.try_element_at(f.filter(headers, lambda item: item["key"] == header), f.lit(-1))[
            "value"
        ]
    magic = _byte(f.coalesce(id_header, data), 1)
    start = f.when(magic == 0, f.lit(_ID)).when(id_header.isNotNull() & (magic == 1), f.lit(_GUID))
    parts = f.struct(
        f.coalesce(id_header, data).alias("head"),
        id_header.isNotNull().alias("in_header"),
        start.alias("start"),
    )
    return _let(parts, lambda parts: _read(parts, data, protobuf))


def _let(value: Column, function: Callable[[Column], Column]) -> Column:
    """Apply a function to a value that is computed once, however often the function uses it."""
    from pyspark.sql import functions as f

    return f.get(f.transform(f.array(value), function), f.lit(0))


def _read(parts: Column, data: Column, protobuf: bool) -> Column:
    """The payload whose prefix or header is `head`, with the id or GUID before byte `start`."""
    from pyspark.sql import functions as f

    head, start = parts["head"], parts["start"]
    has_prefix = start.isNotNull() & (f.length(head) >= start)
    number = f.when(start == _ID, _number(f.substring(head, 2, 4)))
    none = f.struct(f.lit(None).cast("array<int>").alias("out"), f.lit(0).alias("used"))

    def struct(indexes: Column) -> Column:
        remaining = f.substr(head, start + indexes["used"] + 1)
        return f.struct(
            number.cast("int").alias("id"), f.when(start == _GUID, _guid(head)).alias("guid"),
            indexes["out"].alias("message_indexes"),
            f.when(parts["in_header"], data).otherwise(remaining).alias("payload"),
        )  # fmt: skip

    def complete(indexes: Column) -> Column:
        return f.when(indexes["out"].isNotNull(), struct(indexes)) if protobuf else struct(indexes)

    is_valid = has_prefix & ((start == _GUID) | (number < 1 << 31))
    return f.when(is_valid, _let(_indexes(head, start) if protobuf else none, complete))


def _byte(data: Column, at: int) -> Column:
    """An unsigned byte, counted from 1; null beyond the end."""
    from pyspark.sql import functions as f

    return f.when(f.length(data) >= at, _number(f.substring(data, at, 1)))


def _number(data: Column) -> Column:
    """Up to 7 bytes as a number."""
    from pyspark.sql import functions as f

    return f.conv(f.hex(data), 16, 10).cast("bigint")


def _guid(data: Column) -> Column:
    from pyspark.sql import functions as f

    places = ((1, 8), (9, 4), (13, 4), (17, 4), (21, 12))
    digits = f.lower(f.hex(f.substring(data, 2, 16)))
    return f.concat_ws("-", *(f.substring(digits, at, length) for at, length in places))


def _indexes(data: Column, start: Column) -> Column:
    """A struct of out, the indexes after `start` bytes, and used, how many bytes they take; out is null for
    what isn't such a list."""
    from pyspark.sql import functions as f

    # As many bytes as the size, if that has one byte, lets there be: nearly all lists are a single 0.
    size = f.shiftright(_number(f.substr(data, start + 1, f.lit(1))), 1)
    most = f.least(1 + _VARINT * size, f.lit(_VARINT * (MOST_INDEXES + 1))).cast("int")
    varints = f.regexp_extract_all(f.hex(f.substr(data, start + 1, most)), f.lit(_VARINTS), f.lit(0))

    def struct(varints: Column) -> Column:
        size = _signed(f.get(varints, f.lit(0)))
        count = f.when((size >= 0) & (size <= MOST_INDEXES), size)
        out = f.transform(f.slice(varints, f.lit(2), count), _signed)
        is_valid = (f.size(out) == count) & f.forall(out, lambda number: number >= 0)
        used = f.length(f.array_join(f.slice(varints, f.lit(1), count + 1), ""))
        return f.struct(
            f.when(is_valid, f.when(count == 0, f.array(f.lit(0))).otherwise(out)).alias("out"),
            (used / 2).cast("int").alias("used"),
        )

    return _let(varints, struct)


def _signed(varint: Column) -> Column:
    """The number that a zigzag varint has, of which these are the hex digits."""
    from pyspark.sql import functions as f

    places = f.sequence(f.length(varint) - 1, f.lit(1), f.lit(-2))  # the last byte has the highest bits
    bits = f.transform(places, lambda at: f.conv(f.substr(varint, at, f.lit(2)), 16, 10).cast("bigint") % 128)
    value = f.reduce(bits, f.lit(0).cast("bigint"), lambda value, bits: value * 128 + bits)
    unsigned = value.bitwiseAND(f.lit(0xFFFFFFFF))
    return f.shiftright(unsigned, 1).bitwiseXOR(-unsigned.bitwiseAND(f.lit(1).cast("bigint"))).cast("int")
