"""`Tap`: loopback ports in front of the brokers of a cluster, which see all that passes.

    async with Tap("cluster:9092") as tap:
        client = AIOKafkaProducer(bootstrap_servers=tap.bootstrap)

    with Tap.in_thread("cluster:9092") as tap:
        tap.faults.add("Heartbeat nth=3 error=REBALANCE_IN_PROGRESS")
        client = KafkaConsumer(bootstrap_servers=tap.bootstrap)

Strategy: a listener for each broker that is known, at first those of `upstream`; when a response names
another, it gets a listener too, and the client its address. One link a client's connection, one task while it
connects. Rules: everything that connections hold is counted and bounded, as in `coordwire.broker`, and so are
listeners, which leave most of the process's files to connections; `stop` ends everything that `start` began.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable, Coroutine
from contextvars import copy_context
from types import TracebackType
from typing import Self

from coordwire.broker.connections.connection_memory import READ_SIZE, ConnectionMemory
from coordwire.broker.connections.other_protocols import reporting
from coordwire.broker.connections.recorded_connection import MOST_REQUESTS, Recording
from coordwire.broker.connections.tls_handshakes import accept_tls, close_after
from coordwire.broker.connections.turns import Turns
from coordwire.broker.injection.fault_registry import Faults
from coordwire.broker.thread import ServerThread
from coordwire.capture.pending_requests import PendingRequests
from coordwire.client.authentication import BlockingCall, Sasl
from coordwire.client.errors import located
from coordwire.client.opening import Session, opening
from coordwire.client.settings import Address, ClientSettings, addresses, shown_address
from coordwire.client.streams import connected_socket, run_call
from coordwire.connection import Connection
from coordwire.limits import DEFAULT, limits
from coordwire.tap.addresses import BrokerAddresses, most_brokers
from coordwire.tap.counts import TapCounts
from coordwire.tap.link import TapLink
from coordwire.tap.script import Script
from coordwire.tap.topic_ids import SessionPartitions, TopicIds

log = logging.getLogger("coordwire.tap")

_RENEWAL = 0.85
"""The part of a session's lifetime after which the tap authenticates again (KIP-368)."""

_BACKLOG, _ACCEPTED = 1024, 16
"""The connections that the system keeps until they are accepted, and those accepted in one iteration."""

_MEMORY = 256 << 20
_ITERATIONS = 10


