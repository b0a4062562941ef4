"""The report: one HTML file with everything in it, for people who want to know what happened.

Strategy: the numbers are the run's summary; the plots and lists read a bounded part of the tables through
`TableRows`: groups (`report_groups`), errors, refusals and quarantine (`report_errors`). Rules: nothing is
fetched from anywhere; what untrusted bytes say is escaped; what was left out for room is said.
"""

from __future__ import annotations

__all__ = ["build", "page"]

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Protocol

from coordwire import __version__
from coordwire.quantities import counted, duration, size
from coordwire.spark.pipeline import report_errors, report_groups
from coordwire.spark.pipeline.escaping import escaped
from coordwire.spark.pipeline.report_style import style_sheet
from coordwire.spark.pipeline.summary import PipelineSummary
from coordwire.spark.pipeline.tables import table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class TableRows(Protocol):
    """Bounded parts of the tables."""

    def rows(self, name: str, columns: str, query: str, order: str, most: int) -> list[Any]:
        """The first rows for which a query holds: an attribute for each column, times in microseconds since
        1970. None where the table isn't written. columns, order: names with spaces between them."""


def build(spark: SparkSession, out: str, summary: PipelineSummary, tables: Sequence[str]) -> str:
    """The page. Reads the tables in `out`, as far as they are written."""
    return page(_SparkRows(spark, out, tables), summary)


def page(reading: TableRows, summary: PipelineSummary) -> str:
    """The page."""
    body = "".join([
        _numbers(summary),
        *report_groups.sections(reading),
        *report_errors.sections(reading, summary),
    ])  # fmt: skip
    now = f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Kafka traffic and logs</title><style>{style_sheet()}</style></head><body>"
        f'<h1>Kafka traffic and logs</h1><p class="sub">{counted(summary.files, "file")}, read by coordwire '
        f"{escaped(__version__)}, {now}; all times are UTC</p>{body}</body></html>\n"
    )


class _SparkRows:
    """`TableRows` by Spark."""

    def __init__(self, spark: SparkSession, out: str, tables: Sequence[str]) -> None:
        self._spark = spark
        self._out = out
        self._tables = tables

    def rows(self, name: str, columns: str, query: str, order: str, most: int) -> list[Any]:
        from pyspark.errors import AnalysisException

        if name not in self._tables:
            return []
        words = {*columns.split(), *order.split(), *re.findall(r"\w+", query)}
        try:
            # A store that workers write to may be one that Spark itself has no credentials for.
            found = table(self._spark, self._out, name, columns=list(words), hadoop=False).where(query)
        except AnalysisException:  # no file has any of it
            return []
        # A datetime holds the years 1 to 9999 only, and a capture may say any time.
        types = dict(found.dtypes)
        wanted = [
            f"unix_micros(`{column}`) AS `{column}`" if types[column] == "timestamp" else f"`{column}`"
            for column in columns.split()
        ]
        return found.selectExpr(*wanted).orderBy(*order.split()).limit(most).collect()


def _numbers(summary: PipelineSummary) -> str:
    tiles = {
        "files": f"{summary.files:,}", "read": size(summary.bytes), "frames": f"{summary.frames:,}",
        "batches": f"{summary.batches:,}", "records": f"{summary.records:,}",
        "refused frames": f"{summary.refused:,}", "unreadable ranges": f"{summary.bad_ranges:,}",
        "in quarantine": size(summary.quarantined_bytes), "to read it": duration(summary.seconds),
    }  # fmt: skip
    bad = {"refused frames": summary.refused, "unreadable ranges": summary.bad_ranges}
    inside = "".join(
        f"<div{' class=bad' if bad.get(name) else ''}><b>{value}</b>{name}</div>"
        for name, value in tiles.items()
    )
    return f'<div class="tiles">{inside}</div>'
