"""`Settled`: a result that another thread sets, for code that blocks and for coroutines alike.

    group.stable(members=2)              blocks, in a thread without a running event loop
    await group.stable(members=2)        waits, in a coroutine

Strategy: what makes one decides by its thread. Without a running loop the result is there when the call
returns; with one the call returns at once, and `await` gives the result. Rules: both raise `TimeoutError`
with the condition and the state instead. `Waits.unawaited` reports results that a coroutine has not awaited,
since the test then has checked nothing.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import Callable, Generator
from typing import Any, Generic, Self, TypeVar

T = TypeVar("T")


def _has_running_loop() -> bool:
    """Whether this thread runs a coroutine."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


class Settled(Generic[T]):
    """A result. value: raises `RuntimeError` before it is set.

    >>> from coordwire.broker import Broker
    >>> from coordwire.client import connect_sync
    >>> from coordwire.messages import ListGroupsRequest
    >>> with Broker.in_thread() as broker, connect_sync(broker.bootstrap) as client:
    ...     fault = broker.faults.add("ListGroups error=COORDINATOR_NOT_AVAILABLE times=1")
    ...     response = client.request(ListGroupsRequest())
    ...     hits = fault.wait(1)
    >>> hits.value
    1
    """

    def __init__(
        self,
        future: concurrent.futures.Future[T],
        timeout: float,
        condition: str,
        instead: Callable[[], str] | None = None,
    ) -> None:
        self._future = future
        self._timeout = timeout
        self._condition = condition
        self._instead = instead
        self.awaited = False

    @property
    def value(self) -> T:
        if not self._future.done():
            raise RuntimeError(f"expected {self._condition} to be awaited first: there is an event loop")
        return self._future.result()

    def __await__(self) -> Generator[Any, None, T]:
        self.awaited = True
        return self._wait().__await__()

    async def _wait(self) -> T:
        waiting = asyncio.wrap_future(self._future)
        await asyncio.wait((waiting,), timeout=self._timeout)
        if not waiting.done():
            self._give_up()
        return waiting.result()

    def block(self) -> Self:
        """Wait in this thread."""
        self.awaited = True
        complete, _ = concurrent.futures.wait((self._future,), self._timeout)
        if not complete:
            self._give_up()
        self._future.result()
        return self

    def _give_up(self) -> None:
        self._future.cancel()
        instead = f"; {self._instead()}" if self._instead is not None else ""
        raise TimeoutError(f"waited {self._timeout:g} s for {self._condition}{instead}") from None

    def __repr__(self) -> str:
        state = repr(self._future.result()) if self._future.done() else "not there yet"
        return f"<{self._condition}: {state}>"


class Waits:
    """The results that a test waits for with one broker."""

    def __init__(self) -> None:
        self._results: list[Settled[Any]] = []

    def settle(
        self,
        future: concurrent.futures.Future[T],
        timeout: float,
        condition: str,
        instead: Callable[[], str] | None = None,
    ) -> Settled[T]:
        """A result: there already in a thread without a running event loop, else to be awaited."""
        result = Settled(future, timeout, condition, instead)
        if not _has_running_loop():
            return result.block()
        self._results = [result for result in self._results if not result.awaited]
        self._results.append(result)
        return result

    def unawaited(self) -> list[str]:
        """The results that coroutines have not awaited."""
        return [repr(result) for result in self._results if not result.awaited]
