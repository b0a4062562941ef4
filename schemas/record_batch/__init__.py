"""Record batches: the unit in which Kafka stores, sends and checks records; and the message sets before them.

Sources: "Record Batch" and "Message sets" in Kafka's protocol documentation, KIP-98 (magic 2), KIP-32 (magic
1), KIP-534 (delete horizon); for Kafka 0.7 public descriptions of it. A batch is not a message of an API, so that nothing is generated from these (the
generator passes over packages); they are the oracle that the tests hold `coordwire.records` against.
Uncompressed records only: a codec compresses the same bytes. Strict where brokers aren't: no over-long
varints, nothing after the last field.
"""

from __future__ import annotations

import io
import zlib
from collections.abc import Callable
from typing import Any

from construct import (
    Array,
    BitsInteger,
    BitStruct,
    Construct,
    Flag,
    GreedyBytes,
    GreedyRange,
    If,
    Int8sb,
    Int8ub,
    Int16sb,
    Int32sb,
    Int32ub,
    Int64sb,
    OneOf,
    Padding,
    Prefixed,
    Struct,
    Subconstruct,
    Terminated,
    ValidationError,
    this,
)

from schemas.vocabulary import Varint, Varlong

_REFLECTED = 0x82F63B78
"""The polynomial of CRC-32C (Castagnoli)."""


def _crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (_REFLECTED if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


class _Sized(Construct):  # type: ignore[misc]
    """Bytes after their length; null for -1, where that is allowed."""

    def __init__(self, length: Construct, *, null: bool = True) -> None:
        super().__init__()
        self.length = length
        self.null = null

    def _parse(self, stream: io.BytesIO, context: Any, path: str) -> bytes | None:
        size = self.length._parsereport(stream, context, path)
        if size == -1 and self.null:
            return None
        data = stream.read(size) if size >= 0 else b""
        if len(data) != size:
            raise ValidationError(f"{size} bytes wanted, {len(data)} left", path=path)
        return data

    def _build(self, obj: bytes | None, stream: io.BytesIO, context: Any, path: str) -> bytes | None:
        if obj is None and not self.null:
            raise ValidationError("can't be null", path=path)
        self.length._build(-1 if obj is None else len(obj), stream, context, path)
        stream.write(obj or b"")
        return obj


class _Checked(Subconstruct):  # type: ignore[misc]
    """All that is left, after its checksum."""

    def __init__(self, function: Callable[[bytes], int], subcon: Construct) -> None:
        super().__init__(subcon)
        self.function = function

    def _parse(self, stream: io.BytesIO, context: Any, path: str) -> Any:
        stated = Int32ub._parsereport(stream, context, path)
        covered = stream.read()
        if self.function(covered) != stated:
            raise ValidationError("wrong checksum", path=path)
        return self.subcon._parsereport(io.BytesIO(covered), context, path)

    def _build(self, obj: Any, stream: io.BytesIO, context: Any, path: str) -> Any:
        covered = io.BytesIO()
        self.subcon._build(obj, covered, context, path)
        Int32ub._build(self.function(covered.getvalue()), stream, context, path)
        stream.write(covered.getvalue())
        return obj


RecordHeader = Struct(
    "key"   / _Sized(Varint, null=False) * "Its name, as bytes of UTF-8.",
    "value" / _Sized(Varint)             * "Its value; opaque to Kafka.",
)  # fmt: skip

Record = Prefixed(Varint, Struct(
    "attributes"      / Int8sb                          * "No bit is in use.",
    "timestamp_delta" / Varlong                         * "Its time in ms, from the batch's base timestamp.",
    "offset_delta"    / Varint                          * "Its offset, from the batch's base offset.",
    "key"             / _Sized(Varint)                  * "What it is about; null if nothing.",
    "value"           / _Sized(Varint)                  * "Its value; null to delete the key.",
    "header_count"    / Varint                          * "How many headers follow.",
    "headers"         / Array(this.header_count, RecordHeader) * "Named values beside it (KIP-82).",
    Terminated,
))  # fmt: skip

Attributes = BitStruct(
    Padding(9),
    "delete_horizon" / Flag           * "The base timestamp is the delete horizon (KIP-534).",
    "control"        / Flag           * "The records are the broker's own.",
    "transactional"  / Flag           * "Part of a transaction.",
    "log_append"     / Flag           * "The max timestamp, set by the broker, is that of all records.",
    "codec"          / BitsInteger(3) * "0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd.",
)  # fmt: skip

RecordBatch = Struct(
    "base_offset" / Int64sb * "Offset of the first record; the producer writes 0.",
    "batch"       / Prefixed(Int32sb, Struct(
        "partition_leader_epoch" / Int32sb * "Set by the broker, outside the checksum.",
        "magic"                  / OneOf(Int8sb, [2]) * "The version of this layout.",
        "covered"                / _Checked(_crc32c, Struct(
            "attributes"        / Attributes                  * "What else there is to know.",
            "last_offset_delta" / Int32sb                     * "The last offset; compaction keeps it.",
            "base_timestamp"    / Int64sb                     * "In ms since 1970.",
            "max_timestamp"     / Int64sb                     * "The largest of the records', in ms.",
            "producer_id"       / Int64sb                     * "An idempotent producer's; else -1 (KIP-98).",
            "producer_epoch"    / Int16sb                     * "Its epoch; else -1.",
            "base_sequence"     / Int32sb                     * "The first record's number; else -1.",
            "count"             / Int32sb                     * "How many records follow.",
            "records"           / Array(this.count, Record)   * "They, or their bytes compressed.",
            Terminated,
        )),
    )),
)  # fmt: skip

Message = Struct(
    "offset"  / Int64sb * "Its offset; relative inside a wrapper of magic 1.",
    "message" / Prefixed(Int32sb, _Checked(zlib.crc32, Struct(
        "magic"      / OneOf(Int8sb, [0, 1])        * "1 brought the timestamp (KIP-32).",
        "attributes" / Int8sb                       * "The codec in bits 0 to 2; bit 3: the broker's time.",
        "timestamp"  / If(this.magic == 1, Int64sb) * "In ms since 1970; -1 for none.",
        "key"        / _Sized(Int32sb)              * "What it is about; null if nothing, and in a wrapper.",
        "value"      / _Sized(Int32sb)              * "Its value; a compressed message set in a wrapper.",
        Terminated,
    ))),
)  # fmt: skip

MessageSet = GreedyRange(Message)

Kafka07Message = Prefixed(Int32sb, Struct(
    "magic"      / OneOf(Int8sb, [0, 1])                  * "1 brought the attributes.",
    "attributes" / If(this.magic == 1, Int8ub)            * "The codec in bits 0 and 1: none, gzip, snappy.",
    "payload"    / _Checked(zlib.crc32, GreedyBytes)      * "The message; a compressed message set in a wrapper.",
))  # fmt: skip

Kafka07MessageSet = GreedyRange(Kafka07Message)
