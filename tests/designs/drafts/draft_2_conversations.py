"""Conversations of the detailed design, by its sections; of its overview where they say so."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from coordwire.designs.drafts.actions import Disconnect, DraftPartition
from coordwire.designs.drafts.draft_settings import BrokerAddress
from coordwire.designs.drafts.zookeeper_operations import CreateNode, DeleteNode, SetData
from coordwire.messages.draft_2 import (
    Draft2Broker,
    Draft2Ownership,
    Draft2PartitionOffset,
    Draft2PingRequest,
    Draft2StartFetcherRequest,
    Draft2StopFetcherRequest,
)
from tests.designs.drafts.draft_1_conversations import LARGER, handled, in_a_larger_world, knows
from tests.designs.drafts.seen import Seen
from tests.designs.drafts.transcripts import fetched, lines, queued, record_operations
from tests.designs.drafts.worlds import World

WRITES = CreateNode, SetData, DeleteNode


def told(world: World) -> Iterator[str]:
    """The history, which begins again."""
    yield from lines(world)
    world.history.clear()


def partitions(count: int) -> dict[int, list[int]]:
    """Partitions that broker 1 leads."""
    return {number: [1] for number in range(count)}


def draft_2_shares() -> Iterator[str]:
    """Sections 7, 8 and 9: registrations, pings, and what a rebalance reads, writes and sends, in order."""
    world = World(2)
    record_operations(world)
    world.join("a", topic_count='{"t":2}')
    world.run(100)
    yield from told(world)
    world.join(
        "b-2", topic_count='{"t":3}', auto_commit=False, auto_offset_reset="largest", session_timeout_ms=9_000
    )
    world.run(100)
    for number, name in enumerate(("a", "a", "b-2", "b-2")):
        world.nodes[name].machine.consumed(DraftPartition("t", f"1-{number}"), 8 + number)
    world.run(4_500)
    yield from told(world)
    world.topic("t", partitions(7))
    world.run(100)
    yield from told(world)
    yield from knows(world)


def draft_2_has_many() -> Iterator[str]:
    """Several topics, groups, brokers and kinds of consumers."""
    yield from in_a_larger_world(2)


def draft_2_overview_has_many() -> Iterator[str]:
    """The same by section 2."""
    world = World.larger(2, overview=True)
    for name, settings in LARGER.items():
        world.join(name, **settings)
        world.run(150)
    for name in LARGER:
        world.consume_each(name)
    world.run(2_500)
    world.topic("x_1", {number: [2] for number in range(12)})
    world.run(300)
    yield from told(world)
    yield from knows(world)


def draft_2_fails() -> Iterator[str]:
    """Section 8: a ping that is not answered in 2/3 of the session, the retries, handleConsumerFailure."""
    world = World(2, broker={"max_ping_retries": 2})
    handled(world)
    for name, session_ms in (("b", 6_000), ("a", 3_000), ("c", 6_000)):
        group = "h" if name == "c" else "g"
        world.join(name, session_timeout_ms=session_ms, group_id=group, auto_commit=name != "a")
        world.run(100)
    world.run(1_500)
    world.history.clear()
    world.blocked |= {("a", "broker-1"), ("c", "broker-1")}  # what they answer waits
    world.run(5_000)
    world.heal("c", "broker-1")
    world.run(4_000)
    yield from told(world)
    yield from knows(world)
    world.crash("b")
    world.run(8_000)
    yield from told(world)
    yield from knows(world)


def draft_2_has_failed_pings() -> Iterator[str]:
    """Section 9, steps 4.1 and 4.4, "for each consumer": those too whose ping has failed or waits."""
    world = World(2)
    for name, session_ms in (("a", 6_000), ("b", 6_000), ("c", 30_000)):
        world.join(name, session_timeout_ms=session_ms)
        world.run(100)
    world.blocked |= {("c", "broker-1"), ("a", "broker-1")}
    member = world.coordinator.groups["g"].members["a"]
    while not member.failures:
        world.run(1)
    world.history.clear()
    world.topic("t", partitions(6))
    world.run(100)
    world.heal("a", "broker-1")
    world.run(100)
    world.blocked |= {("a", "broker-1"), ("b", "broker-1")}
    while not (member.failures and world.coordinator.groups["g"].members["b"].failures):
        world.run(1)
    world.heal("c", "broker-1")
    world.run(100)
    yield from told(world)
    yield from knows(world)
    world.heal("a", "broker-1")
    world.heal("b", "broker-1")
    world.run(5_000)
    yield from told(world)
    yield from knows(world)


def draft_2_fails_over() -> Iterator[str]:
    """Section 10: the coordinator's server dies; one whose session is over; a server's own session."""
    world = World(2, brokers=3, consumers="ab")
    world.consume("a", 7)
    world.run(2_500)
    world.history.clear()
    world.crash("broker-1")
    world.run(9_000)
    yield from told(world)
    yield from knows(world)
    world.cut_zookeeper("broker-2")
    world.run(10_000)
    world.heal_zookeeper("broker-2")
    world.run(5_000)
    yield from told(world)
    yield from knows(world)
    yield f"queues of broker-2: {queued(world.nodes['broker-2'].machine)}"
    node = world.nodes["broker-3"]
    world.tree.close_session(node.session)
    world.deliver_events()
    world.run(1_000)
    yield from told(world)
    yield from knows(world)


def draft_2_starts_up() -> Iterator[str]:
    """Sections 2, 5 and 13: a new coordinator waits for the consumers that own something."""
    world = World(2)
    world.topic("u", partitions(2))
    for name in "abcz":
        world.join(
            name, group_id="other" if name == "z" else "g", retry_backoff_ms=2_000,
            topic_count='{"u":1}' if name == "c" else '{"t":1}',
        )  # fmt: skip
        world.run(100)
    world.cut("a", "broker-2")
    world.cut("c", "broker-2")
    world.cut("z", "broker-2")
    world.history.clear()
    handled(world)
    world.crash("broker-1")
    world.run(7_000)
    groups = world.coordinator.groups
    yield f"waits for {[(name, sorted(one.awaited), one.awaited_since) for name, one in groups.items()]}"
    world.join("y", group_id="new", session_timeout_ms=9_000)
    world.run(6_000)
    yield from told(world)
    yield from knows(world)


def draft_2_sees_topics() -> Iterator[str]:
    """Section 6: new topics, and other partitions, rebalance the groups that are interested."""
    world = World(2)
    handled(world)
    topic_counts = {
        "one": "*2*t.*",
        "two": '{"t":1}',
        "three": "!1!t.*",
        "four": '{"u":1,"later":2}',
    }
    for name, (group, topic_count) in zip("abcd", topic_counts.items(), strict=True):
        world.join(name, group_id=group, topic_count=topic_count, session_timeout_ms=60_000)
        world.run(50)
    for topic, assigned in (
        ("tt", {0: [1]}),
        ("later", {0: [2]}),
        ("later", {0: [2], 1: [1]}),
        ("t", partitions(5)),
        ("__consumer_offsets", {0: [1]}),
        ("v", {0: [2, 1], 1: [1, 2]}),
        ("t", partitions(3)),
        ("tt", {0: [1], 1: [2]}),
    ):
        yield f"topic {topic} {assigned}"
        world.topic(topic, assigned)
        world.run(50)
        yield from told(world)
    yield from knows(world)


def draft_2_retries() -> Iterator[str]:
    """Section 9, step 5: after the backoff, as often as the setting says, then to the log."""
    settings = {"max_rebalance_retries": 1, "max_ping_retries": 99, "rebalance_backoff_ms": 1_700}
    world = World(2, broker=settings)
    for name, session_ms in (("a", 6_000), ("b", 3_000)):
        world.join(name, session_timeout_ms=session_ms)
        world.run(200)
    for name in ("a", "b"):
        world.blocked.add((name, "broker-1"))
        world.history.clear()
        world.topic("t", partitions(5 if name == "a" else 6))
        world.run(12_000)
        yield from told(world)
        yield from knows(world)
        world.heal(name, "broker-1")
        world.run(3_000)


def draft_2_is_late() -> Iterator[str]:
    """Section 12.7: an answer of an earlier attempt, and a Start that is not answered in time."""
    world = World(2, consumers="ab", broker={"max_ping_retries": 99, "rebalance_backoff_ms": 500})
    group = world.coordinator.groups["g"]
    world.blocked.add(("a", "broker-1"))
    world.history.clear()
    world.topic("t", partitions(5))
    world.run(4_600)  # the second Stop is under way
    yield f"{group.waiting} {group.failed}"
    world.heal("a", "broker-1")
    while not world.sent(Draft2StartFetcherRequest):
        world.run(1)
    world.blocked.add(("b", "broker-1"))
    world.run(4_000)
    yield f"{sorted(group.waiting)} {group.failed}"
    world.heal("b", "broker-1")
    world.run(1_000)
    yield from told(world)
    yield from knows(world)


def draft_2_is_refused() -> Iterator[str]:
    """Section 12.7: an answer with an error fails the attempt, whoever else has not answered yet."""
    world = World(2, consumers="abc", broker={"rebalance_backoff_ms": 300})
    consumer = world.nodes["b"].machine
    config, consumer.config = consumer.config, replace(consumer.config, consumer_id="another")
    world.blocked.add(("c", "broker-1"))
    world.history.clear()
    world.topic("t", partitions(6))
    world.run(200)
    yield from told(world)
    consumer.config = config
    world.heal("c", "broker-1")
    world.run(1_000)
    yield from told(world)
    yield from knows(world)


def draft_2_has_handlers() -> Iterator[str]:
    """Sections 9 and 12.7: handlers in turn, a handler's groups one after the other, and their bits."""
    world = World(2, broker={"rebalance_handlers": 3, "handler_us": 20_000, "rebalance_queue_size": 1})
    handled(world)
    groups = ("one", "two", "three", "four", "six", "seven", "one", "six")
    for name, group in zip("abcdefgh", groups, strict=True):
        world.join(name, group_id=group, session_timeout_ms=60_000)
        world.run(5)
    world.topic("t", partitions(5))
    coordinator = world.coordinator
    for _ in range(6):
        world.run(25)
        bits = {one.group_id: (one.queued, one.handler) for one in coordinator.groups.values()}
        yield f"bits {bits} queues {queued(coordinator)} {coordinator._handled}"
    world.run(500)
    yield from told(world)
    yield from knows(world)


