"""One connection without its socket: bytes in, events out; messages in, bytes out. Both sides.

Strategy: received bytes gather in one buffer; `events()` cuts frames from it one at a time, so that what the
caller sends between two events (a SaslHandshake answer) counts for the next. Rules: no I/O and no clock;
chunk boundaries never matter; nothing that a peer sends raises, it comes as an event; what the caller does
wrong raises `EncodeError` before a byte is returned. Lenient by default, as real brokers and clients are.

Other dialects than Kafka's share the buffer and the events; who says what in them is `draft_side`'s to know.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Iterator, Mapping
from enum import Enum

from coordwire.codec import Message
from coordwire.codec.message import Buffer
from coordwire.dialects.draft_connection import DraftConnection
from coordwire.dialects.grammar import Dialect, Grammar, Side
from coordwire.errors import DecodeError, EncodeError, Malformed, OutOfRange
from coordwire.events import (
    ConnectionClosed,
    ConnectionFailed,
    Event,
    FrameRefused,
    RequestReceived,
    ResponseReceived,
    SentRequest,
    TokenReceived,
    VersionsRefused,
)
from coordwire.frames import (
    PREFIX,
    RequestFrame,
    check_size,
    encode_request,
    encode_response,
    is_unsupported_version,
    read_request,
    read_response,
)
from coordwire.messages.headers import RequestHeader
from coordwire.versions import API_VERSIONS, VersionRange, known_versions

PRODUCE, SASL_HANDSHAKE = 0, 17
_INT = struct.Struct(">i")
_MAX_ID = 0x7FFF_FFFF
_COMPACT_AT = 1 << 16


class Role(Enum):
    """Which side of the connection this is."""

    CLIENT = "client"
    SERVER = "server"


class Connection:
    """The state of one connection.

    role: which side we are. client_id: what a client's requests carry. strict: refuse what Apache Kafka's own
    decoder would still read. The size of a frame is limited by `coordwire.limits(frame=…)`.

    dialect: what is spoken (`coordwire.dialects`). In the drafts the server is the coordinator, which asks
    over the client's connection. type_ids: by the request's name ("Ping"), where they differ from our
    reconstructed ones. auto_commit: whether the consumer registered with it, until a registration is seen.
    Raises `ValueError` for a dialect or type ids that can't be, or given to Kafka's own dialect.
    """

    def __init__(
        self,
        role: Role,
        *,
        client_id: str | None = None,
        strict: bool = False,
        dialect: Dialect | str = Dialect.KAFKA,
        type_ids: Mapping[str, int] | None = None,
        auto_commit: bool | None = None,
    ) -> None:
        self.role = role
        self.dialect = Dialect(dialect)
        self._draft: DraftConnection | None = None
        if self.dialect is not Dialect.KAFKA:
            side: Side = "client" if role is Role.CLIENT else "server"
            self._draft = DraftConnection(Grammar(dialect, type_ids), side, auto_commit, strict=strict)
        elif type_ids is not None or auto_commit is not None:
            raise ValueError("type ids and auto_commit belong to other dialects than Kafka's")
        self.client_id = client_id
        self.strict = strict
        self._buffer = bytearray()
        self._start = 0
        self._next_id = 0
        self._sent: dict[int, SentRequest] = {}
        self._owed: deque[tuple[int, int, int]] = deque()
        self._tokens = False
        self._end = False
        self._over = False

    # --- receiving ---

    def receive_data(self, data: Buffer) -> None:
        """Take what the socket gave; b"" says that the peer closed. `events()` then tells what it was."""
        if len(data) == 0:
            self._end = True
        elif not self._over:
            self._buffer += data

    def events(self) -> Iterator[Event]:
        """What has happened since the last call. Ends when more bytes are needed."""
        while (event := self.next_event()) is not None:
            yield event

    def next_event(self) -> Event | None:
        """The next event, None if more bytes are needed."""
        if self._over:
            return None
        try:
            body = self._next_body()
        except DecodeError as error:
            self._over = True
            self._buffer.clear()
            return ConnectionFailed(error=error)
        if body is not None:
            if self._draft is not None:
                return self._draft.event(body)
            if self._tokens:
                return TokenReceived(token=body)
            return self._request(body) if self.role is Role.SERVER else self._response(body)
        if self._end:
            self._over = True
            remainder = bytes(self._buffer[self._start :])
            waiting = list(self._sent.values()) if self._draft is None else self._draft.unanswered()
            return ConnectionClosed(remainder=remainder, unanswered=waiting)
        return None

    def _next_body(self) -> bytes | None:
        """Cut the next whole frame from the buffer."""
        start, buffer = self._start, self._buffer
        if len(buffer) - start < PREFIX:
            return None
        (size,) = _INT.unpack_from(buffer, start)
        check_size(size)
        end = start + PREFIX + size
        if len(buffer) < end:
            return None
        body = bytes(memoryview(buffer)[start + PREFIX : end])
        self._start = end
        if end == len(buffer) or end > _COMPACT_AT:
            del buffer[:end]
            self._start = 0
        return body

    def _request(self, body: bytes) -> Event:
        try:
            frame = read_request(body, strict=self.strict)
        except DecodeError as error:
            header = error.partial
            known = header.correlation_id if isinstance(header, RequestHeader) else None
            return FrameRefused(body=body, error=error, correlation_id=known)
        expects = not is_fire_and_forget(frame.message)
        if expects:
            self._owed.append((frame.correlation_id, frame.api_key, frame.api_version))
        return RequestReceived(frame=frame, expects_response=expects)

    def _response(self, body: bytes) -> Event:
        if len(body) < _INT.size:
            return FrameRefused(
                body=body, error=Malformed("no room for a correlation id", 0, "correlation_id")
            )
        (correlation_id,) = _INT.unpack_from(body)
        request = self._sent.pop(correlation_id, None)
        if request is None:
            error = Malformed(f"no request waits for correlation id {correlation_id}", 0, "correlation_id")
            return FrameRefused(body=body, error=error, correlation_id=correlation_id)
        refused = request.api_key == API_VERSIONS and request.version > 0 and is_unsupported_version(body)
        try:
            frame = read_response(body, request.api_key, request.version, strict=self.strict)
        except DecodeError as error:
            if refused:
                partial = error.partial if isinstance(error.partial, Message) else None
                return VersionsRefused(request=request, retry_with=0, response=partial, error=error)
            return FrameRefused(body=body, error=error, request=request, correlation_id=correlation_id)
        if refused:
            retry = _retry_version(frame.message)
            return VersionsRefused(
                request=request, retry_with=retry, response=frame.message, deviations=frame.deviations
            )
        if request.api_key == SASL_HANDSHAKE and request.version == 0 and not _failed(frame.message):
            self._tokens = True
        return ResponseReceived(request=request, frame=frame)

    # --- sending ---

    def send(
        self, message: Message, *, version: int | None = None, request: RequestReceived | None = None
    ) -> bytes:
        """The bytes to send for a message.

        A client names the `version`; the connection numbers the request and waits for its answer. A server
        names the `request` that it answers, and a `version` only where that differs from the request's (an
        ApiVersions refusal: 0). Answers go out in the order of their requests.

        In the other dialects either side may ask; an answer names the `request`, and nothing a `version`,
        but an answer that has offsets or not where no registration has told whether it has.

        Raises `EncodeError` if the message can't be encoded, or not now; then nothing has changed.
        """
        if self._draft is not None:
            return self._draft.send(message, version, request)
        if self.role is Role.CLIENT:
            if version is None or request is not None:
                raise EncodeError("a client sends with a version, and answers nothing")
            return self._send_request(message, version)
        if request is None:
            raise EncodeError("a server sends answers only: name the request")
        if not isinstance(request.frame, RequestFrame):
            raise EncodeError(f"this request came in the dialect {request.frame.dialect}")
        return self._send_response(message, request.frame, version)

    def _send_request(self, message: Message, version: int) -> bytes:
        if self._tokens:
            raise EncodeError("a SASL exchange is going on: send_token, then end_tokens")
        number = self._next_id
        while number in self._sent:
            number = 0 if number == _MAX_ID else number + 1
        data = encode_request(message, version=version, correlation_id=number, client_id=self.client_id)
        self._next_id = 0 if number == _MAX_ID else number + 1
        if not is_fire_and_forget(message):
            assert message.api_key is not None
            self._sent[number] = SentRequest(
                message=message, api_key=message.api_key, version=version, correlation_id=number
            )
        return data

    def _send_response(self, message: Message, frame: RequestFrame, version: int | None) -> bytes:
        owed = (frame.correlation_id, frame.api_key, frame.api_version)
        if not self._owed or self._owed[0] != owed:
            raise EncodeError(
                "another request waits for its answer before this one" if owed in self._owed
                else "this request waits for no answer"
            )  # fmt: skip
        if message.api_key != frame.api_key:
            raise EncodeError(f"{type(message).__name__} doesn't answer {type(frame.message).__name__}")
        wire_version = frame.api_version if version is None else version
        data = encode_response(message, version=wire_version, correlation_id=frame.correlation_id)
        self._owed.popleft()
        if frame.api_key == SASL_HANDSHAKE and frame.api_version == 0 and not _failed(message):
            self._tokens = True
        return data

    # --- SASL before SaslAuthenticate (KIP-43): tokens without headers ---

    def send_token(self, token: bytes) -> bytes:
        """The bytes of a bare SASL token, between a SaslHandshake v0 and `end_tokens`. Raises `EncodeError`
        outside of them."""
        if not self._tokens:
            raise EncodeError("no SASL exchange is going on")
        if len(token) > _MAX_ID:
            raise OutOfRange(f"a token of {len(token)} bytes is beyond its size prefix")
        return _INT.pack(len(token)) + token

    def end_tokens(self) -> None:
        """The SASL mechanism is through: frames have headers again from here on."""
        self._tokens = False


def is_fire_and_forget(message: Message) -> bool:
    """Whether a request gets no answer: Produce with acks=0."""
    return message.api_key == PRODUCE and getattr(message, "acks", None) == 0


def _failed(message: Message) -> bool:
    return getattr(message, "error_code", 0) != 0


def _retry_version(message: Message) -> int:
    ours = known_versions(API_VERSIONS)
    for offered in getattr(message, "api_keys", ()):
        if offered.api_key == API_VERSIONS:
            common = ours & VersionRange(offered.min_version, offered.max_version)
            return common.last if common else 0
    return 0
