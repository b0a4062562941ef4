"""A service on FastStream, as its users write it, in simulated worlds: it runs, and is deterministic."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

pytest.importorskip("faststream.kafka", reason="faststream[kafka] isn't installed")

from faststream import AckPolicy, FastStream
from faststream.kafka import KafkaBroker, KafkaMessage

from coordwire.testing.simulation import DrawnFaults, SimulatedKafka, SimulatedWorld, Simulation

GROUP, TOPIC, BOOKED = "books", "orders", "booked"
RECORDS = 30


async def service(
    bootstrap: str,
    world: SimulatedWorld,
    group_id: str = GROUP,
    client_id: str = "book",
    **settings: Any,
) -> None:
    broker = KafkaBroker(bootstrap.split(","), logger=None, client_id=client_id)

    @broker.subscriber(  # type: ignore[untyped-decorator]
        TOPIC, group_id=group_id, auto_offset_reset="earliest", ack_policy=AckPolicy.ACK, **settings
    )
    @broker.publisher(BOOKED)  # type: ignore[untyped-decorator]
    async def book(order: str, message: KafkaMessage) -> str:
        await asyncio.sleep(0.2)
        record: Any = message.raw_message
        world.processed(record)
        return f"booked {order}"

    await FastStream(broker, logger=None).run()


async def every_order_is_booked(kafka: SimulatedKafka, world: SimulatedWorld) -> None:
    for number in (1, 2):
        world.start(f"book-{number}", service, kafka.bootstrap, world)
    for number in range(RECORDS):
        kafka.produce(TOPIC, f"order {number}", partition=number % 2)
        await asyncio.sleep(1)
    await world.calm()
    await world.caught_up(GROUP, TOPIC)
    booked = {record.value for record in kafka.records(BOOKED)}
    assert booked == {f"booked order {number}".encode() for number in range(RECORDS)}


@pytest.mark.parametrize("faults", [(), DrawnFaults(("processes",))])
@pytest.mark.slow
def test_a_service_on_faststream(faults: Any) -> None:
    simulation = Simulation(
        test=every_order_is_booked, faults=faults, settings={"topics": {TOPIC: 2, BOOKED: 1}}
    )
    for seed in range(3):
        outcome = simulation.check(seed)
        assert outcome.failure is None, outcome.reason
