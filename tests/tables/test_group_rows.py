"""Rows of groups' stories: column by column and one by one they are the same."""

from __future__ import annotations

import io
from itertools import islice
from pathlib import Path

import pyarrow
import pytest

from coordwire.capture.formats.pcap import as_pcap
from coordwire.capture.reader import Capture
from coordwire.tables.columns import TABLES, arrow_schema
from coordwire.tables.readers import group_rows
from coordwire.tables.readers import rows as batches
from coordwire.tables.readers.group_rows import STORIES, EventRows, event_row, event_table
from coordwire.tables.readers.rows import Builder, builders_of
from coordwire.timeline.events import GroupEvent
from coordwire.timeline.from_wire.timeline import timeline
from tests.bench import group_traffic

CAPTURES = sorted((Path(__file__).parents[1] / "data" / "captures").glob("*.pcap"))


def one_by_one(events: list[GroupEvent], name: str, most: int) -> list[pyarrow.RecordBatch]:
    builder = Builder(arrow_schema(TABLES[name]), most)
    columns = [column.name for column in TABLES[name]]
    own = [event for event in events if event_table(event) == name]
    actual = [builder.add(event_row(event, columns, "capture"), group_rows.SIZE) for event in own]
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
