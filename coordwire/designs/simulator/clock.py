"""The virtual clock: a queue of callbacks by time. Those of one time run in the order in which they came."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any

__all__ = ["Clock"]


class Clock:
    """Time in milliseconds. steps: how many events have happened."""

    def __init__(self, now: int = 0) -> None:
        self.now = now
        self.steps = 0
        self._number = 0
        self._queue: list[tuple[int, int, Callable[..., None], Any]] = []

    def at(self, time: int, action: Callable[..., None], *arguments: Any) -> None:
        """Let something happen at a time; one that is past means now."""
        self._number += 1
        now = self.now
        heapq.heappush(self._queue, (time if time > now else now, self._number, action, arguments))

    def run(self, until: int, *, steps: int | None = None) -> bool:
        """Let time go by up to a moment, this included; False if `steps` events did not reach it."""
        queue, pop = self._queue, heapq.heappop
        remaining = -1 if steps is None else steps
        while queue and queue[0][0] <= until:
            if not remaining:
                return False
            remaining -= 1
            self.now, _, action, arguments = pop(queue)
            self.steps += 1
            action(*arguments)
        self.now = max(self.now, until)
        return True
