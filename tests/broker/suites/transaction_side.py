"""One of two brokers that get the same transactional requests, with its producer ids by their order."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict
from types import TracebackType
from typing import Any, NamedTuple, Self

from coordwire.codec import Request
from coordwire.coordinator.hash_tables import java_hash
from coordwire.enums import ErrorCode
from coordwire.logs import open_log_record
from coordwire.messages import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    CreateTopicsRequest,
    DescribeTransactionsRequest,
    EndTxnRequest,
    FetchRequest,
    FindCoordinatorRequest,
    InitProducerIdRequest,
    OffsetFetchRequest,
    ProduceRequest,
    TransactionLogKey,
    TransactionLogValue,
    TxnOffsetCommitRequest,
)
from coordwire.messages.add_partitions_to_txn import AddPartitionsToTxnTopic
from coordwire.messages.create_topics import CreatableTopic
from coordwire.messages.fetch import FetchPartition, FetchTopic
from coordwire.messages.offset_fetch import OffsetFetchRequestGroup
from coordwire.messages.produce import PartitionProduceData, TopicProduceData
from coordwire.messages.txn_offset_commit import TxnOffsetCommitRequestPartition, TxnOffsetCommitRequestTopic
from coordwire.records import Record, batches, encode_batch
from tests.broker.blocking_peer import BlockingPeer
from tests.broker.kills.killing import read_logs

GROUP = "group"
PARTITIONS = 3
_GROUPS, _TRANSACTIONS = 0, 1
_STATE, _STATE_PARTITIONS = "__transaction_state", 50
_WAIT = 20
_AGAIN = {
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.NOT_ENOUGH_REPLICAS,
}


class Producer(NamedTuple):
    """A producer: the number of its id among those that were given, -1 for none, and its epoch."""

    number: int
    epoch: int


class TransactionSide:
    """A connection to a broker."""

    def __init__(self, bootstrap: str) -> None:
        self._peer = BlockingPeer(bootstrap)
        self._numbers: dict[int, int] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._peer.socket.close()

    # --- producer ids ---

    def _producer(self, real: int, epoch: int) -> Producer:
        return Producer(self._number(real), epoch)

    def _number(self, real: int) -> int:
        return -1 if real < 0 else self._numbers.setdefault(real, len(self._numbers))

    def _who(self, who: Producer) -> dict[str, Any]:
        """The fields of a request that name a producer."""
        real = -1
        if who.number >= 0:
            real = next(one for one, number in self._numbers.items() if number == who.number)
        return {"producer_id": real, "producer_epoch": who.epoch}

    # --- requests ---

    def begin(self, topic: str, ids: list[str], group: str) -> None:
        """Make a topic, and let the coordinators be found, which makes their topics."""
        for kind, keys in ((_GROUPS, [group]), (_TRANSACTIONS, ids)):
            request = FindCoordinatorRequest(key_type=kind, coordinator_keys=keys)
            self._settled(
                request, 4, lambda one: [coordinator.error_code for coordinator in one.coordinators]
            )
        expected = CreatableTopic(name=topic, num_partitions=PARTITIONS, replication_factor=1)
        answer = self._peer.ask(CreateTopicsRequest(topics=[expected], timeout_ms=10_000), 5)
        assert answer.topics[0].error_code == 0, answer

    def init(self, name: str, who: Producer, timeout_ms: int, version: int) -> dict[str, Any]:
        request = InitProducerIdRequest(
            transactional_id=name, transaction_timeout_ms=timeout_ms, **self._who(who)
        )
        answer = self._settled(request, version, lambda one: [one.error_code])
        self._completed([name])
        given = None if answer.error_code else self._producer(answer.producer_id, answer.producer_epoch)
        return {"errors": [answer.error_code], "producer": given}

    def produce(
        self, name: str, who: Producer, topic: str, partition: int, sequence: int, value: bytes, version: int
    ) -> dict[str, Any]:
        record = Record(timestamp=int(time.time() * 1000), value=value)
        data = encode_batch(
            [record], base_offset=0, base_sequence=sequence, transactional=True, **self._who(who)
        )
        part = PartitionProduceData(index=partition, records=data)
        topics = [TopicProduceData(name=topic, partition_data=[part])]
        request = ProduceRequest(acks=-1, timeout_ms=9_000, topic_data=topics, transactional_id=name)
        answer = self._settled(
            request, version, lambda one: [one.responses[0].partition_responses[0].error_code]
        )
        return {"errors": [answer.responses[0].partition_responses[0].error_code]}

    def add(
        self, name: str, who: Producer, topic: str, partitions: list[int], version: int
    ) -> dict[str, Any]:
        named = self._who(who)
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=name,
            v3_and_below_producer_id=named["producer_id"],
            v3_and_below_producer_epoch=named["producer_epoch"],
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=topic, partitions=partitions)],
        )

        def errors(answer: Any) -> list[int]:
            parts = answer.results_by_topic_v3_and_below[0].results_by_partition
            return [part.partition_error_code for part in sorted(parts, key=lambda one: one.partition_index)]

        return {"errors": errors(self._settled(request, version, errors))}

    def add_offsets(self, name: str, who: Producer, group: str, version: int) -> dict[str, Any]:
        request = AddOffsetsToTxnRequest(transactional_id=name, group_id=group, **self._who(who))
        answer = self._settled(request, version, lambda one: [one.error_code])
        return {"errors": [answer.error_code]}

    def commit(
        self, name: str, who: Producer, group: str, topic: str, partition: int, offset: int, version: int
    ) -> dict[str, Any]:
        part = TxnOffsetCommitRequestPartition(partition_index=partition, committed_offset=offset)
        request = TxnOffsetCommitRequest(
            transactional_id=name, group_id=group, **self._who(who),
            topics=[TxnOffsetCommitRequestTopic(name=topic, partitions=[part])],
        )  # fmt: skip
        answer = self._settled(request, version, lambda one: [one.topics[0].partitions[0].error_code])
        return {"errors": [answer.topics[0].partitions[0].error_code]}

    def end(self, name: str, who: Producer, committed: bool, version: int) -> dict[str, Any]:
        request = EndTxnRequest(transactional_id=name, committed=committed, **self._who(who))
        answer = self._settled(request, version, lambda one: [one.error_code])
        self._completed([name])
        producer = self._producer(answer.producer_id, answer.producer_epoch)
        return {"errors": [answer.error_code], "producer": producer if producer.number >= 0 else None}

    def _settled(self, request: Request[Any], version: int, errors: Callable[[Any], Iterable[int]]) -> Any:
        """The answer, once it is none that a client repeats."""
        deadline = time.monotonic() + _WAIT
        while True:
            answer = self._peer.ask(request, version)
            again = _AGAIN.intersection(errors(answer))
            if not again:
                return answer
            assert time.monotonic() < deadline, f"{again} for {_WAIT} s: {request}"
            time.sleep(0.01)

    # --- what is left ---

    def transactions(self, topic: str, ids: list[str], group: str) -> list[Any]:
        """What is said of each id."""
        answer = self._completed(ids)
        return [
            (
                transaction_state.error_code,
                transaction_state.transactional_id,
                transaction_state.transaction_state,
                transaction_state.transaction_timeout_ms,
                self._producer(transaction_state.producer_id, transaction_state.producer_epoch),
                sorted((topic.topic, sorted(topic.partitions)) for topic in transaction_state.topics),
            )
            for transaction_state in sorted(answer.transaction_states, key=lambda one: one.transactional_id)
        ]

    def _completed(self, ids: list[str]) -> Any:
        """The described transactions, once no markers are to be written: until its marker comes, a leader
        takes more records into a transaction that has ended."""
        deadline = time.monotonic() + _WAIT
        while True:
            answer = self._peer.ask(DescribeTransactionsRequest(transactional_ids=ids), 0)
            if not any(
                transaction_state.transaction_state.startswith("Prepare")
                for transaction_state in answer.transaction_states
            ):
                return answer
            assert time.monotonic() < deadline, answer
            time.sleep(0.01)

    def values(self, topic: str, ids: list[str], group: str) -> list[list[bytes]]:
        """What a reader of committed records gets."""
        result = asyncio.run(read_logs(_Asked(self._peer), topic, committed_only=True))  # type: ignore[arg-type]
        return [[value for _, value in log] for log in result]

    def offsets(self, topic: str, ids: list[str], group: str) -> list[Any]:
        """A group's offsets."""
        asked = OffsetFetchRequestGroup(group_id=group, topics=None)
        answer = self._peer.ask(OffsetFetchRequest(groups=[asked], require_stable=False), 8).groups[0]
        return [
            answer.error_code,
            sorted(
                (topic.name, part.partition_index, part.committed_offset, part.error_code)
                for topic in answer.topics
                for part in topic.partitions
            ),
        ]

    def states(self, topic: str, ids: list[str], group: str) -> dict[str, list[Any]]:
        """Each id's records in `__transaction_state`."""
        return {name: list(self._records(name)) for name in ids}

    def _records(self, name: str) -> Iterable[Any]:
        partition, offset = abs(java_hash(name)) % _STATE_PARTITIONS, 0
        while True:
            part = FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=1 << 24)
            topics = [FetchTopic(topic=_STATE, partitions=[part])]
            request = FetchRequest(max_wait_ms=0, min_bytes=0, session_epoch=-1, topics=topics)
            (answer,) = self._peer.ask(request, 12).responses[0].partitions
            assert answer.error_code == 0, answer
            read = list(batches(answer.records or b""))
            if not read:
                return
            for record in (record for batch in read for record in batch if record.offset >= offset):
                result = open_log_record(_STATE, record)
                assert result is not None
                if isinstance(result.key, TransactionLogKey) and result.key.transactional_id == name:
                    yield self._plain(result.value)
            offset = read[-1].last_offset + 1

    def _plain(self, value: Any) -> Any:
        """A record's value without times, with numbers for producer ids."""
        if not isinstance(value, TransactionLogValue):
            return value
        fields = {key: one for key, one in asdict(value).items() if not key.endswith("_timestamp_ms")}
        for key in fields:
            if key.endswith("producer_id"):
                fields[key] = self._number(fields[key])
        places = fields.pop("transaction_partitions") or ()
        fields["places"] = sorted((place["topic"], sorted(place["partition_ids"])) for place in places)
        return fields


class _Asked:
    """A connection that blocks, for what awaits its answers."""

    def __init__(self, peer: BlockingPeer) -> None:
        self._peer = peer

    async def ask(self, request: Request[Any], version: int) -> Any:
        return self._peer.ask(request, version)
