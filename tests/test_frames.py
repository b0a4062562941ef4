"""Whole frames: headers by version, sizes, and where refusals point."""

from __future__ import annotations

import pickle
import struct

import pytest

from coordwire import (
    DecodeError,
    EncodeError,
    LimitExceeded,
    Malformed,
    Truncated,
    UnknownApi,
    UnsupportedVersion,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
    limits,
)
from coordwire.messages import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    ControlledShutdownRequest,
    HeartbeatRequest,
    HeartbeatResponse,
    RequestHeader,
)
from coordwire.messages.api_versions import ApiVersion
from coordwire.versions import known_versions

HEARTBEAT = HeartbeatRequest(group_id="payments", generation_id=3, member_id="m")
RAW = encode_request(HEARTBEAT, version=4, correlation_id=7, client_id="till-3")


def test_a_request_comes_back_with_its_header() -> None:
    frame = decode_request(RAW)
    assert frame.message == HEARTBEAT
    assert (frame.api_key, frame.api_version, frame.correlation_id, frame.client_id) == (12, 4, 7, "till-3")
    assert frame.size == len(RAW) - 4
    assert decode_request(memoryview(RAW)) == decode_request(bytearray(RAW)) == frame


def test_bytes_of_a_known_frame() -> None:
    assert RAW.hex(" ") == (
        "00 00 00 22 00 0c 00 04 00 00 00 07 00 06 74 69 6c 6c 2d 33 00 "
        "09 70 61 79 6d 65 6e 74 73 00 00 00 03 02 6d 00 00"
    )


@pytest.mark.parametrize(
    ("message", "version", "expected"),
    [
        (HEARTBEAT, 0, "000c000000000001 0001 61"),
        (HEARTBEAT, 4, "000c000400000001 0001 61 00"),
        (ControlledShutdownRequest(), 0, "0007000000000001"),
        (ControlledShutdownRequest(), 1, "0007000100000001 0001 61"),
    ],
)
def test_request_headers_by_version(message: HeartbeatRequest, version: int, expected: str) -> None:
    raw = encode_request(message, version=version, correlation_id=1, client_id="a")
    assert raw[4 : len(raw) - len(message.encode(version=version))] == bytes.fromhex(expected)


def test_response_headers_by_version() -> None:
    assert encode_response(HeartbeatResponse(), version=0, correlation_id=1).hex() == "00000006000000010000"
    flexible = encode_response(HeartbeatResponse(), version=4, correlation_id=1)
    assert flexible.hex() == "0000000c000000010000000000000000"
    answer = encode_response(ApiVersionsResponse(), version=3, correlation_id=1)
    assert answer[8:10] == b"\0\0"  # the error code: this header is never flexible


def test_header_tags_are_kept() -> None:
    raw = encode_request(HEARTBEAT, version=4, correlation_id=7, header_tags={9: b"x"})
    assert decode_request(raw).header.tags == {9: b"x"}
    raw = encode_response(HeartbeatResponse(), version=4, correlation_id=7, header_tags={9: b"x"})
    assert decode_response(raw, api_key=12, version=4).header.tags == {9: b"x"}


@pytest.mark.parametrize("cut", range(len(RAW)))
def test_every_prefix_is_refused(cut: int) -> None:
    with pytest.raises(Truncated) as error_info:
        decode_request(RAW[:cut])
    assert 0 <= error_info.value.position <= cut
    with pytest.raises(DecodeError) as inner:  # and with a size prefix that fits
        decode_request(struct.pack(">i", max(cut - 4, 0)) + RAW[4:cut])
    assert 0 <= inner.value.position <= max(cut - 4, 0)
    assert getattr(inner.value, "missing", 0) <= len(RAW) - max(cut, 4)


def test_a_refusal_shows_how_much_is_missing() -> None:
    cut = RAW.index(b"payments") + 2  # within a value whose length is known
    with pytest.raises(Truncated) as error_info:
        decode_request(struct.pack(">i", cut - 4) + RAW[4:cut])
    assert error_info.value.missing == len("payments") - 2
    assert pickle.loads(pickle.dumps(error_info.value)).missing == error_info.value.missing


def test_what_stands_behind_a_frame_is_refused() -> None:
    with pytest.raises(Malformed, match="1 byte after the frame at byte 34"):
        decode_request(RAW + b"!")


