"""Rows of groups' stories: column by column and one by one they are the same, and give their events back."""

from __future__ import annotations

import io
from collections import Counter
from dataclasses import replace
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow
import pytest

from coordwire.capture.formats.pcap import as_pcap
from coordwire.capture.jsonlines import text
from coordwire.capture.reader import Capture
from coordwire.tables.columns import TABLES, arrow_schema
from coordwire.tables.readers import group_rows
from coordwire.tables.readers import rows as batches
from coordwire.tables.readers.group_rows import STORIES, EventRows
from coordwire.tables.readers.rows import Builder, builders_of, microseconds
from coordwire.timeline.event_json import event_json
from coordwire.timeline.events import EVENTS, GroupEvent, OffsetCommitted
from coordwire.timeline.from_wire.timeline import timeline
from tests.bench import group_traffic

CAPTURES = sorted((Path(__file__).parents[1] / "data" / "captures").glob("*.pcap"))


def value(event: Any, column: str) -> Any:
    """What a column has of an event, by the names of its attributes."""
    if own := group_rows._OWN.get(type(event), {}).get(column):
        return own(event)
    if column in group_rows._TIMES:
        return microseconds(getattr(event, group_rows._TIMES[column], None))
    match column:
        case "event":
            return EVENTS[type(event)]
        case "seen_in":
            return "capture"
        case "frame" | "log_offset":
            return event.number if column == "frame" else None
        case "body":
            return event_json(event)
        case "input_file":
            return text(event.source)
        case "length_ms":
            length = getattr(event, "length_ns", None)
            return None if length is None else length / 1e6
        case "moved":  # a coordinator's own `moved` is not a count
            moved = getattr(event, "moved", None)
            return len(moved) if isinstance(moved, tuple) else None
    actual = getattr(event, group_rows._ATTRIBUTES.get(column, column), None)
    return list(actual or ()) if column in group_rows._LISTS else actual


def one_by_one(events: list[GroupEvent], name: str, most: int) -> list[pyarrow.RecordBatch]:
    builder = Builder(arrow_schema(TABLES[name]), most)
    columns = [column.name for column in TABLES[name]]
    own = [event for event in events if group_rows._TABLES.get(type(event), "groups") == name]
    rows = [([value(event, one) for one in columns], group_rows._size(event)) for event in own]
    actual = [builder.add(*row) for row in rows]
    return [item for item in (*actual, builder.take()) if item is not None]


@pytest.mark.parametrize("together", [1, 5, 256])
@pytest.mark.parametrize("most", [1, 50_000, 1 << 22])
def test_rows_by_columns(together: int, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_rows, "TOGETHER", together)
    monkeypatch.setattr(group_rows, "FEW", 0)
    monkeypatch.setattr(batches, "MOST_ROWS", 1_000)
    monkeypatch.setattr(group_traffic, "GROUPS", 4)
    made = as_pcap(islice(group_traffic.traffic(), 1_200))
    for data in (made, *(path.read_bytes() for path in CAPTURES)):
        events = list(timeline(Capture(io.BytesIO(data), "x", lazy=True).entries()))
        rows = EventRows(builders_of(STORIES, most), "capture")
        actual = [*rows.add(events), *rows.finish()]
        for name in STORIES:
            assert [item for table, item in actual if table == name] == one_by_one(events, name, most)


def test_rows_are_read_back() -> None:
    """Whole events, and lags and commits to the microsecond, but for what stories do not need."""
    events = [
        event
        for path in CAPTURES
        for event in timeline(Capture(io.BytesIO(path.read_bytes()), "x", lazy=True).entries())
    ]
    names = Counter(group_rows._TABLES.get(type(event), "groups") for event in events)
    assert set(names) == set(STORIES)
    for event in events:
        table = group_rows._TABLES.get(type(event), "groups")
        columns = [column.name for column in TABLES[table]]
        values = group_rows.event_rows(type(event), columns, "capture")(event)
        actual = group_rows.event_of(table, SimpleNamespace(**dict(zip(columns, values, strict=True))))
        if table != "groups":
            event = replace(event, time_ns=(event.time_ns or 0) // 1_000 * 1_000)
        if isinstance(event, OffsetCommitted):
            event = replace(event, leader_epoch=-1, metadata=None, transactional_id=None)
        assert actual == event
