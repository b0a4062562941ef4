"""What writes while the broker is killed: an idempotent producer, one with transactions, a committer.

Rule: each keeps what was acknowledged, and what may be there though it was not.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

from coordwire.enums import ErrorCode
from coordwire.messages import (
    EndTxnRequest,
    InitProducerIdRequest,
    OffsetCommitRequest,
    ProduceRequest,
    TxnOffsetCommitRequest,
)
from coordwire.messages.offset_commit import OffsetCommitRequestPartition, OffsetCommitRequestTopic
from coordwire.messages.produce import PartitionProduceData, TopicProduceData
from coordwire.messages.txn_offset_commit import TxnOffsetCommitRequestPartition, TxnOffsetCommitRequestTopic
from coordwire.records import Record, encode_batch
from tests.broker.kills.repeating_link import (
    COMMITTED,
    LEDGER,
    PARTITIONS,
    READ,
    TOPIC,
    Link,
    Wrong,
    again,
    committed,
    expect,
)


def batch_of(values: list[bytes], **options: Any) -> bytes:
    now = int(time.time() * 1000)
    records = [Record(timestamp=now, value=value) for value in values]
    return encode_batch(records, base_offset=0, **options)


def produce_request(
    topic: str, partition: int, data: bytes, transactional_id: str | None = None
) -> ProduceRequest:
    part = PartitionProduceData(index=partition, records=data)
    topics = [TopicProduceData(name=topic, partition_data=[part])]
    return ProduceRequest(acks=-1, timeout_ms=9_000, topic_data=topics, transactional_id=transactional_id)


class Producer:
    """An idempotent producer: each value until it is acknowledged. acknowledged: value to place."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self.acknowledged: dict[bytes, tuple[int, int]] = {}
        self.open: dict[bytes, int] = {}
        """Values of the batch that has no answer yet, with their partition."""

    async def run(self) -> None:
        link = self._link
        given = await link.ask(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000), 5)
        expect("InitProducerId", given.error_code)
        sequences = [0] * PARTITIONS
        number = 0
        while True:
            partition = number % PARTITIONS
            values = [b"%d-%d" % (number, part) for part in range(1 + number % 4)]
            number += 1
            data = batch_of(
                values,
                producer_id=given.producer_id,
                producer_epoch=given.producer_epoch,
                base_sequence=sequences[partition],
            )
            self.open = dict.fromkeys(values, partition)
            answer = await link.ask(produce_request(TOPIC, partition, data), 9)
            part = answer.responses[0].partition_responses[0]
            expect("Produce", part.error_code)
            for at, value in enumerate(values):
                self.acknowledged[value] = partition, part.base_offset + at
            self.open = {}
            sequences[partition] += len(values)


class Ledger:
    """Transactions of records and an offset. committed, aborted: what was answered; unknown: what was not."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self.committed: list[int] = []
        self.aborted: list[int] = []
        self.unknown: list[int] = []

    async def run(self) -> None:
        number = 0
        while True:
            given: Any = None

            async def begin() -> int:
                nonlocal given
                request = InitProducerIdRequest(transactional_id="ledger", transaction_timeout_ms=60_000)
                given = await self._link.ask(request, 5)
                return int(given.error_code)

            await again(begin, "InitProducerId", ErrorCode.CONCURRENT_TRANSACTIONS)
            transaction: dict[str, Any] = {
                "producer_id": given.producer_id,
                "producer_epoch": given.producer_epoch,
            }
            sequence = 0
            while True:
                self._link.check()
                number += 1
                self.unknown.append(number)
                try:
                    transaction = await self._transaction(number, transaction, sequence)
                except OSError:
                    break  # what became of it is seen when it is read
                self.unknown.pop()
                (self.committed if number % 4 else self.aborted).append(number)
                sequence = 0

    async def _transaction(self, number: int, who: dict[str, Any], sequence: int) -> dict[str, Any]:
        link, commit = self._link, bool(number % 4)
        values = [b"%d" % number]
        for partition in range(PARTITIONS):
            data = batch_of(values, base_sequence=sequence, transactional=True, **who)
            request = produce_request(LEDGER, partition, data, "ledger")

            async def produce(request: ProduceRequest = request) -> int:
                answer = await link.once(request, 12)
                return int(answer.responses[0].partition_responses[0].error_code)

            await again(produce, "Produce", ErrorCode.CONCURRENT_TRANSACTIONS)
        part = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=number)
        offsets = TxnOffsetCommitRequest(
            transactional_id="ledger", group_id=READ, **who,
            topics=[TxnOffsetCommitRequestTopic(name=LEDGER, partitions=[part])],
        )  # fmt: skip
        answer = await link.once(offsets, 5)
        expect("TxnOffsetCommit", answer.topics[0].partitions[0].error_code)
        end = await link.once(EndTxnRequest(transactional_id="ledger", committed=commit, **who), 5)
        expect("EndTxn", end.error_code)
        return {"producer_id": end.producer_id, "producer_epoch": end.producer_epoch}


class Committer:
    """It commits larger and larger offsets. acknowledged, sent: the last of them."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self.acknowledged = 0
        self.sent = 0

    async def run(self) -> None:
        while True:
            least = self.acknowledged
            result = await committed(self._link, COMMITTED, TOPIC)
            if not least <= max(result, 0) <= self.sent:
                raise Wrong(f"committed offset {result}, expected {least} to {self.sent}")
            for _ in range(20):
                self.sent += 1
                part = OffsetCommitRequestPartition(committed_offset=self.sent)
                topics = [OffsetCommitRequestTopic(name=TOPIC, partitions=[part])]
                request = OffsetCommitRequest(group_id=COMMITTED, topics=topics)
                answer = await self._link.ask(request, 8)
                expect("OffsetCommit", answer.topics[0].partitions[0].error_code)
                self.acknowledged = self.sent
                await asyncio.sleep(0.001)
