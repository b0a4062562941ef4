"""Frames and error codes as rows of their tables.

Strategy: most frames are complete Kafka frames with nothing to withhold and no deviation, whose body's text
is known (`body_text`). Their rows are made by `PlainRows`, column by column. What the JSON line says of
the content of all others (`frame_content`) is put between those.
Rules: a row says what `coordwire decode --format json` says of the same frame, whichever way it is made.
Each wanted column has an expression by lists of what is in the frames' slots; the function that
makes columns is built from these once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache, partial
from types import CodeType
from typing import Any, NamedTuple, TypeAlias

from coordwire._speedups import native
from coordwire.capture.answer_errors import (
    ErrorPlace,
    KnownAnswers,
    asked_places,
    carries_codes,
    error_code,
    own_places,
)
from coordwire.capture.body_text import NO_TEXT, body_text
from coordwire.capture.entries import FrameEntry
from coordwire.capture.flows import TcpConnection
from coordwire.capture.jsonlines import FrameContent, encode, frame_content, text
from coordwire.capture.plain_lines import PlainFrames, is_plain
from coordwire.capture.redaction.entry_secrets import NOTHING, Withheld, withheld
from coordwire.codec.program import HAS_CODES
from coordwire.codec.walk import fields_of
from coordwire.messages import find_message
from coordwire.tables.readers.rows import RowBuffer, microseconds
from coordwire.versions import api_name

__all__ = [
    "ERROR_SIZE",
    "NO_CODE",
    "THROTTLE",
    "ErrorRows",
    "FrameRows",
    "KnownEnds",
    "column_maker",
    "row_size",
]


ERROR_SIZE = 300
"""About how many bytes a row of the errors table has."""

ROW = 200
"""What a row of the frames table has on top of its body's text, about."""


class _Shown(NamedTuple):
    """What a frame's row has from the frame's content. code: its error code and the code's name."""

    content: FrameContent
    client: str | None
    code: tuple[int | None, str | None]


NO_CODE: tuple[int | None, str | None] = (None, None)
_NO_CONTENT = _Shown(FrameContent(None, None, None, None, [], None), None, NO_CODE)


class FrameRows:
    """Frames as rows of the frames table. columns: their names."""

    def __init__(self, columns: Sequence[str], *, show_secrets: bool) -> None:
        self._getters = [_COLUMNS[name] for name in columns]
        self._formed = any(name in _FORMED for name in columns)
        self._show_secrets = show_secrets
        self._judge = PlainFrames(show_secrets=show_secrets)
        self._plain_columns = column_maker(columns)

    def row(self, entry: FrameEntry) -> Sequence[Any]:
        """The values, in the order of the columns."""
        if not self._formed:
            return [get(entry, _NO_CONTENT) for get in self._getters]
        if is_plain(entry, show_secrets=self._show_secrets):
            return [column[0] for column in self._plain_columns([entry])]
        return self._any_row(entry)

    def add(
        self, entries: Sequence[FrameEntry], builder: RowBuffer, plain: Sequence[bool] | None = None
    ) -> Iterator[Any]:
        """Add the rows of these frames; the batches that have come together, as if each were added alone.

        plain: `is_plain` of each, if that is known.
        """
        if not self._formed:
            yield from builder.add_items(entries, list(map(row_size, entries)), self._any_columns)
            return
        flags = self._judge.flags(entries) if plain is None else plain
        sizes = [4 * len(entry.body) + ROW for entry in entries]
        columns = self._plain_columns
        if not all(flags):
            not_plain = {id(entry) for entry, flag in zip(entries, flags, strict=True) if not flag}
            columns = partial(self._mixed_columns, not_plain)
        yield from builder.add_items(entries, sizes, columns)

    def _mixed_columns(self, not_plain: set[int], entries: Sequence[FrameEntry]) -> list[list[Any]]:
        """The columns of frames that are not all plain. not_plain: the ids of those that are not."""
        plain: list[FrameEntry] = []
        rows: list[Sequence[Any]] = []
        places: list[int] = []
        for entry in entries:
            if id(entry) in not_plain:
                rows.append(self._any_row(entry))
                places.append(len(plain))
            else:
                plain.append(entry)
        columns = self._plain_columns(plain) if plain else [[] for _ in self._getters]
        if not rows:
            return [list(column) for column in columns]
        return [
            _merged(column, places, values)
            for column, values in zip(columns, zip(*rows, strict=True), strict=True)
        ]

    def _any_row(self, entry: FrameEntry) -> Sequence[Any]:
        """The row of any frame."""
        hidden = NOTHING if self._show_secrets else withheld(entry)
        content = frame_content(entry, hidden, show_secrets=self._show_secrets)
        code = (None if hidden.body else error_code(entry)) or NO_CODE
        row = _Shown(content, None if hidden.client else entry.client_id, code)
        return [get(entry, row) for get in self._getters]

    def _any_columns(self, entries: Sequence[FrameEntry]) -> list[list[Any]]:
        """The columns of frames that need no form."""
        return [[get(entry, _NO_CONTENT) for entry in entries] for get in self._getters]


