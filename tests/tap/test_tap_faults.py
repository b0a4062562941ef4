"""Faults before a cluster that has none: each kind reaches a real client, which goes on, and loses nothing.

Strategy: aiokafka produces, reads in a group, beats and commits through a tap; what it was sent is read from
the tap's recording. Rules: a fault fires as often as its rule says; the cluster behind never sees one.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NamedTuple

import pytest

from coordwire.broker import Broker, BrokerThread
from coordwire.broker.harness.traffic import Traffic
from coordwire.broker.injection import FaultHandle
from coordwire.capture import FrameEntry
from coordwire.codec.walk import entity_values
from coordwire.enums import ErrorCode
from coordwire.tap import Tap, TapThread

COUNT = 6
TOPIC, GROUP = "orders", "payments"


class Kind(NamedTuple):
    """rule: of the fault. seen: what the client was sent: an error's name, "answer" for an answer of
    whatever content, "nothing", or "half" for an answer that breaks off. again: the client asks again."""

    rule: str
    seen: str
    again: bool = True


KINDS = {
    "a leader that moved": Kind(
        "Produce topic=orders nth=2 error=NOT_LEADER_OR_FOLLOWER", "NOT_LEADER_OR_FOLLOWER"
    ),
    "records that arrive, and an error": Kind(
        "Produce topic=orders after error=NOT_ENOUGH_REPLICAS_AFTER_APPEND",
        "NOT_ENOUGH_REPLICAS_AFTER_APPEND",
    ),
    "a partition's error, three times": Kind(
        "Produce partition=0 times=3 error=COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_LOAD_IN_PROGRESS"
    ),
    "a slow produce": Kind("Produce delay=100ms", "answer"),
    "a produce that is held": Kind("Produce hold", "answer"),
    "a produce whose connection ends": Kind("Produce disconnect", "nothing"),
    "a produce that arrives, and its connection ends": Kind("Produce after disconnect", "nothing"),
    "a produce whose answer is lost": Kind("Produce nth=3 lose", "nothing"),
    "half an answer to a produce": Kind("Produce half", "half"),
    "a quota": Kind("Produce client=tapped throttle=20ms", "answer"),
    "a fetch from a former leader": Kind(
        "Fetch topic=orders error=NOT_LEADER_OR_FOLLOWER", "NOT_LEADER_OR_FOLLOWER"
    ),
    "an offset out of range": Kind("Fetch topic=orders error=OFFSET_OUT_OF_RANGE", "OFFSET_OUT_OF_RANGE"),
    "a slow fetch": Kind("Fetch delay=100ms", "answer"),
    "a fetch whose connection ends": Kind("Fetch disconnect", "nothing"),
    "half an answer to a fetch": Kind("Fetch half", "half"),
    "fetches that fail by a seed": Kind(
        "Fetch probability=0.7 seed=4 error=UNKNOWN_SERVER_ERROR", "UNKNOWN_SERVER_ERROR"
    ),
    "a topic without a leader": Kind(
        "Metadata topic=orders error=LEADER_NOT_AVAILABLE", "LEADER_NOT_AVAILABLE"
    ),
    "slow metadata": Kind("Metadata delay=100ms", "answer"),
    "a coordinator that is not there": Kind(
        "FindCoordinator group=payments error=COORDINATOR_NOT_AVAILABLE", "COORDINATOR_NOT_AVAILABLE"
    ),
    "a join at a former coordinator": Kind(
        "JoinGroup group=payments error=NOT_COORDINATOR", "NOT_COORDINATOR"
    ),
    "a member that is not known": Kind(
        "JoinGroup group=payments nth=2 error=UNKNOWN_MEMBER_ID", "UNKNOWN_MEMBER_ID"
    ),
    "a sync during a rebalance": Kind("SyncGroup error=REBALANCE_IN_PROGRESS", "REBALANCE_IN_PROGRESS"),
    "a rebalance": Kind(
        "Heartbeat group=payments nth=2 error=REBALANCE_IN_PROGRESS", "REBALANCE_IN_PROGRESS"
    ),
    "a coordinator that moved": Kind("Heartbeat error=NOT_COORDINATOR", "NOT_COORDINATOR"),
    "a heartbeat whose connection ends": Kind("Heartbeat disconnect", "nothing"),
    "a commit at a former coordinator": Kind(
        "OffsetCommit group=payments error=NOT_COORDINATOR", "NOT_COORDINATOR"
    ),
    "a commit whose answer is lost with its connection": Kind("OffsetCommit after disconnect", "nothing"),
    "offsets that are being loaded": Kind(
        "OffsetFetch error=COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_LOAD_IN_PROGRESS", again=False
    ),
    "a producer id that is not there yet": Kind(
        "InitProducerId error=COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_LOAD_IN_PROGRESS"
    ),
    "every request to the group's coordinator": Kind("* node=3 times=2 delay=30ms", "answer", again=False),
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[BrokerThread]:
    with Broker.in_thread(topics={TOPIC: 1}, nodes=3) as broker:
        yield broker


def test_there_are_enough_kinds() -> None:
    assert len(KINDS) >= 24


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_every_kind_reaches_a_client(name: str, cluster: BrokerThread) -> None:
    pytest.importorskip("aiokafka")
    kind = KINDS[name]
    cluster.wait(cluster.broker.reset)
    traffic = Traffic()
    with Tap.in_thread(cluster.bootstrap, traffic=traffic) as tap:
        fault = tap.faults.add(kind.rule)
        ended = threading.Event()
        releasing = threading.Thread(target=_release, args=(fault, ended))
        releasing.start()
        try:
            result = asyncio.run(used(tap, fault))
        finally:
            ended.set()
            releasing.join()
        tap.faults.check()
        assert fault.hits == fault.rule.times
        counts = tap.counts
    assert result == [str(number) for number in range(COUNT)]
    assert [record.value for record in records(cluster)] == [text.encode() for text in result]
    reached(traffic, fault, kind)
    changed = counts.changed["fault"] + counts.answered["fault"] + counts.dropped["fault"]
    assert changed or "delay" in kind.rule or "hold" in kind.rule


def _release(fault: FaultHandle, ended: threading.Event) -> None:
    while not ended.wait(0.1):
        fault.release()


def records(cluster: BrokerThread) -> list[Any]:
    from coordwire.broker.harness.cluster_view import read_records

    return cluster.call(lambda broker: read_records(broker.cluster, TOPIC, committed=False))


async def used(tap: TapThread, fault: FaultHandle) -> list[str]:
    """Produce, read in a group, beat until the fault has fired, commit; the values that were read."""
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
    from aiokafka.errors import KafkaError

    common: dict[str, Any] = {
        "bootstrap_servers": tap.bootstrap,
        "client_id": "tapped",
        "request_timeout_ms": 1_000,
        "retry_backoff_ms": 10,
    }
    async with asyncio.timeout(40):
        producer = AIOKafkaProducer(**common, enable_idempotence=True)
        await producer.start()
        for number in range(COUNT):
            await producer.send_and_wait(TOPIC, b"%d" % number)
        await producer.stop()
        consumer = AIOKafkaConsumer(
            TOPIC,
            **common,
            group_id=GROUP,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            fetch_max_wait_ms=50,
            heartbeat_interval_ms=50,
        )
        await consumer.start()
        seen: dict[str, None] = {}
        async for message in consumer:
            seen[message.value.decode()] = None
            if len(seen) == COUNT:
                break
        if {19, 8, 12} & fault.rule.keys:  # an OffsetCommit fires once something is committed
            await asyncio.sleep(0.2)
        while True:
            with suppress(KafkaError):
                await consumer.commit()
                if fault.hits == fault.rule.times:
                    break
            await asyncio.sleep(0.05)
        await asyncio.sleep(0.2)  # what follows the last fault
        await consumer.stop()
    return list(seen)


def reached(traffic: Traffic, fault: FaultHandle, kind: Kind) -> None:
    """What the client was sent shows the fault, and that it went on after it."""
    entries = list(traffic.entries())
    requests = [entry for entry in entries if entry.direction == "request"]
    answers = {id(entry.request): entry for entry in entries if entry.request is not None}
    for request in fault.requests:
        asked = [entry for entry in requests if entry.message == request.message]
        place = entries.index(next(entry for entry in asked if _shows(answers.get(id(entry)), kind)))
        later = [entry.api_key for entry in entries[place + 1 :] if entry.direction == "request"]
        assert later
        if kind.again and kind.seen != "answer":
            assert request.api_key in later


def _shows(answer: FrameEntry | None, kind: Kind) -> bool:
    """Whether an answer, or that there is none, shows a kind of fault."""
    if kind.seen in ("nothing", "half"):
        return answer is None
    if answer is None:
        return False
    return kind.seen == "answer" or ErrorCode[kind.seen] in entity_values(answer.message, "error_code")


def test_a_throttle_time_is_in_the_answer(cluster: BrokerThread) -> None:
    pytest.importorskip("aiokafka")
    cluster.wait(cluster.broker.reset)
    traffic = Traffic()
    with Tap.in_thread(cluster.bootstrap, traffic=traffic) as tap:
        fault = tap.faults.add("Produce client=tapped throttle=20ms")
        asyncio.run(used(tap, fault))
    (answer,) = [
        entry.message
        for entry in traffic.entries()
        if entry.direction == "response" and getattr(entry.message, "throttle_time_ms", None)
    ]
    assert getattr(answer, "throttle_time_ms", None) == 20
