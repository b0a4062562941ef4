"""The JSON text that the native engine writes of bytes is the one that Python writes of the message, and it
is declined wherever the decoder declines them."""

from __future__ import annotations

import struct
from itertools import combinations
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordwire import DecodeError, limits, to_json
from coordwire._speedups import native
from coordwire.capture.jsonlines import encode
from coordwire.codec import Message
from coordwire.codec.program import HAS_CODES, HAS_ZEROS, OTHERWISE, layout_program, layout_transcriber
from coordwire.codec.walk import entity_values
from coordwire.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    PartitionData,
    ReplicaState,
)
from coordwire.messages.headers import RequestHeader
from coordwire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from coordwire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from coordwire.messages.metadata import MetadataRequest, MetadataRequestTopic
from coordwire.messages.transaction_log import TransactionLogValue
from coordwire.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from coordwire.testing import strategies
from tests.conformance.engines import MESSAGES

pytestmark = pytest.mark.skipif(native is None, reason="the native engine isn't built, or Python is forced")


OTHERS = {"Kafka07MessageSetSend", "Kafka07MultiMessageSetSend", "PartitionChangeRecord"}
"""Messages with fields without a length, or tagged fields in an order that it can't write."""

LONG_CODES = {
    cls.__name__
    for cls in MESSAGES
    if any(field.entity == "error_code" and field.type == "int32" for field in cls._layout_.fields)
}
"""ZooKeeper's answers: their error codes have four bytes."""

OTHERS |= LONG_CODES | {"ZooKeeperMultiRequest", "ZooKeeperMultiReadRequest"}

SERVED = [cls for cls in MESSAGES if cls.__name__ not in OTHERS]


def transcriber_of(cls: type[Message], version: int) -> Any:
    return layout_transcriber(cls._layout_.at(version))


def transcriber(cls: type[Message], version: int) -> Any:
    result = transcriber_of(cls, version)
    assert result is not None, f"{cls.__name__} v{version}"
    return result


def expected(cls: type[Message], version: int, data: bytes) -> tuple[str, int] | None:
    """What Python makes of the bytes; None where the engine leaves them to it."""
    try:
        message = cls.decode(data, version=version)
    except DecodeError:
        return None
    text = encode(to_json(message, version=version))
    if '"_tags":' in text:  # in a string the quotes would be escaped
        return None
    codes = any(entity_values(message, "error_code"))
    otherwise = message.encode(version=version) != data
    return text, HAS_CODES * codes | OTHERWISE * otherwise | HAS_ZEROS * ("\\u0000" in text)


def check(cls: type[Message], version: int, data: bytes) -> tuple[str, int] | None:
    result: tuple[str, int] | None = transcriber(cls, version).transcribe(data)
    assert result == expected(cls, version, data), f"{cls.__name__} v{version}: {data.hex()}"
    return result


def test_messages_without_a_transcriber() -> None:
    result = {
        cls.__name__ for cls in MESSAGES for version in cls.versions if transcriber_of(cls, version) is None
    }
    assert result == OTHERS


@settings(max_examples=60)
@given(st.data())
def test_the_text_is_that_of_the_message(data: st.DataObject) -> None:
    cls = data.draw(st.sampled_from(SERVED))
    version = data.draw(st.sampled_from(cls.versions))
    message = data.draw(strategies.messages(cls, version=version, nan=True))
    check(cls, version, message.encode(version=version))


@settings(max_examples=60)
@given(st.data())
def test_what_the_decoder_refuses_has_no_text(data: st.DataObject) -> None:
    cls = data.draw(st.sampled_from(SERVED))
    version = data.draw(st.sampled_from(cls.versions))
    check(cls, version, data.draw(strategies.hostile_bytes(cls, version=version)))


