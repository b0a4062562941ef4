"""The interface of the place that keeps a log's bytes, and the place that is memory.

Rules: batches are numbered as in the log's `BatchTable`, from its first; a place that cannot append raises
`OSError`, and has not changed.

Where a log's batches are: parallel arrays in the order of the log, searched by offset and by time.

Rules: offsets rise. A search by time uses the largest timestamp so far, which never falls, so that its first
place at or above a time is the first batch that reaches it.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from coordwire.messages.producer_snapshot import ProducerEntry
from coordwire.segments import AbortedTransaction

__all__ = ["BatchPlace", "BatchTable", "MemoryStorage", "Storage"]


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
        """Which batch the bytes end before, if it holds as many whole batches from `first` on as fit."""
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


# --- storage ---


class Storage(Protocol):
    """The place that keeps the bytes of a log."""

    def append(
        self,
        data: bytes,
        batch: BatchPlace,
        producers: Callable[[], Iterable[ProducerEntry]],
    ) -> None:
        """Add a batch. producers: gives them as of before it, for the snapshot that a new segment has."""

    def aborted(self, transaction: AbortedTransaction) -> None:
        """The last batch aborted a transaction."""

    def sync(self) -> None:
        """Force what was appended to the disk. Raises `OSError`."""

    def read(self, first: int, end: int) -> bytes:
        """The bytes of the batches from number `first` up to, without, `end`."""

    def drop_first(self, count: int, start_offset: int) -> None:
        """The log begins at an offset now; so many batches at the start are no longer needed."""

    @property
    def can_rewrite(self) -> bool:
        """Whether `rewrite` can be done here."""

    def rewrite(self, first: int, batches: list[bytes | None]) -> None:
        """The batches from number `first` on are these now, without those that are None."""

    def drop_last(self, count: int, end_offset: int) -> None:
        """The log loses so many batches at its end, and ends at an offset now. Raises `OSError`."""

    def epochs_changed(self, encoded: bytes) -> None:
        """The leader epochs are these now, as the file's bytes."""

    def relocate(self, folder: Path) -> None:
        """Move what is in a folder into another, which is not there yet. Raises `OSError`."""

    def close(self, end_offset: int, producers: Iterable[ProducerEntry]) -> None:
        """The log is not used any more."""

    def let_go(self) -> None:
        """Close it as if the process had ended."""

    def delete(self) -> None:
        """The partition was deleted: remove what this storage wrote. It is closed afterwards."""


class MemoryStorage:
    """Bytes in memory, an object a batch."""

    def __init__(self) -> None:
        self._batches: list[bytes] = []

    def append(
        self, data: bytes, batch: BatchPlace, producers: Callable[[], Iterable[ProducerEntry]]
    ) -> None:
        self._batches.append(data)

    def aborted(self, transaction: AbortedTransaction) -> None:
        pass

    def sync(self) -> None:
        pass

    def read(self, first: int, end: int) -> bytes:
        return self._batches[first] if end - first == 1 else b"".join(self._batches[first:end])

    def drop_first(self, count: int, start_offset: int) -> None:
        del self._batches[:count]

    can_rewrite = True

    def rewrite(self, first: int, batches: list[bytes | None]) -> None:
        self._batches[first : first + len(batches)] = [batch for batch in batches if batch is not None]

    def drop_last(self, count: int, end_offset: int) -> None:
        del self._batches[len(self._batches) - count :]

    def epochs_changed(self, encoded: bytes) -> None:
        pass

    def relocate(self, folder: Path) -> None:
        pass

    def close(self, end_offset: int, producers: Iterable[ProducerEntry]) -> None:
        pass

    def let_go(self) -> None:
        pass

    def delete(self) -> None:
        self._batches.clear()
