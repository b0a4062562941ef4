"""Simulated seconds a second of CPU, for a group of five consumers that polls an idle topic.

    python -m tests.bench.simulation [--seconds 2000] [--wait-ms 500]

Strategy: the world runs so many seconds after the group is stable, and the CPU time of the process is taken.
`wait-ms` is the clients' `fetch_max_wait_ms`, of which Kafka's default is 500: each consumer then has two
exchanges a second with each node that leads one of its partitions.
"""

from __future__ import annotations

import argparse
import asyncio
import time

from aiokafka import AIOKafkaConsumer

from coordwire.testing.simulation import SimulatedKafka, SimulatedWorld, Simulation

CONSUMERS = 5


def measure(seconds: float, wait_ms: int, nodes: int) -> float:
    """Simulated seconds a second of CPU."""
    spent: list[float] = []

    async def poll(bootstrap: str) -> None:
        consumer = AIOKafkaConsumer(
            "orders", bootstrap_servers=bootstrap, group_id="idle", fetch_max_wait_ms=wait_ms
        )
        try:
            await consumer.start()
            async for _ in consumer:
                pass
        finally:
            await consumer.stop()

    async def test(kafka: SimulatedKafka, world: SimulatedWorld) -> None:
        for number in range(CONSUMERS):
            world.start(f"consumer-{number}", poll, kafka.bootstrap)
        await kafka.group("idle").stable(members=CONSUMERS, timeout=120)
        began = time.process_time()
        await asyncio.sleep(seconds)
        spent.append(time.process_time() - began)

    outcome = Simulation(test=test, nodes=nodes, settings={"topics": {"orders": CONSUMERS}}).run(0)
    if outcome.failure is not None:
        raise outcome.failure
    return seconds / spent[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=2_000)
    parser.add_argument("--wait-ms", type=int, default=500)
    parser.add_argument("--nodes", type=int, default=1)
    options = parser.parse_args()
    rate = measure(options.seconds, options.wait_ms, options.nodes)
    print(f"{rate:,.0f} simulated seconds a second of CPU ({CONSUMERS} consumers, {options.nodes} nodes)")


if __name__ == "__main__":
    main()
