"""`Server`: handlers as a Kafka server, over loopback sockets, with clients that misbehave."""

from __future__ import annotations

import asyncio
import struct
from contextlib import suppress
from typing import Any
from uuid import UUID

import pytest

from coordwire import encode_request
from coordwire.broker import Handlers, Server, ServerCall
from coordwire.broker.connections import connection_memory
from coordwire.client import connect
from coordwire.coordinator import GroupCoordinator, TopicsImage
from coordwire.enums import ErrorCode
from coordwire.messages import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    FetchRequest,
    FetchResponse,
    FindCoordinatorRequest,
    HeartbeatRequest,
    HeartbeatResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
    ListGroupsRequest,
    ListGroupsResponse,
    MetadataRequest,
    ProduceRequest,
    ProduceResponse,
)
from coordwire.messages.describe_groups import DescribedGroup
from coordwire.messages.fetch import FetchableTopicResponse, PartitionData
from coordwire.messages.list_groups import ListedGroup
from coordwire.messages.metadata import MetadataRequestTopic
from tests.broker.handler_server import GROUPS, HANDLERS, TOPIC, At, broken, exchanged, reasons
from tests.broker.peer import Peer, run

# --- clients that behave ---

pytestmark = pytest.mark.usefixtures("only_warnings")


def test_functions_and_coroutines_answer() -> None:
    async def main() -> None:
        async with Server(HANDLERS) as server:
            async with connect(server.bootstrap, client_id="till-3") as client:
                described = await client.request(DescribeGroupsRequest(groups=["g"]), to=1)
                listed = await client.request(ListGroupsRequest())
            assert [group.group_state for group in described.groups] == ["till-3 v6"]
            assert [group.group_id for group in listed.groups] == [f"{server.bootstrap} of 127.0.0.1"]

    run(main())


def test_what_is_offered_is_what_has_a_handler() -> None:
    async def main() -> None:
        server = Server(HANDLERS, versions={DescribeGroupsRequest: range(1, 4)})
        async with server, Peer(At(server)) as peer:
            answer = await peer.ask(
                ApiVersionsRequest(client_software_name="a", client_software_version="1"), 3
            )
            offered = {key.api_key: (key.min_version, key.max_version) for key in answer.api_keys}
            assert offered == {3: (0, 13), 15: (1, 3), 16: (0, 5), 18: (0, 5)}
            nameless = await peer.ask(ApiVersionsRequest(), 3)
            assert nameless.error_code == ErrorCode.INVALID_REQUEST
            named: dict[str, Any] = {"client_software_name": "a", "client_software_version": "1"}
            half = await peer.ask(ApiVersionsRequest(**named, cluster_id="c"), 5)
            assert half.error_code == ErrorCode.INVALID_REQUEST
            whole = await peer.ask(ApiVersionsRequest(**named, cluster_id="c", node_id=7), 5)
            assert whole.error_code == ErrorCode.NONE

    run(main())


def test_a_handler_goes_before_the_server_s_own_answer() -> None:
    async def main() -> None:
        refused = ApiVersionsResponse(error_code=int(ErrorCode.CLUSTER_AUTHORIZATION_FAILED))
        server = Server({ApiVersionsRequest: lambda request, call: refused})
        async with server, Peer(At(server)) as peer:
            assert (await peer.ask(ApiVersionsRequest(), 0)).error_code == refused.error_code

    run(main())


def test_pipelined_requests_are_answered_in_their_order() -> None:
    async def main() -> None:
        async with Server(HANDLERS) as server, Peer(At(server)) as peer:
            for number in range(300):
                peer.send(DescribeGroupsRequest(groups=[f"{number}"]), 5)
            answers = [await peer.receive() for _ in range(300)]
            assert [answer.groups[0].group_id for answer in answers] == [f"{n}" for n in range(300)]

    run(main())


def test_what_a_version_lacks_is_left_out_of_an_answer() -> None:
    async def main() -> None:
        async with Server({}, coordinator=GroupCoordinator(partitions=1), node_id=4) as server:
            async with Peer(At(server)) as peer:
                old = await peer.ask(FindCoordinatorRequest(key="g"), 3)
                new = await peer.ask(FindCoordinatorRequest(coordinator_keys=["g", "h"]), 4)
                other = await peer.ask(FindCoordinatorRequest(key_type=1, coordinator_keys=["t"]), 4)
            place = (4, *server.address)
            assert (old.node_id, old.host, old.port, old.coordinators) == (*place, [])
            assert [(one.node_id, one.host, one.port) for one in new.coordinators] == [place, place]
            assert other.coordinators[0].error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE

    run(main())


