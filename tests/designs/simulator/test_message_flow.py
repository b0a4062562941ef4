"""Messages in the simulation: each is delivered, in order, and again after what loses offsets."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from coordwire.designs.drafts.zookeeper_consumer import ZooKeeperConsumer, ZooKeeperConsumerConfig
from coordwire.designs.simulator import SimulatedNode, World, parse_faults
from coordwire.designs.simulator.drafts import DRAFT_DESIGNS
from coordwire.designs.simulator.drafts import add_design as add_draft
from coordwire.designs.simulator.drafts.machine_process import MachineProcess
from coordwire.designs.simulator.message_flow import Deliveries, MessageFlow
from coordwire.designs.simulator.runs import DESIGNS, comparable_faults, simulate
from coordwire.designs.simulator.runs import add_design as add_any


def deliveries(design: str, plan: str = "", *, seed: int = 1, duration_ms: int = 60_000) -> Deliveries:
    run = simulate(
        design, members=3, partitions=6, seed=seed, plan=parse_faults(plan), duration_ms=duration_ms,
        messages=True,
    )  # fmt: skip
    assert run.measures.deliveries is not None
    return run.measures.deliveries


DELIVERING = [design for design in DESIGNS if design != "share"]
"""A share group's members acquire records, which is not simulated."""


def test_a_share_group_has_no_deliveries() -> None:
    run = simulate("share", members=4, partitions=6, duration_ms=20_000, messages=True)
    assert run.measures.deliveries is None


@pytest.mark.parametrize("design", DELIVERING)
def test_every_message_is_delivered_in_order(design: str) -> None:
    """No message is lost after a commit, and a partition's messages come in their order."""
    plan = "20s crash consumer-1 for 5s; 30s cut consumer-2 * for 4s; 40s crash coordinator-1 for 3s"
    result = deliveries(design, plan, duration_ms=90_000)
    assert result.stored == 6 * 800
    assert (result.skipped, result.disordered) == (0, 0)
    assert result.never == 0


@pytest.mark.parametrize("design", DELIVERING)
def test_a_crash_delivers_again_what_was_not_committed(design: str) -> None:
    assert deliveries(design, "30s crash consumer-1").twice > deliveries(design).twice


@pytest.mark.slow
@pytest.mark.parametrize("design", DELIVERING)
@pytest.mark.parametrize("seed", range(1, 9))
def test_no_plan_loses_a_message_after_a_commit(design: str, seed: int) -> None:
    run = simulate(
        design, members=4, partitions=12, seed=seed, plan=comparable_faults(seed, members=4),
        duration_ms=120_000, messages=True,
    )  # fmt: skip
    result = run.measures.deliveries
    assert result is not None
    assert (result.skipped, result.disordered) == (0, 0)


def test_offsets_that_are_committed_before_they_are_consumed_lose_messages() -> None:
    """The planted bug: an offset is reported when its messages are fetched."""
    world = World(seed=1)
    add_any(world, "classic", members=3, partitions=6)
    flow = MessageFlow(world, groups=["group"], topics={"orders": 6}, brokers=2, poll_ms=4_000)
    poll = flow._poll_consumer

    def report_early(name: str, process: Any) -> None:
        poll(name, process)
        for key, progress in flow._consumers[name].fetchers.partitions.items():
            progress.consumed = progress.fetched
            process.consumed((*key.topic.split("/"), int(key.partition)), progress.fetched)

    flow._poll_consumer = report_early  # type: ignore[method-assign]
    world.plan(parse_faults("30s crash consumer-1"))
    world.run(60_000)
    assert flow.deliveries().skipped > 0


PLAN = "30s crash coordinator-1 for 8s"


def flowing(plan: str, seed: int = 1, **flow: int) -> Deliveries:
    run = simulate(
        "consumer", members=3, partitions=6, seed=seed, plan=parse_faults(plan), duration_ms=80_000,
        messages=True, flow=flow,
    )  # fmt: skip
    assert run.measures.deliveries is not None
    return run.measures.deliveries


@pytest.mark.parametrize("most", [1, 7, 40])
def test_a_crash_takes_fewer_messages_than_are_flushed_together(most: int) -> None:
    """Three of six partitions are led by the broker whose machine crashes."""
    result = flowing(PLAN, flush_messages=most)
    assert result.lost <= 3 * (most - 1)
    assert (result.lost > 0) is (most > 1)
    assert result.lost_unread <= result.lost


