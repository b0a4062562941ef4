"""OAUTHBEARER with unsecured JSON web tokens (RFC 7628, RFC 7519), by the rules of Apache Kafka's validator.

Rules: the token has no signature (`"alg": "none"`), so that a test can write it: any client of the broker
can be anybody. `sub` names the user; `exp` must be in the future, `iat`, if there, must not be.
"""

from __future__ import annotations

import binascii
import json
from base64 import urlsafe_b64decode
from dataclasses import dataclass
from typing import Any

__all__ = ["BadToken", "UserToken", "read_token"]


class BadToken(Exception):
    """A token that is not valid; the text says why."""


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
