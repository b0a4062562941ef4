"""The ZooKeeper consumer, by the steps of its documents."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

import pytest

from coordwire.designs.drafts.actions import DraftPartition, FetchersStarted
from coordwire.designs.drafts.zookeeper_assignment import Plan, SortBy
from coordwire.designs.drafts.zookeeper_consumer import (
    ConsumerRebalanceListener,
    MessageStreamsExist,
    ZooKeeperConsumer,
    ZooKeeperConsumerConfig,
)
from coordwire.designs.drafts.zookeeper_operations import CreateNode, DeleteNode, GetChildren, GetData
from coordwire.dialects.zookeeper import Broker
from coordwire.errors import DecodeError, EncodeError
from tests.designs.drafts.checkers import d10_owners_are_ranges
from tests.designs.drafts.cluster import Cluster


def world(*consumers: str, topic_count: str = '{"t":1}', partitions: int = 4) -> Cluster:
    """A cluster with a broker, topic t, and these consumers, started one after the other."""
    cluster = Cluster()
    broker = cluster.tree.open_session(1 << 60, 0)
    for path in ("/brokers", "/brokers/ids"):
        cluster.tree.apply(broker, CreateNode(path), 0)
    cluster.tree.apply(broker, CreateNode(Broker.path(1), Broker(host="b", port=9).build()), 0)
    cluster.topic("t", {number: [1] for number in range(partitions)})
    for name in consumers:
        join(cluster, name, topic_count)
    return cluster


def join(
    cluster: Cluster, name: str, topic_count: str = '{"t":1}', *, group: str = "g", **settings: Any
) -> ZooKeeperConsumer:
    config = ZooKeeperConsumerConfig(group_id=group, consumer_id=name, topic_count=topic_count, **settings)
    consumer: ZooKeeperConsumer = cluster.add(name, ZooKeeperConsumer(config))
    return consumer


def owned(cluster: Cluster) -> dict[str, str | None]:
    return {partition: cluster.owner("t", partition) for partition in "0123"}


def test_one_consumer_registers_and_owns_all() -> None:
    cluster = world("a")
    cluster.run(100)
    assert owned(cluster) == dict.fromkeys("0123", "a")
    assert b'"subscription":{"t":1}' in (cluster.read("/consumers/g/ids/a") or b"")
    assert cluster.read("/consumers/g/owners/t/3") == b"a-0"


def test_a_second_consumer_takes_its_range() -> None:
    cluster = world("a")
    cluster.run(100)
    join(cluster, "b")
    cluster.run(10_000)
    assert owned(cluster) == {"0": "a", "1": "a", "2": "b", "3": "b"}
    assert cluster.overlaps() == {}
    owners = [cluster.read(f"/consumers/g/owners/t/{number}") for number in range(4)]
    assert owners == [b"a-0", b"a-0", b"b-0", b"b-0"]


@pytest.mark.parametrize("auto_commit", [True, False])
def test_what_waits_in_the_queues_is_consumed_by_the_next_owner_alone(auto_commit: bool) -> None:
    cluster = world()
    consumer = join(cluster, "a", auto_commit_enable=auto_commit)
    cluster.run(100)
    consumer.fetched(DraftPartition("t", "3"), 5)
    assert consumer.take("t", "a-0") == (DraftPartition("t", "3"), 0)
    join(cluster, "b", auto_commit_enable=auto_commit)
    cluster.run(10_000)
    assert cluster.owner("t", "3") == "b"
    assert consumer.take("t", "a-0") is None


def test_the_first_threads_take_the_remainder() -> None:
    """The example of the description: five partitions, two consumers with two threads each."""
    cluster = world("c1", "c2", topic_count='{"t":2}', partitions=5)
    cluster.run(20_000)
    nodes = [cluster.read(f"/consumers/g/owners/t/{number}") for number in range(5)]
    assert nodes == [b"c1-0", b"c1-0", b"c1-1", b"c2-0", b"c2-1"]


def test_a_process_has_as_many_threads_as_it_asks_for() -> None:
    cluster = world("c", topic_count='{"t":3}', partitions=3)
    cluster.run(20_000)
    nodes = [cluster.read(f"/consumers/g/owners/t/{number}") for number in range(3)]
    assert nodes == [b"c-0", b"c-1", b"c-2"]


def test_consumers_beyond_the_partitions_own_nothing() -> None:
    cluster = world("a", "b", "c", partitions=2)
    cluster.run(20_000)
    assert [cluster.owner("t", name) for name in "01"] == ["a", "b"]
    assert cluster.nodes["c"].machine.owned == {}
    assert cluster.noted("ConsumerRebalanceFailedException") == []


def test_a_consumer_that_dies_is_replaced_after_its_session() -> None:
    cluster = world("a", "b")
    cluster.run(10_000)
    cluster.crash("a")
    cluster.run(4_900)
    assert owned(cluster) == {"0": None, "1": None, "2": "b", "3": "b"}
    cluster.run(10_000)
    assert owned(cluster) == dict.fromkeys("0123", "b")


def test_new_partitions_trigger_a_rebalance() -> None:
    cluster = world("a", partitions=1)
    cluster.run(100)
    before = cluster.nodes["a"].machine.rebalances
    cluster.topic("t", {0: [1], 1: [1]})
    cluster.run(100)
    assert cluster.owner("t", "1") == "a"
    assert cluster.nodes["a"].machine.rebalances == before + 1


def add_broker(cluster: Cluster, number: int) -> None:
    admin = cluster.tree.open_session(1 << 60, cluster.now)
    data = Broker(host="b", port=number).build()
    cluster.tree.apply(admin, CreateNode(Broker.path(number), data, ephemeral=True), cluster.now)
    cluster.deliver_events()
    cluster.run(5_000)


@pytest.mark.parametrize(("version", "rebalances"), [(None, 1), ("0.8.2.2", 0), ("1.1.1", 0)])
def test_a_broker_that_comes_rebalances_the_consumers_of_all_groups(
    version: str | None, rebalances: int
) -> None:
    """The page's registration step 3; the releases watch brokers only once there were none."""
    cluster = world()
    for number in range(6):
        join(cluster, f"c{number}", group=f"g{number % 3}", kafka_version=version)
    cluster.run(10_000)
    before = {name: node.machine.rebalances for name, node in cluster.nodes.items()}
    add_broker(cluster, 2)
    after = {name: node.machine.rebalances - before[name] for name, node in cluster.nodes.items()}
    assert after == dict.fromkeys(before, rebalances)


