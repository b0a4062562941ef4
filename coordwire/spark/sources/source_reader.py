"""The reader of all that a data source has, and what its filtering and streaming variants share with it.

Rules: a reader holds its options and the names of its columns and nothing else, since Spark ships it to every
worker; rows come as Arrow batches in exactly the schema that Spark planned with.

Filters, where Spark has their pushdown switched on (`spark.sql.python.filterPushdown.enabled`).

Strategy: a comparison of an offset, a time, a topic or a partition with constants narrows the options, so
that files, parts and batches are left out whole; of an API, a client or a direction, so that no rows of other
frames are made. Rules: what narrows the options to just the rows that a filter lets through is taken, and
`explain` lists it. All else is given back, and Spark checks each row with it again: what is narrowed then may
be too wide, never too narrow.
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

CAPTURES = {
    "kafka-capture": {"api": "apis", "client_id": "client_ids", "direction": "directions"},
    "kafka-errors": {"api": "apis", "client_id": "client_ids"},
}
"""The options that choose among the values of a column, by source."""

_BOUNDS = {
    "EqualTo": (True, True), "GreaterThan": (True, False), "GreaterThanOrEqual": (True, False),
    "LessThan": (False, True), "LessThanOrEqual": (False, True),
}  # fmt: skip
"""Whether a filter has a lower bound and an upper one, by its class, which PySpark 4.0 lacks."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class PushdownReader(BatchReader):
    """Reads what the filters can want."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        remaining = []
        for condition in filters:
            self.options, is_exact = narrowed(self.source_name, self.options, condition)
            if not is_exact:
                remaining.append(condition)
        return remaining


def narrowed(source: str, options: Options, condition: Any) -> tuple[Options, bool]:
    """The options under which no row is missing that this filter lets through, and whether there is no other
    row either."""
    kind = type(condition).__name__
    if kind not in _BOUNDS and kind != "In":
        return options, False
    name, *nested = condition.attribute
    values = list(condition.value) if kind == "In" else [condition.value]
    if nested or None in values:
        return options, False
    if kind in ("In", "EqualTo"):
        return _with_values(source, options, name, values)
    return _bounded(source, options, name, _BOUNDS[kind], values[0]), False


def _with_values(source: str, options: Options, name: str, values: list[Any]) -> tuple[Options, bool]:
    """The options for a column that has one of these values."""
    if source in TOPICS and name == "topic" and options.topics is None:
        if all(isinstance(value, str) and value and not _wild(value) for value in values):
            return replace(options, topics=tuple(values)), True
    elif source in TOPICS and name == "partition" and options.partitions is None:
        return replace(options, partitions=tuple((value, value) for value in values)), True
    elif source in CAPTURES and name in CAPTURES[source]:
        option = CAPTURES[source][name]
        before = getattr(options, option)
        common = [value for value in values if before is None or value in before]
        changes: dict[str, Any] = {option: tuple(common)}
        return replace(options, **changes), True
    elif len(values) == 1:
        return _bounded(source, options, name, _BOUNDS["EqualTo"], values[0]), False
    return options, False


def _bounded(source: str, options: Options, name: str, bounds: tuple[bool, bool], value: Any) -> Options:
    """The options for a column whose values have such bounds."""
    if name == "log_offset" and source in OFFSETS and isinstance(value, int):
        return _ranged(options, "offset", bounds, value, value + 1)
    if name == "time" and source in TIMES and isinstance(value, datetime):
        moment = value if value.tzinfo else value.replace(tzinfo=UTC)
        milliseconds = int((moment - _EPOCH).total_seconds() * 1000)
        return _ranged(options, "timestamp", bounds, milliseconds - 1, milliseconds + 2)
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
