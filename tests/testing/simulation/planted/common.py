"""What the services share, and the table of their scenarios.

Strategy: the mistakes are of kinds that people make, and were written with the pages for users alone in view.
A scenario is given whether its service has the mistake, so that both stay as near as can be.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from coordwire.testing.simulation import DrawnFaults, SimulatedKafka, SimulatedWorld, Simulation

Scenario = Callable[[SimulatedKafka, SimulatedWorld, bool], Coroutine[Any, Any, None]]

SCENARIOS: dict[str, tuple[Scenario, dict[str, int]]] = {}
"""By the mistake's name, with the topics."""

_Client = TypeVar("_Client", AIOKafkaConsumer, AIOKafkaProducer)


def scenario(topics: dict[str, int]) -> Callable[[Scenario], Scenario]:
    """Put a scenario into the table."""

    def register(function: Scenario) -> Scenario:
        SCENARIOS[function.__name__] = function, topics
        return function

    return register


def simulation_of(name: str, *, bug: bool) -> Simulation:
    """A simulation with all that the decorator has by default."""
    function, topics = SCENARIOS[name]

    async def test(kafka: SimulatedKafka, world: SimulatedWorld) -> None:
        await function(kafka, world, bug)

    return Simulation(test=test, faults=DrawnFaults(), settings={"topics": topics})


@asynccontextmanager
async def running(client: _Client) -> AsyncIterator[_Client]:
    try:
        await client.start()
        yield client
    finally:
        await client.stop()


def consumer(bootstrap: str, *topics: str, group: str | None = None, **more: Any) -> Any:
    return AIOKafkaConsumer(
        *topics,
        bootstrap_servers=bootstrap,
        group_id=group,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        metadata_max_age_ms=10_000,
        **more,
    )


def producer(bootstrap: str, **more: Any) -> Any:
    return AIOKafkaProducer(bootstrap_servers=bootstrap, metadata_max_age_ms=10_000, **more)


def partition_of(record: Any) -> TopicPartition:
    return TopicPartition(record.topic, record.partition)


def after(record: Any) -> dict[TopicPartition, int]:
    return {partition_of(record): record.offset + 1}


def values(kafka: SimulatedKafka, topic: str, *, committed: bool = False) -> list[str]:
    """What is in a topic."""
    return [(record.value or b"").decode() for record in kafka.records(topic, committed=committed)]


async def load(
    kafka: SimulatedKafka,
    world: SimulatedWorld,
    topic: str,
    texts: Iterable[str],
    partitions: int = 1,
    every: float = 1.0,
) -> None:
    """Records at a pace that the seed draws."""
    async for number, text in world.load(topic, enumerate(texts), every=every):
        kafka.produce(topic, text, partition=number % partitions)
