"""`ConnectionMemory`: how many bytes all connections of a broker hold together.

Strategy: three kinds of bytes are counted: received and not read, answers that the client has not taken, and
the request that waits for its answer. A frame that is not small needs a grant before more than its beginning
is read: of its whole size, so that each frame that was let in can be finished. A client that has announced a
frame and sent none of it gets none. Connections that wait for a grant are not read from, and get it in their
order. Rules, which prevent a deadlock:

- one frame gets its grant, whatever else is held, if no other has one;
- frames of up to 64 KB do not wait for larger ones, which leave them a sixteenth of the memory;
- if unsent answers exceed the bound, the connection that left them longest is closed, but for the last one;
- while frames wait, a client that held memory during all of `PATIENCE`, and neither finished its frame or
  took its answer nor moved `PROGRESS` bytes, is closed;
- frames of up to 64 KB need no grant; when half of the memory is used, only those of up to 4 KB need none,
  and connections are read in pieces of 4 KB.

So the bound is exceeded by one frame and one answer at most, and by a small piece for each connection.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from coordwire.broker.injection.faulted_call import Timer

PATIENCE = 5.0
"""Seconds."""

PROGRESS = 1 << 20
"""Bytes that a client must send or take in that time, to go on while others wait for its memory."""

READ_SIZE = 1 << 18
"""Bytes that are read at once."""

_READ_SCARCE = 1 << 12
"""Bytes that are read at once when memory is scarce."""

_SMALL = 1 << 16
"""A frame without a grant has at most so many bytes; `_READ_SCARCE` when memory is scarce."""

_RESERVE = 16
"""Larger frames leave this part of the memory to small ones."""


class Holder(Protocol):
    """A connection, as far as its memory goes. held_bytes: its bytes, which `ConnectionMemory` alone sets."""

    held_bytes: int

    @property
    def progress(self) -> int:
        """A number that grows by the bytes that the client sends or takes."""

    def granted(self, size: int) -> None:
        """The frame that waited may be read; its size."""

    def evict(self, reason: str) -> None:
        """Close the connection at once."""


class ConnectionMemory:
    """Bytes that are held, at most `most`. call_later: runs something after some seconds."""

    def __init__(self, most: int, call_later: Callable[[float, Callable[[], None]], Timer]) -> None:
        self.most = most
        self.used = 0
        self._call_later = call_later
        self._unfinished: dict[Holder, None] = {}
        """Those whose frames have a grant and are not whole, the oldest first."""
        self._unfinished_small: dict[Holder, None] = {}
        """The same for frames of up to `_SMALL` bytes."""
        self._untaken: dict[Holder, None] = {}
        """Those with answers that were not taken, the oldest first."""
        self._waiting: dict[Holder, int] = {}
        """Those whose frames wait for a grant, with their sizes, the first first."""
        self._waiting_small: dict[Holder, int] = {}
        """The same for frames of up to `_SMALL` bytes."""
        self._alarm: Timer | None = None
        self._watched: dict[Holder, int] = {}
        """The progress, when the alarm was set, of those that have held memory since then."""

    # --- reading ---

    @property
    def is_scarce(self) -> bool:
        return 2 * self.used >= self.most

    @property
    def read_size(self) -> int:
        """How many bytes may be read at once."""
        return READ_SIZE if 2 * self.used < self.most else _READ_SCARCE

    @property
    def room(self) -> int:
        """How many bytes an answer should have at most, where it may have fewer."""
        return max(_SMALL, self.most - self.used)

    def hold(self, holder: Holder, size: int) -> None:
        """Count the bytes that a connection holds."""
        before, holder.held_bytes = holder.held_bytes, size
        self.used += size - before
        if size < before:
            self._grant()

    def finish(self, holder: Holder) -> None:
        """Note that the frame that has a grant is whole."""
        for unfinished in (self._unfinished, self._unfinished_small):
            if holder in unfinished:
                del unfinished[holder]
                self._watched.pop(holder, None)
                self._grant()

    def admit(self, holder: Holder, size: int, received: int) -> int | None:
        """The bytes granted to a frame that is not whole: its size, 0 if it is small or less than its
        beginning was received; None if it has to wait, until `Holder.granted`."""
        if received < _READ_SCARCE or size <= (_READ_SCARCE if self.is_scarce else _SMALL):
            return 0
        waiting = self._waiting if size > _SMALL else self._waiting_small
        if not waiting and self._fits(holder, size):
            self._grant_memory(holder, size)
            return size
        waiting[holder] = size
        self._watch()
        return None

    # --- answers ---

    def leave(self, holder: Holder) -> None:
        """Note that a client has not taken its answers at once."""
        self._untaken.setdefault(holder)
        while self.used > self.most and len(self._untaken) > 1:
            self._evict(next(iter(self._untaken)))

    def take(self, holder: Holder) -> None:
        """Note that a client has taken its answers."""
        self._untaken.pop(holder, None)
        self._watched.pop(holder, None)

    def forget(self, holder: Holder) -> None:
        """Forget a connection that has ended."""
        self._waiting.pop(holder, None)
        self._waiting_small.pop(holder, None)
        self.take(holder)
        self.hold(holder, 0)
        self.finish(holder)

    def close(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None

    # --- grants ---

    def _fits(self, holder: Holder, size: int) -> bool:
        after = self.used - holder.held_bytes + size
        if size <= _SMALL:
            return not (self._unfinished or self._unfinished_small) or after <= self.most
        return not self._unfinished or after <= self.most - self.most // _RESERVE

    def _grant_memory(self, holder: Holder, size: int) -> None:
        (self._unfinished if size > _SMALL else self._unfinished_small)[holder] = None
        self.used += size - holder.held_bytes
        holder.held_bytes = size

    def _grant(self) -> None:
        """Give grants to the frames that fit now: small ones first, each kind in its order."""
        for waiting in (self._waiting_small, self._waiting):
            while waiting:
                holder, size = next(iter(waiting.items()))
                if not self._fits(holder, size):
                    break
                del waiting[holder]
                self._grant_memory(holder, size)
                holder.granted(size)

    def _watch(self) -> None:
        """Close those that hold memory and make no progress for the time of patience, while frames wait."""
        if self._alarm is not None:
            return
        holders = (*self._unfinished, *self._unfinished_small, *self._untaken)
        self._watched = {holder: holder.progress for holder in holders}

        def ring() -> None:
            self._alarm = None
            for holder, before in list(self._watched.items()):
                if not (self._waiting or self._waiting_small):
                    return
                if holder.progress - before < PROGRESS:
                    self._evict(holder)
            self._grant()
            if self._waiting or self._waiting_small:
                self._watch()

        self._alarm = self._call_later(PATIENCE, ring)

    def _evict(self, holder: Holder) -> None:
        self.forget(holder)
        holder.evict(f"it held memory that others wait for ({self.most} bytes in all)")
