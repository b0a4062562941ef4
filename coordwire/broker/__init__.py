"""A Kafka broker in the process of a test: real clients join it, over loopback sockets.

    async with Broker(topics={"orders": 6}) as broker:
        ... broker.bootstrap ...

    broker.py     Broker: listeners, alarms, start and stop; thread.py: for clients that block
    server/       Server: an author's own handlers instead of all that follows
    connections/  clients' connections: bytes to requests, answers to bytes, turns, memory
    security/     authentication and authorization of clients
    handlers/     the answer to each API; handlers/authorization/: what a client needs for each
    cluster/      the state without sockets: nodes, topics, replicas, coordinators
    log/          a partition's log, in memory or on disk
    settings/     BrokerConfig; settings of topics, groups and brokers
    injection/    faults by rules: errors, delays, lost answers; leaders and nodes that move
    harness/      the broker as tests use it; the fixtures are in the package pytest_coordwire

Rules: only `broker`, `thread`, `server`, `connections.client_link` and `injection` know asyncio; what they
call gets the time and all that is random as inputs, so that it runs without sockets in tests and simulations.
"""

from typing import TYPE_CHECKING

from coordwire._lazy import exports

if TYPE_CHECKING:
    from coordwire.broker.broker import Broker
    from coordwire.broker.cluster.cluster_state import ClusterState
    from coordwire.broker.server.link import ServerCall
    from coordwire.broker.server.server import Handlers, Server
    from coordwire.broker.settings.broker_config import BrokerConfig
    from coordwire.broker.thread import BrokerThread

_LAZY = {
    "Broker": "broker",
    "BrokerConfig": "settings.broker_config",
    "BrokerThread": "thread",
    "ServerCall": "server.link",
    "ClusterState": "cluster.cluster_state",
    "Handlers": "server.server",
    "Server": "server.server",
}

__all__ = ["Broker", "BrokerConfig", "BrokerThread", "ClusterState", "Handlers", "Server", "ServerCall"]

__getattr__, __dir__ = exports(__name__, __all__, _LAZY)
