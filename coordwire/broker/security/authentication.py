"""Authentication: SASL with PLAIN, SCRAM and OAUTHBEARER, as a state machine for one connection.

Strategy: `SaslSession` is a Kafka broker's authenticator without its socket: ApiVersions and SaslHandshake
first, then SaslAuthenticate, or bare tokens after a SaslHandshake v0 (KIP-43). Rules: before that, any other
request ends the connection; what failed gets its answer, then the connection ends. A session has an end where
the broker limits it or the token has one (KIP-368): after that only a new authentication, of the same user by
the same mechanism, is accepted; without an end there is none. A proof is compared in constant time.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable, Mapping
from hashlib import new

from coordwire.broker.security.credentials import (
    HASHES,
    BadToken,
    ScramCredential,
    ScramCredentials,
    read_token,
)
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
from coordwire.versions import ApiKey

_NO_BINDING = b"n,"
_FIRST = frozenset({ApiKey.API_VERSIONS.value, ApiKey.SASL_HANDSHAKE.value})
_BAD_TOKEN = b'{"status":"invalid_token"}'
_KNOWS_LIFETIME = 1
"""The version of SaslAuthenticate from which on sessions end."""


class AuthenticationFailed(Exception):
    """A client has not proven to be the user that it names."""


class SaslMechanisms:
    """The mechanisms that a broker offers, and who its users are.

    users: with their passwords. clock: the time in milliseconds since 1970. max_session_ms: how long a client
    is known without authenticating again; 0 for ever.
    """

    def __init__(
        self,
        users: Mapping[str, str],
        offered: tuple[str, ...],
        *,
        scram: ScramCredentials | None = None,
        clock: Callable[[], int] = lambda: 0,
        max_session_ms: int = 0,
    ) -> None:
        self.users = users
        self.offered = offered
        self.scram = scram or ScramCredentials(users)
        self.clock = clock
        self.max_session_ms = max_session_ms

    def is_password(self, user: str, password: str) -> bool:
        known = self.users.get(user, "")
        return hmac.compare_digest(known.encode(), password.encode()) and user in self.users

    def credential(self, user: str, mechanism: str) -> ScramCredential:
        """The credential of a user, to check a proof against. Raises `AuthenticationFailed`."""
        known = self.scram.find(user, mechanism)
        if known is None:
            raise AuthenticationFailed
        return known


class _Exchange:
    """One authentication by a mechanism; `answer` takes a client's token, until there is a user.

    expires: when what the client showed ends, None where it does not.
    """

    def __init__(self, mechanisms: SaslMechanisms, mechanism: str) -> None:
        self.mechanism = mechanism
        self.user: str | None = None
        self.expires: int | None = None
        self._mechanisms = mechanisms
        self._first: ScramClientFirst | None = None
        self._challenge: ScramServerFirst | None = None
        self._credential: ScramCredential | None = None
        self._refused = False

    def answer(self, token: bytes) -> bytes:
        """The server's token. Raises `AuthenticationFailed`."""
        if self._refused:  # the client has seen why, and says so
            raise AuthenticationFailed
        message = read_sasl(token, "client", self.mechanism)
        if isinstance(message, PlainCredentials):
            if not self._mechanisms.is_password(message.user, message.password):
                raise AuthenticationFailed
            if message.authzid not in ("", message.user):
                raise AuthenticationFailed
            self.user = message.user
            return b""
        if isinstance(message, OAuthBearerToken):
            return self._bearer(message)
        if isinstance(message, ScramClientFirst) and self._challenge is None:
            if message.binding != "n" or message.authzid not in ("", message.user):
                raise AuthenticationFailed
            known = self._credential = self._mechanisms.credential(message.user, self.mechanism)
            self._first = message
            nonce = message.nonce + secrets.token_urlsafe(18)
            self._challenge = ScramServerFirst(nonce=nonce, salt=known.salt, iterations=known.iterations)
            return self._challenge.encode()
        if isinstance(message, ScramClientFinal):
            return self._prove(message, token)
        raise AuthenticationFailed

    def _bearer(self, message: OAuthBearerToken) -> bytes:
        try:
            token = read_token(message.token, self._mechanisms.clock())
        except BadToken:
            self._refused = True
            return _BAD_TOKEN
        if message.authzid not in ("", token.user):
            raise AuthenticationFailed
        self.user, self.expires = token.user, token.expires
        return b""

    def _prove(self, final: ScramClientFinal, token: bytes) -> bytes:
        first, challenge, credential = self._first, self._challenge, self._credential
        if first is None or challenge is None or credential is None or final.nonce != challenge.nonce:
            raise AuthenticationFailed
        if not final.header.startswith(_NO_BINDING):
            raise AuthenticationFailed
        algorithm = HASHES[self.mechanism]
        bare = first.encode().split(b",", 2)[2]
        exchanged = b",".join((bare, challenge.encode(), token[: token.rindex(b",p=")]))
        signature = hmac.digest(credential.stored_key, exchanged, algorithm)
        if len(final.proof) != len(signature):
            raise AuthenticationFailed
        client_key = _xor(final.proof, signature)
        if not hmac.compare_digest(new(algorithm, client_key).digest(), credential.stored_key):
            raise AuthenticationFailed
        self.user = first.user
        signature = hmac.digest(credential.server_key, exchanged, algorithm)
        return ScramServerFinal(signature=signature).encode()


