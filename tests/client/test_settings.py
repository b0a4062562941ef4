"""Settings, and what Kafka's own client.properties say: as Java and Kafka read them."""

from __future__ import annotations

import json
import ssl
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from coordwire.broker import Broker, BrokerConfig
from coordwire.client import (
    ClientSettings,
    OAuthBearer,
    Plain,
    Scram,
    SettingsError,
    addresses,
    open_socket,
    read_properties,
    settings_of,
)
from coordwire.client.client_properties import parse_login, parse_properties
from coordwire.client.settings import shown_address
from fuzz.client_properties import check
from tests.client.properties_cases import ANSWERS, asked, kafkas_answers
from tests.interop.conftest import give_up
from tests.interop.maven import Unavailable

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required"
BEARER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"


def reading(kind: str, text: str) -> Any:
    """What we read, in the form of Kafka's answers."""
    try:
        if kind == "properties":
            return parse_properties(text)
        login = parse_login(text)
        return [login.module, dict(login.options)]
    except SettingsError:
        return None


def test_properties_and_logins_are_read_as_java_and_kafka_read_them() -> None:
    answers = json.loads(ANSWERS.read_text())
    different = []
    for (kind, text), answer in zip(asked(), answers, strict=True):
        expected = [answer[0].rpartition(".")[2], answer[1]] if answer and kind == "login" else answer
        if (result := reading(kind, text)) != expected:
            different.append((text, result, expected))
    assert different == []
    assert sum(answer is None for answer in answers) > 10


@pytest.mark.maven
def test_java_and_kafka_read_them_as_they_did() -> None:
    try:
        assert kafkas_answers() == json.loads(ANSWERS.read_text())
    except Unavailable as error:
        give_up(error)


def test_a_list_of_addresses() -> None:
    text = " a:1, SASL_SSL://b.example:65535 ,[::1]:9093,c,[fe80::1%eth0]"
    expected = (("a", 1), ("b.example", 65535), ("::1", 9093), ("c", 9092), ("fe80::1%eth0", 9092))
    assert addresses(text) == expected
    assert shown_address(("::1", 9093)) == "[::1]:9093"


@pytest.mark.parametrize("text", ["a:0", "a:65536", "a:b", "a b:1", "::1", "a:1:2", "[::1", ":9092"])
def test_what_is_not_an_address_is_refused(text: str) -> None:
    with pytest.raises(SettingsError):
        addresses(text)


def test_settings_have_their_limits() -> None:
    settings = ClientSettings(bootstrap=(("a", 1),))
    for change in ({"bootstrap": ()}, {"timeout_ms": 0}, {"retries": -1}, {"max_in_flight_bytes": 0}):
        with pytest.raises(SettingsError):
            replace(settings, **change)


def test_kafkas_properties_become_settings() -> None:
    properties = {
        "bootstrap.servers": "a:1,b:2",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.jaas.config": f'{SCRAM} username="ann" password="secret" tokenauth="true";',
        "client.id": "till-3",
        "request.timeout.ms": "5000",
        "default.api.timeout.ms": "7000",
        "socket.connection.setup.timeout.ms": "900",
        "retries": "2147483647",
        "retry.backoff.ms": "7",
        "group.id": "payments",
        "ssl.truststore.location": "/not/read/without/tls",
    }
    settings = settings_of(properties)
    assert settings == ClientSettings(
        bootstrap=(("a", 1), ("b", 2)),
        sasl=Scram("ann", "secret", "SCRAM-SHA-256", is_token=True),
        client_id="till-3",
        request_timeout_ms=5_000,
        timeout_ms=7_000,
        connection_timeout_ms=900,
        retries=20,
        retry_backoff_ms=7,
    )
    assert "secret" not in repr(settings)
    assert settings_of(properties, bootstrap="c:3").bootstrap == (("c", 3),)
    assert settings_of({"bootstrap.controllers": "a:1"}).is_controller


def sasl_of(mechanism: str, login: str, **more: str) -> Any:
    names = {name.replace("_", "."): value for name, value in more.items()}
    return settings_of({
        "bootstrap.servers": "a:1", "security.protocol": "sasl_plaintext", "sasl.mechanism": mechanism,
        "sasl.jaas.config": login, **names,
    }).sasl  # fmt: skip


