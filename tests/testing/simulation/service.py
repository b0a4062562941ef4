"""A consumer service of a user, which books orders: whole, or with one of its planted bugs.

Strategy: the service is what a user writes with aiokafka. Each bug is one mistake that people make, which
tests without faults do not show. `run_service` is the same for all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

pytest.importorskip("aiokafka", reason="aiokafka isn't installed")

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
from aiokafka.errors import KafkaError

from coordwire.testing.simulation import SimulatedKafka, SimulatedWorld

__all__ = ["BUGS", "GROUP", "TOPIC", "correct_service", "run_service"]

GROUP, TOPIC = "bookkeeping", "orders"
_WORK = 0.2
"""Seconds that a record's work takes."""

Service = Callable[[str, SimulatedWorld, str], Coroutine[Any, Any, None]]


def consumer_of(bootstrap: str, name: str, **settings: Any) -> AIOKafkaConsumer:
    return AIOKafkaConsumer(
        bootstrap_servers=bootstrap,
        client_id=name,
        **({"group_id": GROUP, "enable_auto_commit": False, "auto_offset_reset": "earliest"} | settings),
    )


async def correct_service(bootstrap: str, world: SimulatedWorld, name: str, **settings: Any) -> None:
    """The service as it should be: work, then commit; start again after an error."""
    consumer = consumer_of(bootstrap, name, **settings)
    consumer.subscribe([TOPIC])
    try:
        await consumer.start()
        async for record in consumer:
            await asyncio.sleep(_WORK)
            world.processed(record)
            await consumer.commit({TopicPartition(record.topic, record.partition): record.offset + 1})
    finally:
        await consumer.stop()


async def run_service(
    kafka: SimulatedKafka, world: SimulatedWorld, service: Service, *, records: int = 25
) -> None:
    """Two processes of a service, and records for them."""
    for number in (1, 2):
        name = f"orders-{number}"
        world.start(name, service, kafka.bootstrap, world, name)
    for number in range(records):
        kafka.produce(TOPIC, f"order {number}", partition=number % 4)
        await asyncio.sleep(1)
    await world.calm()
    await world.caught_up(GROUP, TOPIC)


# --- planted bugs ---


async def commits_before_its_work(bootstrap: str, world: SimulatedWorld, name: str) -> None:
    consumer = consumer_of(bootstrap, name)
    consumer.subscribe([TOPIC])
    try:
        await consumer.start()
        async for record in consumer:
            await consumer.commit({TopicPartition(record.topic, record.partition): record.offset + 1})
            await asyncio.sleep(_WORK)
            world.processed(record)
    finally:
        await consumer.stop()


async def commits_its_position(bootstrap: str, world: SimulatedWorld, name: str) -> None:
    """Records are fetched by the batch, and the position is committed while the first is worked on."""
    consumer = consumer_of(bootstrap, name)
    consumer.subscribe([TOPIC])
    try:
        await consumer.start()
        while True:
            for records in (await consumer.getmany(timeout_ms=1_000)).values():
                for record in records:
                    await consumer.commit()
                    await asyncio.sleep(_WORK)
                    world.processed(record)
    finally:
        await consumer.stop()


async def forgets_to_await_its_work(bootstrap: str, world: SimulatedWorld, name: str) -> None:
    consumer = consumer_of(bootstrap, name)
    consumer.subscribe([TOPIC])
    tasks = set()

    async def work(record: Any) -> None:
        await asyncio.sleep(_WORK)
        world.processed(record)

    try:
        await consumer.start()
        async for record in consumer:
            tasks.add(asyncio.create_task(work(record)))  # and goes on
            await consumer.commit({TopicPartition(record.topic, record.partition): record.offset + 1})
    finally:
        await consumer.stop()


