"""Where PySpark finds the data source `kafka-offsets` without `register`."""

from coordwire.spark.sources.data_sources import data_source

DefaultSource = data_source("kafka-offsets")