def test_logins_become_mechanisms(tmp_path: Path) -> None:
    assert sasl_of("PLAIN", f'{PLAIN} username="ann" password="x";') == Plain("ann", "x")
    unsecured = sasl_of(
        "OAUTHBEARER", f'{BEARER} unsecuredLoginStringClaim_sub="ann" unsecuredLoginExtension_a="b";'
    )
    assert isinstance(unsecured, OAuthBearer)
    assert unsecured.extensions == {"a": "b"}
    assert str(unsecured.token()).count(".") == 2
    file = tmp_path / "a token"
    file.write_text("abc\n")
    from_file = sasl_of(
        "OAUTHBEARER", f"{BEARER} extension_c=d;", sasl_oauthbearer_token_endpoint_url=file.as_uri()
    )
    assert (from_file.token(), from_file.extensions) == ("abc", {"c": "d"})


@pytest.mark.parametrize(
    ("properties", "reason"),
    [
        ({}, "bootstrap.servers"),
        ({"bootstrap.servers": "a:1", "security.protocol": "TLS"}, "security.protocol: expected one of"),
        ({"bootstrap.servers": "a:1", "security.protocol": "SASL_SSL"}, "the default is GSSAPI"),
        ({"bootstrap.servers": "a:1", "security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"}, "jaas"),
        ({"bootstrap.servers": "a:1", "retries": "some"}, "retries: expected a number"),
        ({"bootstrap.servers": "a:1", "ssl.engine.factory.class": "x.Y"}, "ssl.engine.factory.class"),
        (
            {"bootstrap.servers": "a:1", "security.protocol": "SSL", "ssl.truststore.location": "/none"},
            "ssl.truststore.location: No such file",
        ),
        (
            {"bootstrap.servers": "a:1", "security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN",
             "sasl.jaas.config": f'{PLAIN} username="ann" passwort="secret";'},
            "expected the option password",
        ),
        *(
            ({"bootstrap.servers": "a:1", "security.protocol": "SASL_SSL", "sasl.mechanism": mechanism,
              "sasl.jaas.config": login} | changes, reason)
            for mechanism, login, changes, reason in (
                ("PLAIN", "a.B required username=u password=correct secret-battery;", {}, "OPTION=VALUE"),
                ("PLAIN", "a.B required username=u password=correct$ secret;", {}, "OPTION=VALUE"),
                ("PLAIN", 'a.B secret username="u" password="x";', {}, "expected required"),
                ("PLAIN", 'a.secret required username="u";', {}, "expected the option password"),
                ("secret", PLAIN, {}, "sasl.mechanism: expected PLAIN"),
                ("OAUTHBEARER", 'a.B required unsecuredLoginStringClaim_sub="u" '
                 'unsecuredLoginLifetimeSeconds="1secret";', {}, "LifetimeSeconds: expected a number"),
                ("OAUTHBEARER", 'a.B required unsecuredLoginPrincipalClaimName="secret";', {}, "CLAIM"),
                ("OAUTHBEARER", 'a.B required clientId="a" clientSecret="s";',
                 {"sasl.oauthbearer.token.endpoint.url": "http://["}, "expected a URL"),
                ("OAUTHBEARER", 'a.B required clientId="a" clientSecret="s";',
                 {"sasl.oauthbearer.token.endpoint.url": "http://u:secret@h/"}, "without credentials"),
            )
        ),
        *(
            ({"bootstrap.servers": "a:1", "security.protocol": "SSL"} | changes, reason)
            for changes, reason in (
                ({"security.protocol": "secret"}, "security.protocol: expected one of"),
                ({"bootstrap.servers": "a:b:secret"}, "bootstrap.servers: expected HOST:PORT"),
                ({"retries": "secret"}, "retries: expected a number"),
                ({"retries": "9" * 25}, "retries: expected a number"),
                ({"request.timeout.ms": "9" * 5000}, "request.timeout.ms: expected a number"),
                ({"ssl.truststore.location": "/none/secret"}, "ssl.truststore.location: No such file"),
                ({"ssl.truststore.location": "/secret\0x"}, "ssl.truststore.location: not a path"),
                ({"ssl.keystore.certificate.chain": "é", "ssl.keystore.key": "secret"}, "cannot be loaded"),
            )
        ),
    ],
)  # fmt: skip
def test_settings_that_cannot_be_used_are_named(properties: dict[str, str], reason: str) -> None:
    with pytest.raises(SettingsError, match=reason) as failure:
        settings_of(properties)
    assert "secret" not in str(failure.value)


