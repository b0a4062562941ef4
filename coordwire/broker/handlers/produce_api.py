"""Produce: record batches to the ends of logs.

API keys and versions: Produce 0 v3-13.

Rules: each partition has its own outcome. As all replicas share a log, acks 1 and all (-1) are answered at
once; acks 0 is not answered, and an error closes the connection, as it does on a Kafka broker.
"""

from __future__ import annotations

from typing import TypeAlias
from uuid import UUID

from coordwire.broker.cluster.topics import ClusterPartition, ClusterTopic
from coordwire.broker.handlers.api_call import ApiCall, led_partition
from coordwire.broker.log.validation import RefusedRecords, one_batch
from coordwire.coordinator.transactions import Place
from coordwire.enums import ErrorCode
from coordwire.messages import ProduceRequest, ProduceResponse
from coordwire.messages.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceData,
    PartitionProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from coordwire.records import RecordBatch

_TOPIC_IDS = 13
_ABORTABLE, _ADDED_BY_LEADER = 11, 12
"""Versions from which on a client knows TRANSACTION_ABORTABLE, and leaves AddPartitionsToTxn to leaders."""

Joined: TypeAlias = dict[tuple[Place, tuple[int, int]], ErrorCode]
"""The transaction coordinator's answer by partition, producer id and epoch."""

_NOT_VERIFIED = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR,
)  # fmt: skip
"""What a producer cannot know, which gets an error that makes it try again."""

_NOT_ADDED = "Partition was not added to the transaction"
_NO_LOG_START = frozenset(
    {ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.CORRUPT_MESSAGE, ErrorCode.KAFKA_STORAGE_ERROR}
)
"""Errors of a log beside which Kafka does not say where it begins."""

_ADMIN = "__admin_client"
"""The client id with which Kafka's own tools may write to internal topics."""


