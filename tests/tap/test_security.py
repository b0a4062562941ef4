"""TLS on either side, SASL that passes or that the tap does, and what of it is recorded."""

from __future__ import annotations

import asyncio
import logging
import ssl
from pathlib import Path
from typing import Any

import pytest

from coordwire.broker import Broker, BrokerConfig
from coordwire.broker.harness.traffic import Traffic
from coordwire.capture import FrameEntry
from coordwire.client import ClientSettings, OAuthBearer, Plain, Scram, addresses, tls_context
from coordwire.client.client_properties import unsecured_token
from coordwire.messages import (
    ApiVersionsRequest,
    HeartbeatRequest,
    MetadataRequest,
    SaslAuthenticateRequest,
    SaslHandshakeRequest,
)
from coordwire.sasl import PlainCredentials
from coordwire.tap import Tap
from tests.broker.peer import Peer, run
from tests.certificates import make_certificate
from tests.tap.upstream import Addressed, Upstream

SECRET = "a secret of its own"
USERS = BrokerConfig(users={"ann": SECRET})


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return make_certificate(tmp_path_factory.mktemp("tls"))


def server(certificate: tuple[Path, Path]) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    return context


def upstream(broker: Broker, **settings: Any) -> ClientSettings:
    return ClientSettings(bootstrap=addresses(broker.bootstrap), **settings)


async def asked(tap: Tap, tls: ssl.SSLContext | None = None) -> int:
    """The number of brokers that the first one names; each is asked."""
    async with Peer(Addressed(tap.bootstrap), tls=tls) as peer:
        nodes = (await peer.ask(MetadataRequest(topics=[]), 12)).brokers
    for node in nodes:
        async with Peer(Addressed(f"{node.host}:{node.port}"), tls=tls) as peer:
            assert await peer.ask(HeartbeatRequest(), 4)
    return len(nodes)


def test_tls_on_either_side(certificate: tuple[Path, Path]) -> None:
    trusting = tls_context(ca=certificate[0])

    async def main() -> None:
        traffic = Traffic()
        async with Broker(nodes=3, tls=server(certificate)) as broker:
            async with Tap(upstream(broker, tls=trusting), traffic=traffic) as tap:
                assert await asked(tap) == 3
            async with Tap(upstream(broker, tls=trusting), tls=server(certificate), traffic=traffic) as tap:
                assert await asked(tap, trusting) == 3
        async with Broker(nodes=3) as broker, Tap(broker.bootstrap, tls=server(certificate)) as tap:
            assert await asked(tap, trusting) == 3
        entries = [entry for entry in traffic.entries() if isinstance(entry, FrameEntry)]
        assert {entry.api_name for entry in entries} == {"Metadata", "Heartbeat"}  # in plain text
        assert len(entries) == 16

    run(main())


def test_what_tls_does_not_trust_is_said(
    certificate: tuple[Path, Path], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "coordwire.tap")

    async def refused(settings: ClientSettings) -> None:
        async with Tap(settings) as tap, Peer(Addressed(tap.bootstrap)) as peer:
            assert await peer.is_closed()
            assert tap.counts.refused == 1

    async def main() -> None:
        async with Broker(tls=server(certificate)) as broker:
            await refused(upstream(broker, tls=tls_context()))
        async with Broker() as broker:
            await refused(upstream(broker, tls=tls_context(), connection_timeout_ms=2_000))

    run(main())
    assert "certificate is not trusted" in caplog.text
    assert caplog.text.count("cannot be reached") == 2


MECHANISMS = [Plain("ann", SECRET), Scram("ann", SECRET), Scram("ann", SECRET, "SCRAM-SHA-256")]


@pytest.mark.parametrize("sasl", MECHANISMS, ids=lambda sasl: sasl.mechanism)
def test_the_tap_authenticates_for_its_clients(sasl: Any) -> None:
    async def main() -> None:
        traffic = Traffic()
        async with (
            Broker(nodes=3, config=USERS) as broker,
            Tap(upstream(broker, sasl=sasl), traffic=traffic) as tap,
        ):
            assert await asked(tap) == 3
            assert tap.counts.requests_in == tap.counts.requests_out == 4
        names = {entry.api_name for entry in traffic.entries()}
        assert names == {"Metadata", "Heartbeat"}  # of the clients, and nothing of the tap's own

    run(main())


