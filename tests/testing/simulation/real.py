"""The same service under the same faults: `coordwire.broker` in virtual time, and Apache Kafka in real time.

    python -m tests.testing.simulation.real [--seeds 0-19] [--together 4]

Strategy: a seed draws faults of processes and requests in a simulated world. The plan is carried out again
there, and on a real broker: each process of the service is one of the system, which SIGKILL crashes and
SIGSTOP freezes, and a tap before the broker has the rules of `inject`. What must be equal is what a user
sees: which records were processed, what is committed, and how many partitions each member has in the end.
Rules: a moment of the plan counts from when both processes run. Clocks that are skewed are left out, as a
process of the system cannot have its own.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import ClassVar, NamedTuple
from uuid import uuid4

import pytest

pytest.importorskip("aiokafka", reason="aiokafka isn't installed")

from aiokafka import AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from coordwire.broker.injection import parse_fault
from coordwire.coordinator.model.embedded_protocol import read_named_assignment
from coordwire.tap import Tap
from coordwire.testing.fault_plans import PlannedFault
from coordwire.testing.simulation import (
    CHECKERS,
    Checker,
    DrawnFaults,
    PartitionPlace,
    RunOutcome,
    SimulatedKafka,
    SimulatedWorld,
    Simulation,
)
from coordwire.testing.simulation.world import Test
from tests.interop.broker import Broker, Java
from tests.testing.simulation import service

PARTITIONS, RECORDS = 4, 12
_UNTIL = 20.0
"""Seconds with faults."""

_WITHIN = 180.0
"""Seconds until a service has caught up after its last fault."""

_NAMES = ("orders-1", "orders-2")
_MODULE, _ROOT = "tests.testing.simulation.real", Path(__file__).parents[3]


class Outcome(NamedTuple):
    """What a user sees in the end. processed, committed: offsets by partition; owned: how many partitions
    each member has."""

    processed: dict[int, list[int]]
    committed: dict[int, int]
    owned: list[int]


class World(NamedTuple):
    """A seed, what happened in it, and its outcome in virtual time."""

    seed: int
    plan: list[PlannedFault]
    outcome: Outcome


class Owners(Checker):
    """Keeps the last assignment of the service's group."""

    latest: ClassVar[dict[str, frozenset[PartitionPlace]]] = {}

    def assigned(self, group: str, generation: int, members: Mapping[str, frozenset[PartitionPlace]]) -> None:
        type(self).latest = dict(members)


async def simulated_service(kafka: SimulatedKafka, world: SimulatedWorld) -> None:
    Owners.latest = {}
    await service.run_service(kafka, world, service.correct_service, records=RECORDS)
    await world.until(lambda: len(Owners.latest) == len(_NAMES), within=_WITHIN)


def plan_of(seed: int) -> list[PlannedFault]:
    """What a seed does in a world, without what a real process cannot have."""
    drawn = DrawnFaults(("processes", "requests"), until=_UNTIL, most=6)
    outcome = _run(seed, simulated_service, drawn)
    return [fault for fault in outcome.plan if fault.kind != "skew"]


def simulated(seed: int, plan: Sequence[PlannedFault]) -> Outcome:
    """The outcome in virtual time. Raises what has failed there."""
    seen: list[Outcome] = []

    async def test(kafka: SimulatedKafka, world: SimulatedWorld) -> None:
        await simulated_service(kafka, world)
        marks = {place.partition: sorted(offsets) for place, offsets in world.marks.items()}
        offsets = world.observed.offsets[service.GROUP]
        committed = {place.partition: offset for place, offset in offsets.items()}
        seen.append(Outcome(marks, committed, sorted(map(len, Owners.latest.values()))))

    _run(seed, test, list(plan))
    return seen[0]


