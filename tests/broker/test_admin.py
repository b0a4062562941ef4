"""What operators' tools ask: log directories, elections, reassignments, SCRAM users, clients' metrics."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from coordwire.broker import BrokerConfig
from coordwire.broker.cluster.disk_logs import open_cluster
from coordwire.broker.handlers import InvalidRequest
from coordwire.enums import ErrorCode
from coordwire.messages import (
    AlterClientQuotasRequest,
    AlterPartitionReassignmentsRequest,
    AlterReplicaLogDirsRequest,
    AlterUserScramCredentialsRequest,
    CreateAclsRequest,
    DeleteAclsRequest,
    DescribeAclsRequest,
    DescribeClientQuotasRequest,
    DescribeLogDirsRequest,
    DescribeQuorumRequest,
    DescribeUserScramCredentialsRequest,
    ElectLeadersRequest,
    FetchRequest,
    GetTelemetrySubscriptionsRequest,
    InitProducerIdRequest,
    JoinGroupRequest,
    ListPartitionReassignmentsRequest,
    PushTelemetryRequest,
)
from coordwire.messages.alter_client_quotas import (
    AlterClientQuotasRequestEntityData,
    AlterClientQuotasRequestEntryData,
    OpData,
)
from coordwire.messages.alter_partition_reassignments import ReassignablePartition, ReassignableTopic
from coordwire.messages.alter_replica_log_dirs import AlterReplicaLogDir, AlterReplicaLogDirTopic
from coordwire.messages.alter_user_scram_credentials import (
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from coordwire.messages.create_acls import AclCreation
from coordwire.messages.delete_acls import DeleteAclsFilter
from coordwire.messages.describe_client_quotas import ComponentData
from coordwire.messages.describe_log_dirs import DescribableLogDirTopic
from coordwire.messages.describe_quorum import (
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
)
from coordwire.messages.describe_user_scram_credentials import UserName
from coordwire.messages.elect_leaders import TopicPartitions
from coordwire.messages.fetch import FetchPartition, FetchTopic
from coordwire.messages.join_group import JoinGroupRequestProtocol
from tests.broker.core import Core, batch
from tests.broker.test_handlers import write


def sizes(core: Core, request: DescribeLogDirsRequest, version: int, node: int = 1) -> dict[str, list[int]]:
    (result,) = core.ask(request, version, node).results
    assert result.error_code == 0
    return {
        topic.name: [partition.partition_size for partition in topic.partitions] for topic in result.topics
    }


@pytest.mark.parametrize("version", [1, 2, 3, 4, 5])
def test_log_directories(version: int) -> None:
    core = Core(topics={"orders": 2, "bills": 1}, nodes=2)
    size = len(batch(b"one"))
    write(core, 0, b"one")
    assert sizes(core, DescribeLogDirsRequest(topics=None), version) == {"orders": [size], "bills": [0]}
    assert sizes(core, DescribeLogDirsRequest(topics=None), version, node=2) == {"orders": [0]}
    request = DescribeLogDirsRequest(topics=[DescribableLogDirTopic(topic="orders", partitions=[0, 1, 7])])
    assert sizes(core, request, version) == {"orders": [size]}
    other = DescribeLogDirsRequest(topics=[DescribableLogDirTopic(topic="none", partitions=[0])])
    assert sizes(core, other, version) == {}


def test_a_log_stays_in_the_one_folder() -> None:
    core = Core(topics={"orders": 2}, nodes=2)
    dirs = [
        AlterReplicaLogDir(path=path, topics=[AlterReplicaLogDirTopic(name="orders", partitions=[0, 1, 7])])
        for path in ("/memory/node-1", "/elsewhere")
    ]
    (result,) = core.ask(AlterReplicaLogDirsRequest(dirs=dirs), 2).results
    none, missing = ErrorCode.REPLICA_NOT_AVAILABLE, ErrorCode.LOG_DIR_NOT_FOUND
    assert [partition.error_code for partition in result.partitions] == [
        0,
        none,
        none,
        missing,
        missing,
        missing,
    ]


@pytest.mark.parametrize("version", [0, 1, 2])
def test_the_quorum_is_the_controller(version: int) -> None:
    core = Core(nodes=3)
    one = DescribeQuorumRequestPartitionData(partition_index=0)
    asked = DescribeQuorumRequestTopicData(topic_name="__cluster_metadata", partitions=[one])
    answer = core.ask(DescribeQuorumRequest(topics=[asked]), version)
    (result,) = answer.topics[0].partitions
    assert (result.leader_id, [voter.replica_id for voter in result.current_voters]) == (1, [1])
    assert [observer.replica_id for observer in result.observers] == [2, 3]
    asked.topic_name = "orders"
    refused = core.ask(DescribeQuorumRequest(topics=[asked]), version)
    (of_partition,) = refused.topics[0].partitions
    assert (refused.error_code, of_partition.error_code) == (0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def elected(core: Core, *partitions: int, kind: int = 0) -> dict[int, int]:
    asked = [TopicPartitions(topic="orders", partitions=list(partitions))] if partitions else None
    response = core.ask(ElectLeadersRequest(election_type=kind, topic_partitions=asked), 2)
    assert response.error_code == 0
    return {
        one.partition_id: one.error_code
        for topic in response.replica_election_results
        for one in topic.partition_result
    }


def replicated(partitions: int = 1) -> Core:
    core = Core(nodes=3)
    core.cluster.create_topic("orders", partitions, replication_factor=3)
    return core


def test_an_election_moves_what_is_not_led_by_the_first_replica() -> None:
    core = replicated(2)
    first, second = core.cluster.topics["orders"].partitions
    assert elected(core) == {}
    assert elected(core, 0, 1, 5) == {0: 84, 1: 84, 5: int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)}
    core.cluster.replication.move_leader(second, 1)
    assert (second.leader, second.leader_epoch) == (1, 1)
    assert elected(core, 1, kind=1) == {1: int(ErrorCode.ELECTION_NOT_NEEDED)}
    assert elected(core) == {1: 0}
    assert (second.leader, second.leader_epoch, first.leader_epoch) == (2, 2, 0)
    refused = core.ask(ElectLeadersRequest(election_type=9, topic_partitions=None), 1)
    assert refused.error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    ("version", "epoch", "error"),
    [
        (10, -1, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (10, 0, ErrorCode.FENCED_LEADER_EPOCH),
        (12, 0, ErrorCode.FENCED_LEADER_EPOCH),
        (16, 0, ErrorCode.FENCED_LEADER_EPOCH),
        (12, -1, ErrorCode.NONE),  # the old leader is a follower now, which may be read
    ],
)
def test_a_parked_fetch_is_answered_when_its_leader_moves(version: int, epoch: int, error: ErrorCode) -> None:
    core = replicated()
    part = FetchPartition(partition=0, partition_max_bytes=99, current_leader_epoch=epoch)
    topic_id = core.cluster.topics["orders"].id
    topics = [FetchTopic(topic="orders", topic_id=topic_id, partitions=[part])]
    answers, _ = core.begin(FetchRequest(min_bytes=1, max_wait_ms=9_999, topics=topics), version)
    assert answers == []
    (partition,) = core.cluster.topics["orders"].partitions
    core.cluster.replication.move_leader(partition, 3)
    (answer,) = answers
    (result,) = answer.responses[0].partitions  # type: ignore[attr-defined]
    leader = 3 if error and version >= 16 else -1  # it is named since version 16 (KIP-951)
    assert (result.error_code, result.current_leader.leader_id) == (error, leader)


def test_a_coordinator_that_moves_answers_and_is_loaded_by_the_next() -> None:
    core = Core(nodes=2, offsets_partitions=1, transactions_partitions=1)
    protocols = [JoinGroupRequestProtocol(name="range", metadata=b"")]
    join = JoinGroupRequest(
        group_id="g", session_timeout_ms=9_000, rebalance_timeout_ms=9_000, protocol_type="consumer",
        protocols=protocols, group_instance_id="i",
    )  # fmt: skip
    (offsets,) = core.cluster.offsets_topic().partitions
    first, other = offsets.leader, 3 - offsets.leader
    joined = core.ask(join, 9, first)
    assert joined.error_code == 0
    waiting, _ = core.begin(JoinGroupRequest(**fields(join) | {"group_instance_id": "j"}), 9, first)
    assert waiting == []
    core.cluster.replication.move_leader(offsets, other)
    assert [answer.error_code for answer in waiting] == [ErrorCode.NOT_COORDINATOR]  # type: ignore[attr-defined]
    assert core.ask(join, 9, first).error_code == ErrorCode.NOT_COORDINATOR
    produce = InitProducerIdRequest(transactional_id="t", transaction_timeout_ms=9_000)
    (states,) = core.cluster.transactions_topic().partitions
    before = core.ask(produce, 5, states.leader)
    assert (before.error_code, before.producer_epoch) == (0, 0)
    core.cluster.replication.move_leader(states, 3 - states.leader)
    after = core.ask(produce, 5, states.leader)
    assert (after.error_code, after.producer_id, after.producer_epoch) == (0, before.producer_id, 1)
    assert core.ask(produce, 5, 3 - states.leader).error_code == ErrorCode.NOT_COORDINATOR


def fields(request: JoinGroupRequest) -> dict[str, Any]:
    return {field.name: getattr(request, field.name) for field in type(request)._layout_.fields}


def reassigned(core: Core, replicas: list[int] | None, partition: int = 0, grow: bool = True) -> int:
    topics = [
        ReassignableTopic(
            name="orders",
            partitions=[ReassignablePartition(partition_index=partition, replicas=replicas)],
        )
    ]
    request = AlterPartitionReassignmentsRequest(topics=topics, allow_replication_factor_change=grow)
    return core.ask(request, 1).responses[0].partitions[0].error_code


def test_a_reassignment_is_done_at_once() -> None:
    core = replicated()
    (partition,) = core.cluster.topics["orders"].partitions
    assert reassigned(core, [2, 3]) == 0
    assert (list(partition.replicas), partition.leader, partition.leader_epoch) == ([2, 3], 2, 1)
    assert reassigned(core, [3, 2]) == 0
    assert (list(partition.replicas), partition.leader) == ([3, 2], 2)
    assert reassigned(core, [1], grow=False) == ErrorCode.INVALID_REPLICATION_FACTOR
    for bad in ([], [1, 1], [4]):
        assert reassigned(core, bad) == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert reassigned(core, None) == ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
    assert reassigned(core, [1], partition=4) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert list(partition.replicas) == [3, 2]
    assert core.ask(ListPartitionReassignmentsRequest(topics=None), 0).topics == []


def test_a_move_outlives_a_restart(tmp_path: Path) -> None:
    config = BrokerConfig()
    cluster = open_cluster(tmp_path, clock=lambda: 5, config=config, nodes=(1, 2))
    topic = cluster.create_topic("orders", 1, replication_factor=2)
    (partition,) = topic.partitions
    assert partition.leader == 1
    partition.log.append_own(batch(b"one"))
    cluster.replication.move_leader(partition, 2)
    partition.log.append_own(batch(b"two"))
    assert not (tmp_path / "node-1" / "orders-0").exists()
    cluster.close()
    cluster = open_cluster(tmp_path, clock=lambda: 5, config=config, nodes=(1, 2))
    (partition,) = cluster.topics["orders"].partitions
    assert (partition.leader, partition.leader_epoch, partition.log.end_offset) == (2, 1, 2)
    assert [one.partition_leader_epoch for one in partition.log.batches()] == [0, 1]
    cluster.close()


# --- users ---


def altered(
    core: Core, *upserts: tuple[str, int, int], gone: tuple[tuple[str, int], ...] = ()
) -> dict[str, int]:
    request = AlterUserScramCredentialsRequest(
        deletions=[ScramCredentialDeletion(name=name, mechanism=kind) for name, kind in gone],
        upsertions=[
            ScramCredentialUpsertion(
                name=name, mechanism=kind, iterations=iterations, salt=b"s", salted_password=b"p"
            )
            for name, kind, iterations in upserts
        ],
    )
    return {result.user: result.error_code for result in core.ask(request, 0).results}


def described(core: Core, *users: str) -> dict[str, tuple[int, list[tuple[int, int]]]]:
    asked = [UserName(name=user) for user in users] or None
    response = core.ask(DescribeUserScramCredentialsRequest(users=asked), 0)
    return {
        result.user: (
            result.error_code,
            [(info.mechanism, info.iterations) for info in result.credential_infos],
        )
        for result in response.results
    }


def test_users_are_made_described_and_deleted() -> None:
    core = Core(users={"ann": "secret"})
    assert altered(core, ("bob", 1, 4096), ("eve", 1, 4096)) == {"bob": 0, "eve": 0}
    assert altered(core, ("bob", 1, 9000), ("bob", 2, 8192)) == {"bob": ErrorCode.DUPLICATE_RESOURCE}
    assert altered(core, ("bob", 2, 8192)) == {"bob": 0}
    assert described(core) == {"bob": (0, [(1, 4096), (2, 8192)]), "eve": (0, [(1, 4096)])}
    assert described(core, "ann") == {"ann": (ErrorCode.RESOURCE_NOT_FOUND, [])}
    assert described(core, "bob", "bob")["bob"][0] == ErrorCode.DUPLICATE_RESOURCE
    assert altered(core, gone=(("bob", 1), ("eve", 2))) == {"bob": 0, "eve": ErrorCode.RESOURCE_NOT_FOUND}
    assert described(core) == {"bob": (0, [(2, 8192)]), "eve": (0, [(1, 4096)])}
    assert core.cluster.scram.find("ann", "SCRAM-SHA-256") is not None
    assert core.cluster.scram.find("carl", "SCRAM-SHA-256") is None


def test_bad_credentials_are_refused_and_change_nothing() -> None:
    core = Core()
    few, many = ("a", 1, 4095), ("b", 1, 16385)
    codes = altered(core, few, many, ("", 1, 4096), ("c", 9, 4096), ("d", 1, 4096), ("d", 1, 4096))
    bad = int(ErrorCode.UNACCEPTABLE_CREDENTIAL)
    assert codes == {
        "a": bad,
        "b": bad,
        "": bad,
        "c": ErrorCode.UNSUPPORTED_SASL_MECHANISM,
        "d": ErrorCode.DUPLICATE_RESOURCE,
    }
    assert described(core) == {}


# --- quotas ---


def quota(
    core: Core, entity: Mapping[str, str | None], validate_only: bool = False, **changes: float | None
) -> int:
    entry = AlterClientQuotasRequestEntryData(
        entity=[
            AlterClientQuotasRequestEntityData(entity_type=kind, entity_name=name)
            for kind, name in entity.items()
        ],
        ops=[OpData(key=key, value=value or 0, remove=value is None) for key, value in changes.items()],
    )
    request = AlterClientQuotasRequest(entries=[entry], validate_only=validate_only)
    (answer,) = core.ask(request, 1).entries
    return answer.error_code


def quotas(core: Core, *components: tuple[str, int, str | None], strict: bool = False) -> object:
    asked = [ComponentData(entity_type=kind, match_type=how, match=name) for kind, how, name in components]
    answer = core.ask(DescribeClientQuotasRequest(components=asked, strict=strict), 1)
    if answer.entries is None:
        return answer.error_code
    return [
        (
            {part.entity_type: part.entity_name for part in entry.entity},
            {value.key: value.value for value in entry.values},
        )
        for entry in answer.entries
    ]


def test_quotas_are_kept_and_described() -> None:
    core = Core()
    assert quota(core, {"user": "ann"}, producer_byte_rate=5.0, request_percentage=0.5) == 0
    assert quota(core, {"user": None, "client-id": "c"}, consumer_byte_rate=7.0) == 0
    assert quota(core, {"ip": "127.0.0.1"}, connection_creation_rate=1.0) == 0
    assert quota(core, {"user": "bob"}, validate_only=True, producer_byte_rate=5.0) == 0
    ann = ({"user": "ann"}, {"producer_byte_rate": 5.0, "request_percentage": 0.5})
    pair = ({"client-id": "c", "user": None}, {"consumer_byte_rate": 7.0})
    ip = ({"ip": "127.0.0.1"}, {"connection_creation_rate": 1.0})
    assert quotas(core) == [ann, pair, ip]
    assert quotas(core, ("user", 2, None)) == [ann, pair]
    assert quotas(core, ("user", 2, None), strict=True) == [ann]
    assert quotas(core, ("user", 0, "ann")) == [ann]
    assert quotas(core, ("user", 1, None)) == [pair]
    assert quota(core, {"user": "ann"}, producer_byte_rate=None, request_percentage=None) == 0
    assert quotas(core, ("user", 0, "ann")) == []


def test_bad_quotas_are_refused() -> None:
    core = Core()
    bad = int(ErrorCode.INVALID_REQUEST)
    entities: list[dict[str, str | None]] = [{}, {"user": ""}, {"user": "a", "ip": "b"}, {"group": "g"}]
    for entity in entities:
        assert quota(core, entity, producer_byte_rate=5.0) == bad
    assert quota(core, {"user": "a"}, connection_creation_rate=5.0) == bad
    for value in (0.5, -1.0, 0.0, float("nan"), float("inf")):
        assert quota(core, {"user": "a"}, producer_byte_rate=value) == bad
    assert quotas(core) == []
    for components in ((("user", 0, None),), (("user", 3, None),), (("user", 1, "a"),), (("", 2, None),)):
        assert quotas(core, *components) == bad
    assert quotas(core, ("user", 2, None), ("user", 2, None)) == bad
    assert quotas(core, ("user", 2, None), ("ip", 2, None)) == bad
    assert quotas(core, ("group", 2, None)) == ErrorCode.UNSUPPORTED_VERSION


# --- metrics ---


def test_no_metric_is_asked_for() -> None:
    core = Core()
    request = core.ask(GetTelemetrySubscriptionsRequest(client_instance_id=UUID(int=0)), 0)
    assert request.client_instance_id.int
    assert request.requested_metrics == []
    again = core.ask(GetTelemetrySubscriptionsRequest(client_instance_id=request.client_instance_id), 0)
    assert again == request

    def pushed(**fields: object) -> int:
        known = {"client_instance_id": request.client_instance_id, "subscription_id": request.subscription_id}
        return core.ask(PushTelemetryRequest(**known | fields), 0).error_code  # type: ignore[arg-type]

    assert pushed() == 0
    assert pushed(client_instance_id=UUID(int=0)) == ErrorCode.INVALID_REQUEST
    assert pushed(subscription_id=5) == ErrorCode.UNKNOWN_SUBSCRIPTION_ID
    assert pushed(metrics=bytes((1 << 20) + 1)) == ErrorCode.TELEMETRY_TOO_LARGE


_RULE: dict[str, Any] = {
    "resource_type": 2,
    "principal": "User:ann",
    "host": "*",
    "operation": 3,
    "permission_type": 3,
}
_FILTER: dict[str, Any] = {"resource_type_filter": 2, "operation": 1, "permission_type": 1}


@pytest.mark.parametrize("version", [1, 2, 3])
def test_without_an_authorizer_there_are_no_acls(version: int) -> None:
    core = Core()
    described = core.ask(DescribeAclsRequest(**_FILTER), version)
    assert (described.error_code, described.resources) == (ErrorCode.SECURITY_DISABLED, [])
    created = core.ask(CreateAclsRequest(creations=[AclCreation(**_RULE)] * 2), version)
    assert [result.error_code for result in created.results] == [ErrorCode.SECURITY_DISABLED] * 2
    deleted = core.ask(DeleteAclsRequest(filters=[DeleteAclsFilter(**_FILTER)] * 2), version)
    assert [result.error_code for result in deleted.filter_results] == [ErrorCode.SECURITY_DISABLED] * 2


@pytest.mark.parametrize("part", ["resource_type", "operation", "permission_type"])
def test_an_acl_with_an_unknown_part_is_not_a_request(part: str) -> None:
    in_filter = "resource_type_filter" if part == "resource_type" else part
    for request in (
        CreateAclsRequest(creations=[AclCreation(**_RULE | {part: 0})]),
        DescribeAclsRequest(**_FILTER | {in_filter: 0}),
        DeleteAclsRequest(filters=[DeleteAclsFilter(**_FILTER | {in_filter: 0})]),
    ):
        with pytest.raises(InvalidRequest, match="unknown parts"):
            Core().ask(request, 3)
