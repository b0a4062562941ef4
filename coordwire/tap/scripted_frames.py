"""What a script makes of frames.

Strategy: a script's function changes a message in place, which is then encoded. Rules: a frame that it leaves
as it was passes with its own bytes; what cannot be encoded, or comes of a function that raised, passes as it
was. `ClosedByScript` is raised where the connection is to end.
"""

from __future__ import annotations

import logging
from typing import Any

from coordwire.errors import EncodeError
from coordwire.frames import RequestFrame, ResponseFrame, decode_request
from coordwire.tap.counts import TapCounts
from coordwire.tap.rewritten_frames import read_again, request_wire, response_wire
from coordwire.tap.script import Script, TappedExchange, call

__all__ = ["ClosedByScript", "scripted_request", "scripted_response"]

log = logging.getLogger("coordwire.tap")


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
