"""What a steady heartbeat costs, in calls: few, and the same for any number of groups and members."""

from __future__ import annotations

import gc
import sys
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

pytest.importorskip("tracemalloc", reason="PyPy does not trace memory")
from tests.bench.coordinator import Bench

KINDS = [("classic", 4, 7), ("consumer", 1, 8)]
"""The kind of group, a version, and how many calls of Python functions a heartbeat may take."""


def calls(bench: Bench, requests: list[Any], version: int) -> Counter[str]:
    return counted(bench.beats(requests, version))


def counted(run: Callable[[], object]) -> Counter[str]:
    """How often which function of Python is called."""
    counts: Counter[str] = Counter()

    def count(frame: Any, event: str, _: Any) -> None:
        if event == "call":
            counts[frame.f_code.co_name] += 1

    gc.disable()  # what a collection calls would be counted
    sys.setprofile(count)
    try:
        run()
    finally:
        sys.setprofile(None)
        gc.enable()
    return counts


@pytest.mark.parametrize(("kind", "version", "limit"), KINDS)
def test_a_steady_heartbeat_takes_few_calls(kind: str, version: int, limit: int) -> None:
    bench = Bench()
    requests = getattr(bench, kind)("payments", 8)
    counts = calls(bench, requests, version)
    beats = counts["handle"]
    assert beats == 400
    assert counts.total() <= limit * beats
    # Nothing is queued, no timer is pushed, nothing waits.
    assert counts["_run_queue"] == counts["_push"] == counts["_wait"] == 0


@pytest.mark.parametrize(("kind", "version", "limit"), KINDS)
def test_the_number_of_groups_changes_nothing(kind: str, version: int, limit: int) -> None:
    totals = []
    for count in (10, 20, 40):
        bench = Bench(1 << 30)
        requests = [
            request for number in range(count) for request in getattr(bench, kind)(f"group-{number}", 1)
        ]
        counts = calls(bench, requests, version)
        counts.pop("run")
        totals.append(counts.total() / counts["handle"])
    assert totals[0] == totals[1] == totals[2]


@pytest.mark.growth
@pytest.mark.parametrize("kind", ["classic", "consumer"])
def test_a_members_way_into_a_group_costs_the_same_in_a_large_one(kind: str) -> None:
    totals = []
    for count in (100, 200, 400):
        bench = Bench(1 << 30)
        counts = counted(partial(getattr(bench, kind), "payments", count))
        totals.append(counts.total() / count)
    assert totals[2] <= 1.05 * totals[0]
