"""What happened to groups, as rows: from a capture's entries, or from the segments of a coordinator's log.

Strategy: `coordwire.groups` yields the events; each goes to the table that it belongs to, its attributes
under the columns' names. Rules: a timeline is of one capture (rotated files joined), and for one partition of
`__consumer_offsets` with all of its segments, in their order.
"""

from __future__ import annotations

__all__ = ["STORIES", "EventRows", "event_row", "event_table", "log_events"]

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from coordwire.capture.jsonlines import text
from coordwire.errors import UnreadableRange
from coordwire.groups.coordinator_log import LogItem, read_records
from coordwire.groups.log_events import log_timeline
from coordwire.groups.timeline_events import EVENTS, GroupEvent, LagMeasured, OffsetCommitted
from coordwire.spark.columns import TABLES, arrow_schema
from coordwire.spark.readers.files import open_bytes
from coordwire.spark.readers.rows import Builder, microseconds

if TYPE_CHECKING:
    import pyarrow

STORIES = ("groups", "offset_commits", "lag")
_TABLES: dict[type[GroupEvent], str] = {OffsetCommitted: "offset_commits", LagMeasured: "lag"}
_TIMES = {"time": "time_ns", "began": "began_ns", "ended": "ended_ns"}
_LISTS = ("members", "topics")


class EventRows:
    """Events as rows of the tables that tell stories."""

    def __init__(self, tables: Iterable[str], most: int) -> None:
        self._builders = {
            name: Builder(arrow_schema(TABLES[name]), most) for name in STORIES if name in tables
        }
        self._columns = {name: [column.name for column in TABLES[name]] for name in self._builders}

    def add(self, events: Iterable[GroupEvent]) -> Iterator[tuple[str, pyarrow.RecordBatch]]:
        """More events; a table's name with a batch of rows whenever enough has come together."""
        for event in events:
            name = event_table(event)
            builder = self._builders.get(name)
            if builder is not None:
                row = event_row(event, self._columns[name])
                if (batch := builder.add(row, 300)) is not None:
                    yield name, batch

    def finish(self) -> Iterator[tuple[str, pyarrow.RecordBatch]]:
        """What is left."""
        for name, builder in self._builders.items():
            if (batch := builder.take()) is not None:
                yield name, batch


def event_table(event: GroupEvent) -> str:
    """The table that an event belongs to."""
    return _TABLES.get(type(event), "groups")


def event_row(event: GroupEvent, columns: Iterable[str]) -> list[Any]:
    """An event as a row of its table. columns: those that are wanted, by name."""
    return [_value(event, column) for column in columns]


def _value(event: Any, column: str) -> Any:
    if column in _TIMES:
        return microseconds(getattr(event, _TIMES[column], None))
    match column:
        case "event":
            return EVENTS[type(event)]
        case "group_id":
            return event.group
        case "source":
            return text(event.source)
        case "length_ms":
            length = getattr(event, "length_ns", None)
            return None if length is None else length / 1e6
        case "moved":  # a coordinator's own `moved` is not a count
            moved = getattr(event, "moved", None)
            return len(moved) if isinstance(moved, tuple) else None
    value = getattr(event, column, None)
    return list(value or ()) if column in _LISTS else value


def log_events(paths: Iterable[str], partition: int | None) -> Iterator[GroupEvent]:
    """The story in the segments of one partition of `__consumer_offsets`, as far as they can be read."""

    def items() -> Iterator[LogItem]:
        for path in paths:
            with suppress(OSError):  # it is in quarantine already, as is what is unread
                data = open_bytes(path)
                for item in read_records(data, log="consumer_offsets", file=path, log_partition=partition):
                    if not isinstance(item, UnreadableRange):
                        yield item

    return log_timeline(items())
