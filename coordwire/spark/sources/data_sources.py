"""The data sources, as PySpark's Python data source API wants them.

Strategy: one small class a source over `coordwire.tables.readers.sources`; a reader holds nothing but its
options and the names of its columns, so that what Spark ships to the workers is small and every task begins
again. Rules: `.schema(…)` picks columns, and what isn't picked isn't made; filters are used to read less, and
Spark still checks them all; rows come as Arrow batches in exactly the schema that Spark planned with.
"""

from __future__ import annotations

__all__ = [
    "KafkaCapture", "KafkaErrors", "KafkaLag", "KafkaOffsets", "KafkaQuarantine", "KafkaSegment",
    "KafkaSegmentBatches",
]  # fmt: skip

from typing import TYPE_CHECKING, ClassVar

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader
from pyspark.sql.types import StructType

from coordwire.errors import CoordwireError
from coordwire.spark.sources.compatibility import filters_are_pushed
from coordwire.spark.sources.source_reader import BatchReader, PushdownReader
from coordwire.tables.columns import ddl, default_columns
from coordwire.tables.options import parse_options
from coordwire.tables.readers.sources import SOURCES, SourceDefinition

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class _KafkaSource(DataSource):
    """What the sources have in common."""

    source: ClassVar[SourceDefinition]

    @classmethod
    def name(cls) -> str:
        return cls.source.name

    def schema(self) -> str:
        return ddl(default_columns(self.source.columns))

    def reader(self, schema: StructType) -> DataSourceReader:
        reader = PushdownReader if filters_are_pushed() else BatchReader
        return reader(self.source.name, parse_options(self.options), schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        from coordwire.spark.sources.streaming import stream_reader

        return stream_reader(self.source.name, parse_options(self.options), schema)


class KafkaSegment(_KafkaSource):
    """The records of log segments."""

    source = SOURCES["kafka-segment"]


class KafkaSegmentBatches(_KafkaSource):
    """The headers of the batches in log segments."""

    source = SOURCES["kafka-segment-batches"]


class KafkaCapture(_KafkaSource):
    """The frames of recorded traffic."""

    source = SOURCES["kafka-capture"]


class KafkaErrors(_KafkaSource):
    """The error codes of recorded responses."""

    source = SOURCES["kafka-errors"]


class KafkaLag(_KafkaSource):
    """The lag of groups, from what is on disk."""

    source = SOURCES["kafka-lag"]

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        raise CoordwireError("kafka-lag is what is on disk at one time: read it in batches, with spark.read")


class KafkaOffsets(_KafkaSource):
    """What coordinators wrote to their logs."""

    source = SOURCES["kafka-offsets"]


class KafkaQuarantine(_KafkaSource):
    """What couldn't be read of segments and captures."""

    source = SOURCES["kafka-quarantine"]


ALL: tuple[type[_KafkaSource], ...] = (
    KafkaSegment, KafkaSegmentBatches, KafkaCapture, KafkaErrors, KafkaLag, KafkaOffsets,
    KafkaQuarantine,
)  # fmt: skip


def register_all(spark: SparkSession) -> None:
    """See `coordwire.spark.register`."""
    from pyspark.errors import AnalysisException

    for cls in ALL:
        try:
            spark.dataSource.register(cls)
        except AnalysisException as error:
            if error.getCondition() != "DATA_SOURCE_ALREADY_EXISTS":  # found by itself
                raise
