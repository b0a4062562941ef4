"""A timeline as JSON, one event a line, or one line a group with what its events amount to.

Strategy: an event's fields are the line's, in camelCase and in their order, "event" before them. Rules: lines
are ASCII; times are ISO 8601 in UTC (`time_ns` is "time", `began_ns` "began", …), lengths are in milliseconds
("lengthMs"); an error code has its name beside it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import fields
from functools import cache
from json.encoder import encode_basestring_ascii as quoted
from operator import attrgetter
from typing import Any

from coordwire.capture.flows import format_time
from coordwire.capture.jsonlines import encode, text
from coordwire.cli.selection.times import TimeSpan
from coordwire.enums import ErrorCode
from coordwire.timeline.events import EVENTS, GroupEvent
from coordwire.timeline.totals import GroupStory

_UNDERSCORE = re.compile(r"_([a-z0-9])")


class TimelineJsonFormat:
    """Writes the lines to standard output."""

    is_quiet = False

    def write(self, event: GroupEvent, *, is_listed: bool = True) -> None:
        """Write a line, unless the event is not listed."""
        if not is_listed:
            return
        cls: Any = type(event)
        line, values, parts = _parts(cls)
        for value, (label, null, number_text, is_source) in zip(values(event), parts, strict=True):
            kind = type(value)
            if kind is str:
                line += label + quoted(text(value) if is_source else value)
            elif value is None:
                line += null
            elif kind is int:
                line += label + number_text(value)
            else:
                line += label + (_nested(value) if isinstance(value, tuple) else encode(value))
        sys.stdout.write(line + "}\n")

    def learn(self, event: GroupEvent) -> None:
        """Do nothing: ids are written whole."""

    def heading(self, place: str, span: TimeSpan | None) -> None:
        """Do nothing: events have their own times."""

    def finish(self) -> None:
        """Do nothing: every event is written at once."""


class SummaryJsonFormat:
    """Writes a line for each group: what its events amount to."""

    is_quiet = True

    def __init__(self) -> None:
        self._stories: dict[str, GroupStory] = {}
        self._span: TimeSpan | None = None

    def write(self, event: GroupEvent, *, is_listed: bool = True) -> None:
        """Count one event, listed or not."""
        self._stories.setdefault(event.group, GroupStory(event.group)).add(event)

    def learn(self, event: GroupEvent) -> None:
        """Do nothing: the events that are written name the clients."""

    def heading(self, place: str, span: TimeSpan | None) -> None:
        self._span = span

    def finish(self) -> None:
        for story in self._stories.values():
            sys.stdout.write(encode(self._form(story)) + "\n")

    def _form(self, story: GroupStory) -> dict[str, Any]:
        longest = story.longest
        unmeasured = story.unmeasured > 0 and not story.rebalancing_ns
        first, last = self._span or (None, None)
        return {
            "event": "summary",
            "group": story.group,
            "kind": story.kind,
            "inputFirst": _time(first),
            "inputLast": _time(last),
            "first": _time(story.first_ns),
            "last": _time(story.last_ns),
            "coordinator": story.coordinator,
            "joined": story.joined,
            "left": story.departed,
            "members": sorted(story.members),
            "generations": story.generations,
            "commits": story.commits,
            "unanswered": story.unanswered,
            "rebalances": story.rebalances,
            "rebalancingMs": None if unmeasured else _ms(story.rebalancing_ns),
            "longestMs": None if longest is None or unmeasured else _ms(longest.length_ns or 0),
            "longestCause": None if longest is None or unmeasured else longest.cause,
            "withoutConsumerMs": _ms(story.idle_ns),
            "recordsWaited": story.waited,
            "causes": [
                {"client": client, "cause": cause, "times": times}
                for client, causes in story.caused.items()
                for cause, times in causes.items()
            ],
            "lag": sum(lag for lag in story.lag.values() if lag > 0),
            "beyondEnd": -sum(lag for lag in story.lag.values() if lag < 0),
            "errors": {ErrorCode(code).name: times for code, times in story.errors.most_common()},
        }


def _time(time_ns: int | None) -> str | None:
    return None if time_ns is None else format_time(time_ns, 9 if time_ns % 1000 else 6)


def _ms(ns: int) -> float:
    return round(ns / 1e6, 6)


_NumberText = Callable[[int], str]


@cache
def _parts(
    cls: Any,
) -> tuple[str, Callable[[Any], tuple[Any, ...]], list[tuple[str, str, _NumberText, bool]]]:
    """The beginning of the lines of a class of events; what gives the values of an event; for each of these
    what is before it, the same with null, the text of a number, and whether it is the event's source."""
    names = _names(cls)
    parts = [
        (f',"{json_name}":', f',"{json_name}":null', _number_text(name), name == "source")
        for name, json_name in names
    ]
    return f'{{"event":"{EVENTS[cls]}"', attrgetter(*[name for name, _ in names]), parts


def _number_text(name: str) -> _NumberText:
    """What writes a field's number."""
    if name == "length_ns":
        return lambda value: repr(_ms(value))
    if name in _TIMES:
        return lambda value: f'"{_time(value)}"'
    if name == "error_code":
        return lambda value: f'{value},"error":"{_error_name(value)}"'
    return str


@cache
def _names(cls: Any) -> list[tuple[str, str]]:
    names = getattr(cls, "_fields", None) or [field.name for field in fields(cls)]
    _TIMES.update(name for name in names if name.endswith("_ns"))
    return [(name, _camel(name)) for name in names]


_TIMES: set[str] = set()
"""The names of times and lengths, in nanoseconds, of the classes met so far."""


def _camel(name: str) -> str:
    plain = "length_ms" if name == "length_ns" else name.removesuffix("_ns")
    return _UNDERSCORE.sub(lambda letter: letter[1].upper(), plain)


@cache
def _error_name(code: int) -> str:
    return ErrorCode(code).name


def _nested(value: tuple[Any, ...]) -> str:
    """Tuples with names as objects, others as lists; times and lengths as text and milliseconds."""
    if not hasattr(value, "_fields"):
        return f"[{','.join([_value_text(part) for part in value])}]"
    labels = _labels(type(value))
    texts = [
        label + _value_text(part, number_text)
        for part, (label, number_text) in zip(value, labels, strict=True)
    ]
    return f"{{{','.join(texts)}}}"


@cache
def _labels(cls: Any) -> list[tuple[str, _NumberText]]:
    """The fields of a tuple with names: what is before each value, and what writes it as a number."""
    names = _names(cls)
    return [(f'"{json_name}":', _number_text(name) if name in _TIMES else str) for name, json_name in names]


def _value_text(value: Any, number_text: _NumberText = str) -> str:
    kind = type(value)
    if kind is str:
        return quoted(value)
    if value is None:
        return "null"
    if kind is int:
        return number_text(value)
    return _nested(value) if isinstance(value, tuple) else encode(value)
