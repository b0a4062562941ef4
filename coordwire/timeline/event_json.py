"""An event as JSON, and the event of such a text.

Strategy: an event's fields are the object's, in camelCase and in their order, "event" before them; functions
are made from the fields of each class. Rules: a text is one line of ASCII; times are ISO 8601 in UTC
(`time_ns` is "time", `began_ns` "began", …), lengths are in milliseconds ("lengthMs"); an error code has its
name beside it; a text that no event has is refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import fields
from datetime import UTC, datetime
from functools import cache, lru_cache
from json.encoder import encode_basestring_ascii as quoted
from operator import attrgetter
from types import UnionType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from coordwire.capture.flows import format_time, second_texts
from coordwire.capture.jsonlines import encode, text
from coordwire.enums import ErrorCode
from coordwire.errors import CoordwireError
from coordwire.timeline.events import EVENTS, GroupEvent, TopicPartition

_UNDERSCORE = re.compile(r"_([a-z0-9])")

PLACE = len(fields(GroupEvent))
"""So many values come first in every event: its group and where it was seen."""

_CLUSTER = "cluster"
"""The value that is absent where there is none."""

LATER = frozenset((_CLUSTER, "former_id", "software", "lost"))
"""Values that the texts in earlier tables lack; each has a default."""

MOST_PARTITIONS, MOST_TIMES = 10_000, 1_000
"""So many partitions' and times' texts are kept."""


def time_text(time_ns: int | None) -> str | None:
    """A time as an event's JSON has it: with as many decimals as it needs, six or nine."""
    return None if time_ns is None else format_time(time_ns, 9 if time_ns % 1000 else 6)


@lru_cache(MOST_TIMES)  # the events of a frame have its time, and a rebalance has those of its partitions
def _time_text(time_ns: int) -> str:
    """`time_text` in quotes."""
    seconds, fraction = divmod(time_ns, 1_000_000_000)
    beginning, end = second_texts(seconds)
    if fraction % 1000:
        return f'"{beginning}.{fraction:09d}{end}"'
    return f'"{beginning}.{fraction // 1000:06d}{end}"'


def milliseconds(ns: int) -> float:
    """A length of time as an event's JSON has it."""
    return round(ns / 1e6, 6)


# --- the text of an event, by functions that are made from its fields ---

_Text = Callable[[Any], str]


def event_json(event: GroupEvent) -> str:
    """An event's JSON, on one line without its end."""
    cls: Any = type(event)
    _, beginning, remainder = event_texts(cls)
    return beginning(event) + remainder(event)


@cache
def event_texts(cls: Any) -> tuple[Callable[[Any], tuple[Any, ...]], _Text, _Text]:
    """Of a class of events: what gives the first values of one, which those of the same frame share; what
    writes the beginning of its JSON, which has these, and what writes the rest."""
    names = [field.name for field in fields(cls)]
    shared = names.index("topic") if "topic" in names else PLACE
    title = f'{{{{"event":"{EVENTS[cls]}"'
    cluster = names.index(_CLUSTER)
    return (
        attrgetter(*names[:shared]),
        _function_of(
            title
            + "".join(f",{_part(cls, name)}" for name in names[:cluster])
            + '{"" if row.cluster is None else cluster_text(row.cluster)}'
            + "".join(f",{_part(cls, name)}" for name in names[cluster + 1 : shared])
        ),
        _function_of("".join(f",{_part(cls, name)}" for name in names[shared:]) + "}}"),
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
    "cluster_text": lambda cluster: f',"cluster":{quoted(cluster)}',
    "constants": {True: "true", False: "false"},
    "error_text": _error_text,
    "length_text": lambda length_ns: repr(milliseconds(length_ns)),
    "null": "null",
    "quoted": quoted,
    "source_text": _source_text,
    "time_text": _time_text,
    "value_text": _value_text,
}
"""The names in templates."""


# --- the event of a text, by the types of its fields ---

_CLASSES = {name: cls for cls, name in EVENTS.items()}
_REFUSED = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)


def read_event(line: str) -> GroupEvent:
    """The event whose JSON this is. Raises `CoordwireError` for any other text."""
    try:
        form = json.loads(line)
        event: GroupEvent = _read_fields(_CLASSES[form["event"]], form)
    except _REFUSED as error:
        raise CoordwireError(f"expected an event's JSON: {type(error).__name__}") from error
    return event


def _read_fields(cls: Any, form: Any) -> Any:
    """A dataclass or a tuple with names."""
    hints = _hints(cls)
    names = cls._fields if issubclass(cls, tuple) else [field.name for field in fields(cls)]
    known = (name for name in names if name not in LATER or _camel(name) in form)
    return cls(**{name: _read(hints[name], name, form[_camel(name)]) for name in known})


def _read(hint: Any, name: str, value: Any) -> Any:
    """A value of this type; name: of the field that has it."""
    kinds = get_args(hint) if type(None) in get_args(hint) else (hint,)
    kind = next(part for part in kinds if part is not type(None))
    if value is None and type(None) in kinds:
        return None
    if name == "length_ns":
        return round(value * 1e6)
    if name.endswith("_ns"):
        return _time_of(value)
    if get_origin(kind) is tuple:
        return tuple(_read(get_args(kind)[0], "", part) for part in value)
    if isinstance(kind, type) and issubclass(kind, tuple):
        return _read_fields(kind, value)
    if type(value) is not _plain(kind):
        raise TypeError(name)
    return value


def _time_of(text: str) -> int:
    """A time of the calendar, or "@" and the seconds since 1970, with six or nine decimals."""
    start, _, decimals = text.removesuffix("Z").partition(".")
    seconds = _second(start)
    return seconds * 1_000_000_000 + int(decimals.ljust(9, "0"))


@lru_cache(MOST_TIMES)
def _second(text: str) -> int:
    if text.startswith("@"):
        return int(text[1:])
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())
