"""`Turns`: the order in which a broker's connections work.

Strategy: a worker that has more to do than one turn allows joins one queue, and each loop iteration gives
turns from its head until a slice of work is done; then the loop reads its sockets. A worker whose data comes
while little was done works at once instead, for one turn. Work is counted, not timed: a request counts
`REQUEST`, plus its bytes and those of its answer. A turn gets smaller the more workers wait, so that a round
over all of them stays short. Rules: a worker has one turn a round, whatever it has to do; a turn does at
least one piece of work; connections and work in the background take turns alike.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Protocol

REQUEST = 1 << 12
"""The work of a request, without its bytes and those of its answer."""

TURN = 128 * REQUEST
"""The most work of a turn."""

TURN_MIN = 4 * REQUEST
"""The work that a turn may do however many workers wait."""

ROUND = 1024 * REQUEST
"""The work of a round, which the workers that wait share."""

SLICE = 256 * REQUEST
"""The work after which the loop reads its sockets."""


class Worker(Protocol):
    """An object that has work to do, piece by piece."""

    def take_turn(self, share: int) -> int:
        """Work until about `share` is done, and join the queue again if there is more; the work that was
        done."""


class Turns:
    """The queue. call_soon: runs something in the loop's next iteration."""

    def __init__(self, call_soon: Callable[[Callable[[], None]], object]) -> None:
        self._call_soon = call_soon
        self._queue: deque[Worker] = deque()
        self._remaining = SLICE
        """The work that may still be done at once, before the queue's next slice."""
        self._is_scheduled = False

    def __len__(self) -> int:
        return len(self._queue)

    @property
    def share(self) -> int:
        """The work of one turn now."""
        waiting = len(self._queue)
        return TURN if waiting < ROUND // TURN else max(TURN_MIN, ROUND // (waiting + 1))

    @property
    def may_work(self) -> bool:
        """Whether a worker that gets work now may begin at once; if not, it has to join the queue."""
        return self._remaining > 0

    def count_work(self, work: int) -> None:
        """Count work that was done at once."""
        self._remaining -= work
        if self._remaining <= 0:
            self._schedule()

    def add(self, worker: Worker) -> None:
        """Queue a worker, which is not in the queue."""
        self._queue.append(worker)
        self._schedule()

    def _schedule(self) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            self._call_soon(self._run)

    def clear(self) -> None:
        self._queue.clear()

    def _run(self) -> None:
        queue, remaining = self._queue, SLICE
        try:
            for _ in range(len(queue)):
                if remaining <= 0 or not queue:
                    break
                remaining -= queue.popleft().take_turn(self.share)
        finally:
            self._remaining = SLICE
            self._is_scheduled = False
            if queue:
                self._schedule()
