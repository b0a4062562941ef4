"""Kafka's implementation page, "ZooKeeper Directories" and the consumer's algorithms, node by node.

Each test states what the page demands in numbers; `test_zookeeper_consumer.py` has what the code of the time
does beyond it.
"""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest

from coordwire.codec import Message
from coordwire.designs.drafts.actions import DraftPartition, FetchersStarted, FetchersStopped
from coordwire.designs.drafts.zookeeper_assignment import SortBy
from coordwire.designs.drafts.zookeeper_consumer import ZooKeeperConsumer, ZooKeeperConsumerConfig
from coordwire.designs.drafts.zookeeper_offsets import OffsetSettings
from coordwire.designs.drafts.zookeeper_operations import CreateNode, DeleteNode
from coordwire.dialects.zookeeper import Broker
from tests.designs.drafts.cluster import Cluster
from tests.designs.drafts.test_broker_registration import broker
from tests.designs.drafts.test_zookeeper_consumer import add_broker, join, owned, world
from tests.designs.drafts.test_zookeeper_offsets import KAFKA, KAFKA_AND_ZOOKEEPER, ZOOKEEPER_AND_KAFKA, Group


def form_of(cluster: Cluster, path: str) -> dict[str, object]:
    form: dict[str, object] = json.loads(cluster.read(path) or b"")
    return form


def rebalances(cluster: Cluster) -> dict[str, int]:
    return {name: node.machine.rebalances for name, node in cluster.nodes.items()}


def consumer(cluster: Cluster, name: str) -> ZooKeeperConsumer:
    machine: ZooKeeperConsumer = cluster.nodes[name].machine
    return machine


# --- the registries ---


def test_what_a_consumer_writes_and_which_nodes_go_with_it() -> None:
    cluster = world("a", topic_count='{"t":2,"u":1}')
    cluster.run(100)
    session = consumer(cluster, "a").session
    assert session
    form = form_of(cluster, "/consumers/g/ids/a")
    assert (form["version"], form["subscription"], form["pattern"]) == (1, {"t": 2, "u": 1}, "static")
    assert cluster.stat("/consumers/g/ids/a").ephemeral_owner == session
    for number, thread in enumerate((b"a-0", b"a-0", b"a-1", b"a-1")):
        assert cluster.read(f"/consumers/g/owners/t/{number}") == thread
        assert cluster.stat(f"/consumers/g/owners/t/{number}").ephemeral_owner == session
    for number in range(4):
        consumer(cluster, "a").consumed(DraftPartition("t", str(number)), 5 + number)
    cluster.run(61_000)
    for number in range(4):
        assert cluster.read(f"/consumers/g/offsets/t/{number}") == b"%d" % (5 + number)
        assert cluster.stat(f"/consumers/g/offsets/t/{number}").ephemeral_owner == 0
    for folder in ("", "/g", "/g/ids", "/g/owners", "/g/owners/t", "/g/offsets/t"):
        assert cluster.stat(f"/consumers{folder}").ephemeral_owner == 0
    cluster.crash("a")
    cluster.run(7_000)
    assert cluster.read("/consumers/g/ids/a") is None
    assert [cluster.read(f"/consumers/g/owners/t/{number}") for number in range(4)] == [None] * 4
    assert cluster.read("/consumers/g/offsets/t/3") == b"8"


def test_what_a_broker_writes_and_which_nodes_go_with_it() -> None:
    cluster = Cluster()
    cluster.run(700)
    cluster.add("one", broker(1, "one", topics={"orders": 2, "others": 3, "one": 1}, new_cluster_id="c" * 22))
    cluster.run(1_000)
    session = cluster.nodes["one"].machine.session
    form = form_of(cluster, "/brokers/ids/1")
    assert (form["host"], form["port"], form["timestamp"]) == ("one", 9092, "700")
    assert form_of(cluster, "/brokers/topics/orders")["partitions"] == {"0": [1], "1": [1]}
    assert form_of(cluster, "/brokers/topics/others")["partitions"] == {"0": [1], "1": [1], "2": [1]}
    assert form_of(cluster, "/brokers/topics/one")["partitions"] == {"0": [1]}
    for path in (
        "/brokers/ids/1",
        *(f"/brokers/topics/orders/partitions/{number}/state" for number in (0, 1)),
    ):
        assert cluster.stat(path).ephemeral_owner == session
    assert form_of(cluster, "/brokers/topics/orders/partitions/1/state") == {
        "controller_epoch": 0, "leader": 1, "version": 1, "leader_epoch": 0, "isr": [1],
    }  # fmt: skip
    assert form_of(cluster, "/cluster/id") == {"version": "1", "id": "c" * 22}
    assert cluster.nodes["one"].machine.cluster_id == "c" * 22
    for path in ("/brokers", "/brokers/ids", "/brokers/topics", "/brokers/topics/orders", "/cluster/id"):
        assert cluster.stat(path).ephemeral_owner == 0
    cluster.nodes["one"].machine.create_topic("new", 2)
    cluster.drain("one")
    cluster.run(100)
    assert form_of(cluster, "/brokers/topics/new")["partitions"] == {"0": [1], "1": [1]}
    assert cluster.stat("/brokers/topics/new").ephemeral_owner == 0
    assert cluster.stat("/brokers/topics/new/partitions/0/state").ephemeral_owner == session
    cluster.crash("one")
    cluster.run(7_000)
    assert cluster.read("/brokers/ids/1") is None
    assert cluster.read("/brokers/topics/orders/partitions/0/state") is None
    assert cluster.read("/cluster/id") is not None