def _run(seed: int, test: Test, faults: DrawnFaults | list[PlannedFault]) -> RunOutcome:
    outcome = Simulation(
        test=test,
        faults=faults,
        nodes=1,
        settings={"topics": {service.TOPIC: PARTITIONS}},
        checkers=(*CHECKERS, Owners),
    ).run(seed)
    if outcome.failure is not None:
        raise outcome.failure
    return outcome


# --- on a real broker ---


class Process:
    """A process of the service; it starts again a second after it has ended by itself. marks: partitions and
    offsets that it has processed."""

    def __init__(self, name: str, arguments: Sequence[str]) -> None:
        self.name = name
        self.marks: set[tuple[int, int]] = set()
        self.is_ready = asyncio.Event()
        self._arguments = arguments
        self._may_run = asyncio.Event()
        self._may_run.set()
        self._is_stopping = False
        self._running: asyncio.subprocess.Process | None = None
        self._life = asyncio.create_task(self._live())

    async def _live(self) -> None:
        while not self._is_stopping:
            await self._may_run.wait()
            self._running = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", _MODULE, "--process", self.name, *self._arguments),
                cwd=_ROOT,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
            )
            assert self._running.stdout is not None
            async for line in self._running.stdout:
                if line == b"ready\n":
                    self.is_ready.set()
                else:
                    partition, offset = map(int, line.split())
                    self.marks.add((partition, offset))
            await self._running.wait()
            await asyncio.sleep(1)

    def _signal(self, number: signal.Signals) -> None:
        if self._running is not None:
            with suppress(ProcessLookupError):
                self._running.send_signal(number)

    async def inflict(self, fault: PlannedFault) -> None:
        """Crash or freeze for as long as the plan has it."""
        if fault.kind == "freeze":
            self._signal(signal.SIGSTOP)
        else:
            self._may_run.clear()
            self._signal(signal.SIGKILL)
        await asyncio.sleep((fault.duration or 0) / 1000)
        self._signal(signal.SIGCONT)
        self._may_run.set()

    async def stop(self) -> None:
        self._is_stopping = True
        self._signal(signal.SIGTERM)
        try:
            await asyncio.wait_for(self._life, 60)
        except TimeoutError:
            self._signal(signal.SIGKILL)


async def _carry_out(plan: Sequence[PlannedFault], tap: Tap, processes: Mapping[str, Process]) -> None:
    """Let all faults happen; over when the last one is."""
    began = asyncio.get_running_loop().time()

    async def inflict(fault: PlannedFault) -> None:
        await asyncio.sleep(began + fault.at / 1000 - asyncio.get_running_loop().time())
        if fault.kind == "inject":
            handle = tap.faults.add(replace(parse_fault(" ".join(fault.words)), optional=True))
            await asyncio.sleep((fault.duration or 0) / 1000)
            handle.remove()
        else:
            await processes[fault.targets[0]].inflict(fault)

    async with asyncio.TaskGroup() as group:
        for fault in plan:
            group.create_task(inflict(fault))


async def _state(admin: AIOKafkaAdminClient, group: str) -> tuple[dict[int, int], list[int]]:
    """What a group has committed, and how many partitions its members have."""
    offsets = await admin.list_consumer_group_offsets(group)
    (response,) = await admin.describe_consumer_groups([group])
    ((_, _, state, _, _, members),) = response.groups
    owned = [
        sum(len(numbers) for _, numbers in read_named_assignment(assignment)) if assignment else 0
        for *_, assignment in members
    ]
    committed = {place.partition: offset.offset for place, offset in offsets.items()}
    return committed, sorted(owned) if state == "Stable" else []


