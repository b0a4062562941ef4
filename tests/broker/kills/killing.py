"""The broker that is killed, and the verdict on what it left."""

from __future__ import annotations

import asyncio
import random
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from coordwire.enums import ErrorCode
from coordwire.messages import (
    FetchRequest,
    InitProducerIdRequest,
)
from coordwire.messages.fetch import FetchPartition, FetchTopic
from coordwire.records import batches
from coordwire.segments import Segment
from tests.broker.kills.group_members import ClassicMember, ConsumerMember
from tests.broker.kills.repeating_link import (
    COMMITTED,
    LEDGER,
    PARTITIONS,
    READ,
    TOPIC,
    WAIT,
    Link,
    Stopped,
    Wrong,
    committed,
    expect,
)
from tests.broker.kills.writers import Committer, Ledger, Producer
from tests.broker.served import Served

_SHORTEST, _LONGEST = 0.05, 0.5
"""Seconds that a broker lives."""


def verify(folder: Path) -> int:
    """Verify all segments; how many there are."""
    paths = sorted(folder.glob("*-*/*.log"))
    for path in paths:
        for attempt in range(3):
            with Segment(path) as segment:
                faults = list(segment.verify())
            if not faults:
                break
            if attempt == 2:
                raise Wrong(f"{path.relative_to(folder)}: {faults[0]}")
            time.sleep(0.05)  # the broker has appended to the log and its index while they were read
    return len(paths)


async def run(folder: Path, count: int, seed: int, report: Callable[[str], None] = print) -> None:
    """Kill a broker so many times. Raises `Wrong`."""
    source = random.Random(seed)
    served = Served(folder, {TOPIC: PARTITIONS, LEDGER: PARTITIONS})
    stop = asyncio.Event()
    links = [Link(served.port, stop) for _ in range(6)]
    producer, ledger, committer = Producer(links[0]), Ledger(links[1]), Committer(links[2])
    classic, consumer = ClassicMember(links[3]), ConsumerMember(links[4])
    await asyncio.to_thread(served.start)
    clients = [asyncio.create_task(one.run()) for one in (producer, ledger, committer, classic, consumer)]
    try:
        for number in range(count):
            await asyncio.sleep(source.uniform(_SHORTEST, _LONGEST))
            served.end()
            await asyncio.to_thread(served.start)
            segments = verify(folder)
            for client in clients:
                if client.done():
                    client.result()
            if (number + 1) % 25 == 0:
                report(f"{number + 1} kills, {links[0].calls} batches, {segments} segments")
        await _go_on(lambda: (links[0].calls, len(ledger.committed), committer.acknowledged))
        stop.set()
        for client in clients:
            with suppress(Stopped):
                await client
        stop.clear()
        await judge(links[5], producer, ledger, committer)
        served.end(signal.SIGTERM)
        verify(folder)
        report(
            f"{count} kills (seed {seed}): {len(producer.acknowledged)} records, {len(ledger.committed)} and"
            f" {len(ledger.aborted)} transactions committed and aborted, {len(ledger.unknown)} without an"
            f" answer, {committer.acknowledged} commits, {classic.heartbeats + consumer.heartbeats}"
            f" heartbeats, {sum(link.losses for link in links)} requests without an answer"
        )
    finally:
        for client in clients:
            client.cancel()
        await asyncio.gather(*clients, return_exceptions=True)
        for link in links:
            link.close()
        served.end()


async def _go_on(done: Callable[[], tuple[int, ...]]) -> None:
    """Wait until each client has done more than it had. Raises `Wrong` if one is stuck."""
    before, deadline = done(), time.monotonic() + WAIT
    while not all(new > old for old, new in zip(before, done(), strict=True)):
        if time.monotonic() > deadline:
            raise Wrong(f"a client is stuck: {before}, then {done()} after {WAIT} s")
        await asyncio.sleep(0.1)


async def judge(link: Link, producer: Producer, ledger: Ledger, committer: Committer) -> None:
    logs = await read_logs(link, TOPIC, committed_only=False)
    places = {value: (index, offset) for index, log in enumerate(logs) for offset, value in log}
    values = [value for log in logs for _, value in log]
    if len(places) != len(values):
        raise Wrong("a value is in the log twice")
    for value, place in producer.acknowledged.items():
        if places.get(value) != place:
            raise Wrong(f"{value!r} was acknowledged at {place}, and is at {places.get(value)}")
    extra = places.keys() - producer.acknowledged.keys() - producer.open.keys()
    if extra:
        raise Wrong(f"values that nobody wrote: {sorted(extra)[:5]}")
    request = InitProducerIdRequest(transactional_id="ledger", transaction_timeout_ms=60_000)
    while (await link.ask(request, 5)).error_code == ErrorCode.CONCURRENT_TRANSACTIONS:
        await asyncio.sleep(0.01)
    logs = await read_logs(link, LEDGER, committed_only=True)
    seen = [[int(value) for _, value in log] for log in logs]
    if any(one != seen[0] for one in seen):
        raise Wrong("a transaction is seen in one partition, and not in another")
    if len(set(seen[0])) != len(seen[0]):
        raise Wrong("a transaction is seen twice")
    missing = set(ledger.committed) - set(seen[0])
    wrong = set(seen[0]) & set(ledger.aborted)
    unknown = set(seen[0]) - set(ledger.committed) - set(ledger.unknown)
    if missing or wrong or unknown:
        raise Wrong(f"transactions missing {missing}, seen though aborted {wrong}, unknown {unknown}")
    if any(number % 4 == 0 for number in seen[0]):
        raise Wrong("a transaction that was to be aborted was committed")
    offset = await committed(link, READ, LEDGER)
    if offset != seen[0][-1]:
        raise Wrong(f"the transactions' offset is {offset}, expected {seen[0][-1]}")
    result = await committed(link, COMMITTED, TOPIC)
    if not committer.acknowledged <= result <= committer.sent:
        raise Wrong(f"committed offset {result}, expected {committer.acknowledged} to {committer.sent}")


async def read_logs(link: Link, topic: str, committed_only: bool) -> list[list[tuple[int, bytes]]]:
    """Offsets and values, by partition."""
    results: list[list[tuple[int, bytes]]] = []
    for index in range(PARTITIONS):
        values: list[tuple[int, bytes]] = []
        offset = 0
        while True:
            part = FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=1 << 24)
            request = FetchRequest(
                max_wait_ms=0, min_bytes=0, isolation_level=int(committed_only), session_epoch=-1,
                topics=[FetchTopic(topic=topic, partitions=[part])],
            )  # fmt: skip
            (answer,) = (await link.ask(request, 12)).responses[0].partitions
            expect("Fetch", answer.error_code)
            read = list(batches(answer.records or b""))
            if not read:
                break
            starts = sorted(
                (batch.first_offset, batch.producer_id) for batch in answer.aborted_transactions or ()
            )
            aborted: set[int] = set()
            for one in read:
                while starts and starts[0][0] <= one.last_offset:
                    aborted.add(starts.pop(0)[1])
                if one.is_control:
                    aborted.discard(one.producer_id)
                elif not (one.transactional and one.producer_id in aborted):
                    values += [
                        (record.offset, bytes(record.value or b""))
                        for record in one
                        if record.offset >= offset
                    ]
            offset = read[-1].last_offset + 1
        results.append(values)
    return results
