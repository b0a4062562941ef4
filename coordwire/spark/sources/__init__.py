"""The Spark data sources `kafka-segment`, `kafka-segment-batches`, `kafka-capture`, `kafka-errors`,
`kafka-lag`, `kafka-offsets` and `kafka-quarantine`.

    data_sources.py  the sources for PySpark's Python data source API
    source_reader.py the reader that they share, and filters pushed down by Spark
    streaming.py     a growing folder as a stream
    compatibility.py what differs between the versions of PySpark
"""
