"""Whatever a client sends, in whatever order, while it authenticates, authenticates again or lets its session
end: the broker serves it only while a user is proven and the session lasts, fails with no error of its own,
and answers or closes as a small model of the states says. The client's connection has the model's state."""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
from base64 import urlsafe_b64encode
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from hashlib import new, pbkdf2_hmac
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from coordwire import Connection, ConnectionState, EncodeError
from coordwire.broker.cluster.cluster_state import ClusterState
from coordwire.broker.connections.client_link import ClientLink
from coordwire.broker.connections.connection_memory import READ_SIZE, ConnectionMemory
from coordwire.broker.connections.turns import Turns
from coordwire.broker.injection.fault_registry import Faults
from coordwire.broker.security.authentication import SaslMechanisms
from coordwire.broker.security.credentials import ScramCredentials
from coordwire.broker.settings.broker_config import BrokerConfig
from coordwire.codec import Message
from coordwire.connection.events import ConnectionClosed, ResponseReceived, TokenReceived
from coordwire.frames import encode_request
from coordwire.messages import (
    ApiVersionsRequest,
    FindCoordinatorRequest,
    MetadataRequest,
    SaslAuthenticateRequest,
    SaslHandshakeRequest,
)
from coordwire.sasl import (
    OAuthBearerToken,
    PlainCredentials,
    ScramClientFinal,
    ScramClientFirst,
    ScramServerFirst,
    read_sasl,
)
from fuzz._run import main

USERS = {"ann": "secret", "b,=": ""}
HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
OFFERED = ("PLAIN", *HASHES, "OAUTHBEARER")
MECHANISMS = (*OFFERED, "GSSAPI", "plain", "")
START = 1_700_000_000_000
LONGEST_SESSION = 1_000
TOKEN_SECONDS = 2

log = logging.getLogger("coordwire.broker")


class Failures(logging.Handler):
    """Collects what the broker logs as its own failures."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(self.format(record))


class Wire(asyncio.Transport):
    """A transport that keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.data = b""
        self.closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        assert not self.closed
        self.data += data

    def close(self) -> None:
        self.closed = True

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass


class Place:
    """What a link needs of a broker. now: its clock, which the target moves."""

    def __init__(self, max_session_ms: int) -> None:
        self.now = START
        self.cluster = ClusterState(clock=lambda: self.now, config=BrokerConfig(users=USERS))
        self.turns = Turns(lambda action: action())
        self.memory = ConnectionMemory(1 << 30, self.call_later)
        self.read_buffer = memoryview(bytearray(READ_SIZE))
        self.sasl = SaslMechanisms(
            USERS,
            OFFERED,
            scram=credentials(),
            clock=lambda: self.now,
            max_session_ms=max_session_ms,
        )
        self.faults = Faults()
        self.recorder = None

    def join(self, link: ClientLink) -> bool:
        return True

    def leave(self, link: ClientLink) -> None:
        pass

    def call_later(self, seconds: float, action: Callable[[], None]) -> Any:
        raise AssertionError("nothing here waits")

    def handled(self) -> None:
        pass


@cache
def credentials() -> ScramCredentials:
    """Those of the users, which cost thousands of hashes to make."""
    return ScramCredentials(USERS)


@cache
def salted_password(algorithm: str, password: str, salt: bytes, iterations: int) -> bytes:
    return pbkdf2_hmac(algorithm, password.encode(), salt, iterations)


def scram_final(mechanism: str, user: str, challenge: bytes, password: str) -> bytes:
    """RFC 5802's client: the proof for a challenge."""
    read = read_sasl(challenge, "server", mechanism)
    assert isinstance(read, ScramServerFirst)
    algorithm = HASHES[mechanism]
    salted = salted_password(algorithm, password, read.salt, read.iterations)
    bare = ScramClientFirst(user=user, nonce="client").encode().removeprefix(b"n,,")
    without = ScramClientFinal(header=b"n,,", nonce=read.nonce, proof=b"").encode().removesuffix(b",p=")
    key = hmac.digest(salted, b"Client Key", algorithm)
    signature = hmac.digest(new(algorithm, key).digest(), b",".join((bare, challenge, without)), algorithm)
    proof = bytes(a ^ b for a, b in zip(key, signature, strict=True))
    return ScramClientFinal(header=b"n,,", nonce=read.nonce, proof=proof).encode()


def bearer(user: str, expires: int) -> bytes:
    """An unsecured token. expires: in seconds."""
    parts = ({"alg": "none"}, {"sub": user, "exp": expires})
    encoded = (urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts)
    return OAuthBearerToken(token=".".join(encoded) + ".").encode()


