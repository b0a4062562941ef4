"""A cluster whose metadata can't be written: what it refused is not there, nor after a restart."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from coordwire.broker.cluster.cluster_state import ClusterState
from coordwire.broker.cluster.disk_logs import METADATA_TOPIC
from coordwire.broker.log import data_folder, disk_loading
from coordwire.enums import AlterConfigOperation, ConfigResourceType, ErrorCode
from coordwire.messages import (
    AlterPartitionReassignmentsRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    IncrementalAlterConfigsRequest,
    InitProducerIdRequest,
)
from coordwire.messages.alter_partition_reassignments import ReassignablePartition, ReassignableTopic
from coordwire.messages.create_partitions import CreatePartitionsTopic
from coordwire.messages.create_topics import CreatableTopic
from coordwire.messages.incremental_alter_configs import AlterableConfig, AlterConfigsResource
from tests.broker.core import asked_of, batch
from tests.broker.test_disk import append, killed, opened


class MetadataDisk:
    """Whether there is room for the cluster's metadata."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.is_full = False
        real = os.pwrite

        def pwrite(descriptor: int, data: bytes, at: int) -> int:
            if self.is_full and METADATA_TOPIC in os.readlink(f"/proc/self/fd/{descriptor}"):
                raise OSError(errno.ENOSPC, "No space left on device")
            return real(descriptor, data, at)

        monkeypatch.setattr(os, "pwrite", pwrite)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> MetadataDisk:
    if not Path("/proc/self/fd").is_dir():
        pytest.skip("the files of descriptors can't be told here")
    return MetadataDisk(monkeypatch)


def made(cluster: ClusterState, name: str) -> int:
    """The error code of CreateTopics for a topic of two partitions."""
    topic = CreatableTopic(name=name, num_partitions=2, replication_factor=1)
    response: Any = asked_of(cluster, CreateTopicsRequest(topics=[topic], timeout_ms=1000), 7)
    return int(response.topics[0].error_code)


def grown(cluster: ClusterState, name: str, count: int) -> int:
    """The error code of CreatePartitions."""
    topic = CreatePartitionsTopic(name=name, count=count, assignments=None)
    response: Any = asked_of(cluster, CreatePartitionsRequest(topics=[topic], timeout_ms=1000), 3)
    return int(response.results[0].error_code)


def altered(cluster: ClusterState, topic: str, name: str, value: str) -> int:
    """The error code of IncrementalAlterConfigs for one setting of a topic."""
    config = AlterableConfig(name=name, config_operation=int(AlterConfigOperation.SET), value=value)
    resource = AlterConfigsResource(
        resource_type=int(ConfigResourceType.TOPIC), resource_name=topic, configs=[config]
    )
    response: Any = asked_of(cluster, IncrementalAlterConfigsRequest(resources=[resource]), 1)
    return int(response.responses[0].error_code)


def test_a_refused_topic_is_not_there_and_can_be_made(tmp_path: Path, disk: MetadataDisk) -> None:
    cluster = opened(tmp_path)
    disk.is_full = True
    assert made(cluster, "orders") == ErrorCode.KAFKA_STORAGE_ERROR
    assert not cluster.topics
    assert not cluster.topics_by_id
    assert cluster.topic_alike("or.ders") is None
    assert not list(tmp_path.glob("orders-*"))
    disk.is_full = False
    assert made(cluster, "orders") == ErrorCode.NONE
    topic_id = cluster.topics["orders"].id
    append(cluster.topics["orders"].partitions[1].log, batch(b"kept"))
    killed(cluster)
    cluster = opened(tmp_path)
    assert cluster.topics["orders"].id == topic_id
    assert [partition.log.end_offset for partition in cluster.topics["orders"].partitions] == [0, 1]
    killed(cluster)


def test_refused_partitions_are_not_there_and_can_be_added(tmp_path: Path, disk: MetadataDisk) -> None:
    cluster = opened(tmp_path)
    assert made(cluster, "orders") == ErrorCode.NONE
    disk.is_full = True
    assert grown(cluster, "orders", 4) == ErrorCode.KAFKA_STORAGE_ERROR
    assert len(cluster.topics["orders"].partitions) == 2
    assert not (tmp_path / "orders-2").exists()
    disk.is_full = False
    assert grown(cluster, "orders", 3) == ErrorCode.NONE
    killed(cluster)
    cluster = opened(tmp_path)
    assert len(cluster.topics["orders"].partitions) == 3
    killed(cluster)


