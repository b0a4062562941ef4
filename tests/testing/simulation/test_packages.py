"""Packages that go past asyncio run in simulated worlds, and leave nothing from one to the next."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from typing import Any

import pytest

from coordwire.testing.simulation import SimulatedKafka, SimulatedWorld, Simulation, parse_plan


def test_producers_without_a_client_id_are_counted_in_each_world() -> None:
    aiokafka = pytest.importorskip("aiokafka", reason="aiokafka isn't installed")

    async def sell(bootstrap: str) -> None:
        async with aiokafka.AIOKafkaProducer(bootstrap_servers=bootstrap) as producer:
            await producer.send_and_wait("orders", b"tea")

    async def test(kafka: SimulatedKafka, world: SimulatedWorld) -> None:
        world.start("sell", sell, kafka.bootstrap)
        await world.until(lambda: kafka.records("orders"))

    before = aiokafka.AIOKafkaProducer._PRODUCER_CLIENT_ID_SEQUENCE
    outcome = Simulation(test=test, settings={"topics": {"orders": 1}}).check(0)
    assert outcome.failure is None
    assert before == aiokafka.AIOKafkaProducer._PRODUCER_CLIENT_ID_SEQUENCE


NODES = """
from aiokafka.cluster import ClusterMetadata
from aiokafka.structs import BrokerMetadata
from coordwire.testing.simulation import Simulation
cluster, seen = ClusterMetadata(), []
cluster._brokers = {number: BrokerMetadata(number, f"host-{number}", 9092, None) for number in range(8)}

async def test(kafka, world):
    seen.extend(node.nodeId for node in cluster.brokers())

assert Simulation(test=test).run(0).failure is None
print(seen, type(cluster.brokers()).__name__)
"""


def test_aiokafka_has_its_nodes_in_one_order_under_every_order_of_hashes() -> None:
    pytest.importorskip("aiokafka", reason="aiokafka isn't installed")
    for hash_seed in ("1", "2"):
        environment = os.environ | {"PYTHONHASHSEED": hash_seed}
        completed = subprocess.run(
            [sys.executable, "-c", NODES], env=environment, capture_output=True, text=True, check=True
        )
        assert completed.stdout == "[0, 1, 2, 3, 4, 5, 6, 7] set\n"


def test_aiohttp_asks_over_the_network_of_the_world() -> None:
    aiohttp: Any = pytest.importorskip("aiohttp", reason="aiohttp isn't installed")
    from aiohttp import web

    answers: list[Any] = []

    async def price(request: Any) -> Any:
        await asyncio.sleep(0.1)
        return web.json_response({"price": 3})

    async def shop() -> None:
        app = web.Application()
        app.router.add_get("/price", price)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "0.0.0.0", 8080).start()
        try:
            await asyncio.Event().wait()
        finally:
            await runner.cleanup()

    async def till() -> None:
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=5)) as session:
            for _ in range(6):
                try:
                    async with session.get("http://shop:8080/price") as answer:
                        answers.append((await answer.json())["price"])
                except (aiohttp.ClientError, TimeoutError) as error:
                    answers.append(type(error).__name__)
                await asyncio.sleep(4)

    async def test(kafka: SimulatedKafka, world: SimulatedWorld) -> None:
        world.start("shop", shop)
        await asyncio.sleep(1)
        world.start("till", till)
        await asyncio.sleep(40)

    faults = parse_plan("2s crash shop for 6s\n10s cut till shop for 8s")
    outcome = Simulation(test=test, nodes=1, faults=faults).check(0)
    assert outcome.failure is None
    first, second = answers[:6], answers[6:]
    assert first == second
    assert first[0] == first[-1] == 3
    assert {"ClientConnectorError", "TimeoutError"} & set(map(str, first))
