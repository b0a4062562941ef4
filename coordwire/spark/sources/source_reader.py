"""The reader of all that a data source has, and what its filtering and streaming variants share with it.

Rules: a reader holds its options and the names of its columns and nothing else, since Spark ships it to every
worker; rows come as Arrow batches in exactly the schema that Spark planned with.

Filters, where Spark has their pushdown switched on (`spark.sql.python.filterPushdown.enabled`).

Strategy: a comparison of an offset, a time, a topic or a partition with a constant narrows the options, so
that files, parts and batches are left out whole. Rules: every filter is given back, and Spark checks each row
with it again: what is narrowed here may be too wide, never too narrow.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from coordwire.errors import CoordwireError
from coordwire.spark.sources.compatibility import arrow_schema_of
from coordwire.tables.options import Options
from coordwire.tables.readers.rows import conform
from coordwire.tables.readers.sources import SOURCES, SourceDefinition, plan, read

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql.datasource import Filter

__all__ = ["BatchReader", "PushdownReader", "arrow_rows", "checked_columns"]


def checked_columns(source: SourceDefinition, schema: StructType) -> list[str]:
    """The columns that a schema picks. Raises `CoordwireError` for an unknown one or another type."""
    known = {column.name: column.type for column in source.columns}
    for field in schema.fields:
        type_name, kind = field.dataType.simpleString(), known.get(field.name)
        if kind is None:
            raise CoordwireError(f"{source.name} has no column {field.name}; it has {', '.join(known)}")
        if type_name != kind:
            raise CoordwireError(f"{source.name}: column {field.name} is {kind}, not {type_name}")
    return schema.fieldNames()


def arrow_rows(
    source: SourceDefinition, partition: InputPartition, options: Options, schema: StructType
) -> Iterator[pyarrow.RecordBatch]:
    """A task's rows in the schema that Spark planned with."""
    arrow_schema = arrow_schema_of(schema)
    for batch in read(source, partition.value or (), options, checked_columns(source, schema)):
        yield conform(batch, arrow_schema)


class BatchReader(DataSourceReader):
    """Reads all there is."""

    def __init__(self, name: str, options: Options, schema: StructType) -> None:
        self.source_name = name
        self.options = options
        self.schema = schema
        checked_columns(self.source, schema)

    @property
    def source(self) -> SourceDefinition:
        return SOURCES[self.source_name]

    def partitions(self) -> Sequence[InputPartition]:
        return [InputPartition(parts) for parts in plan(self.source, self.options)]

    def read(self, partition: InputPartition) -> Iterator[pyarrow.RecordBatch]:
        return arrow_rows(self.source, partition, self.options, self.schema)


# --- filters ---


OFFSETS = ("kafka-segment", "kafka-offsets")
"""The sources of which a range of `log_offset` is one of offsets."""

TIMES = ("kafka-segment", "kafka-capture", "kafka-errors", "kafka-offsets")
"""The sources of which a range of `time` is one of times."""

TOPICS = ("kafka-segment", "kafka-segment-batches")
"""The sources whose topic and partition are those of the folder."""

_BOUNDS = {
    "EqualTo": (True, True), "GreaterThan": (True, False), "GreaterThanOrEqual": (True, False),
    "LessThan": (False, True), "LessThanOrEqual": (False, True),
}  # fmt: skip
"""Whether a filter has a lower bound and an upper one, by its class, which PySpark 4.0 lacks."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class PushdownReader(BatchReader):
    """Reads what the filters can want."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        for condition in filters:
            self.options = narrowed(self.source_name, self.options, condition)
        return filters


def narrowed(source: str, options: Options, condition: Any) -> Options:
    """The options under which no row is missing that this filter lets through."""
    bounds = _BOUNDS.get(type(condition).__name__)
    if bounds is None:
        return options
    (name, *nested), value = condition.attribute, condition.value
    if nested or value is None:
        return options
    if name == "log_offset" and source in OFFSETS and isinstance(value, int):
        return _ranged(options, "offset", bounds, value, value + 1)
    if name == "time" and source in TIMES and isinstance(value, datetime):
        moment = value if value.tzinfo else value.replace(tzinfo=UTC)
        milliseconds = int((moment - _EPOCH).total_seconds() * 1000)
        return _ranged(options, "timestamp", bounds, milliseconds - 1, milliseconds + 2)
    if source in TOPICS and bounds == (True, True):
        if name == "topic" and isinstance(value, str) and options.topics is None and not _wild(value):
            return replace(options, topics=(value,))
        if name == "partition" and isinstance(value, int) and options.partitions is None:
            return replace(options, partitions=((value, value),))
    return options


def _ranged(options: Options, field: str, bounds: tuple[bool, bool], low: int, end: int) -> Options:
    """With the range cut to what is at least `low` and before `end`, where there are these bounds."""
    changes: dict[str, Any] = {}
    for name, value, has_bound, choice in zip(
        ("starting", "ending"), (low, end), bounds, (max, min), strict=True
    ):
        if has_bound:
            before = getattr(options, f"{name}_{field}")
            changes[f"{name}_{field}"] = value if before is None else choice(value, before)
    return replace(options, **changes)


def _wild(text: str) -> bool:
    return any(char in text for char in "*?[")
