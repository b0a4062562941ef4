"""The detailed design's rebalance, section 9: what is sent, read and written, in order, and what it says."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from coordwire.designs.drafts.actions import DraftPartition, Send
from coordwire.designs.drafts.topic_interest import plan_ownership
from coordwire.designs.drafts.zookeeper_operations import (
    CreateNode,
    DeleteNode,
    GetChildren,
    GetData,
    SetData,
)
from coordwire.designs.drafts.zookeeper_steps import rebalance_reason
from coordwire.messages.draft_2 import (
    Draft2Broker,
    Draft2Ownership,
    Draft2PartitionOffset,
    Draft2PingRequest,
    Draft2StartFetcherRequest,
    Draft2StartFetcherResponse,
    Draft2StopFetcherRequest,
)
from tests.designs.drafts.seen import Seen, run_until
from tests.designs.drafts.worlds import World


def steps(seen: Seen) -> list[str]:
    """What a coordinator did for a rebalance, each step once, where it began."""
    result: list[str] = []
    for _, what in seen:
        if isinstance(what, Send) and not isinstance(what.message, Draft2PingRequest):
            result.append(type(what.message).__name__.removeprefix("Draft2"))
        for operation in getattr(what, "operations", ()):
            parts = operation.path.split("/")
            if parts[1:4] == ["brokers", "topics", "t"] or "owners" in parts or "offsets" in parts:
                kind = parts[3] if parts[1] == "consumers" else "topic"
                result.append(f"{type(operation).__name__} {kind}")
    return list(dict.fromkeys(result))


def test_the_steps_of_a_rebalance_wait_for_each_other() -> None:
    """Steps 1 to 4.6. b answers its Stop late, and then its Start."""
    world = World(2, consumers="ab", broker={"max_ping_retries": 100})
    coordinator, group = world.coordinator, world.coordinator.groups["g"]
    world.consume("a", 5)
    world.consume("b", 6)
    seen = Seen(coordinator)
    world.blocked.add(("b", "broker-1"))
    world.topic("t", {number: [1] for number in range(6)})
    run_until(world, lambda: group.waiting == {"a", "b"})
    assert [one.what.consumer_id for one in seen.messages(Draft2StopFetcherRequest)] == ["a", "b"]
    world.run(1_000)
    assert group.waiting == {"b"}
    assert world.owned() == "----"
    assert seen.messages(Draft2StartFetcherRequest) == []
    assert seen.operations(SetData) == seen.operations(CreateNode) == []  # not committed before all answered
    assert world.read("/consumers/g/offsets/t/1-0") == b"0"  # of the rebalance before
    world.heal("b", "broker-1")
    run_until(world, lambda: bool(seen.messages(Draft2StartFetcherRequest)))
    world.blocked.add(("b", "broker-1"))
    assert group.waiting == {"a", "b"}
    assert world.read("/consumers/g/offsets/t/1-0") == b"5"
    assert world.read("/consumers/g/offsets/t/1-3") == b"6"
    world.run(1_000)
    assert group.waiting == {"b"}
    assert world.owned() == "aaabbb"
    assert world.read("/consumers/g/owners/t/1-2") == b"b-0"  # the ownership before
    assert world.read("/consumers/g/owners/t/1-5") is None
    assert not seen.operations(SetData, "owners")
    world.heal("b", "broker-1")
    world.run(20)
    assert [world.read(f"/consumers/g/owners/t/1-{number}") for number in range(6)] == (
        [b"a-0"] * 3 + [b"b-0"] * 3
    )  # fmt: skip
    assert steps(seen) == [
        "GetData topic", "GetChildren owners", "GetData owners", "StopFetcherRequest", "SetData offsets",
        "GetData offsets", "StartFetcherRequest", "SetData owners", "CreateNode owners",
    ]  # fmt: skip
    assert (group.waiting, group.handler, group.queued) == (set(), None, False)


def test_every_consumer_is_told_what_its_threads_own_and_where_to_begin() -> None:
    """The offsets are those that ZooKeeper has, and the cluster is that of the moment."""
    world = World(2, brokers=3)
    world.join("a", topic_count='{"t":2}')
    world.run(100)
    world.consume("a", 7)
    world.join("b", topic_count='{"t":1}', auto_offset_reset="largest", auto_commit=False)
    world.run(100)
    world.join("c", topic_count='{"t":2}')  # one thread more than there are partitions
    world.run(2_100)
    world.crash("broker-3")
    world.run(7_000)
    seen = Seen(world.coordinator)
    world.topic("t", {0: [2], 1: [1], 2: [1], 3: [1]})  # the first one has another leader, and so a new name
    run_until(world, lambda: bool(seen.messages(Draft2StartFetcherRequest)))
    brokers = [Draft2Broker(id=1, host="broker-1", port=9092), Draft2Broker(id=2, host="broker-2", port=9092)]
    starts = {one.what.consumer_id: one.what for one in seen.messages(Draft2StartFetcherRequest)}
    assert list(starts) == ["a", "b", "c"]

    def owns(thread: str, partition: str, offset: int) -> Draft2Ownership:
        part = Draft2PartitionOffset(topic="t", partition=partition, offset=offset)
        return Draft2Ownership(consumer_thread_id=thread, assigned_parts=[part])

    assert starts == {
        "a": Draft2StartFetcherRequest(consumer_id="a", brokers_info=brokers, ownership_info=[
            owns("a-0", "1-1", 7), owns("a-1", "1-2", 7)]),
        "b": Draft2StartFetcherRequest(consumer_id="b", brokers_info=brokers, ownership_info=[
            owns("b-0", "1-3", 7)]),
        "c": Draft2StartFetcherRequest(consumer_id="c", brokers_info=brokers, ownership_info=[
            owns("c-0", "2-0", 0)]),
    }  # fmt: skip


def test_the_offset_of_a_start_is_read_from_zookeeper() -> None:
    world = World(2, consumers="a")
    world.consume("a", 7)
    world.run(2_100)
    coordinator = world.coordinator
    commit = coordinator.commit

    def committed(group: Any) -> Any:
        yield from commit(group)
        for number, offset in ((0, b"70"), (1, b"71")):
            path = f"/consumers/g/offsets/t/1-{number}"
            world.tree.apply(world.admin, SetData(path, offset), world.now)

    coordinator.commit = committed
    world.join("b", auto_offset_reset="largest")
    world.run(100)
    world.topic("t", {number: [1] for number in range(5)})
    world.run(100)
    starts = world.sent(Draft2StartFetcherRequest)[-2:]
    offsets = {part.partition: part.offset for one in starts for thread in one.what.ownership_info
               for part in thread.assigned_parts}  # fmt: skip
    assert offsets == {"1-0": 70, "1-1": 71, "1-2": 7, "1-3": 7, "1-4": -1}


def test_a_consumer_that_owns_nothing_is_stopped_and_started_too() -> None:
    world = World(2, partitions=1, consumers="a")
    seen = Seen(world.coordinator)
    world.join("b")
    world.run(100)
    assert [one.what.consumer_id for one in seen.messages(Draft2StopFetcherRequest)] == ["a", "b"]
    starts = [(one.what.consumer_id, len(one.what.ownership_info))
              for one in seen.messages(Draft2StartFetcherRequest)]  # fmt: skip
    assert starts == [("a", 1), ("b", 0)]
    assert len(world.sent(Draft2StartFetcherResponse)) == 3


def test_the_plan_is_that_of_all_consumers_their_threads_and_all_topics() -> None:
    """Each partition goes to one thread; those of one broker stay together, in ranges."""
    consumers = {"a": {"t": 2, "u": 1}, "b": {"t": 1}, "c": {"u": 1, "v": 1}}
    partitions = {"t": ["1-0", "2-1", "1-10", "1-2"], "u": ["1-0", "1-1", "1-2"], "v": []}
    plan = plan_ownership(consumers, partitions)
    assert {(one.topic, one.partition): thread for one, thread in plan.items()} == {
        ("t", "1-0"): "a-0", ("t", "1-2"): "a-0", ("t", "1-10"): "a-1", ("t", "2-1"): "b-0",
        ("u", "1-0"): "a-0", ("u", "1-1"): "a-0", ("u", "1-2"): "c-0",
    }  # fmt: skip
    assert plan_ownership({"a": {"t": 5}}, {"t": ["1-0", "1-1"]}) == {
        DraftPartition("t", "1-0"): "a-0", DraftPartition("t", "1-1"): "a-1"
    }  # fmt: skip


def test_each_reason_makes_a_rebalance_necessary_by_itself() -> None:
    """Steps 3.1 to 3.5."""
    zero, one, gone = (DraftPartition("t", f"1-{number}") for number in (0, 1, 7))
    plan, partitions = {zero: "a-0", one: "b-0"}, {"t": ["1-0", "1-1"]}
    assert rebalance_reason(plan, {}, partitions) == "no registered ownership"
    for missing in (zero, one):
        owners = {partition: thread for partition, thread in plan.items() if partition != missing}
        assert rebalance_reason(plan, owners, partitions) == "partitions without an owner"
    assert rebalance_reason(plan, plan | {gone: "a-0"}, partitions) == "partitions that no longer exist"
    assert rebalance_reason(plan, {zero: "a-0", one: "a-0"}, partitions) == "another ownership"
    assert rebalance_reason(plan, {zero: "a-1", one: "b-0"}, partitions) == "another ownership"
    assert rebalance_reason(plan, {one: "b-0", zero: "a-0"}, partitions) is None


def test_a_rebalance_that_is_not_necessary_sends_nothing() -> None:
    """Step 3.5, and each of 3.1 to 3.4 as it is in ZooKeeper."""
    world = World(2, consumers="ab")
    coordinator, group = world.coordinator, world.coordinator.groups["g"]
    owner = "/consumers/g/owners/t/1-"
    changes: list[tuple[Any, int]] = [
        ((), 0),
        ((DeleteNode(f"{owner}3"),), 2),
        ((CreateNode(f"{owner}9", b"a-0"),), 2),
        ((SetData(f"{owner}0", b"b-0"),), 2),
        (tuple(DeleteNode(f"{owner}{number}") for number in range(4)), 2),
        ((SetData(f"{owner}0", b"a-0"),), 0),  # as it was
    ]
    for operations, stops in changes:
        for operation in operations:
            assert world.tree.apply(world.admin, operation, world.now).ok
        seen = Seen(coordinator)
        coordinator.try_rebalance(group)
        world.drain("broker-1")
        world.run(100)
        assert len(seen.messages(Draft2StopFetcherRequest)) == stops
        assert len(seen.messages(Draft2StartFetcherRequest)) == stops
        assert [world.read(f"{owner}{number}") for number in (0, 1, 2, 3, 9)] == [
            b"a-0", b"a-0", b"b-0", b"b-0", None
        ]  # fmt: skip
        assert world.owned() == "aabb"


def test_owners_and_offsets_are_persistent_nodes() -> None:
    world = World(2, consumers="ab")
    world.consume("a", 3)
    world.consume("b", 3)
    world.topic("t", {number: [1] for number in range(5)})
    world.run(100)
    paths = [path for path in world.tree.paths() if path.startswith("/consumers/g/")]
    assert [path for path in paths if path.count("/") == 5] == [
        f"/consumers/g/{kind}/t/1-{number}" for kind, count in (("offsets", 4), ("owners", 5))
        for number in range(count)
    ]  # fmt: skip
    for path in paths:
        assert (path, world.stat(path).ephemeral_owner) == (path, 0)
    groups = world.tree.apply(world.admin, GetChildren("/consumers/g"), world.now).children
    assert sorted(groups) == ["offsets", "owners"]  # no ids
    assert world.read("/consumers/groups/ids") is None


def test_partitions_are_named_after_the_broker_that_leads_them() -> None:
    world = World(2)
    world.topic("t", {0: [2, 1], 1: [1, 2], 2: [3], 10: [12]})
    world.join("a")
    world.run(100)
    (start,) = world.sent(Draft2StartFetcherRequest)
    names = [part.partition for one in start.what.ownership_info for part in one.assigned_parts]
    assert names == ["1-1", "2-0", "3-2", "12-10"]


def test_one_attempt_has_the_consumers_that_it_began_with() -> None:
    """A consumer that registers while an attempt waits is in none of its steps; the next attempt has it."""
    world = World(2, consumers="ab", broker={"max_ping_retries": 100})
    seen = Seen(world.coordinator)
    group = world.coordinator.groups["g"]
    world.blocked.add(("a", "broker-1"))
    world.topic("t", {number: [1] for number in range(6)})
    run_until(world, lambda: group.waiting == {"a"})
    world.join("c")
    run_until(world, lambda: "c" in group.members)
    world.run(100)
    assert [one.what.consumer_id for one in seen.messages(Draft2StopFetcherRequest)] == ["a", "b"]
    world.heal("a", "broker-1")
    run_until(world, lambda: len(seen.messages(Draft2StartFetcherRequest)) == 2)
    assert [one.what.consumer_id for one in seen.messages(Draft2StartFetcherRequest)] == ["a", "b"]
    world.run(100)
    order = [one.what.consumer_id for one in seen.messages(Draft2StopFetcherRequest)]
    assert order == ["a", "b", "a", "b", "c"]
    assert world.owned() == "aabbcc"


def test_an_answer_with_an_error_fails_its_attempt() -> None:
    world = World(2, consumers="ab", broker={"rebalance_backoff_ms": 300})
    seen = Seen(world.coordinator)
    consumer = world.nodes["b"].machine
    config = consumer.config
    consumer.config = replace(config, consumer_id="x")
    world.topic("t", {number: [1] for number in range(5)})
    run_until(world, lambda: bool(seen.noted("RebalanceAttemptFailed")))
    assert [text for _, text in seen.noted("ConsumerRefused")] == ["b: error 25"]
    assert seen.messages(Draft2StartFetcherRequest) == []
    consumer.config = config
    world.run(400)
    assert world.owned() == "aaabb"


def test_the_partitions_of_a_plan_are_those_that_zookeeper_has() -> None:
    """Step 1.1: not those that the coordinator knew before."""
    world = World(2, consumers="ab")
    coordinator, group = world.coordinator, world.coordinator.groups["g"]
    seen = Seen(coordinator)
    coordinator.partitions["t"] = ["1-0"]
    group.stopped = True  # so that one is necessary
    coordinator.try_rebalance(group)
    world.drain("broker-1")
    world.run(30)
    names = [
        part.partition for one in seen.messages(Draft2StartFetcherRequest)
        for thread in one.what.ownership_info for part in thread.assigned_parts
    ]  # fmt: skip
    assert names == ["1-0", "1-1", "1-2", "1-3"]
    assert [one.what.path for one in seen.operations(GetData, "/brokers/topics/")] == ["/brokers/topics/t"]
