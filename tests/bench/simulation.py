"""Simulated seconds a second of CPU, for a group of five consumers that polls an idle topic.

    python -m tests.bench.simulation [--seconds 2000] [--wait-ms 500 5000]

Strategy: the world runs so many seconds after the group is stable, and the CPU time of the process is taken;
the fastest of three such runs counts. `wait-ms` is the clients' `fetch_max_wait_ms`, of which Kafka's default
is 500: each consumer then has two exchanges a second with each node that leads one of its partitions. In a
fourth run a timer of CPU time samples whose code runs: the client's with what it calls of asyncio, that of
the world with its loop, or the broker's.
"""

from __future__ import annotations

import argparse
import asyncio
import resource
import signal
from collections import Counter
from types import FrameType

from aiokafka import AIOKafkaConsumer

from coordwire.testing.simulation import SimulatedKafka, SimulatedWorld, Simulation

CONSUMERS = 5
ROUNDS = 3
_OWNERS = {"/aiokafka/": "client", "/testing/simulation/": "world", "/coordwire/": "broker"}
_SAMPLE = 0.001
"""Seconds between samples; the system may have longer ones."""


def cpu_seconds() -> float:
    """What this process has used; `time.process_time` is the world's."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


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
        began = cpu_seconds()
        await asyncio.sleep(seconds)
        spent.append(cpu_seconds() - began)

    outcome = Simulation(test=test, nodes=nodes, settings={"topics": {"orders": CONSUMERS}}).run(0)
    if outcome.failure is not None:
        raise outcome.failure
    return seconds / spent[0]


def shares(seconds: float, wait_ms: int, nodes: int) -> dict[str, float]:
    """Whose code takes the CPU time."""
    samples: Counter[str] = Counter()

    def sample(number: int, frame: FrameType | None) -> None:
        while frame is not None:
            for folder, owner in _OWNERS.items():
                if folder in frame.f_code.co_filename:
                    samples[owner] += 1
                    return
            frame = frame.f_back

    before = signal.signal(signal.SIGPROF, sample)
    signal.setitimer(signal.ITIMER_PROF, _SAMPLE, _SAMPLE)
    try:
        measure(seconds, wait_ms, nodes)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
    return {owner: samples[owner] / samples.total() for owner in _OWNERS.values()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=2_000)
    parser.add_argument("--wait-ms", type=int, nargs="+", default=[500, 5_000])
    parser.add_argument("--nodes", type=int, default=1)
    options = parser.parse_args()
    print(f"{CONSUMERS} consumers, {options.nodes} nodes; simulated seconds a second of CPU")
    for wait_ms in options.wait_ms:
        arguments = options.seconds, wait_ms, options.nodes
        rate = max(measure(*arguments) for _ in range(ROUNDS))
        parts = ", ".join(f"{owner} {share:.0%}" for owner, share in shares(*arguments).items())
        print(f"fetch_max_wait_ms {wait_ms:,}: {rate:,.0f}, of which {parts}")


if __name__ == "__main__":
    main()
