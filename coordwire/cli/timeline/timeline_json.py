"""A timeline as JSON, one event a line.

Strategy: an event's fields are the line's, in camelCase and in their order, "event" before them. Rules: lines
are ASCII; times are ISO 8601 in UTC (`time_ns` is "time", `began_ns` "began", …), lengths are in milliseconds
("lengthMs"); an error code has its name beside it.
"""

from __future__ import annotations

import re
import sys
from dataclasses import fields
from functools import cache
from typing import Any

from coordwire.capture.jsonlines import encode, text
from coordwire.capture.model import format_time
from coordwire.enums import ErrorCode
from coordwire.groups.timeline_events import EVENTS, GroupEvent

_UNDERSCORE = re.compile(r"_([a-z0-9])")


class TimelineJsonFormat:
    """Writes the lines to standard output."""

    def write(self, event: GroupEvent, *, listed: bool = True) -> None:
        """One line; nothing for an event that isn't to be listed."""
        if not listed:
            return
        cls: Any = type(event)
        form: dict[str, Any] = {"event": EVENTS[cls]}
        for name, json_name in _names(cls):
            value = getattr(event, name)
            if name == "source":
                value = text(value)
            form[json_name] = _plain(value, name)
            if name == "error_code":
                form["error"] = ErrorCode(value).name
        sys.stdout.write(encode(form) + "\n")

    def learn(self, event: GroupEvent) -> None:
        """Ids are written whole."""

    def finish(self) -> None:
        """Nothing is kept."""


@cache
def _names(cls: Any) -> list[tuple[str, str]]:
    return [(field.name, _camel(field.name)) for field in fields(cls)]


def _camel(name: str) -> str:
    plain = "length_ms" if name == "length_ns" else name.removesuffix("_ns")
    return _UNDERSCORE.sub(lambda found: found[1].upper(), plain)


def _plain(value: Any, name: str = "") -> Any:
    """Tuples with names as objects, others as lists; times and lengths as text and milliseconds."""
    if isinstance(value, tuple):
        names = getattr(value, "_fields", None)
        if names is None:
            return [_plain(one) for one in value]
        return {_camel(name): _plain(one, name) for name, one in zip(names, value, strict=True)}
    if value is None or not name.endswith("_ns"):
        return value
    return round(value / 1e6, 6) if name == "length_ns" else format_time(value, 9 if value % 1000 else 6)
