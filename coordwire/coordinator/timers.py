"""Timers by key, on a heap of deadlines.

Strategy: a timer that is set for later, as a session is by every heartbeat, keeps its place in the heap; when
that place comes up, the timer moves to its current deadline. Entries of timers that were cancelled or set for
earlier are skipped.

Rules: equal deadlines are due in the order in which they were set. The heap is rebuilt when most of it is
stale, so that it stays within a constant of the live timers.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Generic, TypeAlias, TypeVar

TimerKey: TypeAlias = str | tuple[str, ...]
"""A tuple where clients choose a part of the key, so that no client can make two keys equal."""

T = TypeVar("T")

_SLACK = 64


def earlier(first: int | None, second: int | None) -> int | None:
    """The earlier of two deadlines, of which None is never."""
    if first is None or (second is not None and second < first):
        return second
    return first


class _Timer(Generic[T]):
    """One timer.

    number: of the last call that set it. entry: the number of its entry in the heap, 0 without one; place:
    the deadline of that entry, which may be earlier than the timer's own.
    """

    __slots__ = ("action", "deadline", "entry", "key", "number", "place")

    action: Callable[[], T]
    deadline: int
    number: int
    place: int

    def __init__(self, key: TimerKey) -> None:
        self.key = key
        self.entry = 0


class Timers(Generic[T]):
    """Actions by deadline; T is the result of an action. heap: for `may_be_due` without its call."""

    def __init__(self) -> None:
        self.heap: list[tuple[int, int, _Timer[T]]] = []
        self._live: dict[TimerKey, _Timer[T]] = {}
        self._number = 0

    def __len__(self) -> int:
        return len(self._live)

    def set(self, key: TimerKey, deadline: int, action: Callable[[], T]) -> None:
        """Set the time and the action of a key's timer, in place of earlier ones."""
        timer = self._live.get(key)
        if timer is None:
            timer = self._live[key] = _Timer(key)
        timer.action = action
        self._number += 1
        timer.deadline, timer.number = deadline, self._number
        if not timer.entry or deadline < timer.place:
            self._push(timer)

    def renew(self, key: TimerKey, deadline: int) -> bool:
        """Set a timer for later, or the same time, with its present action; False where `set` is needed."""
        timer = self._live.get(key)
        if timer is None or deadline < timer.place:
            return False
        self._number = timer.number = self._number + 1
        timer.deadline = deadline
        return True

    def _push(self, timer: _Timer[T]) -> None:
        timer.place, timer.entry = timer.deadline, timer.number
        heapq.heappush(self.heap, (timer.deadline, timer.number, timer))
        if len(self.heap) > 2 * len(self._live) + _SLACK:
            for live in self._live.values():
                live.place, live.entry = live.deadline, live.number
            self.heap = [(live.deadline, live.number, live) for live in self._live.values()]
            heapq.heapify(self.heap)

    def cancel(self, key: TimerKey) -> None:
        timer = self._live.pop(key, None)
        if timer is not None:
            timer.entry = 0

    def is_set(self, key: TimerKey) -> bool:
        return key in self._live

    def may_be_due(self, now: int) -> bool:
        """Whether a timer may be due; False is certain."""
        heap = self.heap
        return bool(heap) and heap[0][0] <= now

    def next_deadline(self) -> int | None:
        heap = self.heap
        while heap:
            deadline, number, timer = heap[0]
            if timer.number == number == timer.entry:
                return deadline
            if timer.entry == number:
                timer.place, timer.entry = timer.deadline, timer.number
                heapq.heapreplace(heap, (timer.deadline, timer.number, timer))
            else:
                heapq.heappop(heap)
        return None

    def pop(self) -> Callable[[], T]:
        """Remove the next timer, and return its action."""
        timer = heapq.heappop(self.heap)[2]
        del self._live[timer.key]
        timer.entry = 0
        return timer.action

    def deadlines(self) -> dict[TimerKey, int]:
        return {key: timer.deadline for key, timer in self._live.items()}
