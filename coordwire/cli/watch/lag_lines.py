"""Lags as lines of JSON: one when a group's lag or offset in a partition has changed, at most once a second.

Strategy: a line has the fields of the timeline's `lagMeasured` that are known here, and `lagMs`: how long ago
the record at the committed offset was written, 0 where all are read, null where that is not known.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable

from coordwire.capture.flows import format_time
from coordwire.capture.jsonlines import encode
from coordwire.cli.watch.group_board import KnownLag
from coordwire.timeline.events import TopicPartition

__all__ = ["LagLines"]

_APART_NS = 1_000_000_000


class LagLines:
    """Writes the lines to standard output."""

    def __init__(self) -> None:
        self._written: dict[tuple[str, TopicPartition], tuple[int, KnownLag]] = {}

    def write(self, lags: Iterable[KnownLag], now_ns: int) -> None:
        """Write what has changed. lags: all that are known now."""
        written = {}
        for lag in lags:
            key = lag.group, lag.place
            before_ns, before = self._written.get(key, (0, None))
            is_same = before is not None and before[:4] == lag[:4]
            if before is not None and (is_same or now_ns - before_ns < _APART_NS):
                written[key] = before_ns, before
                continue
            written[key] = now_ns, lag
            form = {
                "event": "lagMeasured", "group": lag.group, "time": format_time(now_ns, 6),
                "topic": lag.place.topic, "partition": lag.place.partition,
                "committed": lag.committed, "lag": lag.records, "lagMs": lag.age_ms,
            }  # fmt: skip
            sys.stdout.write(encode(form) + "\n")
        self._written = written
