"""Frames to their entries' content, at once or at the first question for it: header, message, or the refusal.

Strategy: many readers need the content of few frames. A lazy entry has what its first bytes and its request
name (API, version, correlation id). The first question for anything else decodes all of it, and makes it a
`FrameEntry` like any other. Rules: nothing raises; of a frame that is refused the entry has what was read
before that. What API and version a response has its request says. No reason quotes a number of four bytes or
more: where the bytes aren't what they are taken for, it may be a piece of a secret. A lazy entry's attributes
are those of an eager one, in whatever order they are read; the conversation decides which frames can't be
lazy. `coordwire.capture.body_text`, which checks a frame at less cost, may set attributes before.
"""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import Any, TypeVar

from coordwire.capture.entries import FrameEntry
from coordwire.capture.flows import TcpConnection
from coordwire.capture.framing import FrameBody
from coordwire.capture.printable import without_numbers
from coordwire.codec import Message
from coordwire.connection.dialect import KAFKA, Direction
from coordwire.errors import DecodeError, Deviation
from coordwire.frames import (
    find_response_framer,
    is_unsupported_version,
    read_request,
    read_response,
    request_framer,
)
from coordwire.messages.headers import RequestHeader, ResponseHeader
from coordwire.versions import API_VERSIONS, LASTING_CLIENT_KEYS, header_version

H = TypeVar("H", RequestHeader, ResponseHeader)

_REQUEST = struct.Struct(">hhi")


def unquoted(error: DecodeError) -> DecodeError:
    """The same error, whose reason quotes no large number."""
    error.reason = without_numbers(error.reason)
    error.args = (error.reason,)
    return error


def unquoted_deviations(deviations: list[Deviation]) -> list[Deviation]:
    """The same deviations, whose reasons quote no large number."""
    return deviations and [
        replace(deviation, reason=without_numbers(deviation.reason)) for deviation in deviations
    ]


def read_asked(entry: FrameEntry, *, strict: bool) -> None:
    """Decode a request of which the API, the version and the correlation id are known."""
    try:
        frame = read_request(entry.body, strict=strict)
    except DecodeError as error:
        refused_request(entry, error)
        return
    entry.header, entry.message = frame.header, frame.message
    entry.deviations = unquoted_deviations(frame.deviations)
    _name_client(entry, frame.header)


def refused_request(entry: FrameEntry, error: DecodeError) -> None:
    """The readable part of a request that was refused."""
    entry.error = unquoted(error)
    if isinstance(error.partial, RequestHeader):
        entry.header = error.partial
    elif isinstance(error.partial, Message):
        entry.message = error.partial
    if len(entry.body) >= _REQUEST.size:
        entry.api_key, entry.api_version, entry.correlation_id = _REQUEST.unpack_from(entry.body)
        entry.body_version = entry.api_version
    if entry.header is None and entry.message is not None:
        entry.header = _header(RequestHeader, entry, "request")
    if isinstance(entry.header, RequestHeader):
        _name_client(entry, entry.header)


def _name_client(entry: FrameEntry, header: RequestHeader) -> None:
    """The client that the header names; else it stays the one that is known of the connection."""
    if header.client_id is not None:
        entry.client_id = header.client_id


def read_answer(entry: FrameEntry, request: FrameEntry, *, strict: bool) -> None:
    """Decode a response as the answer of a request that names its API and version."""
    assert request.api_key is not None
    assert request.api_version is not None
    entry.request, entry.client_id = request, request.client_id
    entry.mechanism = request.mechanism
    entry.api_key, entry.api_version = request.api_key, request.api_version
    entry.body_version = request.api_version
    entry.error = None
    try:
        frame = read_response(entry.body, request.api_key, request.api_version, strict=strict)
    except DecodeError as error:
        entry.error = unquoted(error)
        if isinstance(error.partial, ResponseHeader):
            entry.header = error.partial
        elif isinstance(error.partial, Message):
            entry.message = error.partial
            entry.header = _header(ResponseHeader, entry, "response")
        if request.api_key == API_VERSIONS and is_unsupported_version(entry.body):
            entry.body_version = 0
    else:
        entry.header, entry.message = frame.header, frame.message
        entry.deviations = unquoted_deviations(frame.deviations)
        entry.body_version = frame.body_version


def _header(cls: type[H], entry: FrameEntry, direction: str) -> H:
    """The header of a frame whose message was begun, so that it can be read."""
    assert entry.api_key is not None
    assert entry.api_version is not None
    kind = header_version(entry.api_key, entry.api_version, direction)
    from coordwire.codec.interpreter.decoder import Reader  # for what the fast decoders decline

    return Reader(entry.body, 0, kind, strict=False).message(cls, to_end=False)