# --- what a client does ---


@dataclass(frozen=True, slots=True)
class Handshake:
    mechanism: str
    version: int


@dataclass(frozen=True, slots=True)
class Token:
    """A token of SASL. version: of the SaslAuthenticate around it, None for a bare one. kind: what it is."""

    kind: str
    user: str
    version: int | None
    noise: bytes


@dataclass(frozen=True, slots=True)
class Ask:
    """A request of another kind; `ApiVersions` of an unknown version too."""

    message: Message
    version: int


@dataclass(frozen=True, slots=True)
class Wait:
    milliseconds: int


@dataclass(frozen=True, slots=True)
class Noise:
    data: bytes


Step = Handshake | Token | Ask | Wait | Noise

VERSIONS = ApiVersionsRequest(client_software_name="fuzz", client_software_version="1")
KINDS = ("good", "good", "good", "good", "wrong", "half", "noise", "empty", "other")
STEPS: st.SearchStrategy[Step] = st.one_of(
    st.builds(Handshake, st.sampled_from(MECHANISMS) | st.sampled_from(OFFERED), st.integers(0, 1)),
    *(
        st.builds(
            Token,
            st.sampled_from(KINDS),
            st.sampled_from(("ann", "ann", "ann", "b,=")),
            st.sampled_from((None, None, 0, 1, 2)),
            st.binary(max_size=30),
        )
        for _ in range(3)
    ),
    st.builds(
        Ask,
        st.sampled_from((MetadataRequest(topics=None), FindCoordinatorRequest(key="group", key_type=0))),
        st.just(3),
    ),
    st.builds(Ask, st.just(VERSIONS), st.sampled_from((0, 3, 99))),
    st.builds(Wait, st.sampled_from((1, LONGEST_SESSION - 1, LONGEST_SESSION, TOKEN_SECONDS * 1000))),
    st.builds(Noise, st.binary(min_size=1, max_size=40)),
)


@st.composite
def authentications(draw: st.DrawFn) -> list[Step]:
    """A handshake and as many good tokens as its mechanism may need."""
    mechanism, user = draw(st.sampled_from(OFFERED)), draw(st.sampled_from(("ann", "ann", "b,=")))
    handshake = draw(st.integers(0, 1))
    version = draw(st.integers(0, 2)) if handshake else None
    tokens = 2 if mechanism in HASHES else 1
    return [Handshake(mechanism, handshake), *[Token("good", user, version, b"")] * tokens]


SCRIPTS = st.lists(
    st.one_of(authentications(), STEPS.map(lambda step: [step]), st.lists(STEPS, max_size=3)),
    min_size=1,
    max_size=6,
)


# --- what the broker should do ---


@dataclass(slots=True)
class Model:
    """The states of a connection, as Kafka's authenticator has them.

    user: who is proven; expires: until when. mechanism: of the exchange that goes on, None without one; bare:
    its tokens have no header; begun: SCRAM's challenge was given to `first`.
    """

    limit: int
    user: str | None = None
    known: str = ""
    expires: int | None = None
    mechanism: str | None = None
    bare: bool = False
    first: str | None = None

    def serves(self, now: int) -> bool:
        lasts = self.expires is None or now < self.expires
        return self.user is not None and self.mechanism is None and lasts

    @property
    def is_endless(self) -> bool:
        """Whether there is a session that never ends, in which nobody authenticates again."""
        return self.user is not None and self.mechanism is None and self.expires is None

    def handshake(self, step: Handshake, now: int) -> int | None:
        """The error of the answer; None: the connection is closed at once."""
        if self.mechanism is not None:
            return None
        if self.is_endless:
            return 34
        if step.mechanism not in OFFERED:
            return 33
        if self.user is not None and step.mechanism != self.known:
            return 34
        self.mechanism = self.known = step.mechanism
        self.bare, self.first = step.version == 0, None
        return 0

    def token(self, user: str, good: bool, now: int, version: int | None) -> bool:
        """Whether a token of the exchange is taken."""
        mechanism = self.mechanism
        assert mechanism is not None
        if not good:
            return False
        if mechanism in HASHES and self.first is None:
            self.first = user
            return True
        if self.user not in (None, user):
            return False
        ends = [now + self.limit] if self.limit else []
        if mechanism == "OAUTHBEARER":
            ends.append(START + TOKEN_SECONDS * 1000)
        self.user, self.mechanism, self.first = user, None, None
        self.expires = min(ends, default=None) if version != 0 else None
        return True


