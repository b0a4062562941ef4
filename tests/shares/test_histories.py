"""Share partitions, share coordinator and share groups agree with Kafka's own, step by step, on random
histories."""

from __future__ import annotations

import pytest

from tests.coordinator import comparison
from tests.coordinator.oracle import oracle
from tests.interop.conftest import give_up
from tests.interop.maven import Unavailable
from tests.shares.comparison import KINDS, first_difference
from tests.shares.group_histories import share_history
from tests.shares.kept_histories import SORTS, differences
from tests.shares.oracle import share_oracle
from tests.shares.planted_bugs import BUGS, ShareBug, find_planted

FRESH = 6


@pytest.mark.parametrize("sort", SORTS)
def test_kept_histories_come_out_as_kafka_made_them(sort: str) -> None:
    assert list(differences(sort)) == []


def test_the_planted_bugs_fit_the_code() -> None:
    assert len({bug.name for _, bug in BUGS}) == len(BUGS)
    for _, bug in BUGS:
        compile(bug.changed(), bug.name, "exec")


@pytest.mark.long
@pytest.mark.parametrize("planted", BUGS, ids=lambda planted: planted.bug.name)
def test_kept_histories_find_a_planted_bug(planted: ShareBug) -> None:
    assert find_planted(planted) is not None


@pytest.mark.maven
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(1_000_000, 1_000_000 + FRESH))
def test_kafka_agrees(kind: str, seed: int) -> None:
    chosen = KINDS[kind]
    grown = chosen.history(seed, chosen.steps)
    try:
        outputs = share_oracle(chosen.program).run(grown.steps)
    except Unavailable as error:
        give_up(error)
    difference = first_difference(chosen, grown, outputs)
    assert difference is None, difference


@pytest.mark.maven
@pytest.mark.parametrize("seed", range(1_000_000, 1_000_000 + FRESH))
def test_kafka_agrees_about_share_groups(seed: int) -> None:
    try:
        oracle()
    except Unavailable as error:
        give_up(error)
    difference = comparison.first_difference(seed, make=share_history)
    assert difference is None, str(difference)
