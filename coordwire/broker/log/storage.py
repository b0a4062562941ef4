"""The interface of the place that keeps a log's bytes, and the place that is memory.

Rules: batches are numbered as in the log's `BatchTable`, from its first; a place that cannot append raises
`OSError`, and has not changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Protocol

from coordwire.broker.log.batch_table import BatchPlace
from coordwire.messages.producer_snapshot import ProducerEntry
from coordwire.segments import AbortedTransaction

__all__ = ["MemoryStorage", "Storage"]


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
