"""Every broker coordinates a subset of the groups: the detailed design's sections 1 and 13, and draft 3."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from coordwire.designs.simulator import World, parse_faults
from coordwire.designs.simulator.drafts import add_design
from coordwire.designs.simulator.runs import simulate

DESIGNS = ["draft-2-overview", "draft-2", "draft-3", "draft-3-loaded"]
SUBSETS = 9


def run(design: str, plan: str = "", until: int = 30_000) -> Any:
    world = World(seed=4)
    run = add_design(
        world, design, members=24, partitions={"orders": 3}, coordinators=3, groups=12, apart_ms=50,
        broker={"coordinators": SUBSETS},
    )  # fmt: skip
    world.plan(parse_faults(plan))
    world.run(until)
    return run


def offices(run: Any) -> dict[str, set[int]]:
    return {name: machine.offices for name in ("coordinator-1", "coordinator-2", "coordinator-3")
            if (machine := run.machine(name)) is not None}  # fmt: skip


@pytest.mark.parametrize("design", DESIGNS)
def test_brokers_divide_the_groups(design: str) -> None:
    result = run(design)
    assert offices(result) == {
        "coordinator-1": {0, 3, 6}, "coordinator-2": {1, 4, 7}, "coordinator-3": {2, 5, 8}
    }  # fmt: skip
    assert {
        len(result.world.ownership.owners(partition)) for partition in result.world.ownership.partitions
    } == {1}
    assert result.world.ownership.duplicated_ms == 0
    served = [set(result.machine(name).groups) for name in offices(result)]
    assert sum(map(len, served)) == len(set().union(*served)) == 12
    assert sorted(map(len, served)) == [2, 4, 6]
    machine = result.machine("coordinator-1")
    shares = Counter(machine.office_of(f"group-{number}") for number in range(900 * SUBSETS))
    assert set(shares) == set(range(SUBSETS))
    assert max(shares.values()) - min(shares.values()) < 100  # evenly


def test_a_consumer_asks_for_its_own_groups_coordinator() -> None:
    machine = run("draft-2", until=2_000).machine("consumer-7")
    assert machine.discovery_request().group_id == machine.config.group_id != ""


@pytest.mark.parametrize("design", DESIGNS)
def test_the_groups_of_a_broker_that_dies_go_to_the_others(design: str) -> None:
    """And to them alone: the other groups are not rebalanced."""
    result = run(design, "20s crash coordinator-2", 45_000)
    remaining = offices(result)
    assert set(remaining) == {"coordinator-1", "coordinator-3"}
    assert sorted(office for one in remaining.values() for office in one) == list(range(SUBSETS))
    assert {
        len(result.world.ownership.owners(partition)) for partition in result.world.ownership.partitions
    } == {1}
    generations = {
        name: getattr(group, "generation", None)
        for machine in map(result.machine, remaining) for name, group in machine.groups.items()
    }  # fmt: skip
    assert len(generations) == 12


def test_the_rest_of_the_groups_does_not_notice() -> None:
    """Of three brokers one crashes. Where it coordinated all groups, all stop; else a third of them."""
    unread = {}
    for subsets in (1, SUBSETS):
        result = simulate(
            "draft-2", members=24, partitions=3, coordinators=3, groups=12, subsets=subsets,
            plan=parse_faults("20s crash coordinator-1"), duration_ms=45_000,
        )  # fmt: skip
        unread[subsets] = {spell.partition for spell in result.observer.spells if spell.began >= 20_000}
    assert len(unread[1]) == 36
    assert 3 <= len(unread[SUBSETS]) <= 21


@pytest.mark.long
@pytest.mark.parametrize("design", ["draft-2", "draft-3-loaded"])
def test_5_000_consumers_spread_over_brokers(design: str) -> None:
    """Section 13, "Multiple Coordinator": no broker has more than half of the connections."""
    result = simulate(
        design, members=5_000, partitions=20, coordinators=5, groups=500, subsets=50, duration_ms=25_000
    )
    ownership = result.run.world.ownership
    assert {len(ownership.owners(partition)) for partition in ownership.partitions} == {1}
    assert len(ownership.partitions) == 10_000
    links = [
        sum(link.is_listener for link in result.run.world.nodes[f"coordinator-{number}"].links.values())
        for number in range(1, 6)
    ]
    assert sum(links) == 5_000
    assert max(links) < 2_500
