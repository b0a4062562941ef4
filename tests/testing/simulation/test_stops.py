"""Deploys: processes that get SIGTERM and start again, at a time or an await, and those that don't end."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from coordwire.testing.simulation import (
    DrawnFaults,
    RunOutcome,
    SimulatedKafka,
    SimulatedWorld,
    Simulation,
    parse_plan,
)

Serve = Callable[[SimulatedWorld], Coroutine[Any, Any, None]]
PROCESSES = DrawnFaults(("processes",), until=40)


def simulation_of(serve: Serve, plan: str | DrawnFaults, processes: int = 1) -> Simulation:
    async def test(kafka: SimulatedKafka, world: SimulatedWorld) -> None:
        for number in range(processes):
            world.start(f"till-{number + 1}", serve, world)
        await world.calm(5)
        assert all(service.is_up for service in world.services("*"))

    faults = parse_plan(plan) if isinstance(plan, str) else plan
    return Simulation(test=test, nodes=1, faults=faults)


def log_of(outcome: RunOutcome, word: str) -> list[str]:
    return [line for line in outcome.log_lines if word in line]


async def sells(world: SimulatedWorld) -> None:
    """A process that may be cancelled at any await."""
    while True:
        await asyncio.sleep(5)
        await asyncio.sleep(0.001)
        await asyncio.sleep(0.001)


async def swallows(world: SimulatedWorld) -> None:
    """The same, with a mistake at an await that lasts for a millisecond in five seconds."""
    while True:
        await asyncio.sleep(5)
        try:
            await asyncio.sleep(0.001)
        except BaseException:
            world.note("swallowed")
        await asyncio.sleep(0.001)


def test_processes_are_stopped_one_after_the_other() -> None:
    up: list[tuple[int, ...]] = []

    async def test(kafka: SimulatedKafka, world: SimulatedWorld) -> None:
        services = [world.start(f"till-{number}", sells, world) for number in (1, 2, 3)]
        for at in (9, 12, 22, 32, 41):
            await asyncio.sleep(at - world.now)
            up.append(tuple(int(service.is_up) for service in services))
        assert [service.starts for service in services] == [2, 2, 2]

    outcome = Simulation(test=test, nodes=1, faults=parse_plan("10s stop till-* for 30s")).run(0)
    assert outcome.failure is None, outcome.reason
    assert up == [(1, 1, 1), (0, 1, 1), (1, 0, 1), (1, 1, 0), (1, 1, 1)]


def test_a_stop_may_have_no_end() -> None:
    async def test(kafka: SimulatedKafka, world: SimulatedWorld) -> None:
        service = world.start("till-1", sells, world)
        await world.calm(60)
        assert not service.is_up
        service.boot()
        assert service.is_up

    outcome = Simulation(test=test, nodes=1, faults=parse_plan("10s stop till-1")).run(0)
    assert outcome.failure is None, outcome.reason


def test_a_handler_has_its_time() -> None:
    """It starts again when it has ended, and the faults are over then."""

    async def serve(world: SimulatedWorld) -> None:
        stopped = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
        await stopped.wait()
        await asyncio.sleep(40)  # what there is to do yet

    async def test(kafka: SimulatedKafka, world: SimulatedWorld) -> None:
        service = world.start("till-1", serve, world)
        await world.until(lambda: service.starts == 2, within=10)
        assert 50 < world.now < 51

    outcome = Simulation(test=test, nodes=1, faults=parse_plan("10s stop till-1 for 2s")).run(0)
    assert outcome.failure is None, outcome.reason


@pytest.mark.parametrize("awaits", [1, 2, 3])
def test_a_stop_meets_each_await(awaits: int) -> None:
    simulation = simulation_of(swallows, f"3s stop till-1 {awaits} for 20s")
    outcome = simulation.run(0)
    if awaits != 1:  # the first is the one that comes first after 3 s
        assert outcome.failure is None, outcome.reason
        return
    line = swallows.__code__.co_firstlineno + 3
    assert outcome.reason == (
        f"Stop: till-1 has not ended 300 s after SIGTERM: these tasks wait: till-1 (test_stops.py:{line})"
    )
    assert f"SIGTERM till-1 is cancelled at test_stops.py:{line + 2}" in log_of(outcome, "SIGTERM")[0]
    assert log_of(outcome, "swallowed")


def test_a_cancellation_that_is_swallowed_is_found_by_a_seed() -> None:
    """No process that a test has written swallows it by the clock: 1 ms of 5 s."""
    simulation = simulation_of(swallows, PROCESSES)
    found = next(outcome for outcome in map(simulation.run, range(200)) if outcome.failure is not None)
    assert found.kind == ("Violation", "Stop")
    shrunk = simulation.shrink(found)
    assert any(fault.kind == "stop" and fault.words for fault in shrunk.plan)
    assert simulation.check(found.seed).digest == found.digest


def test_a_process_that_may_be_cancelled_passes() -> None:
    simulation = simulation_of(sells, PROCESSES, processes=2)
    for seed in range(200):
        outcome = simulation.run(seed)
        assert outcome.failure is None, f"seed {seed}: {outcome.reason}"


def test_a_process_that_dies_while_it_stops_has_ended() -> None:
    async def lingers(world: SimulatedWorld) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(60)

    outcome = simulation_of(lingers, "5s stop till-1 for 2s; 20s crash till-1 for 3s").run(0)
    assert outcome.failure is None, outcome.reason
    assert outcome.seconds < 300


@pytest.mark.parametrize("is_stopped", [False, True])
def test_what_a_process_leaves_is_judged_if_it_ends_by_itself(is_stopped: bool) -> None:
    background: list[asyncio.Task[None]] = []

    async def leaves(world: SimulatedWorld) -> None:
        background.append(asyncio.create_task(asyncio.sleep(1_000)))
        await asyncio.sleep(1_000 if is_stopped else 20)

    outcome = simulation_of(leaves, f"{10 if is_stopped else 40}s stop till-1 for 2s").run(0)
    if is_stopped:
        assert outcome.failure is None, outcome.reason
    else:
        assert outcome.reason.startswith("LeftBehind: till-1 has ended, and left the task")


def test_a_process_may_be_stopped_before_its_first_step() -> None:
    async def test(kafka: SimulatedKafka, world: SimulatedWorld) -> None:
        service = world.start("till-1", sells, world)
        await service.stop()
        assert not service.is_up

    outcome = Simulation(test=test, nodes=1).run(0)
    assert outcome.failure is None, outcome.reason
