"""Where a log's batches are: parallel arrays in the order of the log, searched by offset and by time.

Rules: offsets rise. A search by time uses the largest timestamp so far, which never falls, so that its first
place at or above a time is the first batch that reaches it.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from dataclasses import dataclass

__all__ = ["BatchPlace", "BatchTable"]


@dataclass(frozen=True, slots=True)
class BatchPlace:
    """A batch of the log. epoch: of the leader that appended it."""

    base_offset: int
    last_offset: int
    size: int
    max_timestamp: int
    epoch: int


class BatchTable:
    """The batches of a log, numbered from 0."""

    def __init__(self) -> None:
        self._bases, self._lasts = array("q"), array("q")
        self._times, self._highest = array("q"), array("q")
        self._ends = array("q")
        """How many bytes the log has up to each batch's end, counted from its first append."""
        self._epochs = array("i")
        self._dropped_bytes = 0

    def __len__(self) -> int:
        return len(self._bases)

    def __getitem__(self, number: int) -> BatchPlace:
        return BatchPlace(
            self._bases[number],
            self._lasts[number],
            self.bytes_between(number, number + 1),
            self._times[number],
            self._epochs[number],
        )

    def add(self, batch: BatchPlace) -> None:
        """Add the next batch."""
        self._bases.append(batch.base_offset)
        self._lasts.append(batch.last_offset)
        self._times.append(batch.max_timestamp)
        highest = self._highest[-1] if self._highest else batch.max_timestamp
        self._highest.append(max(highest, batch.max_timestamp))
        self._ends.append((self._ends[-1] if self._ends else self._dropped_bytes) + batch.size)
        self._epochs.append(batch.epoch)

    def reaching(self, offset: int) -> int:
        """The first batch whose last offset is at or after an offset; the number of batches if none is."""
        return bisect_left(self._lasts, offset)

    def beginning(self, offset: int) -> int:
        """The first batch that begins at or after an offset."""
        return bisect_left(self._bases, offset)

    def reaching_time(self, timestamp: int) -> int:
        """The first batch whose largest timestamp is at or after a time."""
        return bisect_left(self._highest, timestamp)

    def latest(self) -> int | None:
        """The first batch that has the largest timestamp of all; None without batches."""
        return self.reaching_time(self._highest[-1]) if self._highest else None

    def bytes_between(self, first: int, end: int) -> int:
        """The bytes of the batches from `first` up to, without, `end`."""
        before = self._ends[first - 1] if first else self._dropped_bytes
        return (self._ends[end - 1] if end else self._dropped_bytes) - before

    def within(self, first: int, end: int, most: int) -> int:
        """Which batch the bytes end before, if as many whole batches as fit are taken from `first` on."""
        before = self._ends[first - 1] if first else self._dropped_bytes
        if first < end and self._ends[end - 1] - before <= most:
            return end
        at = bisect_left(self._ends, before + most + 1, first, end)
        return at

    def drop_last(self, count: int) -> None:
        """Forget so many batches at the end."""
        for column in (self._bases, self._lasts, self._times, self._highest, self._ends, self._epochs):
            del column[len(column) - count :]

    def drop_first(self, count: int) -> None:
        """Forget so many batches at the start."""
        if not count:
            return
        self._dropped_bytes = self._ends[count - 1]
        for column in (self._bases, self._lasts, self._times, self._ends, self._epochs):
            del column[:count]
        del self._highest[:count]
        highest = None
        for number, stamp in enumerate(self._times):
            highest = stamp if highest is None else max(highest, stamp)
            if self._highest[number] == highest:
                break  # so are those that follow
            self._highest[number] = highest
