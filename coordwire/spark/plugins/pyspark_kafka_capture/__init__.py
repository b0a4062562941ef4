"""Where PySpark finds the data source `kafka-capture` without `register`."""

from coordwire.spark.sources.data_sources import KafkaCapture as DefaultSource

__all__ = ["DefaultSource"]
