"""Scenarios, small: how long a group takes to heal, what is counted, and the figures' intervals."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf
from statistics import mean

import pytest

from coordwire.designs.simulator import parse_faults
from coordwire.designs.simulator.runs import DESIGNS, simulate
from tests.designs.simulator.scenarios import (
    MEASURES,
    SCENARIOS,
    Event,
    heavy_tailed,
    interval,
    lossy,
    percentile,
    run,
    scenario_tables,
)


def test_percentiles_are_those_of_nearest_rank() -> None:
    values = list(range(100, 0, -1))
    assert [percentile(values, share) for share in (0, 50, 95, 99, 100)] == [1, 50, 95, 99, 100]
    assert percentile([3, inf, 1], 50) == 3
    assert percentile([3, inf, 1], 99) == inf


def test_an_interval_is_that_of_its_key() -> None:
    values = [float(number % 10) for number in range(50)]
    low, high = interval(values, mean, "one")
    assert (low, high) == interval(values, mean, "one") != interval(values, mean, "another")
    assert 3 < low < mean(values) < high < 6
    assert interval([2.0] * 5, mean, "one") == (2.0, 2.0)


def test_latencies_of_networks_that_lose_and_delay() -> None:
    numbers: Iterator[float] = iter([0.999, 0.04, 0.01, 0.5, 0.0, 0.9])
    draw = lossy(0.05)
    assert [draw(lambda: next(numbers)), draw(lambda: next(numbers))] == [5 + 200 + 400, 1]
    tail = heavy_tailed(1.1)
    assert [tail(lambda share=share: share) for share in (0.0, 0.5, 0.999, 1 - 1e-9)] == [
        2, 3, 1067, 20_000,
    ]  # fmt: skip


@pytest.mark.parametrize("design", DESIGNS)
def test_a_lost_machine_is_mended_within_a_session_timeout_and_a_half(design: str) -> None:
    event = run("a machine is lost; session timeout 3 s", design, 3)
    assert event == run("a machine is lost; session timeout 3 s", design, 3)
    assert event.heal_ms is not None
    assert 2_000 <= event.heal_ms <= 5_000
    assert event.unread_ms >= 3 * event.heal_ms * 0.9
    assert not event.twice_ms
    assert 0 < event.messages < event.bytes / 16


def test_an_event_that_is_not_over_with_the_window_is_not_healed() -> None:
    event = run("ZooKeeper is away for 20 s", "zookeeper", 1)
    assert event.heal_ms is not None
    assert 20_000 < event.heal_ms < 21_000
    assert run("a coordinator crashes", "draft-1", 2).heal_ms is None


def test_static_members_that_restart_keep_their_partitions() -> None:
    """Nobody takes what they leave: it is unread for as long as they are away, and costs few messages."""
    names = "consumers restart one by one", "the same, static members"
    for design in ("classic", "consumer"):
        usual, static = (run(name, design, 1) for name in names)
        assert static.messages < usual.messages / 2
        assert static.unread_ms > usual.unread_ms


def test_a_shutdown_hands_the_coordinator_over_at_once() -> None:
    for design in ("draft-2", "classic", "consumer"):
        plan = parse_faults("20s leave coordinator-1; 20.5s crash coordinator-1")
        result = simulate(design, seed=1, plan=plan, duration_ms=30_000)
        elected = [note for note in result.run.notes() if note.name == "Elected" and note.time > 20_000]
        assert [note.node for note in elected] == ["coordinator-2"]
        assert elected[0].time < 20_200


@pytest.mark.parametrize(
    ("restart", "second"), [("", "coordinator-3"), ("; 21s crash coordinator-1 for 1s", "coordinator-1")]
)
def test_a_broker_that_shuts_down_coordinates_again_only_after_a_restart(restart: str, second: str) -> None:
    plan = parse_faults(f"20s leave coordinator-1; 25s leave coordinator-2{restart}")
    result = simulate("classic", plan=plan, duration_ms=30_000, coordinators=3)
    elected = [note.node for note in result.run.notes() if note.name == "Elected" and note.time > 20_000]
    assert elected == ["coordinator-2", second]


def test_a_broker_is_replaced_after_the_session_timeout_of_the_run() -> None:
    for design in ("draft-1", "draft-2", "draft-3", "classic"):
        for session_ms in (3_000, 12_000):
            result = simulate(
                design,
                plan=parse_faults("20s crash coordinator-1"),
                duration_ms=40_000,
                session_ms=session_ms,
            )
            (death,) = result.measures.coordinator_deaths
            assert death.replaced is not None
            assert session_ms * 0.6 < death.replaced - death.time < session_ms + 1_000


def test_tables_have_a_row_for_each_scenario_and_a_figure_with_its_interval() -> None:
    event = Event(5_000, 15_000, 0, 10.0, 500.0, 20, 1_400)
    found = {"all ZooKeeper sessions expire": {"draft-2": [event] * 3}}
    tables = list(scenario_tables(found))
    assert len(tables) == len(MEASURES)
    assert (
        "| all ZooKeeper sessions expire | – | – | – | 5.0 [5.0, 5.0] | – | – | – | – | – | – |" in tables[0]
    )
    assert "| – | – | – | 70 | – | – | – | – | – | – |" in tables[-1]


def test_each_scenario_names_nodes_that_a_run_has() -> None:
    nodes = {f"consumer-{number}" for number in range(1, 5)} | {
        "coordinator-1",
        "coordinator-2",
        "zookeeper",
        "*",
    }
    for scenario in SCENARIOS.values():
        for seed in (1, 2):
            for fault in scenario.faults(seed, "coordinator-2"):
                assert set(fault.targets) <= nodes
                assert 0 < fault.at < scenario.event_ms(seed) + scenario.window_ms()
