"""Clients' TLS handshakes, which end with their listener.

Strategy: connections are accepted here, and the handshakes of a listener are one group of tasks; asyncio's
own listener does the same, but shows nothing of a handshake that does not end. Rule: a simulated network has
no sockets to accept from, and its loop shakes hands.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn, TypeVar

P = TypeVar("P", bound=asyncio.BaseProtocol)

log = logging.getLogger("coordwire.server")

_BACKLOG = 1024
_PAUSE = 1.0
"""Seconds until the next attempt where the system has no room for a connection."""


def listening(bound: socket.socket) -> socket.socket:
    """A duplicate of a bound socket, which listens."""
    duplicate = socket.fromfd(bound.fileno(), bound.family, bound.type)
    duplicate.listen(_BACKLOG)
    duplicate.setblocking(False)
    return duplicate


def close_after(accepting: asyncio.Task[None], listener: socket.socket) -> None:
    """Close a listener when the task that accepts from it has ended, also one that never began."""
    accepting.add_done_callback(lambda _: listener.close())


async def accept_tls(
    listener: socket.socket,
    context: ssl.SSLContext,
    admit: Callable[[], P | None],
    leave: Callable[[P], None] = lambda _: None,
) -> NoReturn:
    """Shake hands with each client of a socket, which `close_after` closes; ends by cancellation alone.

    admit: gives the protocol of a new connection, None where there are too many. leave: gets the protocol of
    a connection whose handshake failed.
    """
    loop = asyncio.get_running_loop()
    async with asyncio.TaskGroup() as handshakes:
        while True:
            try:
                client, peer = await loop.sock_accept(listener)
            except OSError as error:
                log.warning("no connection was accepted: %s", error)
                await asyncio.sleep(_PAUSE)
                continue
            protocol = admit()
            if protocol is None:
                log.warning("closed %s:%d: there are max_connections already", *peer[:2])
                client.close()
            else:
                handshakes.create_task(_shake_hands(client, context, protocol, leave))


async def _shake_hands(
    client: socket.socket, context: ssl.SSLContext, protocol: P, leave: Callable[[P], None]
) -> None:
    is_made = False
    try:
        with suppress(OSError):  # other_protocols.py logs why
            await asyncio.get_running_loop().connect_accepted_socket(lambda: protocol, client, ssl=context)
            is_made = True
    finally:
        if not is_made:
            client.close()
            leave(protocol)
