"""The write path: state first, then append, then commit, then answer (P1, P2); and the requests that take it.

    run(operation)   the operation changes the state and returns records; with records it waits for their
                     append, without records for earlier appends: its input may not be durable yet
    appended         everything up to that append is durable: the requests that waited for it are answered
    failed           the append and later ones are taken back: the requests that waited get the error
    timeout          an operation that is not durable in time is answered with an error, and stays in the log

Rules: effects come out in order. Appends are confirmed in order; confirming one confirms the earlier ones.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from coordwire._dataclasses import dataclass
from coordwire.codec import Message
from coordwire.coordinator.effects import Append, Effect, Reply, RequestContext
from coordwire.coordinator.records import is_unwritable
from coordwire.coordinator.refusal import OperationRefused, translated
from coordwire.coordinator.replay import replay, replay_end
from coordwire.coordinator.state import Outcome, Result, State
from coordwire.enums import ErrorCode

WRITE_TIMER = "write-"
"""The prefix of the keys of timers that limit how long an operation waits for the log."""

_ENDED = Result()
"""The result of a time limit, after which no request waits."""

Completed = Callable[[int, Result], None]
"""Called once with 0 or an error code, and the operation's result."""


class _Operation:
    """One operation that waits for the log."""

    __slots__ = ("completed", "is_complete", "key", "result")

    def __init__(self, key: str, result: Result, completed: Completed) -> None:
        self.key = key
        self.result = result
        self.completed = completed
        self.is_complete = False


class Writes:
    """Operations in the order of the log. appends: the number of all appends; pending: those on their way."""

    def __init__(
        self,
        state: State,
        effects: deque[Effect],
        end_offset: int,
        appends: int = 0,
        partition: int = 0,
    ) -> None:
        """appends: the number of those of earlier terms, whose late confirmations are ignored."""
        self._state = state
        self._partition = partition
        self._effects = effects
        self._committed = end_offset
        self._written = end_offset
        self._waiting: deque[tuple[int, _Operation]] = deque()
        self.pending: deque[Append] = deque()
        self._number = 0
        self.appends = appends
        self._completing = False
        self._unwritten = False  # whether an operation has to be undone whose records could not be encoded
        self._queue: deque[tuple[Callable[[], Outcome], Completed]] = deque()
        state.snapshots.begin(end_offset)

    def run(self, operation: Callable[[], Outcome], completed: Completed) -> None:
        """Run an operation, at once or after all operations that complete now."""
        self._queue.append((operation, completed))
        if not self._completing:
            self._run_queue()

    def _run_queue(self) -> None:
        while self._queue:
            self._run(*self._queue.popleft())
            self._settle()
            while self._state.later:
                self._queue.append((self._state.later.popleft(), nobody_waits))
        if self._unwritten:
            self._unwritten = False
            self._state.snapshots.revert(self._written)

    def _run(self, operation: Callable[[], Outcome], completed: Completed) -> None:
        try:
            outcome = operation()
        except OperationRefused as refusal:
            completed(refusal.code, Result(message=refusal.message))
            return
        self._take_up(outcome if isinstance(outcome, Result) else Result(response=outcome), completed)

    def _take_up(self, result: Result, completed: Completed) -> None:
        """Write an operation's records; without any, wait for pending appends, which it may have read."""
        if any(map(is_unwritable, result.records)):
            self._unwritten = True
            _complete(result, completed, int(ErrorCode.UNKNOWN_SERVER_ERROR))
        elif result.records or result.marker is not None:
            try:
                self._append(result, completed)
                self._unwritten = False
            except OperationRefused as refusal:
                # The records contradict the state; changes up to that point are taken back.
                self._state.snapshots.revert(self._written)
                _complete(result, completed, refusal.code)
        elif self.pending and result is not _ENDED:
            self._wait(result, completed)
        else:
            _complete(result, completed, 0)

    def _append(self, result: Result, completed: Completed) -> None:
        records = tuple(result.records)
        producer_id, producer_epoch = result.producer
        if -1 in result.producer and (producer_id != -1 or result.marker is not None):
            raise OperationRefused(ErrorCode.UNKNOWN_SERVER_ERROR)  # there is no such batch
        if result.marker is not None:
            replay_end(self._state, producer_id, committed=result.marker.committed)
        elif result.replay:
            for offset, record in enumerate(records, self._written):
                replay(self._state, record, offset, producer_id)
        append = Append(
            number=self.appends + 1, base_offset=self._written, records=records, producer_id=producer_id,
            producer_epoch=producer_epoch, marker=result.marker, partition=self._partition,
        )  # fmt: skip
        self.appends += 1
        self._written = append.end_offset
        self._state.listener.appends(self._state.now, append, result.cause)
        self._state.snapshots.begin(self._written)
        self.pending.append(append)
        self._effects.append(append)
        self._wait(result, completed)

    def _wait(self, result: Result, completed: Completed) -> None:
        self._number += 1
        waiting = _Operation(f"{WRITE_TIMER}{self._number}", result, completed)
        self._waiting.append((self._written, waiting))

        def too_slow() -> Result:
            self._end(waiting, int(ErrorCode.REQUEST_TIMED_OUT))
            return _ENDED

        timeout_ms = self._state.config.write_timeout_ms
        if timeout_ms is not None:
            self._state.set_timer(waiting.key, timeout_ms, too_slow)

    def _end(self, waiting: _Operation, error: int) -> None:
        if waiting.is_complete:
            return
        waiting.is_complete = True
        self._state.timers.cancel(waiting.key)
        _complete(waiting.result, waiting.completed, error)

    def appended(self, number: int) -> None:
        """This append and all earlier ones are durable. An append that is no longer pending is ignored."""
        while self.pending and self.pending[0].number <= number:
            append = self.pending.popleft()
            self._committed = append.end_offset
        self._state.snapshots.commit(self._committed)
        durable = []
        while self._waiting and self._waiting[0][0] <= self._committed:
            durable.append(self._waiting.popleft()[1])
        self._complete_all(durable, 0)

    def failed(self, number: int, error: int) -> None:
        """This append failed: it and all later ones, which depend on it, are taken back."""
        taken_back = []
        while self.pending and self.pending[-1].number >= number:
            taken_back.append(self.pending.pop())
        if not taken_back:
            return
        base = taken_back[-1].base_offset
        self._drop(taken_back)
        self._written = base
        self._state.snapshots.revert(base)
        failed = []
        while self._waiting and self._waiting[-1][0] > base:
            failed.append(self._waiting.pop()[1])
        self._state.listener.revert(base, self._state.groups)
        self._complete_all(failed[::-1], error)

    def fail_all(self, error: int) -> None:
        """Fail all operations: nothing more is written, no answer reports success."""
        waiting, self._waiting = self._waiting, deque()
        self._drop(self.pending)
        self.pending.clear()
        self._queue.clear()
        self._complete_all([operation for _, operation in waiting], error)

    def _drop(self, appends: Iterable[Append]) -> None:
        """Remove these appends from the effects that were not taken yet."""
        dropped = set(map(id, appends))
        remaining = [effect for effect in self._effects if id(effect) not in dropped]
        if len(remaining) < len(self._effects):
            self._effects.clear()
            self._effects.extend(remaining)

    def _complete_all(self, waiting: Iterable[_Operation], error: int) -> None:
        self._completing = True
        for operation in waiting:
            self._end(operation, error)
        self._completing = False
        self._settle()
        self._run_queue()

    def _settle(self) -> None:
        self._state.listener.settle(self._written, self._committed, self._state.groups)


