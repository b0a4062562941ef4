"""The reader of all that a data source has, and what its filtering and streaming variants share with it.

Rules: a reader holds its options and the names of its columns and nothing else, since Spark ships it to every
worker; rows come as Arrow batches in exactly the schema that Spark planned with.
"""

from __future__ import annotations

__all__ = ["BatchReader", "arrow_rows", "checked_columns"]

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from coordwire.errors import CoordwireError
from coordwire.spark.sources.compatibility import arrow_schema_of
from coordwire.tables.options import Options
from coordwire.tables.readers.rows import conform
from coordwire.tables.readers.sources import SOURCES, SourceDefinition, plan, read

if TYPE_CHECKING:
    import pyarrow


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