def draft_2_resigns() -> Iterator[str]:
    """Section 10, handleNewSession: what a coordinator knows, its queues and its connections go."""
    world = World(2, brokers=1, broker={"rebalance_handlers": 1, "max_ping_retries": 99}, consumers="a")
    world.run(3_000)
    machine = world.coordinator
    world.cut("a", "broker-1")
    world.topic("t", partitions(5))
    world.run(100)
    for name, group in zip("bc", ("two", "three"), strict=True):
        world.join(name, group_id=group, session_timeout_ms=60_000)
        world.run(50)
    yield f"{queued(machine)} {machine._handled} {sorted(machine._consumers)}"
    world.history.clear()
    world.cut_zookeeper("broker-1")
    world.run(7_000)
    yield f"{queued(machine)} {sorted(machine._consumers)} {sorted(machine.groups)}"
    world.heal_zookeeper("broker-1")
    world.run(1)
    yield f"{queued(machine)} {machine._consumers} {machine.groups}"
    yield f"{machine.offices} {sorted(map(str, machine._procedures))}"
    world.run(2_000)
    yield from told(world)
    yield from knows(world)


def draft_2_handles_requests() -> Iterator[str]:
    """Section 11: queues, streams, offsets, and requests that name another consumer."""
    world = World(2)
    for name, topic_count in (("w", "*2*t.*"), ("s", '{"t":2,"tt":2}')):
        consumer: Any = world.join(name, topic_count=topic_count, group_id=name, auto_commit=name == "w")
        world.run(100)
        for partition in consumer.owned:
            yield f"{partition}: {consumer.threads[partition]} {consumer.fetched(partition, 3)}"
        yield f"{consumer.take('t', name + '-0')} {fetched(consumer)}"
        before = consumer.streams
        (member,) = world.coordinator.groups[name].members.values()
        world.history.clear()
        start = Draft2StartFetcherRequest(consumer_id=name, ownership_info=[
            Draft2Ownership(consumer_thread_id=f"{name}-{number}", assigned_parts=[
                Draft2PartitionOffset(topic="t", partition=f"1-{one}", offset=5 + one)
                for one in range(number, 4, 2)
            ]) for number in (1, 0)
        ], brokers_info=[
            Draft2Broker(id=number, host=f"broker-{number}", port=9092) for number in (2, 1)
        ])  # fmt: skip
        for request in (
            start, Draft2StopFetcherRequest(consumer_id="other"), Draft2StopFetcherRequest(consumer_id=name),
            Draft2StopFetcherRequest(consumer_id=name), Draft2StartFetcherRequest(consumer_id="other"), start,
            Draft2PingRequest(consumer_id="other"), Draft2PingRequest(consumer_id=name, num_retries=3),
        ):  # fmt: skip
            world.coordinator.send_to(member, request)
            world.drain("broker-1")
            world.run(10)
            yield from told(world)
            yield f"{consumer.fetching} {fetched(consumer)} {consumer.threads} {consumer.cluster}"
            yield f"{[stream.take() for stream in consumer.streams.all()]} {consumer.streams is before}"


