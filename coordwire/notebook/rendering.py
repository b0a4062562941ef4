"""Trees and tables of texts, and groups' stories, to HTML and to plain text.

Rules: every text loses its control characters here, and in HTML its markup, whatever it is and wherever it is
from. The HTML has no scripts, links or images; its colours are those of the page around it, so that dark
themes work. A table's cells are short; a longer value is cut, and the object itself, shown in a cell of its
own, has it whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

from coordwire._quantities import duration
from coordwire.capture.entries import FrameEntry
from coordwire.capture.flows import format_time
from coordwire.capture.printable import shown
from coordwire.capture.redaction.entry_secrets import withheld
from coordwire.codec.walk import entity_values
from coordwire.enums import ErrorCode
from coordwire.errors import UnreadableRange
from coordwire.frames import RequestFrame, ResponseFrame
from coordwire.notebook.tree import DisplayNode, entry_of, head_of, unreadable_text
from coordwire.timeline.events import GroupEvent
from coordwire.timeline.story.collected import CollectedEvents
from coordwire.timeline.story.contents import StoryContents, common_verdict
from coordwire.timeline.story.markup import escaped, table
from coordwire.timeline.story.overview import Overview, wrapped
from coordwire.timeline.story.story_page import story_html

INDENT = "  "
WIDEST = 40
"""Characters to which a column of plain text is padded at most."""

_STYLE = (
    "<style>.coordwire{font-size:.9em;overflow-x:auto}"
    ".coordwire table{border-collapse:collapse;margin:0}"
    ".coordwire th,.coordwire td{text-align:left;vertical-align:top;padding:.1em .8em .1em 0;"
    "background:none;overflow-wrap:anywhere}"
    ".coordwire th{font-weight:600;white-space:nowrap}"
    ".coordwire .number{text-align:right}.coordwire h3,.coordwire h4,.coordwire p{margin:.5em 0 .1em}"
    ".coordwire .note{opacity:.65;font-weight:400}.coordwire summary{cursor:pointer}</style>"
)


# --- HTML ---


def html(value: DisplayNode | DisplayTable | DisplayStories) -> str:
    """A tree, a table or stories as one piece of HTML."""
    if isinstance(value, DisplayStories):
        content = "" if value.verdict is None else f"<p><b>{escaped(value.verdict)}</b></p>"
        content += "".join(story_html(contents, most=MOST_STORY_ROWS) for contents in value.stories)
        content += "".join(f'<p class="note">{escaped(note)}</p>' for note in value.notes)
    else:
        content = _html_table(value) if isinstance(value, DisplayTable) else _html_tree(value)
    return f'<div class="coordwire">{_STYLE}{content}</div>'


def _html_tree(node: DisplayNode) -> str:
    summary = f" {escaped(node.text)}" if node.text else ""
    return f"<b>{escaped(node.name)}</b>{summary}{_html_rows(node.children)}"


def _html_rows(nodes: tuple[DisplayNode, ...]) -> str:
    if not nodes:
        return ""
    rows = []
    for node in nodes:
        kind = ' class="note"' if node.note else ""
        cell = escaped(node.text)
        if node.children:
            summary = cell or f"{len(node.children)} fields"
            cell = f"<details open><summary>{summary}</summary>{_html_rows(node.children)}</details>"
        rows.append(f"<tr{kind}><th>{escaped(node.name)}</th><td>{cell}</td></tr>")
    return f"<table>{''.join(rows)}</table>"


def _html_table(value: DisplayTable) -> str:
    note = f"The first {len(value.rows):,}; there are more." if value.is_cut else ""
    note = note if value.rows else "Nothing."
    return table(value.head, value.rows) + (f'<p class="note">{note}</p>' if note else "")


# --- plain text ---


def text(value: DisplayNode | DisplayTable | DisplayStories) -> str:
    """A tree, a table or stories as lines."""
    if isinstance(value, DisplayStories):
        lines = _text_stories(value)
    else:
        lines = _text_table(value) if isinstance(value, DisplayTable) else _text_tree(value, 0)
    return "\n".join(line.rstrip() for line in lines)


def _text_stories(value: DisplayStories) -> Iterator[str]:
    if value.verdict is not None:
        yield from wrapped(value.verdict, WIDTH, 0)
    for contents in value.stories:
        lines = Overview(contents, WIDTH).lines()
        for line in islice(lines, MOST_LINES):
            yield "".join(part for part, _ in line)
        remaining = sum(1 for _ in lines)
        if remaining:
            yield f"and {remaining:,} more lines"
    yield from value.notes


def _text_tree(node: DisplayNode, depth: int) -> Iterator[str]:
    name = f"{INDENT * depth}{shown(node.name)}"
    value = shown(node.text)
    yield f"{name}: {value}" if value else f"{name}:" if node.children and depth else name
    for child in node.children:
        yield from _text_tree(child, depth + 1)


def _text_table(table: DisplayTable) -> Iterator[str]:
    rows = [table.head, *([shown(cell) for cell in row] for row in table.rows)]
    widths = [min(max(len(row[column]) for row in rows), WIDEST) for column in range(len(table.head))]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
    if table.is_cut:
        yield f"The first {len(table.rows):,}; there are more."


MOST_CELL = 160
MOST_GROUPS = 20
MOST_STORY_ROWS = 100
"""Rows of a story's tables."""

MOST_LINES = 1_000
"""Of a story in plain text."""

WIDTH = 110
"""Columns of a story in plain text."""

_FRAME = ("time", "#", "flow", "frame", "client", "size", "latency", "error")


class DisplayTable(NamedTuple):
    """head: the columns' names. is_cut: whether rows were left out at the end."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    is_cut: bool


class DisplayStories(NamedTuple):
    """verdict: on all groups, where there are several; notes: what was left out."""

    verdict: str | None
    stories: tuple[StoryContents, ...]
    notes: tuple[str, ...]


def stories_of(events: Iterable[GroupEvent]) -> DisplayStories:
    """The stories of the groups that events are about, of at most `MOST_GROUPS`."""
    collected = CollectedEvents(events)
    groups, notes = list(collected.groups.values()), []
    if len(groups) > MOST_GROUPS:
        notes.append(f"The first {MOST_GROUPS} groups of {len(groups):,}.")
    if collected.left_out:
        notes.append(f"{collected.left_out:,} more events are not in these stories.")
    stories = tuple(map(StoryContents, groups))
    verdict = common_verdict(stories) if len(stories) > 1 else None
    return DisplayStories(verdict, stories[:MOST_GROUPS], tuple(notes))


def table_of(values: Sequence[Any], *, is_cut: bool) -> DisplayTable:
    """A table of frames."""
    return DisplayTable(_FRAME, tuple(_frame_row(value) for value in values), is_cut)


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
