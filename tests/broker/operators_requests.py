"""Requests of operators' tools, a few of each API: what is there, and what is not."""

from __future__ import annotations

from uuid import UUID

from coordwire.codec import Message
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
    GetTelemetrySubscriptionsRequest,
    ListPartitionReassignmentsRequest,
    PushTelemetryRequest,
    UpdateFeaturesRequest,
)
from coordwire.messages.alter_client_quotas import (
    AlterClientQuotasRequestEntityData,
    AlterClientQuotasRequestEntryData,
    OpData,
)
from coordwire.messages.alter_partition_reassignments import ReassignablePartition, ReassignableTopic
from coordwire.messages.alter_replica_log_dirs import AlterReplicaLogDir, AlterReplicaLogDirTopic
from coordwire.messages.alter_user_scram_credentials import ScramCredentialDeletion
from coordwire.messages.create_acls import AclCreation
from coordwire.messages.delete_acls import DeleteAclsFilter
from coordwire.messages.describe_client_quotas import ComponentData
from coordwire.messages.describe_user_scram_credentials import UserName
from coordwire.messages.elect_leaders import TopicPartitions
from coordwire.messages.update_features import FeatureUpdateKey


def operators_requests(topic: str) -> list[Message]:
    entity = [AlterClientQuotasRequestEntityData(entity_type="user", entity_name="ann")]
    return [
        DescribeLogDirsRequest(topics=None),
        AlterReplicaLogDirsRequest(
            dirs=[
                AlterReplicaLogDir(
                    path=path, topics=[AlterReplicaLogDirTopic(name=topic, partitions=[0, 77])]
                )
                for path in ("/memory/node-1", "/elsewhere")
            ]
        ),
        DescribeQuorumRequest(topics=[]),
        ElectLeadersRequest(topic_partitions=[TopicPartitions(topic=topic, partitions=[0, 77])]),
        AlterPartitionReassignmentsRequest(
            topics=[
                ReassignableTopic(
                    name=topic,
                    partitions=[
                        ReassignablePartition(partition_index=0, replicas=[1]),
                        ReassignablePartition(partition_index=1, replicas=[7]),
                        ReassignablePartition(partition_index=77, replicas=None),
                    ],
                )
            ]
        ),
        ListPartitionReassignmentsRequest(topics=None),
        DescribeClientQuotasRequest(components=[ComponentData(entity_type="user", match_type=2)]),
        AlterClientQuotasRequest(
            entries=[
                AlterClientQuotasRequestEntryData(
                    entity=entity, ops=[OpData(key="producer_byte_rate", value=5.0)]
                )
            ]
        ),
        DescribeUserScramCredentialsRequest(users=[UserName(name="missing")]),
        AlterUserScramCredentialsRequest(deletions=[ScramCredentialDeletion(name="missing", mechanism=1)]),
        GetTelemetrySubscriptionsRequest(client_instance_id=UUID(int=5)),
        PushTelemetryRequest(client_instance_id=UUID(int=5), subscription_id=7),
        DescribeAclsRequest(resource_type_filter=2, operation=1, permission_type=1),
        CreateAclsRequest(
            creations=[
                AclCreation(
                    resource_type=2,
                    resource_name=topic,
                    principal="User:ann",
                    host="*",
                    operation=3,
                    permission_type=3,
                )
            ]
        ),
        DeleteAclsRequest(filters=[DeleteAclsFilter(resource_type_filter=2, operation=1, permission_type=1)]),
        UpdateFeaturesRequest(
            feature_updates=[FeatureUpdateKey(feature="transaction.version", max_version_level=2)]
        ),
    ]
