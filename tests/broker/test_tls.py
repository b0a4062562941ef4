"""A broker behind TLS, with a certificate made for the test."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path
from typing import TypeAlias

import pytest

from coordwire import Connection
from coordwire.broker import Broker
from coordwire.connection.events import ResponseReceived
from coordwire.messages import MetadataRequest, MetadataResponse
from coordwire.tap import Tap
from tests.broker.peer import run


def test_clients_join_over_tls_and_plain_ones_are_let_go(certificate: tuple[Path, Path]) -> None:
    chain, key = certificate
    served = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    served.load_cert_chain(chain, key)
    trusting = ssl.create_default_context(cafile=str(chain))

    async def main() -> MetadataResponse:
        async with Broker(topics={"orders": 2}, tls=served) as broker:
            address = broker.addresses[0]
            plain, plain_writer = await asyncio.open_connection(*address)
            plain_writer.write(Connection("client").send(MetadataRequest(topics=None), version=12))
            reader, writer = await asyncio.open_connection(*address, ssl=trusting)
            client = Connection("client")
            writer.write(client.send(MetadataRequest(topics=None), version=12))
            while (event := client.next_event()) is None:
                client.receive_data(await reader.read(1 << 16))
            assert isinstance(event, ResponseReceived)
            assert isinstance(event.response, MetadataResponse)
            try:
                remaining = await plain.read(1 << 16)  # an alert of TLS at the most
            except ConnectionError:
                remaining = b""
            assert len(remaining) < 20
            for one in (plain_writer, writer):
                one.close()
            return event.response

    response = run(main())
    assert [(topic.name, len(topic.partitions)) for topic in response.topics] == [("orders", 2)]


def _served(certificate: tuple[Path, Path]) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    return context


_Client: TypeAlias = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def _begun(address: tuple[str, int], opening: bytes) -> _Client:
    """A client that connects, begins TLS and sends no more."""
    reader, writer = await asyncio.open_connection(*address)
    writer.write(opening)
    await asyncio.sleep(0.1)
    return reader, writer


async def _is_let_go(client: _Client, within: float = 5) -> bool:
    reader, writer = client
    try:
        return await asyncio.wait_for(reader.read(), within) == b""
    except ConnectionError:
        return True
    except TimeoutError:
        return False
    finally:
        writer.close()


@pytest.mark.parametrize("opening", [b"", b"\x16\x03\x01"])
def test_handshakes_end_with_the_broker(opening: bytes, certificate: tuple[Path, Path]) -> None:
    async def main() -> None:
        broker = Broker(tls=_served(certificate))
        await broker.start()
        client = await _begun(broker.addresses[0], opening)
        await broker.stop()
        assert await _is_let_go(client)

    run(main())


def test_handshakes_end_with_their_node(certificate: tuple[Path, Path]) -> None:
    async def main() -> None:
        async with Broker(tls=_served(certificate), nodes=2) as broker:
            kept, ended = [await _begun(address, b"") for address in broker.addresses]
            await broker.moves.stop_node(2)
            assert await _is_let_go(ended)
            assert not await _is_let_go(kept, within=0.2)

    run(main())


def test_handshakes_end_with_the_tap(certificate: tuple[Path, Path]) -> None:
    async def main() -> None:
        async with Broker() as broker:
            tap = Tap(broker.bootstrap, tls=_served(certificate))
            await tap.start()
            host, _, port = tap.bootstrap.rpartition(":")
            client = await _begun((host, int(port)), b"\x16\x03\x01")
            await tap.stop()
            assert await _is_let_go(client)

    run(main())
