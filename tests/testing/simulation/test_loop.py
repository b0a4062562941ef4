"""The loop of a simulated world: virtual time, choices by the seed, what is replaced, what is refused."""

from __future__ import annotations

import asyncio
import datetime as datetimes
import gc
import logging
import multiprocessing
import os
import random
import secrets
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime
from time import monotonic as taken_by_its_name
from typing import Any

import pytest

from coordwire.testing.simulation import (
    LeftTheWorld,
    RunOutcome,
    SimulatedKafka,
    SimulatedWorld,
    Simulation,
    TooLong,
)
from coordwire.testing.simulation.surroundings import _functions_with_defaults

Body = Callable[[SimulatedWorld], Coroutine[Any, Any, object]]


def clock_of_its_own(clock: Callable[[], float] = time.time) -> float:
    return clock()


def run(body: Body, seed: int = 0, **arguments: Any) -> RunOutcome:
    """A run without faults."""

    async def test(kafka: SimulatedKafka, world: SimulatedWorld) -> None:
        await body(world)

    return Simulation(test=test, **({"nodes": 1} | arguments)).run(seed)


def passes(body: Body, seed: int = 0, **arguments: Any) -> RunOutcome:
    outcome = run(body, seed, **arguments)
    if outcome.failure is not None:
        raise outcome.failure
    return outcome


def test_sleeping_takes_no_time() -> None:
    began = time.monotonic()

    async def body(world: SimulatedWorld) -> None:
        start = asyncio.get_running_loop().time()
        await asyncio.sleep(40_000)
        assert 40_000 <= asyncio.get_running_loop().time() - start < 40_001

    outcome = passes(body)
    assert outcome.seconds > 40_000
    assert time.monotonic() - began < 40_000


def readings() -> list[float]:
    """What clocks show, in seconds."""
    return [
        time.time(), time.monotonic(), time.perf_counter(), taken_by_its_name(), time.process_time(),
        time.thread_time(), time.clock_gettime(time.CLOCK_MONOTONIC),
        time.clock_gettime_ns(time.CLOCK_REALTIME) / 1e9,
    ]  # fmt: skip


def test_all_clocks_are_the_worlds() -> None:
    async def body(world: SimulatedWorld) -> None:
        first = readings()
        assert datetime.now(UTC).year == date.today().year == datetimes.datetime.utcnow().year == 2026
        assert time.gmtime().tm_year == time.localtime().tm_year == 2026
        assert time.strftime("%Y") == "2026"
        assert abs(datetime.now(UTC).timestamp() - time.time()) < 0.001
        await asyncio.sleep(100)
        for before, now in zip(first, readings(), strict=True):
            assert 100 <= now - before < 100.1
        assert time.time_ns() // 10**9 == int(time.time())
        time.sleep(50)
        assert time.monotonic() - first[1] >= 150

    passes(body)
    assert date.today().year == datetime.now().year == time.gmtime(time.time()).tm_year
    assert abs(time.time() - datetime.now(UTC).timestamp()) < 60


class Stamp(datetime):
    """A subclass, as some libraries have."""


def test_a_subclass_of_datetime_stays_one() -> None:
    async def body(world: SimulatedWorld) -> None:
        assert type(Stamp.now()) is Stamp
        assert type(Stamp.now(UTC)) is Stamp
        assert Stamp.now(UTC).utcoffset() == datetimes.timedelta(0)
        assert Stamp.today().year == 2026

    passes(body)


def random_values() -> list[object]:
    order = list(range(20))
    random.shuffle(order)
    return [
        random.random(), random.Random().random(), random.SystemRandom().random(), uuid.uuid4(), uuid.uuid1(),
        os.urandom(8), secrets.token_hex(8), order,
    ]  # fmt: skip


def test_randomness_comes_from_the_seed() -> None:
    observed: list[list[object]] = []

    async def body(world: SimulatedWorld) -> None:
        observed.append(random_values())

    for seed in (1, 1, 2):
        passes(body, seed)
    assert observed[0] == observed[1]
    assert all(first != second for first, second in zip(observed[0], observed[2], strict=True))


def test_the_state_of_random_is_as_before() -> None:
    async def body(world: SimulatedWorld) -> None:
        random.random()

    random.seed(5)
    expected = random.Random(5).random()
    passes(body)
    assert random.random() == expected


