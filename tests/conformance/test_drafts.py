"""The seed-era messages, values and hostile bytes: construct = compiled Python = native = interpreter."""

from __future__ import annotations

import struct

import pytest
from construct import ConstructError
from hypothesis import given, settings
from hypothesis import strategies as st

from coordwire.codec import Message
from coordwire.codec.interpreter.decoder import Mark, Reader
from coordwire.codec.interpreter.encoder import Writer
from coordwire.dialects.grammar import Grammar
from coordwire.errors import DecodeError, EncodeError
from coordwire.jsonform import from_json, to_json
from coordwire.messages import (
    Draft1ConsultRequest,
    Draft1ConsultResponse,
    Draft1PingRequest,
    Draft1PingResponse,
    Draft1RegisterRequest,
    Draft1StartRequest,
    Draft1StartResponse,
    Draft1StopRequest,
    Draft2StartFetcherRequest,
    Draft3JoinGroupRequest,
    Draft3JoinGroupResponse,
    Draft3MetadataRequest,
    Draft3MetadataResponse,
    Draft3PingRequest,
    Draft3PingResponse,
    Kafka07MessageSetSend,
    Kafka07MultiMessageSetSend,
    Kafka07OffsetsResponse,
    Kafka07ProduceRequest,
    find_message,
)
from coordwire.messages.draft_1 import Draft1Broker, Draft1PartitionOffset
from coordwire.messages.draft_2 import Draft2Broker, Draft2Ownership, Draft2PartitionOffset
from coordwire.messages.draft_3 import (
    Draft3Broker,
    Draft3Partition,
    Draft3TopicAndPartition,
    Draft3TopicMetadata,
)
from coordwire.testing import strategies
from schemas._generate.walk import StructRow, modules
from tests.compiled import compiled_decoder, compiled_encoder
from tests.conformance.engines import native_decode, native_encode

ROWS = [row for module in modules() if module.source.startswith("schemas/drafts/") for row in module.messages]
CELLS = [(row, version) for row in ROWS for version in (row.message.versions if row.message else ())]
NAMES = [f"{row.name}-{version}" for row, version in CELLS]


@pytest.mark.parametrize(("row", "version"), CELLS, ids=NAMES)
def test_all_engines_agree_on_values(row: StructRow, version: int) -> None:
    cls: type[Message] = find_message(row.name)
    declaration = row.message
    assert declaration is not None

    @settings(max_examples=25, deadline=None)
    @given(strategies.messages(cls, version=version))
    def check(message: Message) -> None:
        wire = compiled_encoder(cls, version)(message)
        assert Writer(version).message(message) == wire
        assert compiled_decoder(cls, version)(wire, 0, 10**6, 10**9) == (message, len(wire))
        assert native_encode(cls, version, message) == wire
        assert native_decode(cls, version, wire) == message
        marks: list[Mark] = []
        assert Reader(wire, 0, version, marks=marks).message(cls) == message
        assert sum(mark.length for mark in marks) == len(wire)
        assert declaration.build(declaration.parse(wire, version=version), version=version) == wire
        assert from_json(cls, to_json(message, version=version), version=version) == message

    check()


@pytest.mark.parametrize(("row", "version"), CELLS, ids=NAMES)
def test_all_engines_agree_on_hostile_bytes(row: StructRow, version: int) -> None:
    cls: type[Message] = find_message(row.name)
    declaration = row.message
    assert declaration is not None

    @settings(max_examples=60, deadline=None)
    @given(strategies.hostile_bytes(cls, version=version))
    def check(data: bytes) -> None:
        try:
            parsed = declaration.parse(data, version=version)
        except (ConstructError, UnicodeDecodeError):
            parsed = None
        if parsed is None:
            assert native_decode(cls, version, data) is None
            with pytest.raises(DecodeError) as error_info:
                cls.decode(data, version=version)
            assert 0 <= error_info.value.position <= len(data)
            return
        message = cls.decode(data, version=version)
        assert declaration.build(parsed, version=version) == message.encode(version=version)
        assert compiled_decoder(cls, version)(data, 0, 10**6, 10**9) == (message, len(data))
        assert native_decode(cls, version, data) == message

    check()