@pytest.mark.parametrize("version", ["0.8.2.2", "1.1.1"])
def test_a_consumer_without_brokers_waits_for_one(version: str) -> None:
    cluster = world()
    cluster.tree.apply(cluster.tree.open_session(1 << 60, 0), DeleteNode(Broker.path(1)), 0)
    join(cluster, "a", kafka_version=version)
    cluster.run(5_000)
    assert owned(cluster) == dict.fromkeys("0123")
    assert cluster.noted("ConsumerRebalanceFailedException") == []
    add_broker(cluster, 2)
    assert owned(cluster) == dict.fromkeys("0123", "a")


@pytest.mark.parametrize(("version", "is_noticed"), [("0.8.2.2", False), ("1.1.1", False), (None, True)])
def test_a_broker_that_comes_before_the_class_subscribes_is_not_noticed(
    version: Any, is_noticed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It reads the brokers, subscribes to them as there are none, and does not look at what is there by then:
    the next change is what it notices. Ours reads and watches at once."""
    cluster = world()
    cluster.tree.apply(cluster.tree.open_session(1 << 60, 0), DeleteNode(Broker.path(1)), 0)
    broker, apply, reads = cluster.tree.open_session(1 << 60, 0), cluster.tree.apply, 0

    def come_after_the_first_read(session: int, operation: Any, now: int) -> Any:
        nonlocal reads
        outcome = apply(session, operation, now)
        if isinstance(operation, GetChildren) and operation.path == "/brokers/ids":
            reads += 1
            if reads == 1:
                apply(broker, CreateNode(Broker.path(2), Broker(host="b", port=9).build()), now)
        return outcome

    monkeypatch.setattr(cluster.tree, "apply", come_after_the_first_read)
    join(cluster, "a", kafka_version=version)
    cluster.run(60_000)
    assert owned(cluster) == dict.fromkeys("0123", "a" if is_noticed else None)
    add_broker(cluster, 3)
    assert owned(cluster) == dict.fromkeys("0123", "a")


class Calls(ConsumerRebalanceListener):
    """What was called."""

    def __init__(self) -> None:
        self.released: list[dict[DraftPartition, int]] = []
        self.plans: list[dict[str, int]] = []

    def before_releasing_partitions(self, owned: Mapping[DraftPartition, int]) -> None:
        self.released.append(dict(owned))

    def before_starting_fetchers(self, consumer_id: str, plan: Plan) -> None:
        assert consumer_id == "a"
        self.plans.append({name: len(partitions) for name, partitions in plan.items()})


@pytest.mark.parametrize("version", [None, "0.8.2.2"])
def test_a_listener_hears_of_each_rebalance(version: Any) -> None:
    cluster = world()
    config = ZooKeeperConsumerConfig(
        group_id="g", consumer_id="a", topic_count='{"t":1}', kafka_version=version
    )  # fmt: skip
    consumer, calls = ZooKeeperConsumer(config), Calls()
    consumer.set_consumer_rebalance_listener(Calls())  # the last one counts
    consumer.set_consumer_rebalance_listener(calls)
    cluster.add("a", consumer)
    with pytest.raises(MessageStreamsExist):  # there are streams, though nothing is fetched yet
        consumer.set_consumer_rebalance_listener(Calls())
    cluster.run(100)
    consumer.consumed(DraftPartition("t", "3"), 7)
    join(cluster, "b", kafka_version=version)
    cluster.run(10_000)
    assert calls.released[0] == {}
    assert calls.released[1][DraftPartition("t", "3")] == 7
    assert calls.plans == ([{"a": 4}, {"a": 2, "b": 2}] if version is None else [])
    with pytest.raises(MessageStreamsExist):
        consumer.set_consumer_rebalance_listener(calls)


def test_a_static_topic_is_watched_before_it_exists() -> None:
    cluster = world("a", topic_count='{"t":1,"later":1}')
    cluster.run(1_000)
    cluster.topic("later", {0: [1], 1: [1]})
    cluster.run(1_000)
    assert cluster.owner("later", "1") == "a"
    assert [cluster.owner("t", number) for number in "0123"] == ["a"] * 4  # it reads both topics


def test_offsets_are_written_where_they_have_changed_alone() -> None:
    """checkpointedZkOffsets; and nothing is written of a partition that was never read."""
    cluster = world("a")
    cluster.run(100)
    cluster.nodes["a"].machine.consumed(DraftPartition("t", "1"), 7)
    cluster.run(200_000)
    assert cluster.read("/consumers/g/offsets/t/0") is None
    node = cluster.tree.apply(cluster.admin, GetData("/consumers/g/offsets/t/1"), cluster.now)
    assert node.stat is not None
    assert (node.data, node.stat.version) == (b"7", 0)


def test_offsets_that_were_read_are_not_written_again() -> None:
    """addPartitionTopicInfo: what a consumer begins with counts as written."""
    cluster = world("a")
    cluster.run(100)
    cluster.nodes["a"].machine.consumed(DraftPartition("t", "1"), 7)
    cluster.run(61_000)
    cluster.crash("a")
    cluster.run(20_000)
    join(cluster, "b")
    cluster.run(200_000)
    assert cluster.nodes["b"].machine.owned[DraftPartition("t", "1")] == 7
    node = cluster.tree.apply(cluster.admin, GetData("/consumers/g/offsets/t/1"), cluster.now)
    assert node.stat is not None
    assert (node.data, node.stat.version) == (b"7", 0)


def test_a_consumer_that_does_not_commit_by_itself_does_not_when_it_leaves() -> None:
    cluster = world()
    consumer = join(cluster, "a", auto_commit_enable=False)
    cluster.run(100)
    consumer.consumed(DraftPartition("t", "1"), 7)
    consumer.shut_down()
    cluster.drain("a")
    cluster.run(1_000)
    assert cluster.read("/consumers/g/offsets/t/1") is None


@pytest.mark.parametrize("by_itself", [False, True])
def test_an_application_commits_when_it_wants(by_itself: bool) -> None:
    cluster = world()
    consumer = join(cluster, "a", auto_commit_enable=by_itself)
    cluster.run(100)
    consumer.consumed(DraftPartition("t", "1"), 7)
    consumer.commit()
    cluster.drain("a")
    cluster.run(100)
    assert cluster.read("/consumers/g/offsets/t/1") == b"7"
    assert cluster.read("/consumers/g/offsets/t/0") is None


def test_each_group_has_its_offsets() -> None:
    cluster = world()
    for name, offset in (("a", 7), ("b", 3), ("A", 5), ("a.b", 9)):
        consumer = join(cluster, name, group=name)
        cluster.run(100)
        consumer.consumed(DraftPartition("t", "1"), offset)
    cluster.run(61_000)
    assert cluster.read("/consumers/a/offsets/t/1") == b"7"
    assert cluster.read("/consumers/b/offsets/t/1") == b"3"
    assert cluster.read("/consumers/A/offsets/t/1") == b"5"
    assert cluster.read("/consumers/a.b/offsets/t/1") == b"9"


def test_a_consumers_id_may_have_hyphens() -> None:
    """A thread's id ends with its number."""
    cluster = world()
    for name in ("host-1-a", "host-1-b"):
        join(cluster, name, '{"t":2}')
    cluster.run(30_000)
    assert owned(cluster) == {"0": "host-1-a", "1": "host-1-a", "2": "host-1-b", "3": "host-1-b"}
    nodes = [cluster.read(f"/consumers/g/owners/t/{number}") for number in range(4)]
    assert nodes == [b"host-1-a-0", b"host-1-a-1", b"host-1-b-0", b"host-1-b-1"]


def test_consumers_may_read_different_topics() -> None:
    """A topic's partitions go to those who read it, with the threads that each has for it."""
    cluster = world()
    cluster.topic("u", {number: [1] for number in range(3)})
    for name, count in (("a", '{"t":1}'), ("b", '{"t":1,"u":2}'), ("c", '{"u":1}')):
        join(cluster, name, count)
    cluster.run(30_000)
    assert owned(cluster) == {"0": "a", "1": "a", "2": "b", "3": "b"}
    nodes = [cluster.read(f"/consumers/g/owners/u/{number}") for number in range(3)]
    assert nodes == [b"b-0", b"b-1", b"c-0"]


def test_round_robin_takes_turns_by_javas_hash() -> None:
    cluster = world()
    for name in ("a", "b"):
        join(cluster, name, partition_assignment_strategy="roundrobin")
    cluster.run(20_000)
    assert sorted(map(str, owned(cluster).values())) == ["a", "a", "b", "b"]
    assert owned(cluster)["0"] != owned(cluster)["1"]


def test_round_robin_of_0_8_2_wants_the_same_threads_for_every_topic() -> None:
    cluster = world()
    cluster.topic("u", {0: [1]})
    join(
        cluster, "a", '{"t":1,"u":2}', partition_assignment_strategy="roundrobin", kafka_version="0.8.2.2"
    )  # fmt: skip
    cluster.run(60_000)
    assert cluster.noted("ConsumerRebalanceFailedException")
    assert owned(cluster) == dict.fromkeys("0123")


@pytest.mark.parametrize(("version", "backslashes"), [("0.8.2.2", 2), ("1.1.1", 4)])
def test_a_filter_is_registered_as_each_release_does(version: str, backslashes: int) -> None:
    cluster = world()
    join(cluster, "a", '*1* "t\\.x, u" ', kafka_version=version)
    cluster.run(1_000)
    node = cluster.read("/consumers/g/ids/a") or b""
    assert b'"t' + b"\\" * backslashes + b'.x|u"' in node


def test_an_id_that_is_taken_raises_in_1_1() -> None:
    cluster = world("a")
    cluster.run(100)
    config = ZooKeeperConsumerConfig(
        group_id="g", consumer_id="a", topic_count='{"t":1}', kafka_version="1.1.1"
    )
    cluster.add("a again", ZooKeeperConsumer(config))
    cluster.run(100)
    assert [one.name for one in cluster.noted("ZkNodeExistsException")] == ["a again"]


@pytest.mark.parametrize(("topic", "version", "read"), [
    ("__consumer_offsets", "0.8.2.2", False), ("__transaction_state", "0.8.2.2", True),
    ("__consumer_offsets", "1.1.1", False), ("__transaction_state", "1.1.1", False),
])  # fmt: skip
def test_wildcards_leave_internal_topics_out(topic: str, version: str, read: bool) -> None:
    cluster = world()
    cluster.topic(topic, {0: [1]})
    join(cluster, "a", "*1*.*", kafka_version=version)
    cluster.run(1_000)
    assert (cluster.owner(topic, "0") == "a") is read


def test_ranges_by_number_or_by_broker() -> None:
    """The class sorts by number; step 4 of the page keeps the partitions of one broker together, so that a
    consumer needs a connection to fewer brokers."""
    connections = {}
    for sort_by in SortBy:
        cluster = world()
        brokers = {number: [2 - number % 2] for number in range(4)}
        cluster.topic("t", brokers)
        for name in ("a", "b"):
            join(cluster, name, sort_by=sort_by)
        cluster.run(20_000)
        pairs = {(name, brokers[int(number)][0]) for number, name in owned(cluster).items()}
        connections[sort_by] = (owned(cluster), len(pairs))
    assert connections == {
        SortBy.NUMBER: ({"0": "a", "1": "a", "2": "b", "3": "b"}, 4),
        SortBy.BROKER: ({"0": "b", "1": "a", "2": "b", "3": "a"}, 2),
    }


def test_partitions_of_one_broker_are_in_the_order_of_their_numbers() -> None:
    cluster = world()
    cluster.topic("t", {number: [1] for number in range(12)})
    for name in ("a", "b"):
        join(cluster, name, sort_by=SortBy.BROKER)
    cluster.run(20_000)
    owners = [cluster.owner("t", str(number)) for number in range(12)]
    assert owners == ["a"] * 6 + ["b"] * 6


@pytest.mark.parametrize(("topic_count", "expected"), [("*1*t.*", ["t", "tt"]), ("!1!t", ["tt", "u"])])
def test_wildcards_follow_the_topics(topic_count: str, expected: list[str]) -> None:
    cluster = world("a", topic_count=topic_count)
    cluster.run(100)
    cluster.topic("tt", {0: [1]})
    cluster.topic("u", {0: [1]})
    cluster.topic("__consumer_offsets", {0: [1]})
    cluster.run(100)
    assert sorted({one.topic for one, names in cluster.owners.items() if names}) == expected


def test_offsets_are_committed_before_ownership_is_released() -> None:
    cluster = world("a")
    cluster.run(100)
    for partition in "0123":
        cluster.nodes["a"].machine.consumed(DraftPartition("t", partition), 7)
    join(cluster, "b")
    cluster.run(10_000)
    assert cluster.read("/consumers/g/offsets/t/3") == b"7"
    started = [one.what for one in cluster.history if one.name == "b"]
    assert any(isinstance(one, FetchersStarted) and set(one.partitions.values()) == {7} for one in started)


def fetch(consumer: ZooKeeperConsumer, broker: str = "b", **ends: int) -> None:
    """The fetcher of a broker that leads all partitions has messages of topic t up to these offsets."""
    for partition in list(consumer.fetchers.without_leader):
        consumer.fetchers.leader_found(partition, broker)
    for name, end in ends.items():
        consumer.fetched(DraftPartition("t", name[1:]), end)


def test_each_thread_has_the_messages_of_what_it_owns() -> None:
    cluster = world("a", topic_count='{"t":2}')
    cluster.run(100)
    consumer: ZooKeeperConsumer = cluster.nodes["a"].machine
    before = dict(consumer.owned)
    fetch(consumer, p0=1, p3=1)
    fetch(consumer, p0=2)  # now the first thread's queue is full
    assert consumer.owned == before  # what waits in a queue the application does not have
    assert [consumer.take("t", "a-0") for _ in range(3)] == [
        (DraftPartition("t", "0"), 0), (DraftPartition("t", "0"), 1), None
    ]  # fmt: skip
    assert consumer.take("t", "a-1") == (DraftPartition("t", "3"), 0)
    assert consumer.take("t", "a-7") is None
    assert consumer.owned[DraftPartition("t", "0")] == 2
    assert not consumer.fetched(DraftPartition("t", "9"), 3)  # nobody's


@pytest.mark.parametrize("topic_count", ['{"t":1}', "*1*t"])
def test_queues_are_cleared_before_offsets_are_committed(topic_count: str) -> None:
    """What waited in a queue is fetched again by its next owner; the streams stay the same."""
    cluster = world("a", topic_count=topic_count)
    cluster.run(100)
    consumer: ZooKeeperConsumer = cluster.nodes["a"].machine
    streams = consumer.streams.all()
    fetch(consumer, p3=5)
    assert [consumer.take("t", "a-0") for _ in range(2)] == [(DraftPartition("t", "3"), at) for at in (0, 1)]
    fetch(consumer, p2=4)
    fetch(consumer, p1=4)  # two chunks in the queue, beside the one that is iterated over
    join(cluster, "b")
    cluster.run(10_000)
    assert consumer.take("t", "a-0") is None
    assert consumer.streams.all() == streams
    assert cluster.read("/consumers/g/offsets/t/3") == b"2"
    other: ZooKeeperConsumer = cluster.nodes["b"].machine
    fetch(other, p3=5)
    assert other.take("t", "b-0") == (DraftPartition("t", "3"), 2)
    assert set(consumer.fetchers.partitions) == {DraftPartition("t", name) for name in "01"}


def test_a_claim_that_fails_is_retried_and_at_last_given_up() -> None:
    """Another's node stays: rebalance.max.retries attempts, then ConsumerRebalanceFailedException."""
    cluster = world()
    admin = cluster.tree.open_session(1 << 60, 0)
    for path in ("", "/g", "/g/owners", "/g/owners/t", "/g/owners/t/2"):
        cluster.tree.apply(admin, CreateNode(f"/consumers{path}", b"x-0"), 0)
    join(cluster, "a")
    cluster.run(60_000)
    assert len(cluster.noted("RebalanceAttemptFailed")) == 4
    assert len(cluster.noted("ConsumerRebalanceFailedException")) == 1
    assert owned(cluster) == dict.fromkeys("0123")
    assert cluster.read("/consumers/g/owners/t/0") is None


def test_two_processes_with_one_id() -> None:
    cluster = world("a")
    cluster.run(100)
    config = ZooKeeperConsumerConfig(group_id="g", consumer_id="a", topic_count='{"t":1}')
    cluster.add("a again", ZooKeeperConsumer(config))
    cluster.run(5_000)
    assert cluster.noted("NODE_EXISTS") or cluster.noted("NodeExists")
    assert owned(cluster) == dict.fromkeys("0123", "a")
    cluster.crash("a")
    cluster.run(20_000)
    assert owned(cluster) == dict.fromkeys("0123", "a again")


def test_a_session_that_expires_is_a_split_brain_until_its_client_hears_of_it() -> None:
    cluster = world("a", "b")
    cluster.run(10_000)
    cluster.cut_zookeeper("a")
    cluster.run(20_000)
    assert cluster.owners[DraftPartition("t", "0")] == {"a", "b"}
    cluster.heal_zookeeper("a")
    cluster.run(20_000)
    assert owned(cluster) == {"0": "a", "1": "a", "2": "b", "3": "b"}
    assert 10_000 < cluster.overlaps()[DraftPartition("t", "0")] < 20_000


def test_a_registration_that_cannot_be_read_fails_every_rebalance() -> None:
    cluster = world("a")
    cluster.run(100)
    admin = cluster.tree.open_session(1 << 60, 0)
    cluster.tree.apply(admin, CreateNode("/consumers/g/ids/bad", b"{"), cluster.now)
    cluster.run(100_000)
    assert cluster.noted("UnreadableNode")
    assert cluster.noted("ConsumerRebalanceFailedException")


def test_shutting_down_gives_all_back_at_once() -> None:
    cluster = world("a", "b")
    cluster.run(10_000)
    cluster.nodes["a"].machine.shut_down()
    cluster.drain("a")
    cluster.run(3_000)
    assert owned(cluster) == dict.fromkeys("0123", "b")


@pytest.mark.parametrize("topic_count", ["", "{", '{"t":0}', '{"a/b":1}', "*1*[", '{"t":2000000000}', "*x*t"])
def test_a_malformed_topic_count_is_refused_at_once(topic_count: str) -> None:
    config = ZooKeeperConsumerConfig(group_id="g", consumer_id="a", topic_count=topic_count)
    with pytest.raises(DecodeError):
        ZooKeeperConsumer(config)
    with pytest.raises(EncodeError):
        ZooKeeperConsumer(ZooKeeperConsumerConfig(group_id="a/b", consumer_id="a", topic_count='{"t":1}'))


@pytest.mark.parametrize("seed", range(4))
def test_d10_holds_after_random_changes(seed: int) -> None:
    random = Random(seed)
    cluster = world(partitions=7)
    cluster.random, cluster.latency = random, (1, 30)
    for number in range(12):
        names = sorted(cluster.nodes)
        match random.choice(["join", "join", "crash", "cut", "heal"]):
            case "crash" if names:
                cluster.crash(random.choice(names))
            case "cut" if names:
                cluster.cut_zookeeper(random.choice(names))
            case "heal" if names:
                cluster.heal_zookeeper(random.choice(names))
            case _:
                join(cluster, f"c{number}", random.choice(['{"t":1}', '{"t":2}', '{"t":3}']))
        cluster.run(random.randrange(9_000))
    for name in list(cluster.nodes):
        cluster.heal_zookeeper(name)
    cluster.run(60_000)
    assert list(d10_owners_are_ranges(cluster, "g", "t", 7)) == []
