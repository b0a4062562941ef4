"""The first draft's second open problem and its possible improvement, in figures.

    python -m tests.designs.simulator.pools       print both tables

Strategy: groups of five consumers at one coordinator; a topic gets a partition, so that all of them rebalance
at once. A message takes a processor half a millisecond, a consumer's Start a handler one. Rules: as the
comparison's; `compare` puts the tables into its page.
"""

from __future__ import annotations

from coordwire.designs.drafts.zookeeper_operations import GetData
from coordwire.designs.simulator import World, parse_faults
from coordwire.designs.simulator.drafts import add_design
from coordwire.designs.simulator.message_flow import MessageFlow
from coordwire.designs.simulator.runs import RunObserver, comparable_faults

MESSAGE_US, HANDLER_US, PER_GROUP = 500, 1_000, 5
CONSUMERS = (50, 200)
POOLS = ((1, 1), (4, 4), (16, 4))
CHANGE_MS, END_MS = 20_000, 30_000
BATCHED_RUNS = 4


def rebalance_ms(consumers: int, processors: int, handlers: int) -> tuple[int, float]:
    """Milliseconds from the change until the last group has its owners, and the share of the time that the
    coordinator's processors work while nothing changes."""
    world = World(seed=1)
    groups, partitions = consumers // PER_GROUP, PER_GROUP
    run = add_design(
        world, "draft-1", members=consumers, partitions={"orders": partitions}, groups=groups,
        apart_ms=5_000 // consumers, processors=(processors, MESSAGE_US),
        broker={"rebalance_handlers": handlers, "handler_us": HANDLER_US},
    )  # fmt: skip
    observer = RunObserver(world)
    world.plan(parse_faults(f"{CHANGE_MS}ms topic zookeeper orders {partitions + 1}"))
    world.run(CHANGE_MS - 6_000)
    pool = world.nodes["coordinator-1"].process.pool  # type: ignore[union-attr]
    before = pool.busy_us
    world.run(CHANGE_MS - 1)
    busy = (pool.busy_us - before) / (5_999 * 1_000 * processors)
    world.ownership.know(("group" if groups == 1 else f"group-{number}", "orders", partitions)
                         for number in range(1, groups + 1))  # fmt: skip
    world.run(END_MS)
    observer.finish()
    assert run.machine("coordinator-1") is not None
    whole = world.ownership.is_whole
    changes = [rebalance.ended or END_MS for rebalance in observer.rebalances if rebalance.began >= CHANGE_MS]
    return (max(changes) - CHANGE_MS if whole and changes else -1), busy


def pools_table() -> str:
    lines = ["| processors, handlers | " + " | ".join(f"{number} consumers" for number in CONSUMERS) + " |"]
    lines += ["|---|" + "---:|" * len(CONSUMERS)]
    for processors, handlers in POOLS:
        cells = []
        for consumers in CONSUMERS:
            length, busy = rebalance_ms(consumers, processors, handlers)
            text = "not in 10 s" if length < 0 else f"{length / 1000:.2f} s"
            cells.append(f"{text}, {100 * busy:.0f}%")
        lines.append(f"| {processors}, {handlers} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def offset_writes(batched: bool) -> tuple[float, float]:
    """Writes of offsets a minute, and messages delivered twice a run, under fault plans."""
    writes = twice = 0
    for seed in range(1, BATCHED_RUNS + 1):
        world = World(seed=seed)
        run = add_design(
            world, "draft-1", members=4, partitions={"orders": 12}, broker={"batch_offsets": batched}
        )
        flow = MessageFlow(world, groups=["group"], topics={"orders": 12}, brokers=2)
        world.plan(comparable_faults(seed, members=4, duration_ms=120_000))
        world.run(120_000)
        twice += flow.deliveries(110_000).twice
        tree, admin = run.zookeeper.tree, run.zookeeper._admin
        stats = (tree.apply(admin, GetData(path), world.now).stat for path in tree.paths()
                 if "/offsets/orders/" in path)  # fmt: skip
        writes += sum(stat.version + 1 for stat in stats if stat is not None)
    return writes / BATCHED_RUNS / 2, twice / BATCHED_RUNS


def batches_table() -> str:
    once, batched = offset_writes(False), offset_writes(True)
    return (
        f"| draft 1 under {BATCHED_RUNS} fault plans | with each ping | every 10 s |\n|---|---:|---:|\n"
        f"| offsets written to ZooKeeper, a minute | {once[0]:.0f} | {batched[0]:.0f} |\n"
        f"| messages delivered twice, a run | {once[1]:.0f} | {batched[1]:.0f} |\n"
    )


if __name__ == "__main__":
    print(pools_table())
    print(batches_table())
