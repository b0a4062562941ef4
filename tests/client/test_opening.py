"""The beginning of a connection: versions, TLS, each SASL mechanism, and peers that do it wrong."""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from coordwire import Connection
from coordwire.broker import Broker, BrokerConfig
from coordwire.broker.security.authentication import SaslMechanisms, SaslSession
from coordwire.client import (
    AuthenticationRefused,
    BrokerUnreachable,
    ClientError,
    ClientSettings,
    OAuthBearer,
    Plain,
    Scram,
    SettingsError,
    UnreadableAnswer,
    VersionUnavailable,
    addresses,
    open_socket,
    open_stream,
    tls_context,
)
from coordwire.client.authentication import Ask, BlockingCall, Sasl, SendToken, Tokens, authenticate
from coordwire.client.client_properties import unsecured_token
from coordwire.client.opening import Session, Transfer, ended, opening
from coordwire.codec import Message
from coordwire.connection.events import FrameRefused, RequestReceived, TokenReceived
from coordwire.errors import Truncated
from coordwire.messages import ApiVersionsResponse, SaslAuthenticateResponse, SaslHandshakeResponse
from coordwire.messages.api_versions import ApiVersion
from coordwire.versions import VersionRange
from tests.broker.peer import run

PASSWORD = "a,=\N{GREEK SMALL LETTER LAMDA} secret"
USERS = {"ann": PASSWORD}
FOREVER = {"sub": "till", "exp": 1 << 33}
ALL = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")


async def _awaited_token() -> str:
    return unsecured_token(FOREVER)


MECHANISMS: list[Sasl] = [
    Plain("ann", PASSWORD),
    Scram("ann", PASSWORD),
    Scram("ann", PASSWORD, "SCRAM-SHA-256"),
    OAuthBearer(lambda: unsecured_token(FOREVER), {"traceId": "7"}),
    OAuthBearer(_awaited_token),
]


def settings(bootstrap: str, sasl: Sasl | None = None, tls: ssl.SSLContext | None = None) -> ClientSettings:
    return ClientSettings(bootstrap=addresses(bootstrap), sasl=sasl, tls=tls)


def opened(chosen: ClientSettings, blocking: bool) -> Session:
    """What either driver finds."""
    if blocking:
        with_socket = open_socket(chosen.bootstrap[0], chosen)
        with_socket.close()
        return with_socket.session

    async def main() -> Session:
        stream = await open_stream(chosen.bootstrap[0], chosen)
        await stream.close()
        return stream.session

    return run(main())


BLOCKING = pytest.mark.parametrize("blocking", [False, True], ids=["asyncio", "blocking"])


@BLOCKING
@pytest.mark.parametrize("sasl", MECHANISMS, ids=lambda sasl: sasl.mechanism)
def test_each_mechanism_opens_a_connection(sasl: Sasl, blocking: bool) -> None:
    config = BrokerConfig(users=USERS, sasl_mechanisms=ALL, max_session_ms=60_000)
    with Broker.in_thread(config=config) as broker:
        session = opened(settings(broker.bootstrap, sasl), blocking)
        assert session.versions[3].last >= 12
        assert 0 < session.lifetime_ms <= 60_000


@BLOCKING
@pytest.mark.parametrize("sasl", MECHANISMS[:3], ids=lambda sasl: sasl.mechanism)
def test_a_wrong_password_is_refused_and_not_repeated(sasl: Plain | Scram, blocking: bool) -> None:
    with Broker.in_thread(config=BrokerConfig(users=USERS)) as broker:
        chosen = settings(broker.bootstrap, replace(sasl, password="wrong-one"))
        with pytest.raises(AuthenticationRefused, match="SASL_AUTHENTICATION_FAILED") as failure:
            opened(chosen, blocking)
        assert "wrong-one" not in str(failure.value)
        assert "wrong-one" not in repr(chosen)


def test_a_token_that_the_broker_refuses_has_its_reason() -> None:
    config = BrokerConfig(sasl_mechanisms=("OAUTHBEARER",))
    with Broker.in_thread(config=config) as broker:
        expired = OAuthBearer(lambda: unsecured_token({"sub": "till", "exp": 5}))
        with pytest.raises(AuthenticationRefused, match="SASL_AUTHENTICATION_FAILED"):
            opened(settings(broker.bootstrap, expired), True)
        with pytest.raises(AuthenticationRefused, match="expected a token from the callback"):
            opened(settings(broker.bootstrap, OAuthBearer(lambda: "")), True)


