"""Queries that count what happened once, where captures and logs both have it.

    for name, query in VIEWS.items():
        spark.sql(f"CREATE OR REPLACE TEMP VIEW {name} AS {query()}")

Strategy: plain SQL, the same for Spark and DuckDB. Rules: a capture's row wins, as it has the cause and the
member; a log's row counts where no capture has one of the same key within an hour. A group reaches a
generation again only after it was deleted. Captures don't say of which cluster they are: tables of several
clusters are to be separated by `input_file` first.
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
    equal_keys = " AND ".join(f"captured.{name} = seen.{name}" for name in key.split())
    return (
        f"SELECT * FROM {prefix}{table} AS seen WHERE {condition} AND (seen_in = 'capture' OR NOT EXISTS ("
        f"SELECT 1 FROM {prefix}{table} AS captured WHERE {condition} AND captured.seen_in = 'capture' "
        f"AND {equal_keys} "
        "AND captured.time BETWEEN seen.time - INTERVAL 1 HOUR AND seen.time + INTERVAL 1 HOUR))"
    )


VIEWS: dict[str, Callable[..., str]] = {
    "rebalances_once": partial(_once, "groups", "event = 'rebalanceEnded'", REBALANCE_KEY),
    "offset_commits_once": partial(
        _once, "offset_commits", "time IS NOT NULL", "group_id topic partition committed_offset"
    ),
}
"""What makes each view's query, by the view's name."""


def once(rows: Iterable[Any], key: str = REBALANCE_KEY) -> list[Any]:
    """The same of rows in memory, all of which the condition is true of; times are microseconds."""
    rows, names = list(rows), key.split()
    times: dict[tuple[Any, ...], list[int]] = defaultdict(list)
    for row in rows:
        values = tuple(getattr(row, name) for name in names)
        if row.seen_in == "capture" and row.time is not None and None not in values:
            times[values].append(row.time)

    def is_captured(row: Any) -> bool:
        captured = times.get(tuple(getattr(row, name) for name in names), ())
        return row.time is not None and any(abs(time - row.time) <= HOUR for time in captured)

    return [row for row in rows if row.seen_in == "capture" or not is_captured(row)]
