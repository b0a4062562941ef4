"""Columns of plain frames: whole Kafka frames whose body's text is known and of which nothing is withheld.

Strategy: each wanted column has an expression by lists of what is in the frames' slots; the function that
makes columns is built from these once. Rule: columns hold what the JSON lines of the same frames hold.
"""

from __future__ import annotations

__all__ = ["NO_CODE", "THROTTLE", "KnownEnds", "column_maker"]

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from coordwire._speedups import native
from coordwire.capture.answer_errors import (
    KnownAnswers,
    carries_codes,
    error_code,
)
from coordwire.capture.body_text import NO_TEXT
from coordwire.capture.entries import FrameEntry
from coordwire.capture.flows import TcpConnection
from coordwire.capture.jsonlines import text
from coordwire.codec.transcriber import HAS_CODES
from coordwire.codec.walk import fields_of
from coordwire.messages import find_message
from coordwire.versions import api_name

NO_CODE: tuple[int | None, str | None] = (None, None)

ConnectionSides: TypeAlias = "tuple[TcpConnection | None, str | None, str | None]"
"""A connection and its two sides in words."""

MOST_ENDS = 10_000
"""The ends of so many connections are kept in words."""

NO_ENDS: ConnectionSides = (None, None, None)


def column_maker(columns: Sequence[str]) -> Callable[[Sequence[FrameEntry]], Sequence[Sequence[Any]]]:
    """A function that makes the columns of plain frames."""
    values = "".join(f"{_VALUES.get(name) or f'[{_SAME[name]}] * len(es)'}, " for name in columns)
    scope = _scope()
    exec(_COLUMNS.format(values=values), scope)
    function: Callable[[Sequence[FrameEntry]], Sequence[Sequence[Any]]] = scope["plain_columns"]
    return function


def _scope() -> dict[str, Any]:
    """The names that the expressions use."""
    ends, answers = KnownEnds(), _Answers()
    return {
        "lists": _slot_lists, "names": _Names(), "apis": _Apis(),
        "known_ends": ends.known, "ends_of": ends, "no_answer": NO_ANSWER,
        "usual": answers, "answer_of": KnownAnswers(answers.of).of,
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


class KnownEnds:
    """The two sides of connections in words, each put together once. known: by the connections' own ids,
    which are theirs for as long as they are kept here."""

    def __init__(self) -> None:
        self.known: dict[int, ConnectionSides] = {}

    def __call__(self, connection: TcpConnection | None) -> ConnectionSides:
        """Add the ends of a connection."""
        if connection is None:
            return NO_ENDS
        if len(self.known) >= MOST_ENDS:
            self.known.clear()
        ends = self.known[id(connection)] = connection, str(connection.client), str(connection.broker)
        return ends


THROTTLE = "throttleTimeMs"
"""What Kafka's JSON form calls the time; nested structs have no field of this name."""

_KEY = f'"{THROTTLE}":'
"""A key in compact JSON; inside of a text its quotes would be escaped."""

_DIGITS = len(str(-(1 << 31)))

AnswerValues: TypeAlias = "tuple[int | None, int | None, str | None]"
"""The throttle time of a response, its error code and the code's name."""

NO_ANSWER: AnswerValues = (None, *NO_CODE)


class _Answers(dict[tuple[Any, Any], tuple[slice, str, AnswerValues]]):
    """What the texts of responses say. By API and version: what most texts have in one place, and what they
    say then, if they have no error codes."""

    def __missing__(self, api: tuple[int, int]) -> tuple[slice, str, AnswerValues]:
        """Look whether a response has a throttle time, which is mostly 0, and where; and its error code and
        name where all codes in it are 0."""
        key, version = api
        cls = find_message(key, "response")
        code = (0, "NONE") if carries_codes(cls, version) else NO_CODE
        names = [field.name for field in fields_of(cls) if field.exists(version)]
        value: tuple[slice, str, AnswerValues] = slice(0), "", (None, *code)
        if "throttle_time_ms" in names:
            text = f"{{{_KEY}0," if names[0] == "throttle_time_ms" else f",{_KEY}0}}"
            part = slice(len(text)) if text[0] == "{" else slice(-len(text), None)
            value = part, text, (0, *code)
        self[api] = value
        return value

    def of(self, entry: FrameEntry) -> AnswerValues:
        """What the text of a plain response says."""
        _, usual, (_, *no_error) = self[entry.api_key, entry.body_version]
        text, flags = entry.text or NO_TEXT
        code = error_code(entry) or NO_CODE if flags & HAS_CODES else no_error
        return _throttle(text) if usual and text is not None else None, *code


def _throttle(text: str) -> int | None:
    """The throttle time in a response's text. Most are the first field of the text, or the last one."""
    at = text.find(_KEY, 0, 40)
    if at < 0:
        at = text.rfind(_KEY, len(text) - 40)
    if at < 0:
        at = text.find(_KEY)
    if at < 0:
        return None
    at += len(_KEY)
    return int(text[at : at + _DIGITS].partition(",")[0].partition("}")[0])


_SLOTS = (
    "capture", "number", "flow", "time_ns", "body", "api_key", "api_version", "body_version",
    "correlation_id", "client_id", "request", "connection", "text",
)  # fmt: skip

_VALUES = {
    "input_file": "[names[capture] for capture in captures]",
    "frame": "numbers",
    "flow": "flows",
    "client_address": "[one[1] for one in ends]",
    "broker_address": "[one[2] for one in ends]",
    "time": "[time // 1000 for time in times]",
    "time_ns": "times",
    "direction": "['request' if asked is None else 'response' for asked in requests]",
    "api_key": "keys",
    "api": "[apis[key] for key in keys]",
    "api_version": "versions",
    "body_version": "body_versions",
    "correlation_id": "ids",
    "client_id": "clients",
    "size": "list(map(len, bodies))",
    "latency_ms": "[None if asked is None or asked.time_ns is None else (time - asked.time_ns) / 1e6"
    " for time, asked in zip(times, requests)]",
    "throttle_time_ms": "[one[0] for one in answers]",
    "error_code": "[one[1] for one in answers]",
    "error_name": "[one[2] for one in answers]",
    "body": "texts",
    "raw": "[body if found & 2 else None for body, found in zip(bodies, flags)] if max(flags) & ~1"
    " else [None] * len(es)",
}
"""The columns that differ, as expressions by the lists of the entries' values."""

_SAME = {
    "dialect": "'kafka'",
    "token": "False",
    **dict.fromkeys(
        ("error_reason", "error_position", "error_path", "header_tags", "redacted", "deviations"), "None"
    ),
}
"""The columns of which all plain frames have one value."""

_COLUMNS = """\
def plain_columns(es):
    (captures, numbers, flows, times, bodies, keys, versions, body_versions, ids, clients, requests,
     connections, body_texts) = lists(es)
    texts, flags = zip(*body_texts)
    ends = [known_ends.get(id(connection)) or ends_of(connection) for connection in connections]
    answers = [
        no_answer if asked is None
        else known[2] if text[(known := usual[key, version])[0]] == known[1] and not found & 1
        else answer_of(e, text)
        for e, asked, key, version, text, found in zip(es, requests, keys, body_versions, texts, flags)
    ]
    return ({values})
"""

_slot_lists = None if native is None else native.SlotMaker(FrameEntry, _SLOTS).lists
"""Without the native half no frame is plain."""
