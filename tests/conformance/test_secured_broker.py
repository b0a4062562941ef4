"""`coordwire conformance broker` with SASL and TLS: Apache Kafka passes, and every case finds a bug.

Rules: sessions end by one mechanism of Kafka's and not by the other, so that both kinds of cases are played;
what is skipped in every run fails the tests.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import ssl
import struct
from collections.abc import Iterator
from hashlib import pbkdf2_hmac
from pathlib import Path

import pytest

from coordwire.broker import Broker, BrokerConfig
from coordwire.client import ClientSettings, Plain, Scram, addresses, connect_sync
from coordwire.conformance.broker import authentication, framing
from coordwire.conformance.broker.run import judged, selected
from coordwire.conformance.results import CaseResult, CaseVerdict
from coordwire.messages import AlterUserScramCredentialsRequest
from coordwire.messages.alter_user_scram_credentials import ScramCredentialUpsertion
from tests.certificates import make_certificate
from tests.cli.conftest import Run, run
from tests.conformance.broker_plants import BytePlant, Relay, no_error, other_ids
from tests.interop.broker import Broker as Kafka
from tests.interop.broker import Java
from tests.interop.conftest import give_up
from tests.interop.maven import COMPLETE, CURRENT, PREVIOUS, Unavailable

__all__ = ["run"]

CASES = {case.address: case for case in selected(()) if case.play.__module__ == authentication.__name__}
PLAIN = Plain("ann", "secret")
SCRAM = Scram("ann", "secret", "SCRAM-SHA-256")
USERS = {"ann": "secret"}
SESSION_MS = 3_000
ACCEPTED = {"sasl/before/3": CaseVerdict.PASS}
"""What our broker does within the rule, but otherwise than Kafka."""


async def results_of(bootstrap: str, sasl: Plain | Scram, *only: str) -> list[CaseResult]:
    settings = ClientSettings(bootstrap=addresses(bootstrap), sasl=sasl, retries=20)
    return [result async for result in judged(settings, [CASES[address] for address in only or CASES])]


def verdicts(results: Iterator[CaseResult]) -> dict[str, CaseVerdict]:
    """By address, without what was skipped. Fails for a case that has none but that."""
    found: dict[str, CaseVerdict] = {}
    for result in results:
        assert result.verdict is not CaseVerdict.FAIL, f"{result.address}: {result.reason}"
        if result.verdict is not CaseVerdict.SKIPPED:
            found[result.address] = result.verdict
    assert found.keys() == CASES.keys()
    return found


def test_our_broker_passes() -> None:
    results = []
    runs: list[tuple[Plain | Scram, int]] = [(PLAIN, SESSION_MS), (SCRAM, 0)]
    for sasl, longest in runs:
        with Broker.in_thread(config=BrokerConfig(users=USERS, max_session_ms=longest)) as broker:
            results += asyncio.run(results_of(broker.bootstrap, sasl))
    assert verdicts(iter(results)) == dict.fromkeys(CASES, CaseVerdict.STRICT_PASS) | ACCEPTED


def test_a_broker_with_tls_is_judged_by_a_file_of_properties(run: Run, tmp_path: Path) -> None:
    certificate, key = make_certificate(tmp_path)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, key)
    properties, report = tmp_path / "client.properties", tmp_path / "out.json"
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    properties.write_text(
        "security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\n"
        f'sasl.jaas.config={module} required username="ann" password="secret";\n'
        f"ssl.truststore.type=PEM\nssl.truststore.location={certificate}\n"
    )
    with Broker.in_thread(tls=tls, config=BrokerConfig(users=USERS)) as broker:
        only = [word for address in ("framing", "versions", "sasl") for word in ("--only", address)]
        words = ("--config", properties, "--json", report, *only)
        result = run("conformance", "broker", broker.bootstrap, *words)
    assert (result.status, result.err) == (0, "")
    cases = json.loads(report.read_text())["cases"]
    passed = {case["address"] for case in cases if "pass" in case["verdict"]}
    assert {case["address"] for case in cases} - passed == {
        *(f"sasl/none/{number}" for number in (1, 2)),
        *(f"sasl/again/{number}" for number in (1, 2, 3)),
    }


@pytest.mark.maven
@pytest.mark.long
@pytest.mark.parametrize("release", [CURRENT, COMPLETE, PREVIOUS])
def test_apache_kafka_passes(release: str, tmp_path: Path) -> None:
    try:
        java = Java(release)
    except Unavailable as error:
        give_up(error)
    listener = "listener.name.sasl"
    module = "org.apache.kafka.common.security.scram.ScramLoginModule"
    settings = {
        f"{listener}.sasl.enabled.mechanisms": f"PLAIN,{SCRAM.mechanism}",
        f"{listener}.scram-sha-256.sasl.jaas.config": f"{module} required;",
        f"{listener}.plain.connections.max.reauth.ms": str(SESSION_MS),
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
    }
    (tmp_path / "data").mkdir()
    with Kafka(java, tmp_path / "data", settings, passwords=USERS) as kafka:
        _add_user(kafka.address)
        secured = f"127.0.0.1:{kafka.sasl_port}"
        results = [result for sasl in (PLAIN, SCRAM) for result in asyncio.run(results_of(secured, sasl))]
    assert verdicts(iter(results)) == dict.fromkeys(CASES, CaseVerdict.STRICT_PASS)


def _add_user(bootstrap: str) -> None:
    salt = bytes(16)
    salted = pbkdf2_hmac("sha256", SCRAM.password.encode(), salt, 4_096)
    user = ScramCredentialUpsertion(
        name=SCRAM.user, mechanism=1, iterations=4_096, salt=salt, salted_password=salted
    )
    with connect_sync(bootstrap) as client:
        client.request(AlterUserScramCredentialsRequest(deletions=[], upsertions=[user]))


# --- planted bugs ---


def _no_mechanism(data: bytes) -> bytes:
    return data.replace(b"PLAIN", b"OTHER")


def _illegal_state(data: bytes) -> bytes:
    """ILLEGAL_SASL_STATE for what has its error code first."""
    return data[:8] + struct.pack(">h", 34) + data[10:]


def _other_texts() -> BytePlant:
    words = itertools.cycle([b"invalid", b"unknown"])

    def change(data: bytes) -> bytes:
        return data.replace(b"invalid", next(words)) if b"invalid" in data else data

    return BytePlant(response=change)


PLANTS = {
    "sasl/before/1": BytePlant(keeps_open=True),
    "sasl/before/2": BytePlant(keeps_open=True),
    "sasl/before/3": BytePlant(keeps_open=True),
    "sasl/before/4": BytePlant(response=_illegal_state),
    "sasl/before/5": BytePlant(response=_illegal_state),
    "sasl/handshake/1": BytePlant(response=_no_mechanism),
    "sasl/handshake/2": BytePlant(response=no_error),
    "sasl/handshake/3": BytePlant(response=other_ids),
    "sasl/password/1": BytePlant(response=other_ids),
    "sasl/password/2": BytePlant(response=no_error),
    "sasl/password/3": _other_texts(),
    "sasl/password/4": BytePlant(response=no_error),
    "sasl/password/5": BytePlant(ends_all=True),
    "sasl/again/1": BytePlant(response=other_ids),
    "sasl/again/2": BytePlant(response=no_error),
    "sasl/again/3": BytePlant(keeps_open=True),
    "sasl/again/4": BytePlant(response=no_error),
}


def test_a_flood_is_not_kept() -> None:
    """After a handshake a broker sends more than any answer has, and ends the connection."""
    plant = BytePlant(response=lambda data: data + bytes(1 << 20) if b"PLAIN" in data else data)

    async def play() -> list[CaseResult]:
        async with Broker(config=BrokerConfig(users=USERS)) as broker:
            port = int(broker.bootstrap.rpartition(":")[2])
            async with Relay(port, plant) as relay:
                return await results_of(f"127.0.0.1:{relay.port}", PLAIN, "sasl/before/3")

    (result,) = asyncio.run(play())
    assert result.reason == "an answer of more than 65,536 bytes"


def test_every_case_has_a_planted_bug() -> None:
    assert PLANTS.keys() == CASES.keys()


@pytest.mark.slow
@pytest.mark.parametrize("address", PLANTS)
def test_a_bug_is_found(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(framing, "WAIT", 1.0)
    monkeypatch.setattr(authentication, "WAIT", 1.0)
    longest = SESSION_MS if address < "sasl/again/4" else 0

    async def play() -> list[CaseResult]:
        async with Broker(config=BrokerConfig(users=USERS, max_session_ms=longest)) as broker:
            port = int(broker.bootstrap.rpartition(":")[2])
            async with Relay(port, PLANTS[address]) as relay:
                return await results_of(f"127.0.0.1:{relay.port}", PLAIN, address)

    (result,) = asyncio.run(play())
    assert result.verdict is CaseVerdict.FAIL
