"""A broker on a thread of its own, for programs whose clients block."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar

from coordwire.broker.injection.cluster_moves import ClusterMoves
from coordwire.broker.injection.fault_registry import Faults

if TYPE_CHECKING:  # at run time `broker` imports this module, for `Broker.in_thread`
    from coordwire.broker.broker import Broker

__all__ = ["BrokerThread"]

T = TypeVar("T")


class BrokerThread:
    """A broker that runs in the background; a context manager, or `start` and `stop`.

    broker: the one that runs, to be used by `call`.
    """

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

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

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start the thread and the broker. Raises as `Broker.start`."""
        if self._thread is not None:
            raise RuntimeError("the broker is running")
        started = threading.Event()
        failures: list[BaseException] = []
        loop = self._loop = asyncio.new_event_loop()

        async def begin() -> None:
            try:
                await self.broker.start()
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

        self._thread = threading.Thread(target=run, name="coordwire-broker", daemon=True)
        self._thread.start()
        started.wait()
        if failures:
            self._thread.join()
            self._thread = self._loop = None
            raise failures[0]

    def stop(self) -> None:
        """Stop the broker and its thread; nothing happens if it is not running."""
        thread, loop = self._thread, self._loop
        if thread is None or loop is None:
            return
        self._thread = self._loop = None
        try:
            asyncio.run_coroutine_threadsafe(self.broker.stop(), loop).result()
        finally:
            loop.call_soon_threadsafe(loop.stop)
            thread.join()

    def call(self, action: Callable[[Broker], T]) -> T:
        """Run `action` on the broker's own thread, and return its result."""

        async def run() -> T:
            return action(self.broker)

        return self.wait(run)

    def wait(self, make: Callable[[], Awaitable[T]]) -> T:
        """Run a coroutine on the broker's own thread, and return its result."""
        if self._loop is None:
            raise RuntimeError("the broker is not running")

        async def run() -> T:
            return await make()

        return asyncio.run_coroutine_threadsafe(run(), self._loop).result()
