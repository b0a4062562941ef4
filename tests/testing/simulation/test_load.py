"""The load of simulated worlds: paces that a seed draws, what is slow, and how both are shrunk."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from coordwire.errors import Malformed
from coordwire.testing.fault_plans import PlannedFault
from coordwire.testing.simulation import (
    DrawnFaults,
    RunOutcome,
    SimulatedKafka,
    SimulatedWorld,
    Simulation,
    parse_plan,
)

DRAWN = DrawnFaults(("load",))
Body = Callable[[SimulatedWorld], Coroutine[Any, Any, object]]


def simulation(body: Body, faults: DrawnFaults | Iterable[PlannedFault] = ()) -> Simulation:
    async def test(kafka: SimulatedKafka, world: SimulatedWorld) -> None:
        await body(world)

    return Simulation(test=test, nodes=1, faults=faults if isinstance(faults, DrawnFaults) else [*faults])


def times_of(outcomes: list[float], every: float = 1.0) -> Body:
    async def body(world: SimulatedWorld) -> None:
        outcomes.clear()
        async for _ in world.load("orders", range(40), every=every):
            outcomes.append(world.now)

    return body


def gaps(times: list[float]) -> list[float]:
    return [later - earlier for earlier, later in pairwise(times)]


def passes(outcome: RunOutcome) -> RunOutcome:
    assert outcome.failure is None, outcome.reason
    return outcome


def test_without_a_drawn_load_all_is_steady() -> None:
    times: list[float] = []
    passes(simulation(times_of(times, 0.5)).run(3))
    assert len(times) == 40
    assert all(0.499 < gap < 0.502 for gap in gaps(times))


def test_seeds_have_paces_and_bursts_of_their_own() -> None:
    times: list[float] = []
    whole = simulation(times_of(times), DRAWN)
    lengths, bursts = [], []
    for seed in range(40):
        outcome = passes(whole.run(seed))
        before = [*times]
        assert whole.run(seed).digest == outcome.digest
        assert times == before
        lengths.append(before[-1] - before[0])
        bursts.append(sum(gap < 0.000_1 for gap in gaps(before)))
        assert [fault.kind for fault in outcome.plan] == ["load"] or 38 < lengths[-1] < 41
        replayed = passes(replace(whole, faults=outcome.plan).run(seed))
        assert (replayed.digest, times) == (outcome.digest, before)
    assert min(lengths) < 2
    assert max(lengths) > 60
    assert 20 < len([seed for seed in range(40) if lengths[seed] < 20]) < 36
    assert {0, 30, 37} <= set(bursts)


def test_a_pace_of_a_plan_holds_for_its_time() -> None:
    times: list[float] = []
    plan = parse_plan("2s load ord* 100ms 5 for 3s; 1s load others 1ms")
    outcome = simulation(times_of(times), plan).run(0)
    assert outcome.reason == ("Plan: expected one of orders, got 'others' in '1s load others 1ms'")
    passes(simulation(times_of(times), plan[1:]).run(0))
    steady = [gap for gap in gaps(times) if gap > 0.9]
    at_once = [gap for gap in gaps(times) if gap < 0.000_1]
    assert len(steady) < 36
    assert len(at_once) > 20


def test_what_is_slow_is_slow_for_stretches_that_the_plan_has() -> None:
    seconds: list[tuple[float, float]] = []

    async def body(world: SimulatedWorld) -> None:
        seconds.clear()
        while world.now < 200:
            before = world.now
            await world.slow(0.1)
            seconds.append((before, world.now - before))

    def factors() -> set[int]:
        return {1 if value < 0.2 else 5 if value < 1 else 25 for _, value in seconds}

    drawn = simulation(body, DrawnFaults(("load",), until=100))
    outcome = passes(drawn.run(0))
    before = [*seconds]
    assert factors() == {1, 5, 25}
    assert all(value < 0.13 for at, value in before if at > 100)
    assert {fault.kind for fault in outcome.plan} == {"busy"}
    passes(replace(drawn, faults=outcome.plan).run(0))
    assert seconds == before
    passes(drawn.run(1))
    assert seconds != before
    passes(simulation(body).run(0))
    assert factors() == {1}


def test_a_database_is_busy_too() -> None:
    async def body(world: SimulatedWorld) -> None:
        books = world.database("books", usual=0.1)
        await asyncio.sleep(1)
        await books.run(len)
        took.append(world.now - 1)

    took: list[float] = []
    for plan in ("", "1s busy books 25 for 9s"):
        passes(simulation(body, parse_plan(plan)).run(0))
    usual, busy = took
    assert usual < 0.2
    assert 25 * usual > busy > 10 * usual


def test_a_mistake_that_needs_a_burst_is_found_and_shrunk_towards_steady() -> None:
    async def body(world: SimulatedWorld) -> None:
        stock = 40

        async def sell() -> None:
            nonlocal stock
            left = stock
            await world.slow(0.01)
            stock = left - 1

        async with asyncio.TaskGroup() as group:
            async for _ in world.load("orders", range(40)):
                group.create_task(sell())
            async for _ in world.load("others", range(3)):
                await world.slow(0.01)
        assert stock == 0

    passes(simulation(body).run(0))
    whole = simulation(body, DRAWN)
    failed = next(outcome for outcome in map(whole.run, range(10)) if outcome.failure is not None)
    shrunk = whole.shrink(failed)
    (load,) = shrunk.plan
    assert (load.kind, load.targets) == ("load", ("orders",))


@pytest.mark.parametrize("every", [0, -1, float("inf"), float("nan")])
def test_a_pause_is_a_time(every: float) -> None:
    async def body(world: SimulatedWorld) -> None:
        world.load("orders", (), every=every)

    assert "expected more than 0 s between items, got" in simulation(body).run(0).reason


@pytest.mark.parametrize(
    "plan", ["1s load orders", "1s load orders 5", "1s load orders 5ms 0", "1s busy *", "1s busy * 0 for 2s"]
)
def test_wrong_loads_are_refused(plan: str) -> None:
    with pytest.raises(Malformed, match="expected"):
        parse_plan(plan)
