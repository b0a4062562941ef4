"""Connections to brokers with asyncio: the socket, TLS, and the beginning of the conversation.

    stream = await open_stream(("broker-1", 9093), settings)
    stream.session.versions[3]                  # the broker's versions of Metadata
    stream.writer.write(…), await stream.reader.read(…)

Strategy: `run_transfer` moves the bytes of a generator of `coordwire.client.opening`. Rules: a time limit
covers all of it; what fails leaves no socket open; every failure is a `ClientError`.
"""

from __future__ import annotations

import asyncio
import inspect
import socket
import ssl
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from coordwire.client.authentication import BlockingCall
from coordwire.client.background import start_call
from coordwire.client.errors import located
from coordwire.client.opening import Session, Transfer, opening
from coordwire.client.settings import Address, ClientSettings, shown_address
from coordwire.connection import Connection

T = TypeVar("T")
READ_SIZE = 1 << 16

PATIENCE = 2.0
"""Seconds in which a peer must take what was written before a connection ends."""


@dataclass(slots=True)
class Stream:
    """A connection that has begun: its streams, its protocol state, and what the beginning has found."""

    address: Address
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    connection: Connection
    session: Session

    async def close(self) -> None:
        """End the connection; what the broker has not taken after `PATIENCE` is lost."""
        await close_writer(self.writer)


async def open_stream(address: Address, settings: ClientSettings) -> Stream:
    """Connect to a broker, with TLS and SASL as the settings have it.

    Raises `BrokerUnreachable`, `AuthenticationRefused`, `UnreadableAnswer`, `VersionUnavailable`; the reason
    names the address.
    """
    connection = Connection("client", client_id=settings.client_id)
    writer: asyncio.StreamWriter | None = None
    try:
        async with asyncio.timeout(settings.connection_timeout_ms / 1000):
            connected = await connected_socket(address)
            reader, writer = await asyncio.open_connection(
                sock=connected, ssl=settings.tls, server_hostname=address[0] if settings.tls else None
            )
            session = await run_transfer(opening(connection, settings.sasl), reader, writer)
        return Stream(address, reader, writer, connection, session)
    except BaseException as error:
        if writer is not None:
            writer.transport.abort()
            await close_writer(writer)
        raise located(
            error,
            shown_address(address),
            limit_ms=settings.connection_timeout_ms,
            has_tls=settings.tls is not None,
        ) from None


async def connected_socket(address: Address) -> socket.socket:
    """A socket that is connected to the first of a host's addresses that accepts it.

    Names are resolved in a thread that nothing waits for once the time is over; those of the event loop hold
    up its end.
    """
    host, port = address
    loop = asyncio.get_running_loop()
    resolved = start_call(lambda: socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
    failure = OSError("the host has no address")
    for family, kind, protocol, _, place in await asyncio.wrap_future(resolved):
        connecting = socket.socket(family, kind, protocol)
        connecting.setblocking(False)
        try:
            await loop.sock_connect(connecting, place)
        except OSError as error:
            connecting.close()
            failure = error
        except BaseException:
            connecting.close()
            raise
        else:
            return connecting
    raise failure


async def run_transfer(
    transfer: Transfer[T], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> T:
    """Run a generator that sends and receives bytes."""
    try:
        step = next(transfer)
        while True:
            if isinstance(step, BlockingCall):
                step = transfer.send(await run_call(step))
                continue
            if step:
                writer.write(step)
                await writer.drain()
            step = transfer.send(await reader.read(READ_SIZE))
    except StopIteration as end:
        result: T = end.value
        return result


async def run_call(call: BlockingCall) -> Any:
    """The result of a function: a coroutine function is awaited, any other runs in a thread."""
    if inspect.iscoroutinefunction(call.function):
        return await call.function()
    result = await asyncio.wrap_future(start_call(call.function))
    return await result if inspect.isawaitable(result) else result


async def close_writer(writer: asyncio.StreamWriter) -> None:
    """Close, and wait for the end of the transport, but not for a peer that reads or answers nothing; this
    never raises."""
    if not writer.is_closing():  # in Python 3.11.2 no transport of TLS can be aborted that was closed twice
        writer.close()
    try:
        with suppress(OSError, ssl.SSLError):
            async with asyncio.timeout(PATIENCE):
                await writer.wait_closed()
    finally:
        writer.transport.abort()
