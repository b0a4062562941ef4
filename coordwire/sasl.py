"""The content of SASL's bytes: SCRAM's messages, PLAIN's credentials, OAUTHBEARER's token.

Sources: RFC 5802 (SCRAM; Kafka's `tokenauth` is an extension of KIP-48), RFC 4616 (PLAIN), RFC 7628
(OAUTHBEARER). Strategy: they are texts, distinguished by how they begin and by who sent them; a mechanism
that is known (from the SaslHandshake before) leaves only its own. Rules: nothing raises; what isn't
understood, GSSAPI's tokens for one, is None. Each class names the fields that must not be shown.
"""

from __future__ import annotations

import binascii
import re
from binascii import a2b_base64, b2a_base64
from collections.abc import Callable
from typing import ClassVar, Literal

from coordwire._dataclasses import dataclass
from coordwire.codec import Message

__all__ = [
    "OAuthBearerToken",
    "PlainCredentials",
    "SaslMessage",
    "ScramClientFinal",
    "ScramClientFirst",
    "ScramServerFinal",
    "ScramServerFirst",
    "open_sasl",
    "read_sasl",
]

Extensions = tuple[tuple[str, str], ...]
Sender = Literal["client", "server"]

_NAME = r"(?:[^\x00=,]|=2C|=3D)"
_BASE64 = r"(?:[A-Za-z0-9/+]{4})*(?:[A-Za-z0-9/+]{3}=|[A-Za-z0-9/+]{2}==)?"
_NONCE = r"[\x21-\x2b\x2d-\x7e]+"
_MORE = r"(?P<more>(?:,[A-Za-z]+=[^\x00,]+)*)"
_CLIENT_FIRST = re.compile(
    rf"(?P<binding>[ny]|p=[A-Za-z0-9.-]+),(?:a=(?P<authzid>{_NAME}+))?,n=(?P<user>{_NAME}*),r=(?P<nonce>{_NONCE}){_MORE}"
)
_SERVER_FIRST = re.compile(
    rf"r=(?P<nonce>{_NONCE}),s=(?P<salt>{_BASE64}),i=(?P<iterations>[0-9]{{1,9}}){_MORE}"
)
_CLIENT_FINAL = re.compile(rf"c=(?P<header>{_BASE64}),r=(?P<nonce>{_NONCE}){_MORE},p=(?P<proof>{_BASE64})")
_SERVER_FINAL = re.compile(rf"(?:e=(?P<error>[^\x00=,]+)|v=(?P<signature>{_BASE64})){_MORE}")
_BEARER = re.compile(
    rf"n,(?:a=(?P<authzid>{_NAME}+))?,\x01auth=[Bb]earer +(?P<token>[\w~+/.-]+=*)\x01"
    r"(?P<more>(?:[A-Za-z]+=[^\x00\x01]+\x01)*)\x01"
)

LONGEST = 512 << 10
"""Kafka's default for the longest token that a broker takes, in bytes; what is longer isn't looked into."""


def _escaped(name: str) -> str:
    return name.replace("=", "=3D").replace(",", "=2C")


def _name(escaped: str | None) -> str:
    return (escaped or "").replace("=2C", ",").replace("=3D", "=")


def _base64(data: bytes) -> str:
    return b2a_base64(data, newline=False).decode()


def _pairs(text: str, separator: str) -> Extensions:
    pairs = (part.partition("=") for part in text.split(separator) if part)
    return tuple((name, value) for name, _, value in pairs)


def _text(extensions: Extensions) -> str:
    return "".join(f",{name}={value}" for name, value in extensions)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScramClientFirst:
    """A client begins: who it is. binding: "n" for no channel binding, the only one that Kafka takes."""

    secret: ClassVar[tuple[str, ...]] = ("nonce",)
    user: str
    nonce: str
    authzid: str = ""
    binding: str = "n"
    extensions: Extensions = ()

    def encode(self) -> bytes:
        authzid = f"a={_escaped(self.authzid)}" if self.authzid else ""
        user = _escaped(self.user)
        return f"{self.binding},{authzid},n={user},r={self.nonce}{_text(self.extensions)}".encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class ScramServerFirst:
    """The server's challenge. nonce: the client's with the server's after it; iterations: of the hash."""

    secret: ClassVar[tuple[str, ...]] = ("nonce", "salt")
    nonce: str
    salt: bytes
    iterations: int
    extensions: Extensions = ()

    def encode(self) -> bytes:
        return f"r={self.nonce},s={_base64(self.salt)},i={self.iterations}{_text(self.extensions)}".encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class ScramClientFinal:
    """The client's proof that it knows the password. header: how its first message began."""

    secret: ClassVar[tuple[str, ...]] = ("nonce", "proof")
    header: bytes
    nonce: str
    proof: bytes
    extensions: Extensions = ()

    def encode(self) -> bytes:
        extensions = _text(self.extensions)
        return f"c={_base64(self.header)},r={self.nonce}{extensions},p={_base64(self.proof)}".encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class ScramServerFinal:
    """The server's end: its own proof (`signature`), or why it refuses (`error`)."""

    secret: ClassVar[tuple[str, ...]] = ("signature",)
    signature: bytes | None = None
    error: str | None = None
    extensions: Extensions = ()

    def encode(self) -> bytes:
        final = f"v={_base64(self.signature or b'')}" if self.error is None else f"e={self.error}"
        return (final + _text(self.extensions)).encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainCredentials:
    """All of PLAIN: a user and the password."""

    secret: ClassVar[tuple[str, ...]] = ("password",)
    user: str
    password: str
    authzid: str = ""

    def encode(self) -> bytes:
        return "\0".join((self.authzid, self.user, self.password)).encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class OAuthBearerToken:
    """A client's token, a JWT as a rule, and what it adds (KIP-342)."""

    secret: ClassVar[tuple[str, ...]] = ("token", "extensions")
    token: str
    authzid: str = ""
    extensions: Extensions = ()

    def encode(self) -> bytes:
        authzid = f"a={_escaped(self.authzid)}" if self.authzid else ""
        extensions = "".join(f"{name}={value}\1" for name, value in self.extensions)
        return f"n,{authzid},\1auth=Bearer {self.token}\1{extensions}\1".encode()


