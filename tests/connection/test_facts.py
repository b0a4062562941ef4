"""What a connection and its events tell of themselves, and frames too short to have an answer."""

from __future__ import annotations

import pytest

from coordwire import Connection, EncodeError
from coordwire.connection.events import FrameRefused, RequestReceived, ResponseReceived, is_response_to
from coordwire.connection.kafka import LastingClient, encode_token, handshake_result
from coordwire.errors import OutOfRange
from coordwire.frames import decode_request, encode_request, encode_response
from coordwire.messages import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    MetadataRequest,
)
from coordwire.messages.api_versions import ApiVersion


def test_what_a_connection_holds() -> None:
    connection = Connection("client", client_id="till-3")
    request = HeartbeatRequest(group_id="payments")
    connection.send(request, version=4)
    answer = encode_response(HeartbeatResponse(), version=4, correlation_id=0)
    connection.receive_data(answer[:7])
    assert connection.announced == len(answer)
    assert connection.buffered >= connection.unread == 7
    assert repr(connection) == "<Connection client open: 1 unanswered, 7 bytes unread>"
    assert (connection.client_id, connection.strict) == ("till-3", False)
    connection.receive_data(answer[7:])
    event = connection.next_event()
    assert isinstance(event, ResponseReceived)
    assert event.deviations == []
    for asked in (request, HeartbeatRequest):
        assert is_response_to(event, asked)
    for other in (HeartbeatRequest(), MetadataRequest):
        assert not is_response_to(event, other)
    assert not is_response_to(FrameRefused(body=b"", error=OutOfRange("x")), HeartbeatRequest)  # type: ignore[arg-type]


def test_a_response_without_a_whole_number_is_refused() -> None:
    connection = Connection("client")
    connection.send(HeartbeatRequest(), version=4)
    connection.receive_data(b"\0\0\0\3abc")
    event = connection.next_event()
    assert isinstance(event, FrameRefused)
    assert "a correlation id needs 4 bytes, 3 given" in str(event.error)


def test_a_refused_request_is_answered_in_the_version_that_is_asked_for() -> None:
    connection = Connection("server")
    wire = encode_request(ApiVersionsRequest(), version=0, correlation_id=5)
    connection.receive_data(wire[:6] + b"\0\x63" + wire[8:])
    event = connection.next_event()
    assert isinstance(event, FrameRefused)
    answer = ApiVersionsResponse(error_code=35, api_keys=[ApiVersion(api_key=18)])
    assert connection.send(answer, version=0, request=event) == encode_response(
        answer, version=0, correlation_id=5
    )


def test_an_answer_that_is_for_another_api_is_refused() -> None:
    connection = Connection("server")
    connection.receive_data(encode_request(HeartbeatRequest(), version=4, correlation_id=5))
    event = connection.next_event()
    assert isinstance(event, RequestReceived)
    with pytest.raises(EncodeError, match="doesn't answer"):
        connection.send(ApiVersionsResponse(), request=event)


def test_a_token_that_no_prefix_holds_is_refused() -> None:
    class Long(bytes):
        def __len__(self) -> int:
            return 1 << 31

    with pytest.raises(OutOfRange, match="at most 2147483647 bytes"):
        encode_token(Long())


def test_a_client_is_whom_it_last_named() -> None:
    client = LastingClient()

    def of(client_id: str | None) -> str:
        wire = encode_request(HeartbeatRequest(), version=4, correlation_id=1, client_id=client_id)
        return client.of(decode_request(wire))

    assert [of("a"), of(None), of("b")] == ["a", "", "b"]
    assert handshake_result(None) is not handshake_result(HeartbeatResponse())
