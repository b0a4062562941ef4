"""Services that consume and write to a table, each with a planted mistake and without."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

from aiokafka import ConsumerRebalanceListener, TopicPartition

from coordwire.testing.simulation import SimulatedKafka, SimulatedWorld
from tests.testing.simulation.planted.common import after, consumer, load, partition_of, running, scenario


async def save(bootstrap: str, world: SimulatedWorld, table: Any, bug: bool) -> None:
    refused: type[BaseException] = BaseException if bug else Exception
    async with running(consumer(bootstrap, "orders", group="books")) as reader:
        async for record in reader:
            while True:
                try:
                    await world.slow(0.02)
                    table.add(record.value)
                    break
                except refused:
                    await asyncio.sleep(0.1)
            world.processed(record)
            await reader.commit(after(record))


@scenario({"orders": 1})
async def swallowed_cancel(kafka: SimulatedKafka, world: SimulatedWorld, bug: bool) -> None:
    table: Any = set()
    world.start("books", save, kafka.bootstrap, world, table, bug)
    await load(kafka, world, "orders", [f"{n}" for n in range(30)])
    await world.calm()
    await world.caught_up("books", "orders")
    assert len(table) == 30


async def archive(bootstrap: str, world: SimulatedWorld, table: Any, bug: bool) -> None:
    reader = consumer(bootstrap, "orders", group="archive")
    buffer: Any = []

    async def flush() -> None:
        if buffer:
            await world.slow(0.03)
            table.update(record.value for record in buffer)
            for record in buffer:
                world.processed(record)
            buffer.clear()
        await reader.commit()

    try:
        await reader.start()
        flushed = time.monotonic()
        while True:
            for records in (await reader.getmany(timeout_ms=500, max_records=5)).values():
                buffer += records
            if len(buffer) >= 5 or time.monotonic() > flushed + 3:
                await flush()
                flushed = time.monotonic()
    except asyncio.CancelledError:
        if bug:
            await reader.commit()
        else:
            await flush()
        raise
    finally:
        await reader.stop()


@scenario({"orders": 1})
async def buffer_on_shutdown(kafka: SimulatedKafka, world: SimulatedWorld, bug: bool) -> None:
    table: Any = set()
    world.start("archive", archive, kafka.bootstrap, world, table, bug)
    await load(kafka, world, "orders", [f"{n}" for n in range(40)])
    await world.calm()
    await world.caught_up("archive", "orders")
    assert len(table) == 40


async def parse(bootstrap: str, world: SimulatedWorld, table: Any, dead: list[bytes], bug: bool) -> None:
    refused: type[Exception] = Exception if bug else ConnectionError
    async with running(consumer(bootstrap, "orders", group="parse")) as reader:
        async for record in reader:
            while True:
                try:
                    table.append(json.loads(record.value)["id"])
                    break
                except refused:
                    await asyncio.sleep(1)
                except ValueError:
                    dead.append(record.value)
                    break
            world.processed(record)
            await reader.commit(after(record))


@scenario({"orders": 2})
async def poison(kafka: SimulatedKafka, world: SimulatedWorld, bug: bool) -> None:
    table: Any = []
    dead: Any = []
    for name in ("parse-1", "parse-2"):
        world.start(name, parse, kafka.bootstrap, world, table, dead, bug)
    texts = [json.dumps({"id": n}) for n in range(20)]
    texts[7] = '{"id": 7'
    await load(kafka, world, "orders", texts, 2)
    await world.calm()
    await world.caught_up("parse", "orders")
    assert set(table) == set(range(20)) - {7}
    assert dead


async def book(
    bootstrap: str, world: SimulatedWorld, balance: dict[str, int], booked: set[tuple[int, int]], bug: bool
) -> None:
    async with running(consumer(bootstrap, "payments", group="balance")) as reader:
        async for record in reader:
            await world.slow(0.02)
            key = (record.partition, record.offset)
            if bug or key not in booked:
                booked.add(key)
                balance["all"] = balance.get("all", 0) + int(record.value)
            world.processed(record)
            await reader.commit(after(record))


@scenario({"payments": 2})
async def non_idempotent(kafka: SimulatedKafka, world: SimulatedWorld, bug: bool) -> None:
    balance: Any = {}
    booked: Any = set()
    for name in ("balance-1", "balance-2"):
        world.start(name, book, kafka.bootstrap, world, balance, booked, bug)
    await load(kafka, world, "payments", [str(n) for n in range(40)], 2)
    await world.calm()
    await world.caught_up("balance", "payments")
    assert balance["all"] == sum(range(40))


class Cache(dict[int, int], ConsumerRebalanceListener):  # type: ignore[misc]
    def __init__(self, bug: bool) -> None:
        self.bug = bug

    async def on_partitions_revoked(self, revoked: Any) -> None:
        if not self.bug:
            self.clear()

    async def on_partitions_assigned(self, assigned: Any) -> None:
        pass


async def count(bootstrap: str, world: SimulatedWorld, table: Any, bug: bool) -> None:
    cache = Cache(bug)
    reader = consumer(bootstrap, group="counts")
    reader.subscribe(["orders"], listener=cache)
    async with running(reader):
        async for record in reader:
            if record.partition not in cache:
                await world.slow(0.01)
                cache[record.partition] = table[record.partition][1]
            await world.slow(0.01)
            following, _ = table[record.partition]
            if following == record.offset and record.partition in cache:
                cache[record.partition] += 1
                table[record.partition] = (record.offset + 1, cache[record.partition])
            elif following <= record.offset:
                cache.pop(record.partition, None)
                reader.seek(partition_of(record), following)
                continue
            elif not bug:
                cache.pop(record.partition, None)
            world.processed(record)
            await reader.commit(after(record))


@scenario({"orders": 2})
async def stale_cache(kafka: SimulatedKafka, world: SimulatedWorld, bug: bool) -> None:
    table: Any = {0: (0, 0), 1: (0, 0)}
    for name in ("counts-1", "counts-2"):
        world.start(name, count, kafka.bootstrap, world, table, bug)
    await load(kafka, world, "orders", [f"{n}" for n in range(60)], 2)
    await world.calm()
    await world.caught_up("counts", "orders")
    assert table == {0: (30, 30), 1: (30, 30)}


async def copy(bootstrap: str, world: SimulatedWorld, table: Any, bug: bool) -> None:
    partition = TopicPartition("orders", 0)
    reader = consumer(bootstrap)
    reader.assign([partition])
    async with running(reader):
        reader.seek(partition, table["next"] + (1 if bug and table["next"] else 0))
        async for record in reader:
            await world.slow(0.02)
            table[record.offset] = record.value
            table["next"] = record.offset + 1


@scenario({"orders": 1})
async def seek_after_restart(kafka: SimulatedKafka, world: SimulatedWorld, bug: bool) -> None:
    table: Any = {"next": 0}
    world.start("copy", copy, kafka.bootstrap, world, table, bug)
    await load(kafka, world, "orders", [f"{n}" for n in range(30)])
    await world.calm()
    kafka.produce("orders", "last")
    await world.until(lambda: 30 in table)
    assert [n for n in range(31) if n not in table] == []


async def commit_same(bootstrap: str, world: SimulatedWorld, bug: bool) -> None:
    async with running(consumer(bootstrap, "orders", group="g")) as reader:
        async for record in reader:
            await world.slow(0.01)
            world.processed(record)
            await reader.commit({partition_of(record): record.offset + (0 if bug else 1)})


@scenario({"orders": 2})
async def offset_plus_one(kafka: SimulatedKafka, world: SimulatedWorld, bug: bool) -> None:
    world.start("one", commit_same, kafka.bootstrap, world, bug)
    await load(kafka, world, "orders", [f"{n}" for n in range(20)], 2)
    await world.calm()
    await world.caught_up("g", "orders")


async def charge(bootstrap: str, world: SimulatedWorld, charges: list[bytes], table: Any, bug: bool) -> None:
    seen = set() if bug else table
    async with running(consumer(bootstrap, "orders", group="charge")) as reader:
        async for record in reader:
            await world.slow(0.02)
            if record.value not in seen:
                seen.add(record.value)
                charges.append(record.value)
            world.processed(record)
            await reader.commit(after(record))


@scenario({"orders": 2})
async def dedup_in_memory(kafka: SimulatedKafka, world: SimulatedWorld, bug: bool) -> None:
    charges: Any = []
    table: Any = set()
    for name in ("charge-1", "charge-2"):
        world.start(name, charge, kafka.bootstrap, world, charges, table, bug)
    await load(kafka, world, "orders", [f"{n}" for n in range(40)], 2)
    await world.calm()
    await world.caught_up("charge", "orders")
    assert len(charges) == len(set(charges)) == 40


async def mail(bootstrap: str, world: SimulatedWorld, table: Any, group: str) -> None:
    async with running(consumer(bootstrap, "orders", group=group)) as reader:
        async for record in reader:
            await world.slow(0.01)
            table.add(record.value)
            await reader.commit(after(record))


@scenario({"orders": 2})
async def group_reused(kafka: SimulatedKafka, world: SimulatedWorld, bug: bool) -> None:
    mails: Any = set()
    bills: Any = set()
    world.start("mail", mail, kafka.bootstrap, world, mails, "mail")
    world.start("bill", mail, kafka.bootstrap, world, bills, "mail" if bug else "bill")
    await load(kafka, world, "orders", [f"{n}" for n in range(20)], 2)
    await world.calm()
    await world.caught_up("mail", "orders")
    await world.until(lambda: len(mails) == len(bills) == 20)


async def sell(
    bootstrap: str, world: SimulatedWorld, stock: dict[str, int], sold: set[tuple[int, int]], bug: bool
) -> None:
    async with running(consumer(bootstrap, "orders", group="stock")) as reader:
        async for record in reader:
            key = (record.partition, record.offset)
            if key not in sold:
                left = stock["tea"]
                await world.slow(0.01)
                if not bug:
                    left = stock["tea"]
                if key not in sold:
                    sold.add(key)
                    stock["tea"] = left - 1
            world.processed(record)
            await reader.commit(after(record))


@scenario({"orders": 2})
async def race_over_table(kafka: SimulatedKafka, world: SimulatedWorld, bug: bool) -> None:
    stock: Any = {"tea": 100}
    sold: Any = set()
    for name in ("stock-1", "stock-2"):
        world.start(name, sell, kafka.bootstrap, world, stock, sold, bug)
    await load(kafka, world, "orders", [f"{n}" for n in range(40)], 2)
    await world.calm()
    await world.caught_up("stock", "orders")
    assert stock["tea"] == 60


async def lead(
    bootstrap: str, world: SimulatedWorld, name: str, lease: dict[str, Any], done: list[bytes], bug: bool
) -> None:
    partition = TopicPartition("jobs", 0)
    reader = consumer(bootstrap)
    reader.assign([partition])
    async with running(reader):
        token = None
        while True:
            if lease["owner"] != name and time.time() > lease["until"]:
                lease.update(owner=name, token=lease["token"] + 1)
                token = lease["token"]
                reader.seek(partition, len(done))
            if lease["owner"] != name or lease["token"] != token:
                if lease["owner"] == name:  # of an earlier life
                    lease.update(owner=None, until=0)
                await asyncio.sleep(0.5)
                continue
            lease["until"] = time.time() + 5
            for records in (await reader.getmany(timeout_ms=300, max_records=1)).values():
                for record in records:
                    await world.slow(0.1)
                    if bug or (lease["token"] == token and len(done) == record.offset):
                        done.append(record.value)


@scenario({"jobs": 1})
async def lease_without_fencing(kafka: SimulatedKafka, world: SimulatedWorld, bug: bool) -> None:
    lease: Any = {"owner": None, "until": 0, "token": 0}
    done: Any = []
    for name in ("lead-1", "lead-2"):
        world.start(name, lead, kafka.bootstrap, world, name, lease, done, bug)
    await load(kafka, world, "jobs", [f"{n}" for n in range(40)], 1)
    await world.calm()
    await world.until(lambda: len(done) >= 40)
    assert done == [f"{n}".encode() for n in range(40)]
