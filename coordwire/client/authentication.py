"""The client's side of SASL, without I/O: PLAIN, SCRAM and OAUTHBEARER.

Strategy: `authenticate` is a generator. It yields what the connection is to do next, and gets the result:
`Ask` gives a response, `SendToken` the broker's bare token (KIP-43), `BlockingCall` what a function returned.
`coordwire.client.opening` runs it over any way to move bytes, blocking or not. Rules: no secret is in an
error; a SCRAM server must prove that it knows the password, and its nonce and iterations are checked before
they are used; what blocks or computes for long is a `BlockingCall`, which drivers run in a thread.

Sources: RFC 5802 with KIP-84 and KIP-48 (`tokenauth`), RFC 4616, RFC 7628 with KIP-255 and KIP-342; sessions
with an end, KIP-368.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Awaitable, Callable, Generator, Mapping
from dataclasses import dataclass, field
from hashlib import new, pbkdf2_hmac
from typing import Any, NamedTuple, Protocol

from coordwire.client.errors import AuthenticationRefused, UnreadableAnswer, VersionUnavailable
from coordwire.codec import Message
from coordwire.enums import ErrorCode
from coordwire.messages import (
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
from coordwire.versions import VersionRange, known_versions

_HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
_FEWEST_ITERATIONS = 4_096
"""The rounds of a SCRAM hash: of RFC 7677."""

MOST_ITERATIONS = 16_384
"""The most rounds that a Kafka controller stores."""

_HANDSHAKE, _AUTHENTICATE = 17, 36

_MECHANISMS = ("GSSAPI", "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "AWS_MSK_IAM")
"""The mechanisms whose names an error repeats."""

_SCRAM_ERRORS = (
    "invalid-encoding", "extensions-not-supported", "invalid-proof", "channel-bindings-dont-match",
    "server-does-support-channel-binding", "channel-binding-not-supported", "unknown-user",
    "unsupported-channel-binding-type", "invalid-username-encoding", "no-resources",
)  # fmt: skip
"""A server's errors (RFC 5802, section 7); any other is repeated as "other-error"."""


class Ask(NamedTuple):
    """Send a request and give its response."""

    message: Message
    version: int


class SendToken(NamedTuple):
    """Send a bare token; give the broker's, which may be empty."""

    token: bytes


TokenSource = Callable[[], "str | Awaitable[str]"]


class BlockingCall(NamedTuple):
    """Call a function that may block or compute for long; give its result, awaited where it is awaitable."""

    function: Callable[[], Any]


AuthenticationStep = Ask | SendToken | BlockingCall
Tokens = Generator["bytes | BlockingCall", Any, None]
"""A mechanism: yields the client's tokens and gets the broker's."""


class Sasl(Protocol):
    """A mechanism with its credentials."""

    @property
    def mechanism(self) -> str: ...
    def tokens(self) -> Tokens:
        """Yield the client's tokens, and get the broker's. Raises `AuthenticationRefused`."""
        ...


@dataclass(frozen=True, slots=True)
class Plain:
    """PLAIN: the password goes over the connection as it is, so that this should have TLS."""

    user: str
    password: str = field(repr=False)
    authzid: str = ""
    mechanism: str = field(default="PLAIN", init=False)

    def tokens(self) -> Tokens:
        yield PlainCredentials(user=self.user, password=self.password, authzid=self.authzid).encode()


@dataclass(frozen=True, slots=True)
class Scram:
    """SCRAM, by "SCRAM-SHA-512" or "SCRAM-SHA-256". is_token: user and password are the id and HMAC of a
    delegation token (KIP-48). nonce: makes the client's random text. max_iterations: the most rounds of the
    hash that a broker may ask for."""

    user: str
    password: str = field(repr=False)
    mechanism: str = "SCRAM-SHA-512"
    is_token: bool = False
    nonce: Callable[[], str] = field(default=lambda: secrets.token_urlsafe(24), repr=False, compare=False)
    max_iterations: int = MOST_ITERATIONS

    def __post_init__(self) -> None:
        if self.mechanism not in _HASHES:
            raise ValueError(f"expected {' or '.join(_HASHES)}, got {self.mechanism!r}")

    def tokens(self) -> Tokens:
        extensions = (("tokenauth", "true"),) if self.is_token else ()
        first = ScramClientFirst(user=self.user, nonce=self.nonce(), extensions=extensions)
        first_bytes = first.encode()
        challenge_bytes = yield first_bytes
        challenge = read_sasl(challenge_bytes, "server", self.mechanism)
        if isinstance(challenge, ScramServerFinal) and challenge.error is not None:
            raise _refused_user(self.user, challenge.error)
        if not isinstance(challenge, ScramServerFirst):
            raise AuthenticationRefused(f"expected a challenge of {self.mechanism}, got something else")
        if not challenge.nonce.startswith(first.nonce) or challenge.nonce == first.nonce:
            raise AuthenticationRefused("the broker's nonce does not extend the client's")
        if not _FEWEST_ITERATIONS <= challenge.iterations <= self.max_iterations:
            raise AuthenticationRefused(
                f"expected {_FEWEST_ITERATIONS:,} to {self.max_iterations:,} iterations, "
                f"got {challenge.iterations:,}"
            )
        digest = _HASHES[self.mechanism]
        password, salt, iterations = self.password.encode(), challenge.salt, challenge.iterations
        salted = yield BlockingCall(lambda: pbkdf2_hmac(digest, password, salt, iterations))
        final = ScramClientFinal(header=b"n,,", nonce=challenge.nonce, proof=b"")
        without_proof = final.encode().removesuffix(b",p=")
        signed = b",".join((first_bytes.removeprefix(b"n,,"), challenge_bytes, without_proof))
        client_key = hmac.digest(salted, b"Client Key", digest)
        signature = hmac.digest(new(digest, client_key).digest(), signed, digest)
        proof = bytes(key ^ mask for key, mask in zip(client_key, signature, strict=True))
        final_bytes = yield ScramClientFinal(header=b"n,,", nonce=challenge.nonce, proof=proof).encode()
        answer = read_sasl(final_bytes, "server", self.mechanism)
        if isinstance(answer, ScramServerFinal) and answer.error is not None:
            raise _refused_user(self.user, answer.error)
        expected = hmac.digest(hmac.digest(salted, b"Server Key", digest), signed, digest)
        if not isinstance(answer, ScramServerFinal) or not hmac.compare_digest(
            answer.signature or b"", expected
        ):
            raise AuthenticationRefused("the broker has not proven that it knows the password")


