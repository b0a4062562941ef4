"""Frames: size + header + message, both directions.

Strategy: a frame's body (what follows its size prefix) is read in place: the header by its
decoder, the message after it by its own, without a copy. Where the native engine runs, it does all of it in
one call, and hands on what it declines. Rules: offsets count from the byte after the size prefix; the
answer's API and version are the caller's to know; error 35 of ApiVersions is read as the version 0 that it
is, whatever was asked for. Nothing but `CoordwireError` leaves.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import field
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from coordwire._dataclasses import dataclass
from coordwire._display import RichDisplay
from coordwire._speedups import native
from coordwire.codec import Message, Request, Response
from coordwire.codec.backends import decoder
from coordwire.codec.message import Buffer, M_co, no_version
from coordwire.codec.program import message_program
from coordwire.errors import (
    DecodeError,
    Deviation,
    LimitExceeded,
    Malformed,
    NotInVersion,
    OutOfRange,
    Truncated,
    UnknownApi,
    UnsupportedVersion,
    counted,
)
from coordwire.limits import current
from coordwire.messages import find_message
from coordwire.messages.headers import RequestHeader, ResponseHeader
from coordwire.versions import API_VERSIONS, UNSUPPORTED_VERSION, api_name, header_version

if TYPE_CHECKING:
    from coordwire._speedups import _native
    from coordwire.codec.interpreter.decoder import Mark

H = TypeVar("H", RequestHeader, ResponseHeader)
M = TypeVar("M", bound=Message)
R = TypeVar("R", bound=Response)

_SIZE = struct.Struct(">i")
_PEEK = struct.Struct(">hh")
_ERROR = struct.Struct(">ih")
PREFIX = 4
"""Bytes of the size before a frame; the size counts what follows them."""


@dataclass(slots=True, kw_only=True)
class _Frame(RichDisplay, Generic[H, M_co]):
    """What requests and responses have in common."""

    header: H
    message: M_co
    api_key: int
    api_version: int
    size: int
    deviations: list[Deviation] = field(default_factory=list)

    @property
    def correlation_id(self) -> int:
        return self.header.correlation_id

    @property
    def api_name(self) -> str | None:
        return api_name(self.api_key)


@dataclass(slots=True, kw_only=True)
class RequestFrame(_Frame[RequestHeader, Request[Response]]):
    """A request as it came: `header`, `message`, and its `size` in bytes after the prefix.

    >>> from coordwire import decode_request, encode_request
    >>> from coordwire.messages import HeartbeatRequest
    >>> request = HeartbeatRequest(group_id="g")
    >>> frame = decode_request(encode_request(request, version=4, correlation_id=7, client_id="till-3"))
    >>> frame.api_name, frame.api_version, frame.correlation_id, frame.client_id, frame.message.group_id
    ('Heartbeat', 4, 7, 'till-3', 'g')
    """

    @property
    def client_id(self) -> str | None:
        return self.header.client_id


@dataclass(slots=True, kw_only=True)
class ResponseFrame(_Frame[ResponseHeader, M_co], Generic[M_co]):
    """A response as it came. `api_version` is the request's; `body_version` that of the body, which differs
    only where a broker refuses an ApiVersions request with error 35. For type checkers, `ResponseFrame[M]`
    holds a message of class M.

        >>> from coordwire import decode_response, encode_response
        >>> from coordwire.messages import HeartbeatRequest, HeartbeatResponse
        >>> data = encode_response(HeartbeatResponse(error_code=27), version=4, correlation_id=7)
        >>> frame = decode_response(data, request_class=HeartbeatRequest, version=4)
        >>> frame.correlation_id, frame.message.error_code
        (7, 27)
    """

    body_version: int


Frame = RequestFrame | ResponseFrame


# --- whole frames, size prefix included ---


def decode_request(data: Buffer, *, strict: bool = True) -> RequestFrame:
    """The request that these bytes hold, size prefix included.

    strict=False accepts what Apache Kafka accepts, and lists each `Deviation` in `.deviations`. Raises
    `DecodeError` (for an unknown API or version too, with the header in `partial`); positions count from
    after the size prefix.
    """
    if _requests is not None:
        frame: RequestFrame | None = _requests.read(data, True)
        if frame is not None:
            return frame
    return _read_request(_body(data), strict, None, declined=isinstance(data, bytes))


@overload
def decode_response(
    data: Buffer, *, api_key: int, version: int, strict: bool = True
) -> ResponseFrame[Response]: ...
@overload
def decode_response(
    data: Buffer, *, request_class: type[Request[R]], version: int, strict: bool = True
) -> ResponseFrame[R]: ...
def decode_response(
    data: Buffer,
    *,
    api_key: int | None = None,
    request_class: type[Request[Any]] | None = None,
    version: int,
    strict: bool = True,
) -> ResponseFrame[Any]:
    """The response that these bytes hold, size prefix included.

    api_key, version: its request's. request_class: the request's class, in place of the api key; type
    checkers then know the class of the response. As `decode_request` otherwise. Raises `TypeError` unless
    exactly one of `api_key` and `request_class` is given.
    """
    if request_class is not None or api_key is None:
        api_key = _request_key(api_key, request_class)
    if _responses is not None:
        frame: ResponseFrame[Response] | None = _responses.read(data, True, api_key, version)
        if frame is not None:
            return frame
    declined = isinstance(data, bytes) and api_key != API_VERSIONS
    return _read_response(_body(data), api_key, version, strict, None, declined=declined)


def _request_key(api_key: int | None, request_class: type[Request[Any]] | None) -> int:
    """The api key of the class, where no key is given."""
    if api_key is not None or request_class is None:
        raise TypeError("expected either api_key or request_class")
    is_class = isinstance(request_class, type)
    key: int | None = (
        getattr(request_class, "api_key", None) if is_class and issubclass(request_class, Request) else None
    )
    if key is None:
        name = request_class.__name__ if is_class else f"{type(request_class).__name__} object"
        raise TypeError(f"expected a request's class, got {name}")
    return key


def _body(data: Buffer) -> bytes:
    wire = data if isinstance(data, bytes) else bytes(memoryview(data))
    if len(wire) < PREFIX:
        raise Truncated(f"a size prefix needs {PREFIX} bytes, {len(wire)} given", 0)
    (size,) = _SIZE.unpack_from(wire)
    check_size(size)
    if size > len(wire) - PREFIX:
        raise Truncated(
            f"the frame claims {counted(size, 'byte')}, {len(wire) - PREFIX} given", len(wire) - PREFIX
        )
    if size < len(wire) - PREFIX:
        raise Malformed(f"{counted(len(wire) - PREFIX - size, 'byte')} after the frame", size)
    return wire[PREFIX:]


def check_size(size: int) -> None:
    """Refuse the size that a prefix claims, where no frame can have it or the budget forbids it."""
    if size < 0:
        raise Malformed(f"the size prefix is {size}", 0)
    if size > current().frame:
        raise LimitExceeded(f"a frame of {size} bytes exceeds the budget of {current().frame}", 0)


def encode_request(
    message: Message,
    *,
    version: int,
    correlation_id: int,
    client_id: str | None = None,
    header_tags: Mapping[int, bytes] | None = None,
) -> bytes:
    """A request's frame, size prefix and header included.

    correlation_id: int32, echoed by the response. client_id: who asks. header_tags: unknown tagged fields of
    the header, where it is flexible. Raises `EncodeError`.
    """
    if _requests is not None and not header_tags:
        wire = _requests.write(message, version, correlation_id, client_id)
        if wire is not None:
            return wire
    key = _key_of(message, "request")
    body = message.encode(version=version)
    header = RequestHeader(
        request_api_key=key,
        request_api_version=version,
        correlation_id=correlation_id,
        client_id=client_id,  # dropped in kind 0
        tags=dict(header_tags) if header_tags else None,
    )
    return _framed(body, header.encode(version=header_version(key, version, "request")))


def encode_response(
    message: Message, *, version: int, correlation_id: int, header_tags: Mapping[int, bytes] | None = None
) -> bytes:
    """A response's frame, size prefix and header included; `version` is that of the body. Raises
    `EncodeError`."""
    if _responses is not None and not header_tags:
        wire = _responses.write(message, version, correlation_id)
        if wire is not None:
            return wire
    key = _key_of(message, "response")
    body = message.encode(version=version)
    header = ResponseHeader(correlation_id=correlation_id, tags=dict(header_tags) if header_tags else None)
    return _framed(body, header.encode(version=header_version(key, version, "response")))


def _key_of(message: Message, direction: str) -> int:
    if message.api_key is None or message.direction != direction:
        raise NotInVersion(f"expected a {direction}, got {type(message).__name__}")
    return message.api_key


def _framed(body: bytes, header: bytes) -> bytes:
    size = len(header) + len(body)
    if size > 0x7FFF_FFFF:
        raise OutOfRange(f"a frame of {size} bytes is too long for its size prefix")
    return b"".join((_SIZE.pack(size), header, body))


# --- bodies, as streams deliver them ---


def read_request(body: bytes, *, strict: bool = True, marks: list[Mark] | None = None) -> RequestFrame:
    """`decode_request` of what follows the size prefix; `marks` collects where every part is."""
    if _requests is not None and marks is None:
        frame: RequestFrame | None = _requests.read(body, False)
        if frame is not None:
            return frame
    return _read_request(body, strict, marks, declined=True)


def _read_request(body: bytes, strict: bool, marks: list[Mark] | None, *, declined: bool) -> RequestFrame:
    """declined: whether the native engine, where it runs, has seen the bytes."""
    if len(body) < _PEEK.size:
        raise Truncated(f"a request header needs at least {_PEEK.size} bytes, {len(body)} given", len(body))
    key, version = _PEEK.unpack_from(body)
    deviations: list[Deviation] = []
    try:
        cls = find_message(key, "request")
    except KeyError:
        error = UnknownApi(f"api key {key} is unknown", 0, "request_api_key")
        with suppress(DecodeError):  # its header is like any other's
            error.partial, _ = _header(RequestHeader, body, 1, False, [], None)
        raise error from None
    kind = header_version(key, version, "request")
    try:
        header, at = _header(RequestHeader, body, kind, strict, deviations, marks)
    except DecodeError as error:
        if version in cls.versions:
            raise
        raise _unknown_version(cls, version, error.partial) from None
    if version not in cls.versions:
        raise _unknown_version(cls, version, header)
    message = _message(cls, body, at, version, strict, deviations, marks, declined)
    return RequestFrame(
        header=header,
        message=message,
        api_key=key,
        api_version=version,
        size=len(body),
        deviations=deviations,
    )


def _unknown_version(
    cls: type[Message], version: int, header: object, at: int = 2, path: str = "request_api_version"
) -> UnsupportedVersion:
    return UnsupportedVersion(no_version(cls, version), at, path, header)


def read_response(
    body: bytes, api_key: int, version: int, *, strict: bool = True, marks: list[Mark] | None = None
) -> ResponseFrame[Response]:
    """`decode_response` of what follows the size prefix."""
    framer = find_response_framer(body, api_key)
    if framer is not None and marks is None:
        frame: ResponseFrame[Response] | None = framer.read(body, False, api_key, version)
        if frame is not None:
            return frame
    return _read_response(body, api_key, version, strict, marks, declined=True)


def _read_response(
    body: bytes, api_key: int, version: int, strict: bool, marks: list[Mark] | None, *, declined: bool
) -> ResponseFrame[Response]:
    if not isinstance(api_key, int):
        raise UnknownApi(f"expected an int as api key, got {type(api_key).__name__}", 0)
    try:
        cls = find_message(api_key, "response")
    except KeyError:
        raise UnknownApi(f"api key {api_key} is unknown", 0) from None
    refused = api_key == API_VERSIONS and is_unsupported_version(body)
    if version not in cls.versions and not refused:  # a refusal can be read whatever the request's version
        raise _unknown_version(cls, version, None, at=0, path="")
    deviations: list[Deviation] = []
    header, at = _header(
        ResponseHeader, body, header_version(api_key, version, "response"), strict, deviations, marks
    )
    body_version = answered_version(body, version) if api_key == API_VERSIONS else version
    declined &= not refused  # which no framer reads
    message = _message(cls, body, at, body_version, strict, deviations, marks, declined)
    return ResponseFrame(
        header=header,
        message=message,
        api_key=api_key,
        api_version=version,
        size=len(body),
        deviations=deviations,
        body_version=body_version,
    )


def answered_version(body: bytes, version: int) -> int:
    """The version in which an ApiVersions answer is written, given without its size prefix: 0 if it refuses
    the request's version, though there are brokers that write the refusal in the version that they refuse."""
    if version == 0 or not is_unsupported_version(body):
        return version
    cls, budget = find_message(API_VERSIONS, "response"), current()
    for candidate in (0, version):
        with suppress(Exception):  # of the fast decoder, which refuses what the interpreter does
            # after the correlation id, which is all of its header
            _, end = decoder(cls, candidate)(body, _SIZE.size, budget.elements, budget.memory)
            if end == len(body):
                return candidate
    return 0


