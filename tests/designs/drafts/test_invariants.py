"""D1 to D10 over random runs, each draft as far as its document keeps what it claims."""

from __future__ import annotations

import pytest

from tests.designs.drafts.checkers import check
from tests.designs.drafts.random_runs import random_run


@pytest.mark.parametrize("seed", range(4))
def test_draft_2_keeps_its_invariants(seed: int) -> None:
    world = random_run(2, seed)
    assert check(world) == []
    assert set(world.owned()).isdisjoint("-+")


@pytest.mark.parametrize("seed", range(2))
def test_draft_3_has_one_owner_for_each_partition(seed: int) -> None:
    world = random_run(3, seed)
    assert check(world) == []
    assert set(world.owned()).isdisjoint("-+")


@pytest.mark.parametrize("seed", range(2))
def test_draft_1_keeps_what_it_can(seed: int) -> None:
    world = random_run(1, seed)
    assert check(world) == []
