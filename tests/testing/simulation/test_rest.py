"""How long processes go on after a test, before they get SIGTERM."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from coordwire.testing.simulation import SimulatedKafka, SimulatedWorld, Simulation, parse_plan

aiokafka = pytest.importorskip("aiokafka", reason="aiokafka isn't installed")

Work = Callable[[SimulatedKafka, SimulatedWorld], Coroutine[Any, Any, None]]


def seconds_after(work: Work, *, plan: str = "", **arguments: Any) -> float:
    """Seconds from the end of a test, at 10 s, to the SIGTERM of its process."""
    ended: list[float] = []

    async def test(kafka: SimulatedKafka, world: SimulatedWorld) -> None:
        async def till() -> None:
            try:
                await work(kafka, world)
            finally:
                ended.append(world.now)

        world.start("till", till)
        await asyncio.sleep(10 - world.now)

    settings = {"topics": {"orders": 1}}
    faults = parse_plan(plan)
    outcome = Simulation(test=test, faults=faults, settings=settings, **arguments).run(0)
    assert outcome.failure is None, outcome.reason
    (seconds,) = ended
    return seconds - 10


async def idle(kafka: SimulatedKafka, world: SimulatedWorld) -> None:
    await asyncio.Event().wait()


def test_nothing_is_under_way() -> None:
    assert 30 <= seconds_after(idle) < 32
    assert 50 <= seconds_after(idle, cooldown=50) < 51


@pytest.mark.parametrize(
    ("level", "least"), [(logging.INFO, 30), (logging.WARNING, 70)], ids=["a note", "a warning"]
)
def test_a_warning_is_an_event(level: int, least: float) -> None:
    async def warn(kafka: SimulatedKafka, world: SimulatedWorld) -> None:
        for _ in range(5):
            await asyncio.sleep(10)
            logging.getLogger("till").log(level, "again")
        await idle(kafka, world)

    assert least <= seconds_after(warn) < least + 2


def test_a_rest_has_an_end() -> None:
    async def mark(kafka: SimulatedKafka, world: SimulatedWorld) -> None:
        while True:
            await asyncio.sleep(10)
            world.processed("orders", 0, 0)

    assert 120 <= seconds_after(mark) < 122


def test_a_transaction_is_under_way_until_it_ends() -> None:
    async def begin(kafka: SimulatedKafka, world: SimulatedWorld) -> None:
        producer = aiokafka.AIOKafkaProducer(
            bootstrap_servers=kafka.bootstrap, transactional_id="till", transaction_timeout_ms=60_000
        )
        await producer.start()
        try:
            await producer.begin_transaction()
            await producer.send_and_wait("orders", b"tea", partition=0)
            await idle(kafka, world)
        finally:
            await producer.stop()

    assert 50 <= seconds_after(begin) < 65


def test_a_group_has_work_to_do() -> None:
    async def read(kafka: SimulatedKafka, world: SimulatedWorld) -> None:
        kafka.produce("orders", "tea", "cake")
        consumer = aiokafka.AIOKafkaConsumer(
            "orders",
            bootstrap_servers=kafka.bootstrap,
            group_id="books",
            enable_auto_commit=False,
            auto_offset_reset="earliest",
        )
        await consumer.start()
        try:
            place = aiokafka.TopicPartition("orders", 0)
            await consumer.commit({place: 1})
            await asyncio.sleep(70)
            await consumer.commit({place: 2})
            await idle(kafka, world)
        finally:
            await consumer.stop()

    assert 90 <= seconds_after(read) < 105


def test_a_half_open_connection_is_under_way_until_it_is_given_up() -> None:
    async def ask(kafka: SimulatedKafka, world: SimulatedWorld) -> None:
        _, writer = await asyncio.open_connection("broker-1", 9092)
        await asyncio.sleep(9)
        writer.write(b"lost")
        await asyncio.sleep(60)
        writer.close()
        await idle(kafka, world)

    assert 59 <= seconds_after(ask, plan="5s half-open till broker-1") < 62
