"""Checkers: each reports what it is for, and nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

pytest.importorskip("aiokafka", reason="aiokafka isn't installed")

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from coordwire.broker.harness.cluster_view import ask_coordinator
from coordwire.messages import OffsetCommitRequest
from coordwire.messages.offset_commit import OffsetCommitRequestPartition, OffsetCommitRequestTopic
from coordwire.testing.simulation import (
    Checker,
    PartitionPlace,
    RunOutcome,
    SimulatedKafka,
    SimulatedWorld,
    Simulation,
)
from coordwire.testing.simulation.checkers import CHECKERS

GROUP, TOPIC = "books", "orders"
PLACE = PartitionPlace(TOPIC, 0)
Body = Callable[[SimulatedKafka, SimulatedWorld], Awaitable[None]]


def run(body: Body, *checkers: type[Checker]) -> RunOutcome:
    async def test(kafka: SimulatedKafka, world: SimulatedWorld) -> None:
        await body(kafka, world)

    settings = {"topics": {TOPIC: 2}}
    return Simulation(test=test, nodes=1, settings=settings, checkers=(*CHECKERS, *checkers)).run(0)


def commit(kafka: SimulatedKafka, offset: int) -> None:
    """What a consumer without a group commits."""
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    topic = OffsetCommitRequestTopic(name=TOPIC, partitions=[partition])
    request = OffsetCommitRequest(group_id=GROUP, topics=[topic])
    answer: Any = ask_coordinator(kafka.broker.broker.cluster, GROUP, request, 8)
    assert answer.topics[0].partitions[0].error_code == 0


async def unprocessed(kafka: SimulatedKafka, world: SimulatedWorld) -> None:
    kafka.produce(TOPIC, "one", "two", "three")
    world.processed(TOPIC, 0, 0)
    world.processed(TOPIC, 0, 2)
    commit(kafka, 3)


async def falling(kafka: SimulatedKafka, world: SimulatedWorld) -> None:
    commit(kafka, 3)
    commit(kafka, 3)
    await asyncio.sleep(1)
    commit(kafka, 2)
    await asyncio.sleep(1)


async def two_owners(kafka: SimulatedKafka, world: SimulatedWorld) -> None:
    world._report("assigned", (GROUP, 1, {"one": frozenset({PLACE}), "two": frozenset({PLACE})}))
    await asyncio.sleep(1)


async def no_progress(kafka: SimulatedKafka, world: SimulatedWorld) -> None:
    """A member joins, commits, and reads no more."""
    consumer = AIOKafkaConsumer(TOPIC, bootstrap_servers=kafka.bootstrap, group_id=GROUP)
    await consumer.start()
    await consumer.commit({TopicPartition(TOPIC, 0): 0})
    kafka.produce(TOPIC, "one")
    await asyncio.sleep(1_000)
    await consumer.stop()


async def transact(kafka: SimulatedKafka, *, committed: bool) -> None:
    async with AIOKafkaProducer(bootstrap_servers=kafka.bootstrap, transactional_id="till") as producer:
        await producer.begin_transaction()
        await producer.send_and_wait(TOPIC, b"one", partition=0)
        await (producer.commit_transaction() if committed else producer.abort_transaction())


async def aborted_record(kafka: SimulatedKafka, world: SimulatedWorld) -> None:
    await transact(kafka, committed=False)
    await asyncio.sleep(5)  # the marker is written
    world.processed(TOPIC, 0, 0)


async def open_transaction(kafka: SimulatedKafka, world: SimulatedWorld) -> None:
    """What another program has written meanwhile may be processed."""
    kafka.produce(TOPIC, "before", partition=0)
    async with AIOKafkaProducer(bootstrap_servers=kafka.bootstrap, transactional_id="till") as producer:
        await producer.begin_transaction()
        await producer.send_and_wait(TOPIC, b"one", partition=0)
        kafka.produce(TOPIC, "after", partition=0)
        for offset in (0, 2, 1):
            world.processed(TOPIC, 0, offset)
        await producer.commit_transaction()


async def split_transaction(kafka: SimulatedKafka, world: SimulatedWorld) -> None:
    """A broker that ends a transaction in a partition otherwise than its coordinator has decided."""
    await transact(kafka, committed=True)
    await asyncio.sleep(5)  # the markers are written
    entry = world.partition(PLACE)
    assert entry is not None
    (transaction,) = [batch for batch in entry.log.batches() if not batch.is_control]
    entry.log.truncate(1)
    producer, epoch = transaction.producer_id, transaction.producer_epoch
    entry.log.end_transaction(producer, epoch, committed=False, coordinator_epoch=0, version=1, now=0)


async def left_behind(kafka: SimulatedKafka, world: SimulatedWorld) -> None:
    leftovers = []

    async def leave() -> None:
        leftovers.append(asyncio.create_task(asyncio.sleep(1_000), name="beat"))
        leftovers.append(await asyncio.open_connection("127.0.0.1", 9092))  # type: ignore[arg-type]

    world.start("leaver", leave)
    await asyncio.sleep(60)


async def stopped_in_vain(kafka: SimulatedKafka, world: SimulatedWorld) -> None:
    async def ignore() -> None:
        while True:
            try:
                await asyncio.sleep(1_000)
            except asyncio.CancelledError:
                await asyncio.sleep(10_000)

    world.start("deaf", ignore)
    await asyncio.sleep(1)


@pytest.mark.parametrize(
    ("checker", "body", "reason"),
    [
        (
            "UnprocessedRecord",
            unprocessed,
            "books has committed orders-0 up to 3, and never processed offset 1",
        ),
        ("FallingOffset", falling, "books has committed 2 of orders-0, after 3"),
        ("TwoOwners", two_owners, "orders-0 is one's and two's in books, 1"),
        ("NoProgress", no_progress, "and has committed orders-0 up to 0 of 1 for 12"),
        (
            "AbortedRecord",
            aborted_record,
            "processed offset 0 of orders-0, of a transaction that was aborted",
        ),
        (
            "AbortedRecord",
            open_transaction,
            "processed offset 1 of orders-0, of a transaction that has not ended",
        ),
        ("SplitTransaction", split_transaction, "end in orders-0 otherwise than decided"),
        (
            "LeftBehind",
            left_behind,
            "leaver has ended, and left the task beat (sleep), a connection to broker-1",
        ),
        (
            "Stop",
            stopped_in_vain,
            "deaf has not ended 300 s after SIGTERM: these tasks wait: deaf (test_checkers.py:",
        ),
    ],
)
def test_what_each_reports(checker: str, body: Body, reason: str) -> None:
    outcome = run(body)
    assert outcome.kind == ("Violation", checker), outcome.reason
    assert reason in outcome.reason
    if checker == "NoProgress":
        assert " s without a fault; these tasks wait: test (test_checkers.py:" in outcome.reason


async def healthy(kafka: SimulatedKafka, world: SimulatedWorld) -> None:
    """Transactions of both kinds, a group, and all that was read is committed."""
    await transact(kafka, committed=False)
    await transact(kafka, committed=True)

    async def book() -> None:
        consumer = AIOKafkaConsumer(
            TOPIC,
            bootstrap_servers=kafka.bootstrap,
            group_id=GROUP,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
            enable_auto_commit=False,
        )
        try:
            await consumer.start()
            async for record in consumer:
                world.processed(record)
                await consumer.commit()
        finally:
            await consumer.stop()

    world.start("book", book)
    for number in range(3):
        kafka.produce(TOPIC, f"{number}", partition=1)
        await asyncio.sleep(100)
    await world.until(lambda: sum(map(len, world.marks.values())) == 4)


def test_nothing_is_reported_where_all_is_well() -> None:
    outcome = run(healthy)
    assert outcome.failure is None, outcome.reason


class TooMany(Checker):
    """A user's own checker."""

    def processed(self, place: PartitionPlace, offset: int) -> None:
        if offset >= 2:
            self.fail(f"{place} has more than two records")


def test_a_checker_of_ones_own() -> None:
    outcome = run(healthy, TooMany)
    assert outcome.reason == "TooMany: orders-0 has more than two records"