def is_unsupported_version(body: bytes) -> bool:
    """Whether an ApiVersions response refuses the request's version; its body is then of version 0."""
    return len(body) >= _ERROR.size and bool(_ERROR.unpack_from(body)[1] == UNSUPPORTED_VERSION)


def _header(
    cls: type[H],
    body: bytes,
    version: int,
    strict: bool,
    deviations: list[Deviation],
    marks: list[Mark] | None,
) -> tuple[H, int]:
    """The header at the start of a body, and the position after it."""
    if marks is None:
        try:
            header, at = decoder(cls, version)(body, 0, 1000, 1 << 20)
            if at <= len(body):
                return header, at
        except Exception:  # whatever it was: the interpreter words it
            pass
    from coordwire.codec.interpreter.decoder import Reader  # for what the fast decoders decline

    reader = Reader(body, 0, version, strict=strict, deviations=deviations, marks=marks)
    return reader.message(cls, to_end=False), reader.pos


def _message(
    cls: type[M],
    body: bytes,
    at: int,
    version: int,
    strict: bool,
    deviations: list[Deviation],
    marks: list[Mark] | None,
    declined: bool,
) -> M:
    if marks is None and (native is None or not declined):
        return cls._decode_at(body, at, version, strict, deviations)
    from coordwire.codec.interpreter.decoder import Reader

    return Reader(body, at, version, strict=strict, deviations=deviations, marks=marks).message(cls)


