"""`Promise`: a value that the cluster's state gives later; `HandlerRun`: a handler that awaits promises.

How an answer that has to wait travels, for example that of JoinGroup:

1. The client's connection (`ClientLink`) calls the handler, which returns the answer where that is there at
   once; otherwise a coroutine, which the connection runs by a `HandlerRun`.
2. The coroutine has given the request to a coordinator, which noted a promise for it. It awaits the promise.
3. The coordinator's shard has the answer: another request or a deadline completed the rebalance. The
   coordinator fulfils the promise, and the handler goes on from there, before anything else is done.
4. The handler returns the answer, through the faults and guards around it, to the connection, which sends it.

Rules: no event loop is needed; a handler runs inside the call that fulfils its promise. If the client leaves,
the handler is closed where it waits: its `finally` clauses cancel what it waits for.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Promise(Generic[T]):
    """A value that comes once; a coroutine awaits it. value: given where it is there from the beginning.

    resume: called when the value comes, if a coroutine waits for it.
    """

    __slots__ = ("_values", "resume")

    def __init__(self, *value: T) -> None:
        self._values = value
        self.resume: Callable[[], None] | None = None

    @property
    def is_fulfilled(self) -> bool:
        return bool(self._values)

    @property
    def value(self) -> T:
        """The value. Raises `ValueError` if it has not come."""
        (value,) = self._values
        return value

    def fulfil(self, value: T) -> None:
        """Give the value, and let the coroutine that waits go on; a second value is ignored."""
        if self._values:
            return
        self._values = (value,)
        resume, self.resume = self.resume, None
        if resume is not None:
            resume()

    def __await__(self) -> Generator[Promise[T], None, T]:
        if not self._values:
            yield self
        return self.value

    async def result(self) -> T:
        """The value, after it was waited for."""
        return await self


class HandlerRun(Generic[T]):
    """A coroutine that awaits promises. resume: called when `advance` can go on."""

    __slots__ = ("_coroutine", "_promise", "_resume")

    def __init__(self, coroutine: Coroutine[Any, None, T], resume: Callable[[], None]) -> None:
        self._coroutine = coroutine
        self._resume = resume
        self._promise: Promise[Any] | None = None

    def advance(self) -> T | None:
        """Run the coroutine until it ends, and give its result; None if it waits. Raises its errors."""
        self._promise = None
        try:
            promise: Promise[Any] = self._coroutine.send(None)
        except StopIteration as end:
            result: T = end.value
            return result
        self._promise = promise
        promise.resume = self._resume
        return None

    def close(self) -> None:
        """End the coroutine where it waits; one that has ended or that runs is left alone."""
        promise, self._promise = self._promise, None
        if promise is not None:
            promise.resume = None
            self._coroutine.close()


def immediate_result(coroutine: Coroutine[Any, None, T]) -> T:
    """The result of a coroutine whose promises are all fulfilled. Raises `RuntimeError` if one is not."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    coroutine.close()
    raise RuntimeError("expected a result at once, got a coroutine that waits")
