"""Moves: clients find leaders, coordinators and nodes where they are now, and logs as they are now."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from coordwire.broker import Broker
from coordwire.broker.harness import Kafka
from coordwire.broker.log.partition_log import PartitionLog
from coordwire.broker.log.validation import AppendRules, one_batch
from coordwire.enums import ErrorCode
from coordwire.messages import (
    FetchRequest,
    FindCoordinatorRequest,
    ListOffsetsRequest,
    MetadataRequest,
    OffsetForLeaderEpochRequest,
)
from coordwire.messages.fetch import FetchPartition, FetchTopic
from coordwire.messages.list_offsets import ListOffsetsPartition, ListOffsetsTopic
from coordwire.messages.offset_for_leader_epoch import OffsetForLeaderPartition, OffsetForLeaderTopic
from tests.broker.blocking_peer import BlockingPeer
from tests.broker.core import batch
from tests.broker.peer import Peer, run

NOW = 1_700_000_000_000


@pytest.fixture(autouse=True)
def _nothing_is_logged(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    yield
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


def fetched(offset: int = 0, wait: int = 0) -> FetchRequest:
    part = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1000)
    topic = FetchTopic(topic="orders", partitions=[part])
    return FetchRequest(max_wait_ms=wait, min_bytes=1, topics=[topic])


async def shown(peer: Peer) -> Any:
    """The nodes in Metadata, and the partitions of orders as (error, leader, epoch, in sync, offline)."""
    answer = await peer.ask(MetadataRequest(topics=None), 12)
    parts = next(topic.partitions for topic in answer.topics if topic.name == "orders")
    return [node.node_id for node in answer.brokers], [
        (part.error_code, part.leader_id, part.leader_epoch, part.isr_nodes, part.offline_replicas)
        for part in parts
    ]


def test_a_leader_moves_and_what_waits_there_is_answered() -> None:
    async def main() -> None:
        async with Broker(topics=["orders"], nodes=2) as broker, Peer(broker) as peer, Peer(broker, 2) as new:
            peer.send(fetched(wait=10_000), 11)
            await asyncio.sleep(0.01)
            assert broker.moves.leader("orders", 0, to=2) == 1
            moved = int(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            assert (await peer.receive()).responses[0].partitions[0].error_code == moved
            assert (await new.ask(fetched(), 11)).responses[0].partitions[0].error_code == 0
            assert await shown(peer) == ([1, 2], [(0, 2, 1, [2], [])])
            assert broker.moves.leader_of("orders", 0) == 2
            with pytest.raises(LookupError, match=r"expected a node that is up \(1, 2\), got 3"):
                broker.moves.leader("orders", 0, to=3)
            with pytest.raises(LookupError, match="expected a partition of the cluster, got orders-1"):
                broker.moves.leader("orders", 1, to=1)

    run(main())


def test_a_coordinator_moves_with_its_groups() -> None:
    with Kafka(topics=["orders"], nodes=3) as kafka, BlockingPeer(kafka.bootstrap) as peer:

        def coordinator(kind: int) -> int:
            return peer.ask(FindCoordinatorRequest(key="g", key_type=kind), 1).node_id

        for kind, name in ((0, "group"), (1, "transactional_id")):
            named: dict[str, Any] = {name: "g"}
            for node in (2, 1, 1):
                kafka.moves.coordinator(**named, to=node)
                assert coordinator(kind) == kafka.moves.coordinator_of(**named) == node
        member = peer.join("g", "orders", 1)
        assert peer.commit(member, "orders", 5) == 0
        kafka.moves.coordinator(group="g", to=2)
        assert peer.beat(member) == ErrorCode.NOT_COORDINATOR
        # What the topics are is another matter: kafkajs looks for the coordinator at this error only.
        assert peer.commit(member, "orders", 6) == ErrorCode.NOT_COORDINATOR
        assert peer.commit(member, "missing", 6) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        kafka.create_topic("later")
        assert peer.commit(member, "later", 6) == ErrorCode.NOT_COORDINATOR
        addresses = kafka.bootstrap.split(",")
        with BlockingPeer(addresses[1]) as there:
            assert there.beat(member) == 0
        assert kafka.committed("g") == {("orders", 0): 5}
        assert kafka.group("g").state.is_stable
        with pytest.raises(TypeError, match="expected a group or a transactional id"):
            kafka.moves.coordinator(to=1)
        with pytest.raises(TypeError, match="expected a group or a transactional id"):
            kafka.moves.coordinator_of(group="g", transactional_id="g")


def test_a_node_goes_down_and_comes_back() -> None:
    async def main() -> None:
        topics = {"orders": 3}
        async with Broker(topics=topics, nodes=3) as broker, Peer(broker) as peer, Peer(broker, 2) as gone:
            address = broker.addresses[1]
            begin = fetched()
            begin.session_epoch = 0
            await gone.ask(begin, 11)
            assert len(broker.cluster.fetch_sessions[2]) == 1
            await broker.moves.stop_node(2)
            assert await gone.is_closed()
            assert len(broker.cluster.fetch_sessions[2]) == 0
            with pytest.raises(ConnectionRefusedError):
                await asyncio.open_connection(*address)
            unavailable = int(ErrorCode.LEADER_NOT_AVAILABLE)
            nodes, parts = await shown(peer)
            assert nodes == [1, 3]
            assert sorted(parts) == [(0, 1, 0, [1], []), (0, 3, 0, [3], []), (unavailable, -1, 1, [2], [2])]
            with pytest.raises(LookupError, match="expected a node that is up, got 2"):
                await broker.moves.stop_node(2)
            await broker.moves.start_node(2)
            assert broker.addresses[1] == address
            async with Peer(broker, 2) as back:
                nodes, parts = await shown(back)
            assert nodes == [1, 2, 3]
            assert sorted(parts) == [(0, 1, 0, [1], []), (0, 2, 2, [2], []), (0, 3, 0, [3], [])]
            with pytest.raises(LookupError, match="expected a node that is down, got 2"):
                await broker.moves.start_node(2)

    run(main())


def test_replicas_and_coordinators_take_over() -> None:
    with Kafka(topics=["orders"], nodes=3, default_replication_factor=3) as kafka:
        kafka.produce("orders", "one")
        with BlockingPeer(kafka.bootstrap.split(",")[0]) as peer:
            kafka.moves.coordinator(group="g", to=1)
            member = peer.join("g", "orders", 1)
            assert peer.commit(member, "orders", 1) == 0
        kafka.moves.stop_node(1)
        assert kafka.moves.leader_of("orders", 0) != 1
        assert kafka.committed("g") == {("orders", 0): 1}
        assert [record.value for record in kafka.records("orders")] == [b"one"]
        kafka.moves.start_node(1)


def test_the_only_node_goes_down() -> None:
    """Its records, groups and offsets are there when it is back."""
    with Kafka(topics=["orders"]) as kafka:
        kafka.produce("orders", "one")
        with BlockingPeer(kafka.bootstrap) as peer:
            member = peer.join("g", "orders", 1)
            peer.commit(member, "orders", 1)
            bootstrap = kafka.bootstrap
            kafka.moves.stop_node(1)
            with pytest.raises(ConnectionError):
                peer.beat(member)
        kafka.moves.start_node(1)
        assert kafka.bootstrap == bootstrap
        with BlockingPeer(bootstrap) as peer:
            assert peer.beat(member) == 0
        assert kafka.committed("g") == {("orders", 0): 1}


def test_a_log_is_truncated() -> None:
    with Kafka(topics=["orders"]) as kafka, BlockingPeer(kafka.bootstrap) as peer:
        for value in ("one", "two", "three"):
            kafka.produce("orders", value, value)
        assert kafka.moves.truncate("orders", 0, 3) == 2
        assert [record.offset for record in kafka.records("orders")] == [0, 1]
        kafka.produce("orders", "new")
        assert [record.value for record in kafka.records("orders")] == [b"one", b"one", b"new"]
        latest = ListOffsetsTopic(
            name="orders", partitions=[ListOffsetsPartition(partition_index=0, timestamp=-1)]
        )
        partition = peer.ask(ListOffsetsRequest(replica_id=-1, topics=[latest]), 4).topics[0].partitions[0]
        assert (partition.offset, partition.leader_epoch) == (3, 1)
        asked = OffsetForLeaderPartition(partition=0, leader_epoch=0)
        topic = OffsetForLeaderTopic(topic="orders", partitions=[asked])
        ended = peer.ask(OffsetForLeaderEpochRequest(topics=[topic]), 4).topics[0].partitions[0]
        assert (ended.leader_epoch, ended.end_offset) == (0, 2)
        assert peer.ask(fetched(5), 11).responses[0].partitions[0].error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        assert kafka.moves.truncate("orders", 0, 100) == 3


def test_a_truncated_log_knows_the_producers_that_are_left() -> None:
    log, rules = PartitionLog(), AppendRules()
    for number in range(4):
        data = batch(b"value", producer_id=1 + number // 2, producer_epoch=0, base_sequence=number % 2)
        log.append(one_batch(data, 9), rules, NOW)
    log.truncate(1)
    assert log.end_offset == 1
    assert not log.producers.knows(2)
    for number in (0, 1):
        data = batch(b"value", producer_id=1, producer_epoch=0, base_sequence=number)
        assert log.append(one_batch(data, 9), rules, NOW).duplicate == (number == 0)
    assert log.end_offset == 2
    log.truncate(0)
    assert (log.end_offset, log.size) == (0, 0)


def test_a_log_on_disk_is_truncated(tmp_path: Path) -> None:
    """A restart does not bring the records back, and goes on in the epoch that the move began."""
    with Kafka(topics=["orders"], data=tmp_path) as kafka:
        for value in ("one", "two", "three"):
            kafka.produce("orders", value)
        assert kafka.moves.truncate("orders", 0, 1) == 1
        assert [record.value for record in kafka.records("orders")] == [b"one"]
        kafka.produce("orders", "other")
    with Kafka(data=tmp_path) as kafka:
        assert [(record.offset, record.value) for record in kafka.records("orders")] == [
            (0, b"one"),
            (1, b"other"),
        ]
        log = kafka.broker.call(lambda broker: broker.cluster.topics["orders"].partitions[0].log)
        assert log.epoch == 1
        assert (log.epoch_end(0), log.epoch_end(1)) == ((0, 1), (1, 2))