def test_a_mechanism_that_the_broker_lacks_is_named_with_those_that_it_has() -> None:
    plain_only = BrokerConfig(users=USERS, sasl_mechanisms=("PLAIN",))
    for config, reason in ((plain_only, "it offers PLAIN"), (BrokerConfig(), "SCRAM-SHA-512")):
        with (
            Broker.in_thread(config=config) as broker,
            pytest.raises(AuthenticationRefused, match=reason),
        ):
            opened(settings(broker.bootstrap, Scram("ann", PASSWORD)), True)


@BLOCKING
def test_tls_with_an_authority_and_a_certificate_of_the_client(
    certificate: tuple[Path, Path], blocking: bool
) -> None:
    chain, key = certificate
    served = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    served.load_cert_chain(chain, key)
    served.load_verify_locations(chain)
    served.verify_mode = ssl.CERT_REQUIRED
    own = tls_context(ca=chain, certificate_pem=chain.read_text(), key_pem=key.read_text())
    with Broker.in_thread(tls=served, config=BrokerConfig(users=USERS)) as broker:
        assert opened(settings(broker.bootstrap, Scram("ann", PASSWORD), own), blocking).versions
        with pytest.raises(BrokerUnreachable, match="certificate is not trusted"):
            opened(settings(broker.bootstrap, None, tls_context()), blocking)
        with pytest.raises(BrokerUnreachable, match="expects TLS"):
            opened(settings(broker.bootstrap), blocking)
        with pytest.raises(ClientError):  # an alert or the end, as the system has it
            opened(settings(broker.bootstrap, None, tls_context(ca=chain)), blocking)
    with Broker.in_thread() as broker, pytest.raises(BrokerUnreachable, match="a listener without TLS"):
        opened(settings(broker.bootstrap, None, tls_context(ca=chain)), blocking)


def test_files_that_hold_no_certificate_are_refused(tmp_path: Path) -> None:
    nothing = tmp_path / "nothing.pem"
    with pytest.raises(SettingsError, match="no such file"):
        tls_context(ca=nothing)
    nothing.write_text("nothing")
    with pytest.raises(SettingsError, match="cannot be loaded"):
        tls_context(ca=nothing)
    with pytest.raises(SettingsError, match="cannot be loaded"):
        tls_context(certificate=nothing)


@pytest.mark.parametrize("release", ["2.0", "2.4", "3.9"])
def test_an_older_broker_gets_the_versions_that_it_has(release: str) -> None:
    with Broker.in_thread(config=BrokerConfig(as_of=release, users=USERS)) as broker:
        session = opened(settings(broker.bootstrap, Scram("ann", PASSWORD)), True)
        assert session.response.error_code == 0
        assert session.versions


# --- peers that do it wrong ---


@contextmanager
def peer(answer: Callable[[socket.socket], None]) -> Iterator[str]:
    """A listener on loopback that treats each connection so."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        connections: list[socket.socket] = []

        def serve() -> None:
            while True:
                try:
                    accepted, _ = listener.accept()
                except OSError:
                    return
                connections.append(accepted)
                answer(accepted)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield f"127.0.0.1:{listener.getsockname()[1]}"
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()
            for accepted in connections:
                accepted.close()


def _close(connected: socket.socket) -> None:
    connected.recv(4096)
    connected.shutdown(socket.SHUT_RDWR)


def _half_a_frame(connected: socket.socket) -> None:
    connected.recv(4096)
    connected.sendall(struct.pack(">ii", 100, 0))
    connected.shutdown(socket.SHUT_RDWR)


def _nonsense(connected: socket.socket) -> None:
    connected.recv(4096)
    connected.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")


def _another_answer(connected: socket.socket) -> None:
    connected.recv(4096)
    connected.sendall(struct.pack(">iih", 6, 77, 0))


def _short_answer(connected: socket.socket) -> None:
    connected.recv(4096)
    connected.sendall(struct.pack(">ii", 4, 0))


def _error(connected: socket.socket) -> None:
    connected.recv(4096)
    connected.sendall(struct.pack(">iihbib", 12, 0, 42, 1, 0, 0))


WRONG: list[tuple[Callable[[socket.socket], None], type[ClientError], str]] = [
    (_close, BrokerUnreachable, "closed the connection without an answer"),
    (_half_a_frame, BrokerUnreachable, "closed the connection 8 bytes into an answer"),
    (_nonsense, UnreadableAnswer, "is not one of Kafka's"),
    (_another_answer, UnreadableAnswer, "no request waits for correlation id 77"),
    (_short_answer, UnreadableAnswer, "is not one of Kafka's"),
    (_error, UnreadableAnswer, "INVALID_REQUEST"),
    (lambda connected: None, BrokerUnreachable, "no connection within 50 ms"),
]


@BLOCKING
@pytest.mark.parametrize(("answer", "error", "reason"), WRONG)
def test_a_peer_that_does_it_wrong_ends_in_a_clear_error(
    answer: Callable[[socket.socket], None], error: type[ClientError], reason: str, blocking: bool
) -> None:
    is_silent = "within" in reason
    with peer(answer) as address:
        chosen = replace(settings(address), connection_timeout_ms=50 if is_silent else 10_000)
        with pytest.raises(error, match=reason) as failure:
            opened(chosen, blocking)
        assert address in failure.value.reason


@BLOCKING
def test_no_listener_at_all(blocking: bool) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(BrokerUnreachable, match=f"127.0.0.1:{port}: "):
        opened(settings(f"127.0.0.1:{port}"), blocking)


@BLOCKING
@pytest.mark.parametrize(
    "address", [("a\0b", 9092), ("x" * 300, 9092), ("localhost", 70_000), ("localhost", -1), ("a..b", 1)]
)
def test_what_is_not_an_address_is_refused(address: tuple[str, int], blocking: bool) -> None:
    """As a broker's answer may have it."""
    chosen = replace(settings("localhost"), bootstrap=(address,))
    with pytest.raises(BrokerUnreachable):
        opened(chosen, blocking)


