"""The protocol of a connection that does not begin with Kafka's."""

from __future__ import annotations


def other_protocol(opening: bytes) -> str | None:
    """The protocol of a connection that begins with these bytes; None if it is not known."""
    if opening[:2] == b"\x16\x03":
        return "TLS at a plaintext port"
    if opening.startswith((b"GET ", b"POST ", b"PUT ", b"HEAD ", b"OPTIONS ")):
        return "HTTP at a Kafka port"
    return None
