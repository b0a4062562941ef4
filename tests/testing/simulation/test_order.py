"""The order of ready tasks by PCT: what asyncio's own order never shows, with the bound that it promises."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from itertools import pairwise
from typing import Any

import pytest

from coordwire.testing.simulation import RunOutcome, SimulatedKafka, SimulatedWorld, Simulation
from coordwire.testing.simulation.order import TaskOrder

Body = Callable[[], Coroutine[Any, Any, None]]


def run(body: Body, seed: int, reorder: int) -> RunOutcome:
    async def test(kafka: SimulatedKafka, world: SimulatedWorld) -> None:
        await body()

    return Simulation(test=test, nodes=1, checkers=(), reorder=reorder).run(seed)


async def read_before_written() -> None:
    """A mistake of depth 1: the reader relies on being made after the writer."""
    table: dict[str, int] = {}

    async def write() -> None:
        table["tea"] = 3

    async def read() -> int:
        return table["tea"]

    await asyncio.gather(write(), read())


async def lost_update() -> None:
    """A mistake of depth 2: a whole update has to come between two steps of another one."""
    table = {"tea": 0}

    async def add(steps: int) -> None:
        for _ in range(steps):
            await asyncio.sleep(0)
        before = table["tea"]
        await asyncio.sleep(0)
        table["tea"] = before + 1

    for _ in range(20):
        await asyncio.gather(add(0), add(5))
    assert table["tea"] == 40


@pytest.mark.parametrize(
    ("body", "depth", "bound"), [(read_before_written, 1, 1 / 3), (lost_update, 2, 1 / 48)]
)
def test_what_needs_another_order_is_found(body: Body, depth: int, bound: float) -> None:
    """The bound: n tasks are three with the test's own, k steps are 16 in one seed of nine."""
    assert all(run(body, seed, 0).failure is None for seed in range(20))
    found = [seed for seed in range(200) if run(body, seed, depth).failure is not None]
    assert len(found) >= 200 * bound / (1 if depth == 1 else 9)
    assert run(body, found[0], depth).digest == run(body, found[0], depth).digest


def test_a_task_that_spins_lets_others_run() -> None:
    async def body() -> None:
        done = asyncio.Event()

        async def spin() -> None:
            while not done.is_set():
                await asyncio.sleep(0)

        async def end() -> None:
            await asyncio.sleep(0.001)
            done.set()

        await asyncio.gather(spin(), spin(), end())

    assert all(run(body, seed, 2).failure is None for seed in range(10))


class Step:
    def __init__(self, number: int) -> None:
        self.number = number


def test_what_is_no_step_keeps_its_order() -> None:
    steps = {name: Step(number) for number, name in enumerate("XYZ")}
    orders = set()
    for seed in range(40):
        ready = deque("aXbYcZd")
        assert TaskOrder(seed, 1).arrange(ready, [steps.get(name) for name in ready]) == 5
        assert [*ready][:4] == ["a", "b", "c", "d"]
        orders.add("".join(ready)[4:])
    assert orders == {"XYZ", "YXZ", "ZXY"}


def firsts_of(seed: int, depth: int, count: int) -> str:
    """Which of two tasks that are always ready comes first, step by step."""
    order, steps = TaskOrder(seed, depth), {"X": Step(1), "Y": Step(2)}
    firsts = ""
    for _ in range(count):
        ready = deque("XY")
        order.arrange(ready, [steps[name] for name in ready])
        firsts += ready[0]
    return firsts


def test_the_order_changes_at_so_many_steps_and_no_more() -> None:
    for depth in (1, 2, 3):
        most = 0
        for seed in range(100):
            firsts = firsts_of(seed, depth, 16)
            switches = sum(one != other for one, other in pairwise(firsts))
            assert switches <= depth - 1
            most = max(most, switches)
        assert most == depth - 1
