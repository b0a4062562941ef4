"""The order of tasks that are ready at once, by a seed: probabilistic concurrency testing (PCT).

asyncio runs what is ready first in, first out, and services come to rely on it; another loop need not, nor a
machine on which something else was ready a moment earlier.

Strategy: "A Randomized Scheduler with Probabilistic Guarantees of Finding Bugs" (Burckhardt, Kothari,
Musuvathi, Nagarakatte, 2010). Each task has a priority that the seed draws; of those that are ready the
first by priority runs, one in each step of the loop. At `depth` - 1 steps that the seed draws the task whose
turn it is falls below all others. After k steps all is drawn anew, so that a long run is many short ones; k
is a power of two that the seed draws, from 16 to 4,096. A mistake that needs `depth` orders between steps of
n tasks, all within such k steps, is found by these with a probability of at least 1/(n k^(depth - 1)).

Rules: what belongs to no process, such as the network and the broker, keeps its order, and so do callbacks
that are no task's step. A task that has waited for 5,000 steps runs, or one that spins would starve others.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from random import Random
from typing import Protocol, TypeVar

__all__ = ["TaskOrder"]

_POWERS = range(4, 13)
"""Of two: after how many steps all is drawn anew."""

_PATIENCE = 5_000
"""So many steps may a task wait."""


class Numbered(Protocol):
    """A task. number: of its making."""

    number: int


_Handle = TypeVar("_Handle")


class TaskOrder:
    """The order of one world. depth: of the mistakes that are looked for, at least 1."""

    def __init__(self, seed: int, depth: int) -> None:
        self._random = Random(f"order/{seed}")
        self._depth = depth
        self._most = 2 ** self._random.choice(_POWERS)
        self._step = self._most
        self._changes: set[int] = set()
        self._priorities: dict[int, float] = {}
        self._lowest = 0.0
        self._waited: dict[int, int] = {}
        """How many steps tasks have waited that are ready."""

    def arrange(self, ready: deque[_Handle], tasks: Iterable[Numbered | None]) -> int:
        """Bring what may run in this step to the front. tasks: whose step each handle is, or None for what
        keeps its place. Returns how many handles that is: all the latter, and one task's step."""
        fixed: list[_Handle] = []
        steps: dict[int, _Handle] = {}
        for handle, task in zip(ready, tasks, strict=True):
            if task is None or task.number in steps:
                fixed.append(handle)
            else:
                steps[task.number] = handle
        if not steps:
            return len(fixed)
        turn = self._choose(steps)
        first = steps.pop(turn)
        self._waited = {number: self._waited.get(number, 0) + 1 for number in steps}
        ready.clear()
        ready.extend((*fixed, first, *steps.values()))
        return len(fixed) + 1

    def _choose(self, numbers: Iterable[int]) -> int:
        """Whose turn it is."""
        if self._step == self._most:
            self._step, self._lowest = 0, 0.0
            self._priorities.clear()
            self._changes = {self._random.randrange(self._most) for _ in range(self._depth - 1)}
        turn = max(numbers, key=self._priority)
        if self._step in self._changes:
            self._lowest -= 1.0
            self._priorities[turn] = self._lowest
            turn = max(numbers, key=self._priority)
        self._step += 1
        return turn

    def _priority(self, number: int) -> float:
        if self._waited.get(number, 0) > _PATIENCE:
            return 2.0
        if number not in self._priorities:
            self._priorities[number] = self._random.random()
        return self._priorities[number]
