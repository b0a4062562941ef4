"""A small conversation in each dialect other than Kafka's: consult, register, ping, stop, start, rebalance.

Each is a list of (who sends, message): an answer comes after what it answers, as the documents have it.
"""

from __future__ import annotations

from coordwire import Connection, Role
from coordwire.codec import Message
from coordwire.connection.dialect import Dialect
from coordwire.connection.events import RequestReceived, ResponseReceived
from coordwire.dialects.connection import ConnectionDialect
from coordwire.dialects.grammar import CALLS
from coordwire.messages import (
    Draft1ConsultRequest,
    Draft1ConsultResponse,
    Draft1PingRequest,
    Draft1PingResponse,
    Draft1RegisterRequest,
    Draft1StartRequest,
    Draft1StartResponse,
    Draft1StopRequest,
    Draft2ClusterMetadataRequest,
    Draft2ClusterMetadataResponse,
    Draft2CommitOffsetRequest,
    Draft2CommitOffsetResponse,
    Draft2PingRequest,
    Draft2PingResponse,
    Draft2RegisterConsumerRequest,
    Draft2RegisterConsumerResponse,
    Draft2StartFetcherRequest,
    Draft2StartFetcherResponse,
    Draft2StopFetcherRequest,
    Draft2StopFetcherResponse,
    Draft3JoinGroupRequest,
    Draft3JoinGroupResponse,
    Draft3MetadataRequest,
    Draft3MetadataResponse,
    Draft3PingRequest,
    Draft3PingResponse,
    Kafka07FetchRequest,
    Kafka07MessageSetSend,
    Kafka07MultiFetchRequest,
    Kafka07MultiMessageSetSend,
    Kafka07MultiProduceRequest,
    Kafka07OffsetsRequest,
    Kafka07OffsetsResponse,
    Kafka07ProduceRequest,
)
from coordwire.messages.draft_1 import Draft1Broker, Draft1PartitionOffset
from coordwire.messages.draft_2 import Draft2Broker, Draft2Ownership, Draft2PartitionOffset
from coordwire.messages.draft_3 import (
    Draft3Broker,
    Draft3Partition,
    Draft3TopicAndPartition,
    Draft3TopicMetadata,
)

Line = tuple[str, Message]

COUNT = '{"orders":2}'


def _draft_1(auto_commit: bool) -> list[Line]:
    at = [Draft1PartitionOffset(topic="orders", partition="0-1", offset=42)]
    seen = at if auto_commit else []
    register = Draft1RegisterRequest(
        group_id="payments",
        consumer_id="till-3",
        topic_count=COUNT,
        auto_commit=auto_commit,
        auto_offset_rest="smallest",
        ping_interval_ms=3000,
        max_ping_retries=3,
    )
    broker = Draft1Broker(creator_id="b0-1", id=0, host="b0", port=9092)
    start = Draft1StartRequest(assigned_parts=at)
    return [
        ("client", Draft1ConsultRequest()),
        ("server", Draft1ConsultResponse(coordinator_id=0, brokers_info=[broker])),
        ("client", register),
        ("server", Draft1StopRequest()),
        ("server", start),
        ("client", Draft1StartResponse()),
        ("server", Draft1PingRequest(num_retries=0)),
        ("client", Draft1PingResponse(offset_info=seen)),
        ("server", Draft1PingRequest(num_retries=0)),
        ("client", Draft1PingResponse(offset_info=seen)),
        ("server", Draft1StopRequest()),
        ("server", start),
        ("client", Draft1StartResponse(error_code=1)),
    ]


def _draft_2(auto_commit: bool) -> list[Line]:
    at = [Draft2PartitionOffset(topic="orders", partition="0-1", offset=42)]
    seen = at if auto_commit else []
    register = Draft2RegisterConsumerRequest(
        group_id="payments",
        consumer_id="till-3",
        topic_count=COUNT,
        auto_commit=auto_commit,
        auto_offset_rest="largest",
        session_timeout_ms=9000,
    )
    brokers = [Draft2Broker(id=0, host="b0", port=9092), Draft2Broker(id=1, host="b1", port=9092)]
    owned = Draft2Ownership(consumer_thread_id="till-3-0", assigned_parts=at)
    return [
        ("client", Draft2ClusterMetadataRequest()),
        ("server", Draft2ClusterMetadataResponse(coordinator_id=1, brokers_info=brokers)),
        ("client", register),
        ("server", Draft2RegisterConsumerResponse()),
        ("server", Draft2PingRequest(consumer_id="till-3", num_retries=0)),
        ("client", Draft2PingResponse(consumer_id="till-3", offset_info=seen)),
        ("server", Draft2StopFetcherRequest(consumer_id="till-3")),
        ("client", Draft2StopFetcherResponse(consumer_id="till-3", offset_info=seen)),
        (
            "server",
            Draft2StartFetcherRequest(consumer_id="till-3", ownership_info=[owned], brokers_info=brokers),
        ),
        ("client", Draft2StartFetcherResponse(consumer_id="till-3")),
        ("client", Draft2CommitOffsetRequest(consumer_id="till-3", offset_info=at)),
        ("server", Draft2CommitOffsetResponse(consumer_id="till-3")),
        ("server", Draft2PingRequest(consumer_id="till-3", num_retries=1)),
        ("client", Draft2PingResponse(error_code=1, consumer_id="till-3", offset_info=seen)),
        ("server", Draft2StopFetcherRequest(consumer_id="till-3")),
        ("client", Draft2StopFetcherResponse(consumer_id="till-3", offset_info=seen)),
        ("server", Draft2StartFetcherRequest(consumer_id="till-3", brokers_info=brokers[:1])),
        ("client", Draft2StartFetcherResponse(consumer_id="till-3")),
    ]