def test_providers_give_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "secrets.properties").write_text("word=from a file\n")
    (tmp_path / "token").write_text("from a folder")
    monkeypatch.setenv("COORDWIRE_TEST_WORD", "from the environment")
    kinds = {"env": "EnvVarConfigProvider", "file": "FileConfigProvider", "dir": "DirectoryConfigProvider"}
    lines = [
        "config.providers=env, file,dir",
        *(f"config.providers.{alias}.class=org.apache.kafka.common.config.provider.{kind}"
          for alias, kind in kinds.items()),
        "a=${env:COORDWIRE_TEST_WORD}",
        f"b=<${{file:{tmp_path}/secrets.properties:word}}>",
        f"c=${{dir:{tmp_path}:token}}",
        "d=${env:COORDWIRE_TEST_NOTHING} ${other:x}",
    ]  # fmt: skip
    path = tmp_path / "client.properties"
    path.write_text("\n".join(lines))
    properties = read_properties(path)
    assert properties["a"] == "from the environment"
    assert properties["b"] == "<from a file>"
    assert properties["c"] == "from a folder"
    assert properties["d"] == "${env:COORDWIRE_TEST_NOTHING} ${other:x}"
    path.write_text("a=${env:COORDWIRE_TEST_WORD}")
    assert read_properties(path) == {"a": "${env:COORDWIRE_TEST_WORD}"}
    with pytest.raises(SettingsError, match="No such file"):
        read_properties(tmp_path / "none")
    for line, reason in (
        ("x=${file:/none/secret:secret}", "x: the value of a provider: No such file"),
        ("x=${file:/secret\\u0000:secret}", "x: the value of a provider: not a path"),
        ("config.providers=secret", "config.providers: expected for each a class"),
    ):
        path.write_text("\n".join([*lines, line]))
        with pytest.raises(SettingsError, match=reason) as failure:
            read_properties(path)
        assert "secret" not in str(failure.value)


@pytest.mark.parametrize("seed", range(0, 200, 20))
def test_changed_properties(seed: int) -> None:
    for number in range(20):
        check(seed + number)


def test_stores_of_each_kind_open_a_connection(tmp_path: Path, certificate: tuple[Path, Path]) -> None:
    chain, key = certificate
    served = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    served.load_cert_chain(chain, key)
    served.load_verify_locations(chain)
    served.verify_mode = ssl.CERT_REQUIRED
    both = tmp_path / "both.pem"
    both.write_text(key.read_text() + chain.read_text())
    files = {"ssl.truststore.location": str(chain), "ssl.keystore.location": str(both)}
    texts = {
        "ssl.truststore.certificates": chain.read_text(),
        "ssl.keystore.certificate.chain": chain.read_text(),
        "ssl.keystore.key": key.read_text(),
    }
    store = tmp_path / "store.p12"
    subprocess.run(
        ["openssl", "pkcs12", "-export", "-in", str(chain), "-inkey", str(key), "-out", str(store),
         "-passout", "pass:changeit"],
        check=True, capture_output=True,
    )  # fmt: skip
    pkcs12 = {
        "ssl.truststore.location": str(chain),
        "ssl.keystore.location": str(store),
        "ssl.keystore.password": "changeit",
    }
    with Broker.in_thread(tls=served, config=BrokerConfig()) as broker:
        for stores in (files, texts, pkcs12):
            if stores is pkcs12:
                pytest.importorskip("cryptography")
            settings = settings_of({"security.protocol": "SSL", **stores}, bootstrap=broker.bootstrap)
            opened = open_socket(settings.bootstrap[0], settings)
            opened.close()
            assert opened.session.versions
    wrong = pkcs12 | {"ssl.keystore.password": "wrong"}
    with pytest.raises(SettingsError, match="the password is wrong"):
        settings_of({"security.protocol": "SSL", **wrong}, bootstrap="a:1")


def test_a_store_that_only_java_reads_has_its_remedy(tmp_path: Path) -> None:
    store = tmp_path / "trust.jks"
    store.write_bytes(b"\xfe\xed\xfe\xed\0\0\0\2")
    properties = {"security.protocol": "SSL", "ssl.truststore.location": str(store)}
    with pytest.raises(SettingsError, match="-deststoretype PKCS12"):
        settings_of(properties, bootstrap="a:1")
