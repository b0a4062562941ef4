"""A coroutine that is cancelled at one of its awaits, and what is left of it afterwards.

Strategy: a task factory puts a `CountedCoroutine` between each task and its coroutine, which counts the
awaits at which it suspends; at the chosen one the first task is cancelled, at once or just when what is
waited for is there, whose result is lost then. Rule: what a run leaves is judged by the event loop alone:
tasks, sockets that the loop still watches, timers, warnings of what was not closed, and errors that nobody
took.
"""

from __future__ import annotations

import asyncio
import gc
import selectors
import warnings
from asyncio import Runner
from collections.abc import Callable, Coroutine
from typing import Any, Self, TypeVar

T = TypeVar("T")
Work = Callable[[], Coroutine[Any, Any, object]]

_SETTLING = 20
"""Iterations of the loop in which what was ended is gone."""


class Cancellation:
    """awaits: how many there were. task: is cancelled at the await `at`, 0 for none; is_late: when the result
    is there."""

    def __init__(self, at: int, *, is_late: bool) -> None:
        self._at, self._is_late = at, is_late
        self.awaits = 0
        self.task: asyncio.Task[Any] | None = None

    def suspended(self, awaited: Any) -> None:
        self.awaits += 1
        if self.awaits != self._at or self.task is None:
            return
        if self._is_late and awaited is not None:
            awaited.add_done_callback(lambda _: self.task and self.task.cancel())
        else:
            self.task.cancel()

    def new_task(
        self, loop: asyncio.AbstractEventLoop, inner: Coroutine[Any, Any, Any], **options: Any
    ) -> asyncio.Task[Any]:
        """A loop's task factory."""
        task: asyncio.Task[Any] = asyncio.Task(CountedCoroutine(inner, self), loop=loop, **options)
        if self.task is None:
            self.task = task
        return task


class CountedCoroutine(Coroutine[Any, Any, Any]):
    """A coroutine that reports where it suspends."""

    def __init__(self, inner: Coroutine[Any, Any, Any], cancellation: Cancellation) -> None:
        self._inner, self._cancellation = inner, cancellation

    def send(self, value: Any) -> Any:
        return self._suspended(self._inner.send(value))

    def throw(self, *error: Any) -> Any:
        return self._suspended(self._inner.throw(*error))

    def close(self) -> None:
        self._inner.close()

    def __await__(self) -> Any:
        raise NotImplementedError("it is for a task alone")

    def _suspended(self, awaited: Any) -> Any:
        self._cancellation.suspended(awaited)
        return awaited


def watched_sockets(loop: asyncio.AbstractEventLoop) -> int:
    """The sockets that a loop waits for; -1 for one that does not show them."""
    selector = getattr(loop, "_selector", None)
    return len(selector.get_map()) if isinstance(selector, selectors.BaseSelector) else -1


def timers(loop: asyncio.AbstractEventLoop) -> list[asyncio.TimerHandle]:
    """What a loop is to call later; nothing of one that does not show it."""
    scheduled: list[asyncio.TimerHandle] = getattr(loop, "_scheduled", [])
    return [timer for timer in scheduled if not timer.cancelled()]


async def settle() -> None:
    """Let the loop end what was ended."""
    for _ in range(_SETTLING):
        await asyncio.sleep(0)


class CountingRunner:
    """As an `asyncio.Runner`: the awaits of all runs are counted, and the run that has the chosen one is
    cancelled. left: what the last run has left, which a Runner would end."""

    def __init__(self, cancellation: Cancellation) -> None:
        self._cancellation = cancellation
        self._runner = Runner()
        self.left: list[str] = []

    def __enter__(self) -> Self:
        loop = self._runner.get_loop()
        self._sockets = watched_sockets(loop)
        loop.set_task_factory(self._cancellation.new_task)  # type: ignore[arg-type]
        loop.set_exception_handler(lambda _, context: self.left.append(f"{context}"))
        return self

    def __exit__(self, *_: object) -> None:
        loop = self._runner.get_loop()
        loop.set_task_factory(None)
        self._runner.run(settle())
        gc.collect()
        self.left += [f"a task is left: {task}" for task in asyncio.all_tasks(loop)]
        self.left += [f"a timer is left: {timer}" for timer in timers(loop)]
        if watched_sockets(loop) != self._sockets:
            self.left.append(f"{watched_sockets(loop) - self._sockets} sockets are left")
        self._runner.close()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        self._cancellation.task = None
        try:
            return self._runner.run(work)
        finally:
            self._cancellation.task = None


async def cancelled_at(work: Work, at: int, *, is_late: bool = False) -> tuple[int, list[str]]:
    """Cancel a coroutine at an await, 0 for none. How many awaits it had, and what is wrong afterwards."""
    loop = asyncio.get_running_loop()
    found: list[str] = []
    await settle()
    tasks, sockets, timed = asyncio.all_tasks(), watched_sockets(loop), set(timers(loop))
    loop.set_exception_handler(lambda _, context: found.append(f"{context}"))
    cancellation = Cancellation(at, is_late=is_late)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always", ResourceWarning)
        loop.set_task_factory(cancellation.new_task)  # type: ignore[arg-type]
        task = loop.create_task(work())
        await asyncio.wait([task])
        loop.set_task_factory(None)
        await settle()
        if task.cancelled() is not bool(at):
            ended = "by a cancellation" if task.cancelled() else f"{task.exception()!r}"
            found.append(f"ended: {ended}")
        del task
        cancellation.task = None
        gc.collect()
        await settle()
    found += [f"warned: {warning.message}" for warning in warned]
    found += [f"a task is left: {left}" for left in asyncio.all_tasks() - tasks]
    found += [f"a timer is left: {left}" for left in timers(loop) if left not in timed]
    if watched_sockets(loop) != sockets:
        found.append(f"{watched_sockets(loop) - sockets} sockets are left")
    loop.set_exception_handler(None)
    return cancellation.awaits, found
