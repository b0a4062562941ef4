"""A cluster's state without sockets: nodes, topics with their logs, coordinators.

    facts.py                    ClusterFacts: nodes, levels of features, topics, settings, users
    cluster_state.py            ClusterState: facts, the coordinators over them, changes of topics
    topics.py                   topics and partitions
    replication.py              replicas in sync, leaders, log directories that fail
    group_coordinators.py       group coordinators over `__consumer_offsets`
    transaction_coordinators.py transaction coordinators over `__transaction_state`
    share_state_coordinators.py share coordinators over `__share_group_state`
    share_partitions.py         records in flight in share groups; share_sessions.py: their members' sessions
    dead_letters.py             dead letter queues of share groups
    promise.py                  Promise: an answer that comes later; HandlerRun: a handler that awaits it
    fetch_sessions.py           fetch sessions of clients
    log_places.py               what a cluster needs of the place of its logs, and the place that is memory
    disk_logs.py                the place that is a data folder, flushes
    metadata_records.py         topics as records of `__cluster_metadata`; fact_records.py: the other facts
    log_cleaning.py             retention and compaction of topics

Rules: no I/O but that of the logs. The time and all that is random are inputs, so that a cluster runs without
sockets in tests and simulations.
"""
