"""Conversations of the first draft, by the words of its sections."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from coordwire.designs.drafts.actions import Noted
from coordwire.designs.drafts.draft_settings import BrokerAddress
from coordwire.designs.drafts.zookeeper_operations import DeleteNode
from coordwire.messages.draft_1 import (
    Draft1PartitionOffset,
    Draft1PingRequest,
    Draft1StartRequest,
    Draft1StopRequest,
)
from tests.designs.drafts.cluster import Entry
from tests.designs.drafts.transcripts import fetched, lines, nodes, queued
from tests.designs.drafts.worlds import World

TOPICS = ("t", "tt", "later", "u", "v", "__consumer_offsets")


def handled(world: World) -> None:
    """Write down which handler takes which group from its queue."""
    for name, node in world.nodes.items():
        machine = node.machine
        if hasattr(machine, "on_dequeued"):
            dequeued = machine.on_dequeued

            def seen(group: Any, name: str = name, dequeued: Callable[..., None] = dequeued) -> None:
                taken = Noted("Takes", f"{group.group_id} in {group.handler}")
                world.history.append(Entry(world.now, name, taken))
                dequeued(group)

            machine.on_dequeued = seen


def knows(world: World) -> Iterator[str]:
    """What the brokers have in memory of groups, and the nodes of ZooKeeper."""
    for name, node in sorted(world.nodes.items()):
        machine = node.machine
        for group in getattr(machine, "groups", {}).values():
            members = {
                member.consumer_id: (
                    member.connection is not None, member.auto_commit, member.starts_at, member.ping_ms,
                    member.answer_ms, member.max_retries, member.failures, member.pinged,
                    member.is_rebalancing,
                ) for member in group.members.values()
            }  # fmt: skip
            yield f"{name} knows {group.group_id}: {members} {sorted(group.topics)}"
            yield f"  wants {[topic for topic in TOPICS if group.wants(topic)]}"
            yield f"  queued={group.queued} handler={group.handler} offsets={sorted(group.offsets.items())}"
        yield f"{name} has {len(node.host.connections)} connections"
        if hasattr(machine, "offices"):
            timers = sorted(map(str, machine._timers._live))
            yield f"{name}: offices={machine.offices} topics={machine.partitions} timers={timers}"
        elif hasattr(machine, "state"):
            yield f"{name}: {machine.state.value} cluster={machine.cluster} owned={machine.owned}"
    for path, (data, session) in nodes(world, "/").items():
        yield f"{path}: {data.decode()} {session}".rstrip()


LARGER: dict[str, dict[str, Any]] = {
    "Host-1": {"topic_count": '{"Orders.EU":3,"t":1,"u-v":1}'},
    "c2": {"topic_count": "*2*Orders.*|x.*", "auto_commit": False, "auto_offset_reset": "largest"},
    "c10": {"topic_count": '{"t":2,"x_1":1}'},
    "c9": {"topic_count": "!1!t|u.*", "auto_offset_reset": "largest"},
    "z": {"topic_count": '{"x_1":4,"t":1,"Orders.EU":1}', "group_id": "G.2"},
}
"""Consumers of topics that differ, in two groups."""


def in_a_larger_world(draft: int) -> Iterator[str]:
    """Several topics, groups and brokers: consumers join, die, or fail while topics change."""
    world = World.larger(draft)
    for name, settings in LARGER.items():
        world.join(name, **settings)
        world.run(150)
    for name in LARGER:
        world.consume_each(name)
    world.run(2_500)
    yield from lines(world)
    world.history.clear()
    world.topic("x_1", {number: [2] for number in range(12)})
    world.topic("Orders.US", {0: [5]})
    world.run(300)
    yield from lines(world)
    world.history.clear()
    world.blocked.add(("c9", "broker-1"))
    world.run(3_000)
    world.crash("c10")
    world.tree.apply(world.admin, DeleteNode("/brokers/topics/u-v"), world.now)
    world.deliver_events()
    world.run(1_000)
    world.heal("c9", "broker-1")
    world.run(9_000)
    yield from lines(world)
    yield from knows(world)


def draft_1_has_many() -> Iterator[str]:
    """Several topics, groups, brokers and kinds of consumers."""
    yield from in_a_larger_world(1)


def draft_1_has_one_session() -> Iterator[str]:
    """handleNewSession where the coordinator and its broker have the same session: it is elected again."""
    world = World(1, consumers="a", broker={"coordinator_has_client": False})
    world.history.clear()
    world.cut_zookeeper("broker-1")
    world.cut_zookeeper("broker-2")
    world.run(10_000)
    world.heal_zookeeper("broker-1")
    world.run(3_000)
    yield from lines(world)
    yield from knows(world)


def draft_1_shares() -> Iterator[str]:
    """On Consumer Startup, On Consumer Add, Handling PingRequest with auto_commit and without."""
    world = World(1, consumers="a")
    world.join("b-2", auto_commit=False, auto_offset_reset="largest")
    world.run(100)
    world.consume("a", 8)
    world.consume("b-2", 9)
    world.run(4_500)
    yield from lines(world)
    yield from knows(world)


def draft_1_fails() -> Iterator[str]:
    """A consumer that does not answer: max_ping_retries, handleGroupMemberChange."""
    world = World(1, consumers="b")
    handled(world)
    world.join("a", ping_interval_ms=900, max_ping_retries=2)
    world.join("d", group_id="h", max_ping_retries=0)
    world.run(1_500)
    world.blocked.add(("d", "broker-1"))
    world.history.clear()
    world.blocked.add(("a", "broker-1"))  # what a answers waits; what it is sent arrives
    world.run(6_000)
    yield from lines(world)
    yield from knows(world)
    world.history.clear()
    world.crash("b")
    world.run(10_000)
    world.topic("t", {number: [1] for number in range(6)})
    world.run(1_000)
    world.topic("tt", {0: [1]})
    world.join("e", topic_count='{"tt":1}')  # into the group that was left empty
    world.run(3_000)
    yield from lines(world)
    yield from knows(world)


def draft_1_is_late() -> Iterator[str]:
    """num_retries: this is the number of the ping's retry."""
    world = World(1)
    world.join("a", max_ping_retries=9)
    world.run(100)
    world.freeze("a")
    world.run(13_000)
    world.thaw("a")
    world.run(4_000)
    yield from lines(world, since=1_000)
    yield from knows(world)