# --- in native code ---


def _framer(
    frame: type[_Frame[Any, Any]], header: type[Message], direction: str, *, of_versions: bool = False
) -> _native.Framer | None:
    """What reads and writes a direction's frames in one call, where the native engine runs: None where it
    doesn't, and for a frame that is left to the functions above, which word what is wrong. of_versions:
    whether it serves the answers to ApiVersions or all others."""

    def route(key: int, version: int) -> tuple[_native.Program, _native.Program] | None:
        """The programs of header and message."""
        if ((key, direction) == (API_VERSIONS, "response")) != of_versions:
            return None
        try:
            cls = find_message(key, direction)
        except KeyError:
            return None
        head, body = header_version(key, version, direction), message_program(cls, version)
        first = message_program(header, head)
        return None if first is None or body is None else (first, body)

    return None if native is None else native.Framer(frame, header(), direction == "request", route)


_requests = _framer(RequestFrame, RequestHeader, "request")
_responses = _framer(ResponseFrame, ResponseHeader, "response")
_versions = _framer(ResponseFrame, ResponseHeader, "response", of_versions=True)
request_framer, response_framer = _requests, _responses
"""The same for connections, which read frames in place; None without the native engine."""


def find_response_framer(body: bytes, api_key: int) -> _native.Framer | None:
    """What reads this answer, given without its size prefix, in one call; None without the native engine, and
    for a refusal of ApiVersions, whose body may be of another version than it is asked for."""
    if api_key != API_VERSIONS:
        return _responses
    return None if is_unsupported_version(body) else _versions