@dataclass
class Talk:
    """A connection to the broker: what is sent, and what the model expects of it."""

    place: Place
    model: Model
    failures: Failures
    wire: Wire = field(default_factory=Wire)
    client: Connection = field(default_factory=lambda: Connection("client"))
    lawful: bool = True
    """Nothing was sent that the client's connection refuses to send."""
    challenge: bytes = b""
    correlation: int = 0

    def __post_init__(self) -> None:
        self.link = ClientLink(self.place, 1)
        self.link.connection_made(self.wire)

    def exchange(self, data: bytes) -> bytes:
        """Send bytes; what came back."""
        self.wire.data = b""
        self.link.data_received(data)
        assert not self.failures.texts, self.failures.texts
        return self.wire.data

    def frame(self, message: Message, version: int) -> bytes:
        """A request's bytes, by the client's connection if it sends it."""
        if version != 99:
            try:
                if self.lawful:
                    return self.client.send(message, version=version)
            except EncodeError:
                assert self.client.state is not ConnectionState.OPEN
        self.lawful = False
        self.correlation += 1
        if version == 99:
            data = encode_request(message, version=3, correlation_id=self.correlation, client_id="fuzz")
            return data[:6] + b"\0\x63" + data[8:]
        return encode_request(message, version=version, correlation_id=self.correlation, client_id="fuzz")

    def bare(self, token: bytes) -> bytes:
        """A token's bytes, by the client's connection if it sends it."""
        try:
            if self.lawful:
                return self.client.send_token(token)
        except EncodeError:
            assert self.client.state is not ConnectionState.AUTHENTICATING
        self.lawful = False
        return len(token).to_bytes(4, "big") + token

    def answer(self, data: bytes) -> Any:
        """What the client's connection makes of an answer; None if it cannot tell any more."""
        if not self.lawful:
            return None
        self.client.receive_data(data)
        (event,) = list(self.client.events())
        if isinstance(event, TokenReceived):
            return event.token
        assert isinstance(event, ResponseReceived)
        return event.response


