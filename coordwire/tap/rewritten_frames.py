"""Frames whose messages were changed: encoded as they came, with the same header and in the same version."""

from __future__ import annotations

from typing import Any

from coordwire.codec import Message
from coordwire.frames import RequestFrame, ResponseFrame, decode_response, encode_request, encode_response


def request_wire(frame: RequestFrame, message: Message) -> bytes:
    """The frame of a request with another message. Raises `EncodeError`."""
    return encode_request(
        message,
        version=frame.api_version,
        correlation_id=frame.correlation_id,
        client_id=frame.client_id,
        header_tags=frame.header.tags,
    )


def response_wire(frame: ResponseFrame[Any], message: Message) -> bytes:
    """The frame of a response with another message. Raises `EncodeError`."""
    return encode_response(
        message,
        version=frame.body_version,
        correlation_id=frame.correlation_id,
        header_tags=frame.header.tags,
    )


def read_again(frame: ResponseFrame[Any], wire: bytes) -> Message:
    """The message of a response that was read before, from its bytes."""
    return decode_response(wire, api_key=frame.api_key, version=frame.api_version, strict=False).message