SaslMessage = (
    ScramClientFirst
    | ScramServerFirst
    | ScramClientFinal
    | ScramServerFinal
    | PlainCredentials
    | OAuthBearerToken
)

# --- reading ------------------------------------------------------------------------------------------------


def _client_first(text: str) -> SaslMessage | None:
    match = _CLIENT_FIRST.fullmatch(text)
    return match and ScramClientFirst(
        user=_name(match["user"]),
        nonce=match["nonce"],
        authzid=_name(match["authzid"]),
        binding=match["binding"],
        extensions=_pairs(match["more"], ","),
    )


def _server_first(text: str) -> SaslMessage | None:
    match = _SERVER_FIRST.fullmatch(text)
    return match and ScramServerFirst(
        nonce=match["nonce"],
        salt=a2b_base64(match["salt"]),
        iterations=int(match["iterations"]),
        extensions=_pairs(match["more"], ","),
    )


def _client_final(text: str) -> SaslMessage | None:
    match = _CLIENT_FINAL.fullmatch(text)
    return match and ScramClientFinal(
        header=a2b_base64(match["header"]),
        nonce=match["nonce"],
        proof=a2b_base64(match["proof"]),
        extensions=_pairs(match["more"], ","),
    )


def _server_final(text: str) -> SaslMessage | None:
    match = _SERVER_FINAL.fullmatch(text)
    return match and ScramServerFinal(
        signature=None if match["signature"] is None else a2b_base64(match["signature"]),
        error=match["error"],
        extensions=_pairs(match["more"], ","),
    )


def _bearer(text: str) -> SaslMessage | None:
    match = _BEARER.fullmatch(text)
    return match and OAuthBearerToken(
        token=match["token"], authzid=_name(match["authzid"]), extensions=_pairs(match["more"], "\1")
    )


def _plain(text: str) -> SaslMessage | None:
    parts = text.split("\0", 3)
    if len(parts) != 3 or not parts[1]:
        return None
    return PlainCredentials(authzid=parts[0], user=parts[1], password=parts[2])


_READERS: list[tuple[str, Sender, Callable[[str], SaslMessage | None]]] = [
    ("SCRAM-", "client", _client_first),
    ("SCRAM-", "client", _client_final),
    ("SCRAM-", "server", _server_first),
    ("SCRAM-", "server", _server_final),
    ("OAUTHBEARER", "client", _bearer),
    ("PLAIN", "client", _plain),
]


def read_sasl(data: bytes, sender: Sender, mechanism: str | None = None) -> SaslMessage | None:
    """What one message of an authentication says; None if that isn't known.

    mechanism: as SaslHandshake named it ("SCRAM-SHA-256"); None if it wasn't seen: then the bytes decide.
    """
    if len(data) > LONGEST:
        return None
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    for family, side, read in _READERS:
        if side == sender and (mechanism is None or mechanism.startswith(family)):
            try:
                message = read(text)
            except (ValueError, binascii.Error):
                continue
            if message is not None:
                return message
    return None


def open_sasl(message: Message, mechanism: str | None = None) -> SaslMessage | None:
    """What the `auth_bytes` of a SaslAuthenticate say; None if that isn't known, or for another message."""
    if type(message).__name__ not in ("SaslAuthenticateRequest", "SaslAuthenticateResponse"):
        return None
    sender: Sender = "client" if message.direction == "request" else "server"
    data = getattr(message, "auth_bytes", None)
    return read_sasl(data, sender, mechanism) if isinstance(data, bytes) else None
