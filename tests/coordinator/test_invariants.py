"""All invariants hold in seeded simulations; and bugs that are planted on purpose are found."""

from __future__ import annotations

import pytest

from tests.coordinator.checked_histories import watched
from tests.coordinator.generator import history
from tests.coordinator.planted_bugs import BUGS, PlantedBug, find_planted
from tests.coordinator.simulation import simulate

_MILLION = 1_000_000
_CHEAP = [
    "followers are given the members",
    "an answer leaves before its append",
    "a partition is free when its revocation is sent",
]


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_invariants_hold_in_simulations(seed: int) -> None:
    steps, violation = simulate(seed)
    assert violation is None
    assert steps > 2_000


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_invariants_hold_in_histories_of_any_requests(seed: int) -> None:
    steps = history(seed, 120).steps
    assert watched(seed, steps) == (len(steps), None)


def test_a_group_that_is_deleted_loses_its_offsets() -> None:
    """DeleteGroups waited for an append, while a transaction had an offset of the group."""
    steps = history(306, 200).steps
    assert watched(306, steps) == (len(steps), None)


def test_a_log_that_ends_within_a_target_is_not_a_violation() -> None:
    """Its members' new partitions are there, and the record of the epoch that they are of is not."""
    steps = history(13, 200).steps
    assert watched(13, steps) == (len(steps), None)


@pytest.mark.parametrize("seed", [87, 114, 175])
def test_what_kafka_does_is_not_a_violation(seed: int) -> None:
    """87: a static leader came back, does not lead, and nobody notices a new partition (before KIP-814).
    114: a static member's replacement failed, and the one before is in the group again.
    175: the log is slow. The answer to a heartbeat waits for it, but the session began anew; and a removal
    that took too long is done again, after the member has joined again."""
    assert simulate(seed)[1] is None


@pytest.mark.long
def test_invariants_hold_for_a_million_steps() -> None:
    seed, steps = 0, 0
    while steps < _MILLION:
        step_count, violation = simulate(seed)
        assert violation is None, f"seed {seed}"
        steps += step_count
        seed += 1


def test_the_planted_bugs_fit_the_code() -> None:
    assert len({bug.name for bug in BUGS}) == len(BUGS) >= 60
    for bug in BUGS:
        compile(bug.changed(), bug.name, "exec")


@pytest.mark.slow
@pytest.mark.parametrize("name", _CHEAP)
def test_planted_bugs_are_found(name: str) -> None:
    (bug,) = (bug for bug in BUGS if bug.name == name)
    assert find_planted(bug, 5.0) is not None


@pytest.mark.long
@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_every_planted_bug_is_found(bug: PlantedBug) -> None:
    assert find_planted(bug) is not None
