"""Columns of bytes for the functions on columns: what Apache Kafka wrote, damaged, and nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa

from coordwire.messages import ConsumerProtocolAssignment, ConsumerProtocolSubscription, MetadataRequest
from coordwire.messages.consumer_protocol import ConsumerProtocolAssignmentTopicPartition as Assigned
from coordwire.messages.consumer_protocol import ConsumerProtocolSubscriptionTopicPartition as Owned
from coordwire.records import Record, encode_batch

DATA = Path(__file__).parents[1] / "data"


def log_records() -> list[dict[str, Any]]:
    """Each record type and version of the coordinators' logs, as Kafka's classes wrote it."""
    lines = map(json.loads, (DATA / "logs" / "records.jsonl").read_text().splitlines())
    return [line for line in lines if line["log"] != "metadata"]


def subscription(version: int) -> bytes:
    message = ConsumerProtocolSubscription(topics=["orders", "lines"])
    if version >= 1:
        message.owned_partitions = [Owned(topic="orders", partitions=[0, 2])]
    if version >= 2:
        message.generation_id = 7
    if version >= 3:
        message.rack_id = "r1"
    return version.to_bytes(2, "big") + message.encode(version=version)


def assignment() -> bytes:
    message = ConsumerProtocolAssignment(assigned_partitions=[Assigned(topic="orders", partitions=[1])])
    return bytes(2) + message.encode(version=0)


def batches() -> list[bytes | None]:
    """A sound set, one whose first batch is damaged, one that is cut, and what is none."""
    first = encode_batch([Record(timestamp=5, key=b"k", value=b"v"), Record(timestamp=6, value=None)])
    second = encode_batch([Record(timestamp=7, value=b"w", headers=[("h", b"x")])], base_offset=2)
    damaged = first[:-1] + bytes([first[-1] ^ 1])
    return [first + second, damaged + second, first + second[:-3], b"", b"no batch", None]


def samples(name: str) -> list[pa.Array]:
    """The arguments of a function."""
    if name == "decode_log_record":
        records = log_records()
        sound: list[tuple[bytes | None, bytes | None, str]] = [
            (_bytes(line["key_hex"]), _bytes(line["value_hex"]), f"__{line['log']}") for line in records
        ]
        rows: list[tuple[bytes | None, bytes | None, str | None]] = [
            *sound,
            *((key, (value or b"xyz")[:-1], log) for key, value, log in sound),
            *((key[:-1], value, log) for key, value, log in sound if key),
            (b"\x7f\x00", b"v", "__consumer_offsets"), (b"\0\1", None, "orders"),
            (b"", b"", "__consumer_offsets"), (None, b"v", "__consumer_offsets"),
            (None, None, "__consumer_offsets"), (b"k", b"v", None),
        ]  # fmt: skip
        keys, values, logs = zip(*rows, strict=True)
        return [pa.array(keys, pa.binary()), pa.array(values, pa.binary()), pa.array(logs, pa.string())]
    if name == "decode_records":
        return [pa.array(batches(), pa.binary())]
    if name == "decode_message":
        body = MetadataRequest(topics=None).encode(version=9)
        password = bytes.fromhex("00000010") + b"\0alice\0secret-word"[:16]
        bodies = [body, body[:-1], body, b"", None, password]
        apis = ["Metadata", "Metadata", "Metadata", "NoSuchApi", "Metadata", "SaslAuthenticate"]
        return [
            pa.array(bodies, pa.binary()), pa.array(apis), pa.array([9, 9, 99, 0, 0, 0], pa.int32()),
            pa.array(["request"] * 6),
        ]  # fmt: skip
    if name == "consumer_subscription":
        cut = subscription(3)[:-2]
        return [pa.array([*map(subscription, range(4)), cut, b"", b"\0", None], pa.binary())]
    if name == "consumer_assignment":
        return [pa.array([assignment(), assignment()[:-3], b"no", None], pa.binary())]
    assert name == "registry_schema"
    prefixed = [b"\0\0\0\0\7payload", b"\0\0\0\0\7", b"\1\0\0\0\7x", b"\0\xff\0\0\0", b"", None]
    prefixed += [b"\0\0\0\0\7\4\2\4payload", b"payload"]
    headers = [*[None] * 7, b"\1" + bytes(range(16)) + b"\0"]
    protobuf = [False] * 6 + [True] * 2
    return [pa.array(prefixed, pa.binary()), pa.array(headers, pa.binary()), pa.array(protobuf)]


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else bytes.fromhex(text)
