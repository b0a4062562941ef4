"""What a hostile broker or token endpoint can make a client wait for, and keep."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from coordwire import Connection
from coordwire.broker import Broker, BrokerConfig
from coordwire.client import (
    AuthenticationRefused,
    BrokerUnreachable,
    ClientError,
    ClientSettings,
    DeadlineExceeded,
    OAuthBearer,
    Scram,
    UnreadableAnswer,
    addresses,
    async_client,
    client_properties,
    cluster,
    connect,
    connect_sync,
    http_exchange,
    link,
    settings_of,
    streams,
)
from coordwire.client.async_client import MOST_DELIVERIES, Client
from coordwire.client.client_properties import fetch_token, unsecured_token
from coordwire.client.cluster import KnownCluster
from coordwire.client.errors import joined
from coordwire.client.link import surplus_links
from coordwire.client.requests import Delivered, Delivery, perform
from coordwire.client.routing import CoordinatorOf, LeaderOf
from coordwire.client.socket_link import time_limit
from coordwire.client.sync_client import SyncClient
from coordwire.connection.events import RequestReceived
from coordwire.messages import (
    ApiVersionsResponse,
    FindCoordinatorResponse,
    ListGroupsRequest,
    ListGroupsResponse,
    MetadataResponse,
    ProduceRequest,
)
from coordwire.messages.api_versions import ApiVersion
from coordwire.messages.find_coordinator import Coordinator
from coordwire.messages.metadata import (
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from coordwire.messages.produce import PartitionProduceData, TopicProduceData
from tests.broker.peer import run
from tests.client.test_client import BLOCKING, _silent, asked, serving
from tests.client.test_opening import FOREVER, peer
from tests.client.test_requests import SETTINGS, Driver
from tests.growth import assert_linear

# --- time ---


def _deaf(connected: socket.socket) -> None:
    """Answer ApiVersions, and read nothing more."""
    versions = [ApiVersion(api_key=0, min_version=9, max_version=9)]
    connection = Connection("server")
    connection.receive_data(connected.recv(4096))
    for event in connection.events():
        assert isinstance(event, RequestReceived)
        connected.sendall(connection.send(ApiVersionsResponse(api_keys=versions), request=event))


@pytest.fixture
def deaf(monkeypatch: pytest.MonkeyPatch) -> Iterator[ClientSettings]:
    """A broker that does not read."""
    monkeypatch.setattr(streams, "PATIENCE", 0.05)
    with peer(_deaf) as address:
        yield ClientSettings(bootstrap=addresses(address), request_timeout_ms=100, retries=0)


def _large_request() -> ProduceRequest:
    part = PartitionProduceData(index=0, records=bytes(16 << 20))
    return ProduceRequest(acks=1, topic_data=[TopicProduceData(name="t", partition_data=[part])])


@BLOCKING
def test_a_broker_that_does_not_read_ends_the_request_and_the_client(
    deaf: ClientSettings, blocking: bool
) -> None:
    with pytest.raises(BrokerUnreachable, match="no answer within 100 ms"):
        asked(deaf, _large_request(), blocking=blocking, to="any")


def test_requests_that_were_cancelled_hold_up_neither_the_end_nor_memory(deaf: ClientSettings) -> None:
    async def main() -> None:
        async with connect(replace(deaf, request_timeout_ms=60_000)) as client:
            for _ in range(3):
                with suppress(TimeoutError):
                    async with asyncio.timeout(0.05):
                        await client.request(_large_request(), to="any")
            (opened,) = client._links.values()
            assert opened._stream.writer.transport.get_write_buffer_size() < 17 << 20

    run(main())


@contextmanager
def silent(count: int) -> Iterator[tuple[str, list[socket.socket]]]:
    """Listeners that answer no connection, and their addresses."""
    with ExitStack() as stack:
        listeners = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        yield ",".join(f"127.0.0.1:{listener.getsockname()[1]}" for listener in listeners), listeners


def _connections(listeners: list[socket.socket]) -> int:
    """How many of them a client has connected to."""
    count = 0
    for listener in listeners:
        listener.setblocking(False)
        with suppress(BlockingIOError):
            listener.accept()[0].close()
            count += 1
    return count


@BLOCKING
def test_the_time_of_a_client_covers_all_bootstrap_servers(blocking: bool) -> None:
    with silent(9) as (bootstrap, listeners):
        settings = ClientSettings(bootstrap=addresses(bootstrap), connection_timeout_ms=100, timeout_ms=250)
        with pytest.raises(DeadlineExceeded, match="no connection within 250 ms"):
            asked(settings, blocking=blocking)
        assert 1 <= _connections(listeners) <= 3


def test_the_time_of_a_request_covers_all_nodes() -> None:
    with silent(9) as (nodes, listeners), peer(serving(_silent)) as address:
        settings = ClientSettings(bootstrap=addresses(address), connection_timeout_ms=100)
        with connect_sync(settings) as client:
            client.cluster.nodes = dict(enumerate(addresses(nodes)))
            with pytest.raises(DeadlineExceeded):
                client.request(ListGroupsRequest(), to="every", timeout_ms=250)
        assert 1 <= _connections(listeners) <= 3


@BLOCKING
def test_a_token_that_does_not_come_is_not_waited_for(blocking: bool) -> None:
    ended = threading.Event()
    with Broker.in_thread(config=BrokerConfig(sasl_mechanisms=("OAUTHBEARER",))) as broker:
        settings = ClientSettings(
            bootstrap=addresses(broker.bootstrap),
            sasl=OAuthBearer(lambda: str(ended.wait(60))),
            connection_timeout_ms=100,
        )
        try:
            with pytest.raises(BrokerUnreachable, match="no connection within 100 ms"):
                asked(settings, blocking=blocking)
        finally:
            ended.set()


def test_an_event_loop_goes_on_while_something_computes() -> None:
    turned = threading.Event()

    def token() -> str:
        return "" if turned.wait(10) else "the loop waited"

    async def main() -> None:
        asyncio.get_running_loop().call_later(0.2, turned.set)
        async with connect(settings):
            pass

    with Broker.in_thread(config=BrokerConfig(sasl_mechanisms=("OAUTHBEARER",))) as broker:
        settings = ClientSettings(bootstrap=addresses(broker.bootstrap), sasl=OAuthBearer(token))
        with pytest.raises(AuthenticationRefused, match="expected a token from the callback, got none"):
            run(main())


@BLOCKING
def test_a_name_that_is_not_resolved_is_not_waited_for(
    blocking: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: ended.wait(60))
    settings = ClientSettings(bootstrap=(("broker.example", 9092),), connection_timeout_ms=100)
    try:
        with pytest.raises(BrokerUnreachable, match="no connection within 100 ms"):
            asked(settings, blocking=blocking)
    finally:
        ended.set()


def test_the_most_iterations_are_a_setting() -> None:
    login = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="a" password="b";'
    properties = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.jaas.config": login,
        "sasl.scram.max.iterations": "20000",
    }
    sasl = settings_of(properties, bootstrap="a:1").sasl
    assert isinstance(sasl, Scram)
    assert sasl.max_iterations == 20_000


def test_a_client_that_is_closed_opens_nothing() -> None:
    async def main() -> None:
        client = connect(ClientSettings(bootstrap=addresses(bootstrap)))
        opening = asyncio.create_task(client.request(ListGroupsRequest(), to="any"))
        await asyncio.sleep(0.05)
        await client.close()
        for request in (opening, client.request(ListGroupsRequest(), to="any")):
            with pytest.raises(ClientError, match="the client is closed"):
                await request
        assert not client._links
        assert not client._opening

    with silent(1) as (bootstrap, _):
        run(main())


def test_a_renewal_that_was_cancelled_ends_the_connection() -> None:
    blocks, ended = threading.Event(), threading.Event()

    def token() -> str:
        return str(ended.wait(60)) if blocks.is_set() else unsecured_token(FOREVER)

    async def main() -> None:
        async with connect(settings) as client:
            opened = await client._any_link()
            opened._renewal = 0
            blocks.set()
            with pytest.raises(DeadlineExceeded):
                await client.request(ListGroupsRequest(), to="any", timeout_ms=200)
            assert not opened.is_open

    config = BrokerConfig(sasl_mechanisms=("OAUTHBEARER",), max_session_ms=600_000)
    with Broker.in_thread(config=config) as broker:
        settings = ClientSettings(bootstrap=addresses(broker.bootstrap), sasl=OAuthBearer(token))
        try:
            run(main())
        finally:
            ended.set()


# --- token endpoints ---


@contextmanager
def endpoint(answer: Callable[[socket.socket], None]) -> Iterator[str]:
    def answered(connected: socket.socket) -> None:
        connected.recv(9_999)
        with suppress(OSError):
            answer(connected)
            connected.close()

    with peer(answered) as address:
        yield f"http://{address}/token"


def _drip(connected: socket.socket) -> None:
    connected.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
    connected.settimeout(0.01)
    while True:
        connected.sendall(b" ")
        try:
            if not connected.recv(1):
                return
        except TimeoutError:
            continue


def _drip_header(connected: socket.socket) -> None:
    connected.settimeout(0.01)
    connected.sendall(b"HTTP/1.1 200 OK\r\nX: ")
    while True:
        connected.sendall(b"x")
        try:
            if not connected.recv(1):
                return
        except TimeoutError:
            continue


def _large(connected: socket.socket) -> None:
    connected.sendall(b'HTTP/1.1 200 OK\r\n\r\n{"access_token": "%s"}' % bytes(2_000))


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (_drip, "no answer within 0.2 s"),
        (_drip_header, "no answer within 0.2 s"),
        (_large, "ValueError"),
        (lambda connected: connected.sendall(b"nonsense\r\n\r\n"), "BadStatusLine"),
        (lambda connected: connected.sendall(b"HTTP/1.1 401 no\r\n\r\n"), "HTTP status 401"),
    ],
)
def test_an_endpoint_that_does_it_wrong_is_refused(
    answer: Callable[[socket.socket], None], reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "within" in reason:
        monkeypatch.setattr(client_properties, "_SECONDS", 0.2)
    monkeypatch.setattr(http_exchange, "LARGEST_BODY", 1_000)
    with endpoint(answer) as url, pytest.raises(AuthenticationRefused, match=reason) as refusal:
        fetch_token(f"{url}?key=s3cret", "client", "secret", None, None)
    assert "s3cret" not in str(refusal.value)


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_a_redirection_does_not_get_the_secret(code: int) -> None:
    elsewhere: list[bytes] = []

    def redirect(connected: socket.socket) -> None:
        connected.sendall(b"HTTP/1.1 %d x\r\nLocation: %s\r\n\r\n" % (code, target.encode()))

    with endpoint(lambda connected: elsewhere.append(b"")) as target, endpoint(redirect) as url:
        with pytest.raises(AuthenticationRefused, match=f"status {code}; a redirection is not followed"):
            fetch_token(url, "client", "secret", None, None)
        assert not elsewhere


def test_an_endpoint_gives_a_token() -> None:
    answer = b'HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n{"access_token":"t"}'
    with endpoint(lambda connected: connected.sendall(answer)) as url:
        assert fetch_token(url, "client", "secret", None, None) == "t"


# --- what is kept ---

ID = UUID(int=7)


def _metadata(nodes: int, topics: int = 0) -> MetadataResponse:
    parts = [MetadataResponsePartition(partition_index=number, leader_id=number) for number in range(3)]
    return MetadataResponse(
        brokers=[
            MetadataResponseBroker(node_id=node, host="localhost", port=node % 60_000 + 1)
            for node in range(nodes)
        ],
        topics=[
            MetadataResponseTopic(name=f"t{number}", topic_id=ID, partitions=parts)
            for number in range(topics)
        ],
    )


def test_only_the_partitions_that_were_asked_for_are_kept() -> None:
    known = KnownCluster()
    expected = [LeaderOf("t1", 2), LeaderOf("t1", 9), LeaderOf(ID, 0), LeaderOf("absent", 0)]
    known.add_metadata(_metadata(3, 50), expected)
    assert known.leaders == {LeaderOf("t1", 2): 2, LeaderOf("t1", 9): None, LeaderOf(ID, 0): 0}
    assert known.errors == {"t1": 0, ID: 0}
    assert [known.is_known(target) for target in expected] == [True, True, True, False]
    assert not known.is_known(LeaderOf("t1", 0))


def _coordinators(*rows: tuple[str, int]) -> FindCoordinatorResponse:
    coordinators = [Coordinator(key=key, node_id=node, host="localhost", port=node) for key, node in rows]
    return FindCoordinatorResponse(coordinators=coordinators)


def test_only_the_coordinators_that_were_asked_for_are_kept() -> None:
    known = KnownCluster()
    known.add_metadata(_metadata(2), ())
    known.add_coordinators("group", ["a", "b"], _coordinators(("a", 7), ("b", 7), ("c", 8)))
    assert set(known.nodes) == {0, 1, 7}
    for node in (9, 10, 11):
        known.drop([CoordinatorOf("group", "a")])
        known.add_coordinators("group", ["a"], _coordinators(("a", node)))
        assert set(known.nodes) == {0, 1, 7, node}
    known.drop([CoordinatorOf("group", "b"), CoordinatorOf("group", "a")])
    assert set(known.nodes) == {0, 1}
    known.add_coordinators("group", ["a"], _coordinators(("a", 1)))
    known.drop([CoordinatorOf("group", "a")])
    assert set(known.nodes) == {0, 1}


def test_a_cluster_has_so_many_nodes_and_hosts_so_many_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "MOST_NODES", 5)
    KnownCluster().add_metadata(_metadata(5), ())
    with pytest.raises(UnreadableAnswer, match="at most 5 nodes"):
        KnownCluster().add_metadata(_metadata(6), ())
    answer = _metadata(1)
    answer.brokers[0].host = "a" * 256
    with pytest.raises(UnreadableAnswer, match="at most 255 characters, got 256"):
        KnownCluster().add_metadata(answer, ())


def test_what_a_broker_repeats_is_cut_in_errors() -> None:
    assert joined(["a", "b"], ", ") == "a, b"
    assert joined([str(number) for number in range(40_000)], ", ").endswith("9, 39,990 more")


def test_large_answers_are_received_within_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(async_client, "MOST_RECEIVED", 20 << 20)

    def half(connected: socket.socket, event: RequestReceived, connection: Connection) -> bool:
        size = 16 << 20
        connected.sendall(size.to_bytes(4, "big") + bytes(4) + bytes(size // 2))
        return True

    async def main() -> None:
        settings = ClientSettings(bootstrap=addresses(nodes[0]), request_timeout_ms=600, retries=0)
        async with connect(settings) as client:
            client.cluster.nodes = {number: addresses(node)[0] for number, node in enumerate(nodes)}
            with pytest.raises(DeadlineExceeded):
                await client.request(ListGroupsRequest(), to="every", timeout_ms=400)
            links = list(client._links.values())
            assert sum(opened._stream.connection.buffered for opened in links) < 10 << 20
            while any(opened.is_open for opened in links):  # nobody waits for their answers
                await asyncio.sleep(0.01)
            assert client._received.used_bytes == 0

    with ExitStack() as stack:
        nodes = [stack.enter_context(peer(serving(half))) for _ in range(3)]
        run(main())


class _Link:
    def __init__(self, *, is_open: bool = True, is_idle: bool = True) -> None:
        self.is_open, self.is_idle = is_open, is_idle


def test_connections_to_brokers_that_are_gone_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    known = KnownCluster(nodes={1: ("a", 1), 2: ("b", 2)})
    settings = ClientSettings(bootstrap=(("boot", 1),))
    links: dict[Any, _Link] = {("boot", 1): _Link(), ("a", 1): _Link(is_open=False), ("b", 2): _Link()}
    assert surplus_links(links, settings, known) == [("a", 1)]
    links |= {("gone", 3): _Link(), ("busy", 4): _Link(is_idle=False)}
    assert surplus_links(links, settings, known) == [("a", 1), ("gone", 3)]
    monkeypatch.setattr(link, "MOST_LINKS", 3)
    assert surplus_links(links, settings, known) == [("a", 1), ("gone", 3), ("boot", 1)]


def test_requests_to_every_node_are_so_many_at_a_time() -> None:
    running, most = 0, 0

    async def deliver(delivery: Delivery) -> Delivered:
        nonlocal running, most
        running, most = running + 1, max(most, running + 1)
        await asyncio.sleep(0)
        running -= 1
        return Delivered(ListGroupsResponse(), 0)

    async def main() -> None:
        client = Client(SETTINGS)
        client._deliver = deliver  # type: ignore[method-assign]
        results = await client._deliver_all([Delivery(None, ListGroupsRequest())] * 1_000)
        assert len(results) == 1_000
        assert None not in results

    run(main())
    assert most == MOST_DELIVERIES


class _Answering(_Link):
    """A connection whose broker answers."""

    def send(self, *_: object) -> None:
        self.is_idle = False

    def receive(self, *_: object) -> Delivered:
        self.is_idle = True
        return Delivered(ListGroupsResponse(), 0)


def _everywhere(count: int) -> None:
    """A request to every node of a cluster."""
    known = KnownCluster()
    known.add_metadata(_metadata(count), ())
    client = SyncClient(SETTINGS)
    client._link = lambda address, remaining: _Answering()  # type: ignore[assignment,method-assign,return-value]
    driver = Driver(lambda delivery: ListGroupsResponse())
    driver.run(perform(ListGroupsRequest(), known, SETTINGS, to="every"))
    deliveries = [Delivery(("a", number), ListGroupsRequest()) for number in range(count)]
    assert len(client._deliver(deliveries, time_limit(60))) == count


def _moved(count: int) -> None:
    """Coordinators of many groups, looked up one by one and dropped."""
    known = KnownCluster()
    for number in range(count):
        known.add_coordinators("group", [f"g{number}"], _coordinators((f"g{number}", number)))
    known.drop([CoordinatorOf("group", f"g{number}") for number in range(count)])
    assert not known.nodes


@pytest.mark.growth
@pytest.mark.parametrize("act", [_everywhere, _moved], ids=lambda act: act.__name__.strip("_"))
def test_work_grows_with_the_nodes(act: Callable[[int], None]) -> None:
    assert_linear(lambda count: count, act, 50)
