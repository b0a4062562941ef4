"""SASL: each mechanism, each way to fail, and what a connection may say before it is known."""

from __future__ import annotations

import asyncio
import hmac
import json
from base64 import urlsafe_b64encode
from hashlib import new, pbkdf2_hmac
from typing import Any

import pytest

from coordwire.broker import Broker, BrokerConfig
from coordwire.broker.security.authentication import SaslMechanisms, SaslSession
from coordwire.broker.security.credentials import BadToken, read_token
from coordwire.connection.events import TokenReceived
from coordwire.enums import ErrorCode
from coordwire.frames import encode_request
from coordwire.messages import (
    ApiVersionsRequest,
    MetadataRequest,
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from coordwire.sasl import (
    OAuthBearerToken,
    PlainCredentials,
    ScramClientFinal,
    ScramClientFirst,
    ScramServerFinal,
    ScramServerFirst,
    read_sasl,
)
from coordwire.versions import ApiKey
from tests.broker.peer import Peer, run

USERS = {"ann": "secret", "b,=": ""}
SCRAM = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
MECHANISMS = ("PLAIN", *SCRAM)


def session(max_session_ms: int = 0) -> SaslSession:
    return SaslSession(SaslMechanisms(USERS, MECHANISMS, max_session_ms=max_session_ms))


class Limited:
    """A session on a clock that the test moves."""

    def __init__(self, max_session_ms: int = 0) -> None:
        self.now = 1_700_000_000_000
        mechanisms = SaslMechanisms(
            USERS,
            (*MECHANISMS, "OAUTHBEARER"),
            clock=lambda: self.now,
            max_session_ms=max_session_ms,
        )
        self.session = SaslSession(mechanisms)

    def begin(self, mechanism: str) -> int:
        answer = self.session.handle(SaslHandshakeRequest(mechanism=mechanism))
        assert isinstance(answer, SaslHandshakeResponse)
        return answer.error_code

    def plain(self, user: str = "ann", version: int = 2) -> SaslAuthenticateResponse:
        token = PlainCredentials(user=user, password=USERS[user]).encode()
        answer = self.session.handle(SaslAuthenticateRequest(auth_bytes=token), version)
        assert isinstance(answer, SaslAuthenticateResponse)
        return answer

    def bearer(self, authzid: str = "", **claims: Any) -> SaslAuthenticateResponse:
        token = OAuthBearerToken(token=unsecured(claims), authzid=authzid).encode()
        answer = self.session.handle(SaslAuthenticateRequest(auth_bytes=token), 2)
        assert isinstance(answer, SaslAuthenticateResponse)
        return answer


def unsecured(claims: dict[str, Any], **header: Any) -> str:
    """A token without a signature."""
    parts = ({"alg": "none"} | header, claims)
    return ".".join(urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts) + "."


def test_a_session_ends_and_goes_on_after_the_user_has_authenticated_again() -> None:
    sasl = Limited(max_session_ms=5_000)
    assert sasl.begin("PLAIN") == 0
    assert sasl.plain().session_lifetime_ms == 5_000
    sasl.now += 4_999
    assert sasl.session.allows(ApiKey.METADATA)
    sasl.now += 1
    assert not sasl.session.allows(ApiKey.METADATA)
    assert not sasl.session.allows(ApiKey.API_VERSIONS)
    assert sasl.session.allows(ApiKey.SASL_HANDSHAKE)
    assert sasl.begin("PLAIN") == 0
    assert not sasl.session.allows(ApiKey.METADATA)
    assert sasl.plain().session_lifetime_ms == 5_000
    assert sasl.session.allows(ApiKey.METADATA)
    assert not sasl.session.ended


def test_a_client_that_does_not_know_of_sessions_has_one_without_an_end() -> None:
    sasl = Limited(max_session_ms=5_000)
    sasl.begin("PLAIN")
    assert sasl.plain(version=0).session_lifetime_ms == 0
    sasl.now += 1_000_000
    assert sasl.session.allows(ApiKey.METADATA)


def test_another_user_or_mechanism_is_refused_later() -> None:
    sasl = Limited(max_session_ms=5_000)
    sasl.begin("PLAIN")
    sasl.plain()
    sasl.begin("PLAIN")
    assert sasl.plain("b,=").error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert sasl.session.ended
    other = Limited(max_session_ms=5_000)
    other.begin("PLAIN")
    other.plain()
    assert other.begin("SCRAM-SHA-256") == ErrorCode.ILLEGAL_SASL_STATE
    assert other.session.ended


def test_a_token_names_the_user_and_the_end() -> None:
    sasl = Limited()
    sasl.begin("OAUTHBEARER")
    answer = sasl.bearer(sub="till", exp=sasl.now / 1000 + 60, iat=sasl.now / 1000)
    assert (answer.error_code, answer.auth_bytes, answer.session_lifetime_ms) == (0, b"", 60_000)
    assert sasl.session.user == "till"
    sasl.now += 60_000
    assert not sasl.session.allows(ApiKey.METADATA)
    shorter = Limited(max_session_ms=5_000)
    shorter.begin("OAUTHBEARER")
    assert shorter.bearer(sub="till", exp=shorter.now / 1000 + 60).session_lifetime_ms == 5_000


FUTURE, PAST = 1_800_000_000, 1_600_000_000
BAD_CLAIMS: list[dict[str, Any]] = [
    {"sub": "till"},
    {"exp": FUTURE},
    {"sub": "", "exp": FUTURE},
    {"sub": 5, "exp": FUTURE},
    {"sub": "till", "exp": PAST},
    {"sub": "till", "exp": True},
    {"sub": "till", "exp": 1e300},
    {"sub": "till", "exp": float("nan")},
    {"sub": "till", "exp": FUTURE, "iat": FUTURE},
]


@pytest.mark.parametrize("claims", BAD_CLAIMS)
def test_a_bad_token_gets_its_reason_and_then_the_end(claims: dict[str, Any]) -> None:
    sasl = Limited()
    sasl.begin("OAUTHBEARER")
    answer = sasl.bearer(**claims)
    assert (answer.error_code, answer.auth_bytes) == (0, b'{"status":"invalid_token"}')
    assert not sasl.session.ended
    last = authenticate(sasl.session, b"\x01")
    assert last.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert sasl.session.ended


@pytest.mark.parametrize(
    "token",
    ["", "a", "a.b.c", "..", "e30.e30.", unsecured({}, alg="HS256"), "W10.W10.", "W10.bnVsbA.", "é.é.",
     unsecured({"sub": "t", "exp": FUTURE}) + "x", "[" * 9_000],
)  # fmt: skip
def test_what_is_not_a_token_is_refused(token: str) -> None:
    with pytest.raises(BadToken):
        read_token(token, 1_700_000_000_000)


def test_a_token_is_for_its_own_user() -> None:
    sasl = Limited()
    sasl.begin("OAUTHBEARER")
    assert (
        sasl.bearer(authzid="ann", sub="till", exp=FUTURE).error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    )


def test_a_connection_is_closed_when_its_session_has_ended() -> None:
    config = BrokerConfig(users=USERS, max_session_ms=60)

    async def main() -> None:
        async with Broker(config=config) as broker, Peer(broker) as peer:
            await peer.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
            token = PlainCredentials(user="ann", password="secret").encode()
            answer = await peer.ask(SaslAuthenticateRequest(auth_bytes=token), 2)
            assert 0 < answer.session_lifetime_ms <= 60
            await peer.ask(MetadataRequest(topics=None), 12)
            await asyncio.sleep(0.08)
            peer.send(MetadataRequest(topics=None), 12)
            assert await peer.is_closed()

    run(main())


def authenticate(sasl: SaslSession, token: bytes) -> Any:
    return sasl.handle(SaslAuthenticateRequest(auth_bytes=token))


class ScramClient:
    """RFC 5802's client."""

    def __init__(self, mechanism: str, user: str, password: str) -> None:
        self.algorithm = SCRAM[mechanism]
        self.password = password
        self.first = ScramClientFirst(user=user, nonce="fyko+d2lbbFgONRv9qkxdawL")
        self.exchanged = b""
        self.salted = b""

    def final(self, answer: bytes, **changes: Any) -> bytes:
        challenge = read_sasl(answer, "server")
        assert isinstance(challenge, ScramServerFirst)
        name = self.algorithm
        self.salted = pbkdf2_hmac(name, self.password.encode(), challenge.salt, challenge.iterations)
        without = ScramClientFinal(header=b"n,,", nonce=challenge.nonce, proof=b"")
        bare = without.encode().removesuffix(b",p=")
        self.exchanged = b",".join((self.first.encode().removeprefix(b"n,,"), answer, bare))
        key = hmac.digest(self.salted, b"Client Key", name)
        signature = hmac.digest(new(name, key).digest(), self.exchanged, name)
        proof = bytes(a ^ b for a, b in zip(key, signature, strict=True))
        fields = {"header": b"n,,", "nonce": challenge.nonce, "proof": proof} | changes
        return ScramClientFinal(**fields).encode()

    def trusts(self, answer: bytes) -> bool:
        final = read_sasl(answer, "server")
        assert isinstance(final, ScramServerFinal)
        key = hmac.digest(self.salted, b"Server Key", self.algorithm)
        return final.signature == hmac.digest(key, self.exchanged, self.algorithm)


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("mechanism", SCRAM)
def test_scram_proves_both_sides(mechanism: str, user: str) -> None:
    sasl = session()
    assert sasl.handle(SaslHandshakeRequest(mechanism=mechanism)).error_code == 0  # type: ignore[union-attr]
    client = ScramClient(mechanism, user, USERS[user])
    challenge = authenticate(sasl, client.first.encode())
    assert (challenge.error_code, sasl.user) == (0, None)
    answer = authenticate(sasl, client.final(challenge.auth_bytes))
    assert (answer.error_code, sasl.user, sasl.ended) == (0, user, False)
    assert client.trusts(answer.auth_bytes)
    assert authenticate(sasl, b"more").error_code == ErrorCode.ILLEGAL_SASL_STATE


@pytest.mark.parametrize(
    ("user", "password", "changes"),
    [
        ("ann", "wrong", {}),
        ("none", "secret", {}),
        ("ann", "secret", {"nonce": "another"}),
        ("ann", "secret", {"header": b"y,,"}),
        ("ann", "secret", {"proof": b""}),
    ],
)
def test_scram_refuses(user: str, password: str, changes: dict[str, Any]) -> None:
    sasl = session()
    sasl.handle(SaslHandshakeRequest(mechanism="SCRAM-SHA-256"))
    client = ScramClient("SCRAM-SHA-256", user, password)
    answer = authenticate(sasl, client.first.encode())
    if user in USERS:
        answer = authenticate(sasl, client.final(answer.auth_bytes, **changes))
    assert (answer.error_code, sasl.user, sasl.ended) == (ErrorCode.SASL_AUTHENTICATION_FAILED, None, True)


@pytest.mark.parametrize(
    ("mechanism", "token"),
    [
        ("PLAIN", b""),
        ("PLAIN", PlainCredentials(user="ann", password="wrong").encode()),
        ("PLAIN", PlainCredentials(user="none", password="").encode()),
        ("PLAIN", PlainCredentials(user="ann", password="secret", authzid="bob").encode()),
        ("SCRAM-SHA-256", PlainCredentials(user="ann", password="secret").encode()),
        ("SCRAM-SHA-256", ScramClientFirst(user="ann", nonce="n", binding="y").encode()),
        ("SCRAM-SHA-256", ScramClientFinal(header=b"n,,", nonce="n", proof=b"").encode()),
        ("SCRAM-SHA-512", bytes(range(256))),
    ],
)
def test_tokens_that_prove_nothing_are_refused(mechanism: str, token: bytes) -> None:
    sasl = session()
    sasl.handle(SaslHandshakeRequest(mechanism=mechanism))
    answer = authenticate(sasl, token)
    assert (answer.error_code, sasl.user, sasl.ended) == (ErrorCode.SASL_AUTHENTICATION_FAILED, None, True)
    assert mechanism in answer.error_message


def test_a_connection_stays_one_users() -> None:
    sasl = session(max_session_ms=5_000)
    for user, error in (("ann", 0), ("ann", 0), ("b,=", ErrorCode.SASL_AUTHENTICATION_FAILED)):
        sasl.handle(SaslHandshakeRequest(mechanism="PLAIN"))
        answer = authenticate(sasl, PlainCredentials(user=user, password=USERS[user]).encode())
        assert answer.error_code == error
    assert sasl.ended


def test_a_session_without_an_end_has_no_second_handshake() -> None:
    sasl = session()
    for error in (0, ErrorCode.ILLEGAL_SASL_STATE):
        handshake = sasl.handle(SaslHandshakeRequest(mechanism="PLAIN"))
        assert isinstance(handshake, SaslHandshakeResponse)
        assert handshake.error_code == error
        authenticate(sasl, PlainCredentials(user="ann", password=USERS["ann"]).encode())
    assert not sasl.ended
    assert sasl.allows(MetadataRequest.api_key)


CONFIG = BrokerConfig(users=USERS)
GOOD = PlainCredentials(user="ann", password="secret").encode()


def test_over_sockets() -> None:
    async def main() -> None:
        async with Broker(topics={"orders": 1}, config=CONFIG) as broker:
            async with Peer(broker) as peer:
                await peer.ask(ApiVersionsRequest(client_software_name="t", client_software_version="1"), 3)
                handshake = await peer.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
                assert (handshake.error_code, tuple(handshake.mechanisms)) == (0, MECHANISMS)
                assert (await peer.ask(SaslAuthenticateRequest(auth_bytes=GOOD), 2)).error_code == 0
                assert (await peer.ask(MetadataRequest(topics=None), 12)).topics[0].name == "orders"
            async with Peer(broker) as peer:  # nothing else before that
                peer.send(MetadataRequest(topics=None), 12)
                assert await peer.is_closed()
            async with Peer(broker) as peer:
                await peer.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
                refused = await peer.ask(SaslAuthenticateRequest(auth_bytes=b"\0ann\0no"), 2)
                assert refused.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
                assert await peer.is_closed()
            async with Peer(broker) as peer:
                unknown = await peer.ask(SaslHandshakeRequest(mechanism="GSSAPI"), 1)
                assert unknown.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
                assert await peer.is_closed()

    run(main())


@pytest.mark.parametrize("token", [GOOD, b"\0ann\0no"])
def test_bare_tokens_after_the_first_handshake(token: bytes) -> None:
    async def main() -> None:
        async with Broker(topics={"orders": 1}, config=CONFIG) as broker, Peer(broker) as peer:
            assert (await peer.ask(SaslHandshakeRequest(mechanism="PLAIN"), 0)).error_code == 0
            peer.writer.write(peer.connection.send_token(token))
            if token is not GOOD:
                assert await peer.is_closed()
                return
            while (event := peer.connection.next_event()) is None:
                peer.connection.receive_data(await peer.reader.read(1 << 16))
            assert isinstance(event, TokenReceived)
            assert event.token == b""
            peer.connection.end_tokens()
            assert (await peer.ask(MetadataRequest(topics=None), 12)).topics[0].name == "orders"

    run(main())


def test_bare_tokens_authenticate_a_known_user_again() -> None:
    async def token_for(peer: Peer, token: bytes) -> bytes:
        peer.writer.write(peer.connection.send_token(token))
        while (event := peer.connection.next_event()) is None:
            data = await peer.reader.read(1 << 16)
            assert data
            peer.connection.receive_data(data)
        assert isinstance(event, TokenReceived)
        return event.token

    async def main() -> None:
        config = BrokerConfig(users=USERS, max_session_ms=60_000)
        async with Broker(topics={"orders": 1}, config=config) as broker, Peer(broker) as peer:
            for _ in range(2):
                assert (await peer.ask(SaslHandshakeRequest(mechanism="SCRAM-SHA-256"), 0)).error_code == 0
                client = ScramClient("SCRAM-SHA-256", "ann", "secret")
                challenge = await token_for(peer, client.first.encode())
                assert client.trusts(await token_for(peer, client.final(challenge)))
                peer.connection.end_tokens()
                assert (await peer.ask(MetadataRequest(topics=None), 12)).topics[0].name == "orders"

    run(main())


def test_an_unknown_version_of_api_versions_is_a_request_like_any_other() -> None:
    async def main() -> None:
        unknown = bytearray(encode_request(ApiVersionsRequest(), version=0, correlation_id=1))
        unknown[6:8] = b"\0\x63"
        async with Broker(config=CONFIG) as broker:
            async with Peer(broker) as peer:
                peer.writer.write(unknown)
                assert await peer.reader.readexactly(4)
            async with Peer(broker) as peer:
                await peer.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
                peer.writer.write(unknown)
                assert await peer.reader.read() == b""

    run(main())


def test_without_users_there_is_no_sasl() -> None:
    async def main() -> None:
        async with Broker() as broker, Peer(broker) as peer:
            illegal = ErrorCode.ILLEGAL_SASL_STATE
            assert (await peer.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)).error_code == illegal
            assert (await peer.ask(SaslAuthenticateRequest(auth_bytes=GOOD), 2)).error_code == illegal

    run(main())