def _complete(result: Result, completed: Completed, error: int) -> None:
    if result.on_append is not None:
        result.on_append(error)
    completed(error, result)


def nobody_waits(error: int, result: Result) -> None:
    """Ignore the outcome of an operation without a client."""


# --- requests ---


RefusalWording: TypeAlias = Callable[[int, str | None], Message]
"""Makes the response to a refused request from an error code and a message."""


@dataclass(slots=True)
class IncomingRequest:
    """A request on its way. error: 0, or the code of a shard that has no service now."""

    state: State
    writes: Writes
    error: int
    request: Any
    version: int
    context: RequestContext
    reply: Reply

    def write(
        self,
        operation: Callable[[], Outcome],
        on_error: Callable[[int], Message],
        translate: Callable[[int], int] = translated,
    ) -> None:
        """Run an operation and answer when it is durable; `on_error` makes the answer of an error."""
        if self.error:
            self.reply.send(on_error(self.error))
        else:
            self.writes.run(operation, self.completed(lambda error, _: on_error(error), translate))

    def completed(
        self, refused: RefusalWording, translate: Callable[[int], int] = translated
    ) -> Callable[[int, Result], None]:
        """The callback that answers when an operation is durable, or failed."""

        def completed(error: int, result: Result) -> None:
            if error:
                self.reply.send(refused(translate(error), result.message))
            elif result.response is not None:
                self.reply.topics_to_create = result.topics_to_create
                self.reply.send(result.response)

        return completed


Handler: TypeAlias = Callable[[IncomingRequest], None]
"""Handles the requests of one type: checks what needs no group, and runs an operation."""


SteadyAnswer: TypeAlias = Callable[[State, Any, RequestContext], Message | None]


@dataclass(frozen=True, slots=True)
class ImmediateRequest:
    """A request that seldom writes: without records it is answered at once, unless appends are pending.

    validate: refuses a request that is invalid whatever the group is like. steady: a fast path that does
    both for a request that changes nothing but the end of a session, or does nothing and returns None.
    """

    validate: Callable[[State, Any, int], None]
    operation: Callable[[State, Any, RequestContext], Outcome]
    refused: RefusalWording
    steady: SteadyAnswer | None = None

    def route(self, call: IncomingRequest) -> None:
        """Handle the request while appends are pending, or without service."""
        try:
            self.validate(call.state, call.request, call.version)
        except OperationRefused as refusal:
            call.reply.send(self.refused(refusal.code, refusal.message))
            return
        if call.error:
            call.reply.send(self.refused(call.error, None))
            return
        call.writes.run(
            lambda: self.operation(call.state, call.request, call.context), call.completed(self.refused)
        )
