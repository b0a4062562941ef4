"""A cluster of three nodes, asked directly and through a tap: leaders and coordinators that move, and a node
that ends.

Strategy: one story for our broker and for three brokers of Apache Kafka 4.4: requests that belong to several
nodes are split and merged, and follow the moves. A client sends what changes something again only where no
broker can have done it; so the story waits for the new leaders before it writes after an end. Rules: an
answer that came through the tap names no broker's own address; what was written is there after the node has
ended.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Protocol

import pytest

from coordwire.broker import Broker, BrokerThread
from coordwire.broker.harness.traffic import Traffic
from coordwire.client import ClientSettings, SyncClient, addresses, connect_sync
from coordwire.codec.walk import entity_values
from coordwire.messages import (
    AlterPartitionReassignmentsRequest,
    CreateTopicsRequest,
    DescribeGroupsRequest,
    ElectLeadersRequest,
    FindCoordinatorRequest,
    ListOffsetsRequest,
    MetadataRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
    ProduceRequest,
)
from coordwire.messages.alter_partition_reassignments import ReassignablePartition, ReassignableTopic
from coordwire.messages.create_topics import CreatableTopic
from coordwire.messages.elect_leaders import TopicPartitions
from coordwire.messages.list_offsets import ListOffsetsPartition, ListOffsetsTopic
from coordwire.messages.metadata import MetadataRequestTopic
from coordwire.messages.offset_commit import OffsetCommitRequestPartition, OffsetCommitRequestTopic
from coordwire.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchRequestTopics
from coordwire.messages.produce import PartitionProduceData, TopicProduceData
from coordwire.records import Record, encode_batch
from coordwire.tap import Tap
from tests.interop.broker import Broker as ApacheBroker
from tests.interop.broker import Java
from tests.interop.cluster import NODES, kafka_cluster
from tests.interop.conftest import give_up
from tests.interop.maven import CURRENT, Unavailable

TOPIC, PARTITIONS = "orders", range(6)
GROUPS = [f"group-{number}" for number in range(12)]
DEADLINE = 60
"""Seconds for a move to be in all nodes' metadata."""


class Cluster(Protocol):
    """Three nodes."""

    @property
    def bootstrap(self) -> str: ...

    def lead(self, partition: int, node: int) -> None:
        """Let a node lead a partition of the topic."""

    def end(self, node: int) -> None:
        """End a node, without a word to others where it can be."""


class OwnCluster:
    """Nodes of our broker, which replicates nothing: another node takes over the logs of one that ends."""

    def __init__(self, broker: BrokerThread) -> None:
        self._broker = broker
        self.bootstrap = broker.bootstrap

    def lead(self, partition: int, node: int) -> None:
        self._broker.moves.leader(TOPIC, partition, to=node)

    def end(self, node: int) -> None:
        self._broker.moves.stop_node(node)


class ApacheCluster:
    """Brokers of Apache Kafka, by their ids."""

    def __init__(self, brokers: dict[int, ApacheBroker]) -> None:
        self._brokers = brokers
        self.bootstrap = ",".join(broker.address for broker in brokers.values())

    def lead(self, partition: int, node: int) -> None:
        replicas = [node, *(other for other in NODES if other != node)]
        row = ReassignablePartition(partition_index=partition, replicas=replicas)
        topic = ReassignableTopic(name=TOPIC, partitions=[row])
        elected = TopicPartitions(topic=TOPIC, partitions=[partition])
        with connect_sync(self.bootstrap) as client:
            client.request(AlterPartitionReassignmentsRequest(topics=[topic]))
            client.request(ElectLeadersRequest(election_type=0, topic_partitions=[elected]))

    def end(self, node: int) -> None:
        self._brokers[node].kill()


BOTH = pytest.mark.parametrize(
    "cluster", ["ours", pytest.param("apache", marks=[pytest.mark.maven, pytest.mark.long])], indirect=True
)


@pytest.fixture
def cluster(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Cluster]:
    if request.param == "ours":
        with Broker.in_thread(nodes=3) as broker:
            yield OwnCluster(broker)
        return
    try:
        with kafka_cluster(Java(CURRENT, "recording"), tmp_path) as brokers:
            yield ApacheCluster(brokers)
    except Unavailable as error:
        give_up(error)


def settings(bootstrap: str) -> ClientSettings:
    return ClientSettings(bootstrap=addresses(bootstrap), retries=100, connection_timeout_ms=20_000)


def produce(client: SyncClient, partitions: Iterable[int] = PARTITIONS) -> None:
    """A record to each of these partitions, in one request."""
    data = encode_batch([Record(value=b"v")], base_offset=0)
    rows = [PartitionProduceData(index=number, records=data) for number in partitions]
    topic = TopicProduceData(name=TOPIC, partition_data=rows)
    answer = client.request(ProduceRequest(acks=-1, timeout_ms=20_000, topic_data=[topic]))
    (produced,) = answer.responses
    errors = {row.index: row.error_code for row in produced.partition_responses}
    assert errors == dict.fromkeys(partitions, 0)


