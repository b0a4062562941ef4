"""Many events, entries, frames or messages to a table of texts, one row each.

Rules: cells are short; a longer value is cut, and the object itself, shown in a cell of its own, has it
whole.
"""

from __future__ import annotations

__all__ = ["DisplayTable", "table_of"]

from collections.abc import Sequence
from typing import Any, NamedTuple

from coordwire._quantities import duration
from coordwire.capture.entries import FrameEntry
from coordwire.capture.flows import format_time
from coordwire.capture.printable import shown
from coordwire.capture.redaction.entry_secrets import withheld
from coordwire.codec.entities import entity_values
from coordwire.enums import ErrorCode
from coordwire.errors import UnreadableRange
from coordwire.frames import RequestFrame, ResponseFrame
from coordwire.notebook.tree import entry_of, event_texts, head_of, unreadable_text
from coordwire.timeline.events import EVENTS, GroupEvent

MOST_CELL = 160
_EVENT = ("time", "group", "event", "member", "details")
_FRAME = ("time", "#", "flow", "frame", "client", "size", "latency", "error")
_FIRST = ("group", "time", "source", "number", "member_id", "kind")
"""Fields of events that have a column of their own, or are of no use to people."""


class DisplayTable(NamedTuple):
    """head: the columns' names. is_cut: whether rows were left out at the end."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    is_cut: bool


def table_of(values: Sequence[Any], *, is_cut: bool) -> DisplayTable:
    """A table of events if all values are events, else of frames."""
    if values and all(isinstance(value, GroupEvent) for value in values):
        return DisplayTable(_EVENT, tuple(_event_row(value) for value in values), is_cut)
    return DisplayTable(_FRAME, tuple(_frame_row(value) for value in values), is_cut)


def _event_row(event: GroupEvent) -> tuple[str, ...]:
    texts = dict(event_texts(event))
    details = [f"{name}: {text}" for name, text in texts.items() if text and name not in _FIRST]
    return (
        texts["time"], _cell(texts["group"]), EVENTS.get(type(event), type(event).__name__),
        _cell(texts.get("member_id", "")), _cell(", ".join(details)),
    )  # fmt: skip


def _frame_row(value: Any) -> tuple[str, ...]:
    if isinstance(value, RequestFrame | ResponseFrame):
        value = entry_of(value)
    if isinstance(value, UnreadableRange):
        time = "" if value.time_ns is None else format_time(value.time_ns, 6)
        return (time, "", _cell(shown(value.flow or "")), "unreadable", "", str(value.length), "",
                _cell(unreadable_text(value)))  # fmt: skip
    if not isinstance(value, FrameEntry):
        return ("", "", "", type(value).__name__, "", "", "", "")
    return (
        "" if value.time_ns is None else format_time(value.time_ns, 6), str(value.number or ""),
        _cell(shown(value.flow)), _cell(head_of(value)),
        _cell("" if value.client_id is None or withheld(value).client else shown(value.client_id)),
        str(value.size), "" if value.latency_ns is None else duration(value.latency_ns / 1e9),
        _cell(_error(value)),
    )  # fmt: skip


def _error(entry: FrameEntry) -> str:
    if entry.error is not None:
        return f"refused: {shown(entry.error.reason)}"
    if entry.direction == "request":
        return ""
    codes = {code for code in entity_values(entry.message, "error_code") if code}
    return ", ".join(f"{code} {ErrorCode(code).name}" for code in sorted(codes)[:3])


def _cell(text: str) -> str:
    return text if len(text) <= MOST_CELL else f"{text[:MOST_CELL]}…"
