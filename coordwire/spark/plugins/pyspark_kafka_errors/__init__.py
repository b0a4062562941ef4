"""Where PySpark finds the data source `kafka-errors` without `register`."""

from coordwire.spark.sources.data_sources import KafkaErrors as DefaultSource

__all__ = ["DefaultSource"]