class ErrorRows:
    """The error codes of responses as rows of the errors table. columns: their names."""

    def __init__(self, columns: Sequence[str], *, show_secrets: bool) -> None:
        self._columns = columns
        self._show_secrets = show_secrets
        self._places = KnownAnswers(own_places)

    def rows(self, entries: Iterable[FrameEntry]) -> list[Sequence[Any]]:
        """One for each error code that is not 0, in the order of the columns."""
        rows: list[Sequence[Any]] = []
        for entry in entries:
            if entry.direction == "response":
                body, flags = entry.text or body_text(entry)
                if body is None or flags & HAS_CODES:
                    own = own_places(entry) if body is None else self._places.of(entry, body)
                    rows += self._rows(entry, asked_places(entry, own))
        return rows

    def _rows(self, entry: FrameEntry, places: Sequence[ErrorPlace]) -> Sequence[Sequence[Any]]:
        """The rows of a response with errors in these places."""
        hidden = NOTHING if self._show_secrets or not places else withheld(entry)
        if hidden.body or not places:
            return ()
        frame = {name: _COLUMNS[name](entry, _NO_CONTENT) for name in _OF_FRAME}
        frame["client_id"] = None if hidden.client else entry.client_id
        rows = [frame | _of_place(place, hidden) for place in places]
        return [[row[name] for name in self._columns] for row in rows]


def _of_place(place: ErrorPlace, hidden: Withheld) -> dict[str, Any]:
    """The columns of the place of an error code."""
    return {
        "error_path": place.path, "error_code": place.code, "error_name": place.name,
        "error_message": None if place.message_path in hidden.paths else place.message,
        "topic": place.topic or None, "partition": place.partition, "group_id": place.group,
    }  # fmt: skip


def row_size(entry: FrameEntry) -> int:
    """About how many bytes a frame's row has: the body as JSON is seldom more than four times its bytes."""
    return 4 * len(entry.body) + ROW


# --- columns ---

Getter = Callable[[FrameEntry, _Shown], Any]


def _merged(column: Sequence[Any], places: Sequence[int], values: Sequence[Any]) -> list[Any]:
    """A column with more values in it. places: of each, how many of the column are before it."""
    merged: list[Any] = []
    start = 0
    for place, value in zip(places, values, strict=True):
        merged += column[start:place]
        merged.append(value)
        start = place
    merged += column[start:]
    return merged


def _json(value: Any) -> str | None:
    return None if value is None else encode(value)


def _error(name: str) -> Getter:
    return lambda entry, row: (row.content.error or {}).get(name)


def throttle_time(body: Any) -> int | None:
    """The field `throttle_time_ms` of a body in JSON form; None where it has none."""
    value = body.get(THROTTLE) if isinstance(body, dict) else None
    return value if isinstance(value, int) else None


def _latency(entry: FrameEntry, row: _Shown) -> float | None:
    latency = entry.latency_ns
    return None if latency is None else round(latency / 1e6, 6)


def _host(side: str) -> Getter:
    def get(entry: FrameEntry, row: _Shown) -> str | None:
        return None if entry.connection is None else str(getattr(entry.connection, side))

    return get


_FORMED: dict[str, Getter] = {
    "client_id": lambda entry, row: row.client,
    "error_code": lambda entry, row: row.code[0],
    "error_name": lambda entry, row: row.code[1],
    "error_reason": _error("reason"),
    "error_position": _error("position"),
    "error_path": _error("path"),
    "throttle_time_ms": lambda entry, row: throttle_time(row.content.body),
    "body": lambda entry, row: _json(row.content.body),
    "header_tags": lambda entry, row: _json(row.content.header_tags),
    "raw": lambda entry, row: entry.body if row.content.raw == "shown" else None,
    "redacted": lambda entry, row: row.content.redacted or None,
    "deviations": lambda entry, row: _json(row.content.deviations),
}
"""What only the content says."""

_COLUMNS: dict[str, Getter] = {
    "input_file": lambda entry, row: text(entry.capture),
    "frame": lambda entry, row: entry.number,
    "flow": lambda entry, row: entry.flow,
    "client_address": _host("client"),
    "broker_address": _host("broker"),
    "time": lambda entry, row: microseconds(entry.time_ns),
    "time_ns": lambda entry, row: entry.time_ns,
    "direction": lambda entry, row: entry.direction,
    "api_key": lambda entry, row: entry.api_key,
    "api": lambda entry, row: entry.api_name,
    "api_version": lambda entry, row: entry.api_version,
    "body_version": lambda entry, row: entry.body_version,
    "correlation_id": lambda entry, row: entry.correlation_id,
    "size": lambda entry, row: entry.size,
    "latency_ms": _latency,
    "dialect": lambda entry, row: str(entry.dialect),
    "token": lambda entry, row: entry.token,
    **_FORMED,
}
_OF_FRAME = ("input_file", "frame", "time", "api", "api_version", "client_address", "broker_address")
"""Columns that the table of errors has from that of frames."""


# --- plain frames ---


ConnectionSides: TypeAlias = "tuple[TcpConnection | None, str | None, str | None]"
"""A connection and its two sides in words."""

MOST_ENDS = 10_000
"""The ends of so many connections are kept in words."""

MOST_CODES = 64
"""So many functions are kept as code, each for the columns that readers ask for."""

NO_ENDS: ConnectionSides = (None, None, None)


def column_maker(columns: Sequence[str]) -> Callable[[Sequence[FrameEntry]], Sequence[Sequence[Any]]]:
    """A function that makes the columns of plain frames."""
    scope = _scope()
    exec(_column_code(tuple(columns)), scope)
    function: Callable[[Sequence[FrameEntry]], Sequence[Sequence[Any]]] = scope["plain_columns"]
    return function


@lru_cache(MOST_CODES)  # a worker reads many captures
def _column_code(columns: tuple[str, ...]) -> CodeType:
    values = "".join(f"{_VALUES.get(name) or f'[{_SAME[name]}] * len(es)'}, " for name in columns)
    return compile(_PLAIN_COLUMNS.format(values=values), "plain columns", "exec")


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

_PLAIN_COLUMNS = """\
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