def commit(client: SyncClient, offset: int) -> None:
    for group in GROUPS:
        row = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
        topic = OffsetCommitRequestTopic(name=TOPIC, partitions=[row])
        request = OffsetCommitRequest(group_id=group, generation_id_or_member_epoch=-1, topics=[topic])
        (committed,) = client.request(request).topics
        assert committed.partitions[0].error_code == 0


def committed_offsets(client: SyncClient) -> dict[str, int]:
    """Those of all groups, in one request."""
    groups = [
        OffsetFetchRequestGroup(
            group_id=group, topics=[OffsetFetchRequestTopics(name=TOPIC, partition_indexes=[0])]
        )
        for group in GROUPS
    ]
    answer = client.request(OffsetFetchRequest(groups=groups, require_stable=True))
    assert len(answer.groups) == len(GROUPS)
    return {group.group_id: group.topics[0].partitions[0].committed_offset for group in answer.groups}


def ends(client: SyncClient) -> dict[int, int]:
    rows = [ListOffsetsPartition(partition_index=number, timestamp=-1) for number in PARTITIONS]
    request = ListOffsetsRequest(topics=[ListOffsetsTopic(name=TOPIC, partitions=rows)])
    (topic,) = client.request(request).topics
    return {row.partition_index: row.offset for row in topic.partitions}


def leaders(client: SyncClient) -> dict[int, int]:
    (topic,) = client.request(MetadataRequest(topics=[MetadataRequestTopic(name=TOPIC)])).topics
    return {row.partition_index: row.leader_id for row in topic.partitions}


def coordinator(client: SyncClient, group: str) -> int:
    (place,) = client.request(FindCoordinatorRequest(key_type=0, coordinator_keys=[group])).coordinators
    return place.node_id


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def story(cluster: Cluster, bootstrap: str) -> None:
    with connect_sync(settings(bootstrap)) as client:
        topic = CreatableTopic(name=TOPIC, num_partitions=len(PARTITIONS), replication_factor=3)
        client.request(CreateTopicsRequest(topics=[topic]))
        assert ends(client) == dict.fromkeys(PARTITIONS, 0)  # asked again until there are leaders
        produce(client)
        before = leaders(client)
        assert set(before.values()) == set(NODES)
        commit(client, 1)
        described = client.request(DescribeGroupsRequest(groups=GROUPS)).groups
        assert {group.group_id: group.error_code for group in described} == dict.fromkeys(GROUPS, 0)
        assert {coordinator(client, group) for group in GROUPS} == set(NODES)
        assert committed_offsets(client) == dict.fromkeys(GROUPS, 1)

        moved = {number: before[number] % 3 + 1 for number in (0, 1)}
        for number, node in moved.items():
            cluster.lead(number, node)
        for number in moved:  # as far as this client knows, the former nodes lead
            produce(client, [number])
        produce(client, [number for number in PARTITIONS if number not in moved])
        wait_until(lambda: leaders(client) | moved == leaders(client))
        assert ends(client) == dict.fromkeys(PARTITIONS, 2)

        lost = coordinator(client, GROUPS[0])
        cluster.end(lost)
        assert ends(client) == dict.fromkeys(PARTITIONS, 2)  # asked again until others lead
        assert committed_offsets(client) == dict.fromkeys(GROUPS, 1)
        wait_until(lambda: lost not in leaders(client).values())
        wait_until(lambda: lost not in {coordinator(client, group) for group in GROUPS})
        produce(client)
        commit(client, 2)
        assert committed_offsets(client) == dict.fromkeys(GROUPS, 2)
        assert ends(client) == dict.fromkeys(PARTITIONS, 3)


@BOTH
def test_a_client_follows(cluster: Cluster) -> None:
    story(cluster, cluster.bootstrap)


@BOTH
def test_a_client_follows_through_a_tap(cluster: Cluster) -> None:
    traffic = Traffic()
    with Tap.in_thread(cluster.bootstrap.split(",")[0], traffic=traffic) as tap:
        story(cluster, tap.bootstrap)
        local = dict(tap.call(lambda running: running.addresses.items()))
        counts = tap.counts
    assert len(local) == len(NODES)
    answers: list[Any] = [
        entry.message for entry in traffic.entries() if entry.direction == "response" and entry.message
    ]
    named = {
        place
        for answer in answers
        for place in zip(
            entity_values(answer, "broker_host"), entity_values(answer, "broker_port"), strict=True
        )
    }
    assert named - {("", -1), ("", 0)} == set(local.values())
    assert not named & set(local)
    assert set(counts.changed) <= {"addresses", "versions"}
    assert (counts.unread, counts.unmatched) == (0, 0)