async def commits_by_itself(bootstrap: str, world: SimulatedWorld, name: str) -> None:
    """The client commits by a timer what was handed out, whether its work is over or not."""
    consumer = consumer_of(bootstrap, name, enable_auto_commit=True, auto_commit_interval_ms=500)
    consumer.subscribe([TOPIC])
    queue: asyncio.Queue[Any] = asyncio.Queue()

    async def work() -> None:
        while True:
            record = await queue.get()
            await asyncio.sleep(4 * _WORK)
            world.processed(record)

    worker = asyncio.create_task(work())
    try:
        await consumer.start()
        async for record in consumer:
            queue.put_nowait(record)
    finally:
        worker.cancel()
        await consumer.stop()


async def swallows_errors(bootstrap: str, world: SimulatedWorld, name: str) -> None:
    """An error of the work or of the commit is swallowed, and the next record is committed."""
    consumer = consumer_of(bootstrap, name)
    consumer.subscribe([TOPIC])
    try:
        await consumer.start()
        async for record in consumer:
            try:
                await asyncio.wait_for(asyncio.sleep(_WORK), _WORK + 0.01)
                await consumer.committed(TopicPartition(record.topic, record.partition))
                world.processed(record)
            except (TimeoutError, KafkaError):
                continue
            await consumer.commit({TopicPartition(record.topic, record.partition): record.offset + 1})
    finally:
        await consumer.stop()


async def keeps_its_positions(bootstrap: str, world: SimulatedWorld, name: str) -> None:
    """A batch is committed at its end by what was counted, also for partitions that others have by then."""
    consumer = consumer_of(bootstrap, name)
    consumer.subscribe([TOPIC])
    positions: dict[TopicPartition, int] = {}
    try:
        await consumer.start()
        async for record in consumer:
            place = TopicPartition(record.topic, record.partition)
            await asyncio.sleep(_WORK)
            world.processed(record)
            positions[place] = max(positions.get(place, 0), record.offset + 1)
            assigned = consumer.assignment()
            await consumer.commit({known: positions.get(known, 0) for known in assigned})
    finally:
        await consumer.stop()


async def dies_silently(bootstrap: str, world: SimulatedWorld, name: str) -> None:
    """The task that does the work ends by an error, and the program waits on."""
    consumer = consumer_of(bootstrap, name)
    consumer.subscribe([TOPIC])

    async def work() -> None:
        async for record in consumer:
            await asyncio.sleep(_WORK)
            world.processed(record)
            await consumer.commit({TopicPartition(record.topic, record.partition): record.offset + 1})

    task = None
    try:
        await consumer.start()
        task = asyncio.create_task(work())
        await asyncio.Event().wait()
    finally:
        if task is not None:
            task.cancel()
        await consumer.stop()


class _Locked(ConsumerRebalanceListener):  # type: ignore[misc]
    def __init__(self, lock: asyncio.Lock) -> None:
        self.lock = lock

    async def on_partitions_revoked(self, revoked: object) -> None:
        await self.lock.acquire()

    async def on_partitions_assigned(self, assigned: object) -> None:
        if assigned:
            self.lock.release()


async def holds_a_lock_over_a_rebalance(bootstrap: str, world: SimulatedWorld, name: str) -> None:
    """The lock that stops the work during a rebalance is released only if there are partitions."""
    consumer = consumer_of(bootstrap, name)
    lock = asyncio.Lock()
    consumer.subscribe([TOPIC], listener=_Locked(lock))
    try:
        await consumer.start()
        async for record in consumer:
            async with lock:
                await asyncio.sleep(_WORK)
                world.processed(record)
                await consumer.commit({TopicPartition(record.topic, record.partition): record.offset + 1})
    finally:
        await consumer.stop()


class _Seeking(ConsumerRebalanceListener):  # type: ignore[misc]
    """Offsets are kept by the program itself; a partition that comes back is not sought."""

    def __init__(self, consumer: AIOKafkaConsumer) -> None:
        self.consumer = consumer
        self.known: set[TopicPartition] = set()

    async def on_partitions_revoked(self, revoked: object) -> None:
        """Nothing is left to do."""

    async def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
        for place in sorted(assigned - self.known):
            self.known.add(place)
            committed = await self.consumer.committed(place)
            self.consumer.seek(place, committed or 0)
        # those that are known already begin at the end, by auto_offset_reset


