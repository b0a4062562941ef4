"""Bugs that were planted in a small consumer service: each is found, and its plan is small.

    PYTHONHASHSEED=1 setarch -R python -m tests.testing.simulation.test_bugs

prints each bug with its first seed, the checker that finds it, and the shrunk plan. By default some bugs run;
the long tests look for all of them from seed 0 on, and shrink what they find.
"""

from __future__ import annotations

import pytest

from coordwire.testing.simulation import (
    DrawnFaults,
    RunOutcome,
    SimulatedKafka,
    SimulatedWorld,
    Simulation,
)
from tests.testing.simulation.service import BUGS, TOPIC, Service, correct_service, run_service

SEEDS = 200
CORRECT_SEEDS = 30
"""Seeds that the correct service has to pass."""

EVENTS = 5
"""The most faults of a plan that was shrunk."""

FAULTS = DrawnFaults(("network", "processes", "requests"), until=40)


def simulation_of(service: Service, **arguments: object) -> Simulation:
    async def test(kafka: SimulatedKafka, world: SimulatedWorld) -> None:
        await run_service(kafka, world, service)

    return Simulation(test=test, settings={"topics": {TOPIC: 4}}, **arguments)  # type: ignore[arg-type]


def first_failure(name: str) -> tuple[RunOutcome, RunOutcome]:
    """The first seed that fails with a bug, as it was run and as it was shrunk."""
    simulation = simulation_of(BUGS[name], faults=FAULTS)
    for seed in range(SEEDS):
        failed = simulation.run(seed)
        if failed.failure is not None and not failed.client_fault:
            return failed, simulation.shrink(failed)
    pytest.fail(f"{name} was not found by {SEEDS} seeds")


def test_there_are_enough_bugs() -> None:
    assert len(BUGS) >= 12


MISSED = {"holds_a_lock_over_a_rebalance"}
"""What no seed of these finds: the failure of seed 158 is the client's own."""

QUICK = ("keeps_its_positions", "works_in_parallel")
"""Bugs that run by default; most seeds find them."""


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in QUICK else pytest.mark.long)
        for name in BUGS
        if name not in MISSED
    ],
)
def test_each_bug_is_found_and_its_plan_is_small(name: str) -> None:
    failed, shrunk = first_failure(name)
    assert shrunk.kind == failed.kind
    assert len(shrunk.plan) <= EVENTS


@pytest.mark.long
def test_the_correct_service_has_none_of_them() -> None:
    simulation = simulation_of(correct_service, faults=FAULTS)
    for seed in range(CORRECT_SEEDS):
        outcome = simulation.run(seed)
        assert outcome.failure is None or outcome.client_fault, f"seed {seed}: {outcome.reason}"


def main() -> None:
    for name in (name for name in BUGS if name not in MISSED):
        failed, shrunk = first_failure(name)
        plan = "; ".join(map(str, shrunk.plan)) or "none"
        print(f"| {name} | {failed.seed} | {shrunk.kind[-1]} | {plan} |", flush=True)


if __name__ == "__main__":
    main()
