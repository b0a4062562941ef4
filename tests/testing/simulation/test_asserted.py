"""Assertions of services, which pytest does not rewrite: their text, and where they may fail."""

from __future__ import annotations

import asyncio
import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from coordwire.testing.simulation import RunOutcome, SimulatedKafka, SimulatedWorld, Simulation

SHOP = """
import asyncio

class Till:
    def __init__(self):
        self.open = 3

    @property
    def closed(self):
        raise ValueError("is not to be asked")

    def __repr__(self):
        raise OSError

async def sell(names, limit=2):
    till = Till()
    assert (
        till.open < limit
        and len(names) < limit and till.closed
    )

async def with_text():
    assert 1 > 2, "one is less"

async def without_values():
    assert False

async def in_a_group():
    async with asyncio.TaskGroup() as group:
        group.create_task(asyncio.sleep(5))
        group.create_task(sell(["tea"]))

async def in_the_background():
    task = asyncio.create_task(sell(["tea"]))
    await asyncio.sleep(1)
    del task
    await asyncio.sleep(1_000)

async def of_itself(till=Till()):
    assert not till
"""


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[ModuleType]:
    """A module that pytest has not rewritten."""
    path = tmp_path / "shop.py"
    path.write_text(SHOP)
    spec = importlib.util.spec_from_file_location("shop", path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["shop"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    del sys.modules["shop"]


def outcome_of(name: str, shop: ModuleType, *args: object) -> RunOutcome:
    async def test(kafka: SimulatedKafka, world: SimulatedWorld) -> None:
        world.start("till-1", getattr(shop, name), *args)
        await asyncio.sleep(500)

    return Simulation(test=test, nodes=1).run(0)


SOLD = (
    "AssertionError: assert till.open < limit and len(names) < limit and till.closed, where till.open = 3, "
)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("with_text", "AssertionError: one is less"),
        ("without_values", "AssertionError: assert False"),
        ("of_itself", "AssertionError: assert not till, where till = <Till instance at 0x…>"),
        ("in_a_group", SOLD),
        ("in_the_background", SOLD),
    ],
)
def test_an_assertion_of_a_service_has_a_text(name: str, reason: str, shop: ModuleType) -> None:
    assert outcome_of(name, shop).reason.startswith(reason)


def test_it_has_the_values_of_names(shop: ModuleType) -> None:
    outcome = outcome_of("sell", shop, [f"{number}" * 90 for number in range(50)])
    text = outcome.reason.removeprefix(SOLD)
    assert "till = " not in text
    assert "limit = 2" in text
    assert "names = ['000" in text
    assert len(text) < 1_000


def test_one_without_its_source_has_none(shop: ModuleType) -> None:
    Path(str(shop.__file__)).write_text("assert (")
    assert outcome_of("without_values", shop).reason == "AssertionError: "