async def real(bootstrap: str, plan: Sequence[PlannedFault]) -> Outcome:
    """The outcome on a real broker, with a group and a topic of its own. Raises `TimeoutError`."""
    run = uuid4().hex
    group, topic = f"{service.GROUP}-{run}", f"{service.TOPIC}-{run}"
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap)
    async with Tap(bootstrap) as tap:
        await admin.start()
        await producer.start()
        await admin.create_topics([NewTopic(topic, PARTITIONS, 1)])
        processes = {name: Process(name, (tap.bootstrap, group, topic)) for name in _NAMES}
        try:
            for process in processes.values():
                await process.is_ready.wait()
            faults = asyncio.create_task(_carry_out(plan, tap, processes))
            for number in range(RECORDS):
                await producer.send_and_wait(topic, b"order", partition=number % PARTITIONS)
                await asyncio.sleep(1)
            await faults
            expected = dict.fromkeys(range(PARTITIONS), RECORDS // PARTITIONS)
            async with asyncio.timeout(_WITHIN):
                while True:
                    committed, owned = await _state(admin, group)
                    if committed == expected and len(owned) == len(_NAMES):
                        break
                    await asyncio.sleep(0.5)
        finally:
            await asyncio.gather(*(process.stop() for process in processes.values()))
            await producer.stop()
            await admin.close()
    marks: dict[int, list[int]] = {}
    for partition, offset in sorted(set().union(*(process.marks for process in processes.values()))):
        marks.setdefault(partition, []).append(offset)
    return Outcome(marks, committed, owned)


def run_process(name: str, bootstrap: str, group: str, topic: str) -> None:
    """The service itself, unmodified: what it has processed goes to the output."""
    service.GROUP, service.TOPIC = group, topic

    class Marks:
        def processed(self, record: object) -> None:
            print(record.partition, record.offset, flush=True)  # type: ignore[attr-defined]

    async def main() -> None:
        task = asyncio.ensure_future(service.correct_service(bootstrap, Marks(), name))  # type: ignore[arg-type]
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
        print("ready", flush=True)
        with suppress(asyncio.CancelledError):
            await task

    asyncio.run(main())


# --- comparison ---


def worlds_of(seeds: Iterable[int]) -> list[World]:
    """Seeds with their plans and outcomes in virtual time."""
    plans = [(seed, plan_of(seed)) for seed in seeds]
    return [World(seed, plan, simulated(seed, plan)) for seed, plan in plans]


async def compare(bootstrap: str, worlds: Iterable[World], together: int) -> list[str]:
    """A line for each seed whose outcome on a broker differs; each seed is printed with its plan."""
    differences: list[str] = []
    slots = asyncio.Semaphore(together)

    async def one(seed: int, plan: Sequence[PlannedFault], expected: Outcome) -> None:
        async with slots:
            began = time.monotonic()
            try:
                outcome: Outcome | str = await real(bootstrap, plan)
            except TimeoutError:
                outcome = f"not caught up within {_WITHIN:.0f} s"
        verdict = "equal" if outcome == expected else f"DIFFERS\n  world: {expected}\n  Kafka: {outcome}"
        line = f"seed {seed}: {verdict} ({time.monotonic() - began:.0f} s; {'; '.join(map(str, plan))})"
        print(line, flush=True)
        if outcome != expected:
            differences.append(line)

    await asyncio.gather(*(one(*world) for world in worlds))
    return differences


def compare_with_kafka(folder: Path, worlds: Iterable[World], together: int) -> list[str]:
    """As `compare`, with a broker of its own in a folder. Raises `Unavailable`."""
    with Broker(Java(), folder / "data", {"offsets.topic.replication.factor": "1",
                "group.initial.rebalance.delay.ms": "3000"}) as broker:  # fmt: skip
        return asyncio.run(compare(broker.address, worlds, together))


def main() -> None:
    if sys.argv[1:2] == ["--process"]:
        run_process(*sys.argv[2:])
        return
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", default="0-19", help="the first and the last")
    parser.add_argument("--together", type=int, default=4, help="seeds that run at the same time")
    options = parser.parse_args()
    first, last = map(int, options.seeds.split("-"))
    worlds = worlds_of(range(first, last + 1))
    with tempfile.TemporaryDirectory() as folder:
        differences = compare_with_kafka(Path(folder), worlds, options.together)
    print(f"{last - first + 1} seeds, {len(differences)} differ")


if __name__ == "__main__":
    main()
