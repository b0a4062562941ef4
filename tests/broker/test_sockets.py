"""A broker over loopback sockets: pipelines, long polls, clients that misbehave, and an end that leaves
nothing."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import struct
import threading
from collections.abc import Iterator

import pytest

from coordwire.broker import Broker, BrokerConfig
from coordwire.enums import ErrorCode
from coordwire.messages import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    FetchRequest,
    FindCoordinatorRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    MetadataRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
    ProduceRequest,
    SyncGroupRequest,
)
from coordwire.messages.fetch import FetchPartition, FetchTopic
from coordwire.messages.join_group import JoinGroupRequestProtocol
from coordwire.messages.offset_commit import OffsetCommitRequestPartition, OffsetCommitRequestTopic
from coordwire.messages.offset_fetch import OffsetFetchRequestTopic
from coordwire.messages.produce import PartitionProduceData, TopicProduceData
from coordwire.messages.sync_group import SyncGroupRequestAssignment
from tests.broker.core import batch, records_of
from tests.broker.peer import Peer, run

TOPICS = {"orders": 2}


@pytest.fixture(autouse=True)
def _nothing_is_logged(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """No handler fails, and no callback of the loop."""
    yield
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


def produced(data: bytes, *, acks: int = -1, topic: str = "orders", partition: int = 0) -> ProduceRequest:
    return ProduceRequest(
        acks=acks,
        timeout_ms=1000,
        topic_data=[
            TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=partition, records=data)])
        ],
    )


def fetched(offset: int, *, wait: int = 0, least: int = 1, most: int = 1 << 20) -> FetchRequest:
    return FetchRequest(
        max_wait_ms=wait,
        min_bytes=least,
        max_bytes=most,
        topics=[
            FetchTopic(
                topic="orders",
                partitions=[FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=most)],
            )
        ],
    )


def test_requests_are_answered_in_their_order() -> None:
    async def main() -> None:
        async with Broker(topics=TOPICS) as broker, Peer(broker) as peer:
            for number in range(50):
                peer.send(produced(batch(b"%d" % number)), 9)
                peer.send(fetched(number), 11)
            for number in range(50):
                answer = await peer.receive()
                assert answer.responses[0].partition_responses[0].base_offset == number
                answer = await peer.receive()
                data = answer.responses[0].partitions[0].records
                assert list(records_of(data)) == [(number, b"%d" % number)]

    run(main())


def test_a_fetch_waits_for_what_is_produced() -> None:
    async def main() -> None:
        async with Broker(topics=TOPICS) as broker, Peer(broker) as reader, Peer(broker) as writer:
            reader.send(fetched(0, wait=15_000, least=1), 11)
            reader.send(MetadataRequest(topics=[]), 9)  # waits behind it
            await asyncio.sleep(0.02)
            await writer.ask(produced(batch(b"late")), 9)
            answer = await reader.receive()
            assert list(records_of(answer.responses[0].partitions[0].records)) == [(0, b"late")]
            assert (await reader.receive()).topics == []

    run(main())


def test_a_fetch_ends_when_its_time_is_over() -> None:
    async def main() -> None:
        async with Broker(topics=TOPICS) as broker, Peer(broker) as peer:
            answer = await peer.ask(fetched(0, wait=5), 11)
            assert answer.responses[0].partitions[0].records == b""

    run(main())


def test_acks_0_has_no_answer_and_an_error_closes() -> None:
    async def main() -> None:
        async with Broker(topics=TOPICS) as broker, Peer(broker) as peer:
            peer.send(produced(batch(b"quiet"), acks=0), 9)
            answer = await peer.ask(fetched(0), 11)
            assert list(records_of(answer.responses[0].partitions[0].records or b"")) == [(0, b"quiet")]
            peer.send(produced(b"nonsense", acks=0), 9)
            assert await peer.is_closed()

    run(main())


def test_a_classic_group_over_sockets() -> None:
    async def main() -> None:
        async with Broker(topics=TOPICS) as broker, Peer(broker) as peer:
            coordinators = await peer.ask(FindCoordinatorRequest(coordinator_keys=["g"]), 6)
            assert coordinators.coordinators[0].port == broker.addresses[0][1]
            join = JoinGroupRequest(
                group_id="g",
                session_timeout_ms=10_000,
                rebalance_timeout_ms=10_000,
                protocol_type="consumer",
                protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
            )
            joined = await peer.ask(join, 9)
            assert joined.error_code == ErrorCode.MEMBER_ID_REQUIRED
            join.member_id = joined.member_id
            joined = await peer.ask(join, 9)
            assert (joined.error_code, joined.generation_id, joined.leader) == (0, 1, joined.member_id)
            synced = await peer.ask(
                SyncGroupRequest(
                    group_id="g",
                    generation_id=1,
                    member_id=joined.member_id,
                    protocol_type="consumer",
                    protocol_name="range",
                    assignments=[SyncGroupRequestAssignment(member_id=joined.member_id, assignment=b"all")],
                ),
                5,
            )
            assert synced.assignment == b"all"
            beat = HeartbeatRequest(group_id="g", generation_id=1, member_id=joined.member_id)
            assert (await peer.ask(beat, 4)).error_code == 0
            commit = OffsetCommitRequest(
                group_id="g",
                generation_id_or_member_epoch=1,
                member_id=joined.member_id,
                topics=[
                    OffsetCommitRequestTopic(
                        name="orders", partitions=[OffsetCommitRequestPartition(committed_offset=42)]
                    )
                ],
            )
            answer = await peer.ask(commit, 9)
            assert answer.topics[0].partitions[0].error_code == 0
            request = OffsetFetchRequest(
                group_id="g", topics=[OffsetFetchRequestTopic(name="orders", partition_indexes=[0])]
            )
            committed = await peer.ask(request, 7)
            assert committed.topics[0].partitions[0].committed_offset == 42

    run(main())


# --- clients that misbehave ---


def test_an_unknown_version_of_api_versions_is_answered_in_version_0() -> None:
    async def main() -> None:
        async with Broker() as broker, Peer(broker) as peer:
            peer.writer.write(struct.pack(">ihhih", 10, 18, 99, 7, -1))
            (size,) = struct.unpack(">i", await peer.reader.readexactly(4))
            body = await peer.reader.readexactly(size)
            assert struct.unpack(">i", body[:4]) == (7,)
            answer = ApiVersionsResponse.decode(body[4:], version=0)
            assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
            assert [(api.api_key, api.min_version, api.max_version) for api in answer.api_keys] == [
                (18, 0, 5)
            ]
            good = await peer.ask(
                ApiVersionsRequest(client_software_name="t", client_software_version="1"), 4
            )
            assert good.error_code == 0

    run(main())


@pytest.mark.parametrize(
    ("name", "version", "error"),
    [
        ("a.b-c", "1.0", ErrorCode.NONE), ("a", "1", ErrorCode.NONE),
        ("", "1", ErrorCode.INVALID_REQUEST), ("a", "", ErrorCode.INVALID_REQUEST),
        ("a b", "1", ErrorCode.INVALID_REQUEST), ("a-", "1", ErrorCode.INVALID_REQUEST),
        ("-a", "1", ErrorCode.INVALID_REQUEST), ("a", "1_0", ErrorCode.INVALID_REQUEST),
        ("é", "1", ErrorCode.INVALID_REQUEST), ("a\n", "1", ErrorCode.INVALID_REQUEST),
    ],
)  # fmt: skip
def test_software_has_a_name_and_a_version(name: str, version: str, error: ErrorCode) -> None:
    """Judged by Kafka 4.3's own class (KIP-511): from version 3 on an answer with an error lists nothing."""

    async def main() -> None:
        async with Broker() as broker, Peer(broker) as peer:
            request = ApiVersionsRequest(client_software_name=name, client_software_version=version)
            for sent in (3, 4):
                answer = await peer.ask(request, sent)
                assert answer.error_code == error
                assert bool(answer.api_keys) == (error == ErrorCode.NONE)
            assert (await peer.ask(ApiVersionsRequest(), 2)).error_code == 0

    run(main())


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        struct.pack(">i", -1),
        struct.pack(">i", 0x7FFFFFFF) + b"x" * 100,
        struct.pack(">i", 2) + b"ab",
        struct.pack(">ihhih", 10, 3, 99, 1, -1),
        struct.pack(">ihhih", 10, 999, 0, 1, -1),
        struct.pack(">ihhih", 10, 4, 0, 1, -1),
        struct.pack(">ihhihi", 14, 3, 1, 1, -1, 0x7FFFFFFF),
        os.urandom(300),
    ],
)
def test_what_is_not_a_request_closes_the_connection_alone(data: bytes) -> None:
    async def main() -> None:
        async with Broker(topics=TOPICS) as broker, Peer(broker) as hostile_peer, Peer(broker) as second_peer:
            hostile_peer.writer.write(data)
            hostile_peer.writer.write_eof()
            assert await hostile_peer.is_closed()
            assert len((await second_peer.ask(MetadataRequest(topics=None), 9)).topics) == 1

    run(main())


