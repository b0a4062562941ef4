"""Where PySpark finds the data source `kafka-lag` without `register`."""

from coordwire.spark.sources.data_sources import KafkaLag as DefaultSource

__all__ = ["DefaultSource"]
