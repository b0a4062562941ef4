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
from types import UnionType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from coordwire.capture.flows import format_time, second_texts
from coordwire.capture.jsonlines import encode, text
from coordwire.cli.selection.times import TimeSpan
from coordwire.enums import ErrorCode
from coordwire.timeline.events import EVENTS, GroupEvent, TopicPartition
from coordwire.timeline.totals import GroupStory

_UNDERSCORE = re.compile(r"_([a-z0-9])")

PLACE = len(fields(GroupEvent))
"""So many values come first in every event: its group and where it was seen."""

MOST_PARTITIONS, MOST_TIMES = 10_000, 1_000
"""So many partitions' and times' texts are kept."""


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
        first_values, beginning, remainder = _line_texts(cls)
        shared = first_values(event)
        if cls is not self._event_class or shared != self._shared:
            self._event_class, self._shared = cls, shared
            self._beginning = beginning(event)
        sys.stdout.write(self._beginning + remainder(event))

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


@lru_cache(MOST_TIMES)  # the events of a frame have its time, and a rebalance has those of its partitions
def _time_text(time_ns: int) -> str:
    """`_time` in quotes."""
    seconds, fraction = divmod(time_ns, 1_000_000_000)
    beginning, end = second_texts(seconds)
    if fraction % 1000:
        return f'"{beginning}.{fraction:09d}{end}"'
    return f'"{beginning}.{fraction // 1000:06d}{end}"'


def _ms(ns: int) -> float:
    return round(ns / 1e6, 6)


# --- the text of an event, by functions that are made from its fields ---

_Text = Callable[[Any], str]


@cache
def _line_texts(cls: Any) -> tuple[Callable[[Any], tuple[Any, ...]], _Text, _Text]:
    """Of a class of events: what gives the first values of one, which those of the same frame share; what
    writes the beginning of its line, which has these, and what writes the rest."""
    names = [field.name for field in fields(cls)]
    shared = names.index("topic") if "topic" in names else PLACE
    title = f'{{{{"event":"{EVENTS[cls]}"'
    return (
        attrgetter(*names[:shared]),
        _function_of(title + "".join(f",{_part(cls, name)}" for name in names[:shared])),
        _function_of("".join(f",{_part(cls, name)}" for name in names[shared:]) + "}}\\n"),
    )


@cache
def _items_text(kind: Any) -> _Text:
    """What writes the items of a list that are all of one type: tuples with names as objects."""
    if kind is str:
        return lambda texts: ",".join(map(quoted, texts))
    if kind is TopicPartition:
        return lambda partitions: ",".join(map(_partition_text, partitions))
    if not issubclass(kind, tuple) or kind is tuple:
        return lambda values: ",".join(map(_value_text if kind is tuple else encode, values))
    names: tuple[str, ...] = kind._fields
    values = {name: f"row_{name}" for name in names}
    template = f"{{{{{','.join(_part(kind, name, value) for name, value in values.items())}}}}}"
    function: _Text = eval(
        f"lambda rows: ','.join([f'{template}' for {','.join(values.values())}, in rows])", _WRITERS
    )
    return function


def _function_of(template: str) -> _Text:
    """A function that fills in a template from its argument, `row`. Templates have names of fields only."""
    function: _Text = eval(f"lambda row: f'{template}'", _WRITERS)
    return function


def _part(cls: Any, name: str, value: str = "") -> str:
    """The part of a template for one field, by its type: what isn't of that type is written by its value.
    value: what gives it, by default the attribute of `row`."""
    value = value or f"row.{name}"
    types = get_args(hint) if isinstance(hint := _hints(cls)[name], UnionType) else (hint,)
    plain = {_plain(kind) for kind in types} - {type(None)}
    writer = "value_text({})"
    if plain == {str}:
        writer = "source_text({})" if name == "source" and issubclass(cls, GroupEvent) else "quoted({})"
    elif plain == {int}:
        writer = _number_writer(cls, name)
    elif plain == {bool}:
        writer = "constants[{}]"
    text = writer.format(value)
    if type(None) in types:
        text = f"null if {value} is None else {text}"
    return f'"{_camel(name)}":{{{text}}}'


def _number_writer(cls: Any, name: str) -> str:
    if name == "length_ns":
        return "length_text({})"
    if name.endswith("_ns"):
        return "time_text({})"
    return "error_text({})" if name == "error_code" and issubclass(cls, GroupEvent) else "{}"


@cache
def _hints(cls: Any) -> dict[str, Any]:
    return get_type_hints(cls)


def _plain(hint: Any) -> Any:
    """A literal's type; else the hint itself."""
    return type(get_args(hint)[0]) if get_origin(hint) is Literal else hint


def _source_text(name: str) -> str:
    return quoted(text(name))


def _camel(name: str) -> str:
    plain = "length_ms" if name == "length_ns" else name.removesuffix("_ns")
    return _UNDERSCORE.sub(lambda letter: letter[1].upper(), plain)


@cache
def _error_text(code: int) -> str:
    return f'{code},"error":"{ErrorCode(code).name}"'


class _PartitionTexts(dict[TopicPartition, str]):
    def __missing__(self, partition: TopicPartition) -> str:
        if len(self) >= MOST_PARTITIONS:
            self.clear()
        topic, number = partition
        partition_text = self[partition] = f'{{"topic":{quoted(topic)},"partition":{number}}}'
        return partition_text


_partition_text = _PartitionTexts().__getitem__


def _value_text(value: Any) -> str:
    """A tuple with names as an object, another as a list, whose items are of one type."""
    kind: Any = type(value)
    if kind is not tuple:
        return _items_text(kind)((value,))
    if not value:
        return "[]"
    kind = type(value[0])
    return f"[{_items_text(kind)(value)}]"


_WRITERS: dict[str, Any] = {
    "constants": {True: "true", False: "false"},
    "error_text": _error_text,
    "length_text": lambda length_ns: repr(_ms(length_ns)),
    "null": "null",
    "quoted": quoted,
    "source_text": _source_text,
    "time_text": _time_text,
    "value_text": _value_text,
}
"""The names in templates."""