def produce(call: ApiCall) -> ProduceResponse:
    request: ProduceRequest = call.request
    response = ProduceResponse(responses=[])
    if request.transactional_id is None and has_transactional(call):
        return _refused(request, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    joined = _join(call, request) if request.transactional_id else {}
    for data in request.topic_data:
        answer = TopicProduceResponse(name=data.name, topic_id=data.topic_id, partition_responses=[])
        topic = _topic(call, data)
        for part in {partition_data.index: partition_data for partition_data in data.partition_data}.values():
            answer.partition_responses.append(_partition(call, request, topic, part, response, joined))
        if answer.partition_responses:
            response.responses.append(answer)
    return response


def has_transactional(call: ApiCall) -> bool:
    """Whether a batch of a Produce request is part of a transaction."""
    for data in call.request.topic_data:
        for part in data.partition_data:
            try:
                if one_batch(part.records, call.version).transactional:
                    return True
            except RefusedRecords:
                continue
    return False


def _refused(request: ProduceRequest, error: ErrorCode) -> ProduceResponse:
    """An error for each partition."""
    return ProduceResponse(
        responses=[
            TopicProduceResponse(
                name=data.name,
                topic_id=data.topic_id,
                partition_responses=[
                    PartitionProduceResponse(index=part.index, error_code=int(error), base_offset=-1)
                    for part in data.partition_data
                ],
            )
            for data in request.topic_data
        ]
    )


def has_error(response: ProduceResponse) -> bool:
    """Whether a partition was refused."""
    return any(part.error_code for topic in response.responses for part in topic.partition_responses)


def _topic(call: ApiCall, data: TopicProduceData) -> ClusterTopic | ErrorCode:
    if call.version >= _TOPIC_IDS:
        topic_id: UUID = data.topic_id
        return call.cluster.topics_by_id.get(topic_id) or ErrorCode.UNKNOWN_TOPIC_ID
    return call.cluster.topics.get(data.name) or ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _partition(
    call: ApiCall,
    request: ProduceRequest,
    topic: ClusterTopic | ErrorCode,
    part: PartitionProduceData,
    response: ProduceResponse,
    joined: Joined,
) -> PartitionProduceResponse:
    answer = PartitionProduceResponse(index=part.index, base_offset=-1)
    start = begins = -1
    try:
        if request.acks not in (-1, 0, 1):
            raise RefusedRecords(ErrorCode.INVALID_REQUIRED_ACKS)
        if isinstance(topic, ErrorCode):
            raise RefusedRecords(topic)
        if topic.is_internal and call.client_id != _ADMIN:
            raise RefusedRecords(
                ErrorCode.INVALID_TOPIC_EXCEPTION, f"clients may not write to the internal topic {topic.name}"
            )
        partition = led_partition(call, topic.name, part.index)
        if isinstance(partition, ErrorCode):
            if partition is ErrorCode.NOT_LEADER_OR_FOLLOWER:
                _name_leader(call, topic, answer, response)
            raise RefusedRecords(partition)
        begins = partition.log.start_offset
        if request.acks == -1:
            call.cluster.replication.check_in_sync(partition)
        batch = one_batch(part.records, call.version)
        if batch.transactional:
            _check_transaction(call, partition, batch, joined)
        start = begins
        appended = partition.log.append(batch, topic.rules, call.cluster.clock())
        if appended.missing_library is not None:
            call.cluster.stored_unread(appended.missing_library)
    except RefusedRecords as refusal:
        answer.error_code = refusal.code
        answer.error_message = refusal.message
        if refusal.code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
            answer.log_start_offset = begins
        elif refusal.code not in _NO_LOG_START:
            answer.log_start_offset = start
        answer.record_errors = [
            BatchIndexAndErrorMessage(batch_index=index, batch_index_error_message=message)
            for index, message in refusal.records
        ]
        return answer
    answer.base_offset = appended.base_offset
    answer.log_append_time_ms = appended.append_time
    answer.log_start_offset = partition.log.start_offset
    return answer


def _join(call: ApiCall, request: ProduceRequest) -> Joined:
    """Ask once for all partitions of the request that begin a transaction of their producer (KIP-890).

    Rule: a producer that the partition knows in a newer epoch is refused without the coordinator.
    """
    errors_by_place: Joined = {}
    by_producer: dict[tuple[int, int], list[Place]] = {}
    for data in request.topic_data:
        topic = _topic(call, data)
        for part in data.partition_data if not isinstance(topic, ErrorCode) else ():
            partition = led_partition(call, topic.name, part.index)
            try:
                batch = one_batch(part.records, call.version)
            except RefusedRecords:
                continue
            if isinstance(partition, ErrorCode) or not batch.transactional:
                continue
            producer = (batch.producer_id, batch.producer_epoch)
            place = (topic.name, part.index)
            if partition.log.producers.replaced(*producer):
                errors_by_place[place, producer] = ErrorCode.INVALID_PRODUCER_EPOCH
            elif not partition.log.producers.in_transaction(*producer):
                by_producer.setdefault(producer, []).append(place)
    for producer, places in by_producer.items():
        errors = call.cluster.transactions.join(
            request.transactional_id or "",
            *producer,
            frozenset(places),
            add=call.version >= _ADDED_BY_LEADER,
            abortable=call.version >= _ABORTABLE,
        )
        errors_by_place |= {(place, producer): error for place, error in errors.items()}
    return errors_by_place


def _check_transaction(
    call: ApiCall, partition: ClusterPartition, batch: RecordBatch, joined: Joined
) -> None:
    """Ensure that the partition is in the producer's transaction. Raises `RefusedRecords`."""
    producers, producer_id, epoch = partition.log.producers, batch.producer_id, batch.producer_epoch
    if producers.in_transaction(producer_id, epoch):
        return
    place = (partition.topic, partition.index)
    error = joined.get((place, (producer_id, epoch)), ErrorCode.INVALID_TXN_STATE)
    by_leader = call.version >= _ADDED_BY_LEADER
    if error in _NOT_VERIFIED or (error is ErrorCode.CONCURRENT_TRANSACTIONS and not by_leader):
        raise RefusedRecords(
            ErrorCode.NOT_ENOUGH_REPLICAS,
            f"the transaction of the partition cannot be verified: {error.name}",
        )
    if error:
        producer = f"producer {producer_id} with epoch {epoch}"
        not_added = error is ErrorCode.INVALID_TXN_STATE and not by_leader
        reason = _NOT_ADDED if not_added else f"the partition is not in a transaction of {producer}"
        raise RefusedRecords(error, reason)
    if by_leader and batch.base_sequence and not producers.knows(producer_id):
        raise RefusedRecords(
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
            f"producer {producer_id} begins with sequence {batch.base_sequence} instead of 0",
        )


def _name_leader(
    call: ApiCall, topic: ClusterTopic, answer: PartitionProduceResponse, response: ProduceResponse
) -> None:
    """Name the leader of the partition in the answer (KIP-951)."""
    partition = topic.partitions[answer.index]
    answer.current_leader = LeaderIdAndEpoch(leader_id=partition.leader, leader_epoch=partition.leader_epoch)
    node = call.cluster.nodes.get(partition.leader)
    if node is not None and all(
        node_endpoint.node_id != node.id for node_endpoint in response.node_endpoints
    ):
        response.node_endpoints = [
            *response.node_endpoints,
            NodeEndpoint(node_id=node.id, host=node.host, port=node.port, rack=node.rack),
        ]
