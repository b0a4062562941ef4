"""The events of groups as rows: from a capture's entries, or from the segments of a coordinator's log.

Strategy: `coordwire.timeline` yields the events; each goes to the table that it belongs to, its attributes
under the columns' names, and back. Rules: a timeline is of one capture (rotated files joined), and for one
partition of `__consumer_offsets` with all of its segments, in their order.
"""

from __future__ import annotations

__all__ = [
    "COMMIT_COLUMNS", "EVENT_COLUMNS", "LAG_COLUMNS", "STORIES", "EventRows", "RowMaker", "event_of",
    "event_rows", "log_events",
]  # fmt: skip

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields
from itertools import groupby
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from coordwire.capture.flows import NetworkAddress
from coordwire.capture.jsonlines import text
from coordwire.errors import UnreadableRange
from coordwire.tables.columns import TABLES
from coordwire.tables.readers.files import open_bytes
from coordwire.tables.readers.rows import FEW, RowBuffer, microseconds
from coordwire.timeline.event_json import event_json, read_event
from coordwire.timeline.events import (
    EVENTS,
    BrokerAway,
    CoordinatorFound,
    CoordinatorStalled,
    GroupEvent,
    LagMeasured,
    MemberJoined,
    MemberLeft,
    OffsetCommitted,
    RebalanceEnded,
)
from coordwire.timeline.from_log.coordinator_log import LogItem, read_records
from coordwire.timeline.from_log.events import log_timeline

if TYPE_CHECKING:
    import pyarrow

SeenIn: TypeAlias = Literal["capture", "log"]
RowMaker = Callable[[Any], Sequence[Any]]
ColumnMaker = Callable[[Sequence[Any]], Sequence[Sequence[Any]]]

TOGETHER = 256
"""So many events of one class are made into rows at once, column by column."""

SIZE = 800
"""About how many bytes a row has, without a rebalance's lists."""

SIZE_OF_ONE = 80
"""About how many bytes one of a rebalance's partitions takes in each of its lists."""

STORIES = ("groups", "offset_commits", "lag")
_TABLES: dict[type[GroupEvent], str] = {OffsetCommitted: "offset_commits", LagMeasured: "lag"}
_TIMES = {"time": "time_ns", "began": "began_ns", "ended": "ended_ns"}
_LISTS = ("members", "topics")
_NUMBERS = {"frame": "capture", "log_offset": "log"}
"""Columns with the place of an event in one kind of input."""

_ATTRIBUTES = {
    "group_id": "group", "cluster_id": "cluster", "length_ms": "length_ns", "committed_offset": "committed",
    "input_file": "source",
}  # fmt: skip
"""What attributes of events are called whose columns have other names."""
_ABSENCE: dict[str, Callable[[Any], Any]] = {
    "began": lambda event: microseconds(event.time_ns),
    "ended": lambda event: microseconds(event.until_ns),
    "length_ms": lambda event: None if event.until_ns is None else (event.until_ns - event.time_ns) / 1e6,
    "broker_address": lambda event: event.broker,
}
_OWN: dict[type[GroupEvent], dict[str, Callable[[Any], Any]]] = {
    BrokerAway: _ABSENCE,
    CoordinatorStalled: _ABSENCE,
    CoordinatorFound: {
        "broker_id": lambda event: str(event.node_id),
        "broker_address": lambda event: str(NetworkAddress(event.host, event.port)),
        "host": lambda event: None,
    },
    MemberJoined: {"event": lambda event: "memberFound" if event.was_in else EVENTS[MemberJoined]},
    OffsetCommitted: {"committed_offset": lambda event: event.offset},
    MemberLeft: {"outcome": lambda event: event.ending and event.ending.how},
}
"""Columns whose values have other names in the events of a class."""


class EventRows:
    """Events as rows of the tables `groups`, `offset_commits` and `lag`, as far as they have a buffer.
    seen_in: capture or log."""

    def __init__(self, buffers: Mapping[str, RowBuffer], seen_in: SeenIn) -> None:
        self._seen_in: SeenIn = seen_in
        self._builders = {name: buffers[name] for name in STORIES if name in buffers}
        self._columns = {name: [column.name for column in TABLES[name]] for name in self._builders}
        self._rows: dict[type[GroupEvent], RowMaker] = {}
        self._many: dict[type[GroupEvent], ColumnMaker] = {}
        self._waiting: dict[str, list[GroupEvent]] = {name: [] for name in self._builders}

    def add(self, events: Iterable[GroupEvent]) -> list[tuple[str, pyarrow.RecordBatch]]:
        """Add a few events; gives each batch that is complete, with its table's name."""
        full: list[tuple[str, pyarrow.RecordBatch]] = []
        for event in events:
            name = _TABLES.get(type(event), "groups")
            waiting = self._waiting.get(name)
            if waiting is not None:
                waiting.append(event)
                if len(waiting) >= TOGETHER:
                    full += [(name, batch) for batch in self._make(name)]
        return full

    def add_all(self, events: Iterable[GroupEvent]) -> Iterator[tuple[str, pyarrow.RecordBatch]]:
        """Add any number of events; gives the batches that are complete."""
        for event in events:
            yield from self.add((event,))

    def _make(self, name: str) -> Iterator[pyarrow.RecordBatch]:
        """Make rows of a table's waiting events; gives the same batches as if each were added alone."""
        events, builder = self._waiting[name], self._builders[name]
        self._waiting[name] = []
        for cls, group in groupby(events, type):
            run = list(group)
            if len(run) > FEW:
                if cls not in self._many:
                    self._many[cls] = event_columns(cls, self._columns[name], self._seen_in)
                yield from builder.add_items(run, list(map(_size, run)), self._many[cls])
                continue
            if cls not in self._rows:
                self._rows[cls] = event_rows(cls, self._columns[name], self._seen_in)
            for event in run:
                if (batch := builder.add(self._rows[cls](event), _size(event))) is not None:
                    yield batch

    def flush(self) -> Iterator[tuple[str, pyarrow.RecordBatch]]:
        """Make rows of all waiting events; gives the batches that are complete."""
        for name in self._builders:
            for batch in self._make(name):
                yield name, batch

    def finish(self) -> Iterator[tuple[str, pyarrow.RecordBatch]]:
        """The remaining batches."""
        yield from self.flush()
        for name, builder in self._builders.items():
            if (batch_left := builder.take()) is not None:
                yield name, batch_left