def test_unknown_apis_and_versions() -> None:
    newest = HeartbeatRequest.versions[-1]
    with pytest.raises(UnknownApi, match="api key 999 is unknown at byte 0 in request_api_key"):
        decode_request(struct.pack(">ihhihx", 11, 999, 0, 1, 0))
    with pytest.raises(UnsupportedVersion, match=rf"no version 99: it has 0 to {newest}\b") as error_info:
        decode_request(struct.pack(">ihhihx", 11, 12, 99, 5, -1))
    assert isinstance(error_info.value.partial, RequestHeader)
    assert error_info.value.partial.correlation_id == 5
    assert error_info.value.path == "request_api_version"
    with pytest.raises(UnknownApi):
        decode_response(b"\0\0\0\4\0\0\0\1", api_key=999, version=0)
    with pytest.raises(UnsupportedVersion):
        decode_response(b"\0\0\0\4\0\0\0\1", api_key=12, version=99)


def test_a_refusal_points_behind_the_size_prefix_and_keeps_what_was_read() -> None:
    data = bytearray(RAW)
    data[-1] = 200
    with pytest.raises(Truncated) as error_info:
        decode_request(bytes(data))
    assert error_info.value.partial == HEARTBEAT
    assert error_info.value.position == len(RAW) - 4


def test_error_35_is_version_0_whatever_was_asked() -> None:
    raw = encode_response(ApiVersionsResponse(error_code=35), version=0, correlation_id=1)
    frame = decode_response(raw, api_key=18, version=4)
    assert (frame.api_version, frame.body_version) == (4, 0)
    own = encode_response(ApiVersionsResponse(error_code=35), version=3, correlation_id=1)
    assert decode_response(own, api_key=18, version=3).body_version == 3


@pytest.mark.parametrize("version", [5, 6, 99])
@pytest.mark.parametrize("strict", [True, False])
def test_error_35_is_read_whatever_version_was_asked(version: int, strict: bool) -> None:
    """The first is what Kafka 3.9.2 answers to version 5; the others no release has had yet."""
    raw = bytes.fromhex("00000010 00000000 0023 00000001 0012 0000 0004")
    frame = decode_response(raw, api_key=18, version=version, strict=strict)
    assert (frame.api_version, frame.body_version) == (version, 0)
    offered = ApiVersion(api_key=18, min_version=0, max_version=4)
    assert frame.message == ApiVersionsResponse(error_code=35, api_keys=[offered])
    assert encode_response(frame.message, version=0, correlation_id=0) == raw


def test_another_answer_in_an_unknown_version_is_refused() -> None:
    last = known_versions(18).last
    raw = encode_response(ApiVersionsResponse(error_code=129), version=last, correlation_id=1)
    assert decode_response(raw, api_key=18, version=last).body_version == last
    with pytest.raises(UnsupportedVersion, match=f"has no version {last + 1}: it has 0 to {last}"):
        decode_response(raw, api_key=18, version=last + 1)


def test_a_refusal_that_is_broken_is_refused() -> None:
    raw = encode_response(ApiVersionsResponse(error_code=35), version=0, correlation_id=1)
    longer = (len(raw) - 3).to_bytes(4, "big") + raw[4:] + b"?"
    shorter = (len(raw) - 5).to_bytes(4, "big") + raw[4:-1]
    for broken in (longer, shorter):
        with pytest.raises(DecodeError, match=r"trailing|ends|needs|left"):
            decode_response(broken, api_key=18, version=known_versions(18).last + 1)


def test_sizes_beyond_the_budget() -> None:
    with pytest.raises(LimitExceeded), limits(frame=10):
        decode_request(RAW)
    with pytest.raises(Malformed, match="size prefix is -1"):
        decode_request(b"\xff\xff\xff\xff")


def test_a_message_keeps_to_its_direction() -> None:
    with pytest.raises(EncodeError, match="expected a response"):
        encode_response(ApiVersionsRequest(), version=0, correlation_id=1)
    with pytest.raises(EncodeError):
        encode_request(HEARTBEAT, version=4, correlation_id=2**31)


def test_a_response_needs_the_api_key_or_the_class_of_its_request() -> None:
    wire = encode_response(HeartbeatResponse(), version=4, correlation_id=7)
    assert decode_response(wire, request_class=HeartbeatRequest, version=4).message == HeartbeatResponse()
    for given in ({}, {"api_key": 12, "request_class": HeartbeatRequest}):
        with pytest.raises(TypeError, match="either api_key or request_class"):
            decode_response(wire, version=4, **given)  # type: ignore[call-overload]
    for other, name in ((HeartbeatResponse, "HeartbeatResponse"), (5, "int object")):
        with pytest.raises(TypeError, match=f"expected a request's class, got {name}"):
            decode_response(wire, request_class=other, version=4)  # type: ignore[arg-type]
    with pytest.raises(UnknownApi, match="expected an int as api key, got str"):
        decode_response(wire, api_key="12", version=4)  # type: ignore[call-overload]
