"""The message in each frame of a connection in a dialect other than Kafka's, and the request it answers.

Strategy: in these dialects a frame does not always identify itself. `Matching` keeps the requests of each
side that wait, and lists the readings of a new frame that the conversation allows: a request by its type
id, then an answer by type id, by correlation id or by its turn. The frame is the first reading that decodes
whole; only if none does, and not where decoding is strict, the first that Apache Kafka's own decoder
would accept.

Rules: no received frame raises; `Match` has the error. An answer that cannot be read uses up the request
whose turn it was. Whether PingResponse has offsets is decided by the registration that was seen, else by
the caller, else by the bytes: only one of the two layouts can fit them. So it is with the other messages that
have two layouts: both are readings.
"""

from __future__ import annotations

import struct
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from coordwire.codec import Message
from coordwire.connection.dialect import Dialect, Direction, Side
from coordwire.dialects.frames import Call, DraftFrame, opposite
from coordwire.dialects.grammar import Grammar
from coordwire.errors import DecodeError, Malformed, Truncated, UnknownApi

_TYPE = struct.Struct(">h").unpack_from
_NUMBER = struct.Struct(">hq")


@dataclass(slots=True, eq=False)
class PendingRequest:
    """A request that was sent. number: as `DraftFrame.correlation_id`. context: data of the caller's own.
    turn: its place among all requests of its side that waited."""

    call: Call
    number: int
    context: Any = None
    turn: int = -1


class Queue:
    """One side's requests that wait, in their order. Each look-up (the first of a call, the first with a
    number) takes the same time however many wait."""

    def __init__(self) -> None:
        self._all: OrderedDict[int, PendingRequest] = OrderedDict()
        self._of_call: dict[int, OrderedDict[int, PendingRequest]] = {}  # by type id
        self._numbered: dict[tuple[int, int], OrderedDict[int, PendingRequest]] = {}  # by type id and number
        self._turn = 0

    def __len__(self) -> int:
        return len(self._all)

    def __iter__(self) -> Iterator[PendingRequest]:
        return iter(self._all.values())

    def add(self, pending: PendingRequest) -> None:
        kind, turn = pending.call.type_id, self._turn
        self._turn += 1
        pending.turn = turn
        self._all[turn] = pending
        self._of_call.setdefault(kind, OrderedDict())[turn] = pending
        self._numbered.setdefault((kind, pending.number), OrderedDict())[turn] = pending

    def remove(self, pending: PendingRequest) -> bool:
        """Remove a request; False if it does not wait."""
        if self._all.get(pending.turn) is not pending:
            return False
        kind, turn = pending.call.type_id, pending.turn
        del self._all[turn]
        del self._of_call[kind][turn]
        numbered = self._numbered[kind, pending.number]
        del numbered[turn]
        if not numbered:
            del self._numbered[kind, pending.number]
        return True

    def oldest(self) -> PendingRequest | None:
        return _first(self._all)

    def first(self, call: Call) -> PendingRequest | None:
        """The oldest request of a call."""
        return _first(self._of_call.get(call.type_id))

    def firsts(self) -> list[PendingRequest]:
        """The oldest request of each call whose answers come in order, sorted by age."""
        heads = [_first(queue) for queue in self._of_call.values()]
        return sorted((head for head in heads if head and head.call.known_by == "order"), key=_turn)

    def numbered(self, number: int, call: Call | None = None) -> PendingRequest | None:
        """The oldest request with a number, and of this call if one is given."""
        kinds = self._of_call if call is None else (call.type_id,)
        heads = (_first(self._numbered.get((kind, number))) for kind in kinds)
        return min((head for head in heads if head), key=_turn, default=None)


def _first(queue: OrderedDict[int, PendingRequest] | None) -> PendingRequest | None:
    return next(iter(queue.values()), None) if queue else None


def _turn(pending: PendingRequest) -> int:
    return pending.turn


class Reading(NamedTuple):
    """What a frame may be. pending: the request that it would answer."""

    call: Call
    direction: Direction
    version: int
    pending: PendingRequest | None


@dataclass(slots=True)
class Match:
    """What a frame is. frame: None if it was refused; `error` then says why. reading: the likeliest one,
    None if there is none.

    pending: for a request the request itself, for a response the request that it answers, if that was seen.
    """

    frame: DraftFrame | None
    error: DecodeError | None
    reading: Reading | None
    pending: PendingRequest | None


