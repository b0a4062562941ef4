"""Arguments that Hypothesis draws: each seed its own, shrunk with the plan of faults."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("hypothesis", reason="hypothesis isn't installed")

from hypothesis import example, given, settings
from hypothesis import strategies as st

from coordwire.testing.simulation import (
    RunOptions,
    SimulatedKafka,
    SimulatedWorld,
    SimulationFailed,
    kafka_simulation,
)
from coordwire.testing.simulation.given import DrawnValues

ORDERS = st.lists(st.integers(0, 1_000), max_size=8)


@kafka_simulation(seeds=60, faults="processes", nodes=1, repeat=0)
@given(orders=ORDERS, price=st.integers(1, 90))
async def selling(kafka: SimulatedKafka, world: SimulatedWorld, orders: list[int], price: int) -> None:
    """Loses an order of more than 500 if the till crashes while it is sold, if tea has its price."""
    sold: list[int] = []

    async def till() -> None:
        while orders:
            amount = orders[0] if orders[0] <= 500 or price < 20 else orders.pop(0)
            await asyncio.sleep(2)
            sold.append(amount)
            if orders and orders[0] == amount:
                orders.pop(0)
        await asyncio.sleep(1_000)

    expected = sum(orders)
    world.start("till", till)
    await world.calm()
    await world.until(lambda: not orders)
    await asyncio.sleep(5)
    assert sum(sold) >= expected


def drawn_by(function: Any, seed: int) -> dict[str, Any]:
    return DrawnValues(function).draw(seed)


@given(orders=ORDERS, price=st.integers(1, 90))
async def prices(kafka: SimulatedKafka, world: SimulatedWorld, orders: list[int], price: int) -> None:
    """Has arguments."""


def test_a_mistake_that_needs_values_and_a_fault_is_found_and_shrunk() -> None:
    with pytest.raises(SimulationFailed) as raised:
        selling()
    text = str(raised.value)
    assert "With this fault alone, of " in text
    values = text.partition("With these values:\n\n")[2].splitlines()[:2]
    assert re.match(r"    orders = \[(0, )*501\] \(the seed draws \[", values[0]), values
    assert values[1].startswith("    price = 20 (the seed draws ")
    assert "hypothesis " in text.partition("This was ")[2].splitlines()[0]
    seed = int(text.split()[1])
    with pytest.raises(SimulationFailed) as again:
        selling(kafka_simulation_options=RunOptions(seeds=[seed]))
    assert values == str(again.value).partition("With these values:\n\n")[2].splitlines()[:2]


def test_each_seed_draws_values_of_its_own() -> None:
    seen = [drawn_by(prices, seed) for seed in range(20)]
    assert seen == [drawn_by(prices, seed) for seed in range(20)]
    assert len({repr(values) for values in seen}) > 15
    assert sum(len(values["orders"]) > 3 for values in seen) > 5


def test_values_of_few_possibilities_are_drawn() -> None:
    @given(price=st.just(3))
    async def one(kafka: SimulatedKafka, world: SimulatedWorld, price: int) -> None:
        """Has an argument."""

    assert drawn_by(one, 0) == {"price": 3}


def test_a_filter_of_a_strategy_holds() -> None:
    @given(price=st.integers(0, 9).filter(lambda price: price % 5 == 4))
    async def some(kafka: SimulatedKafka, world: SimulatedWorld, price: int) -> None:
        """Has an argument."""

    assert {drawn_by(some, seed)["price"] for seed in range(20)} == {4, 9}


DRAW = """
import sys
sys.path.insert(0, ".")
from hypothesis import given, strategies as st
from coordwire.testing.simulation.given import DrawnValues
{more}
@given(values=st.lists(st.integers(), max_size=100))
async def test(kafka, world, values): ...
print([DrawnValues(test).draw(seed) for seed in range(20)])
"""


def test_constants_of_modules_are_not_drawn(tmp_path: Path) -> None:
    (tmp_path / "prices.py").write_text(f"PRICES = {[*range(1_000_000, 1_002_000)]}")
    outputs = set()
    for more in ("", "import prices"):
        command = sys.executable, "-c", DRAW.format(more=more)
        outputs.add(subprocess.run(command, cwd=tmp_path, capture_output=True, check=True).stdout)
    assert len(outputs) == 1


def test_values_are_the_seeds_also_where_the_test_changes_them(capsys: pytest.CaptureFixture[str]) -> None:
    seen: list[list[int]] = []

    @kafka_simulation(seeds=3, faults=None, nodes=1, repeat=3)
    @given(st.lists(st.integers(), min_size=1))
    async def changes(kafka: SimulatedKafka, world: SimulatedWorld, orders: list[int]) -> None:
        seen.append([*orders])
        orders.clear()

    changes()
    assert seen[::2] == seen[1::2]
    assert len(seen) == 6
    assert all(seen)
    assert "Falsifying" not in capsys.readouterr().out


async def set_anew(kafka: SimulatedKafka, world: SimulatedWorld, price: int) -> None:
    """Takes a price."""


async def priced(kafka: SimulatedKafka, world: SimulatedWorld, price: int) -> None:
    """Takes a price."""


@pytest.mark.parametrize(
    ("decorate", "reason"),
    [
        (lambda: given(prise=st.integers())(priced), "draw arguments of priced, got 'prise'"),
        (lambda: given(world=st.integers())(priced), "draw arguments of priced, got 'world'"),
        (lambda: given(price=st.data())(priced), r"a strategy for all of price, got data\(\)"),
        (lambda: settings(max_examples=5)(given(price=st.integers())(priced)), "no @settings .*: seeds=…"),
        (lambda: given(price=st.integers())(settings(max_examples=5)(set_anew)), "no @settings .*: seeds=…"),
        (lambda: example(price=5)(given(price=st.integers())(priced)), "no @example .*parametrize instead"),
        (lambda: given(price=st.integers())(lambda kafka, world, price: None), "coroutine function"),
    ],
)
def test_what_cannot_work_is_refused(decorate: Callable[[], Any], reason: str) -> None:
    with pytest.raises(TypeError, match=reason):
        kafka_simulation(seeds=1)(decorate())