async def forgets_to_seek(bootstrap: str, world: SimulatedWorld, name: str) -> None:
    consumer = consumer_of(bootstrap, name, auto_offset_reset="latest")
    listener = _Seeking(consumer)
    consumer.subscribe([TOPIC], listener=listener)
    try:
        await consumer.start()
        async for record in consumer:
            await asyncio.sleep(_WORK)
            world.processed(record)
            await consumer.commit({TopicPartition(record.topic, record.partition): record.offset + 1})
    finally:
        await consumer.stop()


async def begins_at_the_end(bootstrap: str, world: SimulatedWorld, name: str) -> None:
    """A partition without a committed offset begins with what comes next."""
    consumer = consumer_of(bootstrap, name, auto_offset_reset="latest")
    consumer.subscribe([TOPIC])
    try:
        await consumer.start()
        async for record in consumer:
            await asyncio.sleep(_WORK)
            world.processed(record)
            await consumer.commit({TopicPartition(record.topic, record.partition): record.offset + 1})
    finally:
        await consumer.stop()


async def works_in_parallel(bootstrap: str, world: SimulatedWorld, name: str) -> None:
    """Records are worked on side by side, and each commits its own offset when it is done."""
    consumer = consumer_of(bootstrap, name)
    consumer.subscribe([TOPIC])

    async def work(record: Any) -> None:
        await asyncio.sleep(_WORK * (1 + record.offset % 3 * 4))
        world.processed(record)
        await consumer.commit({TopicPartition(record.topic, record.partition): record.offset + 1})

    try:
        await consumer.start()
        async with asyncio.TaskGroup() as group:
            async for record in consumer:
                group.create_task(work(record))
    finally:
        await consumer.stop()


async def leaves_its_consumer(bootstrap: str, world: SimulatedWorld, name: str) -> None:
    """After an error a new consumer is made, and the old one is not stopped."""
    while True:
        consumer = consumer_of(bootstrap, name)
        consumer.subscribe([TOPIC])
        try:
            await consumer.start()
            async for record in consumer:
                await asyncio.sleep(_WORK)
                world.processed(record)
                await consumer.commit({TopicPartition(record.topic, record.partition): record.offset + 1})
        except KafkaError:
            await asyncio.sleep(1)
        except asyncio.CancelledError:
            await consumer.stop()
            raise


async def waits_forever(bootstrap: str, world: SimulatedWorld, name: str) -> None:
    """A commit that fails is tried again until it succeeds, which one of an old generation never does."""
    consumer = consumer_of(bootstrap, name)
    consumer.subscribe([TOPIC])
    try:
        await consumer.start()
        async for record in consumer:
            await asyncio.sleep(_WORK)
            world.processed(record)
            while True:
                try:
                    place = TopicPartition(record.topic, record.partition)
                    await consumer.commit({place: record.offset + 1})
                    break
                except KafkaError:
                    await asyncio.sleep(0.5)
    finally:
        await consumer.stop()


async def trusts_the_clock(bootstrap: str, world: SimulatedWorld, name: str) -> None:
    """Records that are older than a minute by the machine's clock are skipped as done."""
    import time

    consumer = consumer_of(bootstrap, name)
    consumer.subscribe([TOPIC])
    try:
        await consumer.start()
        async for record in consumer:
            if time.time() - record.timestamp / 1000 < 60:
                await asyncio.sleep(_WORK)
                world.processed(record)
            await consumer.commit({TopicPartition(record.topic, record.partition): record.offset + 1})
    finally:
        await consumer.stop()


BUGS: dict[str, Service] = {
    bug.__name__: bug
    for bug in (
        commits_before_its_work,
        commits_its_position,
        forgets_to_await_its_work,
        commits_by_itself,
        swallows_errors,
        keeps_its_positions,
        dies_silently,
        holds_a_lock_over_a_rebalance,
        forgets_to_seek,
        begins_at_the_end,
        works_in_parallel,
        leaves_its_consumer,
        waits_forever,
        trusts_the_clock,
    )
}