@pytest.mark.parametrize("text", ["a", "a" * 22, "-_09azAZ"])
def test_a_cluster_keeps_the_id_that_it_has(text: str) -> None:
    cluster = Cluster()
    cluster.tree.apply(cluster.admin, CreateNode("/cluster"), 0)
    cluster.tree.apply(
        cluster.admin, CreateNode("/cluster/id", b'{"version":"1","id":"%s"}' % text.encode()), 0
    )
    cluster.add("one", broker(1, "one", new_cluster_id="new"))
    cluster.run(1_000)
    assert cluster.nodes["one"].machine.cluster_id == text
    assert form_of(cluster, "/cluster/id")["id"] == text


# --- the registration algorithm ---


def test_a_consumer_alone_registers_and_forces_itself_to_rebalance() -> None:
    """Steps 1 and 5: nothing has changed that would trigger it."""
    cluster = world("a")
    cluster.run(30_000)
    assert rebalances(cluster) == {"a": 1}
    assert owned(cluster) == dict.fromkeys("0123", "a")


def test_a_change_of_consumers_rebalances_its_own_group_and_all_of_it() -> None:
    """Step 2: those that join, and those that leave."""
    cluster = world()
    for name, group in (("a", "g"), ("b", "g"), ("c", "h"), ("d", "h")):
        join(cluster, name, group=group)
    cluster.run(30_000)
    before = rebalances(cluster)
    join(cluster, "e", group="g")
    cluster.run(30_000)
    after = rebalances(cluster)
    assert {name for name in before if after[name] > before[name]} == {"a", "b"}
    consumer(cluster, "e").shut_down()
    cluster.drain("e")
    cluster.run(30_000)
    assert {name for name in before if rebalances(cluster)[name] > after[name]} == {"a", "b"}


def test_a_change_of_brokers_rebalances_the_consumers_of_all_groups() -> None:
    """Step 3: a broker that comes, and one that goes."""
    cluster = world()
    for name, group in (("a", "g"), ("b", "g"), ("c", "h"), ("d", "h")):
        join(cluster, name, group=group)
    cluster.run(30_000)
    before = rebalances(cluster)
    add_broker(cluster, 2)
    cluster.run(30_000)
    after = rebalances(cluster)
    assert {name for name in before if after[name] > before[name]} == {"a", "b", "c", "d"}
    cluster.tree.apply(cluster.admin, DeleteNode(Broker.path(2)), cluster.now)
    cluster.deliver_events()
    cluster.run(30_000)
    assert {name for name in before if rebalances(cluster)[name] > after[name]} == {"a", "b", "c", "d"}


def test_a_new_topic_rebalances_the_groups_whose_filter_allows_it() -> None:
    """Step 4: all consumers of a group with a filter, if the topic is allowed; no others."""
    cluster = world()
    join(cluster, "a", "*1*t.*")
    join(cluster, "b", "*1*t.*")
    join(cluster, "static", group="h")
    cluster.run(30_000)
    before = rebalances(cluster)
    cluster.topic("u", {0: [1]})
    cluster.run(30_000)
    assert rebalances(cluster) == before
    cluster.topic("t2", {0: [1]})
    cluster.run(30_000)
    after = rebalances(cluster)
    assert {name for name in before if after[name] > before[name]} == {"a", "b"}
    assert cluster.owner("t2", "0") == "a"
    cluster.tree.apply(cluster.admin, DeleteNode("/brokers/topics/t2"), cluster.now)
    cluster.deliver_events()
    cluster.run(30_000)
    last = rebalances(cluster)
    assert {name for name in after if last[name] > after[name]} == {"a", "b"}
    assert cluster.owner("t2", "0") is None


