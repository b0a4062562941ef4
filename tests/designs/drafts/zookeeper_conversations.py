"""Conversations of the consumer that ZooKeeper coordinates, and what each of its steps asks of ZooKeeper."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from coordwire.designs.drafts.actions import DraftPartition, Noted
from coordwire.designs.drafts.zookeeper_assignment import Plan, SortBy
from coordwire.designs.drafts.zookeeper_consumer import (
    ConsumerRebalanceListener,
    ZooKeeperConsumer,
    ZooKeeperConsumerConfig,
)
from coordwire.designs.drafts.zookeeper_operations import CreateNode, DeleteNode, SetData
from coordwire.dialects import Dialect
from tests.designs.drafts.cluster import Entry
from tests.designs.drafts.transcripts import fetched, lines, nodes, record_operations
from tests.designs.drafts.worlds import World


def consumers(world: World) -> Iterator[str]:
    """What the consumers have in memory, and the nodes of ZooKeeper."""
    for name, node in sorted(world.nodes.items()):
        machine = node.machine
        if hasattr(machine, "rebalances"):
            yield f"{name}: rebalances={machine.rebalances} triggered={machine._triggered}"
            yield f"  owned={machine.owned} threads={machine.threads} {fetched(machine)}"
            yield f"  committed={machine.offsets.committed} written={machine.offsets._written}"
    for path, (data, session) in nodes(world, "/consumers").items():
        yield f"{path}: {data.decode()} {session}".rstrip()


def told_apart(world: World) -> Iterator[str]:
    """The history, which begins anew."""
    yield from lines(world)
    world.history.clear()


def of_consumers(**settings: Any) -> World:
    """One broker with topic t, which has five partitions."""
    return World(0, brokers=1, partitions=5, latency=(0, 0), **settings)


def zookeeper_shares() -> Iterator[str]:
    """registerConsumerInZK, rebalance, and what each step asks of ZooKeeper; the description's example."""
    world = of_consumers()
    record_operations(world)
    world.join("C1", topic_count='{"t":2}')
    world.run(100)
    yield from told_apart(world)
    yield from consumers(world)
    world.consume("C1", 7)
    world.join("C2", topic_count='{"t":2}')
    world.run(5_000)
    yield from told_apart(world)
    yield from consumers(world)


def zookeeper_has_many() -> Iterator[str]:
    """Several topics, groups, brokers and kinds of consumers; one dies while topics change."""
    world = World.larger(0)
    counts = {
        "Host-1": '{"Orders.EU":3,"t":1,"u-v":1}', "c2": "*2*Orders.*|x.*", "c10": '{"t":2,"x_1":1}',
        "c9": "!1!t|u.*", "z": '{"x_1":4,"t":1,"Orders.EU":1}',
    }  # fmt: skip
    for name, topic_count in counts.items():
        group = "G.2" if name == "z" else "g"
        world.join(name, topic_count=topic_count, group_id=group, auto_commit_interval_ms=4_000)
        world.run(1_500)
    world.run(6_000)
    for name in counts:
        world.consume_each(name)
    record_operations(world, (CreateNode, SetData, DeleteNode))
    world.run(4_500)
    yield from told_apart(world)
    world.topic("x_1", {number: [2] for number in range(12)})
    world.topic("Orders.US", {0: [5]})
    world.run(5_000)
    world.crash("c10")
    world.tree.apply(world.admin, DeleteNode("/brokers/topics/u-v"), world.now)
    world.deliver_events()
    world.run(12_000)
    yield from told_apart(world)
    yield from consumers(world)


def zookeeper_loses_one() -> Iterator[str]:
    """A consumer that dies, one that leaves, and one whose session is over without its knowledge."""
    world = of_consumers()
    for name in "abcd":
        world.join(name, zookeeper_session_ms=6_000)
        world.run(4_000)
    record_operations(world)
    world.history.clear()
    world.crash("a")
    world.run(9_000)
    yield from told_apart(world)
    world.consume("b", 3)
    world.nodes["b"].machine.shut_down()
    world.drain("b")
    world.run(6_000)
    yield from told_apart(world)
    yield from consumers(world)
    world.cut_zookeeper("c")
    world.run(8_000)
    yield from told_apart(world)
    world.heal_zookeeper("c")
    world.run(6_000)
    yield from told_apart(world)
    yield from consumers(world)


def zookeeper_watches() -> Iterator[str]:
    """Topics that are named, or match; their partitions; and brokers that come and go."""
    world = of_consumers()
    for name, group, topic_count in (
        ("a", "g", '{"t":1,"later":1}'),
        ("b", "h", "*1*l.*"),
        ("c", "i", '{"t":1}'),
    ):
        world.join(name, group_id=group, topic_count=topic_count)
        world.run(1_000)
    record_operations(world)
    world.history.clear()
    for topic, partitions in (
        ("later", {0: [1]}), ("later", {0: [1], 1: [1]}), ("last", {0: [1]}), ("u", {0: [1]}),
        ("t", {number: [1] for number in range(6)}),
    ):  # fmt: skip
        world.topic(topic, partitions)
        world.run(1_000)
        yield f"topic {topic} {partitions}"
        yield from told_apart(world)
    world.known[2] = world.known[1]
    world.add_broker(2)
    world.run(1_000)
    yield "a broker comes"
    yield from (line for line in told_apart(world) if "broker-" not in line)
    world.crash("broker-2")
    world.run(9_000)
    yield "and goes"
    yield from told_apart(world)
    yield from consumers(world)


