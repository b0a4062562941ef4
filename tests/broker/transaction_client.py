"""A transactional producer on a cluster without sockets, and one request of each API of transactions."""

from __future__ import annotations

from typing import Any

from coordwire.broker.handlers import APIS
from coordwire.codec import Message
from coordwire.messages import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    DescribeProducersRequest,
    DescribeTransactionsRequest,
    EndTxnRequest,
    FetchRequest,
    InitProducerIdRequest,
    ListTransactionsRequest,
    OffsetFetchRequest,
    ProduceRequest,
    TxnOffsetCommitRequest,
    WriteTxnMarkersRequest,
    add_partitions_to_txn,
    describe_producers,
    fetch,
    offset_fetch,
    produce,
    txn_offset_commit,
    write_txn_markers,
)
from coordwire.records import batches
from coordwire.versions import ApiKey
from tests.broker.core import Core, batch


def transactional_requests(topic: str, group: str, version: int) -> list[Message]:
    """Requests with what is there and what is not."""
    names = [topic, "missing", ""]
    added_topics = [
        add_partitions_to_txn.AddPartitionsToTxnTopic(name=name, partitions=[0, 1]) for name in names
    ]
    added = (
        AddPartitionsToTxnRequest(
            v3_and_below_transactional_id="t",
            v3_and_below_producer_id=1,
            v3_and_below_producer_epoch=0,
            v3_and_below_topics=added_topics,
        )
        if version < 4
        else AddPartitionsToTxnRequest(
            transactions=[
                add_partitions_to_txn.AddPartitionsToTxnTransaction(
                    transactional_id=name,
                    producer_id=1,
                    producer_epoch=0,
                    verify_only=verify_only,
                    topics=topics,
                )
                for name, verify_only, topics in (
                    ("t", False, added_topics),
                    ("u", True, added_topics[:1]),
                    ("", False, []),
                )
            ]
        )
    )
    return [
        added,
        AddPartitionsToTxnRequest(),
        InitProducerIdRequest(transactional_id="t", transaction_timeout_ms=1_000),
        AddOffsetsToTxnRequest(transactional_id="t", producer_id=1, producer_epoch=0, group_id=group),
        EndTxnRequest(transactional_id="t", producer_id=1, producer_epoch=0, committed=True),
        EndTxnRequest(transactional_id="", producer_id=1, producer_epoch=0, committed=False),
        WriteTxnMarkersRequest(
            markers=[
                write_txn_markers.WritableTxnMarker(
                    producer_id=1,
                    producer_epoch=0,
                    transaction_result=result,
                    topics=[
                        write_txn_markers.WritableTxnMarkerTopic(name=name, partition_indexes=[0, 99])
                        for name in names
                    ],
                )
                for result in (False, True)
            ]
        ),
        TxnOffsetCommitRequest(
            transactional_id="t",
            group_id=group,
            producer_id=1,
            producer_epoch=0,
            topics=[
                txn_offset_commit.TxnOffsetCommitRequestTopic(
                    name=name,
                    partitions=[txn_offset_commit.TxnOffsetCommitRequestPartition(partition_index=0)],
                )
                for name in names
            ],
        ),
        DescribeProducersRequest(
            topics=[describe_producers.TopicRequest(name=name, partition_indexes=[0, 99]) for name in names]
        ),
        DescribeTransactionsRequest(transactional_ids=["t", ""]),
        ListTransactionsRequest(
            state_filters=["Empty", "Odd"], producer_id_filters=[1], duration_filter=1 if version else -1,
            transactional_id_pattern="(" if version > 1 else None,
        ),
    ]  # fmt: skip


