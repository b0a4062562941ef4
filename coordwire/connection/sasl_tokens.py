"""SASL before SaslAuthenticate (KIP-43): after a SaslHandshake v0, tokens without headers.

Rules: the client sends nothing else between its SaslHandshake v0 and the answer, since the bytes after it are
tokens if the answer has no error, and requests if it has one. Tokens have a size prefix and nothing more;
only the SASL mechanism knows which one is the last. SaslHandshake v1 announces SaslAuthenticate requests
(KIP-152), which have headers and need nothing of this.
"""

from __future__ import annotations

import struct

from coordwire.codec import Message
from coordwire.connection.state import Transition
from coordwire.errors import OutOfRange

__all__ = ["SASL_HANDSHAKE", "encode_token", "handshake_result", "starts_handshake"]

SASL_HANDSHAKE = 17
_SIZE = struct.Struct(">i")
_LONGEST = 0x7FFF_FFFF


def starts_handshake(api_key: int, version: int) -> bool:
    """Whether bare tokens may follow the answer to this request."""
    return api_key == SASL_HANDSHAKE and version == 0


def handshake_result(answer: Message | None) -> Transition:
    """The transition that the answer to a SaslHandshake v0 causes; None: it could not be read."""
    accepted = answer is not None and getattr(answer, "error_code", 0) == 0
    return Transition.ACCEPTED if accepted else Transition.REFUSED


def encode_token(token: bytes) -> bytes:
    """A token with its size prefix. Raises `OutOfRange` for one whose size the prefix cannot hold."""
    if len(token) > _LONGEST:
        raise OutOfRange(f"expected a token of at most {_LONGEST} bytes, got {len(token)}")
    return _SIZE.pack(len(token)) + token
