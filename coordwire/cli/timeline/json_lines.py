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
from functools import cache, lru_cache
from json.encoder import encode_basestring_ascii as quoted
from operator import attrgetter
from typing import Any

from coordwire.capture.flows import format_time
from coordwire.capture.jsonlines import encode, text
from coordwire.cli.selection.times import TimeSpan
from coordwire.enums import ErrorCode
from coordwire.timeline.events import EVENTS, GroupEvent, TopicPartition
from coordwire.timeline.totals import GroupStory

_UNDERSCORE = re.compile(r"_([a-z0-9])")

PLACE = len(fields(GroupEvent))
"""So many values come first in every event: its group and where it was seen."""

MOST_PARTITIONS = 10_000
"""So many partitions' texts are kept."""


class TimelineJsonFormat:
    """Writes the lines to standard output. Events that follow one another, as those of one commit do, often
    have the same first values, whose text is kept."""

    is_quiet = False

    def __init__(self) -> None:
        self._event_class: type[GroupEvent] | None = None
        self._shared: tuple[Any, ...] = ()
        self._beginning = ""

    def write(self, event: GroupEvent, *, is_listed: bool = True) -> None:
        """Write a line, unless the event is not listed."""
        if not is_listed:
            return
        cls: Any = type(event)
        title, first_values, first_parts, values, parts = _parts(cls)
        shared = first_values(event)
        if cls is not self._event_class or shared != self._shared:
            self._event_class, self._shared = cls, shared
            self._beginning = title + _texts(shared, first_parts)
        sys.stdout.write(f"{self._beginning}{_texts(values(event), parts)}}}\n")

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
_Values = Callable[[Any], tuple[Any, ...]]
_Part = tuple[str, _NumberText, Callable[[str], str]]
"""What is before a value, what writes it if it is a number, and if it is a text."""


@cache
def _parts(cls: Any) -> tuple[str, _Values, list[_Part], _Values, list[_Part]]:
    """The beginning of the lines of a class of events; what gives the first values of an event, which those
    of the same frame share, and the parts of the line that they are in; the same of the other values."""
    names = _names(cls)
    parts = [
        (f',"{json_name}":', _number_text(name), _source_text if name == "source" else quoted)
        for name, json_name in names
    ]
    plain_names = [name for name, _ in names]
    shared = plain_names.index("topic") if "topic" in plain_names else PLACE
    return (
        f'{{"event":"{EVENTS[cls]}"',
        attrgetter(*plain_names[:shared]),
        parts[:shared],
        attrgetter(*plain_names[shared:]),
        parts[shared:],
    )


def _texts(values: tuple[Any, ...], parts: list[_Part]) -> str:
    """The values of an event, each after its name."""
    texts = []
    for value, (label, number_text, string_text) in zip(values, parts, strict=True):
        kind = type(value)
        texts.append(label)
        if kind is str:
            texts.append(string_text(value))
        elif kind is int:
            texts.append(number_text(value))
        else:
            texts.append(_CONSTANTS[value] if kind in _CONSTANT else _value_text(value))
    return "".join(texts)


_CONSTANTS = {None: "null", True: "true", False: "false"}
_CONSTANT = frozenset(map(type, _CONSTANTS))


def _source_text(name: str) -> str:
    return quoted(text(name))


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
    if type(value) is not tuple:
        return f"{{{_texts(value, _labels(type(value)))}}}"
    value_text = _partition_text if value and type(value[0]) is TopicPartition else _value_text
    return f"[{','.join(map(value_text, value))}]"


@lru_cache(MOST_PARTITIONS)
def _partition_text(partition: TopicPartition) -> str:
    return _nested(partition)


@cache
def _labels(cls: Any) -> list[_Part]:
    """The parts of a tuple with names."""
    return [
        (f'{"," if place else ""}"{json_name}":', _number_text(name) if name in _TIMES else str, quoted)
        for place, (name, json_name) in enumerate(_names(cls))
    ]


def _value_text(value: Any) -> str:
    kind = type(value)
    if kind is str:
        return quoted(value)
    if kind is int:
        return str(value)
    if kind is TopicPartition:
        return _partition_text(value)
    return _nested(value) if isinstance(value, tuple) else encode(value)
