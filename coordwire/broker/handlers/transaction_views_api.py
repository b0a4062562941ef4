"""Descriptions of transactions: DescribeTransactions, ListTransactions, DescribeProducers."""

from __future__ import annotations

from coordwire.broker.cluster.promise import Promise
from coordwire.broker.cluster.topics import bad_name
from coordwire.broker.handlers.api_call import ApiCall, led_partition
from coordwire.enums import ErrorCode
from coordwire.messages import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    DescribeTransactionsResponse,
    ListTransactionsResponse,
)
from coordwire.messages.describe_producers import PartitionResponse, ProducerState, TopicResponse

__all__ = ["describe_producers", "describe_transactions", "list_transactions"]

_TURN = 10_000
"""Work of a turn of matching a pattern with transactional ids, after which other requests are handled."""

_TEXTS = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "This server does not host this topic-partition.",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "Topic authorization failed.",
}


def describe_transactions(call: ApiCall) -> DescribeTransactionsResponse:
    return call.cluster.transactions.describe(call.node, call.request)


async def list_transactions(call: ApiCall) -> ListTransactionsResponse:
    listing = call.cluster.transactions.listing(call.node, call.request)
    listing.advance(_TURN)
    while not listing.is_done:
        await _other_requests(call)
        listing.advance(_TURN)
    return listing.response


async def _other_requests(call: ApiCall) -> None:
    """Let other requests be handled first."""
    cluster = call.cluster
    turn: Promise[None] = Promise()
    timer = f"list-transactions-{cluster.new_uuid()}"
    cluster.timers.set(timer, cluster.clock() + 1, lambda: turn.fulfil(None))
    try:
        await turn
    finally:
        cluster.timers.cancel(timer)


def describe_producers(call: ApiCall) -> DescribeProducersResponse:
    request: DescribeProducersRequest = call.request
    return DescribeProducersResponse(
        topics=[
            TopicResponse(
                name=topic.name,
                partitions=[_producers(call, topic.name, index) for index in topic.partition_indexes],
            )
            for topic in request.topics
        ]
    )


def _producers(call: ApiCall, topic: str, index: int) -> PartitionResponse:
    reason = bad_name(topic)
    if reason is not None:
        error = ErrorCode.INVALID_TOPIC_EXCEPTION
        return PartitionResponse(partition_index=index, error_code=int(error), error_message=reason)
    partition = led_partition(call, topic, index)
    if isinstance(partition, ErrorCode):
        return PartitionResponse(
            partition_index=index, error_code=int(partition), error_message=_TEXTS.get(partition)
        )
    return PartitionResponse(
        partition_index=index,
        active_producers=[
            ProducerState(
                producer_id=entry.producer_id,
                producer_epoch=entry.epoch,
                last_sequence=entry.last_sequence,
                last_timestamp=entry.timestamp,
                coordinator_epoch=entry.coordinator_epoch,
                current_txn_start_offset=entry.current_txn_first_offset,
            )
            for entry in partition.log.producers.entries()
        ],
    )