def test_a_client_that_does_not_read_is_not_read_from_either() -> None:
    """Its answers stay within the transport's bound and one answer, however many requests it sends."""

    async def main() -> None:
        async with Broker(topics=TOPICS) as broker, Peer(broker) as second_peer:
            size = 200_000
            await second_peer.ask(produced(batch(b"x" * size)), 9)
            async with Peer(broker) as deaf:
                deaf.writer.transport.pause_reading()  # type: ignore[attr-defined]
                sent = 0
                for _ in range(300):
                    deaf.send(fetched(0), 11)
                    sent += size
                await asyncio.sleep(0.05)
                for _ in range(20):
                    assert (await second_peer.ask(MetadataRequest(topics=None), 9)).topics
                waiting = [
                    link._transport.get_write_buffer_size()
                    for link in broker.links
                    if link._transport is not None
                ]
                assert max(waiting) < (2 << 20) < sent

    run(main())


def test_a_slow_sender_keeps_nobody_from_being_served() -> None:
    async def main() -> None:
        async with Broker(topics=TOPICS) as broker, Peer(broker) as slow, Peer(broker) as second_peer:
            frame = slow.connection.send(MetadataRequest(topics=None), version=9)
            for at in range(len(frame)):
                slow.writer.write(frame[at : at + 1])
                await slow.writer.drain()
                if at % 8 == 0:
                    assert (await second_peer.ask(MetadataRequest(topics=None), 9)).topics
            assert (await slow.receive()).topics

    run(main())


