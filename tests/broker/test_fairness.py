"""One client against many that send flat out, do not read, or come and go: it is answered soon.

Strategy: the broker, the flood and the client share one loop. The floods are plain sockets whose buffers in
the system are full, so that they cost nothing themselves. What is counted is the work that the broker does
between the client's request and its handler (`turns`): a request counts `REQUEST`, and the bytes that it and
its answer have. Rules: no clock; a flood delays another client by less than one round, and memory stays
bounded while it lasts.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from coordwire import Connection
from coordwire.broker import Broker, BrokerConfig
from coordwire.broker.connections.client_link import ClientLink
from coordwire.broker.connections.link_state import TRANSITIONS, LinkState
from coordwire.broker.connections.turns import REQUEST, ROUND, SLICE, TURN, TURN_MIN
from coordwire.codec import Message
from coordwire.messages import (
    FetchRequest,
    HeartbeatRequest,
    MetadataRequest,
    ProduceRequest,
    SaslAuthenticateRequest,
    SaslHandshakeRequest,
)
from coordwire.messages.fetch import FetchPartition, FetchTopic
from coordwire.messages.produce import PartitionProduceData, TopicProduceData
from coordwire.sasl import PlainCredentials
from tests.broker.core import batch
from tests.broker.peer import Peer, run

CLIENTS = 50
ASKED = 20
"""Requests of the client that is to be answered."""

MEGA, BATCH = 1 << 20, 1_000_000


def frame(message: Message, version: int) -> bytes:
    return Connection("client", client_id="flood").send(message, version=version)


HEARTBEAT = frame(HeartbeatRequest(group_id="g", generation_id=1, member_id="m"), 4)


def produced(size: int, acks: int = 1) -> ProduceRequest:
    data = PartitionProduceData(index=0, records=batch(b"x" * size))
    return ProduceRequest(
        acks=acks, timeout_ms=9_000, topic_data=[TopicProduceData(name="orders", partition_data=[data])]
    )


def fetched(size: int) -> FetchRequest:
    part = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=size)
    return FetchRequest(
        max_wait_ms=0, min_bytes=1, max_bytes=size, topics=[FetchTopic(topic="orders", partitions=[part])]
    )


class Witness:
    """What the broker did: work by the units of `turns`, connections, and the states of each connection.

    at_metadata: work and connections when each Metadata came to its handler. held: the most memory.
    """

    def __init__(self) -> None:
        self.work = 0
        self.connections = 0
        self.at_metadata: list[tuple[int, int]] = []
        self.transitions: set[tuple[LinkState, LinkState]] = set()
        self.held = 0


class WatchedLink(ClientLink):
    """It tells the witness of its work, and may change its state as the table says."""

    witness = Witness()

    @property
    def _state(self) -> LinkState:
        return self.state

    @_state.setter
    def _state(self, state: LinkState) -> None:
        before = getattr(self, "state", state)
        self.state = state
        if before is not state:
            self.witness.transitions.add((before, state))

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.witness.connections += 1
        super().connection_made(transport)

    def _work(self, share: int) -> None:
        super()._work(share)
        self.witness.work += self._spent
        self.witness.held = max(self.witness.held, self._hub.memory.used)

    def _request(self, event: Any, frame: Any) -> bool:
        if isinstance(frame.message, MetadataRequest):
            self.witness.at_metadata.append((self.witness.work, self.witness.connections))
        return super()._request(event, frame)


@pytest.fixture
def witness(monkeypatch: pytest.MonkeyPatch) -> Iterator[Witness]:
    """Each connection of a test's brokers is watched; all states follow each other as the table says."""
    witness = WatchedLink.witness = Witness()
    monkeypatch.setattr("coordwire.broker.broker.ClientLink", WatchedLink)
    yield witness
    assert {
        (before, after) for before, after in witness.transitions if after not in TRANSITIONS[before]
    } == set()