# --- mechanisms without a connection ---

_NONCE = "rOprNGfwEbeRWgbNEkqO"
_SERVER_FIRST = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
_CLIENT_FINAL = (
    b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
    b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
)
_SERVER_FINAL = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def _scram() -> Scram:
    return Scram("user", "pencil", "SCRAM-SHA-256", nonce=lambda: _NONCE)


def _hash_of(tokens: Tokens) -> bytes:
    """The salted password that a client computes of the challenge."""
    step = tokens.send(_SERVER_FIRST)
    assert isinstance(step, BlockingCall)
    salted: bytes = step.function()
    return salted


def test_scram_gives_the_bytes_of_its_rfc() -> None:
    """The example of RFC 7677, section 3."""
    tokens = _scram().tokens()
    assert next(tokens) == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    assert tokens.send(_hash_of(tokens)) == _CLIENT_FINAL
    with pytest.raises(StopIteration):
        tokens.send(_SERVER_FINAL)


@pytest.mark.parametrize(
    ("challenge", "reason"),
    [
        (_SERVER_FIRST.replace(b"i=4096", b"i=4095"), "iterations"),
        (_SERVER_FIRST.replace(b"i=4096", b"i=16385"), "4,096 to 16,384 iterations, got 16,385"),
        (_SERVER_FIRST.replace(b"r=rOpr", b"r=sOpr"), "nonce"),
        (b"r=" + _NONCE.encode() + b",s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096", "nonce"),
        (b"e=unknown-user", "unknown-user"),
        (b"e=the password was pencil", "'user': other-error$"),
        (b"", "expected a challenge"),
    ],
)
def test_a_scram_challenge_that_is_not_sound_is_refused(challenge: bytes, reason: str) -> None:
    tokens = _scram().tokens()
    next(tokens)
    with pytest.raises(AuthenticationRefused, match=reason):
        tokens.send(challenge)


@pytest.mark.parametrize(
    "final", [b"", b"v=", b"v=7rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=", b"e=invalid-proof"]
)
def test_a_scram_server_that_has_no_proof_is_refused(final: bytes) -> None:
    tokens = _scram().tokens()
    next(tokens)
    tokens.send(_hash_of(tokens))
    with pytest.raises(AuthenticationRefused):
        tokens.send(final)


def test_a_delegation_token_says_so() -> None:
    assert b",tokenauth=true" in next(Scram("id", "hmac", is_token=True).tokens())
    with pytest.raises(ValueError, match="expected SCRAM-SHA-256 or SCRAM-SHA-512"):
        Scram("user", "pencil", "SCRAM-SHA-1")


def test_a_broker_without_sasl_authenticate_gets_bare_tokens() -> None:
    steps = authenticate(Plain("ann", "secret"), {17: VersionRange(0, 0)})
    step = next(steps)
    assert isinstance(step, Ask)
    assert step.version == 0
    token = steps.send(SaslHandshakeResponse(mechanisms=["PLAIN"]))
    assert token == SendToken(b"\0ann\0secret")
    with pytest.raises(StopIteration) as end:
        steps.send(b"")
    assert end.value.value == 0


