"""TLS of a simulated world: the two ends shake hands in memory, when a connection is made.

Strategy: OpenSSL itself decides, by the contexts of both ends, whether they come to terms: trust, names,
certificates of clients, versions, ALPN. What it sends depends on randomness that no seed has, so that none of
it goes over the network: the handshake takes the time of one way there and back, then bytes go as they are.
Rules: OpenSSL judges the dates of certificates by the machine's own clock. A renewed or resumed session, and
TLS that begins within a connection (`start_tls`), are not there.
"""

from __future__ import annotations

import errno
import os
import ssl
from contextlib import suppress
from typing import Any

__all__ = ["shake_hands", "tls_details"]

_FLIGHTS = 20
"""More than any handshake has."""


def shake_hands(
    client: ssl.SSLContext, server: ssl.SSLContext, name: str | None
) -> tuple[ssl.SSLObject, ssl.SSLObject]:
    """What both ends know of each other. name: of the server, as the client expects it.

    Raises `ssl.SSLError` where the client refuses, `ConnectionResetError` where the server does.
    """
    to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
    asking = client.wrap_bio(to_client, to_server, server_hostname=name)
    answering = server.wrap_bio(to_server, to_client, server_side=True)
    for _ in range(_FLIGHTS):
        is_done = _goes_on(asking)
        try:
            is_done &= _goes_on(answering)
        except ssl.SSLError as error:
            _goes_on(asking)  # it may know why
            raise ConnectionResetError(errno.ECONNRESET, os.strerror(errno.ECONNRESET)) from error
        if is_done:
            return asking, answering
    raise ssl.SSLError("the handshake of TLS does not end")


def _goes_on(end: ssl.SSLObject) -> bool:
    """Let an end take its next flight; whether it is done."""
    with suppress(ssl.SSLWantReadError):
        end.do_handshake()
        return True
    return False


def tls_details(end: ssl.SSLObject) -> dict[str, Any]:
    """What `get_extra_info` of a transport over TLS gives."""
    return {
        "sslcontext": end.context,
        "ssl_object": end,
        "peercert": end.getpeercert() if end.context.verify_mode else None,
        "cipher": end.cipher(),
        "compression": end.compression(),
    }
