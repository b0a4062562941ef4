"""The record sets in messages: where they are, whose, and that they open without being copied or read."""

from __future__ import annotations

from uuid import UUID

import pytest

from coordwire.errors import CorruptBatch
from coordwire.messages import (
    FetchResponse,
    FetchSnapshotResponse,
    HeartbeatRequest,
    Kafka07MessageSetSend,
    Kafka07MultiMessageSetSend,
    Kafka07MultiProduceRequest,
    Kafka07ProduceRequest,
    ProduceRequest,
    ShareFetchResponse,
    fetch,
    fetch_snapshot,
    produce,
    share_fetch,
)
from coordwire.records import Record, UnreadableRange, encode_batch, record_sets
from coordwire.records.kafka_07 import encode_messages

TOPIC = UUID(int=7)
BATCH = encode_batch([Record(value=b"one"), Record(value=b"two")], base_offset=5, codec="gzip")
OLD = encode_batch([Record(value=b"old")], base_offset=5, magic=1)


def fetched(*sets: bytes | None) -> FetchResponse:
    partitions = [fetch.PartitionData(partition_index=n + 3, records=data) for n, data in enumerate(sets)]
    return FetchResponse(responses=[fetch.FetchableTopicResponse(topic="orders", partitions=partitions)])


def test_a_fetch_response() -> None:
    results = list(record_sets(fetched(None, BATCH, b"", OLD + BATCH)))
    assert [(result.path, result.topic, result.topic_id, result.partition) for result in results] == [
        ("responses[0].partitions[1].records", "orders", None, 4),
        ("responses[0].partitions[3].records", "orders", None, 6),
    ]
    values = [[record.value for batch in result.batches() for record in batch] for result in results]
    assert values == [[b"one", b"two"], [b"old", b"one", b"two"]]
    assert next(results[0].batches()).raw.obj is results[0].data  # a view, not a copy


def test_produce_by_name_and_by_id() -> None:
    data = produce.PartitionProduceData(index=0, records=BATCH)
    named = ProduceRequest(topic_data=[produce.TopicProduceData(name="orders", partition_data=[data])])
    (result,) = record_sets(ProduceRequest.decode(named.encode(version=9), version=9))
    assert (result.topic, result.topic_id, result.partition) == ("orders", None, 0)
    by_id = ProduceRequest(topic_data=[produce.TopicProduceData(topic_id=TOPIC, partition_data=[data])])
    (result,) = record_sets(ProduceRequest.decode(by_id.encode(version=13), version=13))
    assert (result.topic_id, result.partition, result.is_kafka_07) == (TOPIC, 0, False)


def test_share_fetch() -> None:
    row = share_fetch.PartitionData(partition_index=2, records=BATCH)
    topic = share_fetch.ShareFetchableTopicResponse(topic_id=TOPIC, partitions=[row])
    (result,) = record_sets(ShareFetchResponse(responses=[topic]))
    assert result[:4] == ("responses[0].partitions[0].records", None, TOPIC, 2)


def test_a_piece_of_a_snapshot_may_begin_within_a_batch() -> None:
    row = fetch_snapshot.FetchSnapshotResponsePartitionSnapshot(
        index=0, unaligned_records=OLD[20:] + BATCH + BATCH[:40]
    )
    topic = fetch_snapshot.FetchSnapshotResponseTopicSnapshot(name="__cluster_metadata", partitions=[row])
    (result,) = record_sets(FetchSnapshotResponse(topics=[topic]))
    assert result[:4] == ("topics[0].partitions[0].unaligned_records", "__cluster_metadata", None, 0)
    reader = result.batches(on_error="skip")
    assert [batch.raw for batch in reader] == [BATCH]
    assert [(unreadable.position, unreadable.length) for unreadable in reader.skipped] == [(0, len(OLD) - 20)]
    assert reader.remainder == BATCH[:40]


def test_a_bad_batch_is_no_error_of_the_message() -> None:
    bad = BATCH[:-1] + b"\xff"
    (result,) = record_sets(FetchResponse.decode(fetched(bad + BATCH).encode(version=12), version=12))
    with pytest.raises(CorruptBatch, match="CRC"):
        [list(batch) for batch in result.batches()]
    first, second = result.batches(on_error="report")
    assert isinstance(first, UnreadableRange)
    assert not isinstance(second, UnreadableRange)


def test_kafka_07() -> None:
    data = encode_messages([b"one", b"two"], codec="gzip") + encode_messages([b"three"], magic=0)
    request = Kafka07ProduceRequest(topic="orders", partition=1, messages=data)
    sets = Kafka07MultiMessageSetSend(
        message_sets=[Kafka07MessageSetSend(messages=data + data[:9]), Kafka07MessageSetSend(error_code=1)]
    )
    for message, place in (
        (request, ("messages", "orders", None, 1)),
        (Kafka07MultiProduceRequest(produces=[request]), ("produces[0].messages", "orders", None, 1)),
        (sets, ("message_sets[0].messages", None, None, None)),
    ):
        (result,) = record_sets(type(message).decode(message.encode(version=0), version=0))
        assert result[:4] == place
        assert result.is_kafka_07
        assert [record.value for batch in result.batches() for record in batch] == [b"one", b"two", b"three"]


def test_most_messages_have_none() -> None:
    assert list(record_sets(HeartbeatRequest(group_id="g"))) == []