def _xor(first: bytes, second: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(first, second, strict=True))


class SaslSession:
    """The authentication of one connection.

    user: who it is, None before that is known. ended: the connection is to be closed after the answer.
    """

    def __init__(self, mechanisms: SaslMechanisms) -> None:
        self.user: str | None = None
        self.ended = False
        self._mechanisms = mechanisms
        self._mechanism = ""
        self._expires: int | None = None
        self._exchange: _Exchange | None = None

    @property
    def is_exchanging(self) -> bool:
        """Whether a mechanism expects another token."""
        return self._exchange is not None

    def allows(self, api_key: int) -> bool:
        """Whether a client may send such a request now."""
        if self._exchange is not None:
            return api_key == ApiKey.SASL_AUTHENTICATE
        if self._expires is not None and self._mechanisms.clock() >= self._expires:
            return api_key == ApiKey.SASL_HANDSHAKE
        return self.user is not None or api_key in _FIRST

    def handle(self, request: Message, version: int = _KNOWS_LIFETIME) -> Message | None:
        """The answer to a request of SASL; None for any other request."""
        if isinstance(request, SaslHandshakeRequest):
            return self._begin(request.mechanism)
        if isinstance(request, SaslAuthenticateRequest):
            return self._authenticate(request.auth_bytes, version)
        return None

    def _begin(self, mechanism: str) -> SaslHandshakeResponse:
        if self.user is not None and self._expires is None:
            return SaslHandshakeResponse(error_code=int(ErrorCode.ILLEGAL_SASL_STATE))
        response = SaslHandshakeResponse(mechanisms=list(self._mechanisms.offered))
        if mechanism not in self._mechanisms.offered:
            response.error_code = int(ErrorCode.UNSUPPORTED_SASL_MECHANISM)
            self.ended = True
        elif self.user is not None and mechanism != self._mechanism:
            response.error_code = int(ErrorCode.ILLEGAL_SASL_STATE)
            self.ended = True
        else:
            self._mechanism = mechanism
            self._exchange = _Exchange(self._mechanisms, mechanism)
        return response

    def _authenticate(self, token: bytes, version: int) -> SaslAuthenticateResponse:
        if self._exchange is None:
            return SaslAuthenticateResponse(
                error_code=int(ErrorCode.ILLEGAL_SASL_STATE),
                error_message="SaslAuthenticate request received after successful authentication",
            )
        mechanism = self._exchange.mechanism
        try:
            answer = self.token(token)
        except AuthenticationFailed:
            return SaslAuthenticateResponse(
                error_code=int(ErrorCode.SASL_AUTHENTICATION_FAILED),
                error_message="Authentication failed during authentication due to invalid credentials with"
                f" SASL mechanism {mechanism}",
            )
        remaining_ms = 0
        if self._expires is not None and self._exchange is None:
            if version < _KNOWS_LIFETIME:  # such a client does not authenticate again
                self._expires = None
            else:
                remaining_ms = max(0, self._expires - self._mechanisms.clock())
        return SaslAuthenticateResponse(
            error_message=None, auth_bytes=answer, session_lifetime_ms=remaining_ms
        )

    def token(self, token: bytes) -> bytes:
        """The answer to a token; after the last, nothing `is_exchanging`. Raises `AuthenticationFailed`."""
        exchange = self._exchange
        if exchange is None:
            raise AuthenticationFailed
        try:
            answer = exchange.answer(token)
        except AuthenticationFailed:
            self.ended = True
            raise
        if exchange.user is not None:
            if self.user not in (None, exchange.user):  # one connection stays one user's
                self.ended = True
                raise AuthenticationFailed
            self.user, self._exchange = exchange.user, None
            self._expires = self._end(exchange.expires)
        return answer

    def _end(self, expires: int | None) -> int | None:
        """When the session ends, for what the client showed."""
        longest = self._mechanisms.max_session_ms
        ends = [] if expires is None else [expires]
        if longest:
            ends.append(self._mechanisms.clock() + longest)
        return min(ends, default=None)
