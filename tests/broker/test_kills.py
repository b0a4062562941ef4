"""A broker on disk is killed while clients write; `python -m tests.broker.kills` does it more often."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.broker.kills import run


def test_what_was_acknowledged_outlives_a_kill(tmp_path: Path) -> None:
    asyncio.run(run(tmp_path / "data", 2, seed=1))


@pytest.mark.suites
@pytest.mark.parametrize("seed", [2, 3, 4, 5])
def test_what_was_acknowledged_outlives_many_kills(tmp_path: Path, seed: int) -> None:
    asyncio.run(run(tmp_path / "data", 50, seed=seed))
