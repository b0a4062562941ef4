"""A broker behind TLS, with a certificate made for the test."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

from coordwire import Connection
from coordwire.broker import Broker
from coordwire.connection.events import ResponseReceived
from coordwire.messages import MetadataRequest, MetadataResponse
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
