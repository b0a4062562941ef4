"""The beginning of a connection, without I/O: which versions the broker has, and who the client is.

Strategy: `opening` is a generator over bytes. It yields what to send, and gets what the socket received
after that; `BlockingCall` asks for the result of a function. `coordwire.client.streams` runs it with asyncio,
`coordwire.client.socket_link` with a blocking socket. Rules: ApiVersions goes first, and again in the version
that the broker offers where it refuses ours (KIP-511); nothing is unread at the end; whatever the peer sends
ends in a `ClientError`.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any, TypeVar

from coordwire.capture.printable import without_numbers
from coordwire.client.authentication import (
    Ask,
    AuthenticationStep,
    BlockingCall,
    Sasl,
    SendToken,
    authenticate,
)
from coordwire.client.errors import (
    AuthenticationRefused,
    BrokerUnreachable,
    ClientError,
    UnreadableAnswer,
)
from coordwire.connection import Connection, ConnectionState
from coordwire.connection.events import (
    ConnectionClosed,
    ConnectionFailed,
    Event,
    FrameRefused,
    ResponseReceived,
    TokenReceived,
    VersionsRefused,
)
from coordwire.enums import ErrorCode
from coordwire.messages import ApiVersionsRequest, ApiVersionsResponse
from coordwire.versions import API_VERSIONS, VersionRange, known_versions

T = TypeVar("T")
Transfer = Generator["bytes | BlockingCall", Any, T]
"""Yields bytes to send, and gets the bytes that the socket received next, b"" at its end."""

SOFTWARE_NAME = "coordwire"
_TLS_ALERT = b"\x15\x03"


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """The result of the beginning of a connection.

    versions: those that the broker has, by api key. lifetime_ms: in which the client must authenticate again,
    0 for never (KIP-368). response: the broker's answer to ApiVersions.
    """

    versions: dict[int, VersionRange]
    lifetime_ms: int
    response: ApiVersionsResponse


def opening(connection: Connection, sasl: Sasl | None) -> Transfer[Session]:
    """Begin a connection whose socket is connected, TLS included. sasl: who the client
    is, None for a listener without SASL.

    Raises `BrokerUnreachable`, `AuthenticationRefused`, `UnreadableAnswer`, `VersionUnavailable`.
    """
    response = yield from _offered(connection)
    versions = {api.api_key: VersionRange(api.min_version, api.max_version) for api in response.api_keys}
    lifetime = 0
    if sasl is not None:
        lifetime = yield from _over(connection, authenticate(sasl, versions))
    return Session(versions=versions, lifetime_ms=lifetime, response=response)


def _offered(connection: Connection) -> Transfer[ApiVersionsResponse]:
    """The broker's answer to ApiVersions, in the newest version that both sides have."""
    known = known_versions(API_VERSIONS)
    request = ApiVersionsRequest(
        client_software_name=SOFTWARE_NAME, client_software_version=_software_version()
    )
    current = known.last
    for _ in range(2):
        event = yield from _event_after(connection, connection.send(request, version=current))
        if isinstance(event, VersionsRefused) and event.retry_with < current:
            current = event.retry_with
            continue
        answer = _response(event)
        if not isinstance(answer, ApiVersionsResponse):
            raise UnreadableAnswer("expected an answer to ApiVersions")
        if answer.error_code:
            raise UnreadableAnswer(f"the broker answers ApiVersions with {ErrorCode(answer.error_code).name}")
        return answer
    raise UnreadableAnswer("the broker refuses ApiVersions in the version that it offers")


@cache
def _software_version() -> str:
    try:
        return version(SOFTWARE_NAME).partition("+")[0]
    except PackageNotFoundError:  # run from its source
        return "0"


def _over(connection: Connection, steps: Generator[AuthenticationStep, Any, T]) -> Transfer[T]:
    """Run an authentication over a connection that nothing else uses."""
    try:
        step = next(steps)
        while True:
            answer: object
            if isinstance(step, BlockingCall):
                answer = yield step
            elif isinstance(step, Ask):
                data = connection.send(step.message, version=step.version)
                answer = _response((yield from _event_after(connection, data)))
            else:
                answer = yield from _token_after(connection, step)
            step = steps.send(answer)
    except StopIteration as end:
        if connection.state is ConnectionState.AUTHENTICATING:
            connection.end_tokens()
        result: T = end.value
        return result


def _token_after(connection: Connection, step: SendToken) -> Transfer[bytes]:
    event = yield from _event_after(connection, connection.send_token(step.token))
    if isinstance(event, ConnectionClosed):
        raise AuthenticationRefused("the broker refuses the credentials: it closed the connection")
    if not isinstance(event, TokenReceived):
        raise ended(event)
    return event.token


def _event_after(connection: Connection, data: bytes) -> Transfer[Event]:
    """Send bytes; the event that follows."""
    while (event := connection.next_event()) is None:
        received = yield data
        data = b""
        _check_protocol(connection, received)
        connection.receive_data(received)
    return event


def _check_protocol(connection: Connection, received: bytes) -> None:
    if received.startswith(_TLS_ALERT) and not connection.unread:
        raise BrokerUnreachable("the listener expects TLS: security.protocol=SSL or SASL_SSL")


def _response(event: Event) -> object:
    if isinstance(event, ResponseReceived):
        return event.response
    raise ended(event)


def ended(event: Event) -> ClientError:
    """The error for an event that is not an answer."""
    if isinstance(event, ConnectionClosed):
        if event.remainder:
            return BrokerUnreachable(
                f"the broker closed the connection {len(event.remainder)} bytes into an answer",
                sent=True,
            )
        return BrokerUnreachable(
            "the broker closed the connection without an answer, as a listener does that expects TLS "
            "or SASL, or a server that can't handle the request",
            sent=True,
        )
    if isinstance(event, FrameRefused | ConnectionFailed):
        reason = without_numbers(f"{event.error}")
        return UnreadableAnswer(f"the broker's answer is not one of Kafka's: {reason}")
    return UnreadableAnswer(f"expected an answer, got {type(event).__name__}")