class Tap:
    """Listeners in front of a cluster; an async context manager, or `start` and `stop`.

    upstream: brokers of the cluster, as clients' bootstrap servers; or a client's settings, of which the tap
    uses bootstrap, tls, sasl and connection_timeout_ms. With sasl the tap authenticates, and clients do not;
    without it, what they send passes. host, port: where to listen; port is that of the first broker, 0 for
    any that is free; the others have the ports after it, if they are free. tls: for clients. script: sees
    each frame. traffic: gets what clients send and are sent. show_secrets: whether it gets passwords and
    tokens too, which else are blanked. max_frame: the bytes of the largest frame; a connection that announces
    more is ended. memory: the bytes that all connections may hold together.

    faults: what is to go wrong. counts: what has passed. Raises `SettingsError`; `start` raises `OSError`
    where it cannot listen.

        >>> import asyncio
        >>> from coordwire.broker import Broker
        >>> from coordwire.client import connect
        >>> from coordwire.messages import ListGroupsRequest
        >>> from coordwire.tap import Tap
        >>> async def main() -> int:
        ...     async with Broker() as broker, Tap(broker.bootstrap) as tap:
        ...         async with connect(tap.bootstrap) as client:
        ...             await client.request(ListGroupsRequest())
        ...     return tap.counts.requests_in
        >>> asyncio.run(main()) > 0
        True
    """

    def __init__(
        self,
        upstream: str | ClientSettings,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        tls: ssl.SSLContext | None = None,
        script: Script | None = None,
        traffic: Recording | None = None,
        show_secrets: bool = False,
        max_frame: int = DEFAULT.frame,
        memory: int = _MEMORY,
    ) -> None:
        if isinstance(upstream, str):
            upstream = ClientSettings(bootstrap=addresses(upstream))
        self._settings = upstream
        self.upstream = upstream.bootstrap
        self._host, self._port = host, port
        self._tls = reporting(tls)
        self.script = script or Script()
        self.traffic = traffic
        self.recorded_requests = None if show_secrets else PendingRequests(MOST_REQUESTS)
        self._max_frame = max_frame
        self._loop: asyncio.AbstractEventLoop | None = None
        self._listeners: dict[Address, socket.socket] = {}
        self._servers: dict[Address, asyncio.Server] = {}
        self._accepting: dict[Address, asyncio.Task[None]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._links: set[TapLink] = set()
        self._context = copy_context()
        self.turns = Turns(self._call_soon)
        self.memory = ConnectionMemory(memory, self.call_later)
        self.read_buffer = memoryview(bytearray(READ_SIZE))
        self.addresses = self._no_addresses()
        self.sessions = SessionPartitions()
        self.faults = Faults()
        self.counts = TapCounts()
        self.topics = TopicIds()

    def __repr__(self) -> str:
        return f"<Tap of {', '.join(f'{host}:{port}' for host, port in self.upstream)}>"

    @classmethod
    def in_thread(
        cls,
        upstream: str | ClientSettings,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        tls: ssl.SSLContext | None = None,
        script: Script | None = None,
        traffic: Recording | None = None,
        show_secrets: bool = False,
    ) -> TapThread:
        """A tap on a thread of its own, for clients that block; a context manager."""
        return TapThread(
            cls(
                upstream,
                host=host,
                port=port,
                tls=tls,
                script=script,
                traffic=traffic,
                show_secrets=show_secrets,
            )
        )

    @property
    def bootstrap(self) -> str:
        """What clients take as their bootstrap servers."""
        if self._loop is None:
            raise RuntimeError("the tap is not running")
        return ",".join(shown_address(self.addresses.local(broker)) for broker in self.upstream)

    @property
    def connections(self) -> int:
        """The connections of clients now."""
        return len(self._links)

    # --- start and stop ---

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def start(self) -> None:
        """Listen for the brokers of `upstream`."""
        if self._loop is not None:
            raise RuntimeError("the tap is running")
        self._loop = asyncio.get_running_loop()
        self.faults.bind(self._loop)
        with limits(frame=self._max_frame):  # what connections read runs in this context
            self._context = copy_context()
        try:
            for broker in self.upstream:
                self.addresses.local(broker)
            while self._tasks:
                await asyncio.gather(*self._tasks)
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """End all connections; nothing happens if it is not running."""
        if self._loop is None:
            return
        for server in self._servers.values():
            server.close()
        for link in list(self._links):
            link.abort()
        ended = [*self._tasks, *self._accepting.values()]
        for task in ended:
            task.cancel()
        try:
            await asyncio.gather(*ended, return_exceptions=True)
            for _ in range(_ITERATIONS):  # a transport reports its end on the loop's next turn
                await asyncio.sleep(0)
        finally:  # also where it is cancelled
            for listener in self._listeners.values():
                listener.close()
            self._listeners.clear()
            self._servers.clear()
            self._accepting.clear()
            self.turns.clear()
            self.memory.close()
            self.faults.bind(None)
            self.addresses = self._no_addresses()
            self.sessions = SessionPartitions()
            self._loop = None

    # --- listeners ---

    def _no_addresses(self) -> BrokerAddresses:
        return BrokerAddresses(self._listen, self._stop_listening, self.upstream, most=most_brokers())

    def _listen(self, broker: Address) -> Address:
        """Listen for a broker: at once, so that its address may be given out, though it is served a moment
        later."""
        listener = self._bound()
        local: Address = (self._host, listener.getsockname()[1])
        self._listeners[broker] = listener
        if self._tls is None:
            self._start(self._serve(listener, broker))
        else:
            clients = accept_tls(listener, self._tls, lambda: TapLink(self, broker).client)
            accepting = self._accepting[broker] = self._task(clients)
            close_after(accepting, listener)
        if broker not in self.upstream:
            log.debug("%s is for %s", shown_address(local), shown_address(broker))
        return local

    def _stop_listening(self, broker: Address) -> None:
        del self._listeners[broker]
        server = self._servers.pop(broker, None)
        if server is not None:  # else `_serve` closes it
            server.close()
        if (accepting := self._accepting.pop(broker, None)) is not None:
            accepting.cancel()

    def _bound(self) -> socket.socket:
        """A socket that listens, at the next port if that is free."""
        family, kind, protocol, _, place = socket.getaddrinfo(
            self._host, None, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        next_port = self._port + len(self._listeners) if self._port else 0
        is_first = not self._listeners
        for port in (next_port,) if is_first or not next_port or next_port > 65535 else (next_port, 0):
            listener = socket.socket(family, kind, protocol)
            listener.setblocking(False)
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                listener.bind((place[0], port, *place[2:]))
                listener.listen(_BACKLOG)
            except OSError:
                listener.close()
                if is_first or not port:
                    raise
                continue
            return listener
        raise AssertionError("the last port is any that is free")

    async def _serve(self, listener: socket.socket, broker: Address) -> None:
        assert self._loop is not None
        server = await self._loop.create_server(
            lambda: TapLink(self, broker).client, sock=listener, backlog=_ACCEPTED, start_serving=False
        )
        if self._listeners.get(broker) is not listener:
            server.close()
            return
        self._servers[broker] = server
        await server.start_serving()
        listener.listen(_BACKLOG)  # asyncio accepts as many at once as it lets the system hold

    # --- for the links ---

    def connect(self, link: TapLink) -> asyncio.Task[None]:
        """Begin to connect a link to its broker."""
        return self._start(self._connect(link))

    async def _connect(self, link: TapLink) -> None:
        assert self._loop is not None
        settings, host = self._settings, link.address[0]
        try:
            async with asyncio.timeout(settings.connection_timeout_ms / 1000):
                if not link.is_connected:
                    await self._loop.create_connection(
                        lambda: link.broker,
                        sock=await connected_socket(link.address),
                        ssl=settings.tls,
                        server_hostname=host if settings.tls else None,
                    )
                lifetime_ms = 0 if settings.sasl is None else await self._authenticate(link, settings.sasl)
        except asyncio.CancelledError:
            raise
        except Exception as error:  # of host names too; what else there may be ends the connection as well
            limit_ms, has_tls = settings.connection_timeout_ms, settings.tls is not None
            reason = located(error, shown_address(link.address), limit_ms=limit_ms, has_tls=has_tls)
            link.refuse(f"the broker cannot be reached: {reason}")
            return
        link.coupled(max(0, lifetime_ms) * _RENEWAL / 1000)

    async def _authenticate(self, link: TapLink, sasl: Sasl) -> int:
        """Authenticate a link to its broker; the ms in which to do so again, 0 for never."""
        transfer = opening(Connection("client", client_id=self._settings.client_id), sasl)
        try:
            step = next(transfer)
            while True:
                if isinstance(step, BlockingCall):
                    step = transfer.send(await run_call(step))
                else:
                    step = transfer.send(await link.answer(step))
        except StopIteration as end:
            session: Session = end.value
            return session.lifetime_ms

    def _task(self, work: Coroutine[object, object, None]) -> asyncio.Task[None]:
        assert self._loop is not None
        return self._context.run(self._loop.create_task, work)

    def _start(self, work: Coroutine[object, object, None]) -> asyncio.Task[None]:
        task = self._task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def join(self, link: TapLink) -> None:
        self.counts.connections += 1
        self._links.add(link)

    def leave(self, link: TapLink) -> None:
        self._links.discard(link)

    def call_later(self, seconds: float, action: Callable[[], None]) -> asyncio.TimerHandle:
        assert self._loop is not None
        return self._loop.call_later(seconds, action)

    def _call_soon(self, action: Callable[[], None]) -> None:
        assert self._loop is not None
        self._loop.call_soon(action, context=self._context)


class TapThread(ServerThread[Tap]):
    """A tap that runs in the background. tap: the one that runs, to be used by `call`.

    >>> from coordwire.broker import Broker
    >>> from coordwire.client import connect_sync
    >>> from coordwire.messages import ListGroupsRequest
    >>> from coordwire.tap import Tap
    >>> with Broker.in_thread() as broker, Tap.in_thread(broker.bootstrap) as tap:
    ...     _ = tap.faults.add("ListGroups nth=1 error=COORDINATOR_NOT_AVAILABLE")
    ...     with connect_sync(tap.bootstrap) as client:
    ...         client.request(ListGroupsRequest()).error_code
    15
    """

    def __init__(self, tap: Tap) -> None:
        super().__init__(tap, "tap")
        self.tap = tap

    @property
    def bootstrap(self) -> str:
        """What clients take as their bootstrap servers."""
        return self.call(lambda tap: tap.bootstrap)

    @property
    def faults(self) -> Faults:
        """The faults to inject; they may be added from any thread."""
        return self.tap.faults

    @property
    def counts(self) -> TapCounts:
        """The traffic that has passed."""
        return self.tap.counts
