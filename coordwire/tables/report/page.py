"""The report: one HTML file with everything in it, with pictures and tables.

Strategy: frames and error codes are counted by the workers and come with the run's summary; the plots and
lists read a bounded part of the tables through `TableRows`: groups' stories first (`group_section`), then
refusals and quarantine, put together by their reasons, with the first place of each. Rules: nothing is
fetched from anywhere; untrusted texts are escaped; an error code has Kafka's name and meaning beside it;
lists are bounded, and notes say what was left out.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from datetime import UTC, datetime
from typing import Any, TypeVar

from coordwire import __version__
from coordwire._quantities import clock, counted, day, duration, size
from coordwire.enums import ErrorCode
from coordwire.tables.report import group_section, plots
from coordwire.tables.report.summary import PipelineSummary, TableRows
from coordwire.timeline.story.markup import document, table

__all__ = ["page"]

MOST_ROWS = 20_000
MOST_LISTED = 50
_FRAMES = "input_file frame time direction api error_reason error_path"
_QUARANTINE = "input_file flow position end_position reason"
_INDEX = re.compile(r"\[\d+\]")

K = TypeVar("K", bound=Hashable)


def _frames(summary: PipelineSummary) -> str:
    counted_by = {api: (frames - refused, refused) for api, (frames, refused) in summary.apis.items()}
    ordered = dict(sorted(counted_by.items(), key=lambda item: (-item[1][1], -item[1][0])))
    return plots.bars("Frames by API", ordered, ["read", "refused"])


def _errors(summary: PipelineSummary) -> str:
    """The error codes that responses carry."""
    errors = sorted(
        ((api, code, count) for api, codes in summary.error_codes.items() for code, count in codes.items()),
        key=lambda item: (-item[2], item[0], item[1]),
    )
    rows = []
    for api, code, count in errors[:MOST_LISTED]:
        error = ErrorCode(code)
        rows.append([api, str(code), error.name, f"{count:,}", error.description])
    codes = table(["API", "code", "error", "responses", "meaning"], rows, numbers=(1, 3), long=(4,))
    return (codes or plots.empty_plot("Error codes in responses")) + _remainder_note(
        len(errors) - len(rows), "error"
    )


def _refused(reading: TableRows, summary: PipelineSummary) -> str:
    frames = reading.rows("frames", _FRAMES, "input_file frame", MOST_ROWS, known=["error_reason"])
    if not frames:
        if summary.refused:
            count = counted(summary.refused, "frame")
            return f'<p class="note">{count}; the reasons are in the table frames, which isn\'t written.</p>'
        return plots.empty_plot("Refused frames")
    # Without the indexes in the path, so that the same trouble is one row.
    reasons = _by_key(
        frames,
        lambda row: (row.api or "unknown", row.direction or "", _INDEX.sub("[]", row.error_path or ""),
                     row.error_reason),
    )  # fmt: skip
    rows = [
        [*key, f"{count:,}", f"{first.input_file} frame {first.frame}", _time(first)]
        for key, (count, first) in reasons[:MOST_LISTED]
    ]
    head = ["API", "direction", "field", "reason", "frames", "first", "time"]
    return (
        table(head, rows, numbers=(4,), long=(2, 3, 5))
        + _remainder_note(len(reasons) - len(rows), "reason")
        + _unread(summary.refused - len(frames), "frame")
    )


def _quarantine(reading: TableRows, summary: PipelineSummary) -> str:
    ranges = reading.rows("quarantine", _QUARANTINE, "input_file position", MOST_ROWS)
    if not ranges:
        return plots.empty_plot("Unreadable bytes")
    total: Counter[tuple[str, str, str]] = Counter()
    for row in ranges:
        total[row.input_file, row.flow or "", row.reason] += row.end_position - row.position
    reasons = _by_key(ranges, lambda row: (row.input_file, row.flow or "", row.reason))
    rows = [
        [path, flow, reason, f"{count:,}", size(total[path, flow, reason]), f"{first.position:,}"]
        for (path, flow, reason), (count, first) in reasons[:MOST_LISTED]
    ]
    head = ["file", "flow", "reason", "ranges", "bytes", "first at"]
    return (
        table(head, rows, numbers=(3, 4, 5), long=(0, 2))
        + _remainder_note(len(reasons) - len(rows), "row")
        + _unread(summary.bad_ranges - len(ranges), "range")
    )


def _by_key(rows: Iterable[Any], key: Callable[[Any], K]) -> list[tuple[K, tuple[int, Any]]]:
    """How many rows have each key, and the first of them; the most frequent first."""
    groups: dict[K, tuple[int, Any]] = {}
    for row in rows:
        name = key(row)
        count, first = groups.get(name, (0, row))
        groups[name] = (count + 1, first)
    return sorted(groups.items(), key=lambda item: -item[1][0])


def _time(row: Any) -> str:
    return "" if row.time is None else f"{day(row.time / 1e6)} {clock(row.time / 1e6)}"


def _remainder_note(count: int, noun: str) -> str:
    return f'<p class="note">{counted(count, f"more {noun}")}, less frequent.</p>' if count > 0 else ""


def _unread(count: int, noun: str) -> str:
    return f'<p class="note">{counted(count, f"more {noun}")} in the table.</p>' if count > 0 else ""


# --- the page ---


def page(reading: TableRows, summary: PipelineSummary) -> str:
    """The page. reading: the tables, as far as they are written."""
    body = "".join([
        *group_section.sections(reading),
        "<h2>What was read</h2>", _numbers(summary),
        "<h2>Frames by API</h2>", _frames(summary),
        "<h2>Errors by API</h2>", _errors(summary),
        "<h2>Refused frames</h2>", _refused(reading, summary),
        "<h2>Quarantine</h2>", _quarantine(reading, summary),
    ])  # fmt: skip
    now = f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
    read = f"{counted(summary.files, 'file')}, read by coordwire {__version__}, {now}; all times are UTC"
    return document("Kafka traffic and logs", read, body)


def _numbers(summary: PipelineSummary) -> str:
    tiles = {
        "files": f"{summary.files:,}", "read": size(summary.bytes), "frames": f"{summary.frames:,}",
        "batches": f"{summary.batches:,}", "records": f"{summary.records:,}",
        "refused frames": f"{summary.refused:,}", "unreadable ranges": f"{summary.bad_ranges:,}",
        "in quarantine": size(summary.quarantined_bytes), "to read it": duration(summary.seconds),
    }  # fmt: skip
    problems = {"refused frames": summary.refused, "unreadable ranges": summary.bad_ranges}
    items = "".join(
        f"<div{' class=bad' if problems.get(name) else ''}><b>{value}</b>{name}</div>"
        for name, value in tiles.items()
        if value not in ("0", size(0))
    )
    return f'<div class="tiles">{items}</div>'
