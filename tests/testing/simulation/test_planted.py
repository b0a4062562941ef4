"""Mistakes of kinds that people make, planted in small services: found, and none in the services without.

    PYTHONHASHSEED=1 setarch -R python -m tests.testing.simulation.test_planted [NAME...]

prints for each the first of 200 seeds that fails with the mistake, and those that fail without. By default
some run; the long tests look for all.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

pytest.importorskip("aiokafka", reason="aiokafka isn't installed")

from coordwire.testing.simulation import RunOutcome
from tests.testing.simulation.planted import consuming, producing
from tests.testing.simulation.planted.common import SCENARIOS, simulation_of

SEEDS = 200
CORRECT_SEEDS = 20

SCENARIOS_OF = consuming, producing
"""The modules that fill the table."""

MISSED = {"restore_until_silence"}
"""Needs a slow network in the half second after a restart: with `20s crash tally for 300ms` and
`20300ms slow tally * 400ms for 10s` four of six seeds find it."""

QUICK = {"non_idempotent", "missed_ticks", "half_transaction", "race_over_table"}
"""Mistakes that run by default; one of the first ten seeds finds them."""


def failures(name: str, *, bug: bool, seeds: int) -> Iterator[RunOutcome]:
    """Those that are not the client's own."""
    simulation = simulation_of(name, bug=bug)
    for seed in range(seeds):
        outcome = simulation.run(seed)
        if outcome.failure is not None and not outcome.client_fault:
            yield outcome


def test_there_are_twenty() -> None:
    assert len(SCENARIOS) == 20
    assert set(SCENARIOS) > QUICK | MISSED


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in QUICK else pytest.mark.long)
        for name in SCENARIOS
        if name not in MISSED
    ],
)
def test_a_mistake_is_found(name: str) -> None:
    assert next(failures(name, bug=True, seeds=SEEDS), None) is not None


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.long) for name in SCENARIOS]
)
def test_a_service_without_it_passes(name: str) -> None:
    seeds = 3 if name in QUICK else CORRECT_SEEDS
    assert [outcome.reason for outcome in failures(name, bug=False, seeds=seeds)] == []


def main() -> None:
    for name in sys.argv[1:] or SCENARIOS:
        first = next(failures(name, bug=True, seeds=SEEDS), None)
        text = "not found" if first is None else f"seed {first.seed}: {first.reason.splitlines()[0][:80]}"
        print(f"{name}: {text}", flush=True)
        for outcome in failures(name, bug=False, seeds=SEEDS):
            print(f"    without: seed {outcome.seed}: {outcome.reason.splitlines()[0][:160]}", flush=True)


if __name__ == "__main__":
    main()
