"""The requests of a capture that wait for their answers, all connections together, within one budget.

Strategy: a request waits with its bytes and its message while there is room, since its answer's entry points
to it. What it costs is first guessed from its size, never too low, and measured only where the guesses exceed
the budget. Then the dearest requests, the oldest first among those of like cost, are reduced to what matching
needs (`FrameEntry.reduced`); if that isn't enough, those that have waited longest are forgotten.

Rules: an operation takes constant time, and within the budget it is one of a dict; beyond it, a logarithm of
those that wait. An entry that was given out is never changed: the answer of a
reduced request gets a copy. A request without an answer (Produce with acks=0) is reduced at once. Requests
that are reduced or forgotten are counted.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from heapq import heapify, heappop, heappush
from sys import getsizeof, implementation
from typing import Any

from coordwire.capture.entries import FrameEntry
from coordwire.codec import Struct
from coordwire.codec.walk import fields_of

BUDGET = 64 << 20
"""Bytes of memory that all requests of a capture that wait may take, decoded messages included."""

REDUCED = 1024
"""What a request counts that is reduced to what matching needs: about twice the memory that it takes."""

GUESS = 128
"""Bytes of memory that a byte of a request may take once it is decoded: more than any message needs."""

VALUES = 256
"""Values of a message that are measured; one that has more counts as guessed."""

SPARE = 64
"""Requests that wait no longer and may still be among those to reduce, on top of as many as wait."""

PRODUCE = 0


class AwaitedRequest:
    """A request that waits.

    entry: the request, perhaps reduced; api_key, correlation_id: its own; size: of its body when it began to
    wait; cost: what it counts; forget: takes it out of its owner's index; one_way: only some brokers answer
    it (Produce with acks=0); serial: its place among all that ever waited. cost and serial are there once it
    waits.
    """

    __slots__ = ("api_key", "correlation_id", "cost", "entry", "forget", "one_way", "serial", "size")
    cost: int
    serial: int

    def __init__(self, entry: FrameEntry, forget: Callable[[AwaitedRequest], object]) -> None:
        self.entry = entry
        self.forget = forget
        self.api_key = api_key = entry.api_key
        self.correlation_id = entry.correlation_id
        self.size = len(entry.body)
        self.one_way = api_key == PRODUCE and getattr(entry.message, "acks", 1) == 0


class PendingRequests:
    """All of them. `reduced` and `forgotten` count, as `unnamed` counts those whose client only a request
    before the capture names; `cost` is at most the budget between two calls.

    What is only needed beyond the budget is made there. `_by_cost`: a heap of those that may be reduced, as
    the bits of the cost times -1, the serial, and whether the cost was measured; `_oldest`: the serials of
    those that waited when it was made. Both may name requests that wait no longer.
    """

    __slots__ = (
        "_all",
        "_by_cost",
        "_oldest",
        "_serial",
        "budget",
        "cost",
        "forgotten",
        "reduced",
        "unnamed",
    )

    def __init__(self, budget: int = BUDGET) -> None:
        self.budget = budget
        self.cost = 0
        self.reduced = 0
        self.unnamed = 0
        self.forgotten = 0
        self._serial = 0
        self._all: dict[int, AwaitedRequest] = {}
        self._by_cost: list[tuple[int, int, bool]] | None = None
        self._oldest: deque[int] = deque()

    def __len__(self) -> int:
        return len(self._all)

    @property
    def place_count(self) -> int:
        """The number of places in memory for requests that wait or waited."""
        return len(self._all) + len(self._by_cost or ()) + len(self._oldest)

    def get(self, serial: int) -> AwaitedRequest | None:
        """The request of this serial, if it waits."""
        return self._all.get(serial)

    def add(self, request: AwaitedRequest) -> None:
        """Let a request wait, which its owner has in its index; others may be reduced or forgotten for it."""
        serial = request.serial = self._serial
        self._serial = serial + 1
        self._all[serial] = request
        if request.one_way:
            request.entry = request.entry.reduced()
            request.cost = REDUCED
        else:
            request.cost = REDUCED + GUESS * request.size
            if self._by_cost is not None:
                self._note(request)
        self.cost += request.cost
        if self.cost > self.budget:
            self._make_room()

    def remove(self, request: AwaitedRequest) -> None:
        """Take out a request that waits no longer."""
        if self._all.pop(request.serial, None) is not None:
            self.cost -= request.cost

    def forget(self, request: AwaitedRequest) -> None:
        """Take out a request, also of its owner's index, and count it as forgotten."""
        self.remove(request)
        self.forgotten += not request.one_way
        request.forget(request)

    def _note(self, request: AwaitedRequest) -> None:
        """Put a request among those that may be reduced; and drop those that wait no longer, if many."""
        assert self._by_cost is not None
        heappush(self._by_cost, (-request.cost.bit_length(), request.serial, False))
        if len(self._by_cost) > 2 * len(self._all) + SPARE:
            self._by_cost = [entry for entry in self._by_cost if entry[1] in self._all]
            heapify(self._by_cost)

    def _make_room(self) -> None:
        if self._by_cost is None:
            unreduced = (request for request in self._all.values() if not request.entry.released)
            self._by_cost = [(-request.cost.bit_length(), request.serial, False) for request in unreduced]
            heapify(self._by_cost)
        heap = self._by_cost
        while heap and self.cost > self.budget:
            bits, serial, measured = heappop(heap)
            request = self._all.get(serial)
            if request is None:
                continue
            if not measured:
                before = request.cost
                request.cost = min(before, REDUCED + memory_of(request.entry, before))
                self.cost += request.cost - before
                if request.cost.bit_length() < -bits or self.cost <= self.budget:  # its turn may come later
                    heappush(heap, (-request.cost.bit_length(), serial, True))
                    continue
            request.entry = request.entry.reduced()
            self.cost -= request.cost - REDUCED
            request.cost = REDUCED
            self.reduced += 1
        while self.cost > self.budget and len(self._all) > 1:
            if not self._oldest:
                self._oldest.extend(self._all)
            request = self._all.get(self._oldest.popleft())
            if request is not None:
                self.forget(request)


def _estimated(value: object) -> int:
    """About the size that CPython reports of an object: PyPy reports none."""
    if isinstance(value, str | bytes):
        return 49 + len(value)
    if isinstance(value, list):
        return 56 + 8 * len(value)
    if isinstance(value, dict):
        return 64 + 70 * len(value)
    return 24 if value is None or isinstance(value, int | float) else 48


size_of: Callable[[object], int] = getsizeof if implementation.name == "cpython" else _estimated
"""The bytes of memory that one object takes, without what it refers to."""


def memory_of(entry: FrameEntry, guess: int) -> int:
    """The bytes of memory that an entry's bytes and message take; the guess where it has many values."""
    total = len(entry.body)
    remaining = VALUES
    values: list[Any] = [entry.message, entry.header]
    if entry.error is not None:
        values.append(entry.error.partial)
    while values:
        value = values.pop()
        remaining -= 1 + (len(value) if isinstance(value, (list, dict)) else 0)
        if remaining < 0:
            return guess
        total += size_of(value)
        if isinstance(value, list):
            values.extend(value)
        elif isinstance(value, dict):
            values.extend(value.values())
        elif isinstance(value, Struct):
            values.extend(getattr(value, field.name) for field in fields_of(value))
            values.append(value.tags)
    return total
