"""The broker in a loop of uvloop, whose transports and servers are not asyncio's classes.

They need uvloop, of PyPI.
"""

from __future__ import annotations

import asyncio
import ssl
import struct
from contextlib import suppress
from pathlib import Path

import pytest

from coordwire.broker import Broker, BrokerConfig, Server
from coordwire.messages import MetadataRequest
from tests.broker.handler_server import At
from tests.broker.peer import Peer, run
from tests.broker.test_fairness import (
    CLIENTS,
    HEARTBEAT,
    MEGA,
    Witness,
    allowed,
    asked,
    fetched,
    flooding,
    frame,
    produced,
    witness,
)

uvloop = pytest.importorskip("uvloop")
pytestmark = pytest.mark.peers

__all__ = ["witness"]


@pytest.mark.parametrize("is_tls", [False, True])
def test_clients_are_served(is_tls: bool, certificate: tuple[Path, Path], witness: Witness) -> None:
    """Small requests and answers of megabytes, whose client reads late."""
    served = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    served.load_cert_chain(*certificate)
    trusting = ssl.create_default_context(cafile=str(certificate[0]))

    async def main() -> None:
        async with (
            Broker(topics={"orders": 2}, tls=served if is_tls else None) as broker,
            Peer(broker, tls=trusting if is_tls else None) as peer,
        ):
            assert len((await peer.ask(MetadataRequest(topics=None), 9)).topics) == 1
            for _ in range(6):
                await peer.ask(produced(1_000_000), 9)
            peer.writer.write(HEARTBEAT * 10_000)
            await peer.reader.readexactly(10_000 * 16)
            for _ in range(20):
                peer.send(fetched(6 * MEGA), 11)
            await asyncio.sleep(0.05)
            for _ in range(20):
                answer = await peer.receive()
                assert len(answer.responses[0].partitions[0].records) > 5 * MEGA
        assert broker.memory.used == 0
        assert not broker.links

    run(main(), uvloop.new_event_loop)


def test_a_frame_that_is_too_long_closes_the_connection() -> None:
    async def main() -> None:
        config = BrokerConfig(max_frame=10_000)
        async with Broker(config=config) as broker, Peer(broker) as bad:
            bad.writer.write(struct.pack(">i", 10_001))
            assert await bad.is_closed()

    run(main(), uvloop.new_event_loop)


def test_clients_that_never_read_delay_another_by_less_than_a_round(witness: Witness) -> None:
    async def main() -> None:
        config = BrokerConfig(memory=16 * MEGA)
        async with Broker(topics={"orders": 1}, config=config) as broker, Peer(broker) as peer:
            await peer.ask(produced(1_000_000), 9)
            with flooding(broker, CLIENTS, HEARTBEAT), flooding(broker, 20, frame(fetched(MEGA), 11)):
                while witness.connections <= CLIENTS:
                    await asyncio.sleep(0)
                work, _ = await asked(witness, peer)
                assert work <= allowed(CLIENTS + 20, MEGA)
                assert witness.held <= 20 * MEGA

    run(main(), uvloop.new_event_loop)


def test_handshakes_with_a_server_end_with_it(certificate: tuple[Path, Path]) -> None:
    served = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    served.load_cert_chain(*certificate)
    trusting = ssl.create_default_context(cafile=str(certificate[0]))

    async def main() -> None:
        async with Server({}, tls=served) as server:
            for _ in range(10):
                async with Peer(At(server), tls=trusting) as peer:
                    assert (await peer.ask(MetadataRequest(topics=None), 12)).brokers
            reader, writer = await asyncio.open_connection(*server.address)
            writer.write(b"\x16\x03\x01")
            await asyncio.sleep(0.1)
            await server.stop()
            with suppress(ConnectionError):
                assert await asyncio.wait_for(reader.read(), 5) == b""
            writer.close()

    run(main(), uvloop.new_event_loop)
