"""Frames and error codes as rows of their tables.

Strategy: most frames are whole Kafka frames without anything to withhold or to remark on, whose body's text
is known (`body_text`). Their rows are made by one function, put together from an expression for each wanted
column. All others go through the JSON line's form (`frame_form`), of which each column takes its part. Rules:
a row says what `coordwire decode --format json` says of the same frame, whichever way it is made.
"""

from __future__ import annotations

__all__ = ["ERROR_SIZE", "ErrorRows", "FrameRows", "row_size"]

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from coordwire.capture.answer_errors import ErrorPlace, carries_codes, error_code, error_places
from coordwire.capture.body_text import body_text
from coordwire.capture.entries import FrameEntry
from coordwire.capture.jsonlines import encode, frame_form, text
from coordwire.capture.model import TcpConnection
from coordwire.capture.redaction.withheld import NOTHING, Withheld, is_harmless, withheld
from coordwire.messages import find_message
from coordwire.spark.readers.rows import microseconds
from coordwire.versions import api_name

NINE = 9
"""Decimals of a second; the JSON line's own time isn't used."""

ERROR_SIZE = 300
"""About how many bytes a row of the errors table has."""

LATEST = 1 << 62
"""Nanoseconds, up to which times are any; about the year 2116."""

_NO_FORM: dict[str, Any] = {}
RowMaker = Callable[[FrameEntry, str | None, int], Sequence[Any]]


class FrameRows:
    """Frames as rows of the frames table. columns: those that are wanted, by name."""

    def __init__(self, columns: Sequence[str], *, show_secrets: bool) -> None:
        self._getters = [_COLUMNS[name] for name in columns]
        self._formed = any(name in _FORMED for name in columns)
        self._show_secrets = show_secrets
        self._plain_row = _plain_row(columns)

    def row(self, entry: FrameEntry) -> Sequence[Any]:
        """The values, in the order of the columns."""
        if not self._formed:
            return [get(entry, _NO_FORM) for get in self._getters]
        body, found = body_text(entry)
        time_ns = entry.time_ns
        plain = body is not None and time_ns is not None and 0 <= time_ns < LATEST
        if plain and (self._show_secrets or is_harmless(entry)):
            return self._plain_row(entry, body, found)
        hidden = NOTHING if self._show_secrets else withheld(entry)
        form = frame_form(entry, NINE, show_secrets=self._show_secrets, hidden=hidden)
        form["answered"] = (None if hidden.body else error_code(entry)) or _NO_CODE
        return [get(entry, form) for get in self._getters]


class ErrorRows:
    """The error codes of responses as rows of the errors table. columns: those that are wanted, by name."""

    def __init__(self, columns: Sequence[str], *, show_secrets: bool) -> None:
        self._columns = columns
        self._show_secrets = show_secrets

    def rows(self, entry: FrameEntry) -> Iterator[list[Any]]:
        """One for each error code that is not 0, in the order of the columns."""
        hidden: Withheld | None = None
        for place in error_places(entry):
            if hidden is None:
                hidden = NOTHING if self._show_secrets else withheld(entry)
            if hidden.body:
                return
            row = _error_row(entry, place, hidden)
            yield [row[name] for name in self._columns]


def _error_row(entry: FrameEntry, place: ErrorPlace, hidden: Withheld) -> dict[str, Any]:
    found = {name: _COLUMNS[name](entry, _NO_FORM) for name in _OF_FRAME}
    return found | {
        "client_id": None if hidden.client else entry.client_id, "path": place.path,
        "error_code": place.code, "error_name": place.name,
        "error_message": None if place.message_path in hidden.paths else place.message,
        "topic": place.topic or None, "partition": place.partition, "group_id": place.group,
    }  # fmt: skip


def row_size(entry: FrameEntry) -> int:
    """About how many bytes a frame's row has: the body as JSON is seldom more than four times its bytes."""
    return 4 * entry.size + 200


# --- columns ---

Getter = Callable[[FrameEntry, dict[str, Any]], Any]


def _json(name: str) -> Getter:
    def get(entry: FrameEntry, form: dict[str, Any]) -> str | None:
        value = form.get(name)
        return None if value is None else encode(value)

    return get


def _error(name: str) -> Getter:
    return lambda entry, form: (form["error"] or {}).get(name)


def _raw(entry: FrameEntry, form: dict[str, Any]) -> bytes | None:
    return entry.body if "raw" in form else None


def _latency(entry: FrameEntry, form: dict[str, Any]) -> float | None:
    latency = entry.latency_ns
    return None if latency is None else round(latency / 1e6, 6)


def _host(side: str) -> Getter:
    def get(entry: FrameEntry, form: dict[str, Any]) -> str | None:
        return None if entry.connection is None else str(getattr(entry.connection, side))

    return get