def test_the_tap_fetches_tokens() -> None:
    async def token() -> str:
        await asyncio.sleep(0)
        return unsecured_token({"sub": "ann", "iat": 1_700_000_000, "exp": 4_000_000_000})

    async def main() -> None:
        config = BrokerConfig(sasl_mechanisms=("OAUTHBEARER",))
        async with Broker(config=config) as broker, Tap(upstream(broker, sasl=OAuthBearer(token))) as tap:
            assert await asked(tap) == 1

    run(main())


def test_a_password_that_is_refused_is_said(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "coordwire.tap")

    async def main() -> None:
        async with Broker(config=USERS) as broker:
            for sasl in (Plain("ann", "wrong"), Scram("ann", "wrong")):
                async with Tap(upstream(broker, sasl=sasl)) as tap, Peer(Addressed(tap.bootstrap)) as peer:
                    assert await peer.is_closed()
                    assert tap.counts.refused == 1
        for opening in (b"", b"\0\0\0\1x", b"nonsense" * 9):
            async with Upstream(lambda frame: b"\0\0\0\4\0\0\0\0", opening=opening) as fake:
                settings = ClientSettings(bootstrap=addresses(fake.address), sasl=Plain("ann", SECRET))
                async with Tap(settings) as tap, Peer(Addressed(tap.bootstrap)) as peer:
                    assert await peer.is_closed()
                    assert (tap.counts.refused, tap.connections) == (1, 0)

    run(main())
    assert "wrong" not in caplog.text
    assert SECRET not in caplog.text


def test_a_session_is_renewed_between_requests() -> None:
    """A session of 300 ms, and requests for longer than that."""
    config = BrokerConfig(users={"ann": SECRET}, max_session_ms=300)

    async def main() -> None:
        async with Broker(config=config) as broker, Tap(upstream(broker, sasl=Plain("ann", SECRET))) as tap:
            async with Peer(Addressed(tap.bootstrap)) as peer:
                for _ in range(80):
                    for _ in range(3):
                        peer.send(HeartbeatRequest(), 4)
                    for _ in range(3):
                        assert await peer.receive()
                    await asyncio.sleep(0.01)
            assert (tap.counts.connections, tap.counts.refused) == (1, 0)
            assert tap.counts.requests_in == tap.counts.requests_out == 240

    run(main())


def test_sasl_passes_and_its_secrets_are_not_recorded() -> None:
    token = PlainCredentials(user="ann", password=SECRET).encode()

    async def login(tap: Tap) -> None:
        async with Peer(Addressed(tap.bootstrap)) as peer:
            assert (
                await peer.ask(ApiVersionsRequest(client_software_name="t", client_software_version="1"), 3)
            ).error_code == 0
            assert (await peer.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)).error_code == 0
            assert (await peer.ask(SaslAuthenticateRequest(auth_bytes=token), 2)).error_code == 0
            assert (await peer.ask(MetadataRequest(topics=[]), 12)).brokers
        async with Peer(Addressed(tap.bootstrap)) as peer:  # with bare tokens
            assert (await peer.ask(SaslHandshakeRequest(mechanism="PLAIN"), 0)).error_code == 0
            peer.writer.write(peer.connection.send_token(token))
            while (event := peer.connection.next_event()) is None:
                peer.connection.receive_data(await peer.reader.read(100))
            assert event is not None
            peer.connection.end_tokens()
            assert (await peer.ask(MetadataRequest(topics=[]), 12)).brokers[0].port != 0

    async def main() -> None:
        for shows in (False, True):
            traffic = Traffic()
            async with (
                Broker(config=USERS) as broker,
                Tap(broker.bootstrap, traffic=traffic, show_secrets=shows) as tap,
            ):
                await login(tap)
                assert tap.counts.changed == {"addresses": 2}
            assert (SECRET.encode() in traffic.pcap()) is shows
            entries = list(traffic.entries())
            assert [entry.error for entry in entries if entry.error is not None] == []
            assert len(entries) == 14
            sizes = [len(entry.body) for entry in entries if entry.api_name == "SaslAuthenticate"]
            assert len(token) < sizes[0] < len(token) + 40

    run(main())
