"""What simulated worlds have shown of aiokafka, as docs/how-to/simulation.md reports it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from importlib.metadata import version
from typing import Any

import pytest

pytest.importorskip("aiokafka", reason="aiokafka isn't installed")

from aiokafka import AIOKafkaConsumer, TopicPartition

from coordwire.broker import BrokerConfig
from coordwire.coordinator import CoordinatorConfig
from coordwire.testing.simulation import (
    RunOutcome,
    SimulatedKafka,
    SimulatedWorld,
    Simulation,
    parse_plan,
)

pytestmark = pytest.mark.slow
VERSION = tuple(map(int, version("aiokafka").split(".")[:2]))
seen_with_0_14 = pytest.mark.skipif(VERSION != (0, 14), reason="it was seen with aiokafka 0.14")
GROUP, TOPIC = "books", "orders"


async def book(bootstrap: str, world: SimulatedWorld, settings: dict[str, Any]) -> None:
    consumer = AIOKafkaConsumer(
        TOPIC,
        bootstrap_servers=bootstrap,
        group_id=GROUP,
        enable_auto_commit=False,
        **({"auto_offset_reset": "earliest"} | settings),
    )
    try:
        await consumer.start()
        async for record in consumer:
            world.processed(record)
            await consumer.commit({TopicPartition(record.topic, record.partition): record.offset + 1})
    finally:
        await consumer.stop()


def seconds_until_caught_up(**settings: Any) -> float:
    """Seconds from the end of the fault on."""
    seconds: list[float] = []

    async def test(kafka: SimulatedKafka, world: SimulatedWorld) -> None:
        for number in range(6):
            kafka.produce(TOPIC, f"{number}", partition=number % 3)
        await asyncio.sleep(2)
        world.start("book", book, kafka.bootstrap, world, settings)
        await world.calm()
        await world.caught_up(GROUP, TOPIC, within=600)
        seconds.append(world.now - 35)

    plan = parse_plan("5s fail broker-2 for 30s")
    outcome = Simulation(test=test, faults=plan, settings={"topics": {TOPIC: 3}}).run(0)
    assert outcome.failure is None, outcome.reason
    return seconds[0]


@seen_with_0_14
def test_a_leader_is_looked_for_when_metadata_is_old() -> None:
    assert 260 < seconds_until_caught_up() < 300
    assert seconds_until_caught_up(metadata_max_age_ms=10_000) < 1


def restart(error: str, **settings: Any) -> RunOutcome:
    """A group has committed 3 records; its process dies, 3 more come, and it starts again."""

    async def test(kafka: SimulatedKafka, world: SimulatedWorld) -> None:
        world.start("book", book, kafka.bootstrap, world, settings)
        for _ in range(2):
            await asyncio.sleep(15)
            kafka.produce(TOPIC, "tea", "cake", "salt")
        await world.calm()
        await world.caught_up(GROUP, TOPIC)

    inject = f"20s inject broker-* OffsetFetch error={error} times=1 for 30s; " if error else ""
    plan = parse_plan(f"{inject}20s crash book for 15s")
    return Simulation(test=test, faults=plan, settings={"topics": {TOPIC: 1}}).run(0)


@seen_with_0_14
def test_an_error_of_offset_fetch_means_no_offset() -> None:
    for error in ("NOT_COORDINATOR", "COORDINATOR_LOAD_IN_PROGRESS"):
        fallen = restart(error)
        assert fallen.reason == "FallingOffset: books has committed 1 of orders-0, after 3"
        assert fallen.client_fault == "aiokafka takes an OffsetFetch with an error for one without offsets"
        skipped = restart(error, auto_offset_reset="latest")
        assert skipped.reason.startswith("caught_up: books has not committed all records")
    for reset in ("earliest", "latest"):
        assert restart("", auto_offset_reset=reset).failure is None


def test_a_fetch_that_fails_as_its_partitions_go() -> None:
    """Before 0.11 the fetcher ends with it, and nothing is read any more: aiokafka #847 and #983."""

    async def test(kafka: SimulatedKafka, world: SimulatedWorld) -> None:
        world.start("book", book, kafka.bootstrap, world, {})
        for number in range(20):
            kafka.produce(TOPIC, f"{number}")
            await asyncio.sleep(1)
        await world.calm()
        kafka.produce(TOPIC, "after it")
        await world.caught_up(GROUP, TOPIC)

    quick = replace(BrokerConfig.kafka(), coordinator=CoordinatorConfig(initial_rebalance_delay_ms=0))
    settings = {"topics": {TOPIC: 1}, "config": quick}
    simulation = Simulation(test=test, faults=parse_plan("20s freeze book for 45s"), settings=settings)
    outcome = simulation.run(0)
    if VERSION < (0, 11):
        assert outcome.reason.startswith("caught_up: books has not committed all records")
    else:
        assert outcome.failure is None, outcome.reason


async def subscribe_twice(bootstrap: str, world: SimulatedWorld, delay: float) -> None:
    """The second topic is asked for while the group still joins, or has just joined, for the first."""
    consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, group_id=GROUP, auto_offset_reset="earliest")
    try:
        await consumer.start()
        consumer.subscribe(["first"])
        await asyncio.sleep(delay)
        consumer.subscribe(["second"])
        async for record in consumer:
            if record.topic == "second":
                world.processed(record)
    finally:
        await consumer.stop()


@pytest.mark.parametrize("delay", [0.5, 3.0, 3.05, 3.2])
def test_a_subscription_that_changes_as_the_group_joins(delay: float) -> None:
    """aiokafka 0.2.0 reads nothing any more then: aiokafka #88."""

    async def test(kafka: SimulatedKafka, world: SimulatedWorld) -> None:
        kafka.produce("first", "tea")
        kafka.produce("second", "cake")
        world.start("book", subscribe_twice, kafka.bootstrap, world, delay)
        await world.until(lambda: any(place.topic == "second" for place in world.marks))

    outcome = Simulation(test=test, settings={"topics": {"first": 1, "second": 1}}).run(0)
    assert outcome.failure is None, outcome.reason
