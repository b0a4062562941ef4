"""The simulated database: what is asked is carried out as a whole, and answers get lost."""

from __future__ import annotations

import asyncio
import gc
import weakref
from typing import Any

import pytest

from coordwire.testing.simulation import (
    Database,
    DrawnFaults,
    SimulatedKafka,
    SimulatedWorld,
    Simulation,
    parse_plan,
)


def put(key: str) -> Any:
    return lambda rows: rows.update({key: rows.get(key, 0) + 1})


def results(plan: str) -> tuple[list[str], dict[str, int]]:
    """Of a process that asks ten times, once a second: how each request ended, and the rows."""
    ends: list[str] = []

    async def till(books: Database) -> None:
        for number in range(10):
            try:
                await books.run(put(f"{number}"))
                ends.append("done")
            except (TimeoutError, OSError) as error:
                ends.append(type(error).__name__)
            await asyncio.sleep(1)

    rows: dict[str, int] = {}

    async def test(kafka: SimulatedKafka, world: SimulatedWorld) -> None:
        books = world.database("books")
        world.start("till", till, books)
        await asyncio.sleep(100)
        rows.update(books.rows)

    outcome = Simulation(test=test, nodes=1, faults=parse_plan(plan)).check(0)
    assert outcome.failure is None
    assert ends[: len(ends) // 2] == ends[len(ends) // 2 :]
    return ends[: len(ends) // 2], rows


def test_requests_are_carried_out() -> None:
    ends, rows = results("")
    assert ends == ["done"] * 10
    assert rows == {f"{number}": 1 for number in range(10)}


@pytest.mark.parametrize("plan", ["3500ms block books till for 1m", "3500ms block till books for 1m"])
def test_work_is_done_though_nobody_got_the_answer(plan: str) -> None:
    """The first that is lost: its answer, or itself for as long as the fault lasts. No later one gets a
    connection."""
    ends, rows = results(plan)
    assert ends[:4] == ["done"] * 4
    first, *later = [number for number, end in enumerate(ends) if end == "TimeoutError"]
    assert rows[f"{first}"] == 1
    assert len(later) > 1
    assert not any(f"{number}" in rows for number in later)


def test_a_connection_that_is_reset_is_made_again() -> None:
    ends, rows = results("; ".join(f"{at}ms drop till books" for at in range(1_000, 9_000, 1)))
    assert set(ends) == {"done", "ConnectionResetError"}
    assert all(rows[f"{number}"] == 1 for number, end in enumerate(ends) if end == "done")


def test_an_error_is_raised_where_it_was_asked() -> None:
    async def test(kafka: SimulatedKafka, world: SimulatedWorld) -> None:
        books = world.database("books")
        with pytest.raises(KeyError, match="tea"):
            await books.run(lambda rows: rows["tea"])
        with pytest.raises(ValueError, match="expected a name that nothing else has, got 'books'"):
            world.database("books")

    assert Simulation(test=test, nodes=1).run(0).failure is None


def test_a_seed_draws_faults_between_a_process_and_a_database() -> None:
    async def test(kafka: SimulatedKafka, world: SimulatedWorld) -> None:
        world.database("books")
        world.start("till", asyncio.sleep, 100)
        await world.calm()

    simulation = Simulation(test=test, nodes=1, faults=DrawnFaults(("network",)))
    kinds = {
        fault.kind for seed in range(20) for fault in simulation.run(seed).plan if "books" in fault.targets
    }
    assert kinds == {"cut", "block", "drop", "half-open"}


def test_an_answer_that_comes_too_late_is_not_kept() -> None:
    class Receipt:
        """What a weak reference may be to."""

    receipts: list[weakref.ref[Receipt]] = []

    def give(rows: dict[str, int]) -> Receipt:
        receipt = Receipt()
        receipts.append(weakref.ref(receipt))
        return receipt

    async def test(kafka: SimulatedKafka, world: SimulatedWorld) -> None:
        books = world.database("books", usual=1)
        with pytest.raises(TimeoutError):
            await books.run(give, within=0.1)
        await asyncio.sleep(5)
        gc.collect()
        assert [receipt() for receipt in receipts] == [None]

    assert Simulation(test=test, nodes=1).run(0).failure is None
