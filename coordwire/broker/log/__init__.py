"""A partition's log: batches in, offsets given, batches out; in memory, or on disk in Kafka's own files.

    partition_log.py   PartitionLog: append, read, look up by time and by epoch, delete from the start
    validation.py      what a producer's record set must be, what is changed in it, and why it is refused
    producer_states.py sequences and duplicates of idempotent producers
    leader_epochs.py   which leader wrote from which offset on
    storage.py         the interface of the place that keeps a log's bytes, the place that is memory, and the
                       positions of batches, by offset and by time
    disk.py            on disk: segments, indexes, snapshots; disk_loading.py: loading at the start
    retention.py       when a segment is full, and which segments go
    log_compaction.py  what compaction leaves of a log
    data_folder.py     a broker's data folder: its lock, identity and checkpoints

Rules: no clock and no socket; time is an argument. Records come from untrusted clients: invalid records raise
`RefusedRecords`, with Kafka's error code, before anything has changed.
"""