@pytest.mark.parametrize("flush_ms", [300, 2_000])
def test_a_crash_takes_no_message_that_is_older_than_the_time_of_a_flush(flush_ms: int) -> None:
    result = flowing(PLAN, flush_ms=flush_ms)
    assert 0 < result.lost <= 3 * flush_ms // 100


def test_messages_that_took_the_offsets_of_lost_ones_are_passed_over() -> None:
    """A consumer that had read further than the disk had: it goes on where it was."""
    result = flowing(PLAN, flush_messages=40)
    assert result.skipped > 0
    assert flowing(PLAN).skipped == flowing(PLAN).lost == 0
    assert flowing("30s freeze coordinator-1 for 8s", flush_messages=40).lost == 0


def test_replicas_lead_while_a_leader_is_down() -> None:
    """Without them the messages of its partitions wait for it, for good if it does not come back."""
    alone, moved = (flowing("30s crash coordinator-1", **flow) for flow in ({}, {"failover_ms": 6_000}))
    assert moved.stored > alone.stored + 3 * 300
    assert (moved.never, moved.skipped, moved.lost, moved.disordered) == (0, 0, 0, 0)
    back = flowing(PLAN, failover_ms=2_000, flush_messages=40)
    assert (back.never, back.skipped, back.lost) == (0, 0, 0)


def test_consumers_find_a_leader_that_has_moved() -> None:
    world = World(seed=1)
    add_any(world, "draft-2", members=2, partitions=4)
    flow = MessageFlow(world, groups=["group"], topics={"orders": 4}, brokers=2, failover_ms=3_000)
    world.plan(parse_faults("20s crash coordinator-1 for 10s"))
    before = {flow.leader(partition) for partition in flow.logs}
    world.run(40_000)
    assert (before, {flow.leader(partition) for partition in flow.logs}) == (
        {"coordinator-1", "coordinator-2"}, {"coordinator-2"}
    )  # fmt: skip
    ends = {partition: log.end for partition, log in flow.logs.items()}
    delivered = {partition: sum(map(bool, log.counts)) for partition, log in flow.logs.items()}
    assert all(ends[partition] - delivered[partition] < 10 for partition in ends)


def new_consumer(config: ZooKeeperConsumerConfig, node: SimulatedNode) -> ZooKeeperConsumer:
    return ZooKeeperConsumer(config, now=node.now)


def test_groups_get_all_messages_and_the_consumers_of_a_group_each_one() -> None:
    """Broadcast between groups, unicast within one."""
    world = World(seed=1)
    run = add_draft(world, "zookeeper", members=2, partitions={"orders": 6})
    for number in (3, 4):
        name = f"consumer-{number}"
        config = ZooKeeperConsumerConfig(group_id="other", consumer_id=name, topic_count='{"orders":1}')
        make = partial(
            MachineProcess, partial(new_consumer, config),
            DRAFT_DESIGNS["zookeeper"], session_ms=6_000, group="other",
        )  # fmt: skip
        world.add(name, make, at=number * 1_000)
    flow = MessageFlow(world, groups=["group", "other"], topics={"orders": 6}, brokers=2)
    world.run(60_000)
    result = flow.deliveries(50_000)
    assert result.stored == 2 * 6 * 500
    assert (result.never, result.skipped) == (0, 0)
    assert run.machine("consumer-3").owned.keys() & run.machine("consumer-4").owned.keys() == set()
    quiet = slice(200, 500)  # no consumer comes or goes
    assert {count for log in flow.logs.values() for count in log.counts[quiet]} == {1}


def test_a_consumer_that_cannot_reach_the_leader_is_no_reader() -> None:
    """Cut off from the brokers, it fetches nothing, whatever it believes to own."""
    plan = "30s cut consumer-1 * for 12s"
    runs = [
        simulate(
            "zookeeper", members=3, partitions=6, plan=parse_faults(plan), duration_ms=70_000, messages=on
        )
        for on in (False, True)
    ]
    without, with_messages = (run.measures.duplicated_ms for run in runs)
    assert without > 5_000
    assert with_messages < 1_000


def test_without_messages_a_run_is_as_before() -> None:
    assert simulate("draft-2", duration_ms=20_000).measures.deliveries is None
