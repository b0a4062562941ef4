"""`RecordedConnection`: a connection's bytes as they are recorded, without secrets: captures are shared.

Strategy: a frame is recorded as it passes; unless secrets are asked for, what redaction finds in its message
is overwritten by as many zeros or asterisks, so that sizes and positions stay. Rules: only frames of APIs
whose schemas have secrets are read for it; one of these that cannot be read is blanked after its header's
beginning; a bare token is blanked so that it still cannot be read as one of the requests that may follow.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from coordwire.broker.connections.client_link import Recording
from coordwire.capture.partial_messages import steps
from coordwire.capture.redaction.secret_fields import FIELDS, find
from coordwire.frames import PREFIX, RequestFrame, ResponseFrame, encode_request, encode_response
from coordwire.messages.keys import FACTS

__all__ = ["RecordedConnection", "blanked", "blanked_frame", "may_hide"]


class RecordedConnection:
    """A connection, of which nothing is recorded before `open`."""

    def __init__(self, *, show_secrets: bool) -> None:
        self._traffic: Recording | None = None
        self._show_secrets = show_secrets
        self._number = -1

    def open(self, traffic: Recording, client: tuple[str, int], broker: tuple[str, int]) -> None:
        """Record the connection from now on."""
        self._traffic = traffic
        self._number = traffic.opened(client, broker)

    def hides(self, api_key: int, *, to_client: bool) -> bool:
        """Whether messages of an API are recorded without their secrets."""
        direction = "response" if to_client else "request"
        return self._traffic is not None and not self._show_secrets and may_hide(api_key, direction)

    def add(self, data: bytes, *, to_client: bool) -> None:
        """Record bytes as they are."""
        if self._traffic is not None:
            self._traffic.add(self._number, data, to_client=to_client)

    def add_frame(
        self,
        wire: bytes,
        frame: RequestFrame | ResponseFrame[Any] | None,
        api_key: int,
        *,
        to_client: bool,
    ) -> None:
        """Record a frame. wire: its bytes. frame: what was read of them, if it was."""
        if self._traffic is None:
            return
        if frame is not None and not self._show_secrets:
            wire = blanked_frame(frame, wire)
        elif self.hides(api_key, to_client=to_client):
            wire = blanked(wire)
        self.add(wire, to_client=to_client)

    def add_unmatched(self, wire: bytes) -> None:
        """Record a response that belongs to no request."""
        self.add(wire if self._show_secrets else blanked(wire), to_client=True)

    def add_token(self, wire: bytes, *, to_client: bool) -> None:
        """Record a bare token."""
        if not self._show_secrets:
            wire = wire[:PREFIX] + b"\xff" * (len(wire) - PREFIX)
        self.add(wire, to_client=to_client)


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
