"""Services that produce, each with a planted mistake and without."""

from __future__ import annotations

import asyncio
import json
import random
import signal
import time
import uuid
from typing import Any

from aiokafka import ConsumerRebalanceListener, TopicPartition
from aiokafka.errors import KafkaError

from coordwire.testing.simulation import SimulatedKafka, SimulatedWorld
from tests.testing.simulation.planted.common import (
    after,
    consumer,
    load,
    partition_of,
    producer,
    running,
    scenario,
    values,
)


class WholeTransactions(ConsumerRebalanceListener):  # type: ignore[misc]
    """Partitions are given up between transactions only: the next position is read after them."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()

    async def on_partitions_revoked(self, revoked: Any) -> None:
        async with self.lock:
            pass

    async def on_partitions_assigned(self, assigned: Any) -> None:
        pass


class PricingDown(Exception):
    pass


async def transfer(bootstrap: str, world: SimulatedWorld, bug: bool) -> None:
    whole = WholeTransactions()
    reader = consumer(bootstrap, group="transfer")
    reader.subscribe(["orders"], listener=whole)
    async with running(producer(bootstrap, transactional_id="transfer")) as writer, running(reader):
        async for record in reader:
            async with whole.lock:
                try:
                    async with writer.transaction():  # which does not abort what is fenced
                        await writer.send("moves", b"debit " + record.value)
                        await world.slow(0.02)
                        if random.random() < 0.1:
                            if bug:
                                continue
                            raise PricingDown
                        await writer.send("moves", b"credit " + record.value)
                        await writer.send_offsets_to_transaction(after(record), "transfer")
                except PricingDown:
                    reader.seek(partition_of(record), record.offset)


@scenario({"orders": 1, "moves": 1})
async def half_transaction(kafka: SimulatedKafka, world: SimulatedWorld, bug: bool) -> None:
    world.start("transfer", transfer, kafka.bootstrap, world, bug)
    await load(kafka, world, "orders", [f"{n}" for n in range(20)])
    await world.calm()
    await world.caught_up("transfer", "orders")
    moves = values(kafka, "moves", committed=True)
    assert sorted(moves) == sorted(f"{side} {n}" for n in range(20) for side in ("debit", "credit"))


async def enrich(bootstrap: str, world: SimulatedWorld, bug: bool) -> None:
    whole = WholeTransactions()
    reader = consumer(bootstrap, group="enrich", isolation_level="read_committed")
    reader.subscribe(["orders"], listener=whole)
    async with running(producer(bootstrap, transactional_id="enrich")) as writer, running(reader):
        async for record in reader:
            async with whole.lock:
                async with writer.transaction():
                    await world.slow(0.02)
                    await writer.send_and_wait("enriched", record.value)
                    if not bug:
                        await writer.send_offsets_to_transaction(after(record), "enrich")
                if bug:
                    await reader.commit(after(record))


@scenario({"orders": 1, "enriched": 1})
async def offsets_outside_transaction(kafka: SimulatedKafka, world: SimulatedWorld, bug: bool) -> None:
    world.start("enrich", enrich, kafka.bootstrap, world, bug)
    await load(kafka, world, "orders", [f"{n}" for n in range(30)])
    await world.calm()
    await world.caught_up("enrich", "orders")
    enriched = [int(value) for value in values(kafka, "enriched", committed=True)]
    assert sorted(enriched) == list(range(30))


async def shop(bootstrap: str, world: SimulatedWorld, sent: set[tuple[int, str]], bug: bool) -> None:
    async with running(producer(bootstrap, enable_idempotence=True)) as writer:
        for number in range(15):
            for what in ("created", "paid"):
                if (number, what) in sent:
                    continue
                value = json.dumps({"order": number, "what": what}).encode()
                await writer.send_and_wait("orders", value, key=None if bug else str(number).encode())
                sent.add((number, what))
                await asyncio.sleep(random.expovariate(1 / 0.5))
        await world.calm()


async def track(bootstrap: str, world: SimulatedWorld, table: Any) -> None:
    async with running(consumer(bootstrap, "orders", group="track")) as reader:
        async for record in reader:
            await world.slow(0.02)
            event = json.loads(record.value)
            if event["what"] == "created":
                table.setdefault(event["order"], "created")
            elif event["order"] in table:  # of others we know nothing
                table[event["order"]] = "paid"
            world.processed(record)
            await reader.commit(after(record))


@scenario({"orders": 3})
async def order_across_partitions(kafka: SimulatedKafka, world: SimulatedWorld, bug: bool) -> None:
    sent: Any = set()
    table: Any = {}
    for name in ("track-1", "track-2"):
        world.start(name, track, kafka.bootstrap, world, table)
    world.start("shop", shop, kafka.bootstrap, world, sent, bug)
    await world.calm()
    await world.until(lambda: len(sent) == 30)
    await world.caught_up("track", "orders")
    assert table == dict.fromkeys(range(15), "paid")


async def relay(bootstrap: str, world: SimulatedWorld, outbox: set[int], bug: bool) -> None:
    async with running(producer(bootstrap)) as writer:
        while True:
            for number in sorted(outbox):
                while True:
                    unique = str(uuid.uuid4()) if bug else f"order-{number}"
                    value = json.dumps({"id": unique, "order": number}).encode()
                    try:
                        await asyncio.wait_for(writer.send_and_wait("orders", value), 2)
                        break
                    except TimeoutError:
                        pass
                outbox.discard(number)
            await asyncio.sleep(0.2)


async def ship(bootstrap: str, world: SimulatedWorld, shipped: list[int], known: set[str]) -> None:
    async with running(consumer(bootstrap, "orders", group="ship")) as reader:
        async for record in reader:
            order = json.loads(record.value)
            await world.slow(0.02)
            if order["id"] not in known:
                known.add(order["id"])
                shipped.append(order["order"])
            world.processed(record)
            await reader.commit(after(record))


@scenario({"orders": 1})
async def id_of_each_attempt(kafka: SimulatedKafka, world: SimulatedWorld, bug: bool) -> None:
    outbox: Any = set()
    shipped: Any = []
    known: Any = set()
    world.start("relay", relay, kafka.bootstrap, world, outbox, bug)
    world.start("ship", ship, kafka.bootstrap, world, shipped, known)
    for number in range(30):
        outbox.add(number)
        await asyncio.sleep(random.expovariate(1))
    await world.calm()
    await world.until(lambda: not outbox)
    await world.caught_up("ship", "orders")
    assert sorted(shipped) == list(range(30))


async def tick(bootstrap: str, world: SimulatedWorld, table: Any, bug: bool) -> None:
    async with running(producer(bootstrap)) as writer:
        while True:
            due = int(world.now // 10)
            first = due if bug else table["last"] + 1
            for number in range(max(first, table["last"] + 1), due + 1):
                await writer.send_and_wait("ticks", str(number).encode())
                table["last"] = number
            await asyncio.sleep(1)


@scenario({"ticks": 1})
async def missed_ticks(kafka: SimulatedKafka, world: SimulatedWorld, bug: bool) -> None:
    table: Any = {"last": -1}
    world.start("tick", tick, kafka.bootstrap, world, table, bug)
    await world.calm()
    await asyncio.sleep(30)
    ticks = {int(value) for value in values(kafka, "ticks")}
    assert ticks == set(range(max(ticks) + 1))


async def invoice(bootstrap: str, world: SimulatedWorld, bug: bool) -> None:
    async with (
        running(producer(bootstrap)) as writer,
        running(consumer(bootstrap, "orders", group="invoices")) as reader,
    ):
        async for record in reader:
            await world.slow(0.02)
            future = await writer.send("invoices", record.value)
            if not bug:
                await future
            world.processed(record)
            await reader.commit(after(record))


@scenario({"orders": 1, "invoices": 1})
async def future_not_awaited(kafka: SimulatedKafka, world: SimulatedWorld, bug: bool) -> None:
    world.start("invoices", invoice, kafka.bootstrap, world, bug)
    await load(kafka, world, "orders", [f"{n}" for n in range(40)])
    await world.calm()
    await world.caught_up("invoices", "orders")
    assert {int(value) for value in values(kafka, "invoices")} == set(range(40))


async def label(bootstrap: str, world: SimulatedWorld, bug: bool) -> None:
    stopping = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)
    writer = producer(bootstrap, linger_ms=1000)
    reader = consumer(bootstrap, "orders", group="labels")
    try:
        await writer.start()
        await reader.start()
        done: Any = {}
        unsent: Any = []
        flushed = time.monotonic()
        while not stopping.is_set():
            for records in (await reader.getmany(timeout_ms=200, max_records=5)).values():
                for record in records:
                    unsent.append(await writer.send("labels", record.value))
                    done.update(after(record))
            if len(unsent) >= 5 or (unsent and time.monotonic() > flushed + 10):
                await asyncio.gather(*unsent)
                await reader.commit(done)
                unsent, done = [], {}
                flushed = time.monotonic()
        if done:
            if not bug:
                await asyncio.gather(*unsent)
            await reader.commit(done)
    finally:
        await reader.stop()
        if not bug:
            await writer.stop()


@scenario({"orders": 1, "labels": 1})
async def flush_forgotten(kafka: SimulatedKafka, world: SimulatedWorld, bug: bool) -> None:
    world.start("labels", label, kafka.bootstrap, world, bug)
    await load(kafka, world, "orders", [f"{n}" for n in range(40)])
    await world.calm()
    await asyncio.sleep(5)
    kafka.produce("orders", *(f"{n}" for n in range(40, 50)))
    await world.until(lambda: world.lag("labels", "orders") < 5)
    await asyncio.sleep(5)
    labels = {int(value) for value in values(kafka, "labels")}
    assert set(range(45)) <= labels


async def nightly(bootstrap: str, world: SimulatedWorld, rows: set[int], bug: bool) -> None:
    async def attempt() -> None:
        writer = producer(bootstrap)
        try:
            await writer.start()
            for row in sorted(rows):
                await asyncio.wait_for(writer.send_and_wait("rows", str(row).encode()), 3)
                rows.discard(row)
                await asyncio.sleep(1)
        except (KafkaError, TimeoutError):
            if not bug:
                await writer.stop()
            raise
        except BaseException:
            await writer.stop()
            raise
        await writer.stop()

    while rows:
        try:
            await attempt()
        except (KafkaError, TimeoutError):
            await asyncio.sleep(1)


@scenario({"rows": 1})
async def producer_not_closed(kafka: SimulatedKafka, world: SimulatedWorld, bug: bool) -> None:
    rows = set(range(60))
    world.start("nightly", nightly, kafka.bootstrap, world, rows, bug)
    await world.calm()
    await world.until(lambda: not rows, within=120)  # a row a second
    assert {int(value) for value in values(kafka, "rows")} == set(range(60))


async def tally(bootstrap: str, world: SimulatedWorld, bug: bool) -> None:
    partition = TopicPartition("tally", 0)
    count = following = 0
    restoring = consumer(bootstrap)
    restoring.assign([partition])
    async with running(restoring):
        end = (await restoring.end_offsets([partition]))[partition]
        while True:
            found = await restoring.getmany(timeout_ms=300)
            for records in found.values():
                for record in records:
                    count, following = json.loads(record.value)
            if bug and not found:
                break
            if not bug and await restoring.position(partition) >= end:
                break
    async with (
        running(producer(bootstrap)) as writer,
        running(consumer(bootstrap, "orders", group="tally")) as reader,
    ):
        async for record in reader:
            if record.offset >= following:
                count, following = count + 1, record.offset + 1
                await world.slow(0.01)
                await writer.send_and_wait("tally", json.dumps([count, following]).encode())
            world.processed(record)
            await reader.commit(after(record))


@scenario({"orders": 1, "tally": 1})
async def restore_until_silence(kafka: SimulatedKafka, world: SimulatedWorld, bug: bool) -> None:
    world.start("tally", tally, kafka.bootstrap, world, bug)
    await load(kafka, world, "orders", [f"{n}" for n in range(40)])
    await world.calm()
    await world.caught_up("tally", "orders")
    assert json.loads(values(kafka, "tally")[-1]) == [40, 40]
