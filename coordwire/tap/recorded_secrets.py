"""Frames as they are recorded: with secrets blanked, since a capture is a file that is passed on.

Strategy: what redaction finds in a message is overwritten by as many zeros or asterisks, so that sizes and
positions stay. Rules: only frames of APIs whose schemas have secrets are read for it; one of these that
cannot be read is blanked after its header's beginning.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from coordwire.capture.partial_messages import steps
from coordwire.capture.redaction.secret_fields import FIELDS, find
from coordwire.frames import PREFIX, RequestFrame, ResponseFrame, encode_request, encode_response
from coordwire.messages.keys import FACTS

__all__ = ["blanked", "blanked_frame", "may_hide"]

_HEAD = PREFIX + 8
"""Bytes of a frame that are not secret: its size, of a request its API, version and number, of a response its
number."""


def may_hide(api_key: int, direction: str) -> bool:
    """Whether messages of an API have places for secrets."""
    facts = FACTS.get(api_key)
    return facts is not None and f"{facts.name}{direction.capitalize()}" in FIELDS


def blanked(wire: bytes) -> bytes:
    """A frame's bytes, size prefix included, without what follows the beginning of its header."""
    return wire[:_HEAD] + bytes(max(0, len(wire) - _HEAD))


def blanked_frame(frame: RequestFrame | ResponseFrame[Any], wire: bytes) -> bytes:
    """A frame as it is recorded. wire: its bytes, size prefix included, which are given back where nothing
    is secret."""
    message = frame.message
    paths = find(message)
    if not paths:
        return wire
    copy = deepcopy(message)
    for path in paths:
        _blank(copy, path)
    number = frame.correlation_id
    if isinstance(frame, RequestFrame):
        return encode_request(
            copy,
            version=frame.api_version,
            correlation_id=number,
            client_id=frame.client_id,
            header_tags=frame.header.tags,
        )
    return encode_response(
        copy, version=frame.body_version, correlation_id=number, header_tags=frame.header.tags
    )


def _blank(message: Any, path: str) -> None:
    *place, last = steps(path)
    owner = message
    for step in place:
        owner = owner[step] if isinstance(step, int) or isinstance(owner, dict) else getattr(owner, step)
    is_item = isinstance(last, int)
    value = owner[last] if is_item else getattr(owner, str(last))
    blank: Any = "*" * len(value.encode()) if isinstance(value, str) else bytes(len(value))
    if is_item:
        owner[last] = blank
    else:
        setattr(owner, str(last), blank)
