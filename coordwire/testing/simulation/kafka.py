"""`SimulatedKafka`: the fixture `kafka`, with its broker in the loop of the simulated world."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from coordwire.broker import Broker
from coordwire.broker.cluster.facts import LogDirState
from coordwire.broker.harness import Kafka
from coordwire.broker.harness.cluster_view import StoredRecord, Value
from coordwire.broker.thread import BrokerThread

__all__ = ["SimulatedKafka"]

T = TypeVar("T")


class _InLoop(BrokerThread):
    """A broker without a thread."""

    def start(self) -> None:
        raise RuntimeError("the simulated world has started the broker already")

    def stop(self) -> None:
        raise RuntimeError("the simulated world stops the broker")

    def call(self, action: Callable[[Broker], T]) -> T:
        """What `action` gives, at once."""
        return action(self.broker)

    def wait(self, make: Callable[[], Awaitable[T]]) -> T:
        raise RuntimeError("expected a broker on a thread of its own, got one in a simulated world")


class SimulatedKafka(Kafka):
    """As `coordwire.broker.harness.Kafka`, of which `reset` is not there. What is waited for is awaited:
    `await kafka.group("g").stable(members=2)`.

    >>> from coordwire.testing.simulation import Simulation
    >>> async def test(kafka, world):
    ...     kafka.produce("orders", "tea", "cake")
    ...     print([record.value for record in kafka.records("orders")])
    >>> Simulation(test=test, settings={"topics": {"orders": 1}}).run(7).failure
    [b'tea', b'cake']
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.broker = _InLoop(self.broker.broker)

    def produce(self, topic: str, *values: Value, **details: Any) -> list[StoredRecord]:
        """As there; a disk that a fault has filled, or let fail, takes what the test itself writes."""
        nodes = self.broker.broker.cluster.nodes.values()
        before = [(node, node.log_dir) for node in nodes]
        for node in nodes:
            node.log_dir = LogDirState.ONLINE
        try:
            return super().produce(topic, *values, **details)
        finally:
            for node, state in before:
                node.log_dir = state