def _size(event: GroupEvent) -> int:
    """About how many bytes an event's row has."""
    if not isinstance(event, RebalanceEnded):
        return SIZE
    lists = (event.members, event.moved, event.idle, *(part.partitions for part in event.assignments))
    return SIZE + SIZE_OF_ONE * sum(map(len, lists))


def event_rows(cls: type[GroupEvent], columns: Iterable[str], seen_in: SeenIn) -> RowMaker:
    """A function that makes the row of an event of one class; its expressions are those below."""
    values = "".join(f"{expression}, " for expression in _expressions(cls, columns, seen_in))
    function: RowMaker = eval(f"lambda e: ({values})", _scope(cls, seen_in))
    return function


def event_columns(cls: type[GroupEvent], columns: Iterable[str], seen_in: SeenIn) -> ColumnMaker:
    """`event_rows` of many events of one class, column by column."""
    values = "".join(
        f"[{expression}] * len(es), " if expression in _SAME else f"[{expression} for e in es], "
        for expression in _expressions(cls, columns, seen_in)
    )
    function: ColumnMaker = eval(f"lambda es: ({values})", _scope(cls, seen_in))
    return function


def _expressions(cls: type[GroupEvent], columns: Iterable[str], seen_in: SeenIn) -> list[str]:
    names = {field.name for field in fields(cls)}
    own = _OWN.get(cls, {})
    return [
        f"own[{column!r}](e)" if column in own else _expression(column, names, seen_in) for column in columns
    ]


def _scope(cls: type[GroupEvent], seen_in: SeenIn) -> dict[str, Any]:
    """The names that the expressions use."""
    return {
        "event_json": event_json, "microseconds": microseconds, "text": _Texts().__getitem__,
        "name": EVENTS[cls], "own": _OWN.get(cls, {}), "seen_in": seen_in,
    }  # fmt: skip


_SAME = frozenset(("name", "seen_in", "None", "[]"))
"""The expressions that all events of a class have one value of."""


class _Texts(dict[str, str]):
    """Names of captures as text, of which there are few."""

    def __missing__(self, name: str) -> str:
        value = self[name] = text(name)
        return value


def _expression(column: str, names: set[str], seen_in: SeenIn) -> str:
    """A column's value by the event `e`, which has these attributes."""
    if column in _NUMBERS:
        return "e.number" if _NUMBERS[column] == seen_in else "None"
    of = _TIMES.get(column) or _ATTRIBUTES.get(column, column)
    if column == "event":
        return "name"
    if column == "body":
        return "event_json(e)"
    if column == "seen_in":
        return column
    if of not in names:
        return "[]" if column in _LISTS else "None"
    if column in _TIMES:
        return f"microseconds(e.{of})"
    match column:
        case "input_file":
            return "text(e.source)"
        case "length_ms":
            return "None if e.length_ns is None else e.length_ns / 1e6"
        case "moved":
            return "len(e.moved) if isinstance(e.moved, tuple) else None"
    return f"list(e.{of} or ())" if column in _LISTS else f"e.{of}"


_PLACE = "time group_id cluster_id input_file frame log_offset packet"
EVENT_COLUMNS = "time group_id input_file frame log_offset body"
LAG_COLUMNS = f"{_PLACE} topic partition committed_offset end_offset lag reason"
COMMIT_COLUMNS = (
    f"{_PLACE} member_id client_id generation topic partition committed_offset error_code removed"
)
"""The columns that `event_of` reads."""


def event_of(table: str, row: Any) -> GroupEvent | None:
    """The event of a row, an object with the attributes above; of a lag or a commit to the microsecond. None
    for a row that was written without its event. Raises `CoordwireError` for another text."""
    if table == "groups":
        return None if row.body is None else read_event(row.body)
    place: dict[str, Any] = {
        "group": row.group_id or "", "time_ns": None if row.time is None else row.time * 1_000,
        "source": row.input_file or "", "number": row.frame or row.log_offset or 0, "packet": row.packet,
        "cluster": getattr(row, "cluster_id", None),  # which older tables lack
        "topic": row.topic or "", "partition": row.partition or 0,
    }  # fmt: skip
    if table == "lag":
        committed, end = row.committed_offset or 0, row.end_offset or 0
        return LagMeasured(
            **place, committed=committed, end_offset=end, lag=row.lag or 0, reason=row.reason
        )  # fmt: skip
    return OffsetCommitted(
        **place, member_id=row.member_id, client_id=row.client_id, generation=row.generation or 0,
        offset=row.committed_offset or 0, leader_epoch=-1, metadata=None, error_code=row.error_code or 0,
        removed=bool(row.removed),
    )  # fmt: skip


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
