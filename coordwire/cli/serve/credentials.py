"""The credentials of `coordwire serve`: users from a file or the environment, and TLS from files."""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping
from pathlib import Path

from coordwire.cli import Failure

__all__ = ["KEY_PASSWORD", "USERS", "read_users", "tls_context"]

USERS = "COORDWIRE_USERS"
KEY_PASSWORD = "COORDWIRE_TLS_KEY_PASSWORD"


def read_users(path: Path | None, environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Passwords by user, from lines `NAME:PASSWORD` of a file and of the variable `USERS`."""
    users: dict[str, str] = {}
    if path is not None:
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise Failure(f"serve: --users: {error}") from None
        users.update(_users(text, f"--users {path}"))
        if not users:
            raise Failure(f"serve: --users {path}: expected lines NAME:PASSWORD, there are none")
    users.update(_users(environment.get(USERS, ""), USERS))
    return users


def _users(text: str, source: str) -> dict[str, str]:
    users = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        name, separator, password = line.partition(":")
        if not (name.strip() and separator and password):
            raise Failure(
                f"serve: {source}, line {number}: expected NAME:PASSWORD"
            )  # without the line's text
        users[name.strip()] = password
    return users


def tls_context(chain: Path | None, key: Path | None, client_ca: Path | None) -> ssl.SSLContext | None:
    """A server's context; None without a certificate. client_ca: whose certificates clients must have."""
    if chain is None:
        if key is not None or client_ca is not None:
            raise Failure("serve: --tls-key and --tls-client-ca need --tls-cert")
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    password = os.environ.get(KEY_PASSWORD, "")
    try:
        context.load_cert_chain(chain, key, password=lambda: password)
    except (OSError, ValueError) as error:
        reason = f"{error}" if isinstance(error, FileNotFoundError) else _reason(error)
        raise Failure(f"serve: --tls-cert {chain}, --tls-key {key or chain}: {reason}") from None
    if client_ca is not None:
        try:
            context.load_verify_locations(client_ca)
        except OSError as error:
            raise Failure(f"serve: --tls-client-ca {client_ca}: {_reason(error)}") from None
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def _reason(error: Exception) -> str:
    if isinstance(error, ssl.SSLError):
        return f"not a certificate with its key in PEM, or {KEY_PASSWORD} does not fit"
    return f"{error}"
