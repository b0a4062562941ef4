"""Where PySpark finds the data source `kafka-quarantine` without `register`."""

from coordwire.spark.sources.data_sources import KafkaQuarantine as DefaultSource

__all__ = ["DefaultSource"]
