"""Where PySpark finds the data source `kafka-offsets` without `register`."""

from coordwire.spark.sources import KafkaOffsets as DefaultSource

__all__ = ["DefaultSource"]
