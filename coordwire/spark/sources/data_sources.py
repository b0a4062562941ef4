"""The data sources, as PySpark's Python data source API wants them.

Strategy: a class for each of `coordwire.tables.readers.sources`; a reader holds nothing but its
options and the names of its columns, so that what Spark ships to the workers is small and every task begins
again. Rules: `.schema(…)` picks columns, and what isn't picked isn't made; filters are used to read less, and
Spark still checks them all; rows come as Arrow batches in exactly the schema that Spark planned with.
"""

from __future__ import annotations

__all__ = ["KafkaSource", "data_source", "register_all"]

from typing import TYPE_CHECKING, ClassVar, cast

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader
from pyspark.sql.types import StructType

from coordwire.spark.sources.compatibility import filters_are_pushed
from coordwire.spark.sources.source_reader import BatchReader, PushdownReader
from coordwire.tables.columns import ddl, default_columns
from coordwire.tables.options import parse_options
from coordwire.tables.readers.sources import SOURCES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class KafkaSource(DataSource):
    """What the sources have in common. source_name: of one of `SOURCES`."""

    source_name: ClassVar[str]

    @classmethod
    def name(cls) -> str:
        return cls.source_name

    def schema(self) -> str:
        return ddl(default_columns(SOURCES[self.source_name].columns))

    def reader(self, schema: StructType) -> DataSourceReader:
        reader = PushdownReader if filters_are_pushed() else BatchReader
        return reader(self.source_name, parse_options(self.options), schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        from coordwire.spark.sources.streaming import stream_reader

        return stream_reader(self.source_name, parse_options(self.options), schema)


def data_source(name: str) -> type[KafkaSource]:
    """The class of a source."""
    return cast(type[KafkaSource], type(name, (KafkaSource,), {"source_name": name}))


def register_all(spark: SparkSession) -> None:
    """See `coordwire.spark.register`."""
    from pyspark.errors import AnalysisException

    for name in SOURCES:
        try:
            spark.dataSource.register(data_source(name))
        except AnalysisException as error:
            if error.getCondition() != "DATA_SOURCE_ALREADY_EXISTS":  # found by itself
                raise