def test_the_seed_chooses_the_order_of_what_is_due() -> None:
    orders = set()

    async def body(world: SimulatedWorld) -> None:
        order: list[int] = []
        loop = asyncio.get_running_loop()
        at = loop.time() + 1
        for number in range(4):
            loop.call_at(at, order.append, number)
        await asyncio.sleep(2)
        orders.add(tuple(order))

    for seed in range(30):
        passes(body, seed)
    assert len(orders) > 5


def test_call_soon_keeps_its_order() -> None:
    async def body(world: SimulatedWorld) -> None:
        order: list[int] = []
        for number in range(100):
            asyncio.get_running_loop().call_soon(order.append, number)
        await asyncio.sleep(0.01)
        assert order == list(range(100))

    for seed in range(3):
        passes(body, seed)


def test_sets_of_tasks_have_the_order_of_the_seed() -> None:
    orders = []

    async def body(world: SimulatedWorld) -> None:
        tasks = {asyncio.create_task(asyncio.sleep(1), name=str(number)) for number in range(20)}
        orders.append([task.get_name() for task in tasks])
        await asyncio.wait(tasks)

    objects = []
    for seed in (1, 1, 2):
        passes(body, seed)
        objects.append([object() for _ in range(1_000)])  # other addresses
    assert orders[0] == orders[1] != orders[2]


def test_a_process_handles_the_signal_that_stops_it() -> None:
    handled: list[str] = []

    async def serve(name: str) -> None:
        loop, stopped = asyncio.get_running_loop(), asyncio.Event()
        loop.add_signal_handler(signal.SIGTERM, stopped.set)
        assert not loop.remove_signal_handler(signal.SIGINT)
        await stopped.wait()
        handled.append(name)

    async def test(kafka: SimulatedKafka, world: SimulatedWorld) -> None:
        world.start("one", serve, "one")
        service = world.start("two", serve, "two")
        await asyncio.sleep(1)
        await service.stop()
        assert handled == ["two"]

    outcome = Simulation(test=test, nodes=1).run(0)
    assert outcome.failure is None, outcome.reason
    assert handled == ["two", "one"]

    async def outside(kafka: SimulatedKafka, world: SimulatedWorld) -> None:
        world.loop.call_exactly(1.0, world.loop.add_signal_handler, signal.SIGTERM, print)
        await asyncio.sleep(2)

    assert "waits for signals outside of a process" in Simulation(test=outside, nodes=1).run(0).reason


def test_what_anyio_runs_in_a_thread_runs_in_its_turn() -> None:
    anyio = pytest.importorskip("anyio", reason="anyio isn't installed")

    async def test(kafka: SimulatedKafka, world: SimulatedWorld) -> None:
        began = world.now
        assert await anyio.to_thread.run_sync(threading.get_ident) == threading.get_ident()
        assert began < world.now < began + 1

    outcome = Simulation(test=test, nodes=1).run(0)
    assert outcome.failure is None, outcome.reason
    assert anyio.run(anyio.to_thread.run_sync, threading.get_ident) != threading.get_ident()


