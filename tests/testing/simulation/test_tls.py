"""TLS in simulated worlds: OpenSSL decides in memory, and no byte of it is in the trace."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from coordwire.testing.simulation import RunOutcome, SimulatedKafka, SimulatedWorld, Simulation
from tests.certificates import make_certificate

Contexts = tuple[ssl.SSLContext, ssl.SSLContext]


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return make_certificate(tmp_path_factory.mktemp("certificate"))


@pytest.fixture(scope="module")
def contexts(certificate: tuple[Path, Path]) -> Contexts:
    """One that serves, and one that trusts it."""
    chain, key = certificate
    served = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    served.load_cert_chain(chain, key)
    return served, ssl.create_default_context(cafile=str(chain))


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(100):
        writer.write(data.upper())
    writer.close()


def exchange(served: ssl.SSLContext | None, **options: Any) -> tuple[RunOutcome, list[Any]]:
    """A line to an echo and back, of a seed that runs twice; what was seen."""
    seen: list[Any] = []

    async def serve() -> None:
        async with await asyncio.start_server(echo, "0.0.0.0", 7000, ssl=served) as server:
            await server.serve_forever()

    async def test(kafka: SimulatedKafka, world: SimulatedWorld) -> None:
        world.start("echo", serve)
        await asyncio.sleep(0.5)
        began = world.now
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", 7000, **options)
            writer.write(b"tea")
            seen.append((await reader.readexactly(3), world.now - began, writer.get_extra_info("cipher")))
        except OSError as error:
            seen.append(error)
            return
        writer.close()

    outcome = Simulation(test=test, nodes=1).check(1)
    assert outcome.failure is None
    return outcome, seen


def test_bytes_go_over_tls_after_one_more_way(contexts: Contexts) -> None:
    served, trusting = contexts
    _, seen = exchange(served, ssl=trusting)
    _, plain = exchange(None)
    assert [entry[0] for entry in seen] == [b"TEA", b"TEA"]
    assert plain[0][2] is None
    assert "AES" in seen[0][2][0]
    assert plain[0][1] < seen[0][1] == seen[1][1]


UNTRUSTED: list[tuple[str, Callable[[Contexts], Any], type[OSError]]] = [
    ("an unknown authority", lambda contexts: ssl.create_default_context(), ssl.SSLCertVerificationError),
    ("no TLS", lambda contexts: None, ConnectionResetError),
]


@pytest.mark.parametrize(("name", "client", "refusal"), UNTRUSTED, ids=[case[0] for case in UNTRUSTED])
def test_who_does_not_come_to_terms_is_refused(
    contexts: Contexts, name: str, client: Callable[[Contexts], Any], refusal: type[OSError]
) -> None:
    _, seen = exchange(contexts[0], ssl=client(contexts))
    assert [type(error) for error in seen] == [refusal, refusal]


def test_a_name_that_the_certificate_does_not_have_is_refused(contexts: Contexts) -> None:
    _, seen = exchange(contexts[0], ssl=contexts[1], server_hostname="shop")
    assert "Hostname mismatch" in str(seen[0])


def test_a_server_without_tls_is_none(contexts: Contexts) -> None:
    _, seen = exchange(None, ssl=contexts[1])
    assert type(seen[0]) is ConnectionResetError


def test_a_server_that_asks_for_a_certificate_resets_who_has_none(certificate: tuple[Path, Path]) -> None:
    chain, key = certificate
    served = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    served.load_cert_chain(chain, key)
    served.load_verify_locations(chain)
    served.verify_mode = ssl.CERT_REQUIRED
    trusting = ssl.create_default_context(cafile=str(chain))
    assert type(exchange(served, ssl=trusting)[1][0]) is ConnectionResetError
    trusting.load_cert_chain(chain, key)
    assert exchange(served, ssl=trusting)[1][0][0] == b"TEA"


def test_the_broker_is_reached_over_tls(contexts: Contexts) -> None:
    aiokafka = pytest.importorskip("aiokafka", reason="aiokafka isn't installed")
    served, trusting = contexts

    async def sell(bootstrap: str) -> None:
        tls = {"security_protocol": "SSL", "ssl_context": trusting}
        async with aiokafka.AIOKafkaProducer(bootstrap_servers=bootstrap, **tls) as producer:
            await producer.send_and_wait("orders", b"tea")

    async def test(kafka: SimulatedKafka, world: SimulatedWorld) -> None:
        world.start("sell", sell, kafka.bootstrap)
        await world.until(lambda: kafka.records("orders"), within=20)

    settings = {"topics": {"orders": 1}, "tls": served}
    assert Simulation(test=test, settings=settings).check(2).failure is None
