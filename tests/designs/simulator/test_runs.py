"""Runs of all designs through one interface: the same nodes and faults, and the figures of each."""

from __future__ import annotations

import hashlib
import io
import os
import subprocess
import sys

import pytest

from coordwire.designs.simulator import Process, World, parse_faults
from coordwire.designs.simulator.runs import (
    DESIGNS,
    RunObserver,
    SimulatedRun,
    add_design,
    comparable_faults,
    simulate,
)
from tests.growth import assert_linear

EVERY = list(DESIGNS)
SESSION_MS = 6_000


@pytest.mark.parametrize("design", EVERY)
def test_a_design_has_the_same_nodes_and_shares_the_partitions(design: str) -> None:
    world = World(seed=1)
    add_design(world, design, members=3, partitions=7, coordinators=2)
    names = {f"consumer-{number}" for number in (1, 2, 3)} | {"coordinator-1", "coordinator-2"}
    assert set(world.nodes) - {"zookeeper"} == names
    world.run(30_000)
    owned = [world.ownership.owners(("group", "orders", number)) for number in range(7)]
    assert [len(one) for one in owned] == [1] * 7
    assert sorted(len(world.ownership.owned(f"consumer-{number}")) for number in (1, 2, 3)) == [2, 2, 3]


def test_an_unknown_design_is_a_key_error() -> None:
    with pytest.raises(KeyError):
        simulate("draft-4")


# --- ownership while a process is frozen ---


def three_owners() -> tuple[World, RunObserver]:
    world = World()
    for name in "abc":
        world.add(name, Process)
    observer = RunObserver(world)
    world.ownership.know([1, 2])
    return world, observer


def test_a_frozen_owner_reads_nothing_until_it_goes_on() -> None:
    world, observer = three_owners()
    world.clock.at(1_000, world.ownership.take, "a", 1)
    world.clock.at(1_000, world.ownership.take, "b", 2)
    world.plan(parse_faults("10s freeze a for 10s"))
    world.clock.at(14_000, world.ownership.take, "c", 1)  # nothing read it for four seconds
    world.clock.at(23_000, world.ownership.release, "a", 1)  # two read it for three
    world.run(30_000)
    observer.finish()
    assert world.ownership.assigned_at == 1_000
    assert world.ownership.orphaned_later_ms == 4_000
    assert world.ownership.duplicated_ms == 3_000
    spells = [(spell.began, spell.ended, spell.owners) for spell in observer.spells]
    assert spells == [(10_000, 14_000, ()), (20_000, 23_000, ("a", "c"))]
    assert [(rebalance.began, rebalance.ended, rebalance.moved) for rebalance in observer.rebalances] == [
        (1_000, 1_000, 2), (14_000, 14_000, 1), (23_000, 23_000, 0)
    ]  # fmt: skip
    assert observer.rebalances[1].owners == {"b": (2,), "c": (1,)}


def test_an_owner_that_crashes_while_it_is_frozen_comes_back_with_nothing() -> None:
    world, observer = three_owners()
    world.clock.at(1_000, world.ownership.take, "a", 1)
    world.clock.at(1_000, world.ownership.take, "b", 2)
    world.plan(parse_faults("10s freeze a for 10s; 12s crash a for 1s"))
    world.clock.at(15_000, world.ownership.take, "a", 1)
    world.run(30_000)
    assert (world.ownership.orphaned_later_ms, world.ownership.duplicated_ms) == (5_000, 0)
    assert observer.deaths == []  # what it had was read by nothing when it crashed


def test_a_death_is_over_when_each_partition_has_an_owner() -> None:
    world, observer = three_owners()
    for partition in (1, 2):
        world.clock.at(1_000, world.ownership.take, "a", partition)
    world.plan(parse_faults("5s crash a"))
    world.clock.at(7_000, world.ownership.take, "b", 1)
    world.clock.at(9_500, world.ownership.take, "c", 2)
    world.run(20_000)
    observer.finish()
    (death,) = observer.deaths
    assert (death.time, death.node, death.partitions, death.taken_over) == (5_000, "a", 2, 9_500)
    assert [(rebalance.began, rebalance.ended) for rebalance in observer.rebalances] == [
        (1_000, 1_000),
        (7_000, 9_500),
    ]


# --- figures ---


def run(design: str, plan: str, duration_ms: int = 60_000) -> SimulatedRun:
    return simulate(design, members=4, partitions=8, plan=parse_faults(plan), duration_ms=duration_ms)


@pytest.mark.parametrize("design", EVERY)
def test_a_death_is_detected_and_taken_over(design: str) -> None:
    measures = run(design, "30s crash consumer-2").measures
    (death,) = measures.deaths
    assert (death.time, death.node, death.partitions) == (30_000, "consumer-2", 2)
    assert death.detected is not None
    assert death.taken_over is not None
    closing_is_failing = design.startswith("draft-2")
    least = 0 if closing_is_failing else SESSION_MS // 2
    assert least <= death.detected - 30_000 <= SESSION_MS + 500
    assert death.detected <= death.taken_over <= 30_000 + 2 * SESSION_MS
    assert measures.changes == 5
    assert measures.orphaned_ms >= 2 * (death.detected - 30_000)