def test_no_text_of_a_broker_is_repeated() -> None:
    """It may have the password, from this connection or from one before."""
    echo = "ann \x1b[31m:secret"
    steps = authenticate(Plain("ann", "secret"), {17: VersionRange(0, 1), 36: VersionRange(0, 2)})
    next(steps)
    with pytest.raises(AuthenticationRefused, match=r"it offers SCRAM-SHA-256$"):
        steps.send(SaslHandshakeResponse(error_code=33, mechanisms=[echo, "SCRAM-SHA-256"]))
    steps = authenticate(Plain("ann", "secret"), {17: VersionRange(0, 1), 36: VersionRange(0, 2)})
    next(steps)
    with pytest.raises(AuthenticationRefused, match=r"it offers others$"):
        steps.send(SaslHandshakeResponse(error_code=33, mechanisms=[echo]))
    steps = authenticate(Plain("ann", "secret"), {17: VersionRange(0, 1), 36: VersionRange(0, 2)})
    next(steps)
    steps.send(SaslHandshakeResponse(mechanisms=["PLAIN"]))
    with pytest.raises(AuthenticationRefused, match="FAILED: The credentials were refused"):
        steps.send(SaslAuthenticateResponse(error_code=58, error_message=echo))
    tokens = OAuthBearer(lambda: "secret").tokens()
    next(tokens)
    tokens.send("secret")
    tokens.send(b'{"status":"secret"}')
    with pytest.raises(AuthenticationRefused, match=r"refuses the token$"):
        tokens.send(b"")


def test_a_length_that_may_be_a_text_is_not_repeated() -> None:
    error = ended(FrameRefused(body=b"", error=Truncated("string needs 1213288264 bytes, 4 left", 0)))
    assert "more than 9999999" in str(error)


def test_a_broker_without_sasl_is_named() -> None:
    with pytest.raises(VersionUnavailable, match="no SASL"):
        next(authenticate(Plain("ann", "secret"), {}))


def test_the_lifetime_of_a_session_is_that_of_its_last_answer() -> None:
    versions = {17: VersionRange(0, 1), 36: VersionRange(0, 2)}
    steps = authenticate(OAuthBearer(lambda: "t"), versions)
    next(steps)
    step = steps.send(SaslHandshakeResponse(mechanisms=["OAUTHBEARER"]))
    assert isinstance(step, BlockingCall)
    asked = steps.send("t")
    assert isinstance(asked, Ask)
    assert asked.version == 2
    with pytest.raises(StopIteration) as end:
        steps.send(SaslAuthenticateResponse(session_lifetime_ms=4_000))
    assert end.value.value == 4_000


def test_bare_tokens_open_a_connection() -> None:
    """A broker of a release before SaslAuthenticate: its connection and its session, without a socket."""
    server = Connection("server")
    sasl = SaslSession(SaslMechanisms(USERS, ("SCRAM-SHA-256",)))
    transfer = opening(Connection("client"), Scram("ann", PASSWORD, "SCRAM-SHA-256"))
    with pytest.raises(StopIteration) as end:
        _serve(transfer, server, sasl)
    assert end.value.value.versions == {17: VersionRange(0, 0), 18: VersionRange(0, 1)}
    assert sasl.user == "ann"


def _serve(transfer: Transfer[Session], server: Connection, sasl: SaslSession) -> None:
    data = next(transfer)
    while True:
        if isinstance(data, BlockingCall):
            data = transfer.send(data.function())
            continue
        server.receive_data(data)
        event = server.next_event()
        if isinstance(event, TokenReceived):
            answer = server.send_token(sasl.token(event.token))
        else:
            assert isinstance(event, RequestReceived | FrameRefused)
            answer = server.send(_old_answer(event, sasl), request=event)
        data = transfer.send(answer)


def _old_answer(event: RequestReceived | FrameRefused, sasl: SaslSession) -> Message:
    if isinstance(event, FrameRefused) or event.frame.api_key == 18:
        return ApiVersionsResponse(
            api_keys=[
                ApiVersion(api_key=17, min_version=0, max_version=0),
                ApiVersion(api_key=18, min_version=0, max_version=1),
            ]
        )
    answer = sasl.handle(event.request, event.frame.api_version)
    assert answer is not None
    return answer


def test_a_cancelled_opening_leaves_no_task() -> None:
    async def main() -> None:
        with_limit = replace(settings(address), connection_timeout_ms=60_000)
        task = asyncio.create_task(open_stream(with_limit.bootstrap[0], with_limit))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with peer(lambda connected: None) as address:
        run(main())
