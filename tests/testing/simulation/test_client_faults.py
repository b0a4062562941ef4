"""Failures that are the client's own: they are told from those of the service, and fail no test."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("aiokafka", reason="aiokafka isn't installed")

from aiokafka import AIOKafkaProducer, TopicPartition

from coordwire.messages import OffsetCommitRequest, OffsetFetchRequest, OffsetFetchResponse
from coordwire.messages.offset_fetch import OffsetFetchRequestTopic
from coordwire.testing.simulation import (
    RunOutcome,
    SimulatedKafka,
    SimulatedWorld,
    Simulation,
    client_faults,
)
from coordwire.testing.simulation.checkers import Violation
from coordwire.testing.simulation.client_faults import client_fault
from coordwire.testing.simulation.decorator import kafka_simulation
from coordwire.testing.simulation.faults import parse_plan
from tests.testing.simulation.service import GROUP, TOPIC, consumer_of, correct_service

MISREAD = "20s inject broker-* OffsetFetch error=NOT_COORDINATOR times=1 for 30s; 20s crash orders-1 for 15s"


async def restart(kafka: SimulatedKafka, world: SimulatedWorld) -> None:
    """Records before and after the process dies."""
    world.start("orders-1", correct_service, kafka.bootstrap, world, "orders-1")
    for _ in range(2):
        await asyncio.sleep(15)
        kafka.produce(TOPIC, "tea", "cake", "salt")
    await world.calm()
    await world.caught_up(GROUP, TOPIC)


@asynccontextmanager
async def fenced(bootstrap: str) -> AsyncIterator[AIOKafkaProducer]:
    """A producer in whose transaction something takes longer than the coordinator gives it."""
    producer = AIOKafkaProducer(
        bootstrap_servers=bootstrap, transactional_id="till", transaction_timeout_ms=5_000
    )
    await producer.start()
    try:
        yield producer
    finally:
        await producer.stop()


async def late(producer: AIOKafkaProducer) -> None:
    await producer.send_and_wait(TOPIC, b"tea", partition=0)
    await asyncio.sleep(30)
    await producer.send(TOPIC, b"cake", partition=1)  # whose partition is refused while nobody waits
    await asyncio.sleep(1)


async def in_a_context(bootstrap: str) -> None:
    async with fenced(bootstrap) as producer, producer.transaction():
        await late(producer)


async def by_itself(bootstrap: str) -> None:
    async with fenced(bootstrap) as producer:
        await producer.begin_transaction()
        try:
            await late(producer)
            raise ValueError("no price")
        except ValueError:
            await producer.abort_transaction()


def outcome_of(service: Callable[[str], Coroutine[Any, Any, None]]) -> RunOutcome:
    async def test(kafka: SimulatedKafka, world: SimulatedWorld) -> None:
        world.start("till", service, kafka.bootstrap)
        await asyncio.sleep(60)

    return Simulation(test=test, settings={"topics": {TOPIC: 2}}).run(0)


def is_seen(monkeypatch: pytest.MonkeyPatch, version: str) -> bool:
    monkeypatch.setattr(client_faults, "version", lambda package: version)
    return bool(outcome_of(in_a_context).client_fault)


def test_a_failure_of_the_client_counts_up_to_a_version(monkeypatch: pytest.MonkeyPatch) -> None:
    assert is_seen(monkeypatch, "0.14.0")
    assert is_seen(monkeypatch, "0.8.1")
    assert not is_seen(monkeypatch, "0.15.0")
    assert not is_seen(monkeypatch, "1.0")
    assert not client_fault(AssertionError("another"), None)


def test_a_service_that_ends_a_fenced_transaction_itself_is_not_excused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(client_faults, "version", lambda package: "0.14.0")
    text = "AssertionError: Invalid state transition TransactionState.FATAL_ERROR -> "
    in_context, itself = outcome_of(in_a_context), outcome_of(by_itself)
    assert in_context.reason == f"{text}TransactionState.COMMITTING_TRANSACTION"
    assert in_context.client_fault == "aiokafka ends a transaction by an assertion where it is fenced"
    assert itself.reason == f"{text}TransactionState.ABORTING_TRANSACTION"
    assert itself.client_fault == ""


def test_a_failure_of_the_client_fails_no_test(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    test = kafka_simulation(seeds=1, faults=MISREAD, topics={TOPIC: 1}, repeat=0)(restart)
    monkeypatch.setattr(client_faults, "version", lambda package: "0.14.0")
    test()
    text = "aiokafka takes an OffsetFetch with an error for one without offsets"
    assert f"known: {text!r} in seeds 0" in capsys.readouterr().out
    monkeypatch.setattr(client_faults, "version", lambda package: "0.15.0")
    with pytest.raises(AssertionError, match=f"{GROUP} has committed 1 of {TOPIC}-0, after 3"):
        test()


def test_an_offset_that_the_service_lets_fall_is_its_own() -> None:
    """Though another process was answered by an error before."""

    async def test(kafka: SimulatedKafka, world: SimulatedWorld) -> None:
        async def set_back() -> None:
            consumer = consumer_of(kafka.bootstrap, "admin")
            await consumer.start()
            consumer.assign([TopicPartition(TOPIC, 0)])
            await consumer.commit({TopicPartition(TOPIC, 0): 1})
            await consumer.stop()

        kafka.produce(TOPIC, "tea", "cake", "salt")
        service = world.start("orders-1", correct_service, kafka.bootstrap, world, "orders-1")
        await world.caught_up(GROUP, TOPIC)
        await service.stop()
        world.start("admin", set_back)
        await asyncio.sleep(30)

    plan = parse_plan("0s inject broker-* OffsetFetch error=NOT_COORDINATOR times=1")
    outcome = Simulation(test=test, faults=plan, settings={"topics": {TOPIC: 1}}).run(0)
    assert outcome.reason == f"FallingOffset: {GROUP} has committed 1 of {TOPIC}-0, after 3"
    assert outcome.client_fault == ""


@pytest.mark.parametrize(("fallen", "is_misread"), [(0, True), (1, False)])
def test_the_answer_that_counts_is_the_last_one_for_the_partition(fallen: int, is_misread: bool) -> None:
    """A process that asks for partition 0, and is answered by an error, may well learn of partition 1."""
    own, node = "10.0.0.7:40002 > broker", "broker > 10.0.0.7:40002"
    entries = [SimpleNamespace(message=OffsetCommitRequest(group_id=GROUP), flow=own, request=None)]
    for partition, error_code in ((0, 14), (1, 0)):
        topics = [OffsetFetchRequestTopic(name=TOPIC, partition_indexes=[partition])]
        request = SimpleNamespace(message=OffsetFetchRequest(group_id=GROUP, topics=topics), flow=own)
        answer = OffsetFetchResponse(error_code=error_code)
        entries.insert(-1, SimpleNamespace(message=answer, flow=node, request=request))
    traffic: Any = SimpleNamespace(entries=lambda: entries)
    failure = Violation("FallingOffset", f"{GROUP} has committed 1 of {TOPIC}-{fallen}, after 3")
    assert bool(client_fault(failure, traffic)) == is_misread


async def reads_orders(
    bootstrap: str, world: SimulatedWorld, settings: dict[str, Any], is_whole: bool
) -> None:
    consumer = consumer_of(bootstrap, "orders-1", **settings)
    consumer.subscribe([TOPIC])
    try:
        await consumer.start()
        async for record in consumer:
            world.processed(record)
            if is_whole or record.partition != 0:
                place = TopicPartition(record.topic, record.partition)
                await consumer.commit({place: record.offset + 1})
    finally:
        await consumer.stop()


def after_a_move(settings: dict[str, Any], *, is_whole: bool = True) -> RunOutcome:
    """A group joins while a disk has failed, whose node then leads no more."""

    async def test(kafka: SimulatedKafka, world: SimulatedWorld) -> None:
        for number in range(6):
            kafka.produce(TOPIC, f"{number}", partition=number % 3)
        await asyncio.sleep(2)
        world.start("orders-1", reads_orders, kafka.bootstrap, world, settings, is_whole)
        await world.calm()
        await world.caught_up(GROUP, TOPIC)

    plan = parse_plan("5s fail broker-2 for 30s")
    return Simulation(test=test, faults=plan, settings={"topics": {TOPIC: 3}}).run(0)


def test_a_client_that_asks_an_old_leader(monkeypatch: pytest.MonkeyPatch) -> None:
    """What avoids it is said; a service that forgets a commit of another partition is not excused."""
    monkeypatch.setattr(client_faults, "version", lambda package: "0.14.0")
    stuck = after_a_move({})
    assert stuck.reason.startswith(f"caught_up: {GROUP} has not committed all records")
    assert stuck.client_fault.endswith("metadata_max_age_ms=10_000 avoids it")
    assert after_a_move({"metadata_max_age_ms": 10_000}).failure is None
    forgetful = after_a_move({"metadata_max_age_ms": 10_000}, is_whole=False)
    assert forgetful.reason.startswith(f"caught_up: {GROUP} has not committed all records")
    assert forgetful.client_fault == ""