def token_of(step: Token, exchanged: Talk) -> tuple[bytes, bool]:
    """A token's bytes, and whether it is the next one that the mechanism expects."""
    mechanism, place = exchanged.model.mechanism or exchanged.model.known, exchanged.place
    user = exchanged.model.first or step.user
    password = USERS[user]
    if mechanism in HASHES and exchanged.model.first is None:
        data = ScramClientFirst(user=user, nonce="client").encode()
    elif mechanism in HASHES:
        data = scram_final(mechanism, user, exchanged.challenge, password)
    elif mechanism == "OAUTHBEARER":
        data = bearer(user, START // 1000 + TOKEN_SECONDS)
    else:
        data = PlainCredentials(user=user, password=password).encode()
    if step.kind == "good":
        return data, mechanism != "OAUTHBEARER" or place.now < START + TOKEN_SECONDS * 1000
    if step.kind == "half":
        return data[: len(data) // 2], False
    if step.kind == "empty":
        return b"", False
    if step.kind == "noise":
        return step.noise, False
    if step.kind == "other":  # of another mechanism
        if mechanism in HASHES:
            return PlainCredentials(user=user, password=password).encode(), False
        return ScramClientFirst(user=user, nonce="client").encode(), False
    if mechanism in HASHES and exchanged.model.first is None:
        return ScramClientFirst(user="nobody", nonce="client").encode(), False
    if mechanism in HASHES:
        return scram_final(mechanism, user, exchanged.challenge, f"{password}x"), False
    if mechanism == "OAUTHBEARER":
        return bearer(user, START // 1000), False
    return PlainCredentials(user=user, password=f"{password}x").encode(), False


def take(step: Step, exchanged: Talk) -> None:
    """One step, and what the model says of it."""
    model, place, wire = exchanged.model, exchanged.place, exchanged.wire
    tokens_follow = model.mechanism is not None and model.bare
    if isinstance(step, Wait):
        place.now += step.milliseconds
    elif isinstance(step, Noise):
        data = len(step.data).to_bytes(4, "big") + step.data
        exchanged.lawful = False
        exchanged.exchange(data)
        # As a frame it has no header that a broker serves; as a token it proves nothing.
        assert wire.closed or not wire.data
    elif isinstance(step, Token) and step.version is None:
        data, good = token_of(step, exchanged)
        user = model.first or step.user
        sent = exchanged.bare(data)
        back = exchanged.exchange(sent)
        if not tokens_follow:  # a frame without a header, whose first bytes are no request that is allowed
            assert wire.closed
            assert not back
            return
        bearer_refused = model.mechanism == "OAUTHBEARER" and step.kind in ("wrong", "good") and not good
        if bearer_refused:  # the client sees the reason, and the next token is refused whatever it is
            assert back
            assert not wire.closed
            exchanged.exchange(exchanged.bare(b"\1"))
            assert wire.closed
        elif model.token(user, good, place.now, None):
            assert back[:4] == (len(back) - 4).to_bytes(4, "big")
            assert not wire.closed
            assert exchanged.answer(back) in (None, back[4:])
            exchanged.challenge = back[4:] if model.mechanism else b""
            if exchanged.lawful and model.mechanism is None:
                exchanged.client.end_tokens()
        else:
            assert wire.closed
            assert not back
    elif tokens_follow:
        message, version = request_of(step, exchanged)[:2]
        back = exchanged.exchange(exchanged.frame(message, version))
        assert wire.closed
        assert not back
    else:
        ask(step, exchanged)


def request_of(step: Step, exchanged: Talk) -> tuple[Message, int, bool]:
    """The request of a step, its version, and whether its token is good."""
    if isinstance(step, Handshake):
        return SaslHandshakeRequest(mechanism=step.mechanism), step.version, True
    if isinstance(step, Token):
        assert step.version is not None
        data, good = token_of(step, exchanged)
        return SaslAuthenticateRequest(auth_bytes=data), step.version, good
    assert isinstance(step, Ask)
    return step.message, step.version, True


def ask(step: Step, exchanged: Talk) -> None:
    """A step that is a request, while requests are exchanged."""
    model, place, wire = exchanged.model, exchanged.place, exchanged.wire
    message, version, good = request_of(step, exchanged)
    serves, user = model.serves(place.now), step.user if isinstance(step, Token) else ""
    user = model.first or user
    back = exchanged.exchange(exchanged.frame(message, version))
    if isinstance(step, Handshake):
        goes_on = model.is_endless
        error = model.handshake(step, place.now)
        assert bool(back) == (error is not None)
        assert wire.closed == (error != 0 and not goes_on)
        if back and (answer := exchanged.answer(back)) is not None:
            assert answer.error_code == error
            assert (exchanged.client.state is ConnectionState.AUTHENTICATING) == (error == 0 and version == 0)
    elif isinstance(step, Token):
        if model.mechanism is None:
            assert bool(back) == serves != wire.closed
            if back and (answer := exchanged.answer(back)) is not None:
                assert answer.error_code == 34
            return
        refused_bearer = model.mechanism == "OAUTHBEARER" and step.kind in ("wrong", "good") and not good
        assert back
        answer = exchanged.answer(back)
        if refused_bearer:
            assert not wire.closed
            exchanged.exchange(exchanged.frame(SaslAuthenticateRequest(auth_bytes=b"\1"), 1))
            assert wire.closed
        elif model.token(user, good, place.now, version):
            assert not wire.closed
            assert answer is None or answer.error_code == 0
            if model.mechanism is not None:
                exchanged.challenge = token_in(back, version)
            elif answer is not None and version:
                remaining = 0 if model.expires is None else model.expires - place.now
                assert answer.session_lifetime_ms == remaining
        else:
            assert wire.closed
            assert answer is None or answer.error_code == 58
    else:
        expected = serves or (
            isinstance(message, ApiVersionsRequest) and model.user is None and model.mechanism is None
        )
        assert bool(back) == expected != wire.closed
        if back and version != 99:
            exchanged.answer(back)


def token_in(back: bytes, version: int) -> bytes:
    """The token in a SaslAuthenticate answer without an error, found without the client's connection."""
    at = back.index(b"r=client")
    return back[at : back.index(b",i=", at) + len(b",i=4096")]


@given(SCRIPTS, st.sampled_from((0, LONGEST_SESSION)))
def fuzz(scripts: list[list[Step]], limit: int) -> None:
    failures = Failures()
    log.addHandler(failures)
    try:
        exchanged = Talk(Place(limit), Model(limit), failures)
        for step in (step for script in scripts for step in script):
            take(step, exchanged)
            if exchanged.lawful:
                tokens = exchanged.model.mechanism is not None and exchanged.model.bare
                if not exchanged.wire.closed:
                    expected = ConnectionState.AUTHENTICATING if tokens else ConnectionState.OPEN
                    assert exchanged.client.state is expected
            if exchanged.wire.closed:
                break
        if exchanged.lawful:
            exchanged.client.receive_data(b"")
            (event,) = list(exchanged.client.events())
            assert isinstance(event, ConnectionClosed)
        exchanged.link.connection_lost(None)
    finally:
        log.removeHandler(failures)


if __name__ == "__main__":
    main(fuzz)