def test_every_version_of_every_message_at_its_defaults() -> None:
    for cls in SERVED:
        for version in cls.versions:
            wire = cls().encode(version=version)
            assert check(cls, version, wire) is not None
            for cut in {0, 1, len(wire) // 2, max(len(wire) - 1, 0)} - {len(wire)}:
                assert (check(cls, version, wire[:cut]) is None) == bool(wire)
            assert check(cls, version, wire + b"\0") is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "plain",
        'a"b\\c/',
        "\b\t\n\f\r",
        "\0\x1f\x7f\x80",
        "é€\u2028",
        "\U0001f600\U0010ffff",
        "x" * 32_767,
    ],
)
def test_strings(text: str) -> None:
    message = HeartbeatRequest(group_id=text, generation_id=-(1 << 31), member_id=text[::-1])
    for version in HeartbeatRequest.versions:
        assert check(HeartbeatRequest, version, message.encode(version=version)) is not None


@pytest.mark.parametrize("data", [b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"a\xe2\x82"])
def test_what_is_not_text(data: bytes) -> None:
    wire = HeartbeatRequest(group_id="x" * len(data)).encode(version=0)
    assert check(HeartbeatRequest, 0, wire.replace(b"x" * len(data), data)) is None


def test_bytes_of_all_lengths() -> None:
    for length in (0, 1, 2, 3, 4, 5, 6, 7, 255, 70_000):
        metadata = bytes(n * 89 & 255 for n in range(length))
        message = JoinGroupRequest(protocols=[JoinGroupRequestProtocol(name="r", metadata=metadata)])
        for version in (0, 9):
            assert check(JoinGroupRequest, version, message.encode(version=version)) is not None


def test_uuids() -> None:
    for number in (0, 1, (1 << 128) - 1, 0xFBFF_FFFF << 96 | 0xFE):
        message = MetadataRequest(topics=[MetadataRequestTopic(topic_id=UUID(int=number), name=None)])
        assert check(MetadataRequest, 12, message.encode(version=12)) is not None


@pytest.mark.parametrize(
    "number", [0.0, -0.0, 1.0, 1e16, 1e-7, 5e-324, 1.7976931348623157e308, 0.1, float("inf"), float("-inf")]
)
def test_floats(number: float) -> None:
    cls, version, name = next(
        (cls, version, field.name)
        for cls in MESSAGES
        for version in cls.versions
        for field in cls._layout_.at(version).inline
        if field.type == "float64" and not field.array
    )
    message = cls(**{name: number})
    assert check(cls, version, message.encode(version=version)) is not None
    for bits in (0x7FF8_0000_0000_0000, 0xFFF8_0000_0000_0001):
        (nan,) = struct.unpack(">d", bits.to_bytes(8, "big"))
        wire = cls(**{name: nan}).encode(version=version)
        text = encode(to_json(cls.decode(wire, version=version), version=version))
        assert transcriber(cls, version).transcribe(wire)[0] == text


def test_tagged_fields_are_where_the_message_has_them() -> None:
    partition = PartitionData(
        partition_index=3, high_watermark=9, records=b"r", current_leader=LeaderIdAndEpoch(leader_id=5),
        error_code=6,
    )  # fmt: skip
    topic = FetchableTopicResponse(topic_id=UUID(int=7), partitions=[partition, PartitionData(), partition])
    result = check(FetchResponse, 16, FetchResponse(responses=[topic, topic]).encode(version=16))
    assert result is not None
    assert result[1] == HAS_CODES
    request = FetchRequest(cluster_id="c", replica_state=ReplicaState(replica_id=4), max_wait_ms=5)
    result = check(FetchRequest, 15, request.encode(version=15))
    assert result is not None
    assert result[0].startswith('{"clusterId":"c","replicaState":{"replicaId":4,')


def test_tagged_fields_in_another_order_than_their_numbers() -> None:
    """Of four, the one with the second-highest number is the last one in the text."""
    tagged = {"previous_producer_id": 1, "next_producer_id": 2, "client_transaction_version": 3,
              "next_producer_epoch": 4}  # fmt: skip
    for count in range(len(tagged) + 1):
        for names in combinations(tagged, count):
            values: dict[str, Any] = {name: tagged[name] for name in names}
            message = TransactionLogValue(producer_id=9, transaction_partitions=[], **values)
            result = check(TransactionLogValue, 1, message.encode(version=1))
            assert result is not None
            assert result[1] == 0