@dataclass(slots=True)
class Matching:
    """One connection's conversation.

    auto_commit: as the consumer registered, None if unknown. latest: how many waiting requests of a side are
    remembered, None for all of them. on_drop: called with each request that waits no longer.
    """

    grammar: Grammar
    auto_commit: bool | None = None
    strict: bool = False
    latest: int | None = None
    on_drop: Callable[[PendingRequest], None] | None = None
    waiting: dict[Side, Queue] = field(default_factory=lambda: {"client": Queue(), "server": Queue()})
    _counts: dict[Side, int] = field(init=False, default_factory=lambda: {"client": 0, "server": 0})

    # --- requests and answers ---

    def next_number(self, side: Side) -> int:
        """The place of a side's next request among all of them, from 0."""
        return self._counts[side]

    def ask(self, call: Call, message: Message, number: int | None = None) -> PendingRequest:
        """Note a request that was sent. number: the one in its header, if it has one."""
        side = call.asker
        if number is None:
            number = self.number_of(message)
        pending = PendingRequest(call, self._counts[side] if number is None else number)
        self._counts[side] += 1
        known = getattr(message, "auto_commit", None)
        if isinstance(known, bool):
            self.auto_commit = known
        if call.response is not None:
            queue = self.waiting[side]
            queue.add(pending)
            if self.latest is not None and len(queue) > self.latest:
                oldest = queue.oldest()
                assert oldest is not None
                self.drop(oldest)
        return pending

    def number_of(self, message: object) -> int | None:
        """The number by which a message's answer names it, or names its request; None if it has none."""
        field = self.grammar.number_field
        return None if field is None else getattr(message, field, None)

    def answer(self, pending: PendingRequest) -> None:
        """Note that a request was answered. Earlier ones that are answered in order never will be."""
        if not self.drop(pending) or pending.call.known_by != "order":
            return
        queue = self.waiting[pending.call.asker]
        while (first := next(iter(queue.firsts()), None)) is not None and first.turn < pending.turn:
            self.drop(first)

    def drop(self, pending: PendingRequest) -> bool:
        """Stop waiting for a request's answer; False if it does not wait."""
        was_waiting = self.waiting[pending.call.asker].remove(pending)
        if was_waiting and self.on_drop is not None:
            self.on_drop(pending)
        return was_waiting

    def match(self, body: bytes, sender: Side) -> Match:
        """Find what a received frame is, from its bytes after the size prefix, and note it."""
        readings = list(self.readings(body, sender))
        first: DecodeError | None = None
        for strict in (True,) if self.strict else (True, False):
            for index, reading in enumerate(readings):
                try:
                    frame = self.grammar.decode(
                        body, reading.call, reading.direction, version=reading.version, strict=strict
                    )
                except DecodeError as error:
                    first = error if index == 0 else first
                    continue
                return self._matched(frame, reading)
        if not readings or first is None:
            return Match(None, self._no_reading(body, sender), None, None)
        reading = readings[0]
        if reading.pending is not None:
            self.answer(reading.pending)
        return Match(None, first, reading, reading.pending)

    def _matched(self, frame: DraftFrame, reading: Reading) -> Match:
        pending = reading.pending
        if reading.direction == "request":
            pending = self.ask(reading.call, frame.message, getattr(frame.header, "correlation_id", None))
        elif pending is not None:
            self.answer(pending)
        if pending is not None:
            frame.correlation_id = pending.number
        return Match(frame, None, reading, pending)

    # --- what a frame may be ---

    def readings(self, body: bytes, sender: Side) -> Iterator[Reading]:
        """What the conversation allows a frame to be, the likeliest first."""
        queue = self.waiting[opposite(sender)]
        call = self.grammar.by_id.get(_TYPE(body)[0]) if len(body) >= 2 else None
        if call is not None and call.asker == sender:
            for version in call.message("request").versions:
                yield Reading(call, "request", version, None)
        elif call is not None and call.answer_typed:
            yield from self._answers(call, queue.first(call))
        if self.grammar.dialect is Dialect.DRAFT_3:
            number = _NUMBER.unpack_from(body)[1] if len(body) >= _NUMBER.size else None
            pending = None if number is None else queue.numbered(number)
            if pending is not None:
                yield from self._answers(pending.call, pending)
            return
        for pending in queue.firsts():
            yield from self._answers(pending.call, pending)

    def _answers(self, call: Call, pending: PendingRequest | None) -> Iterator[Reading]:
        for version in self.versions(call):
            yield Reading(call, "response", version, pending)

    def versions(self, call: Call) -> tuple[int, ...]:
        """The versions that an answer may have."""
        if not call.auto_commit:
            return tuple(call.message("response").versions)
        return (1, 0) if self.auto_commit is None else (int(self.auto_commit),)

    def _no_reading(self, body: bytes, sender: Side) -> DecodeError:
        if all(call.asker != sender for call in self.grammar.calls):
            if self.grammar.dialect is Dialect.DRAFT_3 and len(body) < _NUMBER.size:
                return Truncated(
                    f"a response header needs {_NUMBER.size} bytes, {len(body)} given", len(body)
                )
            return Malformed("no request waits for this answer", 0)
        if len(body) < 2:
            return Truncated(f"a type id needs 2 bytes, {len(body)} given", len(body), "request_type_id")
        kind = _TYPE(body)[0]
        reason = f"type id {kind} is unknown, and no request waits for an answer"
        return UnknownApi(reason, 0, "request_type_id")