_FORMED: dict[str, Getter] = {
    "client_id": lambda entry, form: form["clientId"],
    "error_code": lambda entry, form: form["answered"][0],
    "error_name": lambda entry, form: form["answered"][1],
    "error_reason": _error("reason"),
    "error_position": _error("position"),
    "error_path": _error("path"),
    "body": _json("body"),
    "header_tags": _json("headerTags"),
    "raw": _raw,
    "redacted": lambda entry, form: form.get("redacted"),
    "deviations": _json("deviations"),
}
"""What only the JSON line knows."""

_COLUMNS: dict[str, Getter] = {
    "capture": lambda entry, form: text(entry.capture),
    "frame": lambda entry, form: entry.number,
    "flow": lambda entry, form: entry.flow,
    "client": _host("client"),
    "broker": _host("broker"),
    "time": lambda entry, form: microseconds(entry.time_ns),
    "time_ns": lambda entry, form: entry.time_ns,
    "direction": lambda entry, form: entry.direction,
    "api_key": lambda entry, form: entry.api_key,
    "api": lambda entry, form: entry.api_name,
    "api_version": lambda entry, form: entry.api_version,
    "body_version": lambda entry, form: entry.body_version,
    "correlation_id": lambda entry, form: entry.correlation_id,
    "size": lambda entry, form: entry.size,
    "latency_ms": _latency,
    "dialect": lambda entry, form: str(entry.dialect),
    "token": lambda entry, form: entry.token,
    **_FORMED,
}
_OF_FRAME = ("capture", "frame", "time", "api", "api_version", "client", "broker")
"""Columns that the table of errors has from that of frames."""


# --- rows of plain frames ---


def _plain_row(columns: Sequence[str]) -> RowMaker:
    """What makes the row of a frame whose body's text is known and of which nothing is withheld."""
    scope: dict[str, Any] = {
        "names": _Names(), "ends_of": _Ends(), "no_error": _NoError(), "error_code": error_code,
        "api_name": api_name, "NO_CODE": _NO_CODE,
    }  # fmt: skip
    values = "".join(f"{_PLAIN[name]}, " for name in columns)
    exec(_PLAIN_ROW.format(values=values), scope)  # of the expressions below
    made: RowMaker = scope["plain_row"]
    return made


class _Names(dict[str, str]):
    """Names of captures as text, of which there are few."""

    def __missing__(self, name: str) -> str:
        found = self[name] = text(name)
        return found


class _Ends:
    """The two sides of connections in words, each put together once."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[TcpConnection, tuple[str, str]]] = {}

    def __call__(self, connection: TcpConnection | None) -> tuple[str | None, str | None]:
        if connection is None:
            return (None, None)
        found = self._known.get(connection.stream)
        if found is not None and found[0] is connection:
            return found[1]
        if len(self._known) >= 10_000:
            self._known.clear()
        words = str(connection.client), str(connection.broker)
        self._known[connection.stream] = connection, words
        return words


_NO_CODE: tuple[int | None, str | None] = (None, None)


class _NoError(dict[tuple[int, int], tuple[int | None, str | None]]):
    """By api key and version, the error code and name of a response in which all codes are 0."""

    def __missing__(self, key: tuple[int, int]) -> tuple[int | None, str | None]:
        api_key, version = key
        carries = carries_codes(find_message(api_key, "response"), version)
        found = self[key] = (0, "NONE") if carries else _NO_CODE
        return found


_PLAIN_ROW = """\
def plain_row(e, body, found):
    api_key, time_ns, direction = e.api_key, e.time_ns, e.direction
    client, broker = ends_of(e.connection)
    code = NO_CODE
    latency = None
    if direction == "response":
        code = error_code(e) if found & 1 else no_error[api_key, e.body_version]
        asked_ns = e.request.time_ns
        if asked_ns is not None:
            latency = (time_ns - asked_ns) / 1e6
    return ({values})
"""
"""The function: `found` has 1 for an error code other than 0, 2 for what would be written otherwise (see
`coordwire.codec.transcriber`). A latency of less than 2^53 nanoseconds is exact to six decimals of a
millisecond, and isn't rounded."""

_PLAIN = {
    "capture": "names[e.capture]",
    "frame": "e.number",
    "flow": "e.flow",
    "client": "client",
    "broker": "broker",
    "time": "time_ns // 1000",
    "time_ns": "time_ns",
    "direction": "direction",
    "api_key": "api_key",
    "api": "api_name(api_key)",
    "api_version": "e.api_version",
    "body_version": "e.body_version",
    "correlation_id": "e.correlation_id",
    "client_id": "e.client_id",
    "size": "len(e.body)",
    "latency_ms": "latency",
    "dialect": "'kafka'",
    "token": "False",
    "error_code": "code[0]",
    "error_name": "code[1]",
    "error_reason": "None",
    "error_position": "None",
    "error_path": "None",
    "body": "body",
    "header_tags": "None",
    "raw": "e.body if found & 2 else None",
    "redacted": "None",
    "deviations": "None",
}
"""The columns of a plain frame, as expressions in that function."""
