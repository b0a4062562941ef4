"""Three brokers of Apache Kafka on loopback, controllers too: partitions that move, a broker that dies.

Rules: a broker that is silent for three seconds counts as dead; what was committed with all acknowledgements
survives one.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.interop.broker import Broker, Java, free_port

NODES = (1, 2, 3)

_SETTINGS = {
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
    "controller.quorum.election.timeout.ms": "500",
    "default.replication.factor": "3",
    "offsets.topic.replication.factor": "3",
    "offsets.topic.num.partitions": "6",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.num.partitions": "3",
    "auto.leader.rebalance.enable": "false",
}


@contextmanager
def kafka_cluster(java: Java, folder: Path) -> Iterator[dict[int, Broker]]:
    """The brokers, by their ids, once each of them answers. Raises `BrokerError`."""
    cluster = java.run("kafka.tools.StorageTool", "random-uuid").strip()
    ports = {node: (free_port(), free_port()) for node in NODES}
    voters = ",".join(f"{node}@127.0.0.1:{controller}" for node, (_, controller) in ports.items())
    brokers: dict[int, Broker] = {}
    for node, (port, controller) in ports.items():
        listener = f"PLAINTEXT://127.0.0.1:{port}"
        place = folder / str(node)
        place.mkdir()
        settings = _SETTINGS | {
            "node.id": str(node),
            "controller.quorum.voters": voters,
            "listeners": f"{listener},CONTROLLER://127.0.0.1:{controller}",
            "advertised.listeners": listener,
        }
        brokers[node] = Broker(java, place / "data", settings, voters=True, cluster=cluster)
        brokers[node].port = port
    with ExitStack() as stack:
        with ThreadPoolExecutor(len(brokers)) as pool:  # none answers before two of them are up
            for started in [pool.submit(stack.enter_context, broker) for broker in brokers.values()]:
                started.result()
        try:
            yield brokers
        finally:  # the last ones could not leave the quorum
            for broker in brokers.values():
                broker.kill()
