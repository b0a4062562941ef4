"""The public face as a type checker sees it: `assert_type` is checked by mypy, and executed here."""

from __future__ import annotations

import dataclasses
from typing import Any, TypeVar, assert_never, assert_type

import coordwire
from coordwire import Connection, RequestFrame, ResponseFrame, Role, is_response_to
from coordwire.codec import Message, Request, Response
from coordwire.connection.events import (
    ConnectionClosed,
    ConnectionFailed,
    FrameRefused,
    RequestReceived,
    ResponseReceived,
    TokenReceived,
    VersionsRefused,
)
from coordwire.messages import (
    ApiVersionsResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    MetadataRequest,
    RequestHeader,
)
from coordwire.messages.join_group import JoinGroupRequestProtocol

R = TypeVar("R", bound=Response)


def answered(request: Request[R], body: bytes, version: int) -> R:
    """The answer in these bytes, of the class that the request names."""
    return request.response_class.decode(body, version=version)


def ask(client: Connection, server: Connection, request: Request[R], version: int) -> R:
    """The answer to a request: what a client with a socket would do."""
    server.receive_data(client.send(request, version=version))
    for event in server.events():
        assert isinstance(event, RequestReceived)
        client.receive_data(server.send(request.response_class(), request=event))
    for answer in client.events():
        if is_response_to(answer, request):
            return answer.response
    raise AssertionError


def test_messages() -> None:
    request = JoinGroupRequest(group_id="g", protocols=[JoinGroupRequestProtocol(name="range")])
    assert_type(request.group_id, str)
    assert_type(request.group_instance_id, str | None)
    assert_type(request.protocols, list[JoinGroupRequestProtocol])
    assert_type(request.tags, dict[int, bytes] | None)
    assert_type(request.encode(version=9), bytes)
    assert_type(JoinGroupRequest.decode(request.encode(version=9), version=9), JoinGroupRequest)
    assert_type(JoinGroupRequest.versions, range)


def test_api_keys() -> None:
    assert_type(MetadataRequest.api_key, int)
    assert_type(JoinGroupResponse().api_key, int)
    assert_type(coordwire.find_message(12, "request").api_key, int)
    assert_type(RequestHeader.api_key, int | None)
    versions: dict[int, range] = {3: range(14)}
    assert_type(versions[MetadataRequest.api_key], range)
    assert RequestHeader.api_key is None


def test_messages_are_dataclasses() -> None:
    changed = dataclasses.replace(HeartbeatRequest(group_id="g"), member_id="m")
    assert_type(changed, HeartbeatRequest)
    assert [field.name for field in dataclasses.fields(changed)][-1] == "tags"
    match changed:
        case HeartbeatRequest(group_id=group, member_id=member):
            assert_type(group, str)
            assert_type(member, str)


def test_a_request_names_its_response() -> None:
    request = HeartbeatRequest(group_id="g")
    assert_type(HeartbeatRequest.response_class, type[HeartbeatResponse])
    assert_type(JoinGroupRequest.response_class, type[JoinGroupResponse])
    body = HeartbeatResponse(error_code=27).encode(version=4)
    response = answered(request, body, 4)
    assert_type(response, HeartbeatResponse)
    assert response.error_code == 27


def test_frames() -> None:
    raw = coordwire.encode_request(HeartbeatRequest(), version=4, correlation_id=1)
    assert_type(raw, bytes)
    frame = coordwire.decode_request(raw)
    assert_type(frame, RequestFrame)
    assert_type(frame.message, Request[Response])
    assert_type(frame.message.response_class, type[Response])
    assert_type(frame.client_id, str | None)
    match frame.message:
        case HeartbeatRequest(group_id=group):
            assert_type(group, str)
        case _:
            raise AssertionError
    assert_type(coordwire.find_message(12, "request"), type[Request[Any]])
    assert_type(coordwire.find_message(12, "response"), type[Response])
    assert_type(coordwire.find_message("JoinGroup", "request"), type[Message])
    assert_type(coordwire.find_message("RequestHeader"), type[Message])
    answer = coordwire.encode_response(coordwire.find_message(12, "response")(), version=4, correlation_id=1)
    assert_type(coordwire.decode_response(answer, api_key=12, version=4), ResponseFrame[Response])
    typed = coordwire.decode_response(answer, request_class=HeartbeatRequest, version=4)
    assert_type(typed, ResponseFrame[HeartbeatResponse])
    assert_type(typed.message, HeartbeatResponse)
    assert typed.message == HeartbeatResponse()


def test_an_answer_has_the_class_that_its_request_names() -> None:
    client, server = Connection(Role.CLIENT), Connection(Role.SERVER)
    joined = ask(client, server, JoinGroupRequest(group_id="g"), 9)
    assert_type(joined, JoinGroupResponse)
    assert joined == JoinGroupResponse()
    assert_type(ask(client, server, HeartbeatRequest(), 4), HeartbeatResponse)


def test_the_event_of_an_answer() -> None:
    client, server = Connection(Role.CLIENT), Connection(Role.SERVER)
    first, second = HeartbeatRequest(), HeartbeatRequest()
    server.receive_data(client.send(first, version=4))
    assert not is_response_to(client.next_event(), first)
    for request in server.events():
        assert not is_response_to(request, HeartbeatRequest)
        assert isinstance(request, RequestReceived)
        assert_type(request.request, Message)
        client.receive_data(server.send(HeartbeatResponse(), request=request))
    event = client.next_event()
    assert is_response_to(event, HeartbeatRequest)
    assert_type(event, ResponseReceived[HeartbeatResponse])
    assert_type(event.response, HeartbeatResponse)
    assert is_response_to(event, first)
    assert_type(event.response, HeartbeatResponse)
    assert not is_response_to(event, second)
    assert not is_response_to(event, JoinGroupRequest)
    assert isinstance(event, ResponseReceived)
    match event:
        case ResponseReceived(response=HeartbeatResponse(error_code=code) as response):
            assert_type(response, HeartbeatResponse)
            assert code == 0
        case _:
            raise AssertionError


def test_events_are_a_closed_union() -> None:
    connection = Connection(Role.CLIENT)
    connection.receive_data(b"")
    for event in connection.events():
        match event:
            case ResponseReceived():
                assert_type(event.response, Message)
            case VersionsRefused():
                assert_type(event.retry_with, int)
                assert_type(event.response, ApiVersionsResponse | None)
            case RequestReceived() | FrameRefused() | TokenReceived() | ConnectionFailed():
                raise AssertionError
            case ConnectionClosed():
                assert_type(event.remainder, bytes)
            case other:
                assert_never(other)
