"""Queries that count what happened once, where captures and logs both have it.

    for name, query in VIEWS.items():
        spark.sql(f"CREATE OR REPLACE TEMP VIEW {name} AS {query()}")

Strategy: plain SQL, the same for Spark and DuckDB. Rules: a capture's row wins, as it has the cause and the
member; a log's row counts where no capture has one of the same key within an hour, and of the copies that
replicas have of one record, the first file's counts. A group reaches a generation again only after it was
deleted. Captures don't say of which cluster they are: tables of several clusters are to be separated by
`input_file` first.
"""

from __future__ import annotations

__all__ = ["VIEWS", "once"]

from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

HOUR = 3_600_000_000
"""Microseconds."""

REBALANCE_KEY = "group_id generation"
"""The columns that are alike where a capture and a log have one rebalance."""


def _once(table: str, condition: str, key: str, prefix: str = "") -> str:
    """The query of a table's rows that this is true of, each once. prefix: before the table's name."""
    equal_keys = " AND ".join(f"other.{name} = seen.{name}" for name in key.split())
    return (
        f"SELECT * FROM {prefix}{table} AS seen WHERE {condition} AND (seen_in = 'capture' OR NOT EXISTS ("
        f"SELECT 1 FROM {prefix}{table} AS other WHERE {condition} AND {equal_keys} AND ("
        "(other.seen_in = 'capture' "
        "AND other.time BETWEEN seen.time - INTERVAL 1 HOUR AND seen.time + INTERVAL 1 HOUR) "
        "OR (other.seen_in = 'log' AND other.log_offset = seen.log_offset AND other.time = seen.time "
        "AND other.input_file < seen.input_file))))"
    )


VIEWS: dict[str, Callable[..., str]] = {
    "rebalances_once": partial(_once, "groups", "event = 'rebalanceEnded'", REBALANCE_KEY),
    "offset_commits_once": partial(
        _once, "offset_commits", "time IS NOT NULL", "group_id topic partition committed_offset"
    ),
}
"""What makes each view's query, by the view's name."""


def once(rows: Iterable[Any]) -> list[Any]:
    """The same of rebalances in memory; times are microseconds."""
    rows, names = list(rows), REBALANCE_KEY.split()
    times: dict[tuple[Any, ...], list[int]] = defaultdict(list)
    files: dict[tuple[Any, ...], list[str]] = defaultdict(list)
    keys = [tuple(getattr(row, name) for name in names) for row in rows]
    for row, values in zip(rows, keys, strict=True):
        if row.seen_in != "capture":
            files[*values, row.log_offset, row.time].append(row.input_file)
        elif row.time is not None:
            times[values].append(row.time)

    def is_first(row: Any, values: tuple[Any, ...]) -> bool:
        copies = files[*values, row.log_offset, row.time]
        captured = times.get(values, ())
        return row.input_file == min(copies) and not any(abs(time - row.time) <= HOUR for time in captured)

    return [
        row for row, values in zip(rows, keys, strict=True)
        if row.seen_in == "capture" or row.time is None or None in values or is_first(row, values)
    ]  # fmt: skip
