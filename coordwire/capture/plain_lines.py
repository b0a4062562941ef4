"""JSON lines of plain frames, put together from their texts by the native half.

Strategy: most frames are plain: whole Kafka frames whose body's text is known and of which nothing is
withheld. Their lines differ in a few numbers and texts; what an API, a connection and a second add is put
together here once, when the native half (`PlainLines`) meets them first. Rules: a line is that of
`coordwire.capture.jsonlines`, which is the oracle and serves for all other entries, and without the native
half for all; a message is decoded only where an answer has errors or a secret may be in it; what is kept is
bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from json.encoder import encode_basestring_ascii as quoted
from typing import TYPE_CHECKING, Any, TypeVar

from coordwire._speedups import native
from coordwire.capture.answer_errors import KnownAnswers, answer_errors
from coordwire.capture.body_text import body_text, find_transcribers
from coordwire.capture.entries import Entry, FrameEntry
from coordwire.capture.flows import second_texts
from coordwire.capture.frame_decoding import LazyEntry, StrictLazyEntry
from coordwire.capture.jsonlines import encode, error_form
from coordwire.capture.jsonlines import text as name_text
from coordwire.capture.redaction.entry_secrets import (
    has_nothing_to_redact,
    is_always_harmless,
    shown_text,
)
from coordwire.connection.dialect import Direction
from coordwire.versions import api_name, omits_client

if TYPE_CHECKING:
    from coordwire._speedups import _native

V = TypeVar("V")

MOST_PLACES = 50_000
"""The places of so many directions of connections are kept; a connection has two."""

MOST_APIS = 10_000
"""Those of so many APIs in their versions, which are more than the schemas have."""

MOST_SECONDS = 256
"""The texts of so many seconds are kept: entries follow each other in time."""


class PlainJsonLines:
    """The JSON lines of one output. show_secrets: nothing is withheld.

    line: a plain frame's line; None for every other entry. Its second argument: decimals of its time.
    run: the lines of entries in a list from an index on, and the index of the first entry that has none, or
    whose API is among the last argument. The text ends where it is long, too.
    """

    def __init__(self, *, show_secrets: bool) -> None:
        self._apis: dict[int, _native.ApiRow | None] = {}
        self._places: dict[int, _native.PlaceRow] = {}
        self._seconds: dict[int, tuple[str, str]] = {}
        self._errors = KnownAnswers(_error_text)
        self.native: _native.PlainLines | None = None
        self.line: Callable[[Entry, int], str | None] = _no_line
        self.run: Callable[[list[Any], int, int, frozenset[int]], tuple[str, int]] | None = None
        if native is not None:
            self.native = native.PlainLines(
                (FrameEntry, LazyEntry, StrictLazyEntry),
                (self._apis, self._places, self._seconds),
                self._learn, body_text, None if show_secrets else has_nothing_to_redact, self._errors.of,
            )  # fmt: skip
            self.line, self.run = self.native.line, self.native.run

    def _learn(self, entry: FrameEntry) -> None:
        """Add what an entry brings to the tables that is not there yet."""
        key, version, time_ns = entry.api_key, entry.api_version, entry.time_ns
        if key is None or version is None or time_ns is None:
            return
        is_answer, seconds = entry.request is not None, time_ns // 1_000_000_000
        api = key << 17 | version << 1 | is_answer
        if api not in self._apis:
            _add(self._apis, api, _api_row(entry.direction, key, version), MOST_APIS)
        connection = entry.connection  # whose id is its own for as long as it is kept
        place = connection, entry.flow, entry.capture, *_place_texts(entry)
        _add(self._places, id(connection) | is_answer, place, MOST_PLACES)
        if seconds not in self._seconds:
            _add(self._seconds, seconds, second_texts(seconds), MOST_SECONDS)


@lru_cache(MOST_APIS)
def _api_row(direction: Direction, key: int, version: int) -> _native.ApiRow | None:
    """What the lines of an API have in common, which is the same in all captures."""
    transcribers = find_transcribers(direction, key, version, version)
    if transcribers is None:
        return None
    name = quoted(api_name(key) or "")
    text = f',"apiKey":{key},"api":{name},"apiVersion":{version},"correlationId":'
    return *transcribers, is_always_harmless(key, direction), omits_client(key, version), text


def _add(table: dict[int, V], key: int, row: V, most: int) -> None:
    """Add a row to a table that has so many at most."""
    if len(table) >= most:
        table.clear()
    table[key] = row


LATEST = 1 << 62
"""Nanoseconds, up to which times are any; about the year 2116."""


def is_plain(entry: FrameEntry, *, show_secrets: bool) -> bool:
    """Whether a frame is plain, as `shown_text` has it, and its time is known."""
    time_ns = entry.time_ns
    is_timed = time_ns is not None and 0 <= time_ns < LATEST
    return is_timed and shown_text(entry, show_secrets=show_secrets) is not None


class PlainFrames:
    """Judges which frames are plain."""

    def __init__(self, *, show_secrets: bool) -> None:
        self._show_secrets = show_secrets
        self._lines = PlainJsonLines(show_secrets=show_secrets)

    def flags(self, entries: Sequence[FrameEntry]) -> list[bool]:
        """`is_plain` of each frame."""
        native_lines = self._lines.native
        if native_lines is None:  # there are no texts
            return [False] * len(entries)
        known = native_lines.plain(entries)
        if all(known):
            return [True] * len(known)
        flags = zip(known, entries, strict=True)
        return [flag or is_plain(entry, show_secrets=self._show_secrets) for flag, entry in flags]


def _no_line(entry: Entry, digits: int) -> str | None:
    """No line."""
    return None


def _place_texts(entry: FrameEntry) -> tuple[str, str]:
    """The texts of the direction of an entry's connection."""
    connection = entry.connection
    ends = ""
    if connection is not None:
        client, broker = quoted(str(connection.client)), quoted(str(connection.broker))
        ends = f',"connection":{connection.stream},"client":{client},"broker":{broker}'
    capture = quoted(name_text(entry.capture))
    return f'{{"capture":{capture},"frame":', f'{ends},"flow":{quoted(entry.flow)},"time":"'


def _error_text(entry: FrameEntry) -> str:
    """The text of an answer's errors."""
    errors = answer_errors(entry)
    return f',"errors":{encode([error_form(error) for error in errors])}' if errors else ""
