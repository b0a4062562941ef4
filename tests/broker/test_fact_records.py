"""What an administrator has set outlives a restart: settings, quotas, credentials, ACLs, features' levels."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from coordwire.broker.cluster.cluster_state import ClusterState
from coordwire.broker.cluster.disk_logs import DiskLogs, open_cluster
from coordwire.broker.cluster.metadata_records import log_record
from coordwire.broker.log.data_folder import DataFolderError
from coordwire.broker.settings.broker_config import BrokerConfig
from coordwire.codec import Message
from coordwire.conformance import cases
from coordwire.coordinator import CoordinatorConfig
from coordwire.enums import ErrorCode
from coordwire.logs import LogRecord
from coordwire.messages import (
    AlterClientQuotasRequest,
    AlterConfigsRequest,
    AlterUserScramCredentialsRequest,
    ApiVersionsRequest,
    ConfigRecord,
    CreateAclsRequest,
    CreateTopicsRequest,
    DeleteAclsRequest,
    DeleteTopicsRequest,
    DescribeAclsRequest,
    DescribeClientQuotasRequest,
    DescribeConfigsRequest,
    DescribeUserScramCredentialsRequest,
    FeatureLevelRecord,
    IncrementalAlterConfigsRequest,
    UpdateFeaturesRequest,
)
from tests.broker.core import asked_of

Values = dict[str, Any]
"""A request or a part of it, by the names of its fields."""

TOPIC, GROUP, BROKER = 2, 32, 4
SET, DELETE = 0, 1
TRUSTED = BrokerConfig(authorizer=True, super_users=("User:ANONYMOUS",))


def message_of(cls: type[Message], values: Values) -> Message:
    message: Message = cases.message_of(cls, values)
    return message


def opened(path: Path, config: BrokerConfig = TRUSTED) -> ClusterState:
    return open_cluster(path, clock=lambda: 1_700_000_000_000, config=config, nodes=(1,))


def killed(cluster: ClusterState) -> None:
    assert isinstance(cluster.logs, DiskLogs)
    cluster.logs.abandon()


def closed(cluster: ClusterState) -> None:
    cluster.close()


def altered(kind: int, name: str, **settings: str | None) -> Message:
    configs = [
        {"name": key.replace("_", "."), "value": value, "config_operation": SET if value else DELETE}
        for key, value in settings.items()
    ]
    resource = {"resource_type": kind, "resource_name": name, "configs": configs}
    return message_of(IncrementalAlterConfigsRequest, {"resources": [resource], "validate_only": False})


def acl(name: str) -> dict[str, Any]:
    return {
        "resource_type": 2, "resource_name": name, "resource_pattern_type": 4, "principal": "User:ann",
        "host": "*", "operation": 3, "permission_type": 3,
    }  # fmt: skip


def removed_acl(name: str) -> dict[str, Any]:
    return {
        "resource_type_filter": 2, "resource_name_filter": name, "pattern_type_filter": 4,
        "principal_filter": None, "host_filter": None, "operation": 1, "permission_type": 1,
    }  # fmt: skip


def quota(user: str | None, value: float, remove: bool = False) -> Message:
    entity = [{"entity_type": "user", "entity_name": user}, {"entity_type": "client-id", "entity_name": "c"}]
    ops = [{"key": "request_percentage", "value": value, "remove": remove}]
    return message_of(AlterClientQuotasRequest, {"entries": [{"entity": entity, "ops": ops}]})


def credentials(upserted: str | None, deleted: str | None = None) -> Message:
    change = {"mechanism": 2, "iterations": 4096, "salt": b"salt", "salted_password": b"password" * 8}
    return message_of(
        AlterUserScramCredentialsRequest,
        {
            "upsertions": [change | {"name": upserted}] if upserted else [],
            "deletions": [{"name": deleted, "mechanism": 2}] if deleted else [],
        },
    )


def level(name: str, number: int, kind: int) -> Message:
    update = {"feature": name, "max_version_level": number, "upgrade_type": kind}
    return message_of(UpdateFeaturesRequest, {"feature_updates": [update], "validate_only": False})


FIRST: list[tuple[Message, int]] = [
    (altered(GROUP, "g", consumer_session_timeout_ms="50000", consumer_heartbeat_interval_ms="6000"), 1),
    (altered(GROUP, "gone", consumer_session_timeout_ms="50000"), 1),
    (altered(BROKER, "", message_max_bytes="2000000"), 1),
    (altered(BROKER, "1", message_max_bytes="3000000", compression_type="zstd"), 1),
    (quota("ann", 12.5), 1),
    (quota(None, 20.0), 1),
    (credentials("ann"), 0),
    (credentials("bob"), 0),
    (message_of(CreateAclsRequest, {"creations": [acl("a"), acl("b"), acl("a")]}), 3),
    (level("transaction.version", 1, 2), 2),
    (level("share.version", 1, 2), 2),
]
SECOND: list[tuple[Message, int]] = [
    (altered(GROUP, "g", consumer_heartbeat_interval_ms=None), 1),
    (altered(GROUP, "gone", consumer_session_timeout_ms=None), 1),
    (message_of(AlterConfigsRequest, {"resources": [
        {"resource_type": BROKER, "resource_name": "1", "configs": [{"name": "a.name", "value": "own"}]},
    ]}), 2),
    (quota("ann", 12.5, remove=True), 1),
    (quota(None, 30.0), 1),
    (credentials("carl", deleted="ann"), 0),
    (message_of(DeleteAclsRequest, {"filters": [removed_acl("a")]}), 3),
    (message_of(CreateAclsRequest, {"creations": [acl("c")]}), 3),
    (level("transaction.version", 2, 1), 2),
]  # fmt: skip


def described(cluster: ClusterState) -> dict[str, Any]:
    """What a client is told."""
    resources = [
        {"resource_type": kind, "resource_name": name, "configuration_keys": None}
        for kind, name in ((GROUP, "g"), (GROUP, "gone"), (BROKER, ""), (BROKER, "1"))
    ]
    every_acl = {
        "resource_type_filter": 1, "resource_name_filter": None, "pattern_type_filter": 1,
        "principal_filter": None, "host_filter": None, "operation": 1, "permission_type": 1,
    }  # fmt: skip
    software = {"client_software_name": "test", "client_software_version": "1"}
    asked: dict[str, tuple[Message, int]] = {
        "settings": (message_of(DescribeConfigsRequest, {"resources": resources}), 4),
        "quotas": (message_of(DescribeClientQuotasRequest, {"components": [], "strict": False}), 1),
        "users": (message_of(DescribeUserScramCredentialsRequest, {"users": None}), 0),
        "acls": (message_of(DescribeAclsRequest, every_acl), 3),
    }
    answers: dict[str, Any] = {name: asked_of(cluster, *request) for name, request in asked.items()}
    versions: Any = asked_of(cluster, message_of(ApiVersionsRequest, software), 4)
    answers["levels"] = versions.finalized_features
    return answers


def errors(answer: Any) -> Iterator[int]:
    """All error codes of an answer."""
    for name in type(answer)._layout_.fields if isinstance(answer, Message) else ():
        value = getattr(answer, name.name)
        if name.name == "error_code":
            yield value
        for element in value if isinstance(value, list) else ():
            yield getattr(element, "error_code", 0)


@pytest.mark.parametrize("end", [killed, closed])
def test_what_was_set_is_there_after_a_restart(tmp_path: Path, end: Callable[[ClusterState], None]) -> None:
    cluster = opened(tmp_path)
    new = described(cluster)
    for changes in (FIRST, SECOND):
        before = described(cluster)
        for request, version in changes:
            assert not any(errors(asked_of(cluster, request, version))), request
        expected = described(cluster)
        assert all(expected[part] != before[part] != new for part in expected)
        end(cluster)
        cluster = opened(tmp_path)
        assert described(cluster) == expected
    credential = cluster.scram.find("bob", "SCRAM-SHA-512")
    assert credential is not None
    assert len(credential.stored_key) == 64
    assert cluster.features["transaction.version"] == 2
    assert cluster.group_settings.keys() == {"g"}
    closed(cluster)


def test_a_group_is_coordinated_by_its_settings_after_a_restart(tmp_path: Path) -> None:
    cluster = opened(tmp_path)
    asked_of(cluster, altered(GROUP, "g", share_record_lock_duration_ms="17000"), 1)
    closed(cluster)
    cluster = opened(tmp_path)
    assert cluster.share_partitions.config_of("g").lock_duration_ms == 17_000
    assert cluster.share_partitions.config_of("other").lock_duration_ms != 17_000
    closed(cluster)


def test_acls_outlive_a_broker_without_an_authorizer(tmp_path: Path) -> None:
    cluster = opened(tmp_path)
    asked_of(cluster, *FIRST[8])
    expected = described(cluster)["acls"]
    closed(cluster)
    closed(opened(tmp_path, BrokerConfig(authorizer=False)))
    cluster = opened(tmp_path)
    assert described(cluster)["acls"] == expected
    closed(cluster)


def test_what_the_file_system_refuses_is_not_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = opened(tmp_path)
    expected = described(cluster)

    def refuse(*_: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(DiskLogs, "_append", refuse)
    for request, version in FIRST:
        assert int(ErrorCode.KAFKA_STORAGE_ERROR) in errors(asked_of(cluster, request, version)), request
    assert described(cluster) == expected
    monkeypatch.undo()
    closed(cluster)


def test_a_disk_that_fails_is_an_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where topics are flushed, what they rest on is forced to the disk with them."""
    topic = {
        "name": "t", "num_partitions": 1, "replication_factor": 1,
        "configs": [{"name": "flush.messages", "value": "1"}],
    }  # fmt: skip
    cluster = opened(tmp_path)
    create = message_of(CreateTopicsRequest, {"topics": [topic], "timeout_ms": 1})
    assert not any(errors(asked_of(cluster, create, 7)))

    def fail(descriptor: int) -> None:
        raise OSError(errno.EIO, "I/O error")

    monkeypatch.setattr(os, "fsync", fail)
    create = message_of(CreateTopicsRequest, {"topics": [topic | {"name": "u"}], "timeout_ms": 1})
    delete = message_of(DeleteTopicsRequest, {"topics": [{"name": "t"}], "timeout_ms": 1})
    for request, version in ((create, 7), (altered(TOPIC, "t", flush_messages="2"), 1), (delete, 6)):
        assert list(errors(asked_of(cluster, request, version))) == [ErrorCode.KAFKA_STORAGE_ERROR], request
    killed(cluster)


