"""Where PySpark finds the data source `kafka-segment-batches` without `register`."""

from coordwire.spark.sources import KafkaSegmentBatches as DefaultSource

__all__ = ["DefaultSource"]
