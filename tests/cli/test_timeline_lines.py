"""The JSON lines of events: those that one encoder writes of the whole event."""

from __future__ import annotations

import dataclasses
import io
import json
import lzma
import re
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordwire.capture import Capture
from coordwire.capture.flows import format_time
from coordwire.cli.timeline.json_lines import TimelineJsonFormat
from coordwire.enums import ErrorCode
from coordwire.timeline import timeline
from coordwire.timeline.events import EVENTS, GroupEvent

STORIES = sorted((Path(__file__).parent.parent / "data" / "stories").glob("*.pcap.xz"))[::6]


def key(name: str) -> str:
    plain = {"length_ns": "length_ms"}.get(name, name.removesuffix("_ns"))
    return re.sub("_([a-z0-9])", lambda letter: letter[1].upper(), plain)


def form(name: str, value: Any) -> Any:
    """A value as its line has it."""
    if isinstance(value, tuple):
        names = getattr(value, "_fields", None)
        if names is None:
            return [form("", part) for part in value]
        return {key(name): form(name, part) for name, part in zip(names, value, strict=True)}
    if value is None or not name.endswith("_ns"):
        return value
    return round(value / 1e6, 6) if name == "length_ns" else format_time(value, 9 if value % 1000 else 6)


def line(event: Any) -> str:
    whole: dict[str, Any] = {"event": EVENTS[type(event)]}
    for field in dataclasses.fields(event):
        value = getattr(event, field.name)
        if field.name == "cluster" and value is None:
            continue
        whole[key(field.name)] = form(field.name, value)
        if field.name == "error_code":
            whole["error"] = ErrorCode(value).name
    return json.dumps(whole, separators=(",", ":")) + "\n"


def written(output: TimelineJsonFormat, event: GroupEvent) -> str:
    with redirect_stdout(io.StringIO()) as out:
        output.write(event)
    return out.getvalue()


@pytest.mark.parametrize("path", STORIES, ids=lambda path: path.name.partition(".")[0])
def test_lines_of_recorded_stories(path: Path) -> None:
    capture = Capture(io.BytesIO(lzma.decompress(path.read_bytes())), "wört.pcap", lazy=True)
    output = TimelineJsonFormat()
    for event in timeline(capture.entries_and_ends(), ends=True):
        assert written(output, event) == line(event)


@pytest.mark.parametrize("cls", EVENTS)
@settings(max_examples=10)
@given(data=st.data())
def test_lines_of_any_values(cls: type[GroupEvent], data: st.DataObject) -> None:
    output = TimelineJsonFormat()
    every = st.builds(cls, **dict.fromkeys((field.name for field in dataclasses.fields(cls)), ...))
    event = data.draw(every)
    assert written(output, event) == line(event)
    assert written(output, event) == line(event), "with the beginning that is kept"
