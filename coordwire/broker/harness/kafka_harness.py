"""`Kafka`: what a test gets by the fixtures `kafka` and `kafka_session`.

    def test_orders(kafka):
        kafka.create_topic("orders", 6)
        ...  # a client of kafka.bootstrap
        assert [record.value for record in kafka.records("orders")] == [b"one"]

Strategy: the broker runs on a thread of its own, so that clients that block and coroutines of any loop reach
it alike. What is read or written at once is a plain call; what is waited for is a `Settled`, which blocks in
plain code and is awaited in coroutines. Rules: `check` reports what a test must not leave unseen.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from coordwire.broker.broker import Broker
from coordwire.broker.broker_config import BrokerConfig
from coordwire.broker.cluster_moves import ClusterMoves
from coordwire.broker.harness.cluster_view import (
    StoredRecord,
    Value,
    committed_offsets,
    produce_records,
    read_records,
)
from coordwire.broker.harness.exchange_log import Exchange
from coordwire.broker.harness.group_watch import GroupUnderTest
from coordwire.broker.harness.traffic import Traffic
from coordwire.broker.injection.fault_registry import Faults
from coordwire.broker.thread import BrokerThread

__all__ = ["Kafka"]


class Kafka:
    """A broker, or a cluster of several, for tests; a context manager. broker: it, on its thread.

    kafka_defaults: with Kafka's own delays and time-outs. Other settings are those of `Broker` (nodes,
    topics, data, tls) and of `BrokerConfig`, by their names. Raises `TypeError` for others.
    """

    def __init__(
        self,
        *,
        topics: Mapping[str, int] | Iterable[str] = (),
        nodes: int = 1,
        kafka_defaults: bool = False,
        data: str | Path | None = None,
        tls: Any = None,
        **settings: Any,
    ) -> None:
        made = BrokerConfig.kafka if kafka_defaults else BrokerConfig
        config = made(**settings)
        self.traffic = Traffic()
        self.exchange = Exchange(self.traffic)
        broker = Broker(topics=topics, nodes=nodes, config=config, data=data, tls=tls, traffic=self.traffic)
        self.broker = BrokerThread(broker)

    def __enter__(self) -> Self:
        self.broker.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.broker.stop()

    # --- for clients ---

    @property
    def bootstrap(self) -> str:
        """What clients take as their bootstrap servers."""
        return self.broker.bootstrap

    @property
    def faults(self) -> Faults:
        """What is to go wrong."""
        return self.broker.faults

    @property
    def moves(self) -> ClusterMoves:
        """Leaders, coordinators and nodes that move, logs that lose records."""
        return self.broker.moves

    # --- topics and records ---

    def create_topic(self, name: str, partitions: int = 1, **settings: object) -> None:
        """Make a topic. settings: Kafka's, with underscores for dots: `cleanup_policy="compact"`."""
        own = {label.replace("_", "."): str(value) for label, value in settings.items()}

        def make(broker: Broker) -> None:
            cluster = broker.cluster
            if name in cluster.topics:
                raise ValueError(f"expected a new topic, got {name!r}, which is there")
            factor = min(cluster.config.default_replication_factor, len(cluster.nodes))
            cluster.create_topic(name, partitions, replication_factor=factor, settings=own)

        self.broker.call(make)

    def produce(
        self,
        topic: str,
        *values: Value,
        key: Value = None,
        partition: int = 0,
        headers: Mapping[str, Value] | None = None,
        timestamp: int | None = None,
    ) -> list[StoredRecord]:
        """Append records to a partition of a topic; what was written."""
        return self.broker.call(
            lambda broker: produce_records(
                broker.cluster,
                topic,
                values,
                key=key,
                partition=partition,
                headers=headers,
                timestamp=timestamp,
            )
        )

    def records(self, topic: str, *, committed: bool = False) -> list[StoredRecord]:
        """All records of a topic. committed: without those of transactions that are open or aborted."""
        return self.broker.call(lambda broker: read_records(broker.cluster, topic, committed=committed))

    @property
    def missing_libraries(self) -> set[str]:
        """Why records were stored that the broker could not read: codecs that are not installed."""
        return self.broker.call(lambda broker: set(broker.cluster.missing_libraries))

    # --- groups ---

    def committed(self, group_id: str) -> dict[tuple[str, int], int]:
        """What a group has committed, by topic and partition."""
        return self.broker.call(lambda broker: committed_offsets(broker.cluster, group_id))

    def group(self, group_id: str) -> GroupUnderTest:
        """A group, whether it is there yet or not."""
        return GroupUnderTest(self.broker, group_id)

    # --- the end of a test ---

    def check(self) -> None:
        """Raise `AssertionError` if a fault never fired, or a coroutine has not awaited what it waits for."""
        self.faults.check()
        unawaited = self.faults.waits.unawaited()
        if unawaited:
            raise AssertionError("never awaited: " + ", ".join(unawaited))

    def timeline(self) -> list[Any]:
        """What happened to groups, as `coordwire.groups.timeline` gives it."""
        from coordwire.groups import timeline

        return list(timeline(self.traffic.entries()))

    def write_pcap(self, path: str | Path) -> None:
        """Keep what went over the connections, for Wireshark and `coordwire timeline`."""
        Path(path).write_bytes(self.traffic.pcap())
