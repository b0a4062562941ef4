"""Queries that count what happened once, where captures and logs both have it.

    for name, query in VIEWS.items():
        spark.sql(f"CREATE OR REPLACE TEMP VIEW {name} AS {query()}")

Strategy: plain SQL, the same for Spark and DuckDB. Rules: a capture's row wins, as it has the cause and the
member; a log's row counts where no capture has one of the same key: of a rebalance within an hour, since a
group reaches a generation again only after it was deleted; of a stored commit within ten seconds, since idle
consumers commit the same offset again and again, with a capture's clock beside the broker's. Of the copies
that replicas have of one record, the first file's counts. A capture's rows name
their cluster (`cluster_id`) only where it shows several: tables of several clusters, and of several captures
of one group, are to be separated by `input_file` and `cluster_id` first.
"""

from __future__ import annotations

__all__ = ["VIEWS", "once"]

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

HOUR = 3_600_000_000
"""Microseconds."""

REBALANCE_KEY = "group_id generation"
"""The columns that are alike where a capture and a log have one rebalance."""


def _once(table: str, condition: str, key: str, interval: str, stored: str = "true", prefix: str = "") -> str:
    """The query of a table's rows that this is true of, each once.

    interval: how far apart the times of a capture and a log may be; stored: what is true of a capture's row
    that a log has too; prefix: before the table's name.
    """
    equal_keys = " AND ".join(f"other.{name} = seen.{name}" for name in key.split())
    return (
        f"SELECT * FROM {prefix}{table} AS seen WHERE {condition} AND (seen_in = 'capture' OR NOT EXISTS ("
        f"SELECT 1 FROM {prefix}{table} AS other WHERE {condition} AND {equal_keys} AND ("
        f"(other.seen_in = 'capture' AND {stored} "
        f"AND other.time BETWEEN seen.time - INTERVAL {interval} AND seen.time + INTERVAL {interval}) "
        "OR (other.seen_in = 'log' AND other.log_offset = seen.log_offset AND other.time = seen.time "
        "AND other.input_file < seen.input_file))))"
    )


VIEWS: dict[str, Callable[..., str]] = {
    "rebalances_once": partial(_once, "groups", "event = 'rebalanceEnded'", REBALANCE_KEY, "1 HOUR"),
    "offset_commits_once": partial(
        _once,
        "offset_commits",
        "time IS NOT NULL",
        "group_id topic partition committed_offset",
        "10 SECOND",
        "coalesce(other.error_code, 0) = 0",
    ),
}
"""What makes each view's query, by the view's name."""


def once(rows: Iterable[Any]) -> list[Any]:
    """The same of rebalances in memory; times are microseconds."""
    rows, names = list(rows), REBALANCE_KEY.split()
    times: dict[tuple[Any, ...], list[int]] = defaultdict(list)
    first_files: dict[tuple[Any, ...], str] = {}
    keys = [tuple(getattr(row, name) for name in names) for row in rows]
    for row, values in zip(rows, keys, strict=True):
        if row.seen_in != "capture":
            place = *values, row.log_offset, row.time
            first_files[place] = min(row.input_file, first_files.get(place, row.input_file))
        elif row.time is not None:
            times[values].append(row.time)
    for captured in times.values():
        captured.sort()

    def is_first(row: Any, values: tuple[Any, ...]) -> bool:
        captured = times.get(values, [])
        after = bisect_left(captured, row.time - HOUR)
        is_captured = after < len(captured) and captured[after] <= row.time + HOUR
        return row.input_file == first_files[*values, row.log_offset, row.time] and not is_captured

    return [
        row for row, values in zip(rows, keys, strict=True)
        if row.seen_in == "capture" or row.time is None or None in values or is_first(row, values)
    ]  # fmt: skip
