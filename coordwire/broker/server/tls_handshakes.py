"""Clients' TLS handshakes, which end with the server.

Strategy: the connections of a listener are accepted here, and each handshake is a task of its link; asyncio's
listener does the same, but shows nothing of a handshake that does not end. Rule: a handshake counts as a
connection.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from contextlib import suppress

from coordwire.broker.server.link import ServerHub, ServerLink

log = logging.getLogger("coordwire.server")

_BACKLOG = 100
_PAUSE = 1.0
"""Seconds until the next attempt where the system has no room for a connection."""


def listening(bound: socket.socket) -> socket.socket:
    """A duplicate of a bound socket, which listens."""
    duplicate = socket.fromfd(bound.fileno(), bound.family, bound.type)
    duplicate.listen(_BACKLOG)
    duplicate.setblocking(False)
    return duplicate


async def accept(hub: ServerHub, listener: socket.socket, context: ssl.SSLContext) -> None:
    """Begin a handshake with each client of a socket, which is closed at the end."""
    loop = asyncio.get_running_loop()
    with listener:
        while True:
            try:
                client, peer = await loop.sock_accept(listener)
            except OSError as error:
                log.warning("no connection was accepted: %s", error)
                await asyncio.sleep(_PAUSE)
                continue
            link = ServerLink(hub)
            if hub.join(link):
                link.await_handshake(hub.begin(_shake_hands(hub, link, client, context)))
            else:
                log.warning("closed %s:%d: there are max_connections already", *peer[:2])
                client.close()


async def _shake_hands(
    hub: ServerHub, link: ServerLink, client: socket.socket, context: ssl.SSLContext
) -> None:
    loop, is_made = asyncio.get_running_loop(), False
    try:
        with suppress(OSError):  # other_protocols.py logs why
            await loop.connect_accepted_socket(lambda: link, client, ssl=context)
            is_made = True
    finally:
        if not is_made:
            client.close()
            hub.leave(link)
