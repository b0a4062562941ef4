"""What came instead of Kafka's protocol, or of TLS. asyncio does not report why a handshake failed."""

from __future__ import annotations

import logging
import ssl


def other_protocol(opening: bytes) -> str | None:
    """The protocol of a connection that begins with these bytes; None if it is not known."""
    if opening[:2] == b"\x16\x03":
        return "TLS at a plaintext port"
    if opening.startswith((b"GET ", b"POST ", b"PUT ", b"HEAD ", b"OPTIONS ")):
        return "HTTP at a Kafka port"
    return None


log = logging.getLogger("coordwire.broker")

_NOT_TLS = frozenset(
    {"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "HTTPS_PROXY_REQUEST", "PACKET_LENGTH_TOO_SHORT"}
)
"""OpenSSL's reasons for bytes that are not TLS, such as a plaintext request."""


class _ReportingObject(ssl.SSLObject):
    """One client's TLS."""

    def do_handshake(self) -> None:
        try:
            super().do_handshake()
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise
        except ssl.SSLError as error:
            if self.server_side:
                log.info("refused in the TLS handshake: %s", _reason(error))
            raise


def _reason(error: ssl.SSLError) -> str:
    reason = error.reason or f"{error}"
    if reason in _NOT_TLS:
        return "plaintext at a TLS port"
    return reason.replace("_", " ").lower()


def reporting(context: ssl.SSLContext | None) -> ssl.SSLContext | None:
    """Let a context report failed handshakes of clients, unless it has an SSL object class of its own."""
    if context is not None and context.sslobject_class is ssl.SSLObject:
        context.sslobject_class = _ReportingObject
    return context
