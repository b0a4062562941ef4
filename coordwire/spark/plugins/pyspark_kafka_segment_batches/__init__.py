"""Where PySpark finds the data source `kafka-segment-batches` without `register`."""

from coordwire.spark.sources.data_sources import KafkaSegmentBatches as DefaultSource

__all__ = ["DefaultSource"]