def draft_1_fails_over() -> Iterator[str]:
    """On Coordinator Failover, and a coordinator that loses its session: handleNewSession."""
    world = World(1, brokers=3, consumers="ab")
    world.consume("a", 7)
    world.run(2_500)
    world.history.clear()
    world.crash("broker-1")
    world.run(8_000)
    yield from lines(world)
    yield from knows(world)
    world.history.clear()
    world.cut_zookeeper("broker-2")
    world.run(10_000)
    world.heal_zookeeper("broker-2")
    world.run(5_000)
    yield from lines(world)
    yield from knows(world)
    yield f"queues of broker-2: {queued(world.nodes['broker-2'].machine)}"
    world.history.clear()
    world.tree.apply(world.admin, DeleteNode("/consumers/coordinator"), world.now)
    world.deliver_events()
    world.run(5_000)
    yield from lines(world)
    yield from knows(world)


def draft_1_starts_up() -> Iterator[str]:
    """coordinatorStartup: groups that have owners are known and rebalanced before a consumer comes."""
    world = World(1, consumers="a")
    world.topic("tt", {0: [1], 1: [2]})
    world.join("z", group_id="other", topic_count='{"t":1,"tt":1}')
    world.run(200)
    world.cut("a", "broker-2")
    world.cut("z", "broker-2")
    world.history.clear()
    handled(world)
    world.crash("broker-1")
    world.run(7_000)
    yield from lines(world)
    yield from knows(world)


def draft_1_sees_topics() -> Iterator[str]:
    """TopicChangeListener, TopicPartitionChangeListener: the groups that are interested, and no other."""
    world = World(1)
    handled(world)
    topic_counts = {
        "one": "*2*t.*",
        "two": '{"t":1}',
        "three": "!1!t.*",
        "four": '{"u":1,"later":1}',
    }
    for name, (group, topic_count) in zip("abcd", topic_counts.items(), strict=True):
        world.join(name, group_id=group, topic_count=topic_count)
        world.run(50)
    for topic, partitions in (
        ("tt", {0: [1]}),
        ("later", {0: [2]}),
        ("later", {0: [2], 1: [1]}),
        ("later", {0: [2], 1: [1], 2: [1]}),
        ("t", {number: [1] for number in range(5)}),
        ("__consumer_offsets", {0: [1]}),
        ("v", {0: [2, 1], 1: [1, 2]}),
        ("t", {number: [1] for number in range(3)}),
        ("tt", {0: [1], 1: [2]}),
    ):
        yield f"topic {topic} {partitions}"
        world.history.clear()
        world.topic(topic, partitions)
        world.run(50)
        yield from lines(world)
    yield from knows(world)


def draft_1_retries() -> Iterator[str]:
    """ConsumerRebalanceFailedException after maxRebalanceRetries; the group's bit stays."""
    world = World(1, broker={"max_rebalance_retries": 2})
    world.join("a", max_ping_retries=9)
    world.run(200)
    world.blocked.add(("a", "broker-1"))
    world.history.clear()
    world.topic("t", {number: [1] for number in range(5)})
    world.run(9_000)
    yield from lines(world)
    yield from knows(world)


