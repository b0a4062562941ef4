"""Filters, where Spark has their pushdown switched on (`spark.sql.python.filterPushdown.enabled`).

Strategy: a comparison of an offset, a time, a topic or a partition with a constant narrows the options, so
that files, parts and batches are left out whole. Rules: every filter is given back, and Spark checks each row
with it again: what is narrowed here may be too wide, never too narrow.
"""

from __future__ import annotations

__all__ = ["PushdownReader", "narrowed"]

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from pyspark.sql.datasource import EqualTo, Filter, GreaterThan, GreaterThanOrEqual, LessThan, LessThanOrEqual

from coordwire.spark.sources.source_reader import BatchReader
from coordwire.tables.options import Options

OFFSETS = {"kafka-segment": "offset", "kafka-offsets": "log_offset"}
TIMES = {
    "kafka-segment": "timestamp", "kafka-capture": "time", "kafka-errors": "time",
    "kafka-offsets": "timestamp",
}  # fmt: skip
TOPICS = ("kafka-segment", "kafka-segment-batches")
"""The sources whose topic and partition are those of the folder."""

_LOW, _HIGH = (GreaterThan, GreaterThanOrEqual), (LessThan, LessThanOrEqual)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class PushdownReader(BatchReader):
    """Reads what the filters can want."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        for condition in filters:
            self.options = narrowed(self.source_name, self.options, condition)
        return filters


def narrowed(source: str, options: Options, condition: Filter) -> Options:
    """The options under which no row is missing that this filter lets through."""
    if not isinstance(condition, EqualTo | GreaterThan | GreaterThanOrEqual | LessThan | LessThanOrEqual):
        return options
    (name, *nested), value = condition.attribute, condition.value
    if nested or value is None:
        return options
    if name == OFFSETS.get(source) and isinstance(value, int):
        return _ranged(options, "offset", condition, value, value + 1)
    if name == TIMES.get(source) and isinstance(value, datetime):
        moment = value if value.tzinfo else value.replace(tzinfo=UTC)
        milliseconds = int((moment - _EPOCH).total_seconds() * 1000)
        return _ranged(options, "timestamp", condition, milliseconds - 1, milliseconds + 2)
    if source in TOPICS and isinstance(condition, EqualTo):
        if name == "topic" and isinstance(value, str) and options.topics is None and not _wild(value):
            return replace(options, topics=(value,))
        if name == "partition" and isinstance(value, int) and options.partitions is None:
            return replace(options, partitions=((value, value),))
    return options


def _ranged(options: Options, field: str, condition: Filter, low: int, end: int) -> Options:
    """With the range cut to what is at least `low` or before `after`."""
    changes: dict[str, Any] = {}
    if isinstance(condition, (EqualTo, *_LOW)):
        before = getattr(options, f"starting_{field}")
        changes[f"starting_{field}"] = low if before is None else max(low, before)
    if isinstance(condition, (EqualTo, *_HIGH)):
        before = getattr(options, f"ending_{field}")
        changes[f"ending_{field}"] = end if before is None else min(end, before)
    return replace(options, **changes)


def _wild(text: str) -> bool:
    return any(char in text for char in "*?[")
