"""Where PySpark finds the data source `kafka-offsets` without `register`."""

from coordwire.spark.sources.data_sources import KafkaOffsets as DefaultSource

__all__ = ["DefaultSource"]
