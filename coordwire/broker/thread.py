"""A broker, or another server, on a thread of its own, for programs whose clients block."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import TYPE_CHECKING, Generic, Protocol, Self, TypeVar

from coordwire.broker.injection.cluster_moves import ClusterMoves
from coordwire.broker.injection.fault_registry import Faults

if TYPE_CHECKING:  # at run time `broker` imports this module, for `Broker.in_thread`
    from coordwire.broker.broker import Broker

T = TypeVar("T")


class _Server(Protocol):
    """The server that a thread runs."""

    async def start(self) -> None: ...

    async def stop(self) -> None: ...


S = TypeVar("S", bound=_Server)


class ServerThread(Generic[S]):
    """A server that runs in the background; a context manager, or `start` and `stop`.

    name: of its kind, for errors and the thread.
    """

    def __init__(self, server: S, name: str) -> None:
        self._server = server
        self._name = name
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._server!r}>"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start the thread and the server. Raises as the server's `start`."""
        if self._thread is not None:
            raise RuntimeError(f"the {self._name} is running")
        started = threading.Event()
        failures: list[BaseException] = []
        loop = self._loop = asyncio.new_event_loop()

        async def begin() -> None:
            try:
                await self._server.start()
            except BaseException as error:
                failures.append(error)
                loop.stop()
            finally:
                started.set()

        def run() -> None:
            asyncio.set_event_loop(loop)
            task = loop.create_task(begin())
            try:
                loop.run_forever()
            finally:
                del task
                loop.close()

        self._thread = threading.Thread(target=run, name=f"coordwire-{self._name}", daemon=True)
        self._thread.start()
        started.wait()
        if failures:
            self._thread.join()
            self._thread = self._loop = None
            raise failures[0]

    def stop(self) -> None:
        """Stop the server and its thread; nothing happens if it is not running."""
        thread, loop = self._thread, self._loop
        if thread is None or loop is None:
            return
        self._thread = self._loop = None
        try:
            asyncio.run_coroutine_threadsafe(self._server.stop(), loop).result()
        finally:
            loop.call_soon_threadsafe(loop.stop)
            thread.join()

    def call(self, action: Callable[[S], T]) -> T:
        """Run `action` on the server's own thread, and return its result."""

        async def run() -> T:
            return action(self._server)

        return self.wait(run)

    def wait(self, make: Callable[[], Awaitable[T]]) -> T:
        """Run a coroutine on the server's own thread, and return its result."""
        if self._loop is None:
            raise RuntimeError(f"the {self._name} is not running")

        async def run() -> T:
            return await make()

        return asyncio.run_coroutine_threadsafe(run(), self._loop).result()


class BrokerThread(ServerThread["Broker"]):
    """A broker that runs in the background. broker: the one that runs, to be used by `call`.

    >>> from coordwire.broker import Broker
    >>> from coordwire.client import connect_sync
    >>> from coordwire.messages import ListGroupsRequest
    >>> with Broker.in_thread(topics={"orders": 6}) as broker, connect_sync(broker.bootstrap) as client:
    ...     client.request(ListGroupsRequest()).groups
    []
    """

    def __init__(self, broker: Broker) -> None:
        super().__init__(broker, "broker")
        self.broker = broker

    @property
    def bootstrap(self) -> str:
        """The addresses as clients' `bootstrap.servers`."""
        return self.broker.bootstrap

    @property
    def addresses(self) -> list[tuple[str, int]]:
        """Where clients find the nodes."""
        return self.broker.addresses

    @property
    def faults(self) -> Faults:
        """The broker's faults; they may be used from any thread."""
        return self.broker.faults

    @property
    def moves(self) -> ClusterMoves:
        """Leaders, coordinators and nodes that move; they may be used from any thread."""
        return self.broker.moves
