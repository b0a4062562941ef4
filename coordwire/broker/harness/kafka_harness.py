"""`Kafka`: what a test gets by the fixtures `kafka` and `kafka_session`.

    def test_orders(kafka):
        kafka.create_topic("orders", 6)
        ...  # a client of kafka.bootstrap
        assert [record.value for record in kafka.records("orders")] == [b"one"]

Strategy: the broker runs on a thread of its own, so that clients that block and coroutines of any loop reach
it alike. What the broker does is done when the call returns; what clients must do first (groups, faults) is
a `Settled`, which blocks in plain code and is awaited in coroutines. Rules: `check` reports what a test must
not leave unseen. The pytest plugin shows a mistake where the test made it, without the calls in here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from coordwire.broker.broker import Broker
from coordwire.broker.cluster.cluster_state import ClusterState
from coordwire.broker.harness.cluster_view import (
    StoredRecord,
    Value,
    committed_offsets,
    make_topic,
    produce_records,
    read_records,
)
from coordwire.broker.harness.group_watch import GroupUnderTest
from coordwire.broker.harness.traffic import Exchange, Traffic
from coordwire.broker.injection.cluster_moves import ClusterMoves
from coordwire.broker.injection.fault_registry import Faults
from coordwire.broker.settings.broker_config import BrokerConfig
from coordwire.broker.thread import BrokerThread
from coordwire.codec.names import suggestion

P = ParamSpec("P")
T = TypeVar("T")


class ObservedTraffic:
    """What a test sees of connections, and what it must not leave unseen.

    traffic: the bytes; exchange: the messages in them; faults: what is to go wrong.

        >>> from coordwire.broker.harness import Kafka
        >>> from coordwire.client import connect_sync
        >>> from coordwire.messages import ListGroupsRequest
        >>> with Kafka() as kafka, connect_sync(kafka.bootstrap) as client:
        ...     fault = kafka.faults.add("ListGroups nth=1 error=NOT_COORDINATOR")
        ...     _ = client.request(ListGroupsRequest())
        ...     kafka.check()
    """

    def __init__(self, faults: Faults, traffic: Traffic) -> None:
        self.faults = faults
        self.traffic = traffic
        self.exchange = Exchange(traffic)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.traffic!r}>"

    def check(self) -> None:
        """Raise `AssertionError` if a fault never fired, or a coroutine has not awaited what it waits for."""
        self.faults.check()
        unawaited = self.faults.waits.unawaited()
        if unawaited:
            raise AssertionError("never awaited: " + ", ".join(unawaited))

    def timeline(self) -> list[Any]:
        """The events of groups, as `coordwire.timeline.timeline` gives it."""
        from coordwire.timeline import timeline

        return list(timeline(self.traffic.entries()))

    def write_pcap(self, path: str | Path) -> None:
        """Keep what went over the connections, for Wireshark and `coordwire timeline`."""
        Path(path).write_bytes(self.traffic.pcap())


class Kafka(ObservedTraffic):
    """A broker, or a cluster of several, for tests; a context manager. broker: it, on its thread.

    config: the broker's settings, instead of those that fit tests. kafka_defaults: with Kafka's own delays
    and time-outs. Other settings are those of `Broker` (nodes, topics, data, tls) and fields of
    `BrokerConfig`, by their names; they change what `config` says. Raises `TypeError` for others,
    `ValueError` for wrong values.

        >>> from coordwire.broker.harness import Kafka
        >>> with Kafka(topics={"orders": 1}) as kafka:
        ...     _ = kafka.produce("orders", b"tea")
        ...     [record.value for record in kafka.records("orders")]
        [b'tea']
    """

    def __init__(
        self,
        *,
        topics: Mapping[str, int] | Iterable[str] = (),
        nodes: int = 1,
        config: BrokerConfig | None = None,
        kafka_defaults: bool = False,
        data: str | Path | None = None,
        tls: Any = None,
        **settings: Any,
    ) -> None:
        if config is not None and kafka_defaults:
            raise TypeError("expected config or kafka_defaults, got both")
        known = [field.name for field in fields(BrokerConfig)]
        for name in settings:
            if name not in known:
                hint = suggestion(name, [*known, "topics", "nodes", "config", "data", "tls"])
                raise TypeError(f"expected a setting of Broker or BrokerConfig, got {name!r}{hint}")
        base = BrokerConfig.kafka() if kafka_defaults else config or BrokerConfig()
        config = replace(base, **settings)
        traffic = Traffic()
        broker = Broker(topics=topics, nodes=nodes, config=config, data=data, tls=tls, traffic=traffic)
        self.broker = BrokerThread(broker)
        super().__init__(broker.faults, traffic)

    def __enter__(self) -> Self:
        self.broker.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.broker.stop()

    # --- for clients ---

    def __repr__(self) -> str:
        return f"<Kafka {self.broker!r}>"

    @property
    def bootstrap(self) -> str:
        """The bootstrap servers of clients."""
        return self.broker.bootstrap

    @property
    def moves(self) -> ClusterMoves:
        """Leaders, coordinators and nodes that move, logs that lose records."""
        return self.broker.moves

    # --- topics and records ---

    def create_topic(
        self, name: str, partitions: int = 1, *, replication_factor: int = -1, **settings: object
    ) -> None:
        """Make a topic. settings: Kafka's, with underscores for dots: `cleanup_policy="compact"`.

        replication_factor: -1 for the broker's default. Raises `ValueError` for what a Kafka broker refuses.
        """
        self._call(make_topic, name, partitions, replication_factor, settings)

    def produce(
        self,
        topic: str,
        *values: Value,
        key: Value = None,
        partition: int = 0,
        headers: Mapping[str, Value] | None = None,
        timestamp: int | None = None,
    ) -> list[StoredRecord]:
        """Append records to a partition of a topic, which is made if clients would make it; what was written.

        Raises `LookupError` for a topic or a partition that is not there, `ValueError` for records that a
        Kafka broker refuses, `TypeError` for what is neither bytes nor text nor None.
        """
        return self._call(
            produce_records, topic, values, key=key, partition=partition, headers=headers, timestamp=timestamp
        )

    def records(self, topic: str, *, committed: bool = False) -> list[StoredRecord]:
        """All records of a topic; none of one that is not there.

        committed: without those of transactions that are open or aborted.
        """
        return self._call(read_records, topic, committed=committed)

    def _call(
        self, action: Callable[Concatenate[ClusterState, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """What an action on the cluster gives, in the broker's own thread."""

        def run(broker: Broker) -> T:
            return action(broker.cluster, *args, **kwargs)

        return self.broker.call(run)

    @property
    def missing_libraries(self) -> set[str]:
        """The reasons for which stored records could not be read: codecs that are not installed."""
        return self.broker.call(lambda broker: set(broker.cluster.missing_libraries))

    # --- groups ---

    def committed(self, group_id: str) -> dict[tuple[str, int], int]:
        """The offsets that a group has committed, by topic and partition."""
        return self._call(committed_offsets, group_id)

    def group(self, group_id: str) -> GroupUnderTest:
        """A group, whether it is there yet or not."""
        return GroupUnderTest(self.broker, group_id)

    # --- between tests and at their end ---

    def reset(self) -> None:
        """Begin again as it was started: without records, groups, faults, and what a test made.

        The addresses stay, connections end. Raises `ValueError` for logs on disk.
        """
        self.broker.wait(self.broker.broker.reset)
        self.traffic.clear()
