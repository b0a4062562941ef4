"""Both sides of a connection: chunking, pipelining, fallback, SASL tokens, and what must not raise."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import nullcontext
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from coordwire import Connection, EncodeError, Role, limits
from coordwire._speedups import native
from coordwire.connection.events import (
    ConnectionClosed,
    ConnectionFailed,
    Event,
    FrameRefused,
    RequestReceived,
    ResponseReceived,
    TokenReceived,
    VersionsRefused,
)
from coordwire.connection.kafka import KafkaClient
from coordwire.errors import DecodeError, Truncated, UnknownApi, UnsupportedVersion
from coordwire.frames import decode_request, encode_request, encode_response
from coordwire.messages import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    MetadataRequest,
    ProduceRequest,
    ProduceResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from coordwire.messages.api_versions import ApiVersion
from tests.connections import in_python


@pytest.fixture(params=["native", "python"], autouse=True)
def engine(request: pytest.FixtureRequest) -> Iterator[None]:
    """Each test runs on the fast path and on the slow one."""
    if native is None and request.param == "native":
        pytest.skip("the native engine isn't built, or Python is forced")
    with in_python() if request.param == "python" else nullcontext():
        yield


def feed(connection: Connection, data: bytes) -> list[Event]:
    connection.receive_data(data)
    return list(connection.events())


def heartbeat(number: int) -> HeartbeatRequest:
    return HeartbeatRequest(group_id="payments", generation_id=number, member_id="m")


def one_request(connection: Connection, data: bytes) -> RequestReceived:
    (event,) = feed(connection, data)
    assert isinstance(event, RequestReceived)
    return event


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.integers(1, 40), max_size=60), st.integers(1, 8))
def test_chunk_boundaries_never_matter(cuts: list[int], count: int) -> None:
    client, server = Connection(Role.CLIENT, client_id="till-3"), Connection(Role.SERVER)
    data = b"".join(client.send(heartbeat(n), version=n % 5) for n in range(count))
    requests: list[Event] = []
    answers = b""
    at = 0
    for cut in [*cuts, len(data)]:
        if not data[at : at + cut]:
            break
        for event in feed(server, data[at : at + cut]):
            assert isinstance(event, RequestReceived)
            requests.append(event)
            answers += server.send(HeartbeatResponse(error_code=len(requests)), request=event)
        at += cut
    assert [r.request for r in requests if isinstance(r, RequestReceived)] == [
        heartbeat(n) for n in range(count)
    ]
    responses = [event for byte in answers for event in feed(client, bytes([byte]))]
    assert [
        (r.request.message, r.frame.correlation_id, r.response)
        for r in responses
        if isinstance(r, ResponseReceived)
    ] == [(heartbeat(n), n, HeartbeatResponse(error_code=n + 1)) for n in range(count)]


def test_the_client_id_and_header_reach_the_server() -> None:
    client, server = Connection(Role.CLIENT, client_id="till-3"), Connection(Role.SERVER)
    event = one_request(server, client.send(heartbeat(3), version=4))
    assert event.frame.client_id == "till-3"
    assert event.frame.api_name == "Heartbeat"
    assert event.frame.api_version == 4


def test_produce_without_acks_waits_for_no_answer() -> None:
    client, server = Connection(Role.CLIENT), Connection(Role.SERVER)
    event = one_request(server, client.send(ProduceRequest(acks=0, timeout_ms=1), version=9))
    assert not event.expects_response
    with pytest.raises(EncodeError, match="waits for no answer"):
        server.send(ProduceResponse(), request=event)
    after = one_request(server, client.send(heartbeat(1), version=4))
    (got,) = feed(client, server.send(HeartbeatResponse(), request=after))
    assert isinstance(got, ResponseReceived)
    assert got.request.message == heartbeat(1)


def test_a_newer_api_versions_request_is_refused_in_version_0() -> None:
    client, server = Connection(Role.CLIENT), Connection(Role.SERVER)
    event = one_request(server, client.send(ApiVersionsRequest(), version=4))
    refusal = ApiVersionsResponse(error_code=35, api_keys=[ApiVersion(api_key=18, max_version=3)])
    (got,) = feed(client, server.send(refusal, request=event, version=0))
    assert isinstance(got, VersionsRefused)
    assert got.retry_with == 3
    assert got.response == refusal


@pytest.mark.parametrize(
    ("body", "readable"),
    [
        ("002300000000", True),
        ("002300000001001200000003", True),
        ("00230100120000000200000000", False),  # librdkafka's mock broker: neither version 0 nor 3
    ],
)
def test_every_refusal_seen_in_the_field_gives_the_fallback(body: str, readable: bool) -> None:
    client = Connection(Role.CLIENT)
    client.send(ApiVersionsRequest(client_software_name="x"), version=3)
    data = struct.pack(">i", 0) + bytes.fromhex(body)
    (got,) = feed(client, struct.pack(">i", len(data)) + data)
    assert isinstance(got, VersionsRefused)
    assert isinstance(got.response, ApiVersionsResponse)
    assert got.response.error_code == 35
    assert (got.error is None) is readable


def test_a_server_reports_a_version_that_it_does_not_know() -> None:
    frame = bytearray(encode_request(ApiVersionsRequest(), version=3, correlation_id=9, client_id="new"))
    frame[6:8] = struct.pack(">h", 77)
    server = Connection(Role.SERVER)
    (event,) = feed(server, bytes(frame))
    assert isinstance(event, FrameRefused)
    assert event.correlation_id == 9
    assert "no version 77" in event.error.reason


def test_answers_keep_the_order_of_their_requests() -> None:
    client, server = Connection(Role.CLIENT), Connection(Role.SERVER)
    data = client.send(heartbeat(1), version=4) + client.send(heartbeat(2), version=4)
    first, second = feed(server, data)
    assert isinstance(first, RequestReceived)
    assert isinstance(second, RequestReceived)
    with pytest.raises(EncodeError, match="another request waits"):
        server.send(HeartbeatResponse(), request=second)
    server.send(HeartbeatResponse(), request=first)
    server.send(HeartbeatResponse(), request=second)
    with pytest.raises(EncodeError, match="no answer"):
        server.send(HeartbeatResponse(), request=second)


def test_a_message_that_cannot_be_encoded_changes_nothing() -> None:
    client = Connection(Role.CLIENT)
    with pytest.raises(EncodeError):
        client.send(HeartbeatRequest(group_id=None), version=4)  # type: ignore[arg-type]
    assert decode_request(client.send(heartbeat(1), version=4)).correlation_id == 0


def test_sasl_tokens_are_sent_between_the_handshake_and_the_next_request() -> None:
    client, server = Connection(Role.CLIENT), Connection(Role.SERVER)
    event = one_request(server, client.send(SaslHandshakeRequest(mechanism="PLAIN"), version=0))
    feed(client, server.send(SaslHandshakeResponse(mechanisms=["PLAIN"]), request=event))
    with pytest.raises(EncodeError, match="send expects state OPEN, got AUTHENTICATING"):
        client.send(heartbeat(1), version=4)
    assert feed(server, client.send_token(b"\0me\0secret")) == [TokenReceived(token=b"\0me\0secret")]
    assert feed(client, server.send_token(b"")) == [TokenReceived(token=b"")]
    client.end_tokens()
    server.end_tokens()
    assert one_request(server, client.send(heartbeat(1), version=4)).request == heartbeat(1)
    with pytest.raises(EncodeError, match="send_token expects state AUTHENTICATING, got OPEN"):
        client.send_token(b"late")


def test_a_newer_handshake_keeps_its_headers() -> None:
    client, server = Connection(Role.CLIENT), Connection(Role.SERVER)
    event = one_request(server, client.send(SaslHandshakeRequest(mechanism="PLAIN"), version=1))
    feed(client, server.send(SaslHandshakeResponse(mechanisms=["PLAIN"]), request=event))
    assert one_request(server, client.send(heartbeat(1), version=4)).request == heartbeat(1)


def test_librdkafkas_three_stray_bytes_are_served_and_reported() -> None:
    frame = encode_request(MetadataRequest(), version=12, correlation_id=1)
    stray = struct.pack(">i", len(frame) - 1) + frame[4:] + b"\0\0\0"
    event = one_request(Connection(Role.SERVER), stray)
    assert [deviation.reason for deviation in event.deviations] == ["3 trailing bytes"]
    (refused,) = feed(Connection(Role.SERVER, strict=True), stray)
    assert isinstance(refused, FrameRefused)
    assert refused.error.position == len(frame) - 4


def test_an_answer_that_nobody_waits_for() -> None:
    client = Connection(Role.CLIENT)
    (event,) = feed(client, encode_response(HeartbeatResponse(), version=4, correlation_id=5))
    assert isinstance(event, FrameRefused)
    assert event.correlation_id == 5


def test_a_refused_frame_is_not_the_end() -> None:
    client, server = Connection(Role.CLIENT), Connection(Role.SERVER)
    bad = struct.pack(">ihhihs", 11, 999, 0, 1, 1, b"x")
    refused, good = feed(server, bad + client.send(heartbeat(1), version=4))
    assert isinstance(refused, FrameRefused)
    assert isinstance(good, RequestReceived)


@pytest.mark.parametrize(
    ("body", "error", "known"),
    [
        (struct.pack(">hhih", 15, 5, 7, -1) + b"\0\x02\x09g", Truncated, (15, 5, 7)),  # the array's elements
        (struct.pack(">hhih", 15, 4, 7, -1) + b"\0\0\0\x01\0\x09g", Truncated, (15, 4, 7)),  # a group's name
        (struct.pack(">hhi", 15, 4, 7), Truncated, (15, 4, 7)),  # the client id
        (struct.pack(">hhih", 999, 1, -2, -1), UnknownApi, (999, 1, -2)),
        (struct.pack(">hhih", 18, 99, 2**31 - 1, -1), UnsupportedVersion, (18, 99, 2**31 - 1)),
        (struct.pack(">hhi", 15, 4, 7)[:7], Truncated, (None, None, None)),
        (b"", Truncated, (None, None, None)),
    ],
)
@pytest.mark.parametrize("strict", [False, True])
def test_what_a_refused_request_was(
    body: bytes, error: type[DecodeError], known: tuple[object, ...], strict: bool
) -> None:
    (event,) = feed(Connection("server", strict=strict), struct.pack(">i", len(body)) + body)
    assert isinstance(event, FrameRefused)
    assert type(event.error) is error
    assert (event.api_key, event.api_version, event.correlation_id) == known


def test_a_version_of_api_versions_that_is_not_known_is_answered_in_version_0() -> None:
    client, server = Connection("client"), Connection("server")
    request = client.send(ApiVersionsRequest(), version=4)
    too_new = request[:6] + struct.pack(">h", 99) + request[8:]
    (refused,) = feed(server, too_new)
    assert isinstance(refused, FrameRefused)
    answer = ApiVersionsResponse(error_code=35, api_keys=[ApiVersion(api_key=18, max_version=3)])
    (event,) = feed(client, server.send(answer, request=refused))
    assert isinstance(event, VersionsRefused)
    assert event.retry_with == 3


def test_the_answer_to_a_refused_request_waits_for_its_turn() -> None:
    client, server = Connection("client"), Connection("server")
    data = client.send(heartbeat(1), version=4) + struct.pack(">ihhihi", 14, 12, 3, 9, -1, 5)
    first, refused, second = feed(server, data + client.send(heartbeat(2), version=4))
    assert isinstance(first, RequestReceived)
    assert isinstance(refused, FrameRefused)
    assert isinstance(second, RequestReceived)
    answer = HeartbeatResponse(error_code=42)
    with pytest.raises(EncodeError, match="another request waits"):
        server.send(answer, request=refused)
    sent = server.send(HeartbeatResponse(), request=first)
    with pytest.raises(EncodeError, match="doesn't answer a request of api key 12"):
        server.send(ProduceResponse(), request=refused)
    assert server.send(answer, request=refused) == encode_response(answer, version=3, correlation_id=9)
    assert len(feed(client, sent + server.send(HeartbeatResponse(), request=second))) == 2


def test_a_frame_too_short_for_a_request_has_no_answer() -> None:
    server = Connection("server")
    (refused,) = feed(server, b"\0\0\0\x02\0\x0c")
    assert isinstance(refused, FrameRefused)
    with pytest.raises(EncodeError, match="too short"):
        server.send(HeartbeatResponse(), request=refused)


def test_a_frame_that_has_begun_is_seen() -> None:
    data = Connection("client").send(heartbeat(1), version=4)
    server = Connection("server")
    assert server.unread == 0
    for byte in data[:-1]:
        assert feed(server, bytes([byte])) == []
    assert server.unread == len(data) - 1
    assert len(feed(server, data[-1:] + b"\0")) == 1
    assert server.unread == 1


@pytest.mark.parametrize("size", [-1, -(2**31), 100 * 2**20 + 1, 2**31 - 1])
def test_a_size_that_cannot_be_ends_the_stream(size: int) -> None:
    server = Connection(Role.SERVER)
    (event,) = feed(server, struct.pack(">i", size))
    assert isinstance(event, ConnectionFailed)
    assert feed(server, b"more") == []


def test_the_frame_budget_is_the_callers() -> None:
    data = Connection(Role.CLIENT).send(heartbeat(1), version=4)
    with limits(frame=10):
        (event,) = feed(Connection(Role.SERVER), data)
    assert isinstance(event, ConnectionFailed)


def test_closing_gives_what_was_left() -> None:
    client = Connection(Role.CLIENT)
    client.send(heartbeat(7), version=4)
    client.receive_data(b"\0\0\0\x09ab")
    client.receive_data(b"")
    (event,) = client.events()
    assert isinstance(event, ConnectionClosed)
    assert event.remainder == b"\0\0\0\x09ab"
    assert [sent.message for sent in event.unanswered] == [heartbeat(7)]
    assert client.next_event() is None


def test_each_side_keeps_to_its_role() -> None:
    client, server = Connection(Role.CLIENT), Connection(Role.SERVER)
    event = one_request(server, client.send(heartbeat(1), version=4))
    with pytest.raises(EncodeError, match="a client sends requests"):
        client.send(heartbeat(1))
    with pytest.raises(EncodeError, match="a server sends responses"):
        server.send(HeartbeatResponse(), version=4)
    with pytest.raises(EncodeError, match="doesn't answer"):
        server.send(ProduceResponse(), request=event)
    with pytest.raises(EncodeError, match="a client sends requests"):
        client.send(heartbeat(1), version=4, request=event)
    with pytest.raises(EncodeError, match="expected a request"):
        client.send(HeartbeatResponse(), version=4)


def test_an_event_that_was_copied_can_be_answered() -> None:
    client, server = Connection("client"), Connection("server")
    event = one_request(server, client.send(heartbeat(1), version=4))
    (got,) = feed(client, server.send(HeartbeatResponse(), request=deepcopy(event)))
    assert isinstance(got, ResponseReceived)
    with pytest.raises(EncodeError, match="no answer"):
        server.send(HeartbeatResponse(), request=event)


def test_produce_with_acks_is_answered() -> None:
    client, server = Connection("client"), Connection("server")
    data = client.send(ProduceRequest(acks=1), version=9) + client.send(heartbeat(1), version=4)
    first, second = feed(server, data)
    assert isinstance(first, RequestReceived)
    assert isinstance(second, RequestReceived)
    assert first.expects_response
    answers = server.send(ProduceResponse(), request=first) + server.send(HeartbeatResponse(), request=second)
    assert [type(event) for event in feed(client, answers)] == [ResponseReceived, ResponseReceived]
    assert client.unanswered == []


def test_answers_may_come_in_any_order() -> None:
    client = Connection("client")
    for number in range(3):
        client.send(heartbeat(number), version=4)
    for number in (2, 0, 1):
        data = encode_response(HeartbeatResponse(error_code=number), version=4, correlation_id=number)
        (event,) = feed(client, data)
        assert isinstance(event, ResponseReceived)
        assert (event.request.message, event.request.correlation_id) == (heartbeat(number), number)
        assert (event.request.api_key, event.request.version) == (12, 4)


def test_a_correlation_id_in_use_is_passed_over() -> None:
    client = Connection("client")
    client.send(heartbeat(0), version=4)
    endpoint = client._endpoint
    assert isinstance(endpoint, KafkaClient)
    endpoint._next_id = 0x7FFF_FFFF
    numbers = [decode_request(client.send(heartbeat(n), version=4)).correlation_id for n in range(3)]
    assert numbers == [0x7FFF_FFFF, 1, 2]


@pytest.mark.parametrize("data", [bytearray, memoryview])
def test_a_chunk_is_any_buffer(data: type) -> None:
    client, server = Connection("client"), Connection("server")
    chunk = bytearray(client.send(heartbeat(1), version=4))
    server.receive_data(data(chunk))
    chunk[:] = bytes(len(chunk))  # its owner uses it again
    (event,) = server.events()
    assert isinstance(event, RequestReceived)
    assert event.request == heartbeat(1)


def test_the_role_is_a_role_or_its_value() -> None:
    for role in Role:
        assert Connection(role.value).role is Connection(role).role is role
    invalid: list[Any] = ["broker", "CLIENT", b"client", None, 5, [], Role]
    for wrong in invalid:
        with pytest.raises(ValueError, match=r'^expected Role.CLIENT, .* "client" or "server" as role, got '):
            Connection(wrong)


def test_what_a_connection_was_made_with_does_not_change() -> None:
    connection = Connection("client", client_id="till-3", strict=True)
    assert (connection.client_id, connection.strict) == ("till-3", True)
    for name in ("client_id", "strict", "state", "unanswered"):
        with pytest.raises(AttributeError):
            setattr(connection, name, None)


def test_events_are_read_one_at_a_time() -> None:
    client, server = Connection("client"), Connection("server")
    server.receive_data(client.send(heartbeat(1), version=4) + client.send(heartbeat(2), version=4))
    first = server.next_event()
    assert isinstance(first, RequestReceived)
    assert first.request == heartbeat(1)
    second = next(server.events())
    assert isinstance(second, RequestReceived)
    assert second.request == heartbeat(2)
    assert server.next_event() is None
