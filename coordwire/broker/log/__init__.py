"""A partition's log: batches in, offsets given, batches out; in memory, or on disk in Kafka's own files.

    partition_log.py   PartitionLog: append, read, look up by time and by epoch, delete from the start
    validation.py      what a producer's record set must be, what is changed in it, and why it is refused
    producer_states.py sequences and duplicates of idempotent producers
    leader_epochs.py   which leader wrote from which offset on
    batch_table.py     where the batches are, by offset and by time
    storage.py         what a log needs of the place that keeps its bytes; the one in memory
    disk.py            on disk: segments, indexes, snapshots; disk_loading.py: what is there at the start
    log_compaction.py  what compaction leaves of a log
    data_folder.py     a broker's data folder: its lock, identity and checkpoints

Rules: no clock and no socket; time is an argument. Records come from untrusted clients: what is wrong with
them raises `RefusedRecords`, with Kafka's error code, before anything has changed.
"""
