"""The requests of a capture that wait for their answers, all connections together, within one budget.

Strategy: a request waits with its bytes and its message while there is room, since its answer's entry points
to it. What it costs is first guessed from its size, never too low, and measured only where the guesses exceed
the budget. Then the dearest requests, the oldest first among those of like cost, are reduced to what matching
needs (`FrameEntry.reduced`); if that isn't enough, those that have waited longest are forgotten.

Rules: each operation takes constant time. An entry that was given out is never changed: the answer of a
reduced request gets a copy. A request that nobody answers (Produce with acks=0) is reduced at once. What was
reduced and forgotten is counted.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from sys import getsizeof
from typing import Any

from coordwire.capture.entries import FrameEntry

__all__ = ["BUDGET", "Asked", "Waiting"]

BUDGET = 64 << 20
"""Bytes of memory that all requests of a capture that wait may take, decoded messages included."""

REDUCED = 1024
"""What a request counts that is reduced to what matching needs: about twice the memory that it takes."""

GUESS = 128
"""Bytes of memory that a byte of a request may take once it is decoded: more than any message needs."""

VALUES = 256
"""Values of a message that are measured; one that has more counts as guessed."""

PRODUCE = 0


class Asked:
    """A request that waits.

    entry: the request, perhaps reduced; cost: what it counts; forget: takes it out of its owner's index;
    one_way: nobody answers it but some brokers (Produce with acks=0).
    later, last: for the owner, the next and the last one that wait under the same correlation id.
    """

    __slots__ = ("cost", "entry", "forget", "last", "later", "measured", "one_way", "serial")

    def __init__(self, entry: FrameEntry, forget: Callable[[Asked], object]) -> None:
        self.entry = entry
        self.forget = forget
        self.cost = 0
        self.measured = False
        self.one_way = entry.api_key == PRODUCE and getattr(entry.message, "acks", 1) == 0
        self.serial = -1
        self.later: Asked | None = None
        self.last = self


class Waiting:
    """All of them. `reduced` and `forgotten` count; `cost` is at most the budget between two calls."""

    def __init__(self, budget: int = BUDGET) -> None:
        self.budget = budget
        self.cost = 0
        self.reduced = 0
        self.forgotten = 0
        self._serial = 0
        self._all: OrderedDict[int, Asked] = OrderedDict()
        self._whole: dict[int, OrderedDict[int, Asked]] = {}  # by the bits of the cost

    def __len__(self) -> int:
        return len(self._all)

    def add(self, asked: Asked) -> None:
        """Let a request wait, which its owner has in its index; others may be reduced or forgotten for it."""
        asked.serial = self._serial
        self._serial += 1
        self._all[asked.serial] = asked
        if asked.one_way:
            asked.entry = asked.entry.reduced()
            self._count(asked, REDUCED)
        else:
            self._count(asked, REDUCED + GUESS * len(asked.entry.body))
            self._bucket(asked)[asked.serial] = asked
        if self.cost > self.budget:
            self._make_room()

    def remove(self, asked: Asked) -> None:
        """It waits no longer."""
        if self._all.pop(asked.serial, None) is None:
            return
        self._bucket(asked).pop(asked.serial, None)
        self.cost -= asked.cost

    def forget(self, asked: Asked) -> None:
        """Let it wait no longer, and its owner know."""
        self.remove(asked)
        self.forgotten += not asked.one_way
        asked.forget(asked)

    def _count(self, asked: Asked, cost: int) -> None:
        self.cost += cost - asked.cost
        asked.cost = cost

    def _bucket(self, asked: Asked) -> OrderedDict[int, Asked]:
        bits = asked.cost.bit_length()
        found = self._whole.get(bits)
        if found is None:
            found = self._whole[bits] = OrderedDict()
        return found

    def _make_room(self) -> None:
        for bits in range(max(self._whole, default=0), -1, -1):
            bucket = self._whole.get(bits)
            while bucket and self.cost > self.budget:
                _, asked = bucket.popitem(last=False)
                if not asked.measured:
                    asked.measured = True
                    self._count(asked, min(asked.cost, REDUCED + memory_of(asked.entry, asked.cost)))
                    if asked.cost.bit_length() < bits:  # not so dear: its turn comes later
                        self._bucket(asked)[asked.serial] = asked
                        continue
                    if self.cost <= self.budget:
                        bucket[asked.serial] = asked
                        break
                asked.entry = asked.entry.reduced()
                self._count(asked, REDUCED)
                self.reduced += 1
        while self.cost > self.budget and len(self._all) > 1:
            self.forget(next(iter(self._all.values())))


def memory_of(entry: FrameEntry, guess: int) -> int:
    """The bytes of memory that an entry's bytes and message take; the guess where it has many values."""
    total = len(entry.body)
    left = VALUES
    values: list[Any] = [entry.message, entry.header]
    if entry.error is not None:
        values.append(entry.error.partial)
    while values:
        value = values.pop()
        left -= 1 + (len(value) if isinstance(value, (list, dict)) else 0)
        if left < 0:
            return guess
        total += getsizeof(value)
        if isinstance(value, list):
            values.extend(value)
        elif isinstance(value, dict):
            values.extend(value.values())
        elif hasattr(value, "_layout_"):
            values.extend(getattr(value, field.name) for field in value._layout_.fields)
            values.append(value.tags)
    return total
