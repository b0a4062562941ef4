"""A script of the user: a Python file with functions that see each request and each response.

    def request(exchange):
        if exchange.api == "Produce":
            exchange.request.timeout_ms = 1          # what is changed is sent so

    def response(exchange):
        if exchange.api == "Heartbeat":
            exchange.response.error_code = 27

Strategy: the file is run once, as a module of its own; its functions are called in the tap's loop, one frame
at a time, and change a message in place, which is then encoded. Rules: a function that raises changes
nothing, and its error is logged; a frame that a function leaves as it was passes with its own bytes, and so
does one whose message cannot be encoded after a change. `ClosedByScript` is raised where the connection is to
end.
"""

from __future__ import annotations

import logging
import runpy
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from coordwire.codec import Message
from coordwire.errors import CoordwireError, EncodeError
from coordwire.frames import (
    RequestFrame,
    ResponseFrame,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
)
from coordwire.tap.counts import TapCounts

log = logging.getLogger("coordwire.tap")


class FaultyScript(CoordwireError):
    """A script that cannot be run, or that has neither of the functions."""


@dataclass(slots=True)
class TappedExchange:
    """One request, and its response once that is there.

    api, api_key, version: of both. client_id: whose; node: the broker's id, -1 where it is not known yet.
    request, response: the messages; what a function changes in them is sent so. data: for the script itself.
    """

    api: str
    api_key: int
    version: int
    client_id: str | None
    node: int
    request: Any
    response: Any = None
    data: dict[str, Any] = field(default_factory=dict)
    reply: Message | None = field(default=None, repr=False)
    is_closed: bool = field(default=False, repr=False)

    def answer(self, response: Message) -> None:
        """Answer the request here: the broker does not get it."""
        self.reply = response

    def close(self) -> None:
        """End the connection, in place of sending on what the function was called for."""
        self.is_closed = True


Hook = Callable[[TappedExchange], Any]


@dataclass(frozen=True, slots=True)
class Script:
    """The functions of a script; None for one that it does not have."""

    request: Hook | None = None
    response: Hook | None = None

    @property
    def is_there(self) -> bool:
        """Whether it has any function."""
        return self.request is not None or self.response is not None

    @classmethod
    def load(cls, path: str | Path) -> Script:
        """Run a script's file. Raises `FaultyScript`."""
        try:
            names = runpy.run_path(str(path), run_name="coordwire_script")
        except OSError as error:
            raise FaultyScript(f"{path}: {error.strerror or error}") from None
        except Exception as error:  # the script's own
            raise FaultyScript(f"{path}: {type(error).__name__}: {error}") from error
        request, response = (_function(names.get(name)) for name in ("request", "response"))
        script = cls(request, response)
        if not script.is_there:
            raise FaultyScript(f"{path}: expected a function request or response, got neither")
        return script


def _function(value: object) -> Hook | None:
    return value if callable(value) else None


def call(hook: Hook, exchange: TappedExchange) -> bool:
    """Call a script's function; False if it raised, which is logged."""
    try:
        hook(exchange)
    except Exception:
        log.exception("the script failed for %s", exchange.api)
        return False
    return True


class ClosedByScript(Exception):
    """The script has ended the connection."""


def scripted_request(
    script: Script, exchange: TappedExchange, frame: RequestFrame, wire: bytes
) -> bytes | None:
    """Call the script for a request; what to send in its place, None if it is as it was."""
    hook = script.request
    if hook is None:
        return None
    changed: bytes | None = None
    if call(hook, exchange):
        _check_open(exchange)
        try:
            changed = request_wire(frame, exchange.request)
        except EncodeError as error:
            log.error("what the script made of %s cannot be sent: %s", exchange.api, error)
    if changed is None:  # as it was before the script failed
        exchange.reply = None
        exchange.request = decode_request(wire, strict=False).message
    frame.message = exchange.request
    return None if changed == wire else changed


def scripted_response(
    script: Script, counts: TapCounts, exchange: TappedExchange, frame: ResponseFrame[Any], wire: bytes
) -> bytes:
    """Call the script for a response; what to send in its place."""
    hook = script.response
    if hook is None:
        return wire
    exchange.response = frame.message
    if call(hook, exchange):
        _check_open(exchange)
        try:
            changed = response_wire(frame, exchange.response)
        except EncodeError as error:
            log.error("what the script made of %s cannot be sent: %s", exchange.api, error)
        else:
            frame.message = exchange.response
            if changed == response_wire(frame, read_again(frame, wire)):
                return wire
            counts.changed["script"] += 1
            return changed
    frame.message = read_again(frame, wire)  # as it was before the script failed
    return wire


def _check_open(exchange: TappedExchange) -> None:
    if exchange.is_closed:
        raise ClosedByScript


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
