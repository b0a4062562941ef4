"""The native steps of a connection: what they leave to Python, and that they keep and lose nothing."""

from __future__ import annotations

import gc
import sys
from collections import deque
from typing import Any

import pytest

from coordwire import Connection, limits
from coordwire._speedups import native
from coordwire.connection import kafka
from coordwire.connection.events import RequestReceived, ResponseReceived, SentRequest
from coordwire.connection.receive_buffer import ReceiveBuffer
from coordwire.frames import encode_request, encode_response, request_framer, response_framer
from coordwire.messages import (
    ApiVersionsRequest,
    HeartbeatRequest,
    HeartbeatResponse,
    ProduceRequest,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)

pytestmark = pytest.mark.skipif(native is None, reason="the native engine isn't built, or Python is forced")

HEARTBEAT = HeartbeatRequest(group_id="payments", generation_id=3, member_id="m" * 40)
REQUEST = encode_request(HEARTBEAT, version=4, correlation_id=7, client_id="till-3")
RESPONSE = encode_response(HeartbeatResponse(error_code=27), version=4, correlation_id=7)
SENT = SentRequest(HEARTBEAT, 12, 4, 7)
exchange: Any = kafka._exchange


def holding(data: bytes, *, ended: bool = False) -> ReceiveBuffer:
    buffer = ReceiveBuffer()
    buffer.append(data) if data else None
    if ended:
        buffer.append(b"")
    return buffer


def test_a_request_is_read_in_place() -> None:
    buffer, owed = holding(REQUEST + REQUEST[:9]), deque[object]()
    event = exchange.next_request(buffer, owed)
    assert isinstance(event, RequestReceived)
    assert event == RequestReceived(event.frame, True)
    assert event.request == HEARTBEAT
    assert list(owed) == [event.frame.header]  # type: ignore[union-attr]
    assert (buffer.chunk[buffer.position :], len(buffer)) == (REQUEST[:9], 9)
    assert exchange.next_request(buffer, owed) is False
    assert len(buffer) == 9
    assert gc.is_tracked(event)


def test_a_response_is_read_in_place() -> None:
    buffer, waiting = holding(RESPONSE), {7: SENT}
    event = exchange.next_response(buffer, waiting)
    assert isinstance(event, ResponseReceived)
    assert event.request is SENT
    assert event.response == HeartbeatResponse(error_code=27)
    assert (waiting, buffer.chunk, buffer.position) == ({}, b"", 0)
    assert exchange.next_response(buffer, waiting) is None


@pytest.mark.parametrize(
    "data",
    [
        REQUEST[:3], REQUEST[:-1], b"\0\0\0\0", b"\0\0\0\x02\0\x0c", b"\xff\xff\xff\xff" + REQUEST[4:],
        b"\x7f\xff\xff\xff" + REQUEST[4:], REQUEST[:4] + b"\x03\xe7" + REQUEST[6:],
        encode_request(ProduceRequest(acks=1), version=9, correlation_id=1),
        encode_request(SaslHandshakeRequest(), version=0, correlation_id=1),
    ],
)  # fmt: skip
def test_requests_that_are_left_to_python(data: bytes) -> None:
    buffer, owed = holding(data), deque[object]()
    assert exchange.next_request(buffer, owed) is False
    assert (len(buffer), buffer.position, len(owed)) == (len(data), 0, 0)


@pytest.mark.parametrize(
    ("data", "waiting"),
    [
        (RESPONSE[:7], {7: SENT}),
        (RESPONSE[:-1], {7: SENT}),
        (RESPONSE, {}),
        (RESPONSE, {8: SENT}),
        (RESPONSE, {7: HEARTBEAT}),
        (RESPONSE, {7: SentRequest(HEARTBEAT, 999, 4, 7)}),
        (RESPONSE, {7: SentRequest(HEARTBEAT, "12", 4, 7)}),  # type: ignore[arg-type]
        (RESPONSE, {7: SentRequest(HEARTBEAT, 12, 1 << 70, 7)}),
        (RESPONSE, {7: SentRequest(ApiVersionsRequest(), 18, 4, 7)}),
        (RESPONSE, [SENT]),
        (b"\0\0\0\x02" + RESPONSE[4:], {7: SENT}),
    ],
)
def test_responses_that_are_left_to_python(data: bytes, waiting: Any) -> None:
    buffer, before = holding(data), repr(waiting)
    assert exchange.next_response(buffer, waiting) is False
    assert (len(buffer), buffer.position, repr(waiting)) == (len(data), 0, before)


