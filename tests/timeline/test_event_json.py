"""An event's JSON is read back as the same event, and no other text is."""

from __future__ import annotations

import dataclasses
import io
import json
import lzma
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordwire.capture import Capture
from coordwire.errors import CoordwireError
from coordwire.timeline import timeline
from coordwire.timeline.event_json import LATER, event_json, read_event
from coordwire.timeline.events import EVENTS, GroupEvent

STORIES = sorted((Path(__file__).parent.parent / "data" / "stories").glob("*.pcap.xz"))[::5]


@pytest.mark.parametrize("path", STORIES, ids=lambda path: path.name.partition(".")[0])
def test_recorded_events_are_read_back(path: Path) -> None:
    capture = Capture(io.BytesIO(lzma.decompress(path.read_bytes())), "a.pcap", lazy=True)
    for event in timeline(capture.entries_and_ends(), ends=True):
        assert read_event(event_json(event)) == event


@pytest.mark.parametrize("cls", EVENTS)
@settings(max_examples=10)
@given(data=st.data())
def test_any_events_are_read_back(cls: type[GroupEvent], data: st.DataObject) -> None:
    """Lengths are milliseconds in JSON, exact to a nanosecond for a month."""
    event: Any = data.draw(st.builds(cls, **dict.fromkeys((f.name for f in dataclasses.fields(cls)), ...)))
    if getattr(event, "length_ns", None) is not None:
        event = dataclasses.replace(event, length_ns=abs(event.length_ns) % 2_600_000_000_000_000)
    event = dataclasses.replace(event, source="a.pcap")
    assert read_event(event_json(event)) == event


@settings(max_examples=50)
@given(data=st.data())
def test_no_other_text_is_an_event(data: st.DataObject) -> None:
    cls: Any = data.draw(st.sampled_from(sorted(EVENTS, key=EVENTS.__getitem__)))
    form = json.loads(event_json(data.draw(st.builds(cls))))
    name = data.draw(st.sampled_from(sorted(set(form) - {"error"})))
    if data.draw(st.booleans()):
        del form[name]
    else:
        form[name] = data.draw(st.sampled_from([[], {}, [3], 1.5, "\x00", [[]], {"a": 1}]))
    try:
        read_event(json.dumps(form))
    except CoordwireError:
        return
    is_later = name not in form and name in {"formerId", "software", "lost"}
    is_length = (name, form.get(name)) == ("lengthMs", 1.5)
    assert is_later or is_length or form.get(name) in ([], "\x00"), "a list may be empty, a text any"


@pytest.mark.parametrize("cls", EVENTS)
@settings(max_examples=5)
@given(data=st.data())
def test_texts_of_earlier_tables_have_the_defaults(cls: type[GroupEvent], data: st.DataObject) -> None:
    event: Any = data.draw(st.builds(cls, source=st.just("a.pcap"), cluster=st.just("c")))
    form = json.loads(event_json(event))
    for name in ("cluster", "formerId", "software", "lost"):
        form.pop(name, None)
    defaults = {f.name: f.default for f in dataclasses.fields(cls) if f.name in LATER}
    assert dataclasses.MISSING not in defaults.values()
    assert read_event(json.dumps(form)) == dataclasses.replace(event, **defaults)


@pytest.mark.parametrize("text", ["", "[]", "3", "{}", "[" * 100_000, '{"event":[]}', '{"event":"noSuch"}'])
def test_a_text_that_is_no_event_is_refused(text: str) -> None:
    with pytest.raises(CoordwireError, match="expected an event's JSON"):
        read_event(text)
