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
from coordwire.errors import DecodeError, EncodeError
from coordwire.jsonform import from_json, to_json
from coordwire.messages import (
    Draft1ConsultResponse,
    Draft1PingResponse,
    Draft2StartFetcherRequest,
    Draft3MetadataRequest,
    Kafka07MessageSetSend,
    Kafka07MultiMessageSetSend,
    Kafka07OffsetsResponse,
    Kafka07ProduceRequest,
    find_message,
)
from coordwire.messages.draft_1 import Draft1Broker
from coordwire.messages.draft_2 import Draft2Broker, Draft2Ownership, Draft2PartitionOffset
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
