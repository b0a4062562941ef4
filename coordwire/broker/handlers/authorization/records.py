"""Guards of records: Produce, Fetch, OffsetForLeaderEpoch."""

from __future__ import annotations

from typing import Any

from coordwire.broker.handlers.api_call import ApiCall, Handler, HandlerResult
from coordwire.broker.handlers.authorization.guards import (
    Operation,
    Resource,
    element_guard,
    partition_guard,
    topic_name,
)
from coordwire.broker.log.validation import RefusedRecords, one_batch
from coordwire.enums import ErrorCode
from coordwire.messages import (
    ProduceResponse,
)
from coordwire.messages.produce import PartitionProduceResponse, TopicProduceResponse

__all__ = ["epoch_guard", "fetch_guard", "produce_guard"]


def produce_guard(call: ApiCall, handler: Handler) -> HandlerResult:
    request, code = call.request, int(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    name = request.transactional_id
    if (
        name is not None
        and not call.allows(Operation.WRITE, Resource.TRANSACTIONAL_ID, name)
        and _in_transaction(call)
    ):
        return ProduceResponse(responses=[_refused_produce(topic, code) for topic in request.topic_data])
    return _produce_to_topics(call, handler)


def _in_transaction(call: ApiCall) -> bool:
    """Whether a batch of a Produce request is part of a transaction."""
    for topic in call.request.topic_data:
        for part in topic.partition_data:
            try:
                if one_batch(part.records, call.version).transactional:
                    return True
            except RefusedRecords:
                continue
    return False


def _refused_produce(topic: Any, code: int) -> TopicProduceResponse:
    return TopicProduceResponse(
        name=topic.name,
        topic_id=topic.topic_id,
        partition_responses=[
            PartitionProduceResponse(index=part.index, error_code=code, base_offset=-1)
            for part in topic.partition_data
        ],
    )


_produce_to_topics = element_guard(
    "topic_data", Operation.WRITE, Resource.TOPIC, "responses", _refused_produce, topic_name
)


def fetch_guard(call: ApiCall, handler: Handler) -> HandlerResult:
    request = call.request
    replica = request.replica_id if call.version < _REPLICA_STATE else request.replica_state.replica_id
    if replica < 0:
        return partition_guard(Operation.READ)(call, handler)
    if not call.allows(Operation.CLUSTER_ACTION, Resource.CLUSTER):
        call.forbids = lambda topic: True
    return handler(call)


def epoch_guard(call: ApiCall, handler: Handler) -> HandlerResult:
    if call.allows(Operation.CLUSTER_ACTION, Resource.CLUSTER):
        return handler(call)
    return partition_guard(Operation.DESCRIBE)(call, handler)


_REPLICA_STATE = 15
