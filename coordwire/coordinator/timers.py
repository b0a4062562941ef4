"""Timers by key, on a heap of deadlines.

Strategy: a timer that is set for later, as a session is by every heartbeat, keeps its place in the heap; when
that comes up, the timer is put where it belongs by then. What was cancelled, or set for earlier, is skipped.

Rules: equal deadlines are due in the order in which they were set. The heap is built anew when most of it is
stale, so that it stays within a constant of the live timers.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Generic, TypeAlias, TypeVar

__all__ = ["TimerKey", "Timers"]

TimerKey: TypeAlias = str | tuple[str, ...]
"""A tuple where clients choose a part of it, so that no two keys are the same by chance or malice."""

T = TypeVar("T")

_SLACK = 64


class _Timer(Generic[T]):
    """One timer.

    number: that of its setting, of all that there were. entry: the one by which the heap knows it, 0 where it
    does not; place: its deadline there, which may be earlier than its own.
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
    """What happens at which time; T is what an expired timer gives back."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, _Timer[T]]] = []
        self._live: dict[TimerKey, _Timer[T]] = {}
        self._number = 0

    def __len__(self) -> int:
        return len(self._live)

    def set(self, key: TimerKey, deadline: int, action: Callable[[], T]) -> None:
        """Run an action at a time, in place of what this key was set for before."""
        timer = self._live.get(key)
        if timer is None:
            timer = self._live[key] = _Timer(key)
        timer.action = action
        self._number += 1
        timer.deadline, timer.number = deadline, self._number
        if not timer.entry or deadline < timer.place:
            self._push(timer)

    def renew(self, key: TimerKey, deadline: int) -> bool:
        """Set a timer for later, or the same time, with the action that it has; False where `set` must."""
        timer = self._live.get(key)
        if timer is None or deadline < timer.place:
            return False
        self._number = timer.number = self._number + 1
        timer.deadline = deadline
        return True

    def _push(self, timer: _Timer[T]) -> None:
        timer.place, timer.entry = timer.deadline, timer.number
        heapq.heappush(self._heap, (timer.deadline, timer.number, timer))
        if len(self._heap) > 2 * len(self._live) + _SLACK:
            for live in self._live.values():
                live.place, live.entry = live.deadline, live.number
            self._heap = [(live.deadline, live.number, live) for live in self._live.values()]
            heapq.heapify(self._heap)

    def cancel(self, key: TimerKey) -> None:
        timer = self._live.pop(key, None)
        if timer is not None:
            timer.entry = 0

    def is_set(self, key: TimerKey) -> bool:
        return key in self._live

    def next_deadline(self) -> int | None:
        heap = self._heap
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
        """The action of the next deadline, which is taken out."""
        timer = heapq.heappop(self._heap)[2]
        del self._live[timer.key]
        timer.entry = 0
        return timer.action

    def deadlines(self) -> dict[TimerKey, int]:
        return {key: timer.deadline for key, timer in self._live.items()}
