"""Hours of simulated worlds with group churn, transactions and every fault, and what they show.

    python -m tests.testing.simulation.hours [--seeds 0-999] [--minutes 20] [--wait-ms 500] [--every 5]
                                             [--faststream]

Strategy: each seed's world has two consumers of a group and two processes that move records to another topic
in transactions, with two faults a minute. Longer waits of fetches and fewer records give more hours a second
of CPU. The client is what is installed, so that another version of it, in another virtual environment, has
the same worlds. With `--faststream` the two consumers are services on FastStream. A failure is printed with
its shrunk plan, and the search goes on. Rules: what "Findings" of docs/how-to/simulation.md describes as
aiokafka's own is not looked for: offsets that fall, and what a client leaves that could not stop.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Callable, Coroutine
from functools import partial
from importlib.metadata import version
from typing import Any

from aiokafka import AIOKafkaProducer, TopicPartition

from coordwire.testing.simulation import CHECKERS, DrawnFaults, SimulatedKafka, SimulatedWorld, Simulation
from coordwire.testing.simulation.checkers import FallingOffset, LeftBehind
from tests.testing.simulation.service import GROUP, TOPIC, consumer_of, correct_service

MOVERS, MOVED, BOOKED = "movers", "moved", "booked"
SHRINKS = 30


async def move(bootstrap: str, name: str, **settings: Any) -> None:
    """Records go to another topic with their offsets, in a transaction each."""
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id=name)
    consumer = consumer_of(bootstrap, name, group_id=MOVERS, **settings)
    consumer.subscribe([TOPIC])
    try:
        await producer.start()
        await consumer.start()
        async for record in consumer:
            async with producer.transaction():
                await producer.send(MOVED, record.value)
                place = TopicPartition(record.topic, record.partition)
                await producer.send_offsets_to_transaction({place: record.offset + 1}, MOVERS)
    finally:
        await consumer.stop()
        await producer.stop()


def _faststream_service() -> Callable[..., Coroutine[Any, Any, None]]:
    """The service on FastStream, which is loaded before a world is entered."""
    from tests.testing.simulation.test_faststream import service

    async def book(bootstrap: str, world: SimulatedWorld, name: str, **settings: Any) -> None:
        await service(bootstrap, world, group_id=GROUP, client_id=name, **settings)

    return book


def simulation_of(minutes: float, wait_ms: int, every: float, *, is_faststream: bool = False) -> Simulation:
    book = partial(_faststream_service() if is_faststream else correct_service, fetch_max_wait_ms=wait_ms)
    move_on = partial(move, fetch_max_wait_ms=wait_ms)

    async def test(kafka: SimulatedKafka, world: SimulatedWorld) -> None:
        for number in (1, 2):
            world.start(f"orders-{number}", book, kafka.bootstrap, world, f"orders-{number}")
            world.start(f"mover-{number}", move_on, kafka.bootstrap, f"mover-{number}")
        for number in range(int(minutes * 60 / every)):
            kafka.produce(TOPIC, f"order {number}", partition=number % 4)
            await asyncio.sleep(every)
        await world.calm()
        for group in (GROUP, MOVERS):
            await world.caught_up(group, TOPIC, within=600)

    return Simulation(
        test=test,
        faults=DrawnFaults(until=minutes * 60, most=max(int(2 * minutes), 1)),
        settings={"topics": {TOPIC: 4, MOVED: 2, BOOKED: 1}},
        checkers=tuple(checker for checker in CHECKERS if checker not in (FallingOffset, LeftBehind)),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", default="0-999", help="the first and the last")
    parser.add_argument(
        "--minutes", type=float, default=20, help="virtual minutes with faults, in each world"
    )
    parser.add_argument("--wait-ms", type=int, default=500, help="the clients' fetch_max_wait_ms")
    parser.add_argument("--every", type=float, default=5, help="seconds between records")
    parser.add_argument("--faststream", action="store_true", help="consumers are services on FastStream")
    options = parser.parse_args()
    first, last = map(int, options.seeds.split("-"))
    simulation = simulation_of(
        options.minutes, options.wait_ms, options.every, is_faststream=options.faststream
    )
    began, hours, failures = time.process_time(), 0.0, 0
    print(f"aiokafka {version('aiokafka')}")
    for seed in range(first, last + 1):
        outcome = simulation.run(seed)
        hours += outcome.seconds / 3600
        if outcome.failure is not None:
            failures += 1
            shrunk = simulation.shrink(outcome, runs=SHRINKS)
            print(f"seed {seed}: {shrunk.reason}\n    {'; '.join(map(str, shrunk.plan))}")
        spent = time.process_time() - began
        print(f"seed {seed}: {hours:.1f} h, {failures} failures, {spent:.0f} s of CPU", flush=True)


if __name__ == "__main__":
    main()