def written(path: Path, message: Message) -> None:
    """Have a record in a folder's metadata that this broker does not write."""
    cluster = opened(path)
    assert isinstance(cluster.logs, DiskLogs)
    record: LogRecord = log_record(message)
    cluster.logs._append([record])
    closed(cluster)


def test_settings_of_a_later_release_are_left_alone(tmp_path: Path) -> None:
    written(tmp_path, ConfigRecord(resource_type=GROUP, resource_name="g", name="of.later", value="1"))
    cluster = opened(tmp_path)
    assert cluster.group_settings == {}
    closed(cluster)


def test_a_setting_that_cannot_be_is_refused(tmp_path: Path) -> None:
    name = "consumer.session.timeout.ms"
    written(tmp_path, ConfigRecord(resource_type=GROUP, resource_name="g", name=name, value="soon"))
    with pytest.raises(DataFolderError, match=r"__cluster_metadata: Invalid value soon for configuration"):
        opened(tmp_path)


@pytest.mark.parametrize(
    ("release", "reason"),
    [
        ("4.3", r"level 33 of metadata.version, expected at most level 30, as in Kafka 4.3"),
        ("3.9", r"level 1 of group.version, expected no such feature, as in Kafka 3.9"),
    ],
)
def test_an_older_release_refuses_newer_levels(tmp_path: Path, release: str, reason: str) -> None:
    closed(opened(tmp_path))
    with pytest.raises(DataFolderError, match=reason):
        opened(tmp_path, BrokerConfig(as_of=release))


def test_a_newer_release_keeps_the_levels(tmp_path: Path) -> None:
    older = BrokerConfig(coordinator=CoordinatorConfig(release="4.3.0"))
    closed(opened(tmp_path, older))
    cluster = opened(tmp_path)
    assert cluster.features["metadata.version"] == 30
    closed(cluster)


def test_a_feature_that_was_switched_off_needs_no_release_that_has_it(tmp_path: Path) -> None:
    written(tmp_path, FeatureLevelRecord(name="of.later.version", feature_level=0))
    cluster = opened(tmp_path)
    assert cluster.features["of.later.version"] == 0
    closed(cluster)
