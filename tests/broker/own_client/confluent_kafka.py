"""As much of confluent-kafka as a first test uses, made of this package's own connection, for runs that have
no client library: one partition, one member."""

from __future__ import annotations

from typing import Any

from coordwire.messages import FetchRequest, ProduceRequest
from coordwire.messages.fetch import FetchPartition, FetchTopic
from coordwire.messages.produce import PartitionProduceData, TopicProduceData
from coordwire.records import Record, batches, encode_batch
from tests.broker.blocking_peer import BlockingPeer


class Producer:
    def __init__(self, settings: dict[str, Any]) -> None:
        self._peer = BlockingPeer(settings["bootstrap.servers"], "producer")

    def produce(self, topic: str, value: bytes) -> None:
        data = encode_batch([Record(timestamp=-1, value=value)], base_offset=0)
        part = PartitionProduceData(index=0, records=data)
        request = ProduceRequest(
            acks=-1, timeout_ms=1000, topic_data=[TopicProduceData(name=topic, partition_data=[part])]
        )
        assert self._peer.ask(request, 9).responses[0].partition_responses[0].error_code == 0

    def flush(self) -> int:
        self._peer.socket.close()
        return 0


class Message:
    def __init__(self, value: bytes | None) -> None:
        self._value = value

    def value(self) -> bytes | None:
        return self._value


class Consumer:
    def __init__(self, settings: dict[str, Any]) -> None:
        self._peer = BlockingPeer(settings["bootstrap.servers"], "consumer")
        self._group = settings["group.id"]
        self._offset = 0

    def subscribe(self, topics: list[str]) -> None:
        (self._topic,) = topics
        self._member = self._peer.join(self._group, self._topic, 1)

    def poll(self, timeout: float) -> Message:
        part = FetchPartition(partition=0, fetch_offset=self._offset, partition_max_bytes=1000)
        topic = FetchTopic(topic=self._topic, partitions=[part])
        request = FetchRequest(max_wait_ms=round(timeout * 1000), min_bytes=1, topics=[topic])
        data = self._peer.ask(request, 11).responses[0].partitions[0].records
        record = next(iter(next(iter(batches(data or b"")))))
        self._offset += 1
        return Message(record.value)

    def close(self) -> None:
        assert self._peer.commit(self._member, self._topic, self._offset) == 0
        self._peer.socket.close()