def test_a_client_that_leaves_while_it_waits_leaves_nothing() -> None:
    async def main() -> None:
        async with Broker(topics=TOPICS) as broker:
            log = broker.cluster.topics["orders"].partitions[0].log
            async with Peer(broker) as peer:
                peer.send(fetched(0, wait=60_000), 11)
                while not log.listeners:
                    await asyncio.sleep(0.001)
            while broker.links:
                await asyncio.sleep(0.001)
            assert not log.listeners
            assert broker.cluster.timers.next_deadline() is None

    run(main())


# --- start and stop ---


def test_a_stop_with_clients_attached_ends_them() -> None:
    async def main() -> None:
        broker = Broker(topics=TOPICS, nodes=3)
        await broker.start()
        peers = [Peer(broker, node) for node in (1, 2, 3)]
        for peer in peers:
            await peer.__aenter__()
            peer.send(fetched(0, wait=60_000), 11)
        await asyncio.sleep(0.01)
        await broker.stop()
        assert not broker.links
        for peer in peers:
            assert await peer.is_closed()
            await peer.__aexit__(None, None, None)
        await broker.stop()  # nothing more happens
        with pytest.raises(RuntimeError):
            _ = broker.cluster

    run(main())


def test_nothing_is_left_after_many_starts() -> None:
    async def start_and_stop() -> None:
        async with Broker(topics=TOPICS) as broker, Peer(broker) as peer:
            await peer.ask(MetadataRequest(topics=None), 9)

    async def main() -> None:
        await start_and_stop()
        gc.collect()
        files = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
        threads = threading.active_count()
        for _ in range(30):
            await start_and_stop()
        await asyncio.sleep(0)
        gc.collect()
        if files:
            assert len(os.listdir("/proc/self/fd")) <= files
        assert threading.active_count() == threads

    run(main())


def test_a_broker_in_a_thread() -> None:
    threads = threading.active_count()
    with Broker.in_thread(topics={"orders": 3}, config=BrokerConfig(num_partitions=2)) as broker:
        assert threading.active_count() == threads + 1
        host, port = broker.addresses[0]
        assert broker.bootstrap == f"{host}:{port}"
        assert broker.call(lambda running: len(running.cluster.topics["orders"].partitions)) == 3
    assert threading.active_count() == threads
    with pytest.raises(RuntimeError):
        broker.call(lambda running: running)


def test_a_start_that_fails_raises_and_leaves_nothing() -> None:
    threads = threading.active_count()
    with Broker.in_thread() as first:
        port = first.addresses[0][1]
        with pytest.raises(OSError, match="in use"):
            Broker.in_thread(port=port).start()
    assert threading.active_count() == threads
