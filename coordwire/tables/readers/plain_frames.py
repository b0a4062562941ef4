"""Rows of plain frames and of the error codes in them: whole Kafka frames whose body's text is known and of
which nothing is withheld.

Strategy: each wanted column has an expression by the entry `e`, and perhaps a cheaper one for many entries
`es`; the functions that make a row and columns are built from these once. Rule: columns hold what the rows
of the same frames hold.
"""

from __future__ import annotations

__all__ = ["NO_CODE", "THROTTLE", "column_maker", "error_row_maker", "row_maker"]

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from coordwire.capture.answer_errors import ErrorPlace, KnownAnswers, carries_codes, error_code
from coordwire.capture.body_text import NO_TEXT, known_client
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


def error_row_maker(columns: Sequence[str]) -> Callable[[FrameEntry, ErrorPlace], Sequence[Any]]:
    """A function that makes the row of an error code of a plain response."""
    values = "".join(f"{_PLACES.get(name) or _VALUES[name]}, " for name in columns)
    function: Callable[[FrameEntry, ErrorPlace], Sequence[Any]] = eval(f"lambda e, p: ({values})", _scope())
    return function


def _scope() -> dict[str, Any]:
    """The names that the expressions use."""
    ends, answers = _Ends(), KnownAnswers(_Answers().of)
    return {
        "names": _Names(), "apis": _Apis(), "known_client": known_client,
        "known_ends": ends.known, "ends_of": ends,
        "no_answer": NO_ANSWER, "known_answers": answers.known, "answer_of": answers.of,
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


class _Answers:
    """What the texts of responses say."""

    def __init__(self) -> None:
        self._layouts: dict[tuple[int | None, int | None], tuple[bool, tuple[int | None, str | None]]] = {}

    def of(self, entry: FrameEntry) -> AnswerValues:
        """What the text of a plain response says."""
        key = entry.api_key, entry.body_version
        has_throttle, code = self._layouts.get(key) or self._add_layout(*key)
        text, flags = entry.text or NO_TEXT
        if flags & HAS_CODES:
            code = error_code(entry) or NO_CODE
        return _throttle(text) if has_throttle and text is not None else None, *code

    def _add_layout(self, key: int | None, version: int | None) -> tuple[bool, tuple[int | None, str | None]]:
        """Whether a response has a throttle time; its error code and name where all codes in it are 0."""
        assert key is not None
        assert version is not None
        cls = find_message(key, "response")
        code = (0, "NONE") if carries_codes(cls, version) else NO_CODE
        has_throttle = any(
            field.name == "throttle_time_ms" and field.exists(version) for field in fields_of(cls)
        )
        layout = self._layouts[key, version] = has_throttle, code
        return layout


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


_ENDS = "known_ends.get(id(e.connection)) or ends_of(e.connection)"
"""The connection and its two sides."""

_ANSWER = """\
no_answer if e.direction == "request" else
known_answers.get((e.api_key, e.body_version, e.text[0])) or answer_of(e, e.text[0])"""
"""What a response's text says."""

_LATENCY = """\
None if e.direction == "request" or e.request.time_ns is None else (e.time_ns - e.request.time_ns) / 1e6"""
"""Less than 2^53 nanoseconds are exact to six decimals of a millisecond, and aren't rounded."""

_VALUES = {
    "input_file": "names[e.capture]",
    "frame": "e.number",
    "flow": "e.flow",
    "client_address": f"({_ENDS})[1]",
    "broker_address": f"({_ENDS})[2]",
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
    "throttle_time_ms": f"({_ANSWER})[0]",
    "dialect": "'kafka'",
    "token": "False",
    "error_code": f"({_ANSWER})[1]",
    "error_name": f"({_ANSWER})[2]",
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

_PLACES = {
    "error_path": "p.path",
    "error_code": "p.code",
    "error_name": "p.name",
    "error_message": "p.message",
    "topic": "p.topic or None",
    "partition": "p.partition",
    "group_id": "p.group",
}
"""The columns of an error code, as expressions by its place `p`."""

_MANY = {
    "client_address": "[one[1] for one in ends]",
    "broker_address": "[one[2] for one in ends]",
    "client_id": "list(map(known_client, es))",
    "dialect": "['kafka'] * len(es)",
    "throttle_time_ms": "[one[0] for one in answers]",
    "error_code": "[one[1] for one in answers]",
    "error_name": "[one[2] for one in answers]",
    **{
        name: f"[{_VALUES[name]}] * len(es)"
        for name in ("token", "error_reason", "error_position", "error_path", "header_tags", "redacted",
                     "deviations")
    },
}  # fmt: skip
"""The columns that many entries have more cheaply."""

_COLUMNS = f"""\
def plain_columns(es):
    ends = [{_ENDS} for e in es]
    answers = [{_ANSWER} for e in es]
    return ({{values}})
"""
