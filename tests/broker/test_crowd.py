"""Many connections, clients that never read, slow peers: `python -m tests.broker.crowd` gives the figures."""

from __future__ import annotations

import pytest

from tests.broker.crowd import DEAF, allow, run

COUNT = 10_000


@pytest.mark.long  # about 20 seconds
def test_memory_is_bounded_and_others_are_served() -> None:
    if not allow(COUNT):
        pytest.skip(f"{COUNT} connections are more files than this process may open")
    figures = run(COUNT)
    assert figures.crowded - figures.alone < COUNT * 12_000
    assert figures.attacked - figures.crowded < DEAF * (8 << 20)