@contextmanager
def flooding(broker: Broker, count: int, data: bytes) -> Iterator[list[socket.socket]]:
    """So many connections, each with `data` again and again, up to 1 MB or what the system takes."""
    with ExitStack() as stack:
        links = []
        many = data * max(1, MEGA // len(data))
        for _ in range(count):
            link = stack.enter_context(socket.create_connection(broker.addresses[0]))
            link.setblocking(False)
            refill(link, many)
            links.append(link)
        yield links


def refill(link: socket.socket, many: bytes) -> None:
    with suppress(BlockingIOError):
        link.send(many)


async def asked(witness: Witness, peer: Peer, times: int = ASKED) -> tuple[int, int]:
    """The most work, and the most new connections, between a Metadata request and its handler."""
    work = connections = 0
    for _ in range(times):
        before = witness.work, witness.connections
        assert (await peer.ask(MetadataRequest(topics=[]), 9)).brokers
        after = witness.at_metadata[-1]
        work, connections = max(work, after[0] - before[0]), max(connections, after[1] - before[1])
    return work, connections


def allowed(count: int, size: int) -> int:
    """The work of one turn of each connection, which may exceed its share by a request, and of two slices."""
    return count * (max(TURN_MIN, ROUND // count) + REQUEST + size) + 2 * (SLICE + TURN)


FLOODS: Mapping[str, tuple[int, int, Callable[[], bytes]]] = {
    "heartbeats": (CLIENTS, 100, lambda: HEARTBEAT),
    "metadata": (CLIENTS, 200, lambda: frame(MetadataRequest(topics=None), 9)),
    "many": (3 * CLIENTS, 100, lambda: HEARTBEAT),
    "produced": (CLIENTS, 61_000, lambda: frame(produced(60_000), 9)),
    "produced without answers": (CLIENTS, 61_000, lambda: frame(produced(60_000, acks=0), 9)),
    "fetched": (CLIENTS, 201_000, lambda: frame(fetched(MEGA), 11)),
}
"""Connections, the most bytes of a request or its answer, and the request."""


@pytest.mark.parametrize("name", FLOODS)
def test_clients_that_never_read_delay_another_by_less_than_a_round(name: str, witness: Witness) -> None:
    count, size, make = FLOODS[name]

    async def main() -> None:
        async with Broker(topics={"orders": 1}) as broker, Peer(broker) as peer:
            await peer.ask(produced(200_000), 9)
            with flooding(broker, count, make()):
                while witness.connections <= count:
                    await asyncio.sleep(0)
                work, _ = await asked(witness, peer)
                assert witness.work > 4 * TURN
                assert work <= allowed(count, size)

    run(main())


def test_one_that_pipelines_100_000_requests_delays_another_by_a_slice(witness: Witness) -> None:
    count = 100_000

    async def main() -> None:
        async with Broker() as broker, Peer(broker) as peer, Peer(broker) as flood:
            flood.writer.write(HEARTBEAT * count)
            answers = asyncio.ensure_future(flood.reader.readexactly(4 * MEGA // 10))
            work, _ = await asked(witness, peer)
            assert witness.work > 10 * TURN
            assert work <= 2 * SLICE + 2 * TURN
            await answers

    run(main())


def test_a_storm_of_connections_delays_another_by_few_of_them(witness: Witness) -> None:
    """As many are accepted in one iteration of the loop as `_ACCEPTED` says."""

    async def main() -> None:
        async with Broker() as broker, Peer(broker) as peer:
            for _ in range(5):
                with ExitStack() as stack:
                    for _ in range(100):
                        link = stack.enter_context(socket.create_connection(broker.addresses[0]))
                        link.send(HEARTBEAT)
                    _, connections = await asked(witness, peer, 2)
                    assert connections <= 64
            while len(broker.links) > 1:
                await asyncio.sleep(0)
            assert witness.connections > 100

    run(main())


def test_handshakes_of_sasl_that_fail_delay_another_by_few_of_them(witness: Witness) -> None:
    first = frame(SaslHandshakeRequest(mechanism="PLAIN"), 1)
    wrong = PlainCredentials(user="ann", password="wrong").encode()
    flood = first + frame(SaslAuthenticateRequest(auth_bytes=wrong), 2)

    async def main() -> None:
        config = BrokerConfig(users={"ann": "secret"})
        async with Broker(config=config) as broker, Peer(broker) as peer:
            assert not (await peer.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)).error_code
            right = PlainCredentials(user="ann", password="secret").encode()
            assert not (await peer.ask(SaslAuthenticateRequest(auth_bytes=right), 2)).error_code
            for _ in range(3):
                with ExitStack() as stack:
                    for _ in range(100):
                        link = stack.enter_context(socket.create_connection(broker.addresses[0]))
                        link.send(flood)
                    work, connections = await asked(witness, peer, 2)
                    assert connections <= 64
                    assert work <= SLICE

    run(main())


def test_a_flood_over_tls_delays_another_by_less_than_a_round(
    witness: Witness, certificate: tuple[Path, Path]
) -> None:
    """Its clients' answers are not taken: what TLS holds of them is bounded too."""
    count = 10
    served = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    served.load_cert_chain(*certificate)
    trusting = ssl.create_default_context(cafile=str(certificate[0]))

    async def main() -> None:
        config = BrokerConfig(memory=32 * MEGA)
        async with (
            Broker(topics={"orders": 1}, tls=served, config=config) as broker,
            Peer(broker, tls=trusting) as peer,
            AsyncPeers(broker, count, trusting) as flood,
        ):
            await peer.ask(produced(BATCH), 9)
            for one in flood:
                one.writer.transport.pause_reading()  # type: ignore[attr-defined]
                one.writer.write(frame(fetched(MEGA), 11) * 100 + HEARTBEAT * 20_000)
            work, _ = await asked(witness, peer)
            assert work <= allowed(count, BATCH)
            assert any(link._congested for link in broker.links)
            for one in flood:
                one.writer.transport.abort()

    run(main())


# --- memory ---


def test_half_frames_are_held_up_to_the_bound(witness: Witness) -> None:
    """40 clients send all but a byte of a frame of 1 MB: as many as fit are read, and can finish; the others
    wait and follow. One that asks for little is answered meanwhile, from the part that is left to it."""
    config = BrokerConfig(memory=8 * MEGA, max_frame=2 * MEGA)
    data = frame(produced(BATCH), 9)

    async def main() -> None:
        async with Broker(topics={"orders": 1}, config=config) as broker, Peer(broker) as peer:
            async with AsyncPeers(broker, 40) as flood:
                for one in flood:
                    one.writer.write(data[:-1])
                while broker.memory.used < 6 * MEGA:
                    await asyncio.sleep(0)
                await asked(witness, peer)
                assert sum(bool(link._granted) for link in broker.links) in (6, 7)
                for one in flood:
                    one.writer.write(data[-1:])
                for one in flood:
                    assert await one.reader.readexactly(4)
                await asked(witness, peer)
            assert witness.held <= 8 * MEGA
            assert broker.cluster.topics["orders"].partitions[0].log.end_offset == 40
            while len(broker.links) > 1:
                await asyncio.sleep(0)
            assert broker.memory.used == 0

    run(main())


def test_clients_that_do_not_finish_their_frames_are_let_go_when_others_wait(
    witness: Witness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("coordwire.broker.connections.connection_memory.PATIENCE", 0.05)
    config = BrokerConfig(memory=2 * MEGA, max_frame=2 * MEGA)

    async def main() -> None:
        async with (
            Broker(topics={"orders": 1}, config=config) as broker,
            Peer(broker) as peer,
            AsyncPeers(broker, 5) as flood,
        ):
            for link in flood:
                link.writer.write(frame(produced(BATCH), 9)[:-1])
            while broker.memory.used < MEGA:
                await asyncio.sleep(0)
            answer = await peer.ask(produced(BATCH), 9)
            assert not answer.responses[0].partition_responses[0].error_code
            assert len(broker.links) < 6

    run(main())


def test_answers_that_are_not_taken_are_held_up_to_the_bound(witness: Witness) -> None:
    """20 clients ask for 4 MB each and never read: those that left theirs longest are let go, and another
    gets what it asks for."""
    config = BrokerConfig(memory=16 * MEGA)

    async def main() -> None:
        async with Broker(topics={"orders": 1}, config=config) as broker, Peer(broker) as peer:
            for _ in range(8):
                await peer.ask(produced(BATCH), 9)
            with flooding(broker, 20, frame(fetched(8 * MEGA), 11)):
                for _ in range(20):
                    answer = await peer.ask(fetched(4 * MEGA), 11)
                    assert len(answer.responses[0].partitions[0].records or b"") > BATCH
                    assert broker.memory.used <= 16 * MEGA
                await asked(witness, peer)
            assert witness.held <= 24 * MEGA

    run(main())


def test_a_fetch_is_cut_to_the_memory_that_is_left(witness: Witness) -> None:
    config = BrokerConfig(memory=2 * MEGA)

    async def main() -> None:
        async with Broker(topics={"orders": 1}, config=config) as broker, Peer(broker) as peer:
            for _ in range(4):
                await peer.ask(produced(BATCH), 9)
            answer = await peer.ask(fetched(8 * MEGA), 11)
            assert BATCH < len(answer.responses[0].partitions[0].records or b"") <= 2 * MEGA

    run(main())


def test_a_connection_that_is_read_holds_no_more_than_what_is_unread(witness: Witness) -> None:
    """Not the 256 KB of which its beginning of a frame is the end."""

    async def main() -> None:
        async with Broker() as broker, Peer(broker) as peer:
            peer.writer.write(HEARTBEAT * 2_000 + HEARTBEAT[:10])
            await peer.reader.readexactly(2_000 * 16)
            while broker.turns:
                await asyncio.sleep(0)
            (link,) = broker.links
            assert link._connection.unread == 10
            assert link.held_bytes == 10 == broker.memory.used

    run(main())


def test_there_are_as_many_connections_as_max_connections_says(witness: Witness) -> None:
    async def main() -> None:
        config = BrokerConfig(max_connections=2)
        async with Broker(nodes=2, config=config) as broker, Peer(broker) as first:
            await asked(witness, first, 1)
            async with Peer(broker) as second, Peer(broker, 2) as other:
                await asked(witness, second, 1)
                await asked(witness, other, 1)
                async with Peer(broker) as third:
                    assert await third.is_closed()
            while len(broker.links) > 1:
                await asyncio.sleep(0)
            async with Peer(broker) as second_peer:
                await asked(witness, second_peer, 1)

    run(main())


class AsyncPeers:
    """So many clients."""

    def __init__(self, broker: Broker, count: int, tls: ssl.SSLContext | None = None) -> None:
        self._peers = [Peer(broker, tls=tls) for _ in range(count)]

    async def __aenter__(self) -> list[Peer]:
        for peer in self._peers:
            await peer.__aenter__()
        return self._peers

    async def __aexit__(self, *error: object) -> None:
        for peer in self._peers:
            await peer.__aexit__(None, None, None)