def draft_1_need_not() -> Iterator[str]:
    """Rebalance step 3.5: the ownership that is there is that which is computed."""
    world = World(1, partitions=12, consumers="ab")
    world.history.clear()
    world.nodes["a"].machine.retry()
    world.drain("a")
    world.run(1_000)
    yield from lines(world)
    yield from knows(world)


def draft_1_has_handlers() -> Iterator[str]:
    """Each handler has its groups, one after the other; handlers work beside each other."""
    world = World(1, broker={"rebalance_handlers": 3, "handler_us": 20_000})
    handled(world)
    for name, group in zip("abcdef", ("one", "two", "three", "four", "six", "seven"), strict=True):
        world.join(name, group_id=group, ping_interval_ms=30_000)
    world.run(500)
    yield from lines(world)
    yield from knows(world)


def draft_1_queues() -> Iterator[str]:
    """groupsBeingRebalanced(group).compareAndSet(false, true), and the queues of groups that wait."""
    world = World(1, broker={"rebalance_handlers": 2})
    handled(world)
    world.join("a", group_id="one", ping_interval_ms=10_000)
    world.run(200)
    world.cut("a", "broker-1")
    world.topic("t", {number: [1] for number in range(5)})
    world.run(200)
    for name, group in zip("bcdef", ("three", "seven", "three", "seven", "two"), strict=True):
        world.join(name, group_id=group)
        world.run(50)
    world.topic("t", {number: [1] for number in range(6)})
    world.run(1_000)
    coordinator = world.coordinator
    bits = {group.group_id: (group.queued, group.topics) for group in coordinator.groups.values()}
    yield f"bits {bits} queues {queued(coordinator)} {coordinator._handled}"
    world.history.clear()
    world.heal("a", "broker-1")
    world.run(500)
    yield from lines(world)
    yield from knows(world)


def draft_1_resigns() -> Iterator[str]:
    """handleNewSession, step 1: what a coordinator knows, its queues and its connections go."""
    world = World(1, brokers=1, broker={"rebalance_handlers": 1}, consumers="a")
    world.run(3_000)
    machine = world.coordinator
    world.cut("a", "broker-1")
    world.topic("t", {number: [1] for number in range(5)})
    world.run(100)
    for name, group in zip("bc", ("two", "three"), strict=True):
        world.join(name, group_id=group, idle_timeout_ms=60_000)
        world.run(50)
    yield f"{queued(machine)} {machine._handled} {sorted(machine._consumers)}"
    world.history.clear()
    world.cut_zookeeper("broker-1")
    machine.settings = replace(machine.settings, max_rebalance_retries=99)
    world.run(7_000)
    queues = queued(machine)
    yield f"{queues} {sorted(machine._consumers)} {sorted(machine.groups)}"
    world.heal_zookeeper("broker-1")
    world.run(1)
    yield f"{queued(machine)} {machine._consumers} {machine.groups}"
    yield f"{machine.offices} {sorted(map(str, machine._procedures))}"
    world.run(2_000)
    yield from lines(world)
    yield from knows(world)


def draft_1_registers_twice() -> Iterator[str]:
    """An id that registers over another connection: the new one counts, and the old one is closed."""
    world = World(1, consumers="ab")
    world.history.clear()
    world.join("a", process="c")
    world.run(3_000)
    yield from lines(world)
    yield from knows(world)


def draft_1_waits() -> Iterator[str]:
    """Rebalance steps 4.3 and 5: all StartResponses, and the ownership is written after them."""
    world = World(1, consumers="abc")
    world.blocked.add(("b", "broker-1"))
    world.history.clear()
    world.topic("t", {number: [1] for number in range(6)})
    for _ in range(3):
        world.run(500)
        group = world.coordinator.groups["g"]
        yield f"{world.now}: waits for {sorted(group.waiting)}, bit {group.queued}, {owners(world)}"
    world.heal("b", "broker-1")
    world.run(500)
    yield f"{world.now}: waits for {sorted(group.waiting)}, bit {group.queued}, {owners(world)}"
    yield from lines(world)
    world.history.clear()
    world.blocked.add(("c", "broker-1"))
    world.topic("t", {number: [1] for number in range(7)})
    world.run(3_000)
    yield f"{world.now}: waits for {sorted(group.waiting)}, bit {group.queued}, {owners(world)}"
    yield from lines(world)


def owners(world: World) -> str:
    """The owners in ZooKeeper of the partitions of topic t."""
    return " ".join(data.decode() for data, _ in nodes(world, "/consumers/g/owners/t/").values())


