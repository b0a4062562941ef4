"""Users' credentials for SCRAM (RFC 5802): salts, and the keys that follow from salted passwords.

Rules: for users with a password a salt is made when it is first needed; what a client upserts comes salted,
and holds before that. Neither password nor salted password is kept of it.

OAUTHBEARER with unsecured JSON web tokens (RFC 7628, RFC 7519), by the rules of Apache Kafka's validator.

Rules: the token has no signature (`"alg": "none"`), so that a test can write it: any client of the broker
can be anybody. `sub` names the user; `exp` must be in the future, `iat`, if there, must not be.
"""

from __future__ import annotations

import binascii
import hashlib
import hmac
import json
import secrets
from base64 import urlsafe_b64decode
from collections.abc import Mapping
from typing import Any

from coordwire._dataclasses import dataclass

HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
SCRAM_MECHANISMS = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}
"""By Kafka's numbers."""

_ITERATIONS = 4_096


@dataclass(frozen=True, slots=True)
class ScramCredential:
    """What a server has of a user, to check proofs against and to prove itself."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int

    @classmethod
    def of(cls, mechanism: str, salt: bytes, salted_password: bytes, iterations: int) -> ScramCredential:
        """The credential of a salted password."""
        algorithm = HASHES[mechanism]
        client_key = hmac.digest(salted_password, b"Client Key", algorithm)
        server_key = hmac.digest(salted_password, b"Server Key", algorithm)
        return cls(salt, hashlib.new(algorithm, client_key).digest(), server_key, iterations)


class ScramCredentials:
    """Credentials by user and mechanism."""

    def __init__(self, passwords: Mapping[str, str]) -> None:
        self._passwords = passwords
        self._known: dict[tuple[str, str], ScramCredential] = {}
        self._upserted: set[tuple[str, str]] = set()

    def find(self, user: str, mechanism: str) -> ScramCredential | None:
        """A user's credential; None for an unknown user."""
        credential = self._known.get((user, mechanism))
        if credential is None and user in self._passwords:
            salt = secrets.token_bytes(18)
            salted = hashlib.pbkdf2_hmac(HASHES[mechanism], self._passwords[user].encode(), salt, _ITERATIONS)
            credential = self._known[user, mechanism] = ScramCredential.of(
                mechanism, salt, salted, _ITERATIONS
            )
        return credential

    def upserted(self) -> dict[str, list[tuple[str, int]]]:
        """The users that clients have made, with each mechanism and its iterations."""
        users: dict[str, list[tuple[str, int]]] = {}
        for user, mechanism in sorted(self._upserted):
            users.setdefault(user, []).append((mechanism, self._known[user, mechanism].iterations))
        return users

    def upsert(self, user: str, mechanism: str, credential: ScramCredential) -> None:
        self._known[user, mechanism] = credential
        self._upserted.add((user, mechanism))

    def delete(self, user: str, mechanism: str) -> bool:
        """Whether a client had made such a credential, which was deleted."""
        if (user, mechanism) not in self._upserted:
            return False
        self._upserted.discard((user, mechanism))
        del self._known[user, mechanism]
        return True


# --- OAUTHBEARER ---


class BadToken(Exception):
    """A token that is not valid; the text has the reason."""


@dataclass(frozen=True, slots=True)
class UserToken:
    """The user of a token, and its end in milliseconds since 1970."""

    user: str
    expires: int


def read_token(token: str, now: int) -> UserToken:
    """Read a token. now: in milliseconds since 1970. Raises `BadToken`."""
    parts = token.split(".")
    if len(parts) != 3:
        raise BadToken(f"expected 3 parts of a token, got {len(parts)}")
    header, claims = _object(parts[0]), _object(parts[1])
    if header.get("alg") != "none":
        raise BadToken("expected a token with alg none")
    if parts[2]:
        raise BadToken("expected no signature")
    user = claims.get("sub")
    if not isinstance(user, str) or not user:
        raise BadToken("expected sub, a text")
    expires = _milliseconds(claims, "exp")
    if expires is None:
        raise BadToken("expected exp, a number")
    if expires <= now:
        raise BadToken("the token has expired")
    issued = _milliseconds(claims, "iat")
    if issued is not None and issued > now:
        raise BadToken("the token is of a later time")
    return UserToken(user, expires)


def _object(part: str) -> dict[str, Any]:
    try:
        claims = json.loads(urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    except (binascii.Error, ValueError, RecursionError):
        raise BadToken("expected JSON in base 64") from None
    if not isinstance(claims, dict):
        raise BadToken("expected an object")
    return claims


def _milliseconds(claims: dict[str, Any], name: str) -> int | None:
    value = claims.get(name)
    if value is None:
        return None
    if not isinstance(value, int | float) or isinstance(value, bool) or not abs(value) < 1 << 40:
        raise BadToken(f"expected {name}, a number of seconds")
    return int(value * 1000)