def draft_2_finds_a_broker() -> Iterator[str]:
    """Section 7, consumerStartup: brokers in turn, each that is not there noted, without an end."""
    world = World(2, brokers=0)
    world.known = {number: BrokerAddress(f"broker-{number}", 9090 + number) for number in range(1, 5)}
    for number in world.known:
        world.add_broker(number)
        world.run(100)
    world.crash("broker-2")
    world.run(7_000)
    for name in "abcd":
        world.join(name, group_id=name)
        world.run(50)
    yield from told(world)
    for number in (1, 3, 4):
        world.crash(f"broker-{number}")
    world.history.clear()
    world.run(1_200)
    consumer: Any = world.join("z", retry_backoff_ms=900)
    world.run(1_200)
    yield from told(world)
    yield f"{consumer.state.value} {consumer.next_deadline()} {consumer.cluster}"
    world.add_broker(4)
    world.run(1_000)
    yield from told(world)
    yield from knows(world)


def draft_2_has_no_coordinator() -> Iterator[str]:
    """A broker that knows of no coordinator says so; one that is asked for a registration is none."""
    world = World(2, brokers=2)
    broker = world.coordinator
    known = broker._coordinator_ids.copy()
    broker._coordinator_ids.clear()
    world.nodes["broker-2"].machine._coordinator_ids[0] = 2
    world.join("a")
    world.join("b")
    world.run(1_300)
    yield from told(world)
    broker._coordinator_ids |= known
    world.nodes["broker-2"].machine._coordinator_ids |= known
    world.run(1_000)
    yield from told(world)
    yield from knows(world)


