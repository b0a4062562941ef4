"""The threads of a world that allows them: no time passes while one of them works.

Strategy: a thread works unless it waits in a `threading.Condition`, as those of queues, events and executors
do; queues that are made in a world are Python's own, which have one. After each step the loop waits until all
threads wait, and takes what they have given it in the order in which they were started. Rules: a thread has
the real clock and its own randomness. One that does not come to rest ends the run with its line. What a
thread gives the loop belongs to the process that has started it. Which of several threads takes a piece of
work that they share is not the seed's choice.
"""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Callable
from contextvars import Context, copy_context

from coordwire.errors import CoordwireError
from coordwire.testing.simulation.surroundings import line_outside

__all__ = ["Restless", "WorldThreads"]

_LOOKS = 2_000
"""So often the loop looks whether threads wait, at most 10 ms apart."""

_FIRST_S, _LONGEST_S = 0.000_05, 0.01


class Restless(CoordwireError):
    """A thread works on and on, or waits for something that a world does not see."""


class WorldThreads:
    """The threads that a world's processes have started."""

    def __init__(self) -> None:
        self._alive: list[tuple[threading.Thread, Context]] = []
        self._waiting: dict[threading.Thread, threading.Condition] = {}
        """Conditions in which threads wait."""
        self._waits = 0
        self._calls: list[tuple[threading.Thread, Callable[[Context], None]]] = []
        self._never = threading.Lock()
        self._never.acquire()

    @property
    def are_there(self) -> bool:
        """Whether a thread lives, or has given a call."""
        return bool(self._alive or self._calls)

    def start(self, thread: threading.Thread, start: Callable[[threading.Thread], None]) -> None:
        """Start a thread. It does not keep Python from its end, as its process may be killed."""
        thread.daemon = True
        self._alive.append((thread, copy_context()))
        try:
            start(thread)
        except BaseException:
            self._alive.pop()
            raise

    def wait(self, condition: threading.Condition, wait: Callable[..., bool], timeout: float | None) -> bool:
        """Wait in a condition, and be seen to."""
        thread = threading.current_thread()
        self._waiting[thread] = condition
        self._waits += 1
        try:
            return wait(condition, timeout)
        finally:
            del self._waiting[thread]

    def give(self, call: Callable[[Context], None]) -> None:
        """Take a call of this thread for the loop, which is given the context to make it in."""
        self._calls.append((threading.current_thread(), call))

    def settle(self) -> None:
        """Wait until all threads wait, and make their calls. Raises `Restless`."""
        pause, looks = _FIRST_S, 0
        while (working := self._working()) is not None:
            self._never.acquire(timeout=pause)
            pause, looks = min(2 * pause, _LONGEST_S), looks + 1
            if looks < _LOOKS:
                continue
            raise Restless(
                f"the thread {working.name} neither ends nor waits for a queue, an event or a condition that "
                f"was made in the world, but is at {_line_of(working)}: the world would wait for ever. Run "
                f"its work by asyncio.to_thread, or leave it out of the test"
            )
        calls, self._calls = self._calls, []
        contexts = {thread: (number, context) for number, (thread, context) in enumerate(self._alive)}
        unknown = len(contexts), Context()
        for thread, call in sorted(calls, key=lambda entry: contexts.get(entry[0], unknown)[0]):
            call(contexts.get(thread, unknown)[1].copy())
        self._alive = [entry for entry in self._alive if entry[0].is_alive()]

    def _working(self) -> threading.Thread | None:
        """A thread that works: it may not know yet that it was woken, but its condition does."""
        waits = self._waits
        waiting = Counter(map(id, self._waiting.copy().values()))
        for thread, _ in self._alive:
            if not thread.is_alive():
                continue
            condition = self._waiting.get(thread)
            if condition is None or waiting[id(condition)] != len(condition._waiters):  # type: ignore[attr-defined]
                return thread
            if self._waits != waits:  # it may have woken one that was looked at before
                return thread
        return None


def _line_of(thread: threading.Thread) -> str:
    return line_outside(sys._current_frames().get(thread.ident or 0))
