"""Guards of transactions."""

from __future__ import annotations

from typing import Any

from coordwire.coordinator.apis.guards import (
    GuardedCall,
    Operation,
    Resource,
    Verdict,
    cluster_need,
    error_response,
)
from coordwire.enums import ErrorCode
from coordwire.messages import (
    AddPartitionsToTxnResponse,
    WriteTxnMarkersResponse,
)
from coordwire.messages import add_partitions_to_txn as to_transaction
from coordwire.messages.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
)


def init_producer_id_guard(call: GuardedCall) -> Verdict:
    request = call.request
    name, error = request.transactional_id, None
    if name is not None:
        if not call.allows(Operation.WRITE, Resource.TRANSACTIONAL_ID, name) or (
            request.enable2_pc
            and not call.allows(Operation.TWO_PHASE_COMMIT, Resource.TRANSACTIONAL_ID, name)
        ):
            error = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    elif not call.allows(Operation.IDEMPOTENT_WRITE, Resource.CLUSTER) and not call.allows_some(
        Operation.WRITE, Resource.TOPIC
    ):
        error = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    if error is None:
        return None
    response: Any = error_response(call, error)
    response.producer_id = response.producer_epoch = -1
    return response  # type: ignore[no-any-return]


_BY_BROKERS = 4


def add_partitions_guard(call: GuardedCall) -> Verdict:
    request = call.request
    if call.version >= _BY_BROKERS:
        need = cluster_need(Operation.CLUSTER_ACTION)
        error = need.refusal(call)
        return None if error is None else AddPartitionsToTxnResponse(error_code=int(error))
    topics = request.v3_and_below_topics
    codes = dict.fromkeys((topic.name for topic in topics), 0)
    if not call.allows(Operation.WRITE, Resource.TRANSACTIONAL_ID, request.v3_and_below_transactional_id):
        codes = dict.fromkeys(codes, int(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED))
    else:
        for name in codes:
            if not call.allows(Operation.WRITE, Resource.TOPIC, name):
                codes[name] = int(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    if not any(codes.values()):
        return None

    def code(name: str, index: int) -> int:
        missing = not call.topics.has(name, index)
        reason = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if missing else ErrorCode.OPERATION_NOT_ATTEMPTED
        return codes[name] or int(reason)

    return AddPartitionsToTxnResponse(
        results_by_topic_v3_and_below=[
            to_transaction.AddPartitionsToTxnTopicResult(
                name=topic.name,
                results_by_partition=[
                    to_transaction.AddPartitionsToTxnPartitionResult(
                        partition_index=index, partition_error_code=code(topic.name, index)
                    )
                    for index in topic.partitions
                ],
            )
            for topic in topics
        ]
    )


def describe_transactions_guard(call: GuardedCall) -> Verdict:
    def limit(response: Any) -> None:
        for state in response.transaction_states:
            state.topics = [
                topic
                for topic in state.topics
                if call.allows(Operation.DESCRIBE, Resource.TOPIC, topic.topic)
            ]

    return limit


def list_transactions_guard(call: GuardedCall) -> Verdict:
    def limit(response: Any) -> None:
        response.transaction_states = [
            state
            for state in response.transaction_states
            if call.allows(Operation.DESCRIBE, Resource.TRANSACTIONAL_ID, state.transactional_id)
        ]

    return limit


def write_markers_guard(call: GuardedCall) -> Verdict:
    if call.allows(Operation.CLUSTER_ACTION, Resource.CLUSTER) or call.allows(
        Operation.ALTER, Resource.CLUSTER
    ):
        return None
    code = int(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    return WriteTxnMarkersResponse(
        markers=[
            WritableTxnMarkerResult(
                producer_id=marker.producer_id,
                topics=[
                    WritableTxnMarkerTopicResult(
                        name=topic.name,
                        partitions=[
                            WritableTxnMarkerPartitionResult(partition_index=index, error_code=code)
                            for index in topic.partition_indexes
                        ],
                    )
                    for topic in marker.topics
                ],
            )
            for marker in call.request.markers
        ]
    )