def test_tagged_fields_at_their_defaults_are_left_out_and_told() -> None:
    wire = FetchRequest().encode(version=15)
    assert wire.endswith(b"\0")
    replica_state = bytes.fromhex("ffffffffffffffffffffffff00")
    for section in (b"\1\0\1\0", b"\1\1\x0d" + replica_state, b"\2\0\1\0\1\x0d" + replica_state):
        result = check(FetchRequest, 15, wire[:-1] + section)
        assert result == (encode(to_json(FetchRequest(), version=15)), OTHERWISE)
    for section in (b"\2\0\1\0\0\1\0", b"\2\1\x0d" + replica_state + b"\0\1\0", b"\1\0\2\0\0", b"\1\0\0"):
        assert check(FetchRequest, 15, wire[:-1] + section) is None


def test_unknown_tagged_fields_are_left_to_python() -> None:
    message = HeartbeatRequest(group_id="g", tags={7: b"x"})
    assert check(HeartbeatRequest, 4, message.encode(version=4)) is None


def test_the_header_is_read_over() -> None:
    body = HeartbeatResponse(error_code=27).encode(version=4)
    header = RequestHeader(request_api_key=12, request_api_version=4, correlation_id=1, client_id="é")
    head = transcriber(RequestHeader, 2)
    both = transcriber(HeartbeatResponse, 4)
    assert both.transcribe(header.encode(version=2) + body, head) == both.transcribe(body)
    assert both.transcribe(body)[1] == HAS_CODES
    header.tags = {3: b""}
    assert both.transcribe(header.encode(version=2) + body, head) is None
    assert both.transcribe(header.encode(version=2)[:-4], head) is None


def test_budgets_are_the_decoders() -> None:
    updates = [FeatureUpdateKey(feature=str(n)) for n in range(50)]
    wire = UpdateFeaturesRequest(feature_updates=updates).encode(version=1)
    seen = set()
    for elements in (0, 49, 50, 51):
        for memory in (0, 1000, 5_000, 10_000, 20_000, 1 << 20):
            with limits(elements=elements, memory=memory, memory_factor=16):
                seen.add(check(UpdateFeaturesRequest, 1, wire) is None)
    assert seen == {True, False}


def test_the_text_grows_with_the_bytes() -> None:
    def size(count: int) -> int:
        partition = PartitionData(current_leader=LeaderIdAndEpoch(leader_id=5))
        topics = [FetchableTopicResponse(partitions=[partition] * 10) for _ in range(count)]
        result = check(FetchResponse, 16, FetchResponse(responses=topics).encode(version=16))
        assert result is not None
        return len(result[0])

    assert size(400) - size(200) == 2 * (size(200) - size(100))


def test_rows_that_do_not_go_with_the_program_are_refused() -> None:
    assert native is not None
    program = layout_program(HeartbeatResponse._layout_.at(4))
    assert program is not None
    good = ((b'"a":', False, 0, None, None), (b'"b":', True, 1, None, None))
    made = native.Transcriber(program, good)
    assert made.transcribe(HeartbeatResponse(error_code=1).encode(version=4)) == ('{"a":0,"b":1}', HAS_CODES)
    bad: list[Any] = [
        (), good[:1], (*good, good[0]), (good[0], (b'"b":', True, 9, None, None)),
        (good[0], (b'"b":', True, -1, None, None)), ((b'"a":', True, 0, None, None), good[1]),
        (good[0], (b'"b":', True, 1, "default", None)), (good[0], (b'"b":', True, 1, None, made)),
        (good[0], ("b", True, 1, None, None)), (good[0], [b'"b":', True, 1, None, None]),
        (good[0], (b'"b":', True)), (good[0], (b"x" * 70_000, True, 1, None, None)),
    ]  # fmt: skip
    for rows in bad:
        with pytest.raises((TypeError, ValueError)):
            native.Transcriber(program, rows)
    with pytest.raises(TypeError):
        native.Transcriber(None, good)
    for arguments in ((), (b"", None, None), (b"", 1), ("text",), (1,)):
        with pytest.raises(TypeError):
            made.transcribe(*arguments)
