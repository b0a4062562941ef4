"""Records in flight: their states, the locks of the members that acquired them, and batches of both.

Strategy: a batch has one state for all its offsets until one of them goes another way; then each offset has
its own. A transition that has to be written is begun, and completed or taken back when the write has ended.
Rules: acknowledged and archived records stay so; one that is being archived waits for its dead letter. A lock
that is over while its record's transition is being written ends the acquisition when that write fails. Equal
deadlines of locks are due in the order in which they were set; a cancelled lock costs nothing but its place,
and places are cleared when most are stale.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from enum import IntEnum

NO_MEMBER = ""
"""The member id of records that no member holds."""


class RecordState(IntEnum):
    """The states of a record, by the numbers in records of `__share_group_state`."""

    AVAILABLE = 0
    ACQUIRED = 1
    ACKNOWLEDGED = 2
    ARCHIVING = 3
    ARCHIVED = 4

    @property
    def is_terminal(self) -> bool:
        """Whether the record is never delivered again."""
        return self is _ACKNOWLEDGED or self is _ARCHIVED


_AVAILABLE, _ACQUIRED, _ACKNOWLEDGED, _ARCHIVED = (
    RecordState.AVAILABLE, RecordState.ACQUIRED, RecordState.ACKNOWLEDGED, RecordState.ARCHIVED,
)  # fmt: skip


class AcquisitionFailed(Exception):
    """Apache Kafka answers UNKNOWN_SERVER_ERROR, and records that it has acquired stay so until locks end:
    the log has a gap where records in flight end and no more are allowed, records of an aborted transaction
    are not in flight, or a record has a lock from before it was released."""


class AcquisitionLock:
    """A time limit of an acquisition. deadline: in milliseconds; first, last: the offsets that it
    releases."""

    __slots__ = ("deadline", "first", "has_expired", "is_cancelled", "last")

    def __init__(self, deadline: int, first: int, last: int) -> None:
        self.deadline = deadline
        self.first = first
        self.last = last
        self.is_cancelled = False
        self.has_expired = False


class InFlightState:
    """The state of a batch or of one offset.

    delivery_count: how often it was acquired. member_id: of the member that holds it. before: the state and
    the member before a transition that is being written, and the limit of deliveries then.
    """

    __slots__ = ("_is_archived", "before", "delivery_count", "lock", "member_id", "state")

    def __init__(
        self, state: RecordState, delivery_count: int, member_id: str, lock: AcquisitionLock | None = None
    ) -> None:
        self.state = state
        self.delivery_count = delivery_count
        self.member_id = member_id
        self.lock = lock
        self.before: tuple[RecordState, str, int] | None = None
        self._is_archived = False

    def set_lock(self, lock: AcquisitionLock) -> None:
        """Limit the time of the acquisition. Raises `AcquisitionFailed`."""
        if self.lock is not None:
            raise AcquisitionFailed
        self.lock = lock

    def unlock(self) -> None:
        """Cancel the time limit."""
        if self.lock is not None:
            self.lock.is_cancelled = True
            self.lock = None

    def try_acquire(self, member_id: str) -> bool:
        """Let a member have it, if it is available."""
        if self.before is not None or self.state is not _AVAILABLE:
            return False
        self.state = _ACQUIRED
        self.delivery_count += 1
        self.member_id = member_id
        return True

    def try_release(self, state: RecordState, most_deliveries: int, undeliverable: RecordState) -> bool:
        """Take it from its member; what was delivered often enough is undeliverable instead of available."""
        if state is _AVAILABLE and self.delivery_count >= most_deliveries:
            state = undeliverable
        if self.before is not None or self.state.is_terminal or self.state is state:
            return False
        self.state = state
        self.member_id = NO_MEMBER
        return True

    def begin(self, state: RecordState, most_deliveries: int, undeliverable: RecordState) -> bool:
        """Begin a transition that is to be written."""
        before = self.state, self.member_id, most_deliveries
        if not self.try_release(state, most_deliveries, undeliverable):
            return False
        self.before = before
        return True

    def complete(self, *, written: bool) -> None:
        """End the transition that was begun; take it back where it could not be written."""
        before, self.before = self.before, None
        if written or self._is_archived or before is None:
            self.unlock()
            return
        state, member_id, most_deliveries = before
        if self.lock is not None and self.lock.has_expired:
            self.state = _ARCHIVED if self.delivery_count >= most_deliveries else _AVAILABLE
            self.member_id = NO_MEMBER
            self.unlock()
        else:
            self.state, self.member_id = state, member_id

    def archive(self) -> None:
        """End it whatever becomes of a transition."""
        self._is_archived = True
        self.state = _ARCHIVED
        self.member_id = NO_MEMBER
        self.unlock()

    @property
    def is_available(self) -> bool:
        return self.state is _AVAILABLE and self.before is None

    @property
    def is_final(self) -> bool:
        """Whether it is terminal, and written."""
        return self.before is None and (self.state is _ACKNOWLEDGED or self.state is _ARCHIVED)


SetLock = Callable[[int, int, int], AcquisitionLock]
"""Sets a lock for the offsets from the first to the last, with this deadline."""


class InFlightBatch:
    """The offsets from `first` to `last`: one state for all, or one for each offset.

    whole: None once each offset has its own. offsets: empty until then.
    """

    __slots__ = ("_final", "batch_state", "first", "last", "offsets")

    def __init__(self, first: int, last: int, state: InFlightState) -> None:
        self.first = first
        self.last = last
        self.batch_state: InFlightState | None = state
        self.offsets: list[InFlightState] = []
        self._final = 0

    def __len__(self) -> int:
        return self.last - self.first + 1

    def split(self, set_lock: SetLock) -> None:
        """Give each offset the state that all have, with a lock of its own for the time that is left."""
        state = self.batch_state
        if state is None:
            return
        lock = state.lock
        for offset in range(self.first, self.last + 1):
            own = None if lock is None else set_lock(offset, offset, lock.deadline)
            self.offsets.append(InFlightState(state.state, state.delivery_count, state.member_id, own))
        state.unlock()
        self.batch_state = None

    def split_acquired(self, last: int, deadline: int, set_lock: SetLock) -> None:
        """Leave the offsets up to `last` acquired, and let the others be available again."""
        state = self.batch_state
        assert state is not None
        for offset in range(self.first, self.last + 1):
            if offset <= last:
                lock = set_lock(offset, offset, deadline)
                own = InFlightState(state.state, state.delivery_count, state.member_id, lock)
            else:
                own = InFlightState(_AVAILABLE, state.delivery_count - 1, NO_MEMBER)
            self.offsets.append(own)
        self.batch_state = None

    def between(self, first: int, last: int) -> Iterator[tuple[int, InFlightState]]:
        """The offsets of a range, with their states; the batch is split."""
        start = max(first, self.first)
        yield from enumerate(self.offsets[start - self.first : max(last - self.first + 1, 0)], start)

    def at(self, offset: int) -> InFlightState | None:
        """The state of an offset; None outside of a batch that is split."""
        if self.batch_state is not None:
            return self.batch_state
        return self.offsets[offset - self.first] if self.first <= offset <= self.last else None

    def final_until(self) -> int:
        """The offset after those from the first on that are terminal and written."""
        if self.batch_state is not None:
            return self.last + 1 if self.batch_state.is_final else self.first
        offsets = self.offsets
        while self._final < len(offsets) and offsets[self._final].is_final:
            self._final += 1
        return self.first + self._final


class BatchMap:
    """Batches by their first offsets, in order."""

    __slots__ = ("_batches", "_keys")

    def __init__(self) -> None:
        self._keys: list[int] = []
        self._batches: dict[int, InFlightBatch] = {}

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[InFlightBatch]:
        return iter(list(map(self._batches.__getitem__, self._keys)))

    def put(self, batch: InFlightBatch) -> None:
        """Add a batch, in place of one that begins at the same offset."""
        key = batch.first
        if key not in self._batches:
            if not self._keys or key > self._keys[-1]:
                self._keys.append(key)
            else:
                self._keys.insert(bisect_left(self._keys, key), key)
        self._batches[key] = batch

    @property
    def first(self) -> InFlightBatch:
        return self._batches[self._keys[0]]

    @property
    def last(self) -> InFlightBatch:
        return self._batches[self._keys[-1]]

    def floor(self, offset: int) -> InFlightBatch | None:
        """The last batch that begins at or before an offset."""
        index = bisect_right(self._keys, offset)
        return self._batches[self._keys[index - 1]] if index else None

    def next_after(self, offset: int) -> InFlightBatch | None:
        """The first batch that begins after an offset."""
        index = bisect_right(self._keys, offset)
        return self._batches[self._keys[index]] if index < len(self._keys) else None

    def between(self, first: int, last: int) -> list[InFlightBatch]:
        """The batches that begin from one offset to another, both included."""
        keys = self._keys[bisect_left(self._keys, first) : bisect_right(self._keys, last)]
        return [self._batches[key] for key in keys]

    def drop_before(self, offset: int) -> None:
        """Remove the batches that begin before an offset."""
        count = bisect_left(self._keys, offset)
        for key in self._keys[:count]:
            del self._batches[key]
        del self._keys[:count]

    def clear(self) -> None:
        self._keys.clear()
        self._batches.clear()


# --- locks ---


_SLACK = 64


class Locks:
    """A heap of locks."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, AcquisitionLock]] = []
        self._number = 0
        self._checked = _SLACK

    def set(self, first: int, last: int, deadline: int) -> AcquisitionLock:
        """Set a lock for these offsets."""
        lock = AcquisitionLock(deadline, first, last)
        self._number += 1
        heapq.heappush(self._heap, (deadline, self._number, lock))
        if len(self._heap) > self._checked:
            self._heap = [entry for entry in self._heap if not entry[2].is_cancelled]
            heapq.heapify(self._heap)
            self._checked = 2 * len(self._heap) + _SLACK
        return lock

    def next_deadline(self) -> int | None:
        heap = self._heap
        while heap:
            if not heap[0][2].is_cancelled:
                return heap[0][0]
            heapq.heappop(heap)
        return None

    def pop(self) -> AcquisitionLock:
        """Remove the lock that ends next; `next_deadline` has shown that there is one."""
        return heapq.heappop(self._heap)[2]

    def deadlines(self) -> list[tuple[int, int, int]]:
        """Deadline, first and last offset of each lock that has not ended, in their order."""
        return [
            (deadline, lock.first, lock.last)
            for deadline, _, lock in sorted(self._heap, key=lambda entry: entry[:2])
            if not lock.is_cancelled
        ]
