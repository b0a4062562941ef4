"""A timeline as JSON, one event a line, or one line a group with what its events amount to.

Strategy: an event's fields are the line's, in camelCase and in their order, "event" before them. Rules: lines
are ASCII; times are ISO 8601 in UTC (`time_ns` is "time", `began_ns` "began", …), lengths are in milliseconds
("lengthMs"); an error code has its name beside it.
"""

from __future__ import annotations

import re
import sys
from dataclasses import fields
from functools import cache
from json.encoder import encode_basestring_ascii as quoted
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
        head, parts = _parts(cls)
        line = head
        for name, label in parts:
            value = getattr(event, name)
            kind = type(value)
            if kind is str:
                line += label + quoted(value if name != "source" else text(value))
            elif value is None:
                line += label + "null"
            elif kind is int:
                if name in _TIMES:
                    line += label + encode(_length_or_time(name, value))
                else:
                    line += label + str(value)
                    if name == "error_code":
                        line += f',"error":"{_error_name(value)}"'
            else:
                line += label + encode(_nested(value) if isinstance(value, tuple) else value)
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


@cache
def _parts(cls: Any) -> tuple[str, list[tuple[str, str]]]:
    """The beginning of the lines of a class of events; its fields, each with what is before its value."""
    return f'{{"event":"{EVENTS[cls]}"', [(name, f',"{json_name}":') for name, json_name in _names(cls)]


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


def _length_or_time(name: str, value: int) -> float | str | None:
    """Lengths in milliseconds, times as text."""
    return _ms(value) if name == "length_ns" else _time(value)


def _nested(value: tuple[Any, ...]) -> Any:
    """Tuples with names as objects, others as lists; times and lengths as text and milliseconds."""
    if not hasattr(value, "_fields"):
        return [_nested(part) if isinstance(part, tuple) else part for part in value]
    form: dict[str, Any] = {}
    for (name, json_name), part in zip(_names(type(value)), value, strict=True):
        if isinstance(part, tuple):
            form[json_name] = _nested(part)
        elif part is not None and name in _TIMES:
            form[json_name] = _length_or_time(name, part)
        else:
            form[json_name] = part
    return form