def test_an_executor_runs_in_its_turn() -> None:
    async def body(world: SimulatedWorld) -> None:
        def work(value: int) -> int:
            with pytest.raises(RuntimeError, match="no running event loop"):
                asyncio.get_running_loop()
            return value + 1

        assert await asyncio.to_thread(work, 1) == 2
        assert await asyncio.get_running_loop().run_in_executor(None, work, 4) == 5
        with pytest.raises(ZeroDivisionError):
            await asyncio.to_thread(lambda: 1 // 0)

    passes(body)


def spawn() -> None:
    multiprocessing.get_context("spawn").Process(target=print).start()


WAYS_OUT: list[tuple[str, Callable[[], object]]] = [
    ("threads", lambda: threading.Thread(target=print).start()),
    ("threads", lambda: ThreadPoolExecutor().submit(print)),
    ("sockets", socket.socket),
    ("sockets", lambda: socket.getaddrinfo("localhost", 80)),
    ("subprocesses", lambda: subprocess.run([sys.executable, "-V"], check=False)),
    ("subprocesses", spawn),
    ("fsync", lambda: os.fsync(0)),
]


@pytest.mark.parametrize(("way", "leave"), WAYS_OUT)
def test_the_way_out_is_refused_by_its_line(way: str, leave: Callable[[], object]) -> None:
    async def body(world: SimulatedWorld) -> None:
        try:
            leave()  # this line
        except Exception:  # as a client that swallows all errors
            await asyncio.sleep(1)

    failure = run(body).failure
    assert isinstance(failure, LeftTheWorld)
    assert "test_loop.py:" in str(failure)
    assert f"allow=({way!r},)" in str(failure)


def test_the_way_out_is_allowed_by_name() -> None:
    async def body(world: SimulatedWorld) -> None:
        with socket.socket() as real:
            assert real.fileno() >= 0

    passes(body, allow=("sockets",))


@pytest.mark.parametrize("name", ["add_reader", "sock_recv", "create_datagram_endpoint", "subprocess_exec"])
def test_what_a_loop_does_outside_is_refused(name: str) -> None:
    async def body(world: SimulatedWorld) -> None:
        getattr(asyncio.get_running_loop(), name)(0)

    failure = run(body).failure
    assert isinstance(failure, LeftTheWorld)
    assert "test_loop.py" in str(failure)


def test_tls_within_a_connection_is_refused() -> None:
    async def body(world: SimulatedWorld) -> None:
        _, writer = await asyncio.open_connection("127.0.0.1", 9092)
        await writer.start_tls(ssl.create_default_context())

    assert "starts TLS within a connection" in str(run(body).failure)


def test_other_threads_have_the_real_time() -> None:
    observed: list[float] = []
    go, looked = threading.Event(), threading.Event()

    def look() -> None:
        go.wait(20)
        observed.append(time.time())
        looked.set()

    thread = threading.Thread(target=look)
    thread.start()
    before = time.time()

    async def body(world: SimulatedWorld) -> None:
        go.set()
        looked.wait(20)

    passes(body)
    thread.join()
    assert abs(observed[0] - before) < 3600


def test_a_world_has_an_end() -> None:
    async def body(world: SimulatedWorld) -> None:
        while True:
            await asyncio.sleep(100)

    failure = run(body, limit=10_000).failure
    assert isinstance(failure, TooLong)
    assert "test (test_loop.py:" in str(failure)


def test_code_that_asks_the_clock_gets_on() -> None:
    async def body(world: SimulatedWorld) -> None:
        end = time.monotonic() + 0.1
        while time.monotonic() < end:
            await asyncio.sleep(0)

    passes(body)


def test_the_log_has_virtual_times() -> None:
    async def body(world: SimulatedWorld) -> None:
        await asyncio.sleep(12)
        logging.getLogger("shop").warning("closed %s", object())
        raise AssertionError("for its log")

    outcome = run(body)
    (line,) = [line for line in outcome.log_lines if "shop" in line]
    assert line.split()[:3] == [line.split()[0], "test", "WARNING"]
    assert 12 <= float(line.split()[0]) < 12.1
    assert "0x…" in line


def test_what_is_printed_is_in_the_log(capsys: pytest.CaptureFixture[str]) -> None:
    async def body(world: SimulatedWorld) -> None:
        await asyncio.sleep(12)
        print("tea,", end=" ")
        print(f"and cake\n{object()}")
        raise AssertionError("for its log")

    outcome = run(body)
    lines = [line.split(maxsplit=3) for line in outcome.log_lines if "PRINT" in line]
    assert [line[1:] for line in lines] == [
        ["test", "PRINT", "tea, and cake"],
        ["test", "PRINT", "<object object at 0x…>"],
    ]
    assert capsys.readouterr().out.startswith("tea, and cake\n<object")


def test_a_line_of_the_log_that_is_repeated_is_one() -> None:
    async def body(world: SimulatedWorld) -> None:
        for number in range(500):
            logging.getLogger("shop").warning("closed")
            logging.getLogger("shop").warning("opened")
            if number == 250:
                for till in range(9):
                    logging.getLogger("shop").warning("till %s", till)
            await asyncio.sleep(1)
        raise AssertionError("for its log")

    lines = [line for line in run(body).log_lines if "shop" in line]
    assert len(lines) == 13
    assert all("(251 times until 250." in line for line in lines[:2])
    assert all("(249 times until 499." in line for line in lines[-2:])


def test_a_run_within_a_run_is_refused() -> None:
    async def body(world: SimulatedWorld) -> None:
        with pytest.raises(RuntimeError):
            passes(body)

    passes(body)


def test_defaults_of_frozen_functions_are_replaced() -> None:
    assert clock_of_its_own in _functions_with_defaults([time.time])
    gc.freeze()
    try:
        assert clock_of_its_own in _functions_with_defaults([time.time])
        assert gc.get_freeze_count()
    finally:
        gc.unfreeze()