def test_an_answer_that_a_handler_keeps_is_not_changed() -> None:
    """One object for all requests: what an old version lacks, or has too long, is left out of a copy."""
    kept = DescribeGroupsResponse(groups=[DescribedGroup(group_id="g", authorized_operations=7)])
    too_long = ListGroupsResponse(groups=[ListedGroup(group_id="g" * 40_000, group_state="Stable")])

    async def main() -> None:
        handlers: Handlers = {
            DescribeGroupsRequest: lambda request, call: kept,
            ListGroupsRequest: lambda request, call: too_long,
        }
        async with Server(handlers) as server, Peer(At(server)) as peer:
            old = await peer.ask(DescribeGroupsRequest(groups=["g"]), 0)
            assert old.groups[0].authorized_operations != 7
            new = await peer.ask(DescribeGroupsRequest(groups=["g"]), 5)
            assert new.groups[0].authorized_operations == 7
            refused = await peer.ask(ListGroupsRequest(), 0)
            assert refused.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
            assert (too_long.error_code, too_long.groups[0].group_state) == (0, "Stable")

    run(main())


def test_metadata_has_the_coordinator_s_topics() -> None:
    async def main() -> None:
        coordinator = GroupCoordinator(partitions=1)
        coordinator.set_topics(TopicsImage([TOPIC]), now=0)
        async with Server({}, coordinator=coordinator) as server, Peer(At(server)) as peer:
            everything = await peer.ask(MetadataRequest(topics=None), 13)
            asked = [MetadataRequestTopic(name=name) for name in ("orders", "orders", "none")]
            named = await peer.ask(MetadataRequest(topics=asked), 4)
            by_id = [MetadataRequestTopic(topic_id=UUID(int=number), name=None) for number in (7, 8)]
            found = await peer.ask(MetadataRequest(topics=by_id), 12)
            (topic,) = everything.topics
            refused = await peer.ask(MetadataRequest(topics=by_id), 11)
            assert [t.error_code for t in refused.topics] == [ErrorCode.INVALID_REQUEST] * 2
            assert (topic.name, topic.topic_id, len(topic.partitions)) == ("orders", UUID(int=7), 2)
            assert [(t.name, t.error_code) for t in named.topics] == [("orders", 0), ("none", 3)]
            assert [(t.name, t.error_code) for t in found.topics] == [("orders", 0), (None, 100)]
            assert (await peer.ask(MetadataRequest(topics=[]), 0)).topics[0].name == "orders"
            assert (await peer.ask(MetadataRequest(topics=[]), 1)).topics == []

    run(main())


def test_a_client_asks_again_while_a_broker_has_no_producer_ids() -> None:
    """What Kafka answers until its controller has given it a block of ids."""
    loading = InitProducerIdResponse(error_code=int(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))
    answers = [loading, loading, InitProducerIdResponse(producer_id=7)]

    async def main() -> None:
        server = Server({InitProducerIdRequest: lambda request, call: answers.pop(0)})
        async with server, connect(server.bootstrap) as client:
            request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
            assert (await client.request(request)).producer_id == 7

    run(main())


def test_produce_without_acks_is_not_answered() -> None:
    async def main() -> None:
        async def produce(request: ProduceRequest, call: ServerCall) -> ProduceResponse | None:
            return ProduceResponse() if request.acks else None

        async with Server({ProduceRequest: produce}) as server, Peer(At(server)) as peer:
            peer.writer.write(peer.connection.send(ProduceRequest(acks=0), version=9))
            assert await peer.ask(ProduceRequest(acks=1), 9) == ProduceResponse()

    run(main())


# --- clients that do not ---

BAD = {
    "cut": (struct.pack(">ihhih", 11, 15, 5, 1, -1) + b"\0", "the count of an array needs"),
    "unknown": (struct.pack(">ihhih", 10, 999, 0, 1, -1), "999"),
    "not offered": (
        encode_request(HeartbeatRequest(group_id="g"), version=4, correlation_id=1),
        "HeartbeatRequest version 4 is not offered",
    ),
    "size": (struct.pack(">i", -1), "size"),
    "too large": (struct.pack(">i", 5_001), "5001"),
    "http": (b"GET / HTTP/1.1\r\n\r\n", "HTTP at a Kafka port"),
}


