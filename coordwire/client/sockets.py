"""Connections to brokers with a blocking socket, for scripts: what `coordwire.client.streams` does with
asyncio.

Strategy: the same generators move the bytes. Rules: each wait is limited by the time left; what fails leaves
no socket open; every failure is a `ClientError`.
"""

from __future__ import annotations

import asyncio
import inspect
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

from coordwire.client.authentication import FetchToken, TokenSource
from coordwire.client.errors import located
from coordwire.client.opening import Session, Transfer, opening
from coordwire.client.settings import Address, ClientSettings, shown_address
from coordwire.connection import Connection

__all__ = ["OpenSocket", "call_source", "open_socket", "run_transfer"]

T = TypeVar("T")
READ_SIZE = 1 << 16


@dataclass(slots=True)
class OpenSocket:
    """A connection that has begun: its socket, its protocol state, and what the beginning has found."""

    address: Address
    socket: socket.socket
    connection: Connection
    session: Session

    def close(self) -> None:
        """End the connection."""
        with suppress(OSError):
            self.socket.close()


def open_socket(address: Address, settings: ClientSettings) -> OpenSocket:
    """Connect to a broker, with TLS and SASL as the settings have it.

    Raises `BrokerUnreachable`, `AuthenticationRefused`, `UnreadableAnswer`, `VersionUnavailable`; the reason
    names the address.
    """
    connection = Connection("client", client_id=settings.client_id)
    end = time.monotonic() + settings.connection_timeout_ms / 1000
    raw: socket.socket | None = None
    try:
        raw = socket.create_connection(address, timeout=settings.connection_timeout_ms / 1000)
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if settings.tls is not None:
            raw = settings.tls.wrap_socket(raw, server_hostname=address[0])
        session = run_transfer(opening(connection, settings.sasl), raw, lambda: end - time.monotonic())
        return OpenSocket(address, raw, connection, session)
    except BaseException as error:
        if raw is not None:
            raw.close()
        raise located(
            error,
            shown_address(address),
            limit_ms=settings.connection_timeout_ms,
            has_tls=settings.tls is not None,
        ) from None


def run_transfer(transfer: Transfer[T], connected: socket.socket, remaining: Callable[[], float]) -> T:
    """Run a generator that sends and receives bytes. remaining: the seconds that are left."""
    try:
        step = next(transfer)
        while True:
            if isinstance(step, FetchToken):
                step = transfer.send(call_source(step.source))
                continue
            connected.settimeout(_positive(remaining()))
            if step:
                connected.sendall(step)
            connected.settimeout(_positive(remaining()))
            step = transfer.send(connected.recv(READ_SIZE))
    except StopIteration as end:
        result: T = end.value
        return result


def call_source(source: TokenSource) -> str:
    """A token from a callback, awaited where it is awaitable."""
    token = source()
    if not inspect.isawaitable(token):
        return token

    async def awaited() -> str:
        return await token

    return asyncio.run(awaited())


def _positive(seconds: float) -> float:
    if seconds <= 0:
        raise TimeoutError
    return seconds
