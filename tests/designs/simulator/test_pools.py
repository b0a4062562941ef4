"""Processors and handlers that take time, and offsets that are written together: the first draft's open
problem and its improvement."""

from __future__ import annotations

from typing import Any

from coordwire.designs.drafts.actions import DraftPartition
from coordwire.designs.simulator import World
from coordwire.designs.simulator.drafts import add_design
from coordwire.designs.simulator.drafts.machine_process import ProcessorPool
from coordwire.messages.draft_1 import Draft1StartRequest, Draft1StopRequest
from tests.designs.drafts.worlds import World as DraftWorld


def test_messages_of_one_processor_wait_for_each_other() -> None:
    pool = ProcessorPool(2, 600)
    assert [pool.finish(-1, 10), pool.finish(-3, 10), pool.finish(-2, 10)] == [11, 12, 11]
    assert [pool.finish(-1, 50), pool.finish(-1, 50)] == [51, 52]
    assert (pool.busy_us, pool.longest_wait_ms) == (3_000, 0)
    for _ in range(10):
        pool.finish(-1, 60)
    assert pool.longest_wait_ms == 5
    five = ProcessorPool(5, 600)
    assert [five.finish(-number, 10) for number in range(1, 7)] == [11] * 5 + [12]


def assigned_at(processors: int) -> int:
    world = World(seed=1)
    add_design(
        world, "draft-1", members=24, partitions={"orders": 2}, groups=12, apart_ms=0,
        processors=(processors, 20_000),
    )  # fmt: skip
    world.run(15_000)
    result = world.ownership.assigned_at
    assert result is not None
    pool: Any = world.nodes["coordinator-1"].process
    assert pool.pool.busy_us > 0
    return result


def test_fewer_processors_are_slower() -> None:
    """Open problem 2: the pool's size is given before, and more consumers are more work for each thread."""
    assert assigned_at(1) > assigned_at(12) + 300


def test_a_handler_takes_its_time_for_each_consumer() -> None:
    world = DraftWorld(1, consumers="ab", broker={"handler_us": 100_000})
    world.run(2_000)
    world.history.clear()
    world.topic("t", {number: [1] for number in range(6)})
    world.run(1_000)
    stop, start = world.sent(Draft1StopRequest)[0].time, world.sent(Draft1StartRequest)[0].time
    assert 200 <= start - stop < 250


def test_batched_offsets_are_written_in_an_interval() -> None:
    """Possible improvements: "another daemon thread can periodically reflect the updated map to ZK"."""
    for batched in (False, True):
        world = DraftWorld(1, consumers="a", broker={"batch_offsets": batched})
        world.consume("a", 8)
        world.run(3_000)
        assert world.read("/consumers/g/offsets/t/1-0") == (None if batched else b"8")
        world.run(9_000)
        assert world.read("/consumers/g/offsets/t/1-0") == b"8"
        world.consume("a", 9)
        world.run(3_000)
        assert world.read("/consumers/g/offsets/t/1-0") == (b"8" if batched else b"9")
        assert world.coordinator.groups["g"].offsets[DraftPartition("t", "1-0")] == 9
        world.run(6_000)
        assert world.read("/consumers/g/offsets/t/1-0") == b"9"
