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
            found = registry_payload(f.col(side), headers, header=header, protobuf=protobuf)
            records = records.withColumn("_found", found)
            for field, name in names.items():
                if protobuf or field != "message_indexes":
                    records = records.withColumn(f"{side}_{name}", f.col("_found")[field])
            records = records.drop("_found")
    return records


def registry_payload(
    data: Column, headers: Column | None = None, *, header: str = VALUE_HEADER, protobuf: bool = False
) -> Column:
    """A struct of id (int), guid (string), message_indexes (array<int>) and payload (binary); null for what
    is no such payload.

    data: a key or a value. headers: as the records table has them; None to look at prefixes only.
    """
    from pyspark.sql import functions as f

    none = f.lit(None).cast("string")
    by_prefix = f.when(
        _byte(data, 1) == 0,
        _payload(_id(data), none, *_rest(data, _ID, protobuf), data=None),
    )
    if headers is None:
        return _complete(by_prefix)
    said = f.try_element_at(f.filter(headers, lambda one: one["key"] == header), f.lit(-1))["value"]
    magic = _byte(said, 1)
    by_header = f.when(magic == 0, _payload(_id(said), none, *_rest(said, _ID, protobuf), data=data)).when(
        magic == 1,
        _payload(f.lit(None).cast("int"), _guid(said), *_rest(said, _GUID, protobuf), data=data),
    )
    return f.when(said.isNotNull(), _complete(by_header)).otherwise(_complete(by_prefix))


def _payload(number: Column, guid: Column, indexes: Column, rest: Column, *, data: Column | None) -> Column:
    from pyspark.sql import functions as f

    return f.struct(
        number.alias("id"), guid.alias("guid"), indexes.alias("message_indexes"),
        (rest if data is None else data).alias("payload"),
        # Read to its end, whatever of it is asked for.
        rest.isNotNull().alias("is_whole"),
    )  # fmt: skip


def _complete(found: Column) -> Column:
    """Nothing for one that lacks a part."""
    from pyspark.sql import functions as f

    whole = found["is_whole"] & (found["id"].isNotNull() | found["guid"].isNotNull())
    fields = [found[name].alias(name) for name in ("id", "guid", "message_indexes", "payload")]
    return f.when(whole, f.struct(*fields))


def _byte(data: Column, at: int) -> Column:
    """An unsigned byte, counted from 1; null beyond the end."""
    from pyspark.sql import functions as f

    return f.when(f.length(data) >= at, _number(f.substring(data, at, 1)).cast("int"))


def _number(data: Column) -> Column:
    """Up to 7 bytes as a number."""
    from pyspark.sql import functions as f

    return f.conv(f.hex(data), 16, 10).cast("bigint")


def _id(data: Column) -> Column:
    from pyspark.sql import functions as f

    number = _number(f.substring(data, 2, 4))
    return f.when((f.length(data) >= _ID) & (number < 1 << 31), number.cast("int"))


def _guid(data: Column) -> Column:
    from pyspark.sql import functions as f

    digits = f.lower(f.hex(f.substring(data, 2, 16)))
    parts = [f.substring(digits, start + 1, length) for start, length in
             ((0, 8), (8, 4), (12, 4), (16, 4), (20, 12))]  # fmt: skip
    return f.when(f.length(data) >= _GUID, f.concat_ws("-", *parts))


def _rest(data: Column, start: int, protobuf: bool) -> tuple[Column, Column]:
    """The message indexes after `start` bytes, and what follows them."""
    from pyspark.sql import functions as f

    if not protobuf:
        there = f.when(f.length(data) >= start, f.substr(data, f.lit(start + 1)))
        return f.lit(None).cast("array<int>"), there
    first = _byte(data, start + 1)
    read = _indexes(data, start)
    only = f.struct(f.array(f.lit(0)).alias("out"), f.lit(1).alias("used"))
    found = f.when(first == 0, only).otherwise(read)
    return found["out"], f.when(found["out"].isNotNull(), f.substr(data, found["used"] + start + 1))


def _indexes(data: Column, start: int) -> Column:
    """A struct of out, the indexes, and used, how many bytes they take; null for what is no such list."""
    from pyspark.sql import functions as f

    length = f.least(f.length(data) - start, f.lit(_VARINT * (MOST_INDEXES + 1)))
    places = f.when(length > 0, f.sequence(f.lit(1), length))
    numbers = f.transform(places, lambda at: _number(f.substr(data, at + start, f.lit(1))))
    begin = f.struct(
        f.lit(-1).cast("bigint").alias("size"), f.lit(0).cast("bigint").alias("value"),
        f.lit(0).alias("shift"), f.array().cast("array<int>").alias("out"), f.lit(0).alias("used"),
        f.lit(False).alias("bad"),
    )  # fmt: skip
    state = f.reduce(numbers, begin, _step)
    whole = ~state["bad"] & (state["size"] == f.size(state["out"]))
    return f.when(whole, f.struct(state["out"].alias("out"), state["used"].alias("used")))


def _step(state: Column, byte: Column) -> Column:
    """The state after one more byte: of the varint for the list's size (-1 as long as it isn't known), or
    for an index."""
    from pyspark.sql import functions as f

    over = state["bad"] | (state["size"] == f.size(state["out"]))
    bits = byte.bitwiseAND(f.lit(0x7F))
    value = state["value"].bitwiseOR(f.call_function("shiftleft", bits, state["shift"]))
    more = byte >= 0x80
    unsigned = value.bitwiseAND(f.lit(0xFFFFFFFF))
    number = f.shiftright(unsigned, 1).bitwiseXOR(-unsigned.bitwiseAND(f.lit(1)))
    is_size = state["size"] == -1
    # A list of size 0 is [0].
    size = f.when(~is_size | more, state["size"]).when(number == 0, f.lit(1)).otherwise(number)
    one = f.array(f.when(is_size, f.lit(0)).otherwise(number.cast("int")))
    is_one = ~more & (~is_size | (number == 0))
    bad = f.when(more, state["shift"] >= 7 * (_VARINT - 1)).otherwise(
        (number < 0) | (is_size & (number > MOST_INDEXES))
    )
    after = f.struct(
        size.cast("bigint").alias("size"),
        f.when(more, value).otherwise(f.lit(0)).cast("bigint").alias("value"),
        f.when(more, state["shift"] + 7).otherwise(f.lit(0)).cast("int").alias("shift"),
        f.when(is_one, f.concat(state["out"], one)).otherwise(state["out"]).alias("out"),
        (state["used"] + 1).cast("int").alias("used"),
        bad.alias("bad"),
    )
    return f.when(over, state).otherwise(after)