def _draft_3() -> list[Line]:
    partition = Draft3Partition(partition_index=0, leader_id=1, replica_nodes=[1, 2], isr_nodes=[1])
    metadata = Draft3MetadataResponse(
        brokers=[Draft3Broker(node_id=1, host="b1", port=9092)],
        topics_metadata=[Draft3TopicMetadata(name="orders", partitions=[partition])],
        coordinator_ids=[1],
    )
    owned = [Draft3TopicAndPartition(topic="orders", partition=0)]
    return [
        ("client", Draft3MetadataRequest(client_id="till-3", topics=["orders"], group_ids=["payments"])),
        ("server", metadata),
        (
            "client",
            Draft3JoinGroupRequest(
                group_id="payments", consumer_addr="till-3:0", session_timeout=6000, subscribing=["orders"]
            ),
        ),
        (
            "server",
            Draft3JoinGroupResponse(
                generation=1, group_id="payments", consumer_id="c-1", partitions_to_own=owned
            ),
        ),
        ("client", Draft3PingRequest(group_id="payments", consumer_id="c-1")),
        ("server", Draft3PingResponse()),
        ("client", Draft3PingRequest(group_id="payments", consumer_id="c-1")),
        ("server", Draft3PingResponse(error_code=9)),
        ("client", Draft3JoinGroupRequest()),
        ("server", Draft3JoinGroupResponse(generation=2, group_id="payments", consumer_id="c-1")),
    ]


def _kafka_07() -> list[Line]:
    produce = Kafka07ProduceRequest(topic="orders", partition=0, messages=b"message set")
    fetch = Kafka07FetchRequest(topic="orders", partition=0, offset=0, max_size=1 << 20)
    sets = [Kafka07MessageSetSend(messages=b"message set"), Kafka07MessageSetSend(error_code=1)]
    return [
        ("client", produce),
        ("client", Kafka07MultiProduceRequest(produces=[produce, produce])),
        ("client", fetch),
        ("server", sets[0]),
        ("client", Kafka07MultiFetchRequest(fetches=[fetch, fetch])),
        ("server", Kafka07MultiMessageSetSend(message_sets=sets)),
        ("client", Kafka07OffsetsRequest(topic="orders", max_number=2)),
        ("server", Kafka07OffsetsResponse(offsets=[4096, 0])),
    ]


CONVERSATIONS: dict[str, tuple[Dialect, list[Line]]] = {
    "kafka-0.7": (Dialect.KAFKA_07, _kafka_07()),
    "draft-1 with auto_commit": (Dialect.DRAFT_1, _draft_1(True)),
    "draft-1 without auto_commit": (Dialect.DRAFT_1, _draft_1(False)),
    "draft-2 with auto_commit": (Dialect.DRAFT_2, _draft_2(True)),
    "draft-2 without auto_commit": (Dialect.DRAFT_2, _draft_2(False)),
    "draft-2 in 0.8 with auto_commit": (Dialect.DRAFT_2_IN_08, _draft_2(True)),
    "draft-2 in 0.8 without auto_commit": (Dialect.DRAFT_2_IN_08, _draft_2(False)),
    "draft-3": (Dialect.DRAFT_3, _draft_3()),
}


def is_request(dialect: Dialect, message: Message) -> bool:
    return any(call.request == type(message).__name__ for call in CALLS[dialect])


def spoken(dialect: Dialect, lines: list[Line], *, step: int = 0) -> list[tuple[str, Message, bytes]]:
    """Hold a conversation over two connections: who sent what, as its bytes. step: bytes a chunk, 0: all."""
    sides = {role.value: Connection(role, dialect=ConnectionDialect(dialect), strict=True) for role in Role}
    open_requests: dict[str, list[RequestReceived]] = {"client": [], "server": []}
    exchanges = []
    for sender, message in lines:
        receiver = "server" if sender == "client" else "client"
        asks = is_request(dialect, message)
        answered = None if asks else open_requests[sender].pop(0)
        data = sides[sender].send(message, request=answered)
        chunks = [data[at : at + step] for at in range(0, len(data), step)] if step else [data]
        events = []
        for chunk in chunks:
            sides[receiver].receive_data(chunk)
            events += list(sides[receiver].events())
        (event,) = events
        if asks:
            assert isinstance(event, RequestReceived)
            request = event.request
            if event.expects_response:
                open_requests[receiver].append(event)
        else:
            assert isinstance(event, ResponseReceived)
            assert answered is not None
            assert event.request.message == answered.request
            request = event.response
        if dialect is Dialect.DRAFT_3:  # the connection has numbered it
            assert getattr(request, "correlation_id") >= 0  # noqa: B009
        else:
            assert request == message
        exchanges.append((sender, request, data))
    assert not any(open_requests.values())
    return exchanges