def zookeeper_has_no_broker() -> Iterator[str]:
    """rebalance, with no broker: subscribe to them, and succeed."""
    for version in (None, "0.8.2.2"):
        world = of_consumers()
        world.crash("broker-1")
        world.run(7_000)
        record_operations(world)
        world.history.clear()
        world.join("a", kafka_version=version)
        world.run(3_000)
        yield f"version {version}"
        yield from told_apart(world)
        world.add_broker(1)
        world.run(3_000)
        yield from (line for line in told_apart(world) if "broker-" not in line)
        yield from consumers(world)


def zookeeper_fails_to_claim() -> Iterator[str]:
    """reflectPartitionOwnershipDecision: all or nothing; the attempts, and the time between them."""
    world = of_consumers()
    world.join("x", group_id="g", topic_count='{"t":1}')
    world.run(1_000)
    x = world.nodes["x"].machine
    x._stop()
    x.end_all()
    x._release = None
    world.tree.apply(world.admin, DeleteNode("/consumers/g/ids/x"), world.now)
    for partition in "0134":
        world.tree.apply(world.admin, DeleteNode(f"/consumers/g/owners/t/{partition}"), world.now)
    record_operations(world)
    world.history.clear()
    world.join("a", rebalance_max_retries=3, rebalance_backoff_ms=1_500)
    world.run(9_000)
    yield from told_apart(world)
    yield from consumers(world)
    world.topic("t", {number: [1] for number in range(3)})
    world.run(1_000)
    world.topic("t", {number: [1] for number in range(4)})
    world.tree.apply(world.admin, DeleteNode("/consumers/g/owners/t/2"), world.now)
    world.run(5_000)
    yield from told_apart(world)
    yield from consumers(world)


def zookeeper_divides() -> Iterator[str]:
    """AssignmentContext and RangeAssignor: topics and threads of each consumer, partitions by number."""
    world = World(0, brokers=1, partitions=11, latency=(0, 0))
    world.topic("u", {0: [1], 1: [1, 2], 2: [2, 1], 3: [2]})
    for name, topic_count in (
        ("c10", '{"t":1}'), ("c2", '{"t":2,"u":1}'), ("c1", '{"u":2}'), ("w", "!3!u"),
        ("v", '{"x":1}'),
    ):  # fmt: skip
        world.join(name, topic_count=topic_count)
        world.run(3_000)
    world.run(10_000)
    yield from consumers(world)
    world = World(0, brokers=2, partitions=1, latency=(0, 0))
    world.topic("t", {0: [1], 1: [2, 1], 2: [], 3: [2], 10: [1]})
    for name, sort_by in (("a", SortBy.BROKER), ("b", SortBy.BROKER)):
        world.join(name, sort_by=sort_by)
        world.run(5_000)
    yield from consumers(world)


class Told(ConsumerRebalanceListener):
    """Writes down what it is told."""

    def __init__(self, world: World) -> None:
        self.world = world

    def before_releasing_partitions(self, owned: Mapping[DraftPartition, int]) -> None:
        self.world.history.append(Entry(self.world.now, "listener", Noted("BeforeReleasing", str(owned))))

    def before_starting_fetchers(self, consumer_id: str, plan: Plan) -> None:
        self.world.history.append(Entry(self.world.now, consumer_id, Noted("BeforeStarting", str(plan))))


def zookeeper_tells() -> Iterator[str]:
    """An application's callbacks; and a topic that came while the session was over."""
    world = of_consumers()
    record_operations(world)
    config = ZooKeeperConsumerConfig(group_id="g", consumer_id="a", topic_count="*1*t.*")
    consumer = ZooKeeperConsumer(config, now=world.now)
    consumer.set_consumer_rebalance_listener(Told(world))
    world.add("a", consumer, Dialect.DRAFT_1)
    world.run(1_000)
    world.consume("a", 4)
    world.cut_zookeeper("a")
    world.run(9_000)
    world.topic("tt", {0: [1]})
    world.heal_zookeeper("a")
    world.run(3_000)
    yield from told_apart(world)
    yield from consumers(world)


def zookeeper_commits() -> Iterator[str]:
    """commitOffsets: in an interval, those that have changed; or not, without auto.commit.enable."""
    world = of_consumers()
    world.join("a", auto_commit_interval_ms=5_000)
    world.join("b", group_id="h", auto_commit_enable=False)
    world.run(1_000)
    record_operations(world)
    for offset in (4, 4, 6):
        for name in "ab":
            world.nodes[name].machine.consumed(DraftPartition("t", "1"), offset)
        world.run(5_000)
    yield from told_apart(world)
    for name in "ab":
        world.consume(name, 9)
    world.join("c", group_id="h", auto_commit_enable=False)
    world.join("d")
    world.run(5_000)
    yield from told_apart(world)
    yield from consumers(world)


def zookeeper_streams() -> Iterator[str]:
    """closeFetchers: connections, queues and the chunk that is read; and what the next owner begins with."""
    world = of_consumers()
    consumer = world.join("a", topic_count='{"t":2}')
    world.run(1_000)
    for number in range(5):
        partition = DraftPartition("t", str(number))
        consumer.fetchers.leader_found(partition, f"broker-{number % 2}")
        yield f"{partition}: {consumer.fetched(partition, 3 + number)} {fetched(consumer)}"
    yield f"{[consumer.take('t', thread) for thread in ('a-0', 'a-0', 'a-1', 'a-1', 'a-2')]}"
    yield f"{fetched(consumer)}"
    streams = consumer.streams.all()
    other = world.join("b", topic_count='{"t":1}')
    world.run(5_000)
    yield f"{[one.take() for one in streams]} {consumer.streams.all() == streams}"
    yield f"{fetched(consumer)} {fetched(other)} {consumer.threads} {other.threads}"
    yield from told_apart(world)
    yield from consumers(world)
