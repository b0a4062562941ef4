"""Conversations of the new consumer's draft, by what its page draws."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from coordwire.designs.drafts.draft_settings import BrokerAddress
from coordwire.designs.drafts.zookeeper_operations import DeleteNode
from coordwire.messages.draft_3 import Draft3MetadataRequest
from tests.designs.drafts.transcripts import lines, nodes
from tests.designs.drafts.worlds import World


def knows_3(world: World) -> Iterator[str]:
    """What the brokers of draft 3 know of groups."""
    for name, node in sorted(world.nodes.items()):
        machine = node.machine
        for group in getattr(machine, "groups", {}).values():
            members = {
                member.consumer_id: (member.session_ms, sorted(member.topics), member.joining is not None)
                for member in group.members.values()
            }
            yield f"{name} knows {group.group_id}: {group.generation} {group.rebalancing} {members}"
        yield f"{name} has {len(node.host.connections)} connections"
        if hasattr(machine, "offices"):
            timers = sorted(map(str, machine._timers._live))
            yield f"{name}: offices={machine.offices} topics={machine.partitions} timers={timers}"
        else:
            yield f"{name}: {machine.state.value} as {machine.consumer_id!r} in {machine.generation}"
            yield f"  owned={machine.owned} cluster={machine.cluster}"
    for path, (data, session) in nodes(world, "/").items():
        yield f"{path}: {data.decode()} {session}".rstrip()


def draft_3_starts() -> Iterator[str]:
    """Consumer startup, coordinator discovery, (re)join-group, the ids that the coordinator gives."""
    world = World(3, consumers="a")
    world.topic("u", {0: [2], 1: [1]})
    world.join("b", topics=("t", "u", "x"), session_timeout_ms=4_000)
    world.join("c", group_id="h", topics=("u",))
    world.run(5_000)
    yield from lines(world)
    yield from knows_3(world)


def draft_3_has_many() -> Iterator[str]:
    """Several topics, groups, brokers and kinds of consumers; one dies while a topic changes."""
    world = World.larger(3)
    consumers = {
        "Host-1": ("Orders.EU", "t", "u-v"), "c2": ("Orders.EU", "x_1"), "c10": ("t", "x_1"),
        "c9": ("u-v",), "z": ("x_1", "t", "Orders.EU"),
    }  # fmt: skip
    for name, topics in consumers.items():
        group = "G.2" if name == "z" else "g"
        world.join(name, topics=topics, group_id=group, metadata_refresh_ms=60_000)
        world.run(150)
    for name in consumers:
        world.consume_each(name)
    world.run(2_500)
    yield from lines(world)
    world.history.clear()
    world.topic("x_1", {number: [2] for number in range(12)})
    world.run(300)
    yield from lines(world)
    world.history.clear()
    world.crash("c10")
    world.tree.apply(world.admin, DeleteNode("/brokers/topics/u-v"), world.now)
    world.deliver_events()
    world.run(10_000)
    yield from lines(world)
    yield from knows_3(world)
    world.history.clear()
    c2 = world.nodes["c2"].machine
    groups = ["g", "G.2", "none"]
    c2.send(c2._connection, Draft3MetadataRequest(topics=["x_1", "none"], group_ids=groups))
    world.drain("c2")
    world.run(2)
    yield from lines(world)


def draft_3_fails() -> Iterator[str]:
    """Consumer failure handling: remove it from the group, and trigger the rebalance."""
    world = World(3, consumers="ab")
    world.run(5_000)
    world.history.clear()
    world.crash("a")
    world.run(9_000)
    yield from lines(world)
    yield from knows_3(world)


def draft_3_leaves_one_behind() -> Iterator[str]:
    """A rebalance does not wait for ever: who pings, and does not join, has failed at its end."""
    world = World(3, consumers="ab")
    world.run(5_000)
    world.history.clear()
    world.blocked.add(("broker-1", "b"))
    world.topic("t", {number: [1] for number in range(5)})
    world.run(9_000)
    yield from lines(world)
    yield from knows_3(world)


def draft_3_fails_over() -> Iterator[str]:
    """Coordinator failure handling, steps 1 to 3."""
    world = World(3, brokers=3, consumers="ab")
    world.run(5_000)
    world.history.clear()
    world.crash("broker-1")
    world.run(12_000)
    yield from lines(world)
    yield from knows_3(world)


def draft_3_does_not_hear() -> Iterator[str]:
    """A consumer that does not hear back from its coordinator, or from a broker that it asks for metadata."""
    world = World(3, brokers=3, consumers="a")
    world.run(3_000)
    world.history.clear()
    world.cut("a", "broker-1")
    world.run(9_000)
    world.cut("a", "broker-3")
    world.run(9_000)
    world.heal("a", "broker-1")
    world.run(9_000)
    yield from lines(world)
    yield from knows_3(world)


def draft_3_finds_no_broker() -> Iterator[str]:
    """Metadata are refreshed from the known brokers until one answers; until then there is no coordinator."""
    world = World(3, brokers=3)
    for number in (1, 2, 3):
        world.crash(f"broker-{number}")
    world.join("a")
    world.run(3_000)
    world.add_broker(2)
    world.run(9_000)
    yield from lines(world)
    yield from knows_3(world)
    world.history.clear()
    world.crash("broker-2")
    world.add_broker(3)  # which it knows from its list alone
    world.run(30_000)
    yield from lines(world)


def draft_3_subscribes() -> Iterator[str]:
    """A changed subscription is a restart: the consumer joins again, over the connection that it has."""
    world = World(3, consumers="ab")
    world.topic("u", {0: [1]})
    world.run(5_000)
    world.history.clear()
    for topics in (("u",), ("t", "u"), ()):
        world.nodes["a"].machine.subscribe(topics)
        world.drain("a")
        world.run(3_000)
        yield f"{topics}"
        yield from lines(world)
        world.history.clear()
    yield from knows_3(world)


def draft_3_sees_topics() -> Iterator[str]:
    """A topic that changes: the coordinator sees it in ZooKeeper, a consumer in the metadata."""
    world = World(3)
    world.join("a", metadata_refresh_ms=1_000, ping_interval_ms=30_000, session_timeout_ms=60_000)
    world.join("b", topics=("u",), group_id="h")
    world.run(1_500)
    world.history.clear()
    world.topic("t", {number: [1] for number in range(5)})
    world.run(1_500)
    world.topic("v", {0: [1]})
    world.run(1_500)
    yield from lines(world)
    yield from knows_3(world)
    world.history.clear()
    world.topic("u", {0: [1]})
    world.run(3_000)
    yield from lines(world)


def draft_3_has_two_coordinators() -> Iterator[str]:
    """The coordinator id based on the consumer group: each broker coordinates a subset of the groups."""
    world = World(3, brokers=2, broker={"coordinators": 2})
    world.run(1_000)
    for name, group in zip("abc", ("g", "one", "two"), strict=True):
        world.join(name, group_id=group)
    world.run(3_000)
    yield from lines(world)
    yield from knows_3(world)


def draft_3_has_large_ids() -> Iterator[str]:
    """CoordinatorIds are int16: a coordinator whose id has more bits cannot be named."""
    for number in (0, 0x7FFF, 0x8000):
        world = World(3, brokers=0)
        world.known = {number: BrokerAddress(f"broker-{number}", 9092)}
        world.add_broker(number)
        world.run(100)
        world.join("a")
        world.run(100)
        yield from lines(world)


def draft_3_refuses() -> Iterator[str]:
    """What a broker that is not the coordinator answers, and what joins that cannot be get."""
    world = World(3, brokers=2)
    machine = world.join("a")
    world.run(1_000)
    world.join("b", session_timeout_ms=10)
    world.join("c", group_id="")
    world.run(100)
    world.history.clear()
    machine._retry()
    machine._discover()
    machine.config = replace(machine.config, group_id="other")
    world.drain("a")
    world.run(2_000)
    yield from lines(world)
    yield from knows_3(world)
