"""The data sources, as PySpark's Python data source API wants them.

Strategy: one small class a source over `coordwire.spark.readers.dispatch`; a reader holds nothing but its
options and the names of its columns, so that what Spark ships to the workers is small and every task begins
anew. Rules: `.schema(…)` picks columns, and what isn't picked isn't made; filters are used to read less, and
Spark still checks them all; rows come as Arrow batches in exactly the schema that Spark planned with.
"""

from __future__ import annotations

__all__ = ["KafkaCapture", "KafkaOffsets", "KafkaQuarantine", "KafkaSegment", "KafkaSegmentBatches"]

import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from coordwire.errors import CoordwireError
from coordwire.spark.columns import ddl, default_columns
from coordwire.spark.readers.dispatch import SOURCES, Source, plan, read
from coordwire.spark.readers.rows import conform
from coordwire.spark.sources.options import Options, parse_options

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import SparkSession

PUSHING = "pyspark.sql.worker.data_source_pushdown_filters"
"""The worker's module where filters are pushed; Spark refuses a reader that takes any elsewhere."""


class _KafkaSource(DataSource):
    """What the sources have in common."""

    source: ClassVar[Source]

    @classmethod
    def name(cls) -> str:
        return cls.source.name

    def schema(self) -> str:
        return ddl(default_columns(self.source.columns))

    def reader(self, schema: StructType) -> DataSourceReader:
        options = parse_options(self.options)
        if PUSHING in sys.modules:
            from coordwire.spark.sources.pushdown import PushdownReader

            return PushdownReader(self.source.name, options, schema)
        return BatchReader(self.source.name, options, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        from coordwire.spark.sources.streaming import FolderReader

        return FolderReader(self.source.name, parse_options(self.options), schema)


class KafkaSegment(_KafkaSource):
    """The records of log segments."""

    source = SOURCES["kafka-segment"]


class KafkaSegmentBatches(_KafkaSource):
    """The headers of the batches in log segments."""

    source = SOURCES["kafka-segment-batches"]


class KafkaCapture(_KafkaSource):
    """The frames of recorded traffic."""

    source = SOURCES["kafka-capture"]


class KafkaOffsets(_KafkaSource):
    """What coordinators wrote to their logs."""

    source = SOURCES["kafka-offsets"]


class KafkaQuarantine(_KafkaSource):
    """What couldn't be read of segments and captures."""

    source = SOURCES["kafka-quarantine"]


ALL: tuple[type[_KafkaSource], ...] = (
    KafkaSegment, KafkaSegmentBatches, KafkaCapture, KafkaOffsets, KafkaQuarantine,
)  # fmt: skip


def checked_columns(source: Source, schema: StructType) -> list[str]:
    """The columns that a schema picks. Raises `CoordwireError` for an unknown one or another type."""
    known = {column.name: column.type for column in source.columns}
    for field in schema.fields:
        wanted, kind = field.dataType.simpleString(), known.get(field.name)
        if kind is None:
            raise CoordwireError(f"{source.name} has no column {field.name}; it has {', '.join(known)}")
        if wanted != kind:
            raise CoordwireError(f"{source.name}: column {field.name} is {kind}, not {wanted}")
    return schema.fieldNames()


def arrow_rows(
    source: Source, partition: InputPartition, options: Options, schema: StructType
) -> Iterator[pyarrow.RecordBatch]:
    """A task's rows in the schema that Spark planned with."""
    from pyspark.sql.pandas.types import to_arrow_schema

    wanted = to_arrow_schema(schema, timezone="UTC")
    for batch in read(source, partition.value or (), options, checked_columns(source, schema)):
        yield conform(batch, wanted)


class BatchReader(DataSourceReader):
    """Reads all there is."""

    def __init__(self, name: str, options: Options, schema: StructType) -> None:
        self.source_name = name
        self.options = options
        self.schema = schema
        checked_columns(self.source, schema)

    @property
    def source(self) -> Source:
        return SOURCES[self.source_name]

    def partitions(self) -> Sequence[InputPartition]:
        return [InputPartition(parts) for parts in plan(self.source, self.options)]

    def read(self, partition: InputPartition) -> Iterator[pyarrow.RecordBatch]:
        return arrow_rows(self.source, partition, self.options, self.schema)


def register_all(spark: SparkSession) -> None:
    """See `coordwire.spark.register`."""
    from pyspark.errors import AnalysisException

    for cls in ALL:
        try:
            spark.dataSource.register(cls)
        except AnalysisException as error:
            if error.getCondition() != "DATA_SOURCE_ALREADY_EXISTS":  # found by itself
                raise
