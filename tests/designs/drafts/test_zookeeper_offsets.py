"""Offsets in ZooKeeper, with Kafka's offset manager, or in both: the page's migration and its roll-back.

The offset manager is `coordwire.coordinator.Shard`, which Kafka's own coordinator judges; requests and
answers are bytes in between.
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from random import Random
from typing import Any
from uuid import UUID, uuid4

import pytest

from coordwire import ErrorCode
from coordwire.codec import Message
from coordwire.coordinator import (
    Answer,
    Append,
    CoordinatorConfig,
    RequestContext,
    Shard,
    TopicImage,
    TopicsImage,
)
from coordwire.designs.drafts.actions import DraftPartition, FetchersStarted
from coordwire.designs.drafts.zookeeper_consumer import ZooKeeperConsumer
from coordwire.designs.drafts.zookeeper_operations import CreateNode
from coordwire.messages import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchResponse,
)
from coordwire.messages.offset_commit import OffsetCommitRequestPartition, OffsetCommitRequestTopic
from tests.designs.drafts.cluster import Cluster
from tests.designs.drafts.test_zookeeper_consumer import join, world

ZOOKEEPER = {"offsets_storage": "zookeeper", "dual_commit_enabled": False}
KAFKA_AND_ZOOKEEPER = {"offsets_storage": "kafka", "dual_commit_enabled": True}
KAFKA = {"offsets_storage": "kafka", "dual_commit_enabled": False}
ZOOKEEPER_AND_KAFKA = {"offsets_storage": "zookeeper", "dual_commit_enabled": True}
PARTITIONS = [DraftPartition("t", str(number)) for number in range(4)]


CONTEXT = RequestContext(client_id="c", client_host="/127.0.0.1", new_id=lambda: str(uuid4()))


class OffsetManager:
    """A shard that answers bytes. silent: it does not answer. replicates: whether the replicas of the offsets
    topic have what is appended; timeout_ms: offsets.commit.timeout.ms."""

    def __init__(self, timeout_ms: int = 5_000) -> None:
        self.replicates = True
        self.shard = Shard(config=CoordinatorConfig(write_timeout_ms=timeout_ms))
        self.shard.load([], now=self.shard.now)
        self.shard.set_topics(
            TopicsImage([TopicImage(UUID(int=1), "t", len(PARTITIONS))]), now=self.shard.now
        )
        self.silent = False
        self.requests = 0

    def __call__(self, request: Message, now: int) -> Message | tuple[int, Message] | None:
        self.requests += 1
        if self.silent:
            return None
        version = {"OffsetCommitRequest": 2, "OffsetFetchRequest": 1}[type(request).__name__]
        received = type(request).decode(request.encode(version=version), version=version)
        ticket = self.shard.handle(received, version=version, now=now, context=CONTEXT)
        later, answer = 0, None
        for effect in self.shard.effects():
            if isinstance(effect, Append) and self.replicates:
                self.shard.appended(effect.number, now=self.shard.now)
            elif isinstance(effect, Append):
                due = self.shard.next_deadline()
                assert due is not None
                later = due - now
                self.shard.advance(due)
            elif isinstance(effect, Answer) and effect.ticket == ticket:
                answer = effect.response
        assert answer is not None
        reply = type(answer).decode(answer.encode(version=version), version=version)
        return (later, reply) if later else reply


class Group:
    """Consumers a and b, whose configuration changes by a rolling bounce while they consume."""

    def __init__(self, seed: int, *, version: str | None = None, manager: Any = None) -> None:
        self.random = Random(seed)
        self.version = version
        self.manager = OffsetManager() if manager is None else manager
        self.cluster: Cluster = world()
        self.cluster.offset_manager = self.manager
        self.boots = 0
        self.read = dict.fromkeys(PARTITIONS, 0)
        self.committed = dict.fromkeys(PARTITIONS, -1)
        self.began: list[tuple[DraftPartition, int, int, int]] = []
        self._seen = 0

    def start(self, name: str, settings: dict[str, Any]) -> None:
        self.boots += 1
        join(
            self.cluster, f"{name}{self.boots}", auto_commit_interval_ms=1_000, rebalance_backoff_ms=500,
            rebalance_max_retries=30, kafka_version=self.version, **settings,
        )  # fmt: skip

    def stop(self, name: str, *, kill: bool) -> None:
        node = next(node for node in self.cluster.nodes if node.startswith(name))
        if not kill:
            self.cluster.nodes[node].machine.shut_down()
            self.cluster.drain(node)
            self.run(500)
        self._note_commits()
        self.cluster.crash(node)

    def run(self, ms: int) -> None:
        """Let time pass in which the consumers consume; note where partitions begin."""
        for _ in range(0, ms, 50):
            self.cluster.run(50)
            self._note_commits()
            for node in list(self.cluster.nodes.values()):
                consumer: ZooKeeperConsumer = node.machine
                for partition, offset in list(consumer.owned.items()) if consumer.fetching else ():
                    end = max(offset, 0) + self.random.randrange(3)
                    consumer.consumed(partition, end)
                    self.read[partition] = max(self.read[partition], end)

    def _note_commits(self) -> None:
        for entry in self.cluster.history[self._seen :]:
            if isinstance(entry.what, FetchersStarted):
                for partition, offset in entry.what.partitions.items():
                    self.began.append((partition, offset, self.committed[partition], self.read[partition]))
        self._seen = len(self.cluster.history)
        for node in self.cluster.nodes.values():
            for partition, offset in node.machine.offsets.committed.items():
                self.committed[partition] = max(self.committed[partition], offset)

    def bounce(self, settings: dict[str, Any], *, kill: bool) -> None:
        """Restart one consumer after the other, killed or shut down, with new settings."""
        for name in ("a", "b"):
            self.stop(name, kill=kill)
            self.run(self.random.randrange(0, 3_000, 50))
            self.start(name, settings)
            self.run(12_000)

    def problems(self) -> list[str]:
        """Where a partition began before what had been committed, or after what had been read."""
        return [
            f"{partition} begins at {offset}, {committed} is committed, {read} was read"
            for partition, offset, committed, read in self.began
            if offset < committed or offset > read
        ]


def migrated(seed: int, steps: list[dict[str, Any]], *, kill: bool, version: str | None = None) -> Group:
    group = Group(seed, version=version)
    for name in ("a", "b"):
        group.start(name, steps[0])
    group.run(8_000)
    for settings in steps[1:]:
        group.bounce(settings, kill=kill)
    return group


@pytest.mark.parametrize("kill", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_no_step_of_the_migration_loses_an_offset_or_moves_it_back(seed: int, kill: bool) -> None:
    """ZooKeeper, both, Kafka; and back by the same steps with offsets.storage=zookeeper."""
    steps = [ZOOKEEPER, KAFKA_AND_ZOOKEEPER, KAFKA, ZOOKEEPER_AND_KAFKA, ZOOKEEPER]
    group = migrated(seed, steps, kill=kill)
    assert group.problems() == []
    assert len(group.began) > 4 * len(steps)
    assert min(group.committed.values()) > 50


def test_a_migration_without_dual_commits_moves_offsets_back() -> None:
    """The invariant finds what the steps are for."""
    assert migrated(1, [ZOOKEEPER, KAFKA], kill=False).problems() != []


@pytest.mark.parametrize("version", ["0.8.2.2", "1.1.1"])
def test_the_releases_roll_back_by_dual_commits_to_kafka_alone(version: str) -> None:
    """With offsets.storage=zookeeper they commit to ZooKeeper alone and read it alone, dual commit or not."""
    by_the_page = [KAFKA, ZOOKEEPER_AND_KAFKA, ZOOKEEPER]
    by_the_code = [KAFKA, KAFKA_AND_ZOOKEEPER, ZOOKEEPER]
    assert migrated(1, by_the_page, kill=False, version=version).problems() != []
    assert migrated(1, by_the_code, kill=False, version=version).problems() == []


def test_the_offset_manager_is_asked_until_it_answers() -> None:
    group = Group(1)
    group.manager.silent = True
    group.start("a", KAFKA)
    group.run(25_000)
    assert group.began == []
    assert group.manager.requests >= 2
    group.manager.silent = False
    group.run(15_000)
    assert {partition for partition, *_ in group.began} == set(PARTITIONS)


@pytest.mark.parametrize("is_missing", [False, True])
@pytest.mark.parametrize("refused", range(4))
def test_offsets_are_fetched_again_while_one_partition_of_them_is_refused(
    refused: int, is_missing: bool
) -> None:
    group, manager = Group(1), OffsetManager()
    is_loading = True

    def answer(request: Message, now: int) -> Any:
        reply = manager(request, now)
        if isinstance(reply, OffsetFetchResponse) and is_loading and is_missing:
            del reply.topics[0].partitions[refused]
        elif isinstance(reply, OffsetFetchResponse) and is_loading:
            reply.topics[0].partitions[refused].error_code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return reply

    group.cluster.offset_manager = answer
    group.start("a", KAFKA)
    group.run(10_000)
    assert group.began == []
    is_loading = False
    group.run(10_000)
    assert {partition for partition, *_ in group.began} == set(PARTITIONS)


def test_a_commit_is_tried_again_while_one_of_its_offsets_is_refused() -> None:
    """As often as offsets.commit.max.retries says, after the backoff each time."""
    group, manager = Group(1), OffsetManager()
    times: list[int] = []

    def answer(request: Message, now: int) -> Any:
        reply = manager(request, now)
        if isinstance(reply, OffsetCommitResponse):
            times.append(now)
            reply.topics[0].partitions[1].error_code = ErrorCode.NOT_COORDINATOR
        return reply

    group.cluster.offset_manager = answer
    group.start("a", KAFKA | {"auto_commit_enable": False, "offsets_commit_max_retries": 3})
    group.run(1_500)
    consumer: ZooKeeperConsumer = group.cluster.nodes["a1"].machine
    consumer.commit_offsets({PARTITIONS[0]: 7, PARTITIONS[1]: 8}, retry_on_failure=True)
    group.cluster.drain("a1")
    group.cluster.run(20_000)
    gaps = [after - before for before, after in pairwise(times)]
    assert len(gaps) == 3
    assert min(gaps) >= 1_000
    assert consumer.offsets.committed == {PARTITIONS[0]: 7}


def test_what_zookeeper_has_counts_only_where_offsets_are_in_it() -> None:
    """After the migration its nodes are left as they were, perhaps with greater offsets."""
    for settings, begin in ((KAFKA, 3), (KAFKA_AND_ZOOKEEPER, 9), (ZOOKEEPER, 9)):
        group = Group(1)
        group.start("a", KAFKA | {"auto_commit_enable": False})
        group.run(1_500)
        consumer: ZooKeeperConsumer = group.cluster.nodes["a1"].machine
        consumer.commit_offsets({PARTITIONS[0]: 3})
        group.cluster.drain("a1")
        group.cluster.run(500)
        tree, admin = group.cluster.tree, group.cluster.admin
        for path in ("", "/t", "/t/0"):
            tree.apply(admin, CreateNode(f"/consumers/g/offsets{path}", b"9"), group.cluster.now)
        group.cluster.crash("a1")
        group.start("b", settings | {"auto_commit_enable": False})
        group.cluster.run(20_000)
        other: ZooKeeperConsumer = group.cluster.nodes["b2"].machine
        assert other.owned[PARTITIONS[0]] == begin


def test_an_application_commits_offsets_of_partitions_that_it_does_not_own() -> None:
    group = Group(2)
    group.start("a", {"auto_commit_enable": False})
    group.start("b", {"auto_commit_enable": False})
    group.cluster.run(20_000)
    consumer: ZooKeeperConsumer = group.cluster.nodes["a1"].machine
    offsets = dict.fromkeys(PARTITIONS, 5)
    assert consumer.owned.keys() < offsets.keys()
    consumer.commit_offsets(offsets)
    group.cluster.drain("a1")
    group.cluster.run(100)
    assert consumer.offsets.committed == offsets
    assert {group.cluster.read(f"/consumers/g/offsets/t/{one.partition}") for one in PARTITIONS} == {b"5"}


def test_each_commit_has_the_whole_timeout_of_its_own() -> None:
    """Two wait for their replicas at the same time."""
    shard = OffsetManager(700).shard
    for now in (1_000, 1_300):
        partitions = [OffsetCommitRequestPartition(partition_index=0, committed_offset=1)]
        topics = [OffsetCommitRequestTopic(name="t", partitions=partitions)]
        request = OffsetCommitRequest(group_id=f"g{now}", topics=topics)
        shard.handle(request, version=2, now=now, context=CONTEXT)
    assert [type(effect) for effect in shard.effects()] == [Append, Append]
    for due in (1_700, 2_000):
        shard.advance(due - 1)
        assert list(shard.effects()) == []
        shard.advance(due)
        (answer,) = (effect for effect in shard.effects() if isinstance(effect, Answer))
        assert isinstance(answer.response, OffsetCommitResponse)
        assert answer.response.topics[0].partitions[0].error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_a_commit_that_is_refused_is_tried_again() -> None:
    group = Group(1)
    group.start("a", KAFKA)
    group.run(1_500)
    shard = group.manager.shard
    shard.unload(now=shard.now)
    group.run(5_000)
    stuck = dict(group.committed)
    assert min(stuck.values()) > 0
    shard.load([], now=shard.now)
    shard.set_topics(TopicsImage([TopicImage(UUID(int=1), "t", len(PARTITIONS))]), now=shard.now)
    group.run(10_000)
    assert all(group.committed[partition] > stuck[partition] for partition in PARTITIONS)


@pytest.mark.parametrize("timeout_ms", [700, 2_000])
def test_a_commit_fails_when_its_replication_takes_longer_than_the_timeout(timeout_ms: int) -> None:
    """offsets.commit.timeout.ms; the consumer backs off, and commits again."""
    group = Group(1, manager=OffsetManager(timeout_ms))
    group.start("a", KAFKA | {"auto_commit_enable": False})
    group.run(1_500)
    group.manager.replicates = False
    consumer: ZooKeeperConsumer = group.cluster.nodes["a1"].machine
    consumer.commit_offsets({PARTITIONS[1]: 7}, retry_on_failure=True)
    group.cluster.drain("a1")
    before, backoff_ms = group.manager.requests, consumer.offsets.settings.offsets_channel_backoff_ms
    group.cluster.run(timeout_ms + backoff_ms - 100)
    assert (group.manager.requests - before, consumer.offsets.committed) == (1, {})
    group.manager.replicates = True
    group.cluster.run(200)
    assert group.manager.requests - before == 2
    assert consumer.offsets.committed == {PARTITIONS[1]: 7}


@pytest.mark.parametrize("retry", [False, True])
def test_an_application_commits_offsets_of_its_own(retry: bool) -> None:
    """One commit that the offset manager refuses is tried again if the application wants that."""
    group = Group(1)
    group.start("a", KAFKA | {"auto_commit_enable": False})
    group.run(1_500)
    consumer: ZooKeeperConsumer = group.cluster.nodes["a1"].machine
    shard = group.manager.shard
    shard.unload(now=shard.now)
    consumer.commit_offsets({PARTITIONS[1]: 7}, retry_on_failure=retry)
    group.cluster.drain("a1")
    group.cluster.run(500)
    shard.load([], now=shard.now)
    shard.set_topics(TopicsImage([TopicImage(UUID(int=1), "t", len(PARTITIONS))]), now=shard.now)
    group.cluster.run(5_000)
    assert consumer.offsets.committed == ({PARTITIONS[1]: 7} if retry else {})
    consumer.commit_offsets({PARTITIONS[2]: 3})
    group.cluster.drain("a1")
    group.cluster.run(500)
    assert consumer.offsets.committed[PARTITIONS[2]] == 3
    group.cluster.crash("a1")
    group.start("b", KAFKA | {"auto_commit_enable": False})
    group.cluster.run(20_000)
    other: ZooKeeperConsumer = group.cluster.nodes["b2"].machine
    assert other.owned == {PARTITIONS[1]: 7 if retry else -1, PARTITIONS[2]: 3} | dict.fromkeys(
        (PARTITIONS[0], PARTITIONS[3]), -1
    )


def test_every_consumer_of_a_group_asks_the_groups_offset_manager_alone() -> None:
    """Commits in the interval, in a rebalance and at the end, and all fetches."""
    cluster, manager = world(), OffsetManager()
    asked: list[tuple[str, str, int]] = []

    def answer(request: Any, now: int) -> Any:
        asked.append((type(request).__name__, request.group_id, len(topic_parts(request))))
        return manager(request, now)

    def topic_parts(request: Any) -> list[Any]:
        (topic,) = request.topics
        return list(getattr(topic, "partition_indexes", None) or topic.partitions)

    cluster.offset_manager = answer
    for name, of in (("a", "g"), ("b", "g"), ("c", "h")):
        settings: dict[str, Any] = KAFKA | {"auto_commit_interval_ms": 1_000, "client_id": name}
        join(cluster, name, group=of, **settings)
        cluster.run(900)
    fetches = Counter(one for one in asked if one[0] == "OffsetFetchRequest")
    fetch, commit = "OffsetFetchRequest", "OffsetCommitRequest"
    assert fetches == {(fetch, "g", 4): 1, (fetch, "g", 2): 2, (fetch, "h", 4): 1}
    asked.clear()
    for name, offset in (("a", 5), ("b", 6), ("c", 7)):
        machine: ZooKeeperConsumer = cluster.nodes[name].machine
        for partition in machine.owned:
            machine.consumed(partition, offset)
    cluster.run(1_000)
    commits = [(commit, "g", 2), (commit, "g", 2), (commit, "h", 4)]
    assert sorted(asked) == commits
    asked.clear()
    cluster.nodes["b"].machine.shut_down()  # which commits, as does the other one, which then fetches
    cluster.drain("b")
    cluster.run(100)
    assert [one for one in asked if one[1] == "g"] == [*commits[:2], (fetch, "g", 4)]
    assert not [path for path in cluster.tree.paths() if "/offsets" in path]
    assert cluster.nodes["a"].machine.owned == {
        one: 5 if number < 2 else 6 for number, one in enumerate(PARTITIONS)
    }
    assert set(cluster.nodes["c"].machine.owned.values()) == {7}


def test_offsets_of_several_topics_are_committed_and_fetched_at_once() -> None:
    cluster, shard = world(), OffsetManager()
    cluster.topic("u-v", {0: [1], 1: [1]})
    images = [TopicImage(UUID(int=1), "t", 4), TopicImage(UUID(int=2), "u-v", 2)]
    shard.shard.set_topics(TopicsImage(images), now=shard.shard.now)
    cluster.offset_manager = shard
    consumed = {}
    for name in ("a", "b"):
        settings: dict[str, Any] = KAFKA | {"auto_commit_interval_ms": 1_000}
        consumer = join(cluster, name, topic_count='{"t":1,"u-v":1}', **settings)
        cluster.run(900)
        assert len(consumer.owned) == (6 if name == "a" else 3)
        if name == "a":
            consumed = {partition: 10 + number for number, partition in enumerate(sorted(consumer.owned))}
            for partition, offset in consumed.items():
                consumer.consumed(partition, offset)
            cluster.run(1_100)
    owned = [cluster.nodes[name].machine.owned for name in ("a", "b")]
    assert owned[0] | owned[1] == consumed


@pytest.mark.parametrize("settings", [ZOOKEEPER, KAFKA, KAFKA_AND_ZOOKEEPER, ZOOKEEPER_AND_KAFKA])
def test_offsets_go_to_each_place_that_the_settings_name(settings: dict[str, Any]) -> None:
    """And come from the one that has the greater one, of those that are named."""
    of_kafka = settings["offsets_storage"] == "kafka" or settings["dual_commit_enabled"]
    of_zookeeper = settings["offsets_storage"] == "zookeeper" or settings["dual_commit_enabled"]
    group = Group(1)
    group.start("a", settings | {"auto_commit_enable": False})
    group.cluster.run(1_500)
    consumer: ZooKeeperConsumer = group.cluster.nodes["a1"].machine
    before = group.manager.requests
    assert bool(before) is of_kafka
    consumer.commit_offsets({PARTITIONS[1]: 7})
    group.cluster.drain("a1")
    group.cluster.run(100)
    assert group.manager.requests - before == int(of_kafka)
    assert group.cluster.read("/consumers/g/offsets/t/1") == (b"7" if of_zookeeper else None)
    assert consumer.offsets.committed == {PARTITIONS[1]: 7}
