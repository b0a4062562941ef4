"""The report: one HTML file with everything in it, with pictures and tables.

Strategy: the numbers are the run's summary; the plots and lists read a bounded part of the tables through
`TableRows`: groups (`group_section`), errors, refusals and quarantine (`error_section`). Rules: nothing is
fetched from anywhere; untrusted texts are escaped; notes say what was left out.
"""

from __future__ import annotations

__all__ = ["page"]

from datetime import UTC, datetime

from coordwire import __version__
from coordwire._quantities import counted, duration, size
from coordwire.tables.report import error_section, group_section
from coordwire.tables.report.html import escaped, style_sheet
from coordwire.tables.report.summary import PipelineSummary, TableRows


def page(reading: TableRows, summary: PipelineSummary) -> str:
    """The page. reading: the tables, as far as they are written."""
    body = "".join([
        _numbers(summary),
        *group_section.sections(reading),
        *error_section.sections(reading, summary),
    ])  # fmt: skip
    now = f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Kafka traffic and logs</title><style>{style_sheet()}</style></head><body>"
        f'<h1>Kafka traffic and logs</h1><p class="sub">{counted(summary.files, "file")}, read by coordwire '
        f"{escaped(__version__)}, {now}; all times are UTC</p>{body}</body></html>\n"
    )


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
    )
    return f'<div class="tiles">{items}</div>'
