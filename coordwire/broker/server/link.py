"""One client's connection to a server: bytes from a transport to requests, answers to bytes.

Strategy: an asyncio protocol with one task, which takes the events of a `Connection` one after the other,
awaits the handler of each request, and goes on once the client has taken the answer. Rules: what comes while
a request is handled stays in the system after one piece, and `ConnectionMemory` counts what is here; the task
ends with the connection, and the handler with it; after some work others have their turn.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeAlias, cast

from coordwire.broker.connections.connection_memory import ConnectionMemory
from coordwire.broker.connections.other_protocols import other_protocol
from coordwire.broker.connections.turns import REQUEST, TURN
from coordwire.broker.connections.version_fit import fitted
from coordwire.codec import Message, Request, Response
from coordwire.connection import Connection
from coordwire.connection.events import (
    ConnectionClosed,
    ConnectionFailed,
    Event,
    FrameRefused,
    RequestReceived,
)
from coordwire.connection.kafka import LastingClient
from coordwire.errors import UnsupportedVersion
from coordwire.frames import RequestFrame
from coordwire.limits import limits
from coordwire.messages import ApiVersionsResponse
from coordwire.versions import ApiKey

log = logging.getLogger("coordwire.server")

_UNSENT = 1 << 18
"""The most bytes of answers that may be unsent when the next request is handled."""

LAST_ANSWERS = 10.0
"""Seconds in which a client gets its answers after it has closed its side: it may be gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerCall:
    """What a handler gets beside the request: its version, and who sent it.

    client_id: from the request's header, or empty. peer: the client's address. address: where the client
    reached the server: what an answer with the server's own host and port has.

        >>> from coordwire.broker import ServerCall
        >>> ServerCall(version=9, client_id="till-3", peer=("192.0.2.7", 40100), address=("192.0.2.1", 9092))
        ServerCall(version=9, client_id='till-3', peer=('192.0.2.7', 40100), address=('192.0.2.1', 9092))
    """

    version: int
    client_id: str
    peer: tuple[str, int]
    address: tuple[str, int]


Handler: TypeAlias = Callable[[Any, ServerCall], Response | Awaitable[Response | None] | None]
"""Answers one class of requests."""


class ServedApi(NamedTuple):
    """An API with the versions that are offered."""

    request: type[Request]
    versions: range
    handler: Handler