def _refused_user(user: str, error: str) -> AuthenticationRefused:
    """The error for a server's text, which is one of RFC 5802's or is not repeated."""
    return AuthenticationRefused(
        f"the broker refuses user {user!r}: {error if error in _SCRAM_ERRORS else 'other-error'}"
    )


@dataclass(frozen=True, slots=True)
class OAuthBearer:
    """OAUTHBEARER. token: called for each authentication; gives a token or an awaitable of one. extensions:
    SASL extensions (KIP-342)."""

    token: TokenSource = field(repr=False)
    extensions: Mapping[str, str] = field(default_factory=dict)
    mechanism: str = field(default="OAUTHBEARER", init=False)

    def tokens(self) -> Tokens:
        token = yield BlockingCall(self.token)
        if not isinstance(token, str) or not token:
            raise AuthenticationRefused("expected a token from the callback, got none")
        answer = yield OAuthBearerToken(token=token, extensions=tuple(self.extensions.items())).encode()
        if answer:  # the reason, as JSON; the client ends the exchange, and the broker then says the same
            yield b"\x01"
            raise AuthenticationRefused("the broker refuses the token")


def authenticate(sasl: Sasl, versions: Mapping[int, VersionRange]) -> Generator[AuthenticationStep, Any, int]:
    """Authenticate by a mechanism; the ms in which to do so again, 0 for never.

    versions: those of the broker, by api key. Raises `AuthenticationRefused`, `UnreadableAnswer`,
    `VersionUnavailable`, whose texts repeat none of the broker's, which may have the password.
    """
    wrapped = versions.get(_AUTHENTICATE, VersionRange(0, -1)) & known_versions(_AUTHENTICATE)
    handshakes = versions.get(_HANDSHAKE, VersionRange(0, -1)) & known_versions(_HANDSHAKE)
    if not handshakes:
        raise VersionUnavailable("the broker has no SaslHandshake: this listener has no SASL")
    version = min(handshakes.last, 1) if wrapped else 0
    shaken = yield Ask(SaslHandshakeRequest(mechanism=sasl.mechanism), version)
    if not isinstance(shaken, SaslHandshakeResponse):
        raise UnreadableAnswer("expected an answer to SaslHandshake")
    if shaken.error_code:
        known = [name for name in _MECHANISMS if name in shaken.mechanisms]
        offered = ", ".join(known) or ("others" if shaken.mechanisms else "none")
        raise AuthenticationRefused(
            f"the broker does not accept {sasl.mechanism} ({ErrorCode(shaken.error_code).name}); "
            f"it offers {offered}"
        )
    return (yield from _exchange(sasl, wrapped.last if version else None))


def _exchange(sasl: Sasl, version: int | None) -> Generator[AuthenticationStep, Any, int]:
    """The tokens of a mechanism, in SaslAuthenticate of a version, or bare. The ms of the session."""
    lifetime, tokens = 0, sasl.tokens()
    step = next(tokens)
    while True:
        answer: Any
        if isinstance(step, BlockingCall):
            answer = yield step
        elif version is None:
            answer = yield SendToken(step)
        else:
            response = yield Ask(SaslAuthenticateRequest(auth_bytes=step), version)
            if not isinstance(response, SaslAuthenticateResponse):
                raise UnreadableAnswer("expected an answer to SaslAuthenticate")
            if response.error_code:
                code = ErrorCode(response.error_code)
                raise AuthenticationRefused(
                    f"the broker refuses the credentials: {code.name}: {code.description}"
                )
            answer, lifetime = response.auth_bytes, response.session_lifetime_ms
        try:
            step = tokens.send(answer)
        except StopIteration:
            return lifetime