@pytest.mark.parametrize("kind", BAD)
def test_what_cannot_be_answered_ends_the_connection(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        data, reason = BAD[kind]
        async with Server(HANDLERS, max_frame=5_000) as server:
            assert await exchanged(server, data) == b""
            assert reason in caplog.messages[0], caplog.messages
            assert caplog.messages[0].startswith("closed 127.0.0.1:")
            assert await exchanged(server, GROUPS + data) != b""  # what came before is answered

    run(main())


def test_a_connection_that_ends_within_a_request_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with Server(HANDLERS) as server:
            reader, writer = await asyncio.open_connection(*server.address)
            writer.write(GROUPS[:7])
            writer.write_eof()
            assert await reader.read() == b""
            writer.close()
            assert reasons(caplog) == ["it ended 7 bytes into a request"]

    run(main())


@pytest.mark.parametrize("version", [4, 5, 77])
def test_a_newer_api_versions_is_answered_in_version_0(version: int) -> None:
    """Kafka's: error 35 and the versions of ApiVersions (KIP-511); the connection goes on."""

    async def main() -> None:
        question = ApiVersionsRequest(client_software_name="a", client_software_version="1")
        request = encode_request(question, version=min(version, 5), correlation_id=9)
        request = request[:6] + struct.pack(">h", version) + request[8:]
        async with Server(HANDLERS, versions={ApiVersionsRequest: range(4)}) as server:
            reader, writer = await asyncio.open_connection(*server.address)
            writer.write(request + GROUPS)
            (size,) = struct.unpack(">i", await reader.readexactly(4))
            body = await reader.readexactly(size)
            answer = ApiVersionsResponse.decode(body[4:], version=0)
            assert (body[:4], answer.error_code) == (struct.pack(">i", 9), ErrorCode.UNSUPPORTED_VERSION)
            (own,) = answer.api_keys
            assert (own.api_key, own.min_version, own.max_version) == (18, 0, 3)
            assert await reader.readexactly(8)
            writer.close()

    run(main())


def test_connections_are_bounded(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with Server(HANDLERS, max_connections=1) as server, Peer(At(server)) as peer:
            with suppress(ConnectionError):
                assert await exchanged(server, GROUPS) == b""
            assert (await peer.ask(DescribeGroupsRequest(groups=["g"]), 5)).groups
            assert "there are max_connections already" in reasons(caplog)

    run(main())


def test_a_client_that_takes_no_answers_is_not_served_on() -> None:
    asked = 0

    def fetch(request: FetchRequest, call: ServerCall) -> FetchResponse:
        nonlocal asked
        asked += 1
        partition = PartitionData(partition_index=0, records=bytes(1 << 20))
        return FetchResponse(responses=[FetchableTopicResponse(topic="orders", partitions=[partition])])

    async def main() -> None:
        data = b"".join(
            encode_request(FetchRequest(), version=6, correlation_id=number) for number in range(200)
        )
        async with Server({FetchRequest: fetch}) as server:
            reader, writer = await asyncio.open_connection(*server.address, limit=1 << 10)
            writer.write(data)
            before = -1
            while before < asked:
                before = asked
                await asyncio.sleep(0.5)
            assert 1 <= asked < 100
            for _ in range(200):
                (size,) = struct.unpack(">i", await reader.readexactly(4))
                await reader.readexactly(size)
            assert asked == 200
            assert server.memory.used < 1 << 16
            writer.close()

    run(main())


def test_large_requests_wait_for_memory(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Two clients begin frames that do not fit together; the one that goes no further is closed."""
    monkeypatch.setattr(connection_memory, "PATIENCE", 0.3)

    async def main() -> None:
        large = encode_request(DescribeGroupsRequest(groups=["g" * 30_000] * 25), version=5, correlation_id=1)
        async with Server(HANDLERS, memory=1 << 20) as server, Peer(At(server)) as idle:
            await idle.ask(DescribeGroupsRequest(groups=["g" * 30_000] * 25), 5)
            stuck_reader, stuck = await asyncio.open_connection(*server.address)
            stuck.write(struct.pack(">i", 900_000) + bytes(9_000))
            await asyncio.sleep(0.1)
            reader, writer = await asyncio.open_connection(*server.address)
            writer.write(large)
            assert await reader.readexactly(4)
            assert server.memory.used < 1 << 20
            with suppress(ConnectionError):
                assert await stuck_reader.read() == b""
            stuck.close()
            writer.close()
            assert (await idle.ask(DescribeGroupsRequest(groups=["g"]), 5)).groups
            assert "it held memory that others wait for" in reasons(caplog)[0]

    run(main())


# --- what the author gets wrong ---


def test_handlers_are_of_request_classes() -> None:
    with pytest.raises(TypeError, match=r"expected a class of requests .* got <class '.*HeartbeatResponse'>"):
        Server({HeartbeatResponse: broken})  # type: ignore[dict-item]
    with pytest.raises(ValueError, match="versions of HeartbeatRequest from 0 to 4, got range"):
        Server({HeartbeatRequest: broken}, versions={HeartbeatRequest: range(3, 9)})
    with pytest.raises(ValueError, match="classes that have a handler, got HeartbeatRequest"):
        Server(HANDLERS, versions={HeartbeatRequest: range(3)})


def test_a_server_says_what_it_is() -> None:
    async def main() -> None:
        server = Server(HANDLERS)
        assert repr(server) == (
            "<Server not running: ApiVersions, DescribeGroups, ListGroups, Metadata; 0 connections>"
        )
        with pytest.raises(RuntimeError):
            _ = server.bootstrap
        async with server:
            assert f"<Server {server.bootstrap}: " in repr(server)
            with pytest.raises(RuntimeError):
                await server.start()
        await server.stop()
        async with server:  # again
            assert await exchanged(server, b"GET / HTTP/1.1\r\n") == b""

    run(main())


@pytest.mark.parametrize("handler", [None, lambda request: None, lambda: None])
def test_a_handler_that_cannot_be_called_is_refused_at_once(handler: Any) -> None:
    with pytest.raises(TypeError, match="the handler of DescribeGroupsRequest"):
        Server({DescribeGroupsRequest: handler})


def test_a_server_with_a_coordinator_needs_no_handlers() -> None:
    server = Server(coordinator=GroupCoordinator(partitions=1))
    assert 11 in server.apis
    assert 18 in Server().apis
