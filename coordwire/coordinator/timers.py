"""Timers by key: a heap of deadlines, where what was cancelled or set anew is skipped when it comes up.

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


class Timers(Generic[T]):
    """What happens at which time; T is what an expired timer gives back."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, TimerKey]] = []
        self._live: dict[TimerKey, tuple[int, int, Callable[[], T]]] = {}
        self._number = 0

    def set(self, key: TimerKey, deadline: int, action: Callable[[], T]) -> None:
        """Run an action at a time, in place of what this key was set for before."""
        self._number += 1
        self._live[key] = (deadline, self._number, action)
        heapq.heappush(self._heap, (deadline, self._number, key))
        if len(self._heap) > 2 * len(self._live) + _SLACK:
            self._heap = [(time, number, name) for name, (time, number, _) in self._live.items()]
            heapq.heapify(self._heap)

    def cancel(self, key: TimerKey) -> None:
        self._live.pop(key, None)

    def is_set(self, key: TimerKey) -> bool:
        return key in self._live

    def clear(self) -> None:
        self._live.clear()
        self._heap.clear()

    def next_deadline(self) -> int | None:
        while self._heap:
            deadline, number, key = self._heap[0]
            live = self._live.get(key)
            if live is not None and live[1] == number:
                return deadline
            heapq.heappop(self._heap)
        return None

    def pop(self) -> Callable[[], T]:
        """The action of the next deadline, which is taken out."""
        _, _, key = heapq.heappop(self._heap)
        return self._live.pop(key)[2]

    def deadlines(self) -> dict[TimerKey, int]:
        return {key: deadline for key, (deadline, _, _) in self._live.items()}
