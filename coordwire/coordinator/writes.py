"""The write path: state first, then append, then commit, then answer (P1, P2).

    run(operation)   the operation changes the state and gives records; with records it waits for their
    append,
                     without it waits for the appends before it, as what it read may not be durable yet
    appended         everything up to that append is durable: the request that waited for it is answered
    failed           the append and those after it are taken back: the requests that waited for them get the
    error too slow         an operation that is not durable in time is answered with an error, and stays in
    the log

Rules: effects come out in order. Appends are confirmed in order; confirming one confirms those before it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

from coordwire.coordinator.effects import Append, Effect
from coordwire.coordinator.loading import replay
from coordwire.coordinator.refusal import OperationRefused
from coordwire.coordinator.state import Result, State
from coordwire.enums import ErrorCode

__all__ = ["WRITE_TIMER", "Writes"]

WRITE_TIMER = "write-"
"""What the keys of the timers begin with that limit how long an operation waits for the log."""

Completed = Callable[[int, Result], None]
"""Called once with 0 or an error code, and what the operation gave."""


class _Operation:
    """One operation that waits for the log."""

    __slots__ = ("completed", "done", "key", "result")

    def __init__(self, key: str, completed: Completed) -> None:
        self.key = key
        self.completed = completed
        self.result = Result()
        self.done = False


class Writes:
    """Operations in the order of the log. appends: how many there were."""

    def __init__(self, state: State, effects: deque[Effect], end_offset: int) -> None:
        self._state = state
        self._effects = effects
        self._committed = end_offset
        self._written = end_offset
        self._waiting: deque[tuple[int, _Operation]] = deque()
        self._pending: deque[Append] = deque()
        self._number = 0
        self.appends = 0
        self._completing = False
        self._queue: deque[tuple[Callable[[], Result], Completed]] = deque()
        state.snapshots.begin(end_offset)

    def run(self, operation: Callable[[], Result], completed: Completed) -> None:
        """Run an operation; one that the completion of another leads to runs after all that complete now."""
        self._queue.append((operation, completed))
        if not self._completing:
            self._run_queue()

    def _run_queue(self) -> None:
        while self._queue:
            self._run(*self._queue.popleft())
            while self._state.later:
                self._queue.append((self._state.later.popleft(), _nobody_waits))

    def _run(self, operation: Callable[[], Result], completed: Completed) -> None:
        self._number += 1
        waiting = _Operation(f"{WRITE_TIMER}{self._number}", completed)
        try:
            waiting.result = operation()
        except OperationRefused as refusal:
            waiting.result = Result(message=refusal.message)
            self._complete(waiting, refusal.code)
            return
        if waiting.result.records:
            try:
                self._append(waiting)
            except OperationRefused as refusal:
                # The records contradict the state; what they changed before that is taken back.
                self._state.snapshots.revert(self._written)
                self._complete(waiting, refusal.code)
        elif self._committed < self._written:
            self._wait(self._written, waiting)
        else:
            self._complete(waiting, 0)

    def _append(self, waiting: _Operation) -> None:
        result = waiting.result
        records = tuple(result.records)
        if result.replay:
            for record in records:
                replay(self._state, record)
        append = Append(number=self._number, base_offset=self._written, records=records)
        self.appends += 1
        self._written += len(records)
        self._state.snapshots.begin(self._written)
        self._pending.append(append)
        self._effects.append(append)
        self._wait(self._written, waiting)

    def _wait(self, offset: int, waiting: _Operation) -> None:
        self._waiting.append((offset, waiting))

        def too_slow() -> Result:
            self._complete(waiting, int(ErrorCode.REQUEST_TIMED_OUT))
            return Result()

        self._state.set_timer(waiting.key, self._state.config.write_timeout_ms, too_slow)

    def _complete(self, waiting: _Operation, error: int) -> None:
        if waiting.done:
            return
        waiting.done = True
        self._state.timers.cancel(waiting.key)
        if waiting.result.on_append is not None:
            waiting.result.on_append(error)
        waiting.completed(error, waiting.result)

    def appended(self, number: int) -> None:
        """This append is durable, and with it those before it. One that is no longer pending is ignored."""
        while self._pending and self._pending[0].number <= number:
            append = self._pending.popleft()
            self._committed = append.base_offset + len(append.records)
        self._state.snapshots.commit(self._committed)
        done = []
        while self._waiting and self._waiting[0][0] <= self._committed:
            done.append(self._waiting.popleft()[1])
        self._complete_all(done, 0)

    def failed(self, number: int, error: int) -> None:
        """This append failed: it and those after it, which built on it, are taken back."""
        taken_back = []
        while self._pending and self._pending[-1].number >= number:
            taken_back.append(self._pending.pop())
        if not taken_back:
            return
        base = taken_back[-1].base_offset
        for append in taken_back:
            if append in self._effects:
                self._effects.remove(append)
        self._written = base
        self._state.snapshots.revert(base)
        failed = []
        while self._waiting and self._waiting[-1][0] > base:
            failed.append(self._waiting.pop()[1])
        self._complete_all(failed[::-1], error)

    def fail_all(self, error: int) -> None:
        """The shard gives up its partition: no answer reports success."""
        waiting, self._waiting = self._waiting, deque()
        self._pending.clear()
        self._queue.clear()
        self._complete_all([operation for _, operation in waiting], error)

    def _complete_all(self, waiting: Iterable[_Operation], error: int) -> None:
        self._completing = True
        for operation in waiting:
            self._complete(operation, error)
        self._completing = False
        self._run_queue()


def _nobody_waits(error: int, result: Result) -> None:
    """An operation that another one left for later has no client."""
