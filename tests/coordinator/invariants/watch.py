"""A shard that is watched: each request, answer, append and moment goes to the checkers, which may object.

Strategy: `WatchedShard` is a `Shard`, so that whatever drives a shard can drive it: the simulation, the
Hypothesis machine, kept histories. After each call it hands out what came out of the shard to all checkers,
then lets them look at the state. Rules: a checker never changes anything; what it finds wrong it raises as a
`Violation` with its name.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

from coordwire.codec import Message
from coordwire.coordinator import Answer, Append, Effect, RequestContext, Shard, ShardStatus
from coordwire.coordinator.log_entries import LogEntry
from coordwire.coordinator.model.classic_group import ClassicGroupModel
from coordwire.coordinator.model.consumer_group import ConsumerGroupModel
from coordwire.coordinator.requests import STEADY
from coordwire.logs import LogRecord


class Violation(AssertionError):
    """An invariant does not hold. name: which one, as in "S20"."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(f"{name}: {text}")
        self.name = name


@dataclass(slots=True)
class Call:
    """A request on its way. now: when it came. facts: what checkers noted before it was handled.
    appends: how many appends waited when it was handled, or came up by it."""

    ticket: int
    request: Any
    version: int
    context: RequestContext
    now: int
    status: ShardStatus
    facts: dict[str, Any] = field(default_factory=dict)
    waited: bool = False


class Checker:
    """One invariant, or several that need the same facts. name: as in the list of invariants."""

    name: ClassVar[str] = ""

    def __init__(self, shard: WatchedShard) -> None:
        self.shard = shard

    def wrong(self, text: str, name: str | None = None) -> None:
        raise Violation(name or self.name, f"at {self.shard.now} ms: {text}")

    def before(self, call: Call) -> None:
        """A request is about to be handled."""

    def moving(self) -> None:
        """Time, an append's outcome, or another input is about to be given."""

    def answered(self, call: Call, response: Any) -> None:
        """A request was answered."""

    def wrote(self, append: Append, call: Call | None) -> None:
        """An append came up; `call` is the request that was handled, None for a timer or an outcome."""

    def settled(self) -> None:
        """The call to the shard is over."""

    def confirmed(self, append: Append) -> None:
        """An append is durable."""

    def reverted(self) -> None:
        """Appends failed, and were taken back."""

    def loaded(self) -> None:
        """The shard took a partition."""

    def unloaded(self) -> None:
        """The shard gave its partition up."""


