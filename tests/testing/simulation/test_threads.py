"""Threads that a world allows, for which the world waits, and code that never waits."""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from coordwire.testing.simulation import (
    RunOutcome,
    SimulatedKafka,
    SimulatedWorld,
    Simulation,
    TooLong,
    parse_plan,
    threads,
)

Body = Callable[[SimulatedWorld], Awaitable[None]]


def simulation_of(body: Body, plan: str = "") -> Simulation:
    async def test(kafka: SimulatedKafka, world: SimulatedWorld) -> None:
        await body(world)

    return Simulation(test=test, nodes=1, allow=("threads",), faults=parse_plan(plan))


def run(body: Body, plan: str = "") -> RunOutcome:
    return simulation_of(body, plan).run(0)


def passes(body: Body, plan: str = "") -> RunOutcome:
    outcome = simulation_of(body, plan).check(0)
    assert outcome.failure is None, outcome.reason
    return outcome


class Store:
    """A store with a thread of its own, as aiosqlite has it."""

    def __init__(self) -> None:
        self.work: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.rows: list[int] = []
        threading.Thread(target=self._serve).start()

    def _serve(self) -> None:
        while (asked := self.work.get()) is not None:
            future, row = asked
            time.sleep(0.002)  # of the real clock
            self.rows.append(row)
            future.get_loop().call_soon_threadsafe(future.set_result, len(self.rows))

    async def add(self, row: int) -> int:
        future = asyncio.get_running_loop().create_future()
        self.work.put((future, row))
        count: int = await future
        return count


def test_no_time_passes_while_a_thread_works() -> None:
    stores: list[Store] = []

    async def serve(world: SimulatedWorld) -> None:
        store = Store()
        stores.append(store)
        for row in range(10):
            before = world.now
            assert await store.add(row) == row + 1
            assert world.now - before < 0.001
            await asyncio.sleep(1)
        store.work.put(None)

    async def body(world: SimulatedWorld) -> None:
        world.start("store", serve, world)
        await asyncio.sleep(20)
        assert stores[-1].rows == list(range(10))
        assert not world.loop.threads.are_there

    passes(body)


def test_aiosqlite_works() -> None:
    aiosqlite = pytest.importorskip("aiosqlite", reason="aiosqlite isn't installed")

    async def body(world: SimulatedWorld) -> None:
        async with aiosqlite.connect(":memory:") as store:
            await store.execute("create table orders (name)")
            await store.execute("insert into orders values ('tea')")
            async with store.execute("select name from orders") as rows:
                assert await rows.fetchone() == ("tea",)
        assert world.now < 1

    passes(body)


def test_results_come_in_the_order_of_threads() -> None:
    async def body(world: SimulatedWorld) -> None:
        order: list[int] = []
        loop = asyncio.get_running_loop()

        def work(number: int) -> None:
            time.sleep(0.03 * (2 - number))  # the first is the last to be done
            loop.call_soon_threadsafe(order.append, number)

        for number in range(3):
            threading.Thread(target=work, args=(number,)).start()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert order == [0, 1, 2]

    passes(body)


def test_a_thread_of_a_frozen_process_gives_nothing_until_it_goes_on() -> None:
    seen: list[float] = []

    async def serve(world: SimulatedWorld) -> None:
        store = Store()
        loop = asyncio.get_running_loop()
        while True:
            await store.add(1)
            loop.call_soon_threadsafe(lambda: seen.append(world.now))
            await asyncio.sleep(1)

    async def body(world: SimulatedWorld) -> None:
        seen.clear()
        world.start("store", serve, world)
        await world.calm(5)

    passes(body, "5s freeze store for 20s")
    assert seen
    assert not [at for at in seen if 5.1 < at < 25]


def test_a_process_may_die_with_its_thread() -> None:
    async def serve() -> None:
        store = Store()
        while True:
            await store.add(1)
            await asyncio.sleep(1)

    async def body(world: SimulatedWorld) -> None:
        service = world.start("store", serve)
        await world.calm(5)
        assert service.starts == 2

    passes(body, "5s crash store for 2s")


def test_a_thread_that_never_rests_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "_LOOKS", 20)
    gate = threading.Lock()
    gate.acquire()

    def listen() -> None:
        gate.acquire()

    async def body(world: SimulatedWorld) -> None:
        threading.Thread(target=listen, name="listener").start()
        await asyncio.sleep(1)

    reason = run(body).reason
    gate.release()
    line = listen.__code__.co_firstlineno + 1
    assert reason.startswith("Restless: the thread listener neither ends nor waits for a queue")
    assert f"is at {__file__}:{line}: the world would wait" in reason
    assert "asyncio.to_thread" in reason


@pytest.mark.parametrize("clock", [lambda: time.monotonic(), lambda: time.time()])  # looked up in a world
@pytest.mark.parametrize("swallows", [False, True])
def test_code_that_waits_for_the_clock_without_an_await_is_found(
    clock: Callable[[], float], swallows: bool
) -> None:
    async def body(world: SimulatedWorld) -> None:
        end = clock() + 1
        while True:
            try:
                if clock() >= end:
                    break
            except TooLong:
                if not swallows:
                    raise
        await asyncio.sleep(1)

    outcome = run(body)
    assert isinstance(outcome.failure, TooLong)
    assert outcome.reason.endswith("without an await: time passes only while all tasks wait")
    assert f"{__file__}:" in outcome.reason
    assert outcome.digest == run(body).digest


def test_many_looks_at_the_clock_are_none() -> None:
    async def body(world: SimulatedWorld) -> None:
        for _ in range(20):
            for _ in range(20_000):
                time.monotonic()
            await asyncio.sleep(0)

    passes(body)
