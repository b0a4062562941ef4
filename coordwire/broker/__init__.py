"""A Kafka broker in the process of a test: real clients join it, over loopback sockets.

    async with Broker(topics={"orders": 6}) as broker:
        ... broker.bootstrap ...

    broker.py               Broker: listeners, alarms, start and stop; thread.py: for clients that block
    client_link.py          one client's connection; link_state.py: its states; turns.py: who works next;
                            connection_memory.py: what all connections hold; tls_refusals.py: failed
                            handshakes; fitting.py: answers in older versions;
                            released_versions.py: those that older releases have;
                            authentication.py: who the client is; oauth_tokens.py,
                            scram_credentials.py: how it shows that; authorizer.py: what it may do
    handlers/               what each API is answered with
    injection/              faults: errors, delays, lost answers, by rules
    cluster_moves.py        leaders, coordinators and nodes that move, log directories that fail
    harness/                what tests get of a broker; its fixtures are in the package pytest_coordwire
    cluster_state.py        the state without sockets: nodes, topics, settings, producer ids
    replication.py          replicas in sync, leaders, log directories that fail
    group_coordinators.py   the group coordinators over `__consumer_offsets`
    transaction_coordinators.py
                            the transaction coordinators over `__transaction_state`
    features.py, broker_config.py, cluster_nodes.py, cluster_topics.py, settings.py, fetch_sessions.py
                            what that state is made of; documentation.py: what each setting means
    log/                    a partition's log; log_places.py: what a cluster needs of the place of all;
                            log_cleaning.py: retention and compaction of topics
    disk_logs.py            a cluster's logs in a data folder; metadata_records.py: what it knows of topics

Rules: only `broker`, `client_link` and `thread` know asyncio; what they call gets the time and all that is
random as inputs, so that it runs without sockets in tests and simulations.
"""

from coordwire.broker.broker import Broker
from coordwire.broker.broker_config import BrokerConfig
from coordwire.broker.cluster_state import ClusterState
from coordwire.broker.thread import BrokerThread

__all__ = ["Broker", "BrokerConfig", "BrokerThread", "ClusterState"]
