"""The client at a broker of three nodes, and at brokers that stop, lie and stay silent."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import socket
import struct
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from coordwire import Connection, EncodeError
from coordwire.broker import Broker, BrokerConfig
from coordwire.broker.thread import BrokerThread
from coordwire.client import (
    BrokerUnreachable,
    Client,
    ClientSettings,
    DeadlineExceeded,
    Plain,
    SettingsError,
    UnreadableAnswer,
    VersionUnavailable,
    addresses,
    connect,
    connect_sync,
)
from coordwire.client.link import Window
from coordwire.codec import Message
from coordwire.connection.events import RequestReceived
from coordwire.messages import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    CreateTopicsRequest,
    DescribeGroupsRequest,
    DescribeLogDirsRequest,
    FetchRequest,
    FindCoordinatorRequest,
    HeartbeatRequest,
    ListGroupsRequest,
    ListOffsetsRequest,
    MetadataRequest,
    MetadataResponse,
    OffsetFetchRequest,
    ProduceRequest,
    VoteRequest,
)
from coordwire.messages.api_versions import ApiVersion
from coordwire.messages.create_topics import CreatableTopic
from coordwire.messages.fetch import FetchPartition, FetchTopic
from coordwire.messages.list_offsets import ListOffsetsPartition, ListOffsetsTopic
from coordwire.messages.produce import PartitionProduceData, TopicProduceData
from coordwire.records import Record, encode_batch
from tests.broker.peer import run
from tests.client.test_opening import peer

GROUPS = [f"group-{number}" for number in range(12)]


@pytest.fixture(scope="module")
def three_nodes() -> Iterator[BrokerThread]:
    with Broker.in_thread(topics={"orders": 6}, nodes=3) as broker:
        yield broker


BLOCKING = pytest.mark.parametrize("blocking", [False, True], ids=["asyncio", "blocking"])


def asked(bootstrap: str | ClientSettings, *requests: Any, blocking: bool, **options: Any) -> list[Any]:
    """The answers to requests, one after the other, with either client."""
    if blocking:
        with connect_sync(bootstrap) as client:
            return [client.request(request, **options) for request in requests]

    async def main() -> list[Any]:
        async with connect(bootstrap) as client:
            return [await client.request(request, **options) for request in requests]

    return run(main())


def latest(*partitions: int) -> ListOffsetsRequest:
    wanted = [ListOffsetsPartition(partition_index=number, timestamp=-1) for number in partitions]
    return ListOffsetsRequest(topics=[ListOffsetsTopic(name="orders", partitions=wanted)])


# --- at three nodes ---


@BLOCKING
def test_a_split_request_is_answered_as_one(three_nodes: BrokerThread, blocking: bool) -> None:
    offsets, groups, dirs, listed = asked(
        three_nodes.bootstrap,
        latest(*range(6)),
        DescribeGroupsRequest(groups=GROUPS),
        DescribeLogDirsRequest(topics=None),
        ListGroupsRequest(),
        blocking=blocking,
    )
    (topic,) = offsets.topics
    assert sorted(partition.partition_index for partition in topic.partitions) == list(range(6))
    assert {partition.error_code for partition in topic.partitions} == {0}
    assert sorted(group.group_id for group in groups.groups) == sorted(GROUPS)
    assert {group.error_code for group in groups.groups} == {69}  # and not NOT_COORDINATOR
    assert len(dirs.results) == 3
    assert listed.error_code == 0


@BLOCKING
def test_what_was_created_is_there(three_nodes: BrokerThread, blocking: bool) -> None:
    name = f"made-{blocking}"
    created, fetched = asked(
        three_nodes.bootstrap,
        CreateTopicsRequest(topics=[CreatableTopic(name=name, num_partitions=3, replication_factor=1)]),
        FetchRequest(
            topics=[
                FetchTopic(topic=name, partitions=[FetchPartition(partition=number) for number in range(3)])
            ],
            max_wait_ms=0,
            session_epoch=-1,
            max_bytes=1_000,
        ),
        blocking=blocking,
    )
    assert created.topics[0].error_code == 0
    (topic,) = fetched.responses
    assert [partition.error_code for partition in topic.partitions] == [0, 0, 0]


@BLOCKING
def test_an_older_version_carries_what_newer_ones_dropped(three_nodes: BrokerThread, blocking: bool) -> None:
    (answer,) = asked(three_nodes.bootstrap, OffsetFetchRequest(group_id="g", topics=None), blocking=blocking)
    assert (answer.error_code, answer.groups) == (0, [])
    (answer,) = asked(three_nodes.bootstrap, MetadataRequest(topics=[]), blocking=blocking, version=1)
    assert answer.cluster_id is None
    with pytest.raises(VersionUnavailable, match="coordwire has 0-13; expected one of these, got 99"):
        asked(three_nodes.bootstrap, MetadataRequest(), blocking=blocking, version=99)
    with pytest.raises(VersionUnavailable, match="does not have Vote"):
        asked(three_nodes.bootstrap, VoteRequest(), blocking=blocking)
    with pytest.raises(VersionUnavailable, match="can carry the request"):
        asked(
            three_nodes.bootstrap, FindCoordinatorRequest(key="a", coordinator_keys=["b"]), blocking=blocking
        )
    with pytest.raises(EncodeError):
        asked(three_nodes.bootstrap, HeartbeatRequest(group_id="g", generation_id=1 << 40), blocking=blocking)


@BLOCKING
def test_each_broker_answers_for_itself(three_nodes: BrokerThread, blocking: bool) -> None:
    request = ApiVersionsRequest(client_software_name="a", client_software_version="1")
    if blocking:
        with connect_sync(three_nodes.bootstrap) as client:
            answers = client.request_each(request)
            assert client.session().versions[3].first == 0
    else:

        async def main() -> dict[int, ApiVersionsResponse]:
            async with connect(three_nodes.bootstrap) as client:
                return await client.request_each(request)

        answers = run(main())
    assert list(answers) == [1, 2, 3]


@BLOCKING
def test_produce_without_acknowledgement_has_an_empty_answer(
    three_nodes: BrokerThread, blocking: bool
) -> None:
    request = ProduceRequest(
        acks=0,
        topic_data=[
            TopicProduceData(name="orders", partition_data=[PartitionProduceData(index=0, records=None)])
        ],
    )
    answer, _ = asked(three_nodes.bootstrap, request, ListGroupsRequest(), blocking=blocking)
    assert answer.responses == []


def test_requests_at_the_same_time_share_the_connections(three_nodes: BrokerThread) -> None:
    async def main() -> None:
        async with connect(three_nodes.bootstrap, max_in_flight_bytes=200) as client:
            requests = [client.request(DescribeGroupsRequest(groups=[group])) for group in GROUPS * 5]
            answers = await asyncio.gather(*requests)
            assert [answer.groups[0].group_id for answer in answers] == GROUPS * 5
            assert client._window.used_bytes == 0
            assert len(client._links) == 3

    run(main())


@BLOCKING
@pytest.mark.parametrize("release", ["2.0", "2.3", "3.9"])
def test_older_brokers_are_asked_as_they_can_be(release: str, blocking: bool) -> None:
    with Broker.in_thread(topics=["orders"], nodes=2, config=BrokerConfig(as_of=release)) as broker:
        groups, offsets = asked(
            broker.bootstrap, DescribeGroupsRequest(groups=GROUPS), latest(0), blocking=blocking
        )
        assert {group.error_code for group in groups.groups} == {0}
        assert offsets.topics[0].partitions[0].error_code == 0


# --- moves and ends ---


@BLOCKING
def test_a_coordinator_that_moves_is_followed(blocking: bool) -> None:
    with Broker.in_thread(nodes=3) as broker:
        before = broker.moves.coordinator_of(group="g")
        moved = before % 3 + 1
        request = DescribeGroupsRequest(groups=["g"])
        if blocking:
            with connect_sync(broker.bootstrap, retry_backoff_ms=1) as client:
                client.request(request)
                broker.moves.coordinator(to=moved, group="g")
                answer = client.request(request)
        else:

            async def main() -> Any:
                async with connect(broker.bootstrap, retry_backoff_ms=1) as client:
                    await client.request(request)
                    broker.moves.coordinator(to=moved, group="g")
                    return await client.request(request)

            answer = run(main())
        assert answer.groups[0].error_code == 69


@BLOCKING
def test_a_leader_that_moves_is_followed(blocking: bool) -> None:
    with Broker.in_thread(topics={"orders": 3}, nodes=3) as broker:
        records = encode_batch([Record(value=b"v")], base_offset=0)
        row = PartitionProduceData(index=0, records=records)
        produced = ProduceRequest(
            acks=1, timeout_ms=9_000, topic_data=[TopicProduceData(name="orders", partition_data=[row])]
        )

        def move() -> None:
            broker.moves.leader("orders", 0, to=broker.moves.leader_of("orders", 0) % 3 + 1)

        answers: list[Any] = []
        if blocking:
            with connect_sync(broker.bootstrap, retry_backoff_ms=1) as client:
                for request in (produced, produced, latest(0, 1, 2)):
                    answers.append(client.request(request))
                    move()
        else:

            async def main() -> None:
                async with connect(broker.bootstrap, retry_backoff_ms=1) as client:
                    for request in (produced, produced, latest(0, 1, 2)):
                        answers.append(await client.request(request))
                        move()

            run(main())
        for answer in answers[:2]:
            assert answer.responses[0].partition_responses[0].error_code == 0
        offsets = {part.partition_index: part.offset for part in answers[2].topics[0].partitions}
        assert offsets == {0: 2, 1: 0, 2: 0}


@BLOCKING
def test_a_node_that_is_stopped_is_left_for_another(blocking: bool) -> None:
    with Broker.in_thread(topics={"orders": 6}, nodes=3) as broker:
        down = broker.moves.leader_of("orders", 0)
        settings = ClientSettings(bootstrap=addresses(broker.bootstrap), retry_backoff_ms=1, retries=20)
        if blocking:
            with connect_sync(settings) as client:
                client.request(latest(*range(6)))
                broker.moves.stop_node(down)
                listed = client.request(MetadataRequest(topics=[]))
        else:

            async def main() -> MetadataResponse:
                async with connect(settings) as client:
                    await client.request(latest(*range(6)))
                    await broker.moves.stop_node(down)
                    return await client.request(MetadataRequest(topics=[]))

            listed = run(main())
        assert down not in {node.node_id for node in listed.brokers}


@BLOCKING
def test_a_session_is_renewed_before_it_ends(blocking: bool) -> None:
    config = BrokerConfig(users={"ann": "secret"}, max_session_ms=600_000)
    with Broker.in_thread(config=config) as broker:
        settings = ClientSettings(
            bootstrap=addresses(broker.bootstrap), sasl=Plain("ann", "secret"), retries=0
        )
        if blocking:
            with connect_sync(settings) as client:
                for _ in range(8):
                    client.request(ListGroupsRequest(), to="any")
                    next(iter(client._links.values()))._renewal = 0  # as if its time had come
            return

        async def main() -> None:
            async with connect(settings) as client:
                for _ in range(8):
                    link = await client._any_link()
                    link._renewal = 0
                    requests = [client.request(ListGroupsRequest(), to="any") for _ in range(5)]
                    await asyncio.gather(*requests)

        run(main())


# --- brokers that do it wrong ---


def serving(
    answer: Callable[[socket.socket, RequestReceived, Connection], bool],
) -> Callable[[socket.socket], None]:
    """A peer that answers ApiVersions as a broker does, and other requests by a function, until it gives
    False."""

    def serve(connected: socket.socket) -> None:
        connection = Connection("server")
        with contextlib.suppress(OSError):
            while data := connected.recv(4096):
                connection.receive_data(data)
                for event in connection.events():
                    assert isinstance(event, RequestReceived)
                    if isinstance(event.request, ApiVersionsRequest):
                        connected.sendall(connection.send(_versions(), request=event))
                    elif not answer(connected, event, connection):
                        return

    return serve


def _versions() -> Message:
    return ApiVersionsResponse(
        api_keys=[
            ApiVersion(api_key=key, min_version=0, max_version=last)
            for key, last in ((3, 12), (10, 4), (15, 5), (16, 4), (18, 4))
        ]
    )


def _silent(connected: socket.socket, event: RequestReceived, connection: Connection) -> bool:
    return True


def _half(connected: socket.socket, event: RequestReceived, connection: Connection) -> bool:
    connected.sendall(struct.pack(">ii", 4_000, event.frame.correlation_id))
    connected.shutdown(socket.SHUT_RDWR)
    return False


def _nonsense(connected: socket.socket, event: RequestReceived, connection: Connection) -> bool:
    connected.sendall(struct.pack(">ii", 6, event.frame.correlation_id) + b"\xff\xff")
    return True


def _another(connected: socket.socket, event: RequestReceived, connection: Connection) -> bool:
    connected.sendall(struct.pack(">iih", 6, 12_345, 0))
    return True


def _huge(connected: socket.socket, event: RequestReceived, connection: Connection) -> bool:
    connected.sendall(b"\x7f\xff\xff\xff")
    return True


def _closing(connected: socket.socket, event: RequestReceived, connection: Connection) -> bool:
    connected.shutdown(socket.SHUT_RDWR)
    return False


WRONG = [
    (_silent, BrokerUnreachable, "no answer within 60 ms"),
    (_half, BrokerUnreachable, "bytes into an answer"),
    (_nonsense, UnreadableAnswer, "not one of Kafka's"),
    (_another, UnreadableAnswer, "12345"),
    (_huge, UnreadableAnswer, "not one of Kafka's"),
    (_closing, BrokerUnreachable, "closed the connection without an answer"),
]


@BLOCKING
@pytest.mark.parametrize(("answer", "error", "reason"), WRONG, ids=[wrong[0].__name__ for wrong in WRONG])
def test_a_broker_that_does_it_wrong_ends_in_a_clear_error(
    answer: Any, error: type[Exception], reason: str, blocking: bool
) -> None:
    with peer(serving(answer)) as address:
        limit_ms = 60 if answer is _silent else 30_000
        settings = ClientSettings(
            bootstrap=addresses(address), request_timeout_ms=limit_ms, retries=1, retry_backoff_ms=1
        )
        with pytest.raises(error, match=reason) as failure:
            asked(settings, ListGroupsRequest(), blocking=blocking, to="any")
        assert address in str(failure.value)


@BLOCKING
def test_the_time_of_a_request_covers_its_retries(blocking: bool) -> None:
    with peer(serving(_silent)) as address:
        settings = ClientSettings(bootstrap=addresses(address), request_timeout_ms=20, retries=20)
        with pytest.raises(DeadlineExceeded, match="no answer to ListGroupsRequest within 800 ms"):
            asked(settings, ListGroupsRequest(), blocking=blocking, to="any", timeout_ms=800)


@BLOCKING
def test_no_broker_at_all_is_reported_with_each_address(blocking: bool) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(
        BrokerUnreachable, match=f"no broker can be reached: 127.0.0.1:{port}: .*; localhost:{port}"
    ):
        asked(f"127.0.0.1:{port},localhost:{port}", ListGroupsRequest(), blocking=blocking)
    with pytest.raises(SettingsError):
        connect("")


def test_requests_that_wait_get_the_reason_when_a_broker_dies() -> None:
    async def main() -> None:
        async with connect(replace(settings, retries=0)) as client:
            answers = await asyncio.gather(
                *(client.request(ListGroupsRequest(), to="any") for _ in range(20)), return_exceptions=True
            )
            assert {type(answer) for answer in answers} == {BrokerUnreachable}
            assert client._window.used_bytes == 0

    with peer(serving(_closing)) as address:
        settings = ClientSettings(bootstrap=addresses(address))
        run(main())


def test_nothing_is_left_of_a_client_that_was_cancelled() -> None:
    async def main() -> None:
        client = Client(ClientSettings(bootstrap=addresses(address)))
        async with client:
            task = asyncio.create_task(client.request(ListGroupsRequest(), to="any"))
            await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert client._window.used_bytes == 0
        assert client._links == {}

    with peer(serving(_silent)) as address, warnings.catch_warnings():
        warnings.simplefilter("error", ResourceWarning)
        run(main())
        gc.collect()


def test_bytes_in_flight_are_bounded_and_taken_in_order() -> None:
    async def main() -> None:
        window, order = Window(100), []

        async def use(name: str, size: int) -> None:
            await window.enter(size)
            order.append(name)

        await use("first", 60)
        waiting = [asyncio.create_task(use(*each)) for each in (("large", 500), ("small", 10), ("last", 10))]
        await asyncio.sleep(0)
        assert order == ["first"]
        window.leave(60)
        await asyncio.sleep(0)
        assert order == ["first", "large"]
        waiting[1].cancel()
        await asyncio.sleep(0)
        window.leave(500)
        await asyncio.sleep(0)
        assert order == ["first", "large", "last"]
        assert window.used_bytes == 10
        await asyncio.gather(*waiting, return_exceptions=True)

    run(main())
