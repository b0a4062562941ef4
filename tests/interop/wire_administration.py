"""What is asked of a real broker besides its coordinators: records, topics, settings, access, the cluster
itself, and what brokers and controllers say to each other.

Strategy: as `wire_scenarios`, in rounds, one version of each API a round. `administer` asks the broker's
listener, `govern` the controller's, `authenticate` one with SASL. What would end the broker (a vote that it
loses, its own removal) is asked with an epoch, an id or a cluster that is not its own.

Rules: as there. An answer to a broker that is not there is an error, and kept as what it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from coordwire.records import Record, encode_batch
from coordwire.sasl import PlainCredentials
from tests.interop.wire_rounds import Round

ADMINISTERING_ROUNDS = 19
"""As many as the longest of these APIs (Fetch) has versions."""

Values = dict[str, Any]
"""A request or a part of it, by the names of its fields."""

USER, PASSWORD = "alice", "alice-secret"
"""Who authenticates at the listener with SASL."""

_TIME = 1_700_000_000_000
_TIMEOUT_MS = 10_000
_TOPIC, _GROUP, _CLUSTER, _BROKER = 2, 3, 4, 4
"""Types of resources: a topic's is 2; in ACLs a group's 3 and the cluster's 4; in settings a broker's 4."""
_LITERAL, _ANY, _READ, _ALLOW = 3, 1, 3, 3
_SCRAM_SHA_256 = 1
_OTHER_BROKERS = 70
"""From this id on brokers are registered that are never there, one a round."""

_METADATA = "__cluster_metadata"
_ELSEWHERE = UUID(int=1009)
"""An id that is nobody's; those below 100 are Kafka's own."""


@dataclass(frozen=True, slots=True)
class Place:
    """What requests have to name. topic_id: None before there were ids; cluster_id: None before version 2 of
    Metadata; features: what a broker of the release supports."""

    topic: str
    topic_id: UUID | None
    cluster_id: str | None
    features: list[Values]


def administer(play: Round, place: Place) -> None:
    """All that clients and, with ZooKeeper, brokers ask a broker."""
    _records(play, place)
    _cluster(play, place)
    _topics(play)
    _settings(play, place)
    _access(play)
    _replicas(play, place)
    _controller(play, place)


# --- records ------------------------------------------------------------------------------------------------


def _records(play: Round, place: Place) -> None:
    version = play.version("Produce")
    at = _TIME if version > 1 else -1
    batch = encode_batch(
        [Record(key=b"k", value=b"%d" % n, timestamp=at) for n in (0, 1)],
        base_offset=0, magic=2 if version >= 3 else 1 if version == 2 else 0,
    )  # fmt: skip
    partition: Values = {"index": 0, "records": batch}
    topic: Values = {"name": place.topic, "topic_id": place.topic_id, "partition_data": [partition]}
    missing: Values = {"name": "missing", "topic_id": _ELSEWHERE, "partition_data": [partition]}
    producing: Values = {"transactional_id": None, "acks": -1, "timeout_ms": _TIMEOUT_MS}
    if version >= 3 or play.first("Fetch") == 0:  # Kafka 4 lists the others, and ends the connection
        play.ask("Produce", topic_data=[topic], **producing)
        play.ask("Produce", topic_data=[topic, missing], **producing)
    _fetch(play, place)
    listing: Values = {"replica_id": -1, "isolation_level": 0, "timeout_ms": _TIMEOUT_MS}
    asked = [
        {"partition_index": 0, "current_leader_epoch": -1, "timestamp": at, "max_num_offsets": 2}
        for at in (-1, -2, _TIME)
    ]
    for kind, part in zip(("latest", "earliest", "by time"), asked, strict=True):
        play.ask("ListOffsets", topics=[{"name": place.topic, "partitions": [part]}], kind=kind, **listing)
    absent: Values = {"name": "missing", "partitions": asked[:1]}
    play.ask("ListOffsets", topics=[absent], **listing)
    epoch: Values = {"partition": 0, "current_leader_epoch": -1, "leader_epoch": 0}
    asking: Values = {"topic": place.topic, "partitions": [epoch]}
    play.ask("OffsetForLeaderEpoch", replica_id=-1, topics=[asking])
    play.ask("OffsetForLeaderEpoch", replica_id=-1, topics=[asking | {"topic": "missing"}])
    cut: Values = {"partition_index": 0, "offset": 1}
    play.ask("DeleteRecords", topics=[{"name": place.topic, "partitions": [cut]}], timeout_ms=_TIMEOUT_MS)
    beyond: Values = {"partition_index": 0, "offset": 1 << 40}
    play.ask("DeleteRecords", topics=[{"name": place.topic, "partitions": [beyond]}], timeout_ms=_TIMEOUT_MS)


def _fetch(play: Round, place: Place) -> None:
    fetching: Values = {
        "replica_id": -1, "max_wait_ms": 100, "min_bytes": 1, "max_bytes": 1 << 12, "isolation_level": 1,
        "session_id": 0, "session_epoch": -1, "forgotten_topics_data": [], "rack_id": "rack",
    }  # fmt: skip
    partition: Values = {
        "partition": 0, "current_leader_epoch": -1, "fetch_offset": 1 if play.number else 0,
        "last_fetched_epoch": -1, "log_start_offset": -1, "partition_max_bytes": 200,
    }  # fmt: skip
    topic: Values = {"topic": place.topic, "topic_id": place.topic_id, "partitions": [partition]}
    play.ask("Fetch", topics=[topic], **fetching)
    beyond = topic | {"partitions": [partition | {"fetch_offset": 1 << 40}]}
    play.ask("Fetch", topics=[beyond], **fetching)
    missing = topic | {"topic": "missing", "topic_id": _ELSEWHERE}
    play.ask("Fetch", topics=[missing], **fetching)
    if play.version("Fetch") >= 7:
        opened = play.ask("Fetch", kind="opening", topics=[topic], **fetching | {"session_epoch": 0})
        going_on = fetching | {"session_id": opened.session_id, "session_epoch": 1}
        forgotten: Values = {"topic": place.topic, "topic_id": place.topic_id, "partitions": [0]}
        play.ask("Fetch", kind="forgetting", topics=[], **going_on | {"forgotten_topics_data": [forgotten]})
        play.ask("Fetch", topics=[], **fetching | {"session_id": 1 << 20, "session_epoch": 5})


# --- the cluster --------------------------------------------------------------------------------------------


def _cluster(play: Round, place: Place) -> None:
    operations: Values = {
        "include_cluster_authorized_operations": True, "include_topic_authorized_operations": True,
    }  # fmt: skip
    named: Values = {"topic_id": UUID(int=0), "name": place.topic}
    play.ask("Metadata", topics=[named], **operations)
    if play.version("Metadata") >= 4:  # the others would make it
        play.ask("Metadata", topics=[named | {"name": "missing"}], allow_auto_topic_creation=False)
    if play.version("Metadata") >= 1:
        play.ask("Metadata", topics=[], kind="no topics")
    version = play.version("ApiVersions")
    software: Values = {"client_software_name": "coordwire", "client_software_version": "1"}
    if version < 5:
        play.ask("ApiVersions", **software)
    else:
        play.ask("ApiVersions", **software, cluster_id=place.cluster_id, node_id=1)
        play.ask("ApiVersions", **software, cluster_id="elsewhere", node_id=99)
    play.ask("DescribeCluster", include_cluster_authorized_operations=True, endpoint_type=1)
    play.ask("DescribeCluster", endpoint_type=2)
    partition: Values = {"partition_index": 0}
    play.ask("DescribeQuorum", topics=[{"topic_name": _METADATA, "partitions": [partition]}])
    play.ask("DescribeQuorum", topics=[{"topic_name": place.topic, "partitions": [partition]}])
    play.ask(
        "DescribeTopicPartitions", topics=[{"name": place.topic}], response_partition_limit=1, cursor=None
    )
    cursor: Values = {"topic_name": place.topic, "partition_index": 1}
    play.ask(
        "DescribeTopicPartitions", topics=[{"name": place.topic}, {"name": "zzz"}], cursor=cursor,
        response_partition_limit=10,
    )  # fmt: skip
    play.ask("ListConfigResources", resource_types=[])
    play.ask("ListConfigResources", resource_types=[_TOPIC, 99])
    if play.version("GetTelemetrySubscriptions") >= 0:
        told = play.ask("GetTelemetrySubscriptions", client_instance_id=UUID(int=0))
        pushing: Values = {
            "subscription_id": told.subscription_id, "terminating": False, "compression_type": 0,
            "metrics": b"",
        }  # fmt: skip
        play.ask("PushTelemetry", client_instance_id=told.client_instance_id, **pushing)
        play.ask("PushTelemetry", client_instance_id=_ELSEWHERE, **pushing)


# --- topics -------------------------------------------------------------------------------------------------


def _topics(play: Round) -> None:
    name = play.name("made")
    config: Values = {"name": "cleanup.policy", "value": "compact"}
    topic: Values = {"name": name, "num_partitions": 1, "replication_factor": 1, "configs": [config]}
    placed: Values = {
        "name": play.name("placed"), "num_partitions": -1, "replication_factor": -1,
        "assignments": [{"partition_index": 0, "broker_ids": [1]}],
    }  # fmt: skip
    creating: Values = {"timeout_ms": _TIMEOUT_MS, "validate_only": False}
    play.ask("CreateTopics", topics=[topic, placed], **creating)
    play.ask("CreateTopics", topics=[topic], **creating)
    play.ask("CreateTopics", topics=[topic | {"name": "a/b"}], **creating | {"validate_only": True})
    growing: Values = {"timeout_ms": _TIMEOUT_MS, "validate_only": False}
    more: Values = {"name": name, "count": 2, "assignments": [{"broker_ids": [1]}]}
    play.ask("CreatePartitions", topics=[more], **growing)
    play.ask("CreatePartitions", topics=[more, more | {"name": "missing"}], **growing)
    flat: Values = {"topic_names": [name, "missing"], "timeout_ms": _TIMEOUT_MS}
    both: list[Values] = [{"name": name}, {"name": "missing"}]
    if play.version("DeleteTopics") >= 6:
        both.append({"name": None, "topic_id": _ELSEWHERE})
    play.ask("DeleteTopics", topics=both, **flat)
    play.ask("DeleteTopics", topics=[{"name": placed["name"]}], **flat | {"topic_names": [placed["name"]]})


def _no_error_in(name: str) -> Any:
    return lambda answer: all(result.error_code == 0 for result in getattr(answer, name))


# --- settings -----------------------------------------------------------------------------------------------


def _settings(play: Round, place: Place) -> None:
    topic: Values = {"resource_type": _TOPIC, "resource_name": place.topic}
    broker: Values = {"resource_type": _BROKER, "resource_name": "1"}
    missing: Values = {"resource_type": _TOPIC, "resource_name": "missing"}
    details: Values = {"include_synonyms": True, "include_documentation": True}
    play.ask("DescribeConfigs", resources=[topic | {"configuration_keys": ["cleanup.policy"]}], **details)
    play.ask(
        "DescribeConfigs", kind="broker", **details,
        resources=[broker | {"configuration_keys": ["num.partitions", "log.retention.ms"]}],
    )  # fmt: skip
    play.ask("DescribeConfigs", resources=[missing | {"configuration_keys": None}])
    retention: Values = {"name": "retention.ms", "value": "86400000"}
    play.ask("AlterConfigs", resources=[topic | {"configs": [retention]}])
    wrong = [topic | {"configs": [retention | {"value": "never"}]}]
    play.ask("AlterConfigs", resources=wrong, validate_only=True)
    adding = retention | {"config_operation": 0}
    play.ask("IncrementalAlterConfigs", resources=[topic | {"configs": [adding]}])
    deleting = topic | {"configs": [adding | {"config_operation": 1, "value": None}]}
    play.ask("IncrementalAlterConfigs", resources=[deleting], kind="deleted")
    play.ask("IncrementalAlterConfigs", resources=[topic | {"configs": [adding | {"value": "never"}]}])
    user: Values = {"entity_type": "user", "entity_name": play.name("user")}
    rate: Values = {"key": "producer_byte_rate", "value": 1000.0, "remove": False}
    play.ask("AlterClientQuotas", entries=[{"entity": [user], "ops": [rate]}])
    play.ask("AlterClientQuotas", entries=[{"entity": [user], "ops": [rate | {"key": "unheard"}]}])
    match: Values = {"entity_type": "user", "match_type": 0, "match": play.name("user")}
    play.ask_until(lambda answer: bool(answer.entries), "DescribeClientQuotas", components=[match])
    play.ask("DescribeClientQuotas", components=[match | {"entity_type": "unheard"}], strict=True)
    removed = [{"entity": [user], "ops": [rate | {"remove": True}]}]
    play.ask("AlterClientQuotas", entries=removed, kind="removed")
    feature: Values = {"feature": "unheard", "max_version_level": 1, "upgrade_type": 1}
    play.ask("UpdateFeatures", timeout_ms=_TIMEOUT_MS, feature_updates=[feature])
    if play.version("UpdateFeatures") >= 1:
        play.ask("UpdateFeatures", timeout_ms=_TIMEOUT_MS, feature_updates=[], validate_only=True)


# --- access -------------------------------------------------------------------------------------------------


def _access(play: Round) -> None:
    user = f"User:{play.name('user')}"
    acl: Values = {
        "resource_type": _TOPIC, "resource_name": "wire", "resource_pattern_type": _LITERAL,
        "principal": user, "host": "*", "operation": _READ, "permission_type": _ALLOW,
    }  # fmt: skip
    play.ask("CreateAcls", creations=[acl])
    play.ask("CreateAcls", creations=[acl, acl | {"resource_type": _CLUSTER}])
    wanted: Values = {
        "resource_type_filter": _TOPIC, "resource_name_filter": "wire", "pattern_type_filter": _LITERAL,
        "principal_filter": user, "host_filter": None, "operation": _ANY, "permission_type": _ANY,
    }  # fmt: skip
    play.ask_until(lambda answer: bool(answer.resources or answer.error_code), "DescribeAcls", **wanted)
    play.ask("DescribeAcls", **wanted | {"principal_filter": "User:nobody"}, kind="nothing")
    play.ask("DeleteAcls", filters=[wanted])
    play.ask("DeleteAcls", filters=[wanted | {"resource_type_filter": _GROUP}], kind="nothing")
    name = play.name("user")
    credential: Values = {
        "name": name, "mechanism": _SCRAM_SHA_256, "iterations": 4096, "salt": b"salt",
        "salted_password": b"salted",
    }  # fmt: skip
    play.ask("AlterUserScramCredentials", deletions=[], upsertions=[credential])
    play.ask_until(_no_error_in("results"), "DescribeUserScramCredentials", users=[{"name": name}])
    play.ask("DescribeUserScramCredentials", users=[{"name": "nobody"}])
    deletion: Values = {"name": name, "mechanism": _SCRAM_SHA_256}
    play.ask("AlterUserScramCredentials", deletions=[deletion], upsertions=[], kind="deleted")
    play.ask("AlterUserScramCredentials", deletions=[deletion | {"name": "nobody"}], upsertions=[])
    if play.version("CreateDelegationToken") >= 0:
        _tokens(play)


def _tokens(play: Round) -> None:
    """Without SASL nobody gets one."""
    renewer: Values = {"principal_type": "User", "principal_name": "bob"}
    made = play.ask("CreateDelegationToken", renewers=[renewer], max_lifetime_ms=1 << 40)
    if made.hmac:
        renewing: Values = {"hmac": made.hmac, "renew_period_ms": 1 << 30}
        play.ask_until(lambda answer: not answer.error_code, "RenewDelegationToken", **renewing)
    play.ask("RenewDelegationToken", hmac=b"nobody's", renew_period_ms=1 << 30)
    owner: Values = {"principal_type": "User", "principal_name": USER}
    play.ask("DescribeDelegationToken", owners=[owner])
    play.ask("ExpireDelegationToken", hmac=made.hmac, expiry_time_period_ms=-1)
    play.ask("ExpireDelegationToken", hmac=b"nobody's", expiry_time_period_ms=-1)


def authenticate(play: Round) -> None:
    """At a listener with SASL: a user who is known, and one who is not; then what only the known may do."""
    play.ask("SaslHandshake", play.another_link(), mechanism="UNHEARD")
    play.ask("SaslHandshake", play.another_link(), mechanism="PLAIN")
    for link, password in ((play.another_link(), "wrong"), (play.link, PASSWORD)):
        play.ask("SaslHandshake", link, at=play.last("SaslHandshake"), mechanism="PLAIN")
        play.ask("SaslAuthenticate", link, auth_bytes=PlainCredentials(user=USER, password=password).encode())
    _tokens(play)


# --- replicas -----------------------------------------------------------------------------------------------


def _replicas(play: Round, place: Place) -> None:
    logs = play.ask("DescribeLogDirs", topics=[{"topic": place.topic, "partitions": [0]}])
    play.ask("DescribeLogDirs", topics=[], kind="no topics")
    if logs is not None:
        topics = [{"name": place.topic, "partitions": [0]}]
        play.ask("AlterReplicaLogDirs", dirs=[{"path": logs.results[0].log_dir, "topics": topics}])
        play.ask("AlterReplicaLogDirs", dirs=[{"path": "/nowhere", "topics": topics}])
    partitions: Values = {"topic": place.topic, "partitions": [0]}
    play.ask("ElectLeaders", election_type=0, topic_partitions=[partitions], timeout_ms=_TIMEOUT_MS)
    missing = [partitions | {"topic": "missing"}]
    play.ask("ElectLeaders", election_type=1, topic_partitions=missing, timeout_ms=_TIMEOUT_MS)
    moving: Values = {"timeout_ms": _TIMEOUT_MS, "allow_replication_factor_change": True}
    here: Values = {"partition_index": 0, "replicas": [1]}
    play.ask("AlterPartitionReassignments", topics=[{"name": place.topic, "partitions": [here]}], **moving)
    cancelled = [{"name": place.topic, "partitions": [here | {"replicas": None}]}]
    play.ask("AlterPartitionReassignments", topics=cancelled, **moving)
    play.ask("ListPartitionReassignments", timeout_ms=_TIMEOUT_MS, topics=None)
    named = [{"name": place.topic, "partition_indexes": [0]}]
    play.ask("ListPartitionReassignments", timeout_ms=_TIMEOUT_MS, topics=named, kind="one topic")


def _controller(play: Round, place: Place) -> None:
    """What the controller of ZooKeeper's time tells a broker, and brokers the controller."""
    for epoch in (1, 0):
        told: Values = {
            "controller_id": 1, "is_k_raft_controller": False, "controller_epoch": epoch, "broker_epoch": -1,
        }  # fmt: skip
        play.ask(
            "LeaderAndIsr", type=0, ungrouped_partition_states=[], topic_states=[],
            live_leaders=[{"broker_id": 1, "host_name": "127.0.0.1", "port": 1}], **told,
        )  # fmt: skip
        none: Values = {"topic_name": "missing", "partition_index": 0}
        state: Values = {"partition_index": 0, "leader_epoch": 0, "delete_partition": False}
        play.ask(
            "StopReplica", delete_partitions=False, ungrouped_partitions=[none],
            topics=[{"name": "missing", "partition_indexes": [0]}],
            topic_states=[{"topic_name": "missing", "partition_states": [state]}], **told,
        )  # fmt: skip
    endpoint: Values = {"port": 1, "host": "127.0.0.1", "listener": "PLAINTEXT", "security_protocol": 0}
    live: Values = {"id": 1, "v0_host": "127.0.0.1", "v0_port": 1, "endpoints": [endpoint], "rack": None}
    for epoch in (0, 1):
        play.ask(
            "UpdateMetadata", controller_id=1, controller_epoch=epoch, broker_epoch=-1, live_brokers=[live],
            ungrouped_partition_states=[], topic_states=[],
        )  # fmt: skip
    if play.version("LeaderAndIsr") >= 0:
        play.ask("ControlledShutdown", broker_id=99, broker_epoch=-1)
        _alter_partition(play, place, broker_id=1, broker_epoch=1 << 40)
    play.ask("UnregisterBroker", broker_id=99)
    voter: Values = {"cluster_id": place.cluster_id, "voter_id": 99, "voter_directory_id": _ELSEWHERE}
    listener: Values = {"name": "CONTROLLER", "host": "127.0.0.1", "port": 1}
    play.ask("AddRaftVoter", timeout_ms=100, listeners=[listener], **voter)
    play.ask("AddRaftVoter", timeout_ms=100, listeners=[listener], **voter | {"cluster_id": "elsewhere"})
    play.ask("RemoveRaftVoter", **voter)
    play.ask("UnregisterController", controller_id=99)


