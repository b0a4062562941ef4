"""JSON lines of plain frames, put together from their texts.

Strategy: most frames are plain: whole Kafka frames whose body's text is known and of which nothing is
withheld. Their lines differ in a few numbers and texts; what a connection and
an API add is put together once. Rules: a line is that of `coordwire.capture.jsonlines`, which is the oracle
and serves for all other entries; no message is decoded for it; what is kept is bounded.
"""

from __future__ import annotations

__all__ = ["PlainLines"]

from json.encoder import encode_basestring_ascii as quoted

from coordwire.capture.answer_errors import AnswerError, ErrorTexts
from coordwire.capture.body_text import body_text, known_client
from coordwire.capture.entries import Entry, FrameEntry
from coordwire.capture.flows import TcpConnection, format_time
from coordwire.capture.jsonlines import encode, error_form
from coordwire.capture.jsonlines import text as name_text
from coordwire.capture.redaction.entry_secrets import is_shown_whole
from coordwire.codec.transcriber import HAS_CODES, OTHERWISE
from coordwire.errors import UnreadableRange
from coordwire.versions import api_name

MOST_PLACES = 50_000
"""The places of so many flows are kept as text; a connection has two."""

LONGEST_LATENCY_NS = 1 << 53
"""Latencies below this are exact in milliseconds with six decimals."""


class PlainLines:
    """The lines of one output. show_secrets: nothing is withheld."""

    def __init__(self, *, show_secrets: bool) -> None:
        self._show_secrets = show_secrets
        self._capture: tuple[str | None, str] = (None, "")
        self._places: dict[tuple[int, bool], tuple[TcpConnection | None, str, str]] = {}
        self._apis: dict[tuple[int | None, int | None], str] = {}
        self._errors = ErrorTexts(_errors)

    def line(self, entry: Entry, digits: int) -> str | None:
        """A plain frame's line; None for every other entry. digits: decimals of a second in its time."""
        if isinstance(entry, UnreadableRange):
            return None
        text, flags = entry.text or body_text(entry)
        request = entry.request
        if text is None or flags & OTHERWISE:
            return None
        version, time_ns, packet = entry.api_version, entry.time_ns, entry.packet
        if version != entry.body_version or time_ns is None or packet is None:
            return None
        api = self._apis.get((entry.api_key, version)) or self._add_api(entry)
        if not self._show_secrets and not is_shown_whole(entry, text):
            return None
        place = self._places.get((id(entry.connection), request is None))
        if place is None or place[1] != entry.flow:
            place = self._add_place(entry)
        client = known_client(entry)
        if client is None and entry.client_is_unknown:
            return None
        latency = request_place = ""
        if request is not None:
            request_place = f',"request":{request.number}'
            if request.packet is not None:
                request_place += f',"requestPacket":{request.packet}'
            if request.time_ns is not None:
                latency_ns = time_ns - request.time_ns
                if not -LONGEST_LATENCY_NS < latency_ns < LONGEST_LATENCY_NS:
                    return None
                latency = f',"latencyMs":{latency_ns / 1e6!r}'
        errors = ""
        if flags & HAS_CODES and request is not None:
            errors = self._errors.of(entry, text)
        capture = self._capture
        if capture[0] is not entry.capture:
            name = entry.capture
            capture = self._capture = name, f'{{"capture":{quoted(name_text(name))},"frame":'
        return (
            f'{capture[1]}{entry.number},"packet":{packet},"firstPacket":{entry.first_packet}{place[2]}'
            f'{format_time(time_ns, digits)}","direction":"{entry.direction}"{request_place}{api}'
            f'{entry.correlation_id},"clientId":{"null" if client is None else quoted(client)},'
            f'"size":{len(entry.body)}{latency},"body":{text},"error":null{errors}}}\n'
        )

    def _add_api(self, entry: FrameEntry) -> str:
        """What an API in a version adds to its lines. There are as many as the schemas have."""
        key, version = entry.api_key, entry.api_version
        assert key is not None
        name = quoted(api_name(key) or "")
        self._apis[key, version] = api = (
            f',"apiKey":{key},"api":{name},"apiVersion":{version},"correlationId":'
        )
        return api

    def _add_place(self, entry: FrameEntry) -> tuple[TcpConnection | None, str, str]:
        """What the flow adds to the lines of one direction of a connection."""
        connection = entry.connection
        ends = ""
        if connection is not None:
            client, broker = quoted(str(connection.client)), quoted(str(connection.broker))
            ends = f',"connection":{connection.stream},"client":{client},"broker":{broker}'
        if len(self._places) >= MOST_PLACES:
            self._places.clear()
        place = connection, entry.flow, f'{ends},"flow":{quoted(entry.flow)},"time":"'
        self._places[id(connection), entry.request is None] = place  # its own id for as long as it is kept
        return place


def _errors(_: FrameEntry, errors: list[AnswerError]) -> str:
    """What the errors of an answer add to its line."""
    return f',"errors":{encode([error_form(error) for error in errors])}' if errors else ""