# --- the rebalancing algorithm ---


def test_a_claim_is_whole_though_some_of_its_nodes_are_its_own() -> None:
    """Of an attempt whose answers were lost one node is there, and another consumer has another partition."""
    cluster = world()
    machine = join(cluster, "a")
    while machine.session is None:
        cluster.run(1)
    for path in ("/consumers", "/consumers/g", "/consumers/g/owners", "/consumers/g/owners/t"):
        cluster.tree.apply(cluster.admin, CreateNode(path), cluster.now)
    own, others = CreateNode("/consumers/g/owners/t/1", b"a-0", ephemeral=True), b"x-0"
    cluster.tree.apply(machine.session, own, cluster.now)
    cluster.tree.apply(cluster.admin, CreateNode("/consumers/g/owners/t/2", others), cluster.now)
    cluster.run(1_000)
    assert (machine.fetching, machine.owned) == (False, {})
    assert cluster.noted("RebalanceAttemptFailed")
    assert [cluster.read(f"/consumers/g/owners/t/{number}") for number in (0, 2, 3)] == [None, others, None]
    cluster.tree.apply(cluster.admin, DeleteNode("/consumers/g/owners/t/2"), cluster.now)
    cluster.run(10_000)
    assert owned(cluster) == dict.fromkeys("0123", "a")


def test_a_node_of_another_session_is_not_its_own_whatever_it_says() -> None:
    cluster = world()
    for path in ("/consumers", "/consumers/g", "/consumers/g/owners", "/consumers/g/owners/t"):
        cluster.tree.apply(cluster.admin, CreateNode(path), cluster.now)
    cluster.tree.apply(cluster.admin, CreateNode("/consumers/g/owners/t/1", b"a-0"), cluster.now)
    machine = join(cluster, "a")
    cluster.run(1_000)
    assert (machine.fetching, machine.owned) == (False, {})
    cluster.tree.apply(cluster.admin, DeleteNode("/consumers/g/owners/t/1"), cluster.now)
    cluster.run(10_000)
    assert owned(cluster) == dict.fromkeys("0123", "a")


def test_steps_8_and_9_release_what_is_owned_before_they_claim() -> None:
    """And nothing is consumed of what is not owned yet: another's nodes stop the claim, whole."""
    cluster = world("a")
    cluster.run(100)
    assert [type(entry.what) for entry in cluster.history if entry.name == "a"].count(FetchersStarted) == 1
    cluster.tree.apply(
        cluster.admin, CreateNode("/consumers/g/ids/x", b'{"version":1,"subscription":{"t":1}}'), 0
    )
    cluster.deliver_events()
    cluster.run(100)
    for number in (2, 3):
        assert cluster.read(f"/consumers/g/owners/t/{number}") is None  # step 8
        cluster.tree.apply(cluster.admin, CreateNode(f"/consumers/g/owners/t/{number}", b"x-0"), cluster.now)
    assert [cluster.read(f"/consumers/g/owners/t/{number}") for number in range(4)] == [
        b"a-0",
        b"a-0",
        b"x-0",
        b"x-0",
    ]
    cluster.tree.apply(cluster.admin, DeleteNode("/consumers/g/ids/x"), cluster.now)
    cluster.deliver_events()
    cluster.run(1_000)
    machine = consumer(cluster, "a")
    assert (machine.fetching, machine.owned) == (False, {})
    assert [cluster.read(f"/consumers/g/owners/t/{number}") for number in (0, 1)] == [None, None]
    assert cluster.noted("RebalanceAttemptFailed")
    kinds = [type(entry.what) for entry in cluster.history if entry.name == "a"]
    assert kinds.count(FetchersStarted) == kinds.count(FetchersStopped) == 2
    for number in (2, 3):
        cluster.tree.apply(cluster.admin, DeleteNode(f"/consumers/g/owners/t/{number}"), cluster.now)
    cluster.run(10_000)  # "re-try this until the original partition owner releases its ownership"
    assert owned(cluster) == dict.fromkeys("0123", "a")