def draft_2_falls_silent() -> Iterator[str]:
    """Sections 8.5 and 10: no request for the session timeout, or a third of it."""
    world = World(2, consumers="a")
    world.join("b", silent_thirds=1, session_timeout_ms=9_000)
    world.run(100)
    world.history.clear()
    world.blocked |= {("broker-1", "a"), ("broker-1", "b")}
    world.run(9_000)
    yield from told(world)
    world.heal("a", "broker-1")
    world.heal("b", "broker-1")
    world.run(4_000)
    yield from told(world)
    yield from knows(world)


def draft_2_refuses() -> Iterator[str]:
    """Section 7, handleConsumerRegister: the checks, each with its code; the consumer closes."""
    world = World(2, consumers="a")
    seen = Seen(world.coordinator)
    refused: tuple[dict[str, Any], ...] = (
        {"topic_count": "*"}, {"topic_count": '{"t":1001}'}, {"group_id": "a/b"}, {"consumer_id": ""},
        {"consumer_id": "a"}, {"session_timeout_ms": 1_000}, {"session_timeout_ms": 1_001},
        {"session_timeout_ms": -1},
    )  # fmt: skip
    for number, settings in enumerate(refused):
        name = f"consumer-{number}"
        world.join(name, **settings)
        world.run(30)
        yield from told(world)
        yield f"the broker closed {len(seen.of(Disconnect))} connections"
        world.crash(name)
    world.run(200)
    yield from knows(world)