def test_the_documents_layouts_byte_by_byte() -> None:
    consulted = Draft1ConsultResponse(
        coordinator_id=3, brokers_info=[Draft1Broker(creator_id="c", id=3, host="h", port=9092)]
    )
    assert consulted.encode(version=0) == bytes.fromhex("0000 0003 0001 000163 00000003 000168 00002384")
    assert Draft1PingResponse().encode(version=0) == b""
    assert Draft1PingResponse().encode(version=1) == b"\0\0"
    start = Draft2StartFetcherRequest(
        consumer_id="c",
        ownership_info=[
            Draft2Ownership(
                consumer_thread_id="c-0",
                assigned_parts=[Draft2PartitionOffset(topic="t", partition="0-1", offset=7)],
            )
        ],
        brokers_info=[Draft2Broker(id=1, host="h", port=9092)],
    )
    assert start.encode(version=0) == bytes.fromhex(
        "000163 0001 0003632d30 0001 000174 0003302d31 0000000000000007 0001 00000001 000168 00002384"
    )
    metadata = Draft3MetadataRequest(correlation_id=5, client_id="c", topics=["t"], group_ids=["g"])
    assert metadata.encode(version=0) == bytes.fromhex(
        "0000 0000000000000005 000163 00000001 000174 00000001 000167"
    )
    produce = Kafka07ProduceRequest(topic="t", messages=b"mm")
    assert produce.encode(version=0) == bytes.fromhex("000174 ffffffff 00000002 6d6d")
    sets = Kafka07MultiMessageSetSend(
        message_sets=[Kafka07MessageSetSend(messages=b"ab"), Kafka07MessageSetSend(error_code=1)]
    )
    assert sets.encode(version=0) == bytes.fromhex("0000 00000004 0000 6162 00000002 0001")
    assert Kafka07OffsetsResponse(offsets=[9]).encode(version=0) == bytes.fromhex(
        "0000 00000001 0000000000000009"
    )


_CONSULTED = Draft1ConsultResponse(
    error_code=0x0102, coordinator_id=0x0304,
    brokers_info=[
        Draft1Broker(creator_id="maker", id=0x05060708, host="host", port=0x090A0B0C),
        Draft1Broker(creator_id="m", id=-2, host="h", port=-3),
    ],
)  # fmt: skip
_PARTS = [
    Draft1PartitionOffset(topic="topic", partition="12-34", offset=0x0102030405060708),
    Draft1PartitionOffset(topic="t", partition="5-6", offset=-2),
]
_PARTS_HEX = "0002 0005 746f706963 0005 31322d3334 0102030405060708 0001 74 0003 352d36 fffffffffffffffe"


@pytest.mark.parametrize(("message", "version", "layout"), [
    (Draft1ConsultRequest(), 0, "03e9"),
    (_CONSULTED, 0, "0102 0304 0002 0005 6d616b6572 05060708 0004 686f7374 090a0b0c"
        "0001 6d fffffffe 0001 68 fffffffd"),
    (Draft1RegisterRequest(
        group_id="group", consumer_id="me", topic_count='{"t":1}', auto_commit=True,
        auto_offset_rest="largest", ping_interval_ms=0x01020304, max_ping_retries=0x0506,
    ), 0, "03ea 0005 67726f7570 0002 6d65 0007 7b2274223a317d 01 0007 6c617267657374 01020304 0506"),
    (Draft1PingRequest(num_retries=0x0102), 0, "03eb 0102"),
    (Draft1PingResponse(), 0, ""),
    (Draft1PingResponse(offset_info=_PARTS), 1, _PARTS_HEX),
    (Draft1StopRequest(), 0, "03ec"),
    (Draft1StartRequest(assigned_parts=_PARTS), 0, "03ed" + _PARTS_HEX),
    (Draft1StartResponse(error_code=-0x0102), 0, "fefe"),
], ids=lambda value: type(value).__name__ if isinstance(value, Message) else "")  # fmt: skip
def test_the_first_drafts_layouts_byte_by_byte(message: Message, version: int, layout: str) -> None:
    """A size of int32, in requests a type of int16, and the fields in the document's order and widths. The
    counts of lists and strings are int16; num_partition and num_partitions are such a count."""
    frame = bytes.fromhex(layout)
    wire = struct.pack(">i", len(frame)) + frame
    assert Grammar("draft-1").encode(message, version=version) == wire
    body = wire[4:] if type(message).__name__.endswith("Response") else wire[6:]
    assert type(message).decode(body, version=version) == message
    assert compiled_encoder(type(message), version)(message) == body


_METADATA = Draft3MetadataResponse(
    version=0x0102, correlation_id=0x030405060708090A,
    brokers=[Draft3Broker(node_id=0x01020304, host="host", port=0x05060708)],
    topics_metadata=[Draft3TopicMetadata(error_code=0x1112, name="topic", partitions=[Draft3Partition(
        error_code=0x1314, partition_index=0x15161718, leader_id=0x191A1B1C,
        replica_nodes=[0x21222324, 0x25262728], isr_nodes=[0x29303132],
    )])],
    coordinator_ids=[0x0708, -2],
)  # fmt: skip


