"""Frames to what their entries say: header, message, or why they were refused.

Rules: nothing raises; of a frame that is refused the entry has what was read before that. What API and
version a response has its request says. No reason quotes a number of four bytes or more: where the bytes
aren't what they are taken for, it may be a piece of a secret.
"""

from __future__ import annotations

__all__ = ["read_answer", "read_asked", "refused_request", "unquoted", "unquoted_deviations"]

import struct
from dataclasses import replace
from typing import TypeVar

from coordwire.capture.entries import FrameEntry
from coordwire.capture.printable import without_numbers
from coordwire.codec import Message
from coordwire.errors import DecodeError, Deviation
from coordwire.frames import is_unsupported_version, read_request, read_response
from coordwire.messages.headers import RequestHeader, ResponseHeader
from coordwire.versions import API_VERSIONS, header_version

H = TypeVar("H", RequestHeader, ResponseHeader)

_REQUEST = struct.Struct(">hhi")


def unquoted(error: DecodeError) -> DecodeError:
    """The same error, whose reason quotes no large number."""
    error.reason = without_numbers(error.reason)
    error.args = (error.reason,)
    return error


def unquoted_deviations(deviations: list[Deviation]) -> list[Deviation]:
    """The same deviations, whose reasons quote no large number."""
    return [replace(deviation, reason=without_numbers(deviation.reason)) for deviation in deviations]


def read_asked(entry: FrameEntry, *, strict: bool) -> None:
    """Decode a request of which the API, the version and the correlation id are known."""
    try:
        frame = read_request(entry.body, strict=strict)
    except DecodeError as error:
        refused_request(entry, error)
        return
    entry.header, entry.message = frame.header, frame.message
    entry.deviations = unquoted_deviations(frame.deviations)
    entry.client_id = frame.header.client_id


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
        entry.client_id = entry.header.client_id


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