# --- the controller's listener ------------------------------------------------------------------------------


def govern(play: Round, place: Place, snapshot: tuple[int, int]) -> None:
    """What brokers and other controllers ask the controller. snapshot: one that it has, by end offset and
    epoch."""
    quorum = play.ask(
        "DescribeQuorum", kind="", at=play.last("DescribeQuorum"),
        topics=[{"topic_name": _METADATA, "partitions": [{"partition_index": 0}]}],
    )  # fmt: skip
    epoch: int = quorum.topics[0].partitions[0].leader_epoch
    _quorum(play, place, epoch)
    _snapshots(play, place, epoch, snapshot)
    _broker(play, place)


def _quorum(play: Round, place: Place, epoch: int) -> None:
    for cluster_id in (place.cluster_id, "elsewhere"):
        of: Values = {"cluster_id": cluster_id}
        vote: Values = {
            "partition_index": 0, "replica_epoch": epoch, "replica_id": 99,
            "replica_directory_id": _ELSEWHERE, "voter_directory_id": UUID(int=0),
            "last_offset_epoch": 0, "last_offset": 0, "pre_vote": False,
        }  # fmt: skip
        play.ask("Vote", voter_id=1, topics=[{"topic_name": _METADATA, "partitions": [vote]}], **of)
        named: Values = {"name": "CONTROLLER", "host": "127.0.0.1", "port": 1}
        leader: Values = {
            "partition_index": 0, "voter_directory_id": UUID(int=0), "leader_id": 99, "leader_epoch": 0,
            "preferred_successors": [1],
        }  # fmt: skip
        topics: list[Values] = [{"topic_name": _METADATA, "partitions": [leader]}]
        begun = [{**topics[0], "partitions": [_without(leader, "preferred_successors")]}]
        ended = [{**topics[0], "partitions": [_without(leader, "voter_directory_id")]}]
        play.ask("BeginQuorumEpoch", voter_id=1, topics=begun, leader_endpoints=[named], **of)
        play.ask("EndQuorumEpoch", topics=ended, leader_endpoints=[named], **of)
        moved: Values = {"voter_id": 99, "voter_directory_id": _ELSEWHERE, "listeners": [named]}
        feature: Values = {"min_supported_version": 0, "max_supported_version": 1}
        play.ask("UpdateRaftVoter", current_leader_epoch=epoch, k_raft_version_feature=feature, **moved, **of)


