"""JSON lines of plain frames, put together from their texts.

Strategy: most frames are plain: whole Kafka frames whose body's text is known and of which nothing is
withheld. Their lines differ in a few numbers and texts; what an API adds on a connection, and a latency, is
put together once. Rules: a line is that of `coordwire.capture.jsonlines`, which is the oracle
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
from coordwire.capture.redaction.entry_secrets import ZERO, is_always_harmless, is_shown_whole
from coordwire.codec.transcriber import HAS_CODES, OTHERWISE
from coordwire.errors import UnreadableRange
from coordwire.versions import api_name

SECOND, MICROSECONDS = 1_000_000_000, 6
"""Nanoseconds; decimals of a second."""

MOST_PLACES = 50_000
"""So many texts of each kind are kept: what APIs of flows add to their lines, and latencies."""

LONGEST_LATENCY_NS = 1 << 53
"""Latencies below this are exact in milliseconds with six decimals."""

_Place = tuple[TcpConnection | None, str, str, str, bool]
"""Of an API in a version on a connection, in one direction: the connection, the flow, what comes before the
time, what comes before the correlation id, and whether its frames are harmless but for zeros."""


class PlainLines:
    """The lines of one output. show_secrets: nothing is withheld."""

    def __init__(self, *, show_secrets: bool) -> None:
        self._show_secrets = show_secrets
        self._capture: tuple[str | None, str] = (None, "")
        self._places: dict[tuple[int, int | None, int | None, bool], _Place] = {}
        self._latencies: dict[int, str] = {}
        self._second: int | None = None
        self._second_text = ""
        self._errors = ErrorTexts(_errors)

    def line(self, entry: Entry, digits: int) -> str | None:
        """A plain frame's line; None for every other entry. digits: decimals of a second in its time."""
        if isinstance(entry, UnreadableRange):
            return None
        text, flags = entry.text or body_text(entry)
        request, version, time_ns, packet = entry.request, entry.api_version, entry.time_ns, entry.packet
        if (
            text is None
            or flags & OTHERWISE
            or version != entry.body_version
            or time_ns is None
            or packet is None
        ):
            return None
        place = self._places.get((id(entry.connection), entry.api_key, version, request is None))
        if place is None or place[1] != entry.flow:
            place = self._add_place(entry)
        _, _, flow, api, is_harmless = place
        client = known_client(entry)
        if client is None and entry.client_is_unknown:
            return None
        request_place = latency = errors = ""
        if request is None:
            if not is_harmless or ZERO in text:
                is_harmless = self._show_secrets or is_shown_whole(entry, text)
        else:
            if not is_harmless or ZERO in text or request.text is None or ZERO in (request.text[0] or ZERO):
                is_harmless = self._show_secrets or is_shown_whole(entry, text)
            request_place = f',"request":{request.number}'
            if request.packet is not None:
                request_place = f'{request_place},"requestPacket":{request.packet}'
            if request.time_ns is not None:
                latency_ns = time_ns - request.time_ns
                latency = self._latencies.get(latency_ns) or self._add_latency(latency_ns)
                if not latency:
                    return None
        if not is_harmless:
            return None
        if flags & HAS_CODES and request is not None:
            errors = self._errors.of(entry, text)
        capture = self._capture
        if capture[0] is not entry.capture:
            name = entry.capture
            capture = self._capture = name, f'{{"capture":{quoted(name_text(name))},"frame":'
        if digits == MICROSECONDS and time_ns // SECOND == self._second:
            time = f"{self._second_text}{time_ns // 1000 % 1_000_000:06d}Z"
        else:
            time = self._time(time_ns, digits)
        return (
            f'{capture[1]}{entry.number},"packet":{packet},"firstPacket":{entry.first_packet}{flow}'
            f'{time}","direction":"{entry.direction}"{request_place}{api}'
            f'{entry.correlation_id},"clientId":{"null" if client is None else quoted(client)},'
            f'"size":{len(entry.body)}{latency},"body":{text},"error":null{errors}}}\n'
        )

    def _time(self, time_ns: int, digits: int) -> str:
        """The text of a time. That of its second is kept, if it ends as most do."""
        time = format_time(time_ns, digits)
        if digits == MICROSECONDS and time[-1] == "Z":
            self._second, self._second_text = time_ns // SECOND, time[:-7]
        return time

    def _add_latency(self, latency_ns: int) -> str:
        """What a latency adds to its line; "" where it can't be written here."""
        if not -LONGEST_LATENCY_NS < latency_ns < LONGEST_LATENCY_NS:
            return ""
        if len(self._latencies) >= MOST_PLACES:
            self._latencies.clear()
        text = self._latencies[latency_ns] = f',"latencyMs":{latency_ns / 1e6!r}'
        return text

    def _add_place(self, entry: FrameEntry) -> _Place:
        """What the flow and the API add to the lines of one direction of a connection."""
        connection, key, version = entry.connection, entry.api_key, entry.api_version
        assert key is not None
        ends = ""
        if connection is not None:
            client, broker = quoted(str(connection.client)), quoted(str(connection.broker))
            ends = f',"connection":{connection.stream},"client":{client},"broker":{broker}'
        if len(self._places) >= MOST_PLACES:
            self._places.clear()
        flow = f'{ends},"flow":{quoted(entry.flow)},"time":"'
        api = f',"apiKey":{key},"api":{quoted(api_name(key) or "")},"apiVersion":{version},"correlationId":'
        place = connection, entry.flow, flow, api, is_always_harmless(key, entry.direction)
        # Its own id for as long as it is kept.
        self._places[id(connection), key, version, entry.request is None] = place
        return place


def _errors(_: FrameEntry, errors: list[AnswerError]) -> str:
    """What the errors of an answer add to its line."""
    return f',"errors":{encode([error_form(error) for error in errors])}' if errors else ""
