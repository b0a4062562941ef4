"""Random runs: consumers and brokers that come, crash and come back, and connections that are cut."""

from __future__ import annotations

from random import Random
from typing import Any

from tests.designs.drafts.checkers import watch
from tests.designs.drafts.worlds import World


def random_run(
    draft: int, seed: int, *, steps: int = 25, zookeeper_cuts: bool = False, **settings: Any
) -> World:
    """A run of about two minutes with a fault every few seconds; then all is healed, and 80 seconds pass.

    zookeeper_cuts: whether brokers lose ZooKeeper too, by which two of them may count as coordinator.
    Raises `AssertionError` if an invariant that is watched breaks.
    """
    random = Random(seed)
    world = World(draft, brokers=3, seed=seed, latency=(1, 40), partitions=6, **settings)
    cuts: list[tuple[str, str]] = []
    dead: list[int] = []
    count, partitions = 0, 6
    for _ in range(steps):
        consumers = [name for name in world.nodes if not name.startswith("broker")]
        brokers = [name for name in world.nodes if name.startswith("broker")]
        match random.choice(["join", "join", "crash", "cut", "heal", "broker", "back", "topic", "zookeeper"]):
            case "join" if len(consumers) < 6:
                count += 1
                words: dict[str, Any] = {} if draft == 3 else {"auto_commit": random.random() < 0.7}
                world.join(f"c{count}", **words)
            case "crash" if consumers:
                world.crash(random.choice(consumers))
            case "cut" if consumers:
                pair = random.choice(consumers), random.choice(brokers)
                world.cut(*pair)
                cuts.append(pair)
            case "heal" if cuts:
                world.heal(*cuts.pop(random.randrange(len(cuts))))
            case "broker" if len(brokers) > 1:
                name = random.choice(brokers)
                dead.append(int(name[-1]))
                world.crash(name)
            case "back" if dead:
                world.add_broker(dead.pop())
            case "topic":
                partitions += random.randrange(2)  # there is no way to have fewer
                world.topic("t", {number: [1] for number in range(partitions)})
            case "zookeeper" if zookeeper_cuts:
                world.cut_zookeeper(random.choice(brokers))
        for _ in range(random.randint(1, 8)):
            world.run(random.randint(1, 2_000))
            assert watch(world) == []
    while cuts:
        world.heal(*cuts.pop())
    while dead:
        world.add_broker(dead.pop())
    for name in list(world.nodes):
        world.heal_zookeeper(name)
    if not any(not name.startswith("broker") for name in world.nodes):
        world.join("last")
    for _ in range(8):
        world.run(10_000)
        assert watch(world) == []
    return world
