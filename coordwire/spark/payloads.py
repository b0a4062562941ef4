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


def with_schemas(records: DataFrame, *, protobuf: bool = False) -> DataFrame:
    """The records with key_schema_id, key_schema_guid, key_payload, and the same of the value.

    protobuf: whether payloads are Protobuf; then there are key_message_indexes and value_message_indexes too,
    and the payload begins after them. The columns key, value and headers are read as far as they are there.
    """
    from pyspark.sql import functions as f

    headers = f.col("headers") if "headers" in records.columns else None
    names = {
        "id": "schema_id",
        "guid": "schema_guid",
        "message_indexes": "message_indexes",
        "payload": "payload",
    }
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

    # Nearly all lists are a single 0.
    length = f.when(_number(f.substr(data, start + 1, f.lit(1))) == 0, f.lit(1)).otherwise(
        f.least(f.length(data) - start, f.lit(_VARINT * (MOST_INDEXES + 1)))
    )
    places = f.when(length > 0, f.sequence(f.lit(1), length)).otherwise(f.array().cast("array<int>"))
    numbers = f.transform(places, lambda at: _number(f.substr(data, at + start, f.lit(1))))
    begin = f.struct(
        f.lit(-1).cast("bigint").alias("size"), f.lit(0).cast("bigint").alias("value"),
        f.lit(0).alias("shift"), f.array().cast("array<int>").alias("out"), f.lit(0).alias("used"),
        f.lit(False).alias("bad"),
    )  # fmt: skip

    def struct(state: Column) -> Column:
        is_valid = ~state["bad"] & (state["size"] == f.size(state["out"]))
        return f.struct(f.when(is_valid, state["out"]).alias("out"), state["used"].alias("used"))

    return _let(f.reduce(numbers, begin, _step), struct)


def _step(state: Column, byte: Column) -> Column:
    """The state after one more byte: of the varint for the list's size (-1 as long as it isn't known), or
    for an index."""
    from pyspark.sql import functions as f

    over = state["bad"] | (state["size"] == f.size(state["out"]))
    bits = byte.bitwiseAND(f.lit(0x7F).cast("bigint"))
    value = state["value"].bitwiseOR(f.call_function("shiftleft", bits, state["shift"]))
    continued = f.struct(
        state["size"].alias("size"), value.alias("value"), (state["shift"] + 7).alias("shift"),
        state["out"].alias("out"), (state["used"] + 1).alias("used"),
        (state["shift"] >= 7 * (_VARINT - 1)).alias("bad"),
    )  # fmt: skip
    unsigned = value.bitwiseAND(f.lit(0xFFFFFFFF))
    number = f.shiftright(unsigned, 1).bitwiseXOR(-unsigned.bitwiseAND(f.lit(1).cast("bigint")))

    def last(number: Column) -> Column:
        is_size = state["size"] == -1
        is_none = is_size & (number == 0)  # which means [0]
        size = f.when(is_none, f.lit(1).cast("bigint")).when(is_size, number).otherwise(state["size"])
        index = f.array(f.when(is_size, f.lit(0)).otherwise(number.cast("int")))
        return f.struct(
            size.alias("size"), f.lit(0).cast("bigint").alias("value"), f.lit(0).alias("shift"),
            f.when(~is_size | is_none, f.concat(state["out"], index)).otherwise(state["out"]).alias("out"),
            (state["used"] + 1).alias("used"),
            ((number < 0) | (is_size & (number > MOST_INDEXES))).alias("bad"),
        )  # fmt: skip

    return f.when(over, state).when(byte >= 0x80, continued).otherwise(_let(number, last))
