"""Replicas in sync, leaders, high watermarks, log directories that fail, and reads from followers."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from coordwire.broker.harness import Kafka
from coordwire.broker.injection.cluster_moves import ClusterMoves
from coordwire.broker.injection.waits import Waits
from coordwire.enums import ErrorCode
from coordwire.messages import (
    AlterReplicaLogDirsRequest,
    DescribeLogDirsRequest,
    ElectLeadersRequest,
    FetchRequest,
    FetchResponse,
    FindCoordinatorRequest,
    IncrementalAlterConfigsRequest,
    ListOffsetsRequest,
    MetadataRequest,
    OffsetCommitRequest,
    ProduceRequest,
)
from coordwire.messages.alter_replica_log_dirs import AlterReplicaLogDir, AlterReplicaLogDirTopic
from coordwire.messages.elect_leaders import TopicPartitions
from coordwire.messages.fetch import FetchPartition, FetchTopic, PartitionData
from coordwire.messages.incremental_alter_configs import AlterableConfig, AlterConfigsResource
from coordwire.messages.list_offsets import ListOffsetsPartition, ListOffsetsTopic
from coordwire.messages.metadata import MetadataResponsePartition
from coordwire.messages.offset_commit import OffsetCommitRequestPartition, OffsetCommitRequestTopic
from coordwire.messages.produce import PartitionProduceData, TopicProduceData
from tests.broker.core import Core, batch, records_of


def cluster(nodes: int = 3, factor: int = 3, **config: Any) -> Core:
    """A topic `orders` of one partition, led by node 1."""
    core = Core(nodes=nodes, **config)
    core.cluster.create_topic("orders", 1, replication_factor=factor)
    return core


def down(core: Core, *nodes: int) -> None:
    for node in nodes:
        del core.cluster.nodes[node]
        core.cluster.replication.nodes_changed()


def up(core: Core, *nodes: int) -> None:
    from coordwire.broker.cluster.facts import ClusterNode

    for node in nodes:
        core.cluster.nodes[node] = ClusterNode(node)
        core.cluster.replication.nodes_changed()


def set_min_in_sync(core: Core, number: int) -> None:
    config = AlterableConfig(name="min.insync.replicas", config_operation=0, value=str(number))
    resource = AlterConfigsResource(resource_type=2, resource_name="orders", configs=[config])
    answer = core.ask(IncrementalAlterConfigsRequest(resources=[resource]), 1)
    assert answer.responses[0].error_code == 0


def produced(core: Core, *, acks: int = -1, node: int = 1) -> ErrorCode:
    part = PartitionProduceData(index=0, records=batch(b"v"))
    request = ProduceRequest(acks=acks, topic_data=[TopicProduceData(name="orders", partition_data=[part])])
    return ErrorCode(core.ask(request, 9, node).responses[0].partition_responses[0].error_code)


def fetched(core: Core, *, node: int = 1, version: int = 12, **fields: Any) -> PartitionData:
    """What a Fetch of the partition gets at once."""
    rack = fields.pop("rack_id", "")
    part = FetchPartition(partition=0, partition_max_bytes=1 << 20, **fields)
    topics = [FetchTopic(topic="orders", partitions=[part])]
    request = FetchRequest(max_bytes=1 << 20, session_epoch=-1, rack_id=rack, topics=topics)
    partition: PartitionData = core.ask(request, version, node).responses[0].partitions[0]
    return partition


def offsets(data: PartitionData) -> list[int]:
    return [offset for offset, _ in records_of(data.records or b"")]


def listed(core: Core, node: int, timestamp: int = -1) -> tuple[int, int]:
    part = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    request = ListOffsetsRequest(topics=[ListOffsetsTopic(name="orders", partitions=[part])])
    partition = core.ask(request, 7, node).topics[0].partitions[0]
    return partition.error_code, partition.offset


def shown(core: Core, node: int = 1) -> MetadataResponsePartition:
    (topic,) = [
        topic for topic in core.ask(MetadataRequest(topics=None), 12, node).topics if topic.name == "orders"
    ]
    return topic.partitions[0]


# --- replicas in sync ---


@pytest.mark.parametrize("factor", [1, 2])
def test_no_more_replicas_are_asked_for_than_there_are(factor: int) -> None:
    core = cluster(factor=factor)
    set_min_in_sync(core, 3)
    assert produced(core) == 0
    assert offsets(fetched(core)) == [0]


def test_too_few_replicas_in_sync() -> None:
    core = cluster()
    set_min_in_sync(core, 2)
    assert produced(core) == 0
    down(core, 3)
    assert produced(core) == 0
    down(core, 2)
    assert shown(core).isr_nodes == [1]
    assert produced(core) == ErrorCode.NOT_ENOUGH_REPLICAS
    up(core, 2)
    assert shown(core).isr_nodes == [1, 2]
    assert produced(core) == 0
    assert offsets(fetched(core)) == [0, 1, 2]


def test_the_high_watermark_waits_for_replicas() -> None:
    """What acks=1 lets through is read once enough replicas have it."""
    core = cluster()
    set_min_in_sync(core, 2)
    assert produced(core) == 0
    down(core, 2, 3)
    assert produced(core, acks=1) == 0
    data = fetched(core)
    assert (data.high_watermark, data.last_stable_offset, offsets(data)) == (1, 1, [0])
    assert offsets(fetched(core, fetch_offset=2)) == []
    assert fetched(core, fetch_offset=2).error_code == 0
    assert listed(core, 1) == (0, 1)
    part = FetchPartition(partition=0, fetch_offset=1, partition_max_bytes=1 << 20)
    topics = [FetchTopic(topic="orders", partitions=[part])]
    request = FetchRequest(
        max_bytes=1 << 20, max_wait_ms=100_000, min_bytes=1, session_epoch=-1, topics=topics
    )
    answers, _ = core.begin(request, 12)
    assert produced(core, acks=1) == 0
    assert not answers
    up(core, 2)
    (answer,) = answers
    assert offsets(answer.responses[0].partitions[0]) == [1, 2]  # type: ignore[attr-defined]
    down(core, 2)
    assert produced(core, acks=1) == 0
    assert fetched(core).high_watermark == 3
    set_min_in_sync(core, 1)
    assert fetched(core).high_watermark == 4


def test_a_leader_is_a_replica_in_sync() -> None:
    core = cluster()
    down(core, 3, 1)
    assert (shown(core, 2).leader_id, shown(core, 2).isr_nodes) == (2, [2])
    down(core, 2)
    partition = core.cluster.topics["orders"].partitions[0]
    assert (partition.leader, partition.isr) == (-1, [2])
    up(core, 1, 3)
    part = shown(core)
    assert (part.error_code, part.leader_id, part.isr_nodes, part.offline_replicas) == (5, -1, [2], [2])
    epoch = partition.leader_epoch
    up(core, 2)
    part = shown(core)
    assert (part.leader_id, part.leader_epoch, part.isr_nodes) == (2, epoch + 1, [1, 2, 3])


def elected(core: Core, kind: int) -> int:
    topics = [TopicPartitions(topic="orders", partitions=[0])]
    answer = core.ask(ElectLeadersRequest(election_type=kind, topic_partitions=topics), 2)
    return answer.replica_election_results[0].partition_result[0].error_code


def test_elections_without_replicas_in_sync() -> None:
    core = cluster(nodes=4)
    down(core, 1)
    assert elected(core, 0) == ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
    up(core, 1)
    assert elected(core, 0) == 0
    down(core, 3, 2, 1)
    assert core.cluster.topics["orders"].partitions[0].leader == -1
    core.cluster.nodes[4].port = 1
    answer = ElectLeadersRequest(
        election_type=1, topic_partitions=[TopicPartitions(topic="orders", partitions=[0])]
    )
    (result,) = core.ask(answer, 2, 4).replica_election_results
    assert result.partition_result[0].error_code == ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
    up(core, 2)
    assert elected(core, 0) == ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
    assert elected(core, 1) == 0
    assert (shown(core, 2).leader_id, shown(core, 2).isr_nodes) == (2, [2])
    assert elected(core, 1) == ErrorCode.ELECTION_NOT_NEEDED


def test_a_topic_that_lets_any_replica_lead() -> None:
    core = Core(nodes=2)
    settings = {"unclean.leader.election.enable": "true"}
    core.cluster.create_topic("orders", 1, replication_factor=2, settings=settings)
    down(core, 2, 1)
    up(core, 2)
    assert (shown(core, 2).leader_id, shown(core, 2).isr_nodes) == (2, [2])


def committed(core: Core, node: int) -> ErrorCode:
    part = OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    topic = OffsetCommitRequestTopic(name="orders", partitions=[part])
    request = OffsetCommitRequest(group_id="g", generation_id_or_member_epoch=-1, topics=[topic])
    answer = core.ask(request, 8, node)
    return ErrorCode(answer.topics[0].partitions[0].error_code)


def test_coordinators_need_replicas_in_sync_too() -> None:
    core = cluster(topic_defaults={"min.insync.replicas": "2"}, offsets_partitions=1)
    coordinator = core.ask(FindCoordinatorRequest(key="g", key_type=0), 1)
    followers = [node for node in (1, 2, 3) if node != coordinator.node_id]
    assert committed(core, coordinator.node_id) == 0
    down(core, *followers)
    assert committed(core, coordinator.node_id) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    up(core, followers[0])
    assert committed(core, coordinator.node_id) == 0


def test_replicas_go_from_rack_to_rack() -> None:
    core = Core(nodes=4, racks=("a", "a", "b", "b"))
    topic = core.cluster.create_topic("spread", 4, replication_factor=2)
    for partition in topic.partitions:
        assert {core.cluster.nodes[node].rack for node in partition.replicas} == {"a", "b"}


# --- log directories ---


class _Broker:
    """As much of a broker as moves need."""

    def __init__(self, core: Core) -> None:
        self.cluster = core.cluster


def moves(core: Core, monkeypatch: pytest.MonkeyPatch) -> ClusterMoves:
    moves = ClusterMoves(_Broker(core), Waits())  # type: ignore[arg-type]
    monkeypatch.setattr(moves, "_run", lambda action: action())
    return moves


def described(core: Core, node: int = 1) -> tuple[int, int, int]:
    (result,) = core.ask(DescribeLogDirsRequest(topics=None), 4, node).results
    return result.error_code, len(result.topics), result.usable_bytes


def relocated(core: Core, path: str) -> int:
    topic = AlterReplicaLogDirTopic(name="orders", partitions=[0])
    request = AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path=path, topics=[topic])])
    return core.ask(request, 2).results[0].partitions[0].error_code


STORAGE = ErrorCode.KAFKA_STORAGE_ERROR


def test_a_log_directory_that_is_offline(monkeypatch: pytest.MonkeyPatch) -> None:
    core = cluster(factor=2)
    node = moves(core, monkeypatch)
    assert produced(core) == 0
    node.fail_log_dir(1)
    assert produced(core) == fetched(core).error_code == STORAGE
    assert listed(core, 1) == (STORAGE, -1)
    assert described(core) == (STORAGE, 0, -1)
    assert described(core, 2) == (0, 1, -1)
    assert relocated(core, "/memory/node-1") == STORAGE
    part = shown(core)
    assert (part.error_code, part.leader_id, part.isr_nodes, part.offline_replicas) == (0, 2, [2], [1])
    assert produced(core, node=2) == 0
    assert produced(core, node=3) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    node.restore_log_dir(1)
    assert produced(core) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert shown(core).isr_nodes == [1, 2]
    assert described(core) == (0, 1, -1)
    assert relocated(core, "/memory/node-1") == 0
    assert offsets(fetched(core, node=2)) == [0, 1]
    with pytest.raises(LookupError, match="expected a node that is up, got 9"):
        node.fail_log_dir(9)


def test_the_only_log_directory_is_offline(monkeypatch: pytest.MonkeyPatch) -> None:
    core = cluster(nodes=1, factor=1)
    node = moves(core, monkeypatch)
    assert produced(core) == 0
    assert committed(core, 1) == 0
    node.fail_log_dir(1)
    part = shown(core)
    assert (part.error_code, part.leader_id, part.isr_nodes, part.offline_replicas) == (5, -1, [1], [1])
    assert produced(core) == STORAGE
    assert committed(core, 1) == ErrorCode.NOT_COORDINATOR
    group_coordinator = core.ask(FindCoordinatorRequest(key="g", key_type=0), 1)
    assert group_coordinator.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    group_coordinator = core.ask(FindCoordinatorRequest(key="t", key_type=1), 1)
    assert group_coordinator.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    with pytest.raises(OSError, match="no replica with a log directory"):
        core.cluster.create_topic("later", 1)
    assert "later" not in core.cluster.topics
    node.restore_log_dir(1)
    assert committed(core, 1) == produced(core) == 0
    assert offsets(fetched(core)) == [0, 1]


def test_a_log_that_cannot_be_read_takes_its_directory_offline(monkeypatch: pytest.MonkeyPatch) -> None:
    core = cluster(factor=2)
    assert produced(core) == 0
    log = core.cluster.topics["orders"].partitions[0].log

    def fails(*_: object, **__: object) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(log, "read", fails)
    assert fetched(core).error_code == STORAGE
    monkeypatch.undo()
    core.pass_time(0)
    assert described(core) == (STORAGE, 0, -1)
    assert offsets(fetched(core, node=2)) == [0]
    assert shown(core).leader_id == 2


def test_a_leader_that_cannot_be_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without another leader the partition has none, and gets one once it can be stored."""
    core = cluster(factor=2)
    node = moves(core, monkeypatch)

    def fails(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(core.cluster.logs, "partition_changed", fails)
        node.fail_log_dir(1)
        part = shown(core)
        assert (part.leader_id, part.isr_nodes, part.offline_replicas) == (-1, [1], [1])
    node.restore_log_dir(1)
    assert (shown(core).leader_id, shown(core).isr_nodes) == (1, [1, 2])
    assert produced(core) == 0


def test_topics_are_made_where_log_directories_are_online(monkeypatch: pytest.MonkeyPatch) -> None:
    core = cluster()
    moves(core, monkeypatch).fail_log_dir(2)
    topic = core.cluster.create_topic("later", 4, replication_factor=2)
    assert {node for partition in topic.partitions for node in partition.replicas} == {1, 3}
    topic = core.cluster.create_topic("wide", 3, replication_factor=3)
    assert all(len(set(partition.replicas)) == 3 for partition in topic.partitions)
    assert all(sorted(partition.isr) == [1, 3] and partition.leader != 2 for partition in topic.partitions)


def test_a_log_directory_that_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    core = cluster(factor=2)
    node = moves(core, monkeypatch)
    assert produced(core) == 0
    node.fill_log_dir(1)
    assert described(core) == (0, 1, 0)
    assert offsets(fetched(core)) == [0]
    assert produced(core) == STORAGE
    assert produced(core) == STORAGE
    core.pass_time(0)
    assert described(core) == (STORAGE, 0, -1)
    assert shown(core).leader_id == 2
    assert offsets(fetched(core, node=2)) == [0]
    assert produced(core, node=2) == 0
    node.restore_log_dir(1)
    assert offsets(fetched(core, node=2)) == [0, 1]
    node.fill_log_dir(1)  # of a follower, which falls out of sync
    assert produced(core, node=2) == 0
    core.pass_time(0)
    assert (shown(core).isr_nodes, shown(core).offline_replicas) == ([2], [1])


@pytest.mark.parametrize("nodes", [1, 2])
def test_a_file_system_that_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nodes: int) -> None:
    """The append is taken back; the directory is offline, and another replica leads if there is one."""
    confluent_kafka = pytest.importorskip("confluent_kafka")

    with Kafka(nodes=nodes, default_replication_factor=nodes, data=tmp_path, topics=["orders"]) as kafka:
        kafka.produce("orders", "one")
        first = kafka.moves.leader_of("orders", 0)
        (file,) = tmp_path.rglob("orders-0/*.log")
        real, refused = os.pwrite, [True]

        def half(descriptor: int, data: bytes, at: int) -> int:
            if refused and os.fstat(descriptor).st_ino == file.stat().st_ino:
                refused.pop()
                real(descriptor, data[: len(data) // 2], at)
                raise OSError(28, "No space left on device")
            return real(descriptor, data, at)

        monkeypatch.setattr(os, "pwrite", half)
        errors: list[Any] = []
        settings = {"bootstrap.servers": kafka.bootstrap, "enable.idempotence": True}
        producer = confluent_kafka.Producer(settings | {"message.timeout.ms": 20_000 if nodes > 1 else 1_500})
        producer.produce("orders", b"two", on_delivery=lambda error, _: errors.append(error))
        assert producer.flush(30) == 0
        assert not refused
        if nodes == 1:
            assert errors[0].name() == "_MSG_TIMED_OUT"
            assert kafka.moves.leader_of("orders", 0) == -1
        else:
            assert errors == [None]
            assert kafka.moves.leader_of("orders", 0) == 3 - first
        kafka.moves.restore_log_dir(first)
        kafka.produce("orders", "three")
        expected = [b"one", b"two", b"three"][:: 3 - nodes]
        reader = {"bootstrap.servers": kafka.bootstrap, "group.id": "g", "auto.offset.reset": "earliest"}
        consumer = confluent_kafka.Consumer(reader)
        consumer.subscribe(["orders"])
        values: list[bytes] = []
        while len(values) < len(expected):
            message = consumer.poll(10)
            assert message is not None
            assert not message.error()
            values.append(message.value())
        consumer.close()
        assert values == expected
    with Kafka(nodes=nodes, data=tmp_path) as kafka:
        assert [record.value for record in kafka.records("orders")] == expected


# --- reads from followers ---


def racked(**config: Any) -> Core:
    """A topic on nodes 1 to 3 of 4, led by node 1; nodes 2, 3 and 4 are in rack b."""
    core = Core(
        nodes=4, racks=("a", "b", "b", "b"), replica_selector_class="RackAwareReplicaSelector", **config
    )
    core.cluster.create_topic("orders", 1, assignments=[[1, 2, 3]])
    for _ in range(3):
        assert produced(core) == 0
    return core


def test_a_consumer_is_sent_to_its_rack() -> None:
    core = racked()
    data = fetched(core, rack_id="b", fetch_offset=1)
    assert (data.preferred_read_replica, data.error_code, data.records) == (3, 0, b"")
    assert (data.high_watermark, data.last_stable_offset, data.log_start_offset) == (3, 3, 0)
    for rack in ("", "a", "c"):
        data = fetched(core, rack_id=rack)
        assert (data.preferred_read_replica, offsets(data)) == (-1, [0, 1, 2])
    for version in (11, 18):
        topic_id = core.cluster.topics["orders"].id
        part = FetchPartition(partition=0, partition_max_bytes=1 << 20)
        topics = [FetchTopic(topic="orders", topic_id=topic_id, partitions=[part])]
        request = FetchRequest(
            max_bytes=1 << 20,
            max_wait_ms=9_000,
            min_bytes=1 << 19,
            session_epoch=0,
            rack_id="b",
            topics=topics,
        )
        if version < 13:
            topics[0].topic_id = type(topic_id)(int=0)
        else:
            topics[0].topic = ""
        answer = core.ask(request, version)  # it does not wait for more
        assert answer.responses[0].partitions[0].preferred_read_replica == 3
        request.session_id, request.session_epoch, request.topics = answer.session_id, 1, []
        second = core.ask(request, version)
        assert second.responses[0].partitions[0].preferred_read_replica == 3
    assert offsets(fetched(core, version=10)) == [0, 1, 2]


def test_only_replicas_in_sync_are_named() -> None:
    core = racked()
    down(core, 3)
    assert fetched(core, rack_id="b").preferred_read_replica == 2
    down(core, 2)
    data = fetched(core, rack_id="b")
    assert (data.preferred_read_replica, offsets(data)) == (-1, [0, 1, 2])
    data = fetched(core, rack_id="b", fetch_offset=4)
    assert (data.preferred_read_replica, data.error_code) == (-1, ErrorCode.OFFSET_OUT_OF_RANGE)


def test_leaders_are_read_without_a_selector() -> None:
    for selector in (None, "LeaderSelector", "org.apache.kafka.common.replica.LeaderSelector"):
        core = Core(nodes=2, racks=("a", "b"), replica_selector_class=selector)
        core.cluster.create_topic("orders", 1, replication_factor=2)
        assert produced(core) == 0
        assert offsets(fetched(core, rack_id="b")) == [0]
    with pytest.raises(ValueError, match="expected a replica selector LeaderSelector or RackAware"):
        Core(replica_selector_class="RackAware")
    with pytest.raises(ValueError, match="expected a rack for each node, got 'ab'"):
        Core(racks="ab")


def test_followers_are_read_up_to_the_high_watermark() -> None:
    core = racked()
    for version in (11, 12):
        assert offsets(fetched(core, node=2, version=version)) == [0, 1, 2]
    old = fetched(core, node=2, version=10)
    assert old.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert fetched(core, node=4).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert fetched(core, node=2, fetch_offset=4).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert listed(core, 2) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
    assert produced(core, node=2) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert fetched(core, node=2, current_leader_epoch=1).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
    core.cluster.replication.move_leader(core.cluster.topics["orders"].partitions[0], 3)
    for node, error in ((2, ErrorCode.FENCED_LEADER_EPOCH), (4, ErrorCode.NOT_LEADER_OR_FOLLOWER)):
        assert fetched(core, node=node, current_leader_epoch=0).error_code == error
    assert offsets(fetched(core, node=2, current_leader_epoch=1)) == [0, 1, 2]
    set_min_in_sync(core, 3)
    down(core, 1)
    assert produced(core, node=3, acks=1) == 0
    data = fetched(core, node=2)
    assert (data.high_watermark, offsets(data)) == (3, [0, 1, 2])


def test_a_fetch_waits_at_a_follower() -> None:
    core = racked()
    part = FetchPartition(partition=0, fetch_offset=3, partition_max_bytes=1 << 20)
    topics = [FetchTopic(topic="orders", partitions=[part])]
    request = FetchRequest(max_bytes=1 << 20, max_wait_ms=9_000, min_bytes=1, session_epoch=-1, topics=topics)
    answers, _ = core.begin(request, 12, node=2)
    assert not answers
    assert produced(core) == 0
    assert offsets(answers[0].responses[0].partitions[0]) == [3]  # type: ignore[attr-defined]


@pytest.mark.parametrize("rack", ["b", "none"])
def test_librdkafka_reads_from_its_rack(rack: str) -> None:
    confluent_kafka = pytest.importorskip("confluent_kafka")

    racks = ("a", "b")
    selector = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
    with Kafka(nodes=2, racks=racks, replica_selector_class=selector, default_replication_factor=2) as kafka:
        kafka.create_topic("orders")
        kafka.moves.leader("orders", 0, to=1)
        kafka.produce("orders", "one", "two")
        settings = {"bootstrap.servers": kafka.bootstrap, "group.id": "g", "client.rack": rack}
        consumer = confluent_kafka.Consumer(settings | {"auto.offset.reset": "earliest"})
        consumer.subscribe(["orders"])
        values = [consumer.poll(10).value() for _ in range(2)]
        kafka.produce("orders", "three")
        values.append(consumer.poll(10).value())
        consumer.close()
        assert values == [b"one", b"two", b"three"]
        servers = {
            int(entry.flow.rpartition(":")[2])
            for entry in kafka.exchange.entries()
            if isinstance(entry.message, FetchRequest) and entry.message.topics
        }
        ports = [port for _, port in kafka.broker.addresses]
        assert servers == (set(ports) if rack == "b" else {ports[0]})
        named = [
            part.preferred_read_replica
            for answer in kafka.exchange.all(FetchResponse)
            for topic in answer.responses
            for part in topic.partitions
        ]
        assert (2 in named) == (rack == "b")


def test_the_settings_of_racks_are_shown() -> None:
    from coordwire.messages import DescribeConfigsRequest
    from coordwire.messages.describe_configs import DescribeConfigsResource

    core = racked()
    names = ["broker.rack", "replica.selector.class"]
    for node, rack in ((1, "a"), (2, "b")):
        resource = DescribeConfigsResource(resource_type=4, resource_name=str(node), configuration_keys=names)
        (result,) = core.ask(DescribeConfigsRequest(resources=[resource]), 4, node).results
        assert [config.value for config in result.configs] == [rack, "RackAwareReplicaSelector"]
    answer = core.ask(MetadataRequest(topics=[]), 12)
    assert [node.rack for node in answer.brokers] == ["a", "b", "b", "b"]
