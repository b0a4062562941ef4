"""Rows of plain frames: whole Kafka frames whose body's text is known and of which nothing is withheld.

Strategy: each wanted column has an expression by the entry `e`, and perhaps a cheaper one for many entries
`es`; the functions that make a row and columns are built from these once. Rule: columns hold what the rows
of the same frames hold.
"""

from __future__ import annotations

__all__ = ["NO_CODE", "THROTTLE", "column_maker", "row_maker"]

import re
from collections.abc import Callable, Sequence
from typing import Any

from coordwire.capture.answer_errors import carries_codes, error_code
from coordwire.capture.body_text import known_client
from coordwire.capture.entries import FrameEntry
from coordwire.capture.flows import TcpConnection
from coordwire.capture.jsonlines import text
from coordwire.codec.walk import fields_of
from coordwire.messages import find_message
from coordwire.versions import api_name

NO_CODE: tuple[int | None, str | None] = (None, None)

MOST_ENDS = 10_000
"""The ends of so many connections are kept in words."""


def row_maker(columns: Sequence[str]) -> Callable[[FrameEntry], Sequence[Any]]:
    """A function that makes the row of a plain frame."""
    values = "".join(f"{_VALUES[name]}, " for name in columns)
    function: Callable[[FrameEntry], Sequence[Any]] = eval(f"lambda e: ({values})", _scope())
    return function


def column_maker(columns: Sequence[str]) -> Callable[[Sequence[FrameEntry]], Sequence[Sequence[Any]]]:
    """A function that makes the columns of plain frames."""
    values = "".join(f"{_MANY.get(name) or f'[{_VALUES[name]} for e in es]'}, " for name in columns)
    scope = _scope()
    exec(_COLUMNS.format(values=values), scope)
    function: Callable[[Sequence[FrameEntry]], Sequence[Sequence[Any]]] = scope["plain_columns"]
    return function


def _scope() -> dict[str, Any]:
    """The names that the expressions use."""
    return {
        "names": _Names(), "ends_of": _Ends(), "apis": _Apis(), "no_error": _NoError(),
        "error_code": error_code, "NO_CODE": NO_CODE, "known_client": known_client,
        "throttle": _Throttle(),
    }  # fmt: skip


class _Names(dict[str, str]):
    """Names of captures as text, of which there are few."""

    def __missing__(self, name: str) -> str:
        value = self[name] = text(name)
        return value


class _Apis(dict[int, str | None]):
    """APIs' names by their keys, of which there are 65,536."""

    def __missing__(self, key: int) -> str | None:
        value = self[key] = api_name(key)
        return value


class _Ends:
    """The two sides of connections in words, each put together once."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[TcpConnection, tuple[str, str]]] = {}

    def __call__(self, connection: TcpConnection | None) -> tuple[str | None, str | None]:
        if connection is None:
            return (None, None)
        known = self._known.get(id(connection))  # its own for as long as it is kept here
        if known is not None:
            return known[1]
        if len(self._known) >= MOST_ENDS:
            self._known.clear()
        words = str(connection.client), str(connection.broker)
        self._known[id(connection)] = connection, words
        return words


class _NoError(dict[tuple[int, int], tuple[int | None, str | None]]):
    """By api key and version, the error code and name of a response in which all codes are 0."""

    def __missing__(self, key: tuple[int, int]) -> tuple[int | None, str | None]:
        api_key, version = key
        carries = carries_codes(find_message(api_key, "response"), version)
        value = self[key] = (0, "NONE") if carries else NO_CODE
        return value


THROTTLE = "throttleTimeMs"
"""What Kafka's JSON form calls the time; nested structs have no field of this name."""

_KEY = f'"{THROTTLE}":'
"""A key in compact JSON; inside of a text its quotes would be escaped."""

_NUMBER = re.compile(r"-?\d+")


class _Throttle:
    """The throttle time in a response's text. Most are the first field of the text, or the last one."""

    def __init__(self) -> None:
        self._present: dict[tuple[int | None, int | None], bool] = {}

    def __call__(self, entry: FrameEntry) -> int | None:
        key = entry.api_key, entry.body_version
        present = self._present.get(key)
        if present is None:
            fields = fields_of(find_message(entry.api_key or 0, "response"))
            present = self._present[key] = any(
                field.name == "throttle_time_ms" and field.exists(entry.body_version or 0) for field in fields
            )
        if not present or entry.text is None or entry.text[0] is None:
            return None
        text = entry.text[0]
        at = text.rfind(_KEY, len(text) - 40) if text.find(_KEY, 0, 40) < 0 else text.find(_KEY)
        at = text.find(_KEY) if at < 0 else at
        number = _NUMBER.match(text, at + len(_KEY)) if at >= 0 else None
        return int(number[0]) if number else None


_CODE = """\
(NO_CODE if e.direction == "request" else error_code(e) or NO_CODE if e.text[1] & 1 else
no_error[e.api_key, e.body_version])"""
"""The error code and its name. `e.text[1]` has 1 for an error code other than 0, 2 for what would be written
otherwise (see `coordwire.codec.transcriber`)."""

_LATENCY = """\
None if e.direction == "request" or e.request.time_ns is None else (e.time_ns - e.request.time_ns) / 1e6"""
"""Less than 2^53 nanoseconds are exact to six decimals of a millisecond, and aren't rounded."""

_VALUES = {
    "input_file": "names[e.capture]",
    "frame": "e.number",
    "flow": "e.flow",
    "client_address": "ends_of(e.connection)[0]",
    "broker_address": "ends_of(e.connection)[1]",
    "time": "e.time_ns // 1000",
    "time_ns": "e.time_ns",
    "direction": "e.direction",
    "api_key": "e.api_key",
    "api": "apis[e.api_key]",
    "api_version": "e.api_version",
    "body_version": "e.body_version",
    "correlation_id": "e.correlation_id",
    "client_id": "e.client_id",
    "size": "len(e.body)",
    "latency_ms": _LATENCY,
    "throttle_time_ms": "None if e.direction == 'request' else throttle(e)",
    "dialect": "'kafka'",
    "token": "False",
    "error_code": f"{_CODE}[0]",
    "error_name": f"{_CODE}[1]",
    "error_reason": "None",
    "error_position": "None",
    "error_path": "None",
    "body": "e.text[0]",
    "header_tags": "None",
    "raw": "e.body if e.text[1] & 2 else None",
    "redacted": "None",
    "deviations": "None",
}
"""The columns, as expressions by an entry whose text is known."""

_MANY = {
    "client_address": "[one[0] for one in ends]",
    "broker_address": "[one[1] for one in ends]",
    "client_id": "list(map(known_client, es))",
    "dialect": "['kafka'] * len(es)",
    "error_code": "[one[0] for one in codes]",
    "error_name": "[one[1] for one in codes]",
    **{
        name: f"[{_VALUES[name]}] * len(es)"
        for name in ("token", "error_reason", "error_position", "error_path", "header_tags", "redacted",
                     "deviations")
    },
}  # fmt: skip
"""The columns that many entries have more cheaply."""

_COLUMNS = f"""\
def plain_columns(es):
    ends = [ends_of(e.connection) for e in es]
    codes = [{_CODE} for e in es]
    return ({{values}})
"""