def draft_1_stops() -> Iterator[str]:
    """handleStopRequest, handleStartRequest: queues, streams of a wildcard, and what is out of state."""
    world = World(1)
    for name, topic_count in (("w", "*2*t.*"), ("s", '{"t":2,"tt":2}')):
        consumer: Any = world.join(name, topic_count=topic_count, group_id=name)
        world.run(100)
        for partition in consumer.owned:
            yield f"{partition}: {consumer.threads[partition]} {consumer.fetched(partition, 3)}"
        yield f"{consumer.take('t', name + '-0')} {fetched(consumer)}"
        before = consumer.streams
        coordinator = world.coordinator
        (member,) = coordinator.groups[name].members.values()
        yield "Start while fetchers run"
        yield from told(world, member, "Start", [])
        yield "Start with the partitions that it has, at other offsets"
        yield from told(world, member, "Start", [("t", f"1-{number}", 9) for number in range(4)])
        yield "Stop, twice"
        yield from told(world, member, "Stop")
        yield f"{consumer.fetching} {fetched(consumer)} {consumer.streams.all()[0].take()}"
        yield f"{[stream.take() for stream in consumer.streams.all()]}"
        yield from told(world, member, "Stop")
        yield f"{consumer.fetching} {fetched(consumer)}"
        yield from told(world, member, "Ping")
        yield "Start"
        yield from told(world, member, "Start", [("t", "1-0", 5), ("t", "1-3", 7)])
        yield f"{consumer.fetching} {fetched(consumer)} {consumer.threads} {consumer.streams is before}"
    yield from lines(world)


def told(world: World, member: Any, kind: str, *words: Any) -> Iterator[str]:
    """A request of the coordinator that a test makes it send."""
    parts = [
        Draft1PartitionOffset(topic=topic, partition=partition, offset=offset)
        for one in words
        for topic, partition, offset in one
    ]
    requests = {
        "Ping": Draft1PingRequest(), "Stop": Draft1StopRequest(),
        "Start": Draft1StartRequest(assigned_parts=parts),
    }  # fmt: skip
    world.coordinator.send_to(member, requests[kind])
    world.drain("broker-1")
    before = world.now
    world.run(10)
    yield from lines(world, since=before + 1)


def draft_1_finds_a_broker() -> Iterator[str]:
    """consumerStartup, step 1: at random, another one where it cannot be reached, at last an exception."""
    world = World(1, brokers=5)
    world.crash("broker-4")
    world.run(7_000)
    for name in "abcdefgh":
        world.join(name, group_id=name)
        world.run(50)
    yield from lines(world)
    for number in (1, 2, 3, 5):
        world.crash(f"broker-{number}")
    world.history.clear()
    world.run(600)
    consumer: Any = world.join("z")
    world.run(10)
    yield from lines(world)
    yield f"{consumer.state.value} {consumer.next_deadline()}"


def draft_1_has_broker_0() -> Iterator[str]:
    """A coordinator whose broker id is 0, and another one."""
    world = World(1, brokers=0)
    world.known = {number: BrokerAddress(f"broker-{number}", 9090 + number) for number in (0, 7)}
    for number in world.known:
        world.add_broker(number)
        world.run(100)
    world.join("a")
    world.run(100)
    yield from lines(world)
    yield from knows(world)


def draft_1_has_no_coordinator() -> Iterator[str]:
    """A broker that knows of no coordinator says so, and is asked again until one is elected."""
    world = World(1, brokers=1)
    broker = world.coordinator
    broker._coordinator_ids.clear()
    world.join("a")
    world.run(1_300)
    broker._coordinator_ids[0] = 1
    world.run(1_000)
    yield from lines(world)
    yield from knows(world)


def draft_1_falls_silent() -> Iterator[str]:
    """A consumer that receives nothing for a configurable time asks again."""
    world = World(1, consumers="a")
    world.join("b", idle_timeout_ms=3_500)
    world.run(100)
    world.history.clear()
    world.blocked |= {("broker-1", "a"), ("broker-1", "b")}
    world.run(9_000)
    yield from lines(world)
    world.history.clear()
    world.heal("a", "broker-1")
    world.heal("b", "broker-1")
    world.run(3_000)
    yield from lines(world)
    yield from knows(world)


def draft_1_refuses() -> Iterator[str]:
    """A registration has no answer, so a refusal closes its connection."""
    world = World(1)
    refused: tuple[dict[str, Any], ...] = (
        {"topic_count": "*"}, {"group_id": "a/b"}, {"consumer_id": ""},
        {"ping_interval_ms": 0, "idle_timeout_ms": 5_000}, {"max_ping_retries": -1, "idle_timeout_ms": 5_000},
    )  # fmt: skip
    for number, settings in enumerate(refused):
        name = f"consumer-{number}"
        world.join(name, **settings)
        world.run(20)
        yield from lines(world)
        world.history.clear()
        world.crash(name)
    yield from knows(world)
