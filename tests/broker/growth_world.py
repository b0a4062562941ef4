"""A broker's cluster that has n of everything, and the names of what it has."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from coordwire.codec.fields import Field
from coordwire.coordinator import ConsumerGroupConfig, CoordinatorConfig
from coordwire.messages import (
    AddPartitionsToTxnRequest,
    AlterClientQuotasRequest,
    AlterUserScramCredentialsRequest,
    ConsumerGroupHeartbeatRequest,
    FetchRequest,
    IncrementalAlterConfigsRequest,
    InitProducerIdRequest,
    JoinGroupRequest,
    OffsetCommitRequest,
    ProduceRequest,
)
from coordwire.messages.add_partitions_to_txn import AddPartitionsToTxnTopic
from coordwire.messages.alter_client_quotas import (
    AlterClientQuotasRequestEntityData,
    AlterClientQuotasRequestEntryData,
    OpData,
)
from coordwire.messages.alter_user_scram_credentials import ScramCredentialUpsertion
from coordwire.messages.fetch import FetchPartition, FetchTopic
from coordwire.messages.incremental_alter_configs import AlterableConfig, AlterConfigsResource
from coordwire.messages.join_group import JoinGroupRequestProtocol
from coordwire.messages.offset_commit import OffsetCommitRequestPartition, OffsetCommitRequestTopic
from coordwire.messages.produce import PartitionProduceData, TopicProduceData
from tests.broker.core import Core, asked_of, batch
from tests.filled_requests import KEEP, OMIT, Path

NO_ID = UUID(int=0)


class World:
    """n topics and one of n partitions, orders; n groups with an offset, n members of the consumer group cg
    and of the classic group jg; n producers with transactional ids; n users, quotas, settings; n fetches that
    wait.

    api, large: the API that `value` is asked about, and the array of its request that has many elements.
    """

    def __init__(self, n: int) -> None:
        self.n = n
        self.api = ""
        self.last_member: Any = None
        self._joins: list[list[Any]] = []
        self.large: Path = ()
        self.core = core = Core(
            topics={"orders": n} | {self.name("t", number): 1 for number in range(n)},
            offsets_partitions=2,
            transactions_partitions=2,
            share_state_partitions=2,
            coordinator=CoordinatorConfig(consumer=ConsumerGroupConfig(assignment_interval_ms=0)),
        )
        self.cluster = core.cluster
        self.cluster.scram.find("", "SCRAM-SHA-256")
        for number in range(n):
            self._add(number)
        core.pass_time(10_000)

    def _add(self, number: int) -> None:
        """One more of each."""
        topic = self.name("t", number)
        partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
        committed = OffsetCommitRequestTopic(name=topic, partitions=[partition])
        self._ask(
            OffsetCommitRequest(group_id=self.name("g", number), topics=[committed]),
            9,
        )
        self.last_member = self._ask(
            ConsumerGroupHeartbeatRequest(
                group_id="cg", member_id=self.name("m", number), rebalance_timeout_ms=60_000,
                subscribed_topic_names=["orders"], topic_partitions=[],
            ),
            1,
        )  # fmt: skip
        join = JoinGroupRequest(
            group_id="jg", session_timeout_ms=300_000, rebalance_timeout_ms=300_000, protocol_type="consumer",
            group_instance_id=self.name("i", number),
            protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
        )  # fmt: skip
        self._joins.append(self.core.begin(join, 9)[0])
        name = self.name("x", number)
        producer: Any = self._ask(
            InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60_000), 4
        )
        self._ask(
            AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=name, v3_and_below_producer_id=producer.producer_id,
                v3_and_below_producer_epoch=producer.producer_epoch,
                v3_and_below_topics=[AddPartitionsToTxnTopic(name=topic, partitions=[0])],
            ),
            3,
        )  # fmt: skip
        records = batch(b"v", producer_id=producer.producer_id, producer_epoch=0, base_sequence=0)
        data = TopicProduceData(
            name="orders", partition_data=[PartitionProduceData(index=self.n - 1, records=records)]
        )
        self._ask(ProduceRequest(acks=1, topic_data=[data]), 12)
        self._ask(
            AlterUserScramCredentialsRequest(
                deletions=[],
                upsertions=[
                    ScramCredentialUpsertion(
                        name=self.name("u", number),
                        mechanism=1,
                        iterations=4_096,
                        salt=b"s",
                        salted_password=b"p",
                    )
                ],
            ),
            0,
        )
        entity = AlterClientQuotasRequestEntityData(entity_type="user", entity_name=self.name("u", number))
        self._ask(
            AlterClientQuotasRequest(
                entries=[
                    AlterClientQuotasRequestEntryData(
                        entity=[entity], ops=[OpData(key="request_percentage", value=1.0)]
                    )
                ]
            ),
            1,
        )
        for kind, owner, setting, value in (
            (32, self.name("g", number), "consumer.session.timeout.ms", "45000"),
            (4, "", self.name("n", number), "1"),
        ):
            configs = [AlterableConfig(name=setting, config_operation=0, value=value)]
            resource = AlterConfigsResource(resource_type=kind, resource_name=owner, configs=configs)
            self._ask(IncrementalAlterConfigsRequest(resources=[resource]), 1)
        waiting = FetchPartition(partition=0, partition_max_bytes=1 << 20)
        self.core.begin(
            FetchRequest(
                max_wait_ms=2**31 - 1, min_bytes=2**31 - 1, max_bytes=2**31 - 1,
                topics=[FetchTopic(topic=topic, partitions=[waiting])],
            ),
            12,
        )  # fmt: skip

    def _ask(self, request: Any, version: int) -> Any:
        return asked_of(self.cluster, request, version)

    # --- the names of what there is ---

    def name(self, kind: str, number: int) -> str:
        """All are of one length, and no two worlds share one, since hashes of names are cached."""
        return f"{kind}{self.n:03}{number:04}"

    def value(self, path: Path, field: Field, number: int) -> Any:
        """What a field of a request says that is about the number-th of n."""
        known = f"{self.api}:{'.'.join(path)}"
        if known not in _VALUES and field.entity == "topic_name":
            return self._topic(path, number)
        named = _VALUES.get(known, _VALUES.get(field.name))
        if named is not None:
            return named(self, number) if callable(named) else named
        if field.name == "topic_id":
            return self._topic_id(path, number)
        if field.entity in _ENTITIES:
            return _ENTITIES[field.entity](self, number)
        if field.name in ("partitions", "partition_indexes", "partition_index", "partition", "index"):
            return number if self.large in (path, path[:-1]) else 0
        if field.type == "string":
            return self.name("n", number) if field.array else KEEP
        if field.array:
            return number
        return KEEP

    def _topic(self, path: Path, number: int) -> str:
        """The topic that has n partitions where these are asked for."""
        return self.name("t", number) if path[:-1] == self.large or path == self.large else "orders"

    def joined(self, number: int) -> str:
        """The id of a member of jg."""
        ((answer,)) = self._joins[number]
        return str(answer.member_id)

    @property
    def leader(self) -> str:
        ((answer,)) = self._joins[0]
        return str(answer.leader)

    def is_last(self, number: int) -> bool:
        """Whether it is the last of n different ones: there is one of what is large itself."""
        return number == self.n - 1

    def _topic_id(self, path: Path, number: int) -> UUID:
        topic = self.cluster.topics.get(self._topic(path, number))
        return NO_ID if topic is None else topic.id


_ENTITIES: dict[str, Any] = {
    "group_id": lambda world, number: world.name("g", number),
    "transactional_id": lambda world, number: world.name("x", number),
    "producer_id": lambda world, number: number,
    "broker_id": lambda world, number: 1,
    "member_id": lambda world, number: world.name("m", number),
}

_VALUES: dict[str, Any] = {
    "METADATA:topics.topic_id": NO_ID,
    "DELETE_TOPICS:topics.topic_id": NO_ID,
    "CREATE_TOPICS:topics.name": lambda world, number: world.name("c", number),
    "CREATE_TOPICS:topics.configs.name": "retention.ms",
    "CREATE_TOPICS:topics.configs.value": "7",
    "SASL_HANDSHAKE:mechanism": "PLAIN",
    "operation": 3,
    "permission_type": 3,
    "resource_type_filter": 2,
    "principal": "User:u",
    "host": "*",
    "CREATE_PARTITIONS:topics.count": lambda world, number: {
        ("topics",): 2,
        ("topics", "assignments"): 2 * world.n,
    }.get(world.large, world.n + 1),
    "resource_type": lambda world, number: 4 if world.large[-1:] == ("configs",) else 2,
    "resource_name": lambda world, number: (
        "" if world.large[-1:] == ("configs",) else world.name("t", number)
    ),
    "ALTER_CONFIGS:resources.configs.name": lambda world, number: (
        world.name("n", number) if world.large[-1:] == ("configs",) else "retention.ms"
    ),
    "INCREMENTAL_ALTER_CONFIGS:resources.configs.name": lambda world, number: (
        world.name("n", number) if world.large[-1:] == ("configs",) else "retention.ms"
    ),
    "ALTER_CONFIGS:resources.configs.value": "7",
    "INCREMENTAL_ALTER_CONFIGS:resources.configs.value": "7",
    "INIT_PRODUCER_ID:producer_id": -1,
    "ALTER_CLIENT_QUOTAS:entries.ops.value": 1.0,
    "ALTER_USER_SCRAM_CREDENTIALS:upsertions.name": lambda world, number: world.name("v", number),
    "CONSUMER_GROUP_HEARTBEAT:group_id": "cg",
    "CONSUMER_GROUP_HEARTBEAT:topic_partitions": lambda world, number: (
        KEEP if "topic_partitions" in world.large else OMIT
    ),
    "CONSUMER_GROUP_HEARTBEAT:member_id": lambda world, number: (
        world.last_member.member_id if "topic_partitions" in world.large else "new"
    ),
    "CONSUMER_GROUP_HEARTBEAT:member_epoch": lambda world, number: (
        world.last_member.member_epoch if "topic_partitions" in world.large else 0
    ),
    "CONSUMER_GROUP_DESCRIBE:group_ids": lambda world, number: (
        "cg" if world.is_last(number) else world.name("g", number)
    ),
    "DESCRIBE_GROUPS:groups": lambda world, number: (
        "jg" if world.is_last(number) else world.name("g", number)
    ),
    "JOIN_GROUP:group_id": "jg",
    "JOIN_GROUP:member_id": "",
    "JOIN_GROUP:protocols.name": lambda world, number: (
        "range" if world.is_last(number) else world.name("p", number)
    ),
    "HEARTBEAT:group_id": "jg",
    "HEARTBEAT:member_id": lambda world, number: world.joined(number),
    "HEARTBEAT:generation_id": 1,
    "SYNC_GROUP:group_id": "jg",
    "SYNC_GROUP:member_id": lambda world, number: world.leader,
    "SYNC_GROUP:group_instance_id": KEEP,
    "SYNC_GROUP:assignments.member_id": lambda world, number: world.joined(number),
    "SYNC_GROUP:generation_id": 1,
    "LEAVE_GROUP:group_id": "jg",
    "LEAVE_GROUP:members.member_id": lambda world, number: world.joined(number),
    "acks": 1,
    "records": batch(b"v"),
    "session_timeout_ms": 30_000,
    "rebalance_timeout_ms": 30_000,
    "protocol_type": "consumer",
    "protocol_name": "range",
    "group_instance_id": lambda world, number: world.name("i", number),
    "max_wait_ms": 0,
    "partition_max_bytes": 100,
    "max_bytes": 1 << 20,
    "timestamp": 5,
    "replica_id": -1,
    "replication_factor": -1,
    "num_partitions": -1,
    "config_operation": 0,
    "configuration_keys": lambda world, number: world.name("n", number),
    "name": lambda world, number: world.name("u", number),
    "path": "/memory/node-1",
    "entity_type": "user",
    "entity_name": lambda world, number: world.name("u", number),
    "match_type": 2,
    "match": lambda world, number: None,
    "key": "request_percentage",
    "mechanism": 1,
    "iterations": 4_096,
    "election_type": 0,
    "client_software_name": "test",
    "client_software_version": "1",
    "transaction_timeout_ms": 60_000,
    "response_partition_limit": 2_000,
}