class TransactionClient:
    """A producer. old: one that has no epoch a transaction, and adds partitions itself."""

    def __init__(self, core: Core, name: str = "t", *, old: bool = False, timeout: int = 60_000) -> None:
        self.core = core
        self.name = name
        self.old = old
        self.timeout = timeout
        self.producer_id, self.epoch = -1, -1
        self.sequences: dict[tuple[str, int], int] = {}

    def _last(self, key: ApiKey) -> int:
        return APIS[key].last

    def init(self) -> int:
        version = self._last(ApiKey.INIT_PRODUCER_ID)
        request = InitProducerIdRequest(transactional_id=self.name, transaction_timeout_ms=self.timeout)
        answer = self.core.ask(request, version)
        if not answer.error_code:
            self._is(answer.producer_id, answer.producer_epoch)
        return answer.error_code

    def _is(self, producer_id: int, epoch: int) -> None:
        self.producer_id, self.epoch = producer_id, epoch
        self.sequences.clear()

    def add(self, topic: str, index: int) -> int:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.name,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[
                add_partitions_to_txn.AddPartitionsToTxnTopic(name=topic, partitions=[index])
            ],
        )
        (result,) = self.core.ask(request, 3).results_by_topic_v3_and_below
        return result.results_by_partition[0].partition_error_code

    def produce(self, value: bytes, topic: str = "orders", index: int = 0, **options: Any) -> int:
        """Send a record; its error code."""
        sequence = self.sequences.get((topic, index), 0)
        data = batch(
            value,
            **{
                "producer_id": self.producer_id,
                "producer_epoch": self.epoch,
                "base_sequence": sequence,
                "transactional": True,
            }
            | options,
        )
        request = ProduceRequest(
            transactional_id=self.name,
            acks=-1,
            timeout_ms=1_000,
            topic_data=[
                produce.TopicProduceData(
                    name=topic, partition_data=[produce.PartitionProduceData(index=index, records=data)]
                )
            ],
        )
        (response,) = self.core.ask(request, 11 if self.old else 12).responses
        error: int = response.partition_responses[0].error_code
        if not error:
            self.sequences[topic, index] = sequence + 1
        return error

    def commit_offset(self, offset: int, group: str = "g", topic: str = "orders") -> int:
        if self.old:
            offsets_request = AddOffsetsToTxnRequest(
                transactional_id=self.name,
                producer_id=self.producer_id,
                producer_epoch=self.epoch,
                group_id=group,
            )
            error = self.core.ask(offsets_request, 4).error_code
            if error:
                return error
        request = TxnOffsetCommitRequest(
            transactional_id=self.name,
            group_id=group,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            topics=[
                txn_offset_commit.TxnOffsetCommitRequestTopic(
                    name=topic,
                    partitions=[
                        txn_offset_commit.TxnOffsetCommitRequestPartition(
                            partition_index=0, committed_offset=offset
                        )
                    ],
                )
            ],
        )
        (result,) = self.core.ask(request, 4 if self.old else 5).topics
        return result.partitions[0].error_code

    def end(self, committed: bool = True) -> int:
        request = EndTxnRequest(
            transactional_id=self.name,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            committed=committed,
        )
        answer = self.core.ask(request, 4 if self.old else 5)
        if not answer.error_code and not self.old:
            self._is(answer.producer_id, answer.producer_epoch)
        return answer.error_code


def read(core: Core, topic: str = "orders", index: int = 0) -> tuple[list[bytes | None], int]:
    """The committed records, as a client finds them with what a broker says is aborted; where they end."""
    request = FetchRequest(
        replica_id=-1, max_wait_ms=0, min_bytes=0, max_bytes=1 << 20, isolation_level=1,
        topics=[fetch.FetchTopic(
            topic=topic,
            partitions=[fetch.FetchPartition(
                partition=index, fetch_offset=0, partition_max_bytes=1 << 20, log_start_offset=-1)],
        )],
    )  # fmt: skip
    part = core.ask(request, 12).responses[0].partitions[0]
    assert not part.error_code
    aborted = sorted(
        (transaction.first_offset, transaction.producer_id) for transaction in part.aborted_transactions or []
    )
    current: set[int] = set()
    values: list[bytes | None] = []
    for record_batch in batches(part.records or b""):
        while aborted and aborted[0][0] <= record_batch.last_offset:
            current.add(aborted.pop(0)[1])
        if record_batch.is_control:
            current.discard(record_batch.producer_id)
        elif not (record_batch.transactional and record_batch.producer_id in current):
            values.extend(record.value for record in record_batch)
    return values, part.last_stable_offset


def committed_offset(core: Core, group: str = "g", *, stable: bool = False) -> tuple[int, int]:
    """A group's offset of orders-0, and the error code."""
    request = OffsetFetchRequest(
        group_id=group,
        topics=[offset_fetch.OffsetFetchRequestTopic(name="orders", partition_indexes=[0])],
        require_stable=stable,
    )
    partition = core.ask(request, 7).topics[0].partitions[0]
    return partition.committed_offset, partition.error_code