@pytest.mark.parametrize(("message", "type_id", "layout"), [
    (Draft3PingRequest(version=0x0102, correlation_id=0x030405060708090A, group_id="group", consumer_id="me"),
        "0bb9", "0102 030405060708090a 0005 67726f7570 0002 6d65"),
    (Draft3PingResponse(version=0x0102, correlation_id=0x030405060708090A, error_code=0x0B0C),
        "", "0102 030405060708090a 0b0c"),
    (Draft3MetadataRequest(
        version=0x0102, correlation_id=0x030405060708090A, client_id="us", topics=["t", "uu"], group_ids=["g"]
    ), "0bba", "0102 030405060708090a 0002 7573 00000002 0001 74 0002 7575 00000001 0001 67"),
    (_METADATA, "", "0102 030405060708090a 00000001 01020304 0004 686f7374 05060708"
        "00000001 1112 0005 746f706963 00000001 1314 15161718 191a1b1c 00000002 21222324 25262728"
        "00000001 29303132 00000002 0708 fffe"),
    (Draft3JoinGroupRequest(
        version=0x0102, correlation_id=0x030405060708090A, group_id="group", consumer_addr="a:1",
        session_timeout=0x1112131415161718, subscribing=["t", "uu"],
    ), "0bbb", "0102 030405060708090a 0005 67726f7570 0003 613a31 1112131415161718"
        "00000002 0001 74 0002 7575"),
    (Draft3JoinGroupResponse(
        version=0x0102, correlation_id=0x030405060708090A, error_code=0x0B0C, generation=0x0D0E,
        group_id="group", consumer_id="me", partitions_to_own=[
            Draft3TopicAndPartition(topic="topic", partition=0x01020304),
            Draft3TopicAndPartition(topic="t", partition=-2),
        ],
    ), "", "0102 030405060708090a 0b0c 0d0e 0005 67726f7570 0002 6d65"
        "00000002 0005 746f706963 01020304 0001 74 fffffffe"),
], ids=lambda value: type(value).__name__ if isinstance(value, Message) else "")  # fmt: skip
def test_the_new_consumers_layouts_byte_by_byte(message: Message, type_id: str, layout: str) -> None:
    """The fields in the document's order and widths; a broker, a topic and a partition are those of
    Kafka 0.8's TopicMetadataResponse, a list's count is its int32."""
    body = bytes.fromhex(layout)
    frame = bytes.fromhex(type_id) + body
    assert message.encode(version=0) == body == compiled_encoder(type(message), 0)(message)
    assert Grammar("draft-3").encode(message) == struct.pack(">i", len(frame)) + frame
    assert type(message).decode(body, version=0) == message


def test_a_null_string_is_null() -> None:
    assert Kafka07ProduceRequest.decode(b"\xff\xff" + bytes(8), version=0).topic is None


@pytest.mark.parametrize(
    ("data", "offset", "path", "reason"),
    [
        ("0000 00000002", 2, "message_sets[0]", "2 bytes claimed, 0 left"),
        ("0000 00000009 0000", 2, "message_sets[0]", "9 bytes claimed, 2 left"),
        ("0000 ffffffff", 2, "message_sets[0]", "a size is -1"),
        ("0000 00000001 00", 6, "message_sets[0].error_code", "int16 needs 2 bytes, 1 left"),
        ("0000 0000", 2, "message_sets[0]", "a size needs 4 bytes, 2 left"),
    ],
)
def test_a_bad_set_says_where(data: str, offset: int, path: str, reason: str) -> None:
    with pytest.raises(DecodeError) as error_info:
        Kafka07MultiMessageSetSend.decode(bytes.fromhex(data), version=0)
    error = error_info.value
    assert (error.position, error.path, error.reason) == (offset, path, reason)


def test_a_count_beyond_int16_is_refused() -> None:
    many = Draft1PingResponse(offset_info=[])
    many.offset_info = [object()] * 32768  # type: ignore[list-item]
    with pytest.raises(EncodeError) as error_info:
        many.encode(version=1)
    assert error_info.value.path == "offset_info"
    with pytest.raises(DecodeError) as refused:
        Draft1PingResponse.decode(struct.pack(">h", -1), version=1)
    assert refused.value.reason == "an array that can't be null is null"


@settings(max_examples=20)
@given(st.integers(0, 32767))
def test_a_count_is_checked_against_the_bytes_left(count: int) -> None:
    with pytest.raises(DecodeError):
        Draft1PingResponse.decode(struct.pack(">h", count) + b"\0", version=1)