@pytest.mark.parametrize("design", EVERY)
def test_two_owners_are_those_that_each_design_lets_happen(design: str) -> None:
    """A consumer that reaches no node for longer than its session, and one that is frozen for as long."""
    measures = run(design, "20s cut consumer-1 * for 20s", 60_000).measures
    if design.startswith(("draft-2", "draft-3")):
        assert measures.duplicated_ms == 0
    else:
        assert measures.duplicated_ms > 2 * 10_000  # it is not aware of its session, and reads on
    assert all(rebalance.ended is not None for rebalance in measures.rebalances)


@pytest.mark.parametrize("design", EVERY)
def test_a_coordinator_that_dies_is_replaced(design: str) -> None:
    measures = run(design, "30s crash coordinator-1 for 40s", 60_000).measures
    if design == "zookeeper":
        assert measures.coordinator_deaths == ()
        return
    (death,) = measures.coordinator_deaths
    assert death.node == "coordinator-1"
    assert death.replaced is not None
    assert 0 < death.replaced - death.time <= SESSION_MS + 1_000


@pytest.mark.parametrize("design", EVERY)
def test_new_partitions_get_owners(design: str) -> None:
    world = run(design, "10s topic * orders 9", 50_000).run.world
    assert [len(world.ownership.owners(("group", "orders", number))) for number in range(9)] == [1] * 9


def test_every_change_wakes_every_consumer_of_zookeeper() -> None:
    """The herd effect: the death of one consumer fires a watch of each other one."""
    for members in (4, 8):
        without, with_death = (
            simulate(
                "zookeeper", members=members, plan=parse_faults(plan), duration_ms=30_000
            ).traffic.watches
            for plan in ("", f"18s crash consumer-{members}")
        )
        assert with_death - without == members - 1


@pytest.mark.long
def test_twice_the_consumers_are_twice_the_work_of_a_coordinator_of_draft_2() -> None:
    assert_linear(
        lambda members: members,
        lambda members: simulate("draft-2", members=members, partitions=2 * members, duration_ms=4_000),
        101,  # up to 100 start one after the other
        slack=1.15,  # the smallest is read twice, and its assignments are remembered
    )


def test_one_coordinator_of_draft_2_has_a_channel_to_each_of_its_consumers() -> None:
    """And tells each of them what it owns; the same for 5,000 takes minutes."""
    result = simulate("draft-2", members=500, partitions=1_000, duration_ms=10_000)
    world = result.run.world
    assert [len(world.ownership.owners(partition)) for partition in world.ownership.partitions] == [1] * 1_000
    links = [
        sum(link.is_listener for link in node.links.values())
        for name, node in world.nodes.items() if name.startswith("coordinator-")
    ]  # fmt: skip
    assert links == [500, 0]


@pytest.mark.long
def test_5_000_consumers_at_one_coordinator_of_draft_2() -> None:
    """What the detailed design expects; the virtual time has a death, and a coordinator's."""
    plan = parse_faults("12s crash consumer-7; 20s crash coordinator-1")
    result = simulate("draft-2", members=5_000, partitions=10_000, plan=plan, duration_ms=40_000)
    ownership = result.run.world.ownership
    assert [len(ownership.owners(partition)) for partition in ownership.partitions] == [1] * 10_000
    assert result.measures.duplicated_ms == 0
    assert [death.taken_over is not None for death in result.measures.deaths] == [True]
    assert [
        coordinator_death.replaced is not None for coordinator_death in result.measures.coordinator_deaths
    ] == [True]


def test_comparable_plans_cut_a_consumer_off_from_every_node() -> None:
    plans = [comparable_faults(seed, members=4) for seed in range(20)]
    assert plans == [comparable_faults(seed, members=4) for seed in range(20)]
    cuts = [fault for plan in plans for fault in plan if fault.kind == "cut"]
    assert cuts
    assert {fault.targets[1] for fault in cuts} == {"*"}
    assert max(fault.at for plan in plans for fault in plan) < 80_000


# --- the same bytes ---

SCRIPT = """
from tests.designs.simulator.test_runs import digest
print(digest())
"""


def digest() -> str:
    results = []
    for design in EVERY:
        file = io.BytesIO()
        plan = comparable_faults(5, members=3, duration_ms=60_000)
        result = simulate(design, members=3, seed=5, plan=plan, duration_ms=18_000, pcap=file)
        results.append(f"{design} {hash_of(file.getvalue())} {result.measures} {result.observer.spells}")
    return hash_of("\n".join(results).encode())


def hash_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def test_a_seed_gives_the_same_run_whatever_the_hashes_are() -> None:
    seed = "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2"
    result = subprocess.run(
        [sys.executable, "-c", SCRIPT], check=True, capture_output=True, text=True,
        env={**os.environ, "PYTHONHASHSEED": seed},
    )  # fmt: skip
    assert result.stdout.strip() == digest()