def test_partitions_are_divided_evenly_and_each_has_one_consumer() -> None:
    cluster = world("a", "b", "c", partitions=4)
    cluster.run(40_000)
    assert owned(cluster) == {"0": "a", "1": "a", "2": "b", "3": "c"}
    assert cluster.overlaps() == {}
    join(cluster, "other", group="h")
    join(cluster, "elsewhere", '{"u":1}')
    cluster.run(40_000)  # consumers of another group, and of another topic, do not count
    assert {name: len(consumer(cluster, name).owned) for name in cluster.nodes} == {
        "a": 2, "b": 1, "c": 1, "other": 4, "elsewhere": 0,
    }  # fmt: skip


def test_partitions_of_one_broker_are_clustered_together() -> None:
    cluster = world()
    cluster.topic("t", {number: [2 - number % 2] for number in range(4)})
    for name in ("b", "a"):
        join(cluster, name, sort_by=SortBy.BROKER)
    cluster.run(20_000)
    assert owned(cluster) == {"1": "a", "3": "a", "0": "b", "2": "b"}


# --- offsets ---


def test_offsets_are_committed_again_and_again() -> None:
    cluster = world("a")
    cluster.run(100)
    assert cluster.read("/consumers/g/offsets/t/0") is None
    for offset in (10, 20, 5, 0, 30):  # an application may seek back
        before = cluster.read("/consumers/g/offsets/t/0")
        consumer(cluster, "a").consumed(DraftPartition("t", "0"), offset)
        consumer(cluster, "a").fetched(DraftPartition("t", "0"), offset + 5)  # waits in its queue
        consumer(cluster, "a").consumed(DraftPartition("t", "9"), 7)  # what it does not own
        cluster.run(59_000)
        assert cluster.read("/consumers/g/offsets/t/0") == before
        cluster.run(1_000)
        assert cluster.read("/consumers/g/offsets/t/0") == b"%d" % offset
    assert cluster.read("/consumers/g/offsets/t/9") is None
    cluster.crash("a")
    join(cluster, "b")
    cluster.run(10_000)  # "so that it can resume from those offsets"
    assert consumer(cluster, "b").owned[DraftPartition("t", "0")] == 30


@pytest.mark.parametrize(
    ("settings", "kafka", "zookeeper"),
    [
        ({}, False, True), ({"offsets_storage": "zookeeper"}, False, True), (KAFKA, True, False),
        (KAFKA_AND_ZOOKEEPER, True, True), (ZOOKEEPER_AND_KAFKA, True, True),
    ],
)  # fmt: skip
@pytest.mark.parametrize("version", [None, "0.8.2.2"])
def test_where_offsets_are_by_the_two_settings(
    settings: dict[str, object], kafka: bool, zookeeper: bool, version: Any
) -> None:
    """Kafka's own consumer looks at the second where the first is "kafka" alone."""
    kafka = kafka and (version is None or settings.get("offsets_storage") == "kafka")
    config = ZooKeeperConsumerConfig(
        group_id="g", consumer_id="a", topic_count='{"t":1}', kafka_version=version, **settings  # type: ignore[arg-type]
    )  # fmt: skip
    assert isinstance(config.offset_settings, OffsetSettings)
    assert (config.offset_settings.uses_kafka, config.offset_settings.uses_zookeeper) == (kafka, zookeeper)
    group = Group(1, version=version)
    kinds: set[str] = set()

    def manager(request: Message, now: int) -> Any:
        kinds.add(type(request).__name__)
        return group.manager(request, now)

    group.cluster.offset_manager = manager
    group.start("a", settings)
    group.run(10_000)
    written = [group.cluster.read(f"/consumers/g/offsets/t/{number}") for number in range(4)]
    assert [text is not None for text in written] == [zookeeper] * 4
    assert kinds == ({"OffsetCommitRequest", "OffsetFetchRequest"} if kafka else set())
    assert min(group.committed.values()) > 0


def test_a_commit_is_tried_again_after_backing_off() -> None:
    """Of offsets.channel.backoff.ms; a fetch is, too."""
    group = Group(1)
    times: list[int] = []

    def manager(request: Message, now: int) -> Any:
        times.append(now)
        return group.manager(request, now)

    group.cluster.offset_manager = manager
    shard = group.manager.shard
    shard.unload(now=shard.now)
    group.start("a", KAFKA)
    group.run(10_000)
    gaps = [after - before for before, after in pairwise(times)]
    assert len(gaps) > 5
    assert min(gaps) >= 1_000
    assert max(gaps) < 1_100
    assert group.began == []
