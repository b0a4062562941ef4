"""A Kafka broker in the process of a test: real clients join it, over loopback sockets.

    async with Broker(topics={"orders": 6}) as broker:
        ... broker.bootstrap ...

    broker.py     Broker: listeners, alarms, start and stop; thread.py: for clients that block
    connections/  clients' connections: bytes to requests, answers to bytes, turns, memory
    security/     authentication and authorization of clients
    handlers/     the answer to each API; handlers/authorization/: what a client needs for each
    cluster/      the state without sockets: nodes, topics, replicas, coordinators
    log/          a partition's log, in memory or on disk
    settings/     BrokerConfig; settings of topics, groups and brokers
    injection/    faults by rules: errors, delays, lost answers; leaders and nodes that move
    harness/      the broker as tests use it; the fixtures are in the package pytest_coordwire

Rules: only `broker`, `thread`, `connections.client_link` and `injection` know asyncio; what they call gets
the time and all that is random as inputs, so that it runs without sockets in tests and simulations.
"""

from coordwire.broker.broker import Broker
from coordwire.broker.cluster.cluster_state import ClusterState
from coordwire.broker.settings.broker_config import BrokerConfig
from coordwire.broker.thread import BrokerThread

__all__ = ["Broker", "BrokerConfig", "BrokerThread", "ClusterState"]