def draft_2_shuts_down() -> Iterator[str]:
    """Sections 11 and 12.7: consumers at their next ping, one out of range, and a broker."""
    world = World(2, consumers="ac")
    world.join("b", auto_commit=False)
    world.run(100)
    record_operations(world, WRITES)
    world.history.clear()
    world.consume("a", 8)
    for name in "ab":
        world.nodes[name].machine.shut_down()
    world.run(5_000)
    yield from told(world)
    world.nodes["c"].machine.fail_fetchers()
    world.run(3_000)
    yield from told(world)
    yield from knows(world)
    world.coordinator.shut_down()
    world.drain("broker-1")
    world.run(7_000)
    yield from told(world)
    yield from knows(world)


def draft_2_commits() -> Iterator[str]:
    """Section 13, "Active CommitOffset on Consumers", and the committer in its interval."""
    world = World(2, consumers="a", broker={"offset_commit_interval_ms": 3_000})
    world.join("b", auto_commit=False)
    world.join("c", group_id="h", topic_count='{"t":1}')
    world.run(100)
    record_operations(world, WRITES)
    world.history.clear()
    for name, offset in zip("abc", (8, 9, 10), strict=True):
        world.consume(name, offset)
    world.nodes["b"].machine.commit_offsets()
    world.drain("b")
    world.run(5_100)
    yield from told(world)
    world.nodes["a"].machine.consumed(DraftPartition("t", "1-0"), 4)  # as after a reset
    world.nodes["a"].machine.consumed(DraftPartition("t", "1-1"), 11)
    world.nodes["a"].machine.subscribe('{"t":2}')
    world.drain("a")
    world.run(1_000)
    world.coordinator.groups["g"].members["b"].consumer_id = "b2"
    world.nodes["b"].machine.commit_offsets()
    world.drain("b")
    world.run(10)
    yield from told(world)
    world.consume("c", 12)
    world.run(2_100)
    world.crash("c")  # its group is left without a consumer, before its offsets are written
    world.run(3_000)
    yield from told(world)
    yield from knows(world)


def draft_2_tries_without_end() -> Iterator[str]:
    """Section 13: retries without an end, after a third of the longest session; empty groups are deleted."""
    settings = {"endless_retries": True, "delete_empty_groups": True, "max_ping_retries": 4}
    world = World(2, consumers="a", broker=settings)
    world.join("b", session_timeout_ms=9_000)
    world.run(200)
    world.blocked.add(("a", "broker-1"))
    world.history.clear()
    world.topic("t", partitions(5))
    world.run(25_000)
    yield from told(world)
    world.crash("b")
    world.run(11_000)
    yield from told(world)
    yield from knows(world)


def draft_2_overview_shares() -> Iterator[str]:
    """Section 2: registrations are answered with partitions; a rebalance ends the connections."""
    world = World(2, overview=True)
    record_operations(world, WRITES)
    for name in "ab":
        world.join(name, session_timeout_ms=6_000 if name == "a" else 9_000)
        world.run(1_000)
        yield from told(world)
    world.join("c", auto_commit=False)
    world.run(100)
    world.consume("a", 8)
    world.run(3_000)
    world.topic("t", partitions(6))
    world.run(2_000)
    yield from told(world)
    yield from knows(world)
    world.cut("c", "broker-1")
    world.topic("t", partitions(7))
    world.run(13_000)
    yield from told(world)
    yield from knows(world)


def draft_2_overview_fails() -> Iterator[str]:
    """Section 2: a consumer that does not come back is waited for; one that dies; a new coordinator."""
    world = World(2, overview=True, broker={"max_ping_retries": 1})
    for name in "abc":
        world.join(name, retry_backoff_ms=3_000)
        world.run(100)
    world.run(2_000)
    world.history.clear()
    world.cut("a", "broker-1")
    world.run(21_000)
    yield from told(world)
    yield from knows(world)
    world.heal("a", "broker-1")
    world.run(2_000)
    yield from told(world)
    world.crash("broker-1")
    world.crash("b")
    world.run(17_000)
    yield from told(world)
    yield from knows(world)
