"""Where PySpark finds the data source `kafka-segment` without `register`."""

from coordwire.spark.sources.data_sources import KafkaSegment as DefaultSource

__all__ = ["DefaultSource"]
