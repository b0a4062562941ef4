"""Each message, direction and library as one benchmark of pytest-benchmark; compare inside a group.

Rules: whatever isn't installed is skipped with its reason. Only collected by its path:
`pytest tests/bench/bench_messages.py`.
"""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("pytest_benchmark", reason="pytest-benchmark is not installed")

from tests.bench.cases import Case, cases
from tests.bench.peers import PEERS, Missing, work

pytestmark = pytest.mark.peers


@pytest.mark.parametrize("peer", PEERS)
@pytest.mark.parametrize("direction", ["decode", "encode"])
@pytest.mark.parametrize("case", cases(), ids=lambda case: case.label)
def test_message(benchmark: Any, case: Case, direction: str, peer: str) -> None:
    try:
        decode, encode = work(peer, case)
    except Missing as reason:
        pytest.skip(str(reason))
    benchmark.group = f"{direction} {case.label}"
    benchmark(decode if direction == "decode" else encode)
