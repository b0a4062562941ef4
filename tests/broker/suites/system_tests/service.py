"""kafkatest's `KafkaService` with our brokers: `kafkatest.services.kafka.KafkaService` becomes this class.

Strategy: a node of the service is a node of one cluster of ours, in ducktape's own process; stopping one is a
move of the cluster. Apache's command-line tools are run as before. Rules: controllers are none of ours, and
no process stands for them; what a test asks of a broker's process or files that ours has not is refused, so
that the test fails by name.
"""

from __future__ import annotations

import signal
from typing import Any

from kafkatest.services.kafka import kafka as apache

from coordwire.broker import Broker, BrokerConfig
from coordwire.broker.thread import BrokerThread
from coordwire.coordinator import ConsumerGroupConfig, CoordinatorConfig, MigrationPolicy

_DELAY_MS = 100
"""How long an empty group waits for more members: as in kafkatest's template of settings."""

_SESSION_MS = 10_000
"""Of groups of KIP-848: the tests' own, which later clients no longer give."""


class KafkaService(apache.KafkaService):  # type: ignore[misc]
    """A cluster whose brokers are ours."""

    broker: BrokerThread | None = None

    def start(self, add_principals: str = "", nodes_to_skip: Any = (), **_: object) -> None:
        if not self.quorum_info.has_brokers:
            return
        if self.security_protocol != "PLAINTEXT" or nodes_to_skip or self.server_prop_overrides:
            raise NotImplementedError("only plain listeners, all nodes, without settings")
        config = BrokerConfig(
            offsets_partitions=self.num_nodes,
            default_replication_factor=self.num_nodes,
            coordinator=CoordinatorConfig(
                initial_rebalance_delay_ms=_DELAY_MS,
                consumer=ConsumerGroupConfig(session_timeout_ms=_SESSION_MS),
                migration_policy=MigrationPolicy(self.consumer_group_migration_policy or "bidirectional"),
            ),
        )
        self.open_port(self.security_protocol)
        self.security_config  # noqa: B018 - made here, before workers would make it at once
        self.broker = Broker.in_thread(nodes=self.num_nodes, config=config)
        self.broker.start()
        self._up = {self.idx(node) for node in self.nodes}
        for node in self.nodes:
            node.account.mkdirs(self.PERSISTENT_ROOT)
        for topic, settings in (self.topics or {}).items():
            self.create_topic({**(settings or {}), "topic": topic})

    def bootstrap_servers(
        self, protocol: str = "PLAINTEXT", validate: bool = True, offline_nodes: Any = ()
    ) -> str:
        assert self.broker is not None
        addresses = zip(self.nodes, self.broker.addresses, strict=True)
        return ",".join(f"{host}:{port}" for node, (host, port) in addresses if node not in offline_nodes)

    def pids(self, node: Any) -> list[int]:
        """A number that stands for the broker, as long as it is up."""
        return [1] if self.broker is not None and self.idx(node) in self._up else []

    def start_node(self, node: Any, timeout_sec: int = 60, **_: object) -> None:
        if self.broker is not None and self.idx(node) not in self._up:
            self.broker.moves.start_node(self.idx(node))
            self._up.add(self.idx(node))

    def stop_node(self, node: Any, clean_shutdown: bool = True, timeout_sec: int = 60) -> None:
        if self.pids(node):
            self._up.remove(self.idx(node))
            assert self.broker is not None
            self.broker.moves.stop_node(self.idx(node))

    def signal_node(self, node: Any, sig: int = signal.SIGTERM) -> None:
        if sig not in (signal.SIGTERM, signal.SIGKILL):
            raise NotImplementedError(f"signal {sig} to a broker")
        self.stop_node(node)

    def stop(self, **_: object) -> None:
        if self.broker is not None:
            self.broker.stop()
            self.broker = None

    def clean_node(self, node: Any) -> None:
        node.account.ssh(f"rm -rf {self.PERSISTENT_ROOT}")

    def check_protocol_errors(self, node: Any) -> bool:
        raise NotImplementedError("the broker's own logs")


apache.KafkaService = KafkaService  # which makes a service for the controllers, by this name