def test_a_refused_setting_does_not_count(tmp_path: Path, disk: MetadataDisk) -> None:
    cluster = opened(tmp_path)
    assert made(cluster, "orders") == ErrorCode.NONE
    assert altered(cluster, "orders", "max.message.bytes", "500") == ErrorCode.NONE
    disk.is_full = True
    assert altered(cluster, "orders", "max.message.bytes", "700") == ErrorCode.KAFKA_STORAGE_ERROR
    topic = cluster.topics["orders"]
    assert topic.settings.own == {"max.message.bytes": "500"}
    assert topic.rules.max_message_bytes == 500
    disk.is_full = False
    assert altered(cluster, "orders", "retention.ms", "9") == ErrorCode.NONE
    killed(cluster)
    cluster = opened(tmp_path)
    assert cluster.topics["orders"].settings.own == {"max.message.bytes": "500", "retention.ms": "9"}
    killed(cluster)


def test_a_setting_is_stored_when_there_is_room_again(tmp_path: Path, disk: MetadataDisk) -> None:
    cluster = opened(tmp_path)
    assert made(cluster, "orders") == ErrorCode.NONE
    disk.is_full = True
    assert altered(cluster, "orders", "max.message.bytes", "700") == ErrorCode.KAFKA_STORAGE_ERROR
    disk.is_full = False
    assert altered(cluster, "orders", "max.message.bytes", "700") == ErrorCode.NONE
    killed(cluster)
    cluster = opened(tmp_path)
    assert cluster.topics["orders"].settings.own == {"max.message.bytes": "700"}
    killed(cluster)


def test_refused_replicas_do_not_count(tmp_path: Path, disk: MetadataDisk) -> None:
    def placed(cluster: ClusterState, *replicas: int) -> int:
        target = ReassignablePartition(partition_index=0, replicas=list(replicas))
        topic = ReassignableTopic(name="orders", partitions=[target])
        request = AlterPartitionReassignmentsRequest(topics=[topic], timeout_ms=1000)
        response: Any = asked_of(cluster, request, 1)
        return int(response.responses[0].partitions[0].error_code)

    cluster = opened(tmp_path, nodes=(1, 2))
    assert made(cluster, "orders") == ErrorCode.NONE
    partition = cluster.topics["orders"].partitions[0]
    known = list(partition.replicas)
    disk.is_full = True
    assert placed(cluster, 1, 2) == ErrorCode.KAFKA_STORAGE_ERROR
    assert partition.replicas == known
    disk.is_full = False
    assert placed(cluster, 1, 2) == ErrorCode.NONE
    killed(cluster)
    cluster = opened(tmp_path, nodes=(1, 2))
    assert cluster.topics["orders"].partitions[0].replicas == [1, 2]
    killed(cluster)


def test_producer_ids_are_given_once(tmp_path: Path, disk: MetadataDisk) -> None:
    def new_id(cluster: ClusterState) -> tuple[int, int]:
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)
        response: Any = asked_of(cluster, request, 4)
        return int(response.error_code), int(response.producer_id)

    cluster = opened(tmp_path)
    disk.is_full = True
    assert new_id(cluster)[0] == ErrorCode.COORDINATOR_NOT_AVAILABLE
    disk.is_full = False
    given = [new_id(cluster) for _ in range(3)]
    killed(cluster)
    cluster = opened(tmp_path)
    given += [new_id(cluster) for _ in range(3)]
    killed(cluster)
    assert [code for code, _ in given] == [ErrorCode.NONE] * 6
    assert len({number for _, number in given}) == 6


def test_a_folder_that_is_refused_half_made_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = opened(tmp_path)
    real = data_folder.write_file

    def write_file(folder: Path, name: str, data: bytes, *, synced: bool = False) -> None:
        if folder.name == "orders-1":
            raise OSError(errno.ENOSPC, "No space left on device")
        real(folder, name, data, synced=synced)

    monkeypatch.setattr(disk_loading, "write_file", write_file)
    assert made(cluster, "orders") == ErrorCode.KAFKA_STORAGE_ERROR
    assert not list(tmp_path.glob("orders-*"))
    killed(cluster)
    monkeypatch.undo()
    cluster = opened(tmp_path)
    assert not cluster.topics
    killed(cluster)