LATE = ("client_id", "header", "message", "error", "deviations")
"""What is decoded."""


class LazyEntry(FrameEntry):
    """A frame that isn't decoded yet."""

    __slots__ = ()

    def decode(self) -> bool:
        """Decode it; it is a plain `FrameEntry` from here on. Whether it was read whole and no text of its
        message has a zero, as far as that is known at once."""
        self.__class__ = FrameEntry  # type: ignore[assignment]
        return _fill_in(self, strict=False)

    def __repr__(self) -> str:
        self.decode()
        return repr(self)

    def __eq__(self, other: object) -> bool:
        self.decode()
        return self == other

    __hash__ = None  # type: ignore[assignment]

    def __reduce_ex__(self, protocol: Any) -> Any:
        self.decode()
        return self.__reduce_ex__(protocol)

    def reduced(self) -> FrameEntry:
        self.decode()
        return self.reduced()


class StrictLazyEntry(LazyEntry):
    """A lazy entry of a strict reader, which tolerates no deviation."""

    __slots__ = ()

    def decode(self) -> bool:
        self.__class__ = FrameEntry  # type: ignore[assignment]
        return _fill_in(self, strict=True)


UNDECODED = frozenset((LazyEntry, StrictLazyEntry))
"""The classes of frames that aren't decoded yet."""


class _Late:
    """An attribute that is there once the entry is decoded, or set before."""

    def __init__(self, name: str) -> None:
        self._name = name
        slot = FrameEntry.__dict__[name]
        self._get, self.__set = slot.__get__, slot.__set__

    def __get__(self, entry: LazyEntry, cls: type) -> Any:
        try:
            return self._get(entry)
        except AttributeError:
            return self._find(entry)

    def __set__(self, entry: LazyEntry, value: object) -> None:
        self.__set(entry, value)

    def _find(self, entry: LazyEntry) -> Any:
        if self._name == "client_id" and entry.request is not None:
            return entry.request.client_id
        entry.decode()
        return getattr(entry, self._name)


for _name in LATE:
    setattr(LazyEntry, _name, _Late(_name))


def _fill_in(entry: FrameEntry, *, strict: bool) -> bool:
    """`LazyEntry.decode`: what the native engine reads is filled in at once, else as any other frame is."""
    request: Any = entry.request
    parts = None
    if request is None:
        if request_framer is not None:
            parts = request_framer.parts(entry.body)
    elif (framer := find_response_framer(entry.body, request.api_key)) is not None:
        parts = framer.parts(entry.body, request.api_key, request.api_version)
    if parts is not None:
        entry.header, entry.message, has_zero = parts
        entry.error, entry.deviations = None, []
        if request is None:
            if entry.api_key not in LASTING_CLIENT_KEYS:  # else it is known before
                entry.client_id = parts[0].client_id
        else:
            entry.client_id, entry.mechanism = request.client_id, request.mechanism
        return not has_zero
    if request is not None or entry.api_key not in LASTING_CLIENT_KEYS:
        entry.client_id = None
    entry.header = entry.message = entry.error = None
    entry.deviations = []
    if request is not None:
        read_answer(entry, request, strict=strict)
    else:
        read_asked(entry, strict=strict)
    return False


_new = FrameEntry.__new__


def lazy_entry(
    capture: str, number: int, flow: str, direction: Direction, body: FrameBody,
    head: tuple[int | None, int | None, int | None], request: FrameEntry | None,
    connection: TcpConnection | None, strict: bool,
) -> FrameEntry:  # fmt: skip
    """The entry of a frame of this API, version and correlation id.

    request: a response's; None for a request, which has at least 8 bytes. The body is taken to be of that
    version, which the answer to an ApiVersions request may not be.
    """
    entry: FrameEntry = _new(StrictLazyEntry if strict else LazyEntry)
    entry.capture = capture
    entry.number = number
    entry.flow = flow
    entry.time_ns = body.time_ns
    entry.direction = direction
    entry.body = body.data
    entry.api_key, version, entry.correlation_id = head
    entry.api_version = entry.body_version = version
    entry.request = request
    entry.token = False
    entry.mechanism = None
    entry.dialect = KAFKA
    entry.call = None
    entry.released = 0
    entry.packet, entry.first_packet = body.packet, body.first_packet
    entry.connection = connection
    entry.text = entry.hidden = None
    return entry