class ServerHub(Protocol):
    """The part of the server that a link needs."""

    @property
    def apis(self) -> Mapping[int, ServedApi]: ...

    @property
    def memory(self) -> ConnectionMemory: ...

    @property
    def read_buffer(self) -> memoryview: ...

    @property
    def max_frame(self) -> int: ...

    def refused_versions(self) -> ApiVersionsResponse:
        """The answer to a version of ApiVersions that is not offered."""

    def begin(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        """Run something that ends with the server."""

    def join(self, link: ServerLink) -> bool:
        """A connection was made, or its handshake has begun; whether there may be another."""

    def leave(self, link: ServerLink) -> None:
        """A connection, or its handshake, has ended."""


class ServerLink(asyncio.BufferedProtocol):
    """A connection. held_bytes: bytes of memory that it is charged for."""

    def __init__(self, hub: ServerHub) -> None:
        self._hub = hub
        self._connection = Connection("server")
        self._client = LastingClient()
        self._transport: asyncio.Transport | None = None
        self._peer = self._address = ("", 0)
        self._task: asyncio.Task[None] | None = None
        self._ending: asyncio.TimerHandle | None = None
        self._wake: asyncio.Future[None] | None = None
        """What the task waits for: bytes, a grant of memory, or that the client takes its answers."""
        self._reading = True
        self._congested = False
        """The transport holds bytes that the client has not taken."""
        self._opening = b""
        """The first bytes that came."""
        self._granted = 0
        """The size of the frame that is not whole and has a grant of memory."""
        self._handled = 0
        """The size of the request that is handled."""
        self._received = self._written = self._spent = 0
        self.held_bytes = 0

    # --- the transport's side ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = connected = cast("asyncio.Transport", transport)  # uvloop's is of another class
        connected.set_write_buffer_limits(high=1, low=0)  # what was not taken is always known
        self._peer = connected.get_extra_info("peername")[:2]
        self._address = connected.get_extra_info("sockname")[:2]
        if not self._hub.join(self):
            self._refuse("there are max_connections already")
            self.abort()
            return
        self._task = self._hub.begin(self._run())

    def get_buffer(self, sizehint: int) -> memoryview:
        buffer = self._hub.read_buffer
        return buffer if self._granted else buffer[: self._hub.memory.read_size]

    def buffer_updated(self, nbytes: int) -> None:
        data = bytes(self._hub.read_buffer[:nbytes])
        if not self._received:
            self._opening = data[:8]
        self._received += nbytes
        self._connection.receive_data(data)
        if not self._wake_up() and self._reading and self._transport is not None:
            self._reading = False
            self._transport.pause_reading()

    def eof_received(self) -> bool:
        self._connection.receive_data(b"")
        self._wake_up()
        self._ending = asyncio.get_running_loop().call_later(LAST_ANSWERS, self.abort)
        tls = self._transport is None or self._transport.get_extra_info("sslcontext") is not None
        return not tls  # asyncio's TLS ends with one side

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._hub.leave(self)
        self._hub.memory.forget(self)
        self._connection.close()
        if self._ending is not None:
            self._ending.cancel()
        if self._task is not None:
            self._task.cancel()

    def pause_writing(self) -> None:
        self._congested = True

    def resume_writing(self) -> None:
        self._congested = False
        self._hub.memory.take(self)
        self._wake_up()

    def abort(self) -> None:
        """End the connection at once; what was not sent is lost."""
        if self._transport is not None:
            self._transport.abort()

    # --- memory ---

    @property
    def progress(self) -> int:
        return self._received + self._written - self._unsent

    def granted(self, size: int) -> None:
        self._granted = size
        self._wake_up()

    def evict(self, reason: str) -> None:
        self._refuse(reason)
        self.abort()

    @property
    def _unsent(self) -> int:
        return 0 if self._transport is None else self._transport.get_write_buffer_size()

    @property
    def _is_full(self) -> bool:
        """Whether the client has to take answers before its next request is handled."""
        return self._congested and self._unsent > (0 if self._hub.memory.is_scarce else _UNSENT)

    def _account(self) -> None:
        """Report the bytes that are held."""
        size = max(self._connection.buffered, self._granted) + self._handled
        if self._transport is None:
            return
        if self._congested:
            self._hub.memory.hold(self, size + self._unsent)
            self._hub.memory.leave(self)
        elif size != self.held_bytes:
            self._hub.memory.hold(self, size)

    # --- the task ---

    async def _run(self) -> None:
        try:
            with limits(frame=self._hub.max_frame):
                while await self._handle_events():
                    await self._receive()
        finally:
            self._hub.memory.forget(self)
            if self._transport is not None:
                self._transport.close()
                self._connection.close()
                self._account()  # until the client has taken its answers

    async def _wait(self) -> None:
        self._wake = asyncio.get_running_loop().create_future()
        try:
            await self._wake
        finally:
            self._wake = None

    def _wake_up(self) -> bool:
        """Let the task go on, if it waits; whether it does."""
        if self._wake is None:
            return False
        if not self._wake.done():
            self._wake.set_result(None)
        return True

    async def _receive(self) -> None:
        """Wait for bytes; for a large frame that has begun, first for memory."""
        connection = self._connection
        if not self._granted:
            granted = self._hub.memory.admit(self, connection.announced, connection.unread)
            if granted is not None:
                self._granted = granted
            elif self._transport is not None:
                self._reading = False
                self._transport.pause_reading()
                while not self._granted:
                    await self._wait()
        if not self._reading and self._transport is not None:
            self._reading = True
            self._transport.resume_reading()
        self._account()
        await self._wait()

    async def _handle_events(self) -> bool:
        """Handle what was received; False if the connection is to be closed."""
        while (event := self._connection.next_event()) is not None:
            if self._granted:
                self._granted = 0
                self._hub.memory.finish(self)
            if not await self._take(event):
                return False
            self._spent += REQUEST
            while self._is_full:
                self._account()
                await self._wait()
            if self._spent >= TURN:
                self._spent = 0
                await asyncio.sleep(0)
        return True

    async def _take(self, event: Event) -> bool:
        """Handle one event; False if the connection is to be closed."""
        if isinstance(event, RequestReceived) and isinstance(event.frame, RequestFrame):
            return await self._request(event, event.frame)
        if isinstance(event, FrameRefused):
            if isinstance(event.error, UnsupportedVersion) and event.api_key == ApiKey.API_VERSIONS:
                return self._write(self._connection.send(self._hub.refused_versions(), request=event))
            return self._refuse(f"{event.error}")
        if isinstance(event, ConnectionFailed):
            return self._refuse(other_protocol(self._opening) or f"{event.error}")
        if isinstance(event, ConnectionClosed):
            remainder = len(event.remainder)
            return remainder > 0 and self._refuse(f"it ended {remainder} bytes into a request")
        return self._refuse("it sent bytes without a header")

    async def _request(self, event: RequestReceived, frame: RequestFrame) -> bool:
        version, name = frame.api_version, type(frame.message).__name__
        api = self._hub.apis.get(frame.api_key)
        if api is None or version not in api.versions:
            if frame.api_key == ApiKey.API_VERSIONS:
                answer = self._hub.refused_versions()
                return self._write(self._connection.send(answer, version=0, request=event))
            return self._refuse(f"{name} version {version} is not offered")
        call = ServerCall(
            version=version, client_id=self._client.of(frame), peer=self._peer, address=self._address
        )
        self._spent += frame.size
        self._handled = frame.size
        try:
            answered = api.handler(frame.message, call)
            if inspect.isawaitable(answered):
                self._account()
                answered = await answered
            self._handled = 0
            if not event.expects_response:
                return True
            if answered is None:
                return self._refuse(f"the handler of {name} has no answer")
            if not isinstance(answered, Message):
                raise TypeError(f"expected {frame.message.response_class.__name__} or None, got {answered!r}")
            return self._write(fitted(self._connection, answered, event))
        except (Exception, asyncio.CancelledError) as error:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            log.error("%s version %d from %s:%d failed", name, version, *self._peer, exc_info=error)
            return False

    def _refuse(self, reason: str) -> bool:
        """Report why the connection is to be closed; False."""
        log.warning("closed %s:%d: %s", *self._peer, reason)
        return False

    def _write(self, data: bytes) -> bool:
        """Send bytes of an answer; True."""
        self._written += len(data)
        self._spent += len(data)
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)
        return True
