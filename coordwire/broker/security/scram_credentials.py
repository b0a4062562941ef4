"""Users' credentials for SCRAM (RFC 5802): salts and salted passwords.

Rules: for users with a password a salt is made when it is first needed; what a client upserts comes salted,
and holds before that.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import pbkdf2_hmac

__all__ = ["HASHES", "ScramCredential", "ScramCredentials"]

HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
_ITERATIONS = 4_096


@dataclass(frozen=True, slots=True)
class ScramCredential:
    """A salted password, to check proofs against."""

    salt: bytes
    salted_password: bytes
    iterations: int


class ScramCredentials:
    """Credentials by user and mechanism."""

    def __init__(self, passwords: Mapping[str, str]) -> None:
        self._passwords = passwords
        self._known: dict[tuple[str, str], ScramCredential] = {}
        self._upserted: set[tuple[str, str]] = set()

    def find(self, user: str, mechanism: str) -> ScramCredential | None:
        """A user's credential; None where there is no such user."""
        credential = self._known.get((user, mechanism))
        if credential is None and user in self._passwords:
            salt = secrets.token_bytes(18)
            salted = pbkdf2_hmac(HASHES[mechanism], self._passwords[user].encode(), salt, _ITERATIONS)
            credential = self._known[user, mechanism] = ScramCredential(salt, salted, _ITERATIONS)
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