def _snapshots(play: Round, place: Place, epoch: int, snapshot: tuple[int, int]) -> None:
    """A part of a snapshot; and one that is not there, which Kafka can't tell (UNKNOWN_SERVER_ERROR)."""
    for end_offset in (snapshot[0], 1 << 40):
        partition: Values = {
            "partition": 0, "current_leader_epoch": epoch, "position": 0,
            "snapshot_id": {"end_offset": end_offset, "epoch": snapshot[1]},
        }  # fmt: skip
        topic: Values = {"name": _METADATA, "partitions": [partition]}
        play.ask("FetchSnapshot", cluster_id=place.cluster_id, replica_id=99, max_bytes=500, topics=[topic])


def _without(values: Mapping[str, Any], name: str) -> Values:
    return {key: value for key, value in values.items() if key != name}


def _broker(play: Round, place: Place) -> None:
    """A broker that registers, and never is ready."""
    broker_id = _OTHER_BROKERS + play.number
    directory = UUID(int=(1 << 100) + broker_id)
    listener: Values = {"name": "PLAINTEXT", "host": "127.0.0.1", "port": 1, "security_protocol": 0}
    registering: Values = {
        "broker_id": broker_id, "cluster_id": place.cluster_id,
        "incarnation_id": UUID(int=2000 + play.number),
        "listeners": [listener], "features": place.features, "rack": "rack", "log_dirs": [directory],
    }  # fmt: skip
    play.ask("BrokerRegistration", **registering)
    play.ask("BrokerRegistration", **registering | {"cluster_id": "elsewhere"})
    registered = play.ask("BrokerRegistration", kind="", at=play.last("BrokerRegistration"), **registering)
    beating: Values = {
        "broker_id": broker_id, "broker_epoch": registered.broker_epoch, "current_metadata_offset": 0,
        "want_fence": True, "want_shut_down": False,
    }  # fmt: skip
    play.ask("BrokerHeartbeat", **beating)
    play.ask("BrokerHeartbeat", **beating | {"broker_epoch": 1 << 40})
    placed: Values = {"topic_id": place.topic_id, "partitions": [{"partition_index": 0}]}
    directories = [{"id": directory, "topics": [placed]}]
    for epoch in (registered.broker_epoch, 1 << 40):
        of: Values = {"broker_id": broker_id, "broker_epoch": epoch}
        play.ask("AssignReplicasToDirs", directories=directories, **of)
        _alter_partition(play, place, **of)
    controller: Values = {
        "controller_id": 99, "incarnation_id": UUID(int=3000), "zk_migration_ready": False,
        "listeners": [listener | {"name": "CONTROLLER"}], "features": place.features,
    }  # fmt: skip
    play.ask("ControllerRegistration", **controller)
    play.ask("Envelope", request_data=b"", request_principal=None, client_host_address=b"\x7f\0\0\1")
    play.ask("ControlledShutdown", broker_id=broker_id, broker_epoch=registered.broker_epoch)


def _alter_partition(play: Round, place: Place, **of: Any) -> None:
    isr: Values = {
        "partition_index": 0, "leader_epoch": 0, "new_isr": [1], "partition_epoch": 0,
        "new_isr_with_epochs": [{"broker_id": 1, "broker_epoch": -1}], "leader_recovery_state": 0,
    }  # fmt: skip
    topic: Values = {"topic_name": place.topic, "topic_id": place.topic_id, "partitions": [isr]}
    play.ask("AlterPartition", topics=[topic], **of)
