"""The network of a simulated world: streams in memory, and its faults."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

import pytest

from coordwire.testing.simulation import RunOutcome, SimulatedKafka, SimulatedWorld, Simulation, parse_plan

Body = Callable[[SimulatedWorld], Coroutine[Any, Any, object]]


def run(body: Body, plan: str = "", seed: int = 0) -> RunOutcome:
    async def test(kafka: SimulatedKafka, world: SimulatedWorld) -> None:
        await body(world)

    return Simulation(test=test, nodes=1, faults=parse_plan(plan), checkers=()).run(seed)


def passes(body: Body, plan: str = "", seed: int = 0) -> RunOutcome:
    outcome = run(body, plan, seed)
    if outcome.failure is not None:
        raise outcome.failure
    return outcome


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65_536):
        writer.write(data)
        await writer.drain()
    writer.close()


async def serve() -> None:
    async with await asyncio.start_server(echo, "127.0.0.1", 7000) as server:
        await server.serve_forever()


async def connected(world: SimulatedWorld) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    world.start("echo", serve)
    await asyncio.sleep(0.5)
    return await asyncio.open_connection("echo", 7000)


def test_streams_carry_bytes_in_order() -> None:
    async def body(world: SimulatedWorld) -> None:
        reader, writer = await connected(world)
        sent = bytes(range(256)) * 8_000  # more than the window

        async def write() -> None:
            for at in range(0, len(sent), 100_000):
                writer.write(sent[at : at + 100_000])
                await writer.drain()
            writer.write_eof()

        task = asyncio.create_task(write())
        assert await reader.read() == sent
        await task
        writer.close()
        await writer.wait_closed()

    for seed in range(3):
        passes(body, seed=seed)


def test_a_writer_waits_for_a_reader() -> None:
    async def body(world: SimulatedWorld) -> None:
        async def never_reads(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await asyncio.sleep(1_000)
            writer.close()

        server = await asyncio.start_server(never_reads, "127.0.0.1", 7001, limit=1_000)
        _, writer = await asyncio.open_connection("127.0.0.1", 7001)

        written = 0

        async def write() -> None:
            nonlocal written
            while True:
                writer.write(bytes(100_000))
                written += 100_000
                await writer.drain()

        with pytest.raises(TimeoutError):
            await asyncio.wait_for(write(), 100)
        assert 0 < writer.transport.get_write_buffer_size() < written < 1_000_000
        writer.transport.abort()
        server.close()
        await asyncio.sleep(1_000)

    passes(body)


def test_nobody_listens() -> None:
    async def body(world: SimulatedWorld) -> None:
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", 7999)
        with pytest.raises(OSError, match="no machine"):
            await asyncio.open_connection("elsewhere.example", 7999)
        with pytest.raises(OSError, match="in use"):
            await asyncio.start_server(echo, "127.0.0.1", 9092)

    passes(body)


async def answered(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, data: bytes) -> float:
    """Seconds until data has come back."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    writer.write(data)
    assert await reader.readexactly(len(data)) == data
    return loop.time() - began


@pytest.mark.parametrize("fault", ["cut test echo", "block test echo", "block echo test", "freeze echo"])
def test_bytes_wait_until_a_fault_is_over(fault: str) -> None:
    async def body(world: SimulatedWorld) -> None:
        reader, writer = await connected(world)
        assert await answered(reader, writer, b"one") < 1
        await asyncio.sleep(10)
        assert 20 < await answered(reader, writer, b"two") < 40
        assert await answered(reader, writer, b"three") < 1
        writer.close()

    passes(body, f"5s {fault} for 30s")


def test_slow_links() -> None:
    async def body(world: SimulatedWorld) -> None:
        reader, writer = await connected(world)
        assert await answered(reader, writer, b"one") < 0.1
        await asyncio.sleep(10)
        assert 4 < await answered(reader, writer, b"two") < 4.1
        writer.close()

    passes(body, "5s slow echo test 2s for 30s")


def test_a_dropped_connection_is_reset() -> None:
    async def body(world: SimulatedWorld) -> None:
        reader, writer = await connected(world)
        with pytest.raises(ConnectionResetError):
            await reader.read()
        assert asyncio.get_running_loop().time() < 6
        writer.close()
        reader, writer = await asyncio.open_connection("echo", 7000)
        assert await answered(reader, writer, b"again") < 1
        writer.close()

    passes(body, "5s drop test echo")


def test_a_half_open_connection_is_silent_for_fifteen_minutes_or_as_its_fault_says() -> None:
    seconds: list[float] = []

    async def body(world: SimulatedWorld) -> None:
        reader, writer = await connected(world)
        await asyncio.sleep(10)
        writer.write(b"lost")
        with pytest.raises(OSError, match="timed out") as raised:
            await reader.read()
        assert raised.value.errno == errno.ETIMEDOUT
        seconds.append(asyncio.get_running_loop().time())
        writer.close()

    passes(body, "5s half-open test echo")
    passes(body, "5s half-open test echo 100s")
    assert [round(time) for time in seconds] == [911, 111]


def test_a_half_open_connection_is_a_fault_until_a_process_gives_it_up() -> None:
    async def ask(world: SimulatedWorld) -> None:
        reader, writer = await asyncio.open_connection("echo", 7000)
        await asyncio.sleep(10)
        writer.write(b"tea")
        with suppress(TimeoutError):
            await asyncio.wait_for(reader.read(3), 40)
        writer.close()
        await asyncio.sleep(1_000)

    async def body(world: SimulatedWorld) -> None:
        world.start("echo", serve)
        world.start("ask", ask, world)
        await asyncio.sleep(20)
        await world.calm()
        assert 50 < world.now < 53

    passes(body, "5s half-open ask echo")
    with pytest.raises(AssertionError):
        passes(body, "5s slow ask echo 1ms for 1s")


def test_a_killed_process_resets_its_connections_and_runs_nothing_more() -> None:
    ended: list[str] = []

    async def body(world: SimulatedWorld) -> None:
        async def served() -> None:
            try:
                await serve()
            finally:
                ended.append("finally")

        service = world.start("echo", served)
        await asyncio.sleep(0.5)
        reader, writer = await asyncio.open_connection("echo", 7000)
        with pytest.raises(ConnectionResetError):
            await reader.read()
        writer.close()
        assert not service.is_up
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("echo", 7000)
        await asyncio.sleep(20)
        assert service.is_up
        assert service.starts == 2
        assert ended == []

    passes(body, "5s crash echo for 10s")


def test_a_connection_that_is_cut_is_made_when_it_is_over() -> None:
    async def body(world: SimulatedWorld) -> None:
        world.start("echo", serve)
        await asyncio.sleep(6)
        _, writer = await asyncio.open_connection("echo", 7000)
        assert asyncio.get_running_loop().time() > 25
        writer.close()
        await asyncio.sleep(74)
        with pytest.raises(OSError, match="timed out"):
            await asyncio.open_connection("echo", 7000)

    passes(body, "5s cut test echo for 20s; 80s block echo test for 300s")


def test_a_clock_that_is_ahead() -> None:
    import time

    differences: list[float] = []

    async def body(world: SimulatedWorld) -> None:
        async def look() -> None:
            while True:
                differences.append(time.time() - 1_767_225_600 - time.monotonic())
                await asyncio.sleep(10)

        world.start("clock", look)
        await asyncio.sleep(60)
        assert abs(time.time() - 1_767_225_600 - time.monotonic()) < 0.001

    passes(body, "15s skew clock 1h for 10s; 35s skew clock -30s for 10s")
    assert [round(ahead) for ahead in differences[:6]] == [0, 0, 3600, 0, -30, 0]