def test_buffers_that_are_left_to_python() -> None:
    ended, other, negative, text = holding(b"", ended=True), object(), holding(REQUEST), holding(REQUEST)
    negative.position = -1
    text.chunk = "text"  # type: ignore[assignment]
    beyond, huge, unset = holding(REQUEST), holding(REQUEST), holding(REQUEST)
    beyond.position, huge.position = len(REQUEST) + 1, 1 << 70
    del unset.chunk
    for buffer in (ended, other, negative, text, beyond, huge, unset):
        assert exchange.next_request(buffer, deque()) is False
        assert exchange.next_response(buffer, {}) is False
    with limits(frame=len(REQUEST) - 5):
        assert exchange.next_request(holding(REQUEST), deque()) is False


def test_messages_that_are_left_to_python() -> None:
    waiting: dict[int, SentRequest] = {3: SENT}
    for message, version, number in (
        (HeartbeatResponse(), 4, 7), (HEARTBEAT, 99, 7), (HEARTBEAT, None, 7), (HEARTBEAT, True, 7),
        (HEARTBEAT, 4, 3), (HEARTBEAT, 4, 1 << 40), (HEARTBEAT, 4, "7"), (5, 4, 7),
        (ProduceRequest(acks=1), 9, 7), (SaslHandshakeRequest(), 1, 7),
        (HeartbeatRequest(group_id="\ud800"), 4, 7),
    ):  # fmt: skip
        assert exchange.write_request(message, version, number, None, waiting) is None
        assert waiting == {3: SENT}
    assert exchange.write_request(HEARTBEAT, 4, 7, None, [SENT]) is None


def test_answers_that_are_left_to_python() -> None:
    owed: deque[Any] = deque()
    event = exchange.next_request(holding(REQUEST), owed)
    request = exchange.next_request(holding(REQUEST), deque())
    handshake = RequestReceived(request.frame)
    broken = RequestReceived(5)  # type: ignore[arg-type]
    for message, version, asked, queue in (
        (HEARTBEAT, None, event, owed), (HeartbeatResponse(), 99, event, owed), (5, None, event, owed),
        (HeartbeatResponse(), "4", event, owed), (SaslHandshakeResponse(), None, event, owed),
        (HeartbeatResponse(), None, request, owed), (HeartbeatResponse(), None, handshake, owed),
        (HeartbeatResponse(), None, broken, owed), (HeartbeatResponse(), None, None, owed),
        (HeartbeatResponse(), None, event, deque()), (HeartbeatResponse(), None, event, 5),
    ):  # fmt: skip
        assert exchange.write_response(message, version, asked, queue) is None
        assert len(owed) == 1
    for name in ("header", "api_key", "api_version"):
        frame = exchange.next_request(holding(REQUEST), deque()).frame
        setattr(frame, name, "another")
        assert exchange.write_response(HeartbeatResponse(), None, RequestReceived(frame), owed) is None
        delattr(frame, name)
        assert exchange.write_response(HeartbeatResponse(), None, RequestReceived(frame), owed) is None
    assert exchange.write_response(HeartbeatResponse(error_code=27), None, event, owed) == RESPONSE
    assert not owed


def test_what_is_wrong_is_refused() -> None:
    assert native is not None
    classes = (ReceiveBuffer, SentRequest, RequestReceived, ResponseReceived)
    for arguments in (
        (), (request_framer, response_framer), (response_framer, request_framer, *classes),
        (request_framer, response_framer, *classes[::-1]), (request_framer, response_framer, *[object] * 4),
        (request_framer, response_framer, *[dict] * 4), (5, response_framer, *classes),
    ):  # fmt: skip
        with pytest.raises((TypeError, AttributeError)):
            native.Exchange(*arguments)
    for name in ("next_request", "next_response", "write_request", "write_response"):
        with pytest.raises(TypeError, match=f"{name}\\(\\) takes"):
            getattr(exchange, name)()


def test_nothing_is_kept() -> None:
    client, server = Connection("client", client_id="till-3"), Connection("server")
    member = "a member id that is longer than what is interned: " + "m" * 96
    request, response = HeartbeatRequest(member_id=member), HeartbeatResponse()

    def beat() -> None:
        for _ in range(50):
            data = client.send(request, version=4)
            server.receive_data(data[:9])
            assert server.next_event() is None
            server.receive_data(data[9:] + data[:2])
            (event,) = server.events()
            assert isinstance(event, RequestReceived)
            server._endpoint.buffer.__init__()  # type: ignore[misc]
            client.receive_data(server.send(response, request=event))
            assert isinstance(client.next_event(), ResponseReceived)

    beat()
    counted = (request, response, member, client, server, HeartbeatRequest, ResponseReceived, RequestReceived)
    gc.collect()
    before = [sys.getrefcount(one) for one in counted]
    gc.freeze()  # what other tests left may go meanwhile; only what is made from here on is counted
    try:
        beat()
        gc.collect()
        made = len(gc.get_objects())
    finally:
        gc.unfreeze()
    assert [sys.getrefcount(one) for one in counted] == before
    assert made < 20
