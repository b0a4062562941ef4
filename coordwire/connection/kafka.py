"""Kafka's own client and server: which request a response answers, and in which order responses go out.

Strategy: where the native engine runs, it does the common steps in one call each, and reads frames in place,
from the chunk that was received; whatever it does not take goes the slow path, which gives the same events.
Rules: as `Connection`'s. A response is matched by its correlation id; a server owes its responses in
the order of the requests, and an error code 35 of ApiVersions becomes `VersionsRefused`, readable or not.

SASL before SaslAuthenticate (KIP-43) has tokens without headers after a SaslHandshake v0. The client sends
nothing else between that and the answer, since the bytes after it are tokens if the answer has no error, and
requests if it has one. Tokens have a size prefix and nothing more; only the SASL mechanism knows which one is
the last. SaslHandshake v1 announces SaslAuthenticate requests (KIP-152), which have headers.

A request that names its client names its connection's; one whose header may leave it out (KIP-1313) has that.
`coordwire.capture.conversation` does the same with what was recorded.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

from coordwire._speedups import native
from coordwire.codec import Message
from coordwire.connection.endpoint import Endpoint
from coordwire.connection.events import (
    Event,
    FrameRefused,
    RequestReceived,
    ResponseReceived,
    SentRequest,
    VersionsRefused,
)
from coordwire.connection.receive_buffer import ReceiveBuffer
from coordwire.connection.state import ConnectionState, Transition, illegal
from coordwire.errors import DecodeError, EncodeError, LimitExceeded, Malformed, OutOfRange
from coordwire.frames import (
    PREFIX,
    RequestFrame,
    encode_request,
    encode_response,
    is_unsupported_version,
    read_request,
    read_response,
    request_framer,
    response_framer,
)
from coordwire.limits import current
from coordwire.messages.headers import RequestHeader
from coordwire.versions import API_VERSIONS, VersionRange, known_versions

if TYPE_CHECKING:
    from coordwire.messages.api_versions import ApiVersionsResponse
from coordwire.versions import INSTANCE_ID, omits_client

PRODUCE, SASL_HANDSHAKE = 0, 17
_OPEN, _HANDSHAKING = ConnectionState.OPEN, ConnectionState.HANDSHAKING
_SPECIAL = frozenset({PRODUCE, SASL_HANDSHAKE})
"""The requests that may change the state, or that may have no answer."""

_START = struct.Struct(">hhi")
"""What every request begins with, whatever its version: api key, api version, correlation id."""

_INT = struct.Struct(">i")
_ID = _INT.unpack_from
_MAX_INT = 0x7FFF_FFFF

_exchange = (
    None
    if native is None or request_framer is None or response_framer is None
    else native.Exchange(
        request_framer, response_framer, ReceiveBuffer, SentRequest, RequestReceived, ResponseReceived
    )
)
"""The common steps in native code; it leaves everything else to the methods below, with nothing changed."""


class KafkaClient(Endpoint):
    """The side that sends requests. client_id: what their headers carry."""

    def __init__(self, client_id: str | None, *, strict: bool) -> None:
        super().__init__(strict=strict)
        self.client_id = client_id
        self._next_id = 0
        self._waiting: dict[int, SentRequest] = {}

    def unanswered(self) -> list[SentRequest]:
        return list(self._waiting.values())

    def events(self) -> Iterator[Event]:
        while True:
            event: Event | Literal[False] | None = False
            if _exchange is not None and self.state is _OPEN:
                event = _exchange.next_response(self.buffer, self._waiting)
            if event is False:
                event = self.next_event()
            if event is None:
                return
            yield event

    def read(self, body: bytes) -> Event:
        if len(body) < _INT.size:
            reason = f"a correlation id needs {_INT.size} bytes, {len(body)} given"
            return FrameRefused(body=body, error=Malformed(reason, 0, "correlation_id"))
        (correlation_id,) = _ID(body)
        request = self._waiting.pop(correlation_id, None)
        if request is None:
            error = Malformed(f"no request waits for correlation id {correlation_id}", 0, "correlation_id")
            return FrameRefused(body=body, error=error, correlation_id=correlation_id)
        event = self._answer(request, body)
        if starts_handshake(request.api_key, request.version):
            answer = event.response if isinstance(event, ResponseReceived) else None
            self.change_state(handshake_result(answer))
        return event

    def _answer(self, request: SentRequest, body: bytes) -> Event:
        """The event for the answer to a request."""
        refused = request.api_key == API_VERSIONS and request.version > 0 and is_unsupported_version(body)
        try:
            frame = read_response(body, request.api_key, request.version, strict=self.strict)
        except DecodeError as error:
            if refused:
                return VersionsRefused(
                    request=request, retry_with=0, response=_versions(error.partial), error=error
                )
            number = request.correlation_id
            return FrameRefused(body=body, error=error, request=request, correlation_id=number)
        if refused:
            answer = _versions(frame.message)
            return VersionsRefused(
                request=request,
                retry_with=_retry_version(answer),
                response=answer,
                deviations=frame.deviations,
            )
        return ResponseReceived(request, frame)

    def send(
        self, message: Message, version: int | None, request: RequestReceived | FrameRefused | None
    ) -> bytes:
        if _exchange is not None and self.state is _OPEN and request is None:
            number = self._next_id
            data: bytes | None = _exchange.write_request(
                message, version, number, self.client_id, self._waiting
            )
            if data is not None:
                self._next_id = 0 if number == _MAX_INT else number + 1
                return data
        return self._send(message, version, request)

    def _send(
        self, message: Message, version: int | None, request: RequestReceived | FrameRefused | None
    ) -> bytes:
        if self.state is not _OPEN:
            raise illegal("send", self.state, _OPEN)
        if version is None or request is not None:
            raise EncodeError("a client sends requests: expected a version and no request to answer")
        number = self._next_id
        while number in self._waiting:
            number = 0 if number == _MAX_INT else number + 1
        data = encode_request(message, version=version, correlation_id=number, client_id=self.client_id)
        self._next_id = 0 if number == _MAX_INT else number + 1
        key = message.api_key
        assert key is not None  # or it could not be encoded
        if key in _SPECIAL:
            if is_fire_and_forget(message):
                return data
            if starts_handshake(key, version):
                self.change_state(Transition.HANDSHAKE)
        self._waiting[number] = SentRequest(message, key, version, number)
        return data


class KafkaServer(Endpoint):
    """The side that answers requests."""

    def __init__(self, *, strict: bool) -> None:
        super().__init__(strict=strict)
        self._owed: deque[RequestHeader] = deque()

    def unanswered(self) -> list[SentRequest]:
        return []

    def events(self) -> Iterator[Event]:
        while True:
            event: Event | Literal[False] | None = False
            if _exchange is not None and self.state is _OPEN:
                event = _exchange.next_request(self.buffer, self._owed)
            if event is False:
                event = self.next_event()
            if event is None:
                return
            yield event

    def next_event(self) -> Event | None:
        if self.state is _HANDSHAKING:
            return self._check_held_size()
        if request_framer is not None and self.state is _OPEN:  # such as Produce: read without a copy
            frame: RequestFrame | None = request_framer.read_next(self.buffer.chunk, self.buffer.position)
            if frame is not None:
                self.buffer.skip(PREFIX + frame.size)
                return self._request(frame)
        return super().next_event()

    def _check_held_size(self) -> Event | None:
        """What follows a SaslHandshake v0 is held until its answer, which decides what it is."""
        if self.buffer.ended:
            return self.close(Transition.PEER_CLOSED)
        size, most = len(self.buffer), current().frame
        if size > PREFIX + most:
            reason = f"{size} bytes after a SaslHandshake without an answer exceed the budget of {most}"
            return self.fail(LimitExceeded(reason, 0))
        return None

    def read(self, body: bytes) -> Event:
        try:
            frame = read_request(body, strict=self.strict)
        except DecodeError as error:
            if len(body) < _START.size:
                return FrameRefused(body=body, error=error)
            key, version, number = _START.unpack_from(body)
            after = self._owed[-1] if self._owed else None
            return FrameRefused(
                body=body, error=error, correlation_id=number, api_key=key, api_version=version, after=after
            )
        return self._request(frame)

    def _request(self, frame: RequestFrame) -> RequestReceived:
        if frame.api_key in _SPECIAL:
            if is_fire_and_forget(frame.message):
                return RequestReceived(frame, False)
            if starts_handshake(frame.api_key, frame.api_version):
                self.change_state(Transition.HANDSHAKE)
        self._owed.append(frame.header)
        return RequestReceived(frame)

    def send(
        self, message: Message, version: int | None, request: RequestReceived | FrameRefused | None
    ) -> bytes:
        if _exchange is not None and self.state is _OPEN:
            data: bytes | None = _exchange.write_response(message, version, request, self._owed)
            if data is not None:
                return data
        return self._send(message, version, request)

    def _send(
        self, message: Message, version: int | None, request: RequestReceived | FrameRefused | None
    ) -> bytes:
        if self.state is not _OPEN and self.state is not _HANDSHAKING:
            raise illegal("send", self.state, _OPEN, _HANDSHAKING)
        if request is None:
            raise EncodeError("a server sends responses: expected the request to answer")
        if isinstance(request, FrameRefused):
            return self._answer_refused(message, version, request)
        frame = request.frame
        if not isinstance(frame, RequestFrame):
            raise EncodeError(f"expected a request of Kafka's own protocol, got one of {frame.dialect}")
        header = frame.header
        if not self._owed or self._owed[0] is not header:
            self._check_turn(header)
        if message.api_key != frame.api_key:
            raise EncodeError(f"{type(message).__name__} doesn't answer {type(frame.message).__name__}")
        if version is None:
            version = frame.api_version
        data = encode_response(message, version=version, correlation_id=header.correlation_id)
        self._owed.popleft()
        if self.state is _HANDSHAKING and starts_handshake(frame.api_key, frame.api_version):
            self.change_state(handshake_result(message))
        return data

    def _answer_refused(self, message: Message, version: int | None, refused: FrameRefused) -> bytes:
        """The answer to a request that could not be decoded; an ApiVersions gets it in version 0."""
        number = refused.correlation_id
        if number is None or refused.api_version is None:
            raise EncodeError("the frame is too short to be a request with an answer")
        if refused.after in self._owed:
            raise EncodeError("another request waits for its answer before this one")
        if message.api_key != refused.api_key:
            raise EncodeError(
                f"{type(message).__name__} doesn't answer a request of api key {refused.api_key}"
            )
        if version is None:
            version = 0 if refused.api_key == API_VERSIONS else refused.api_version
        return encode_response(message, version=version, correlation_id=number)

    def _check_turn(self, header: RequestHeader) -> None:
        """Refuse an answer that is not the next one. An equal header serves, of an event that was copied."""
        if not self._owed or self._owed[0] != header:
            raise EncodeError(
                "another request waits for its answer before this one" if header in self._owed
                else "this request waits for no answer"
            )  # fmt: skip


def is_fire_and_forget(message: Message) -> bool:
    """Whether a request gets no answer: Produce with acks=0."""
    return message.api_key == PRODUCE and getattr(message, "acks", None) == 0


def _versions(message: object) -> ApiVersionsResponse | None:
    """An answer to ApiVersions, None if not even a part of one was read."""
    from coordwire.messages.api_versions import ApiVersionsResponse  # as late as any message's module

    return message if isinstance(message, ApiVersionsResponse) else None


def _retry_version(answer: ApiVersionsResponse | None) -> int:
    """The newest version of ApiVersions that a refusal offers and we know, else 0."""
    known = known_versions(API_VERSIONS)
    for offered in answer.api_keys if answer is not None else ():
        if offered.api_key == API_VERSIONS:
            common = known & VersionRange(offered.min_version, offered.max_version)
            return common.last if common else 0
    return 0


def starts_handshake(api_key: int, version: int) -> bool:
    """Whether bare tokens may follow the answer to this request."""
    return api_key == SASL_HANDSHAKE and version == 0


def handshake_result(answer: Message | None) -> Transition:
    """The transition that the answer to a SaslHandshake v0 causes; None: it could not be read."""
    accepted = answer is not None and getattr(answer, "error_code", 0) == 0
    return Transition.ACCEPTED if accepted else Transition.REFUSED


def encode_token(token: bytes) -> bytes:
    """A token with its size prefix. Raises `OutOfRange` for one whose size the prefix cannot hold."""
    if len(token) > _MAX_INT:
        raise OutOfRange(f"expected a token of at most {_MAX_INT} bytes, got {len(token)}")
    return _INT.pack(len(token)) + token


class LastingClient:
    """The client of one connection, as its requests name it: "" for null, as Apache Kafka takes it."""

    __slots__ = ("_client_id",)

    def __init__(self) -> None:
        self._client_id = ""

    def of(self, frame: RequestFrame) -> str:
        """The client id of a request, empty if nothing names it."""
        header = frame.header
        if header.client_id is not None:
            self._client_id = header.client_id
        elif not omits_client(header.request_api_key, header.request_api_version):
            return ""
        elif INSTANCE_ID in (header.tags or ()):  # the connection's first
            self._client_id = ""
        return self._client_id
