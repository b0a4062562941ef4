"""Descriptions of transactions: DescribeTransactions, ListTransactions, DescribeProducers."""

from __future__ import annotations

from coordwire.broker.cluster.promise import Promise
from coordwire.broker.cluster.topics import bad_name
from coordwire.broker.handlers.api_call import ApiCall, led_partition
from coordwire.coordinator.refusal import OperationRefused
from coordwire.coordinator.transactions import TransactionalId
from coordwire.enums import ErrorCode, TransactionStatus
from coordwire.messages import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from coordwire.messages.describe_producers import PartitionResponse, ProducerState, TopicResponse
from coordwire.messages.describe_transactions import TopicData
from coordwire.messages.describe_transactions import TransactionState as DescribedTransaction
from coordwire.messages.list_transactions import TransactionState as ListedTransaction
from coordwire.patterns import InvalidPattern, PatternSelection, RegularExpression

__all__ = ["describe_producers", "describe_transactions", "list_transactions"]

_TURN = 10_000
"""Work of a turn of matching a pattern with transactional ids, after which other requests are handled."""

_NAMES = {
    TransactionStatus.EMPTY: "Empty",
    TransactionStatus.ONGOING: "Ongoing",
    TransactionStatus.PREPARE_COMMIT: "PrepareCommit",
    TransactionStatus.PREPARE_ABORT: "PrepareAbort",
    TransactionStatus.COMPLETE_COMMIT: "CompleteCommit",
    TransactionStatus.COMPLETE_ABORT: "CompleteAbort",
    TransactionStatus.DEAD: "Dead",
    TransactionStatus.PREPARE_EPOCH_FENCE: "PrepareEpochFence",
}

_TEXTS = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "This server does not host this topic-partition.",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "Topic authorization failed.",
}


def describe_transactions(call: ApiCall) -> DescribeTransactionsResponse:
    request: DescribeTransactionsRequest = call.request
    return DescribeTransactionsResponse(
        transaction_states=[_described(call, name) for name in request.transactional_ids]
    )


def _described(call: ApiCall, name: str) -> DescribedTransaction:
    try:
        shard = call.cluster.transactions.shard_of(name, call.node)
        if shard is None:
            raise OperationRefused(ErrorCode.NOT_COORDINATOR)
        facts = shard.facts(name)
    except OperationRefused as refusal:
        return DescribedTransaction(error_code=int(refusal.code), transactional_id=name)
    except OSError:
        error = ErrorCode.COORDINATOR_NOT_AVAILABLE
        return DescribedTransaction(error_code=int(error), transactional_id=name)
    topics: dict[str, TopicData] = {}
    for topic, index in sorted(facts.places):
        topics.setdefault(topic, TopicData(topic=topic, partitions=[])).partitions.append(index)
    return DescribedTransaction(
        transactional_id=name,
        transaction_state=_NAMES[facts.status],
        transaction_timeout_ms=facts.timeout_ms,
        transaction_start_time_ms=facts.start_time,
        producer_id=facts.producer_id,
        producer_epoch=facts.producer_epoch,
        topics=list(topics.values()),
    )


async def list_transactions(call: ApiCall) -> ListTransactionsResponse:
    request: ListTransactionsRequest = call.request
    statuses = {name: status for status, name in _NAMES.items()}
    states = {statuses[name] for name in request.state_filters if name in statuses}
    response = ListTransactionsResponse(
        unknown_state_filters=[name for name in request.state_filters if name not in statuses],
        transaction_states=[],
    )
    producer_ids = frozenset(request.producer_id_filters)
    pattern: RegularExpression | None = None
    if request.transactional_id_pattern:
        try:
            pattern = RegularExpression(request.transactional_id_pattern)
        except InvalidPattern:
            response.error_code = int(ErrorCode.INVALID_REGULAR_EXPRESSION)
            return response

    now, least = call.cluster.clock(), request.duration_filter
    transactions: dict[str, ListedTransaction] = {}

    def is_wanted(transaction: TransactionalId) -> bool:
        facts = transaction.facts
        return (
            facts.status is not TransactionStatus.DEAD
            and (not producer_ids or facts.producer_id in producer_ids)
            and (not request.state_filters or facts.status in states)
            and (least < 0 or now - facts.start_time > least)
        )

    for shard in call.cluster.transactions.shards(call.node):
        for element in filter(is_wanted, shard.ids.values()):
            transactions[element.name] = ListedTransaction(
                transactional_id=element.name,
                producer_id=element.facts.producer_id,
                transaction_state=_NAMES[element.facts.status],
            )
    if pattern is None:
        response.transaction_states = list(transactions.values())
        return response
    selection = PatternSelection(pattern, transactions)
    selection.advance(_TURN)
    while not selection.is_done:
        await _other_requests(call)
        selection.advance(_TURN)
    response.transaction_states = [transactions[name] for name in selection.names]
    return response


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