class WatchedShard(Shard):
    """A shard with checkers. log: what is durable, from the last `load` on, that included."""

    def __init__(self, checkers: Iterable[Callable[[WatchedShard], Checker]], **settings: Any) -> None:
        self.log: list[LogRecord | LogEntry] = []
        self.open_calls: dict[int, Call] = {}
        self._answered_around: set[int] = set()
        self.pending: deque[Append] = deque()
        self.coin = random.Random(7)
        self._out: deque[Effect] = deque()
        self.handling: Call | None = None
        self.checkers: list[Checker] = []
        super().__init__(**settings)
        self._steady = {kind: dict.fromkeys(versions) for kind, versions in STEADY.items()}  # all are handled
        self.checkers = [make(self) for make in checkers]

    # --- what checkers look at ---

    @property
    def state(self) -> Any:
        return self._state

    @property
    def is_settled(self) -> bool:
        """Whether all that was written is durable."""
        return not self.pending

    def classic(self, group_id: str) -> ClassicGroupModel | None:
        group = self._state.groups.get(group_id)
        return group if isinstance(group, ClassicGroupModel) else None

    def consumer(self, group_id: str) -> ConsumerGroupModel | None:
        group = self._state.groups.get(group_id)
        return group if isinstance(group, ConsumerGroupModel) else None

    def all_groups(self) -> list[Any]:
        return list(self._state.groups.values())

    def spawn(self) -> Shard:
        """An unwatched shard with the same settings and inputs."""
        shard = Shard(now=self._state.now, config=self._state.config, assignors=self._state.assignors)
        shard.set_topics(self._state.topics, now=self.now)
        return shard

    # --- the shard's own interface ---

    def effects(self) -> Iterator[Effect]:
        while True:
            while self._out:
                yield self._out.popleft()
            if self.is_behind:
                self.step()
            elif self._state.timers.may_be_due(self.now):
                self.advance(self.now)
            else:
                return

    def _handle(self, ticket: int, request: Message, version: int, context: RequestContext) -> None:
        call = Call(ticket, request, version, context, self.now, self.status)
        for checker in self.checkers:
            checker.before(call)
        self.open_calls[call.ticket] = call
        self.handling, call.waited = call, not self.is_settled
        super()._handle(ticket, request, version, context)
        self._look()
        self.handling = None

    def answer(self, response: Message) -> int:
        """The layer around the shard answers: nothing for checkers, which follow the shard's own requests."""
        ticket = super().answer(response)
        self._answered_around.add(ticket)
        return ticket

    def complete_transaction(self, *arguments: Any, **settings: Any) -> int:
        self._move()
        ticket = super().complete_transaction(*arguments, **settings)
        self._look()
        return ticket

    def appended(self, number: int, *, now: int) -> None:
        self._move()
        while self.pending and self.pending[0].number <= number:
            append = self.pending.popleft()
            self.log += durable(append)
            for checker in self.checkers:
                checker.confirmed(append)
        super().appended(number, now=now)
        self._look()

    def failed(self, number: int, error: int, *, now: int) -> None:
        self._move()
        reverted = [append for append in self.pending if append.number >= number]
        self.pending = deque(append for append in self.pending if append.number < number)
        self._out = deque(effect for effect in self._out if effect not in reverted)
        super().failed(number, error, now=now)
        if reverted:
            for checker in self.checkers:
                checker.reverted()
        self._look()

    def load(self, records: Iterable[LogRecord | LogEntry], **settings: Any) -> None:
        self.log = list(records)
        self.pending.clear()
        super().load(self.log, **settings)
        for checker in self.checkers:
            checker.loaded()
        self._look()

    def unload(self, *, now: int) -> None:
        self._move()
        super().unload(now=now)
        self.pending.clear()
        self._look()
        for checker in self.checkers:
            checker.unloaded()

    def step(self) -> None:
        """Run the timers of one moment, so that the checkers look after each."""
        until, due = self._until, self.next_deadline()
        if due is None or due > until:
            super().step()
            return
        self._move()
        queued, self._queued = self._queued, None
        self._until = due
        super().step()
        self._until, self._queued, self.is_behind = until, queued, True
        self._look()

    def set_topics(self, topics: Any, *, now: int) -> None:
        self._move()
        super().set_topics(topics, now=now)
        self._look()

    def _move(self) -> None:
        for checker in self.checkers:
            checker.moving()

    def _look(self) -> None:
        """Hand what came out to the checkers."""
        while self._effects:
            effect = self._effects.popleft()
            self._out.append(effect)
            if isinstance(effect, Append):
                self.pending.append(effect)
                for checker in self.checkers:
                    checker.wrote(effect, self.handling)
            elif isinstance(effect, Answer) and effect.ticket in self._answered_around:
                self._answered_around.remove(effect.ticket)
            elif isinstance(effect, Answer):
                call = self.open_calls.pop(effect.ticket)
                for checker in self.checkers:
                    checker.answered(call, effect.response)
        for checker in self.checkers:
            checker.settled()


def durable(append: Append) -> list[LogEntry]:
    """An append's records with their offsets, as a log has them."""
    if append.marker is not None:
        return [LogEntry(offset=append.base_offset, record=append.marker, producer_id=append.producer_id)]
    return [
        LogEntry(offset=append.base_offset + index, record=record, producer_id=append.producer_id)
        for index, record in enumerate(append.records)
    ]
