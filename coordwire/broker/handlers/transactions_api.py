"""Transactions: a producer's id, what is in its transaction, how it ends, and descriptions of transactions.

API keys and versions: InitProducerId 22 v0-5, AddPartitionsToTxn 24 v0-5, AddOffsetsToTxn 25 v0-4, EndTxn 26
v0-5, WriteTxnMarkers 27 v1-2, TxnOffsetCommit 28 v0-6, DescribeProducers 61 v0, DescribeTransactions 65 v0,
ListTransactions 66 v0-2.

Rules: the coordinator carries out operations; this module makes operations of requests in all versions, and
answers of outcomes. A client that does not know PRODUCER_FENCED gets INVALID_PRODUCER_EPOCH.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from coordwire.broker.cluster.promise import Promise
from coordwire.broker.cluster.topics import OFFSETS_TOPIC
from coordwire.broker.handlers.api_call import ApiCall, led_partition
from coordwire.broker.handlers.groups_api import groups
from coordwire.codec import Message
from coordwire.coordinator.refusal import translated
from coordwire.coordinator.topics import INTERNAL_TOPICS, bad_name
from coordwire.coordinator.transactions import Place, TransactionCoordinator, TransactionOutcome
from coordwire.enums import ErrorCode
from coordwire.messages import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    DescribeProducersRequest,
    DescribeProducersResponse,
    DescribeTransactionsResponse,
    EndTxnRequest,
    EndTxnResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
    ListTransactionsResponse,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from coordwire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)
from coordwire.messages.describe_producers import PartitionResponse, ProducerState, TopicResponse
from coordwire.messages.txn_offset_commit import (
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from coordwire.messages.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
)

_KNOWS_FENCED = 2
"""From this version of AddPartitionsToTxn, AddOffsetsToTxn and EndTxn on a client knows PRODUCER_FENCED."""

_INIT_KNOWS_FENCED = 4
_EPOCH_A_TRANSACTION = 5
"""The first version of EndTxn of a client that takes an epoch a transaction."""

_BY_BROKERS = 4
_ABORTABLE, _ADDED_BY_LEADER = 4, 5
"""Versions of TxnOffsetCommit, as those of Produce."""


def _code(outcome: TransactionOutcome, version: int, knows_fenced: int) -> int:
    fenced = outcome.error_code == ErrorCode.PRODUCER_FENCED and version < knows_fenced
    return int(ErrorCode.INVALID_PRODUCER_EPOCH) if fenced else outcome.error_code


# --- producers ---


async def init_producer_id(call: ApiCall) -> InitProducerIdResponse:
    request: InitProducerIdRequest = call.request
    name = request.transactional_id

    def refused(error: int) -> InitProducerIdResponse:
        return InitProducerIdResponse(error_code=int(error), producer_epoch=-1)

    if (request.producer_id == -1) != (request.producer_epoch == -1):
        return refused(ErrorCode.INVALID_REQUEST)
    if name is None:
        try:
            return InitProducerIdResponse(producer_id=call.cluster.new_producer_id(), producer_epoch=0)
        except OSError:
            return refused(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    expected = None if request.producer_id == -1 else (request.producer_id, request.producer_epoch)

    outcome = await call.cluster.transactions.submit(
        name,
        lambda coordinator: coordinator.init_producer_id(
            name,
            request.transaction_timeout_ms,
            expected=expected,
            two_phase=request.enable2_pc,
            keep_prepared=request.keep_prepared_txn,
        ),
        node=call.node,
    )
    return InitProducerIdResponse(
        error_code=_code(outcome, call.version, _INIT_KNOWS_FENCED),
        producer_id=outcome.producer_id,
        producer_epoch=outcome.producer_epoch,
    )


# --- what is in a transaction ---


async def add_partitions(call: ApiCall) -> AddPartitionsToTxnResponse:
    request: AddPartitionsToTxnRequest = call.request
    if call.version < _BY_BROKERS:
        transaction = AddPartitionsToTxnTransaction(
            transactional_id=request.v3_and_below_transactional_id,
            producer_id=request.v3_and_below_producer_id,
            producer_epoch=request.v3_and_below_producer_epoch,
            topics=request.v3_and_below_topics,
        )
        result = await _add(call, transaction)
        return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=result.topic_results)
    return AddPartitionsToTxnResponse(
        results_by_transaction=[await _add(call, transaction) for transaction in request.transactions]
    )


async def _add(call: ApiCall, transaction: AddPartitionsToTxnTransaction) -> AddPartitionsToTxnResult:
    name, producer = transaction.transactional_id, (transaction.producer_id, transaction.producer_epoch)
    places = frozenset((topic.name, index) for topic in transaction.topics for index in topic.partitions)
    missing = {place for place in places if call.cluster.partition(*place) is None}
    internal = {place for place in places - missing if place[0] in INTERNAL_TOPICS}

    def unknown(place: Place) -> int:
        if place in internal:
            return int(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        return int(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if place in missing else ErrorCode.OPERATION_NOT_ATTEMPTED
        )

    def operation(coordinator: TransactionCoordinator) -> int:
        if transaction.verify_only:
            return coordinator.verify_partitions(name, *producer, places)
        version = 2 if call.version >= _BY_BROKERS else 0
        return coordinator.add_partitions(name, *producer, places, version=version)

    if missing or internal:
        return _added(name, transaction.topics, unknown)
    outcome = await call.cluster.transactions.submit(name, operation, node=call.node)
    code = _code(outcome, call.version, _KNOWS_FENCED)
    return _added(name, transaction.topics, lambda place: code or outcome.places.get(place, 0))


def _added(
    name: str, topics: Iterable[AddPartitionsToTxnTopic], code: Callable[[Place], int]
) -> AddPartitionsToTxnResult:
    return AddPartitionsToTxnResult(
        transactional_id=name,
        topic_results=[
            AddPartitionsToTxnTopicResult(
                name=topic.name,
                results_by_partition=[
                    AddPartitionsToTxnPartitionResult(
                        partition_index=index, partition_error_code=code((topic.name, index))
                    )
                    for index in topic.partitions
                ],
            )
            for topic in topics
        ],
    )


async def add_offsets(call: ApiCall) -> AddOffsetsToTxnResponse:
    request: AddOffsetsToTxnRequest = call.request
    name = request.transactional_id
    try:
        place = (OFFSETS_TOPIC, call.cluster.groups.partition_of(request.group_id))
    except OSError:
        return AddOffsetsToTxnResponse(error_code=int(ErrorCode.COORDINATOR_NOT_AVAILABLE))

    outcome = await call.cluster.transactions.submit(
        name,
        lambda coordinator: coordinator.add_partitions(
            name, request.producer_id, request.producer_epoch, frozenset({place})
        ),
        node=call.node,
    )
    return AddOffsetsToTxnResponse(error_code=_code(outcome, call.version, _KNOWS_FENCED))


async def commit_offsets(call: ApiCall) -> Message:
    """TxnOffsetCommit: the partition of the group is in the transaction, then the group's coordinator."""
    request: TxnOffsetCommitRequest = call.request
    cluster = call.cluster
    error = ErrorCode.NONE
    if request.transactional_id and request.group_id:
        try:
            index = cluster.groups.partition_of(request.group_id)
        except OSError:
            return _refused_offsets(request, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        partition = cluster.offsets_topic().partitions[index]
        producers = partition.log.producers
        producer = (request.producer_id, request.producer_epoch)
        if partition.leader == call.node and producers.replaced(*producer):
            error = ErrorCode.INVALID_PRODUCER_EPOCH
        elif partition.leader == call.node and not producers.in_transaction(*producer):
            place = (OFFSETS_TOPIC, index)
            error = cluster.transactions.join(
                request.transactional_id,
                *producer,
                frozenset({place}),
                add=call.version >= _ADDED_BY_LEADER,
                abortable=call.version >= _ABORTABLE,
            )[place]
    if error:
        return _refused_offsets(request, ErrorCode(translated(error)))
    answer = groups(call)
    return answer if isinstance(answer, Message) else await answer


def _refused_offsets(request: TxnOffsetCommitRequest, error: ErrorCode) -> TxnOffsetCommitResponse:
    code = int(error)
    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    TxnOffsetCommitResponsePartition(
                        partition_index=partition.partition_index, error_code=code
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


# --- the end ---


async def end_transaction(call: ApiCall) -> EndTxnResponse:
    request: EndTxnRequest = call.request
    name = request.transactional_id
    outcome = await call.cluster.transactions.submit(
        name,
        lambda coordinator: coordinator.end(
            name,
            request.producer_id,
            request.producer_epoch,
            committed=request.committed,
            version=2 if call.version >= _EPOCH_A_TRANSACTION else 0,
        ),
        node=call.node,
    )
    return EndTxnResponse(
        error_code=_code(outcome, call.version, _KNOWS_FENCED),
        producer_id=outcome.producer_id,
        producer_epoch=outcome.producer_epoch,
    )


def write_markers(call: ApiCall) -> WriteTxnMarkersResponse:
    """WriteTxnMarkers: of a coordinator on another node, or of a tool that ends a hanging transaction."""
    request: WriteTxnMarkersRequest = call.request
    response = WriteTxnMarkersResponse(markers=[])
    for marker in request.markers:
        result = WritableTxnMarkerResult(producer_id=marker.producer_id, topics=[])
        for topic in marker.topics:
            topic_result = WritableTxnMarkerTopicResult(name=topic.name, partitions=[])
            for index in topic.partition_indexes:
                led = led_partition(call, topic.name, index)
                if marker.producer_epoch < 0:
                    led = ErrorCode.UNKNOWN_SERVER_ERROR
                error = int(led) if isinstance(led, ErrorCode) else call.cluster.transactions.write_marker(
                    (topic.name, index),
                    marker.producer_id,
                    marker.producer_epoch,
                    committed=marker.transaction_result,
                    coordinator_epoch=marker.coordinator_epoch,
                    version=marker.transaction_version,
                )  # fmt: skip
                topic_result.partitions.append(
                    WritableTxnMarkerPartitionResult(partition_index=index, error_code=error)
                )
            result.topics.append(topic_result)
        response.markers.append(result)
    return response


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
