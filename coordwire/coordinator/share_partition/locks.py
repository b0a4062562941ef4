"""The time limits of acquisitions, in the order in which they end.

Rule: equal deadlines are due in the order in which they were set. A cancelled lock costs nothing but its
place, and places are cleared when most of them are stale.
"""

from __future__ import annotations

import heapq

from coordwire.coordinator.share_partition.in_flight import AcquisitionLock

__all__ = ["Locks"]

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
