"""Refusals of the cluster's administration: ACLs, log directories, elections, quotas, users."""

from __future__ import annotations

from typing import Any

from coordwire.broker.handlers.api_call import ApiCall
from coordwire.codec import Message
from coordwire.coordinator.apis.guards import TEXTS, error_response
from coordwire.enums import ErrorCode
from coordwire.messages import (
    AlterClientQuotasResponse,
    AlterReplicaLogDirsResponse,
    AlterUserScramCredentialsResponse,
    CreateAclsResponse,
    DeleteAclsResponse,
    ElectLeadersResponse,
)
from coordwire.messages.alter_client_quotas import (
    AlterClientQuotasResponseEntityData,
    AlterClientQuotasResponseEntryData,
)
from coordwire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirTopicResult,
)
from coordwire.messages.alter_user_scram_credentials import AlterUserScramCredentialsResult
from coordwire.messages.create_acls import AclCreationResult
from coordwire.messages.delete_acls import DeleteAclsFilterResult
from coordwire.messages.elect_leaders import PartitionResult, ReplicaElectionResult


def acl_creation_refusal(call: ApiCall, error: ErrorCode) -> Message:
    result = AclCreationResult(error_code=int(error), error_message=TEXTS[error])
    return CreateAclsResponse(results=[result for _ in call.request.creations])


def acl_deletion_refusal(call: ApiCall, error: ErrorCode) -> Message:
    result = DeleteAclsFilterResult(error_code=int(error), error_message=TEXTS[error], matching_acls=[])
    return DeleteAclsResponse(filter_results=[result for _ in call.request.filters])


def log_dir_refusal(call: ApiCall, error: ErrorCode) -> Message:
    topics: dict[str, list[int]] = {}
    for place in call.request.dirs:
        for topic in place.topics:
            topics.setdefault(topic.name, []).extend(topic.partitions)
    return AlterReplicaLogDirsResponse(
        results=[
            AlterReplicaLogDirTopicResult(
                topic_name=name,
                partitions=[
                    AlterReplicaLogDirPartitionResult(partition_index=index, error_code=int(error))
                    for index in indexes
                ],
            )
            for name, indexes in topics.items()
        ]
    )


def election_refusal(call: ApiCall, error: ErrorCode) -> Message:
    results = [
        ReplicaElectionResult(
            topic=topic.topic,
            partition_result=[
                PartitionResult(partition_id=index, error_code=int(error), error_message=TEXTS[error])
                for index in topic.partitions
            ],
        )
        for topic in call.request.topic_partitions or ()
    ]
    return ElectLeadersResponse(
        error_code=int(error) if call.version else 0, replica_election_results=results
    )


def quota_description_refusal(call: ApiCall, error: ErrorCode) -> Message:
    response: Any = error_response(call, error)
    response.entries = None
    return response  # type: ignore[no-any-return]


def quota_change_refusal(call: ApiCall, error: ErrorCode) -> Message:
    return AlterClientQuotasResponse(
        entries=[
            AlterClientQuotasResponseEntryData(
                error_code=int(error),
                error_message=TEXTS[error],
                entity=[
                    AlterClientQuotasResponseEntityData(
                        entity_type=part.entity_type, entity_name=part.entity_name
                    )
                    for part in entry.entity
                ],
            )
            for entry in call.request.entries
        ]
    )


def user_refusal(call: ApiCall, error: ErrorCode) -> Message:
    request = call.request
    return AlterUserScramCredentialsResponse(
        results=[
            AlterUserScramCredentialsResult(user=name, error_code=int(error), error_message=TEXTS[error])
            for name in dict.fromkeys(element.name for element in (*request.deletions, *request.upsertions))
        ]
    )
