"""A log on disk, in the files of Apache Kafka: segments with their indexes, snapshots of the producers.

Strategy: an append is one `write` to the last segment; every few KB it gets an entry in the offset index and
in the time index, by the rule of Kafka's `LogSegment.append`. A segment that is full is completed and the
next one begun, with a snapshot of the producers beside it. Bytes are handed to the system, and outlive the
process; they outlive the machine once `sync` has forced them to the disk.

Rules: an append that the system refuses is undone. A file is made only where its name is free, and
removed only if this storage opened it as the partition's.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from struct import Struct

from coordwire.broker.log.data_folder import remove_partition, sync_folder, write_file
from coordwire.broker.log.retention import LogSegment, SegmentRules
from coordwire.broker.log.storage import BatchPlace
from coordwire.messages.producer_snapshot import ProducerEntry
from coordwire.records import RecordBatch
from coordwire.segments import AbortedTransaction, TransactionIndex, write_snapshot
from coordwire.segments.names import FileKind, file_name, log_name
from coordwire.segments.state_files import EPOCHS

_KINDS: tuple[FileKind, ...] = ("index", "timeindex", "txnindex", "snapshot", "log")
_INDEX, _TIME = Struct(">ii"), Struct(">qi")


@dataclass(slots=True)
class OpenSegment:
    """A segment of the log.

    size: its bytes. first: the largest timestamp of its first batch. positions: where its batches begin.
    unindexed: bytes since the last entry of the index. latest, latest_offset: the largest timestamp, and the
    last offset of the batch that has it. stamped: the last timestamp in the time index. synced: how many of
    its bytes are on the disk for certain.
    """

    base_offset: int
    descriptor: int
    size: int = 0
    first: int = -1
    unindexed: int = 0
    latest: int = -1
    latest_offset: int = -1
    stamped: int = -1
    synced: int = 0
    positions: list[int] = field(default_factory=list)


class DiskStorage:
    """A partition's folder. segments: those that it has, with the last one to be appended to."""

    def __init__(self, folder: Path, rules: SegmentRules, segments: list[OpenSegment] | None = None) -> None:
        self.folder = folder
        self._rules = rules
        self._segments = segments or []
        self._firsts: list[int] = []
        """The number of each segment's first batch, counted from the first segment's."""
        number = 0
        for segment in self._segments:
            self._firsts.append(number)
            number += len(segment.positions)
        self._count = number
        self._hidden = 0
        """Batches at the start of the first segment that the log no longer has."""
        self._has_new_names = True
        """Whether the names of its files may not be on the disk yet."""
        if not self._segments:
            self._begin(0)

    # --- appending ---

    def append(
        self, data: bytes, batch: BatchPlace, producers: Callable[[], Iterable[ProducerEntry]], now: int
    ) -> None:
        segment = self._segments[-1]
        if self._rules.is_full(
            segment.size, len(data), offset_delta=batch.last_offset - segment.base_offset,
            first=segment.first, timestamp=batch.max_timestamp,
        ):  # fmt: skip
            segment = self._roll(batch.base_offset, producers())
        self._write_all(segment, data)
        self._count += 1
        self._note(segment, len(data), batch.last_offset, batch.max_timestamp)

    def _note(self, segment: OpenSegment, size: int, last_offset: int, timestamp: int) -> None:
        """A batch follows in the segment's log: what its indexes say of it."""
        position = segment.size
        if not position:
            segment.first = timestamp
        segment.positions.append(position)
        segment.size += size
        if timestamp > segment.latest:
            segment.latest, segment.latest_offset = timestamp, last_offset
        if segment.unindexed > self._rules.index_interval:
            entry = _INDEX.pack(last_offset - segment.base_offset, position)
            self._extend(segment.base_offset, "index", entry)
            self._stamp(segment)
            segment.unindexed = 0
        segment.unindexed += size

    def _write_all(self, segment: OpenSegment, data: bytes) -> None:
        size = 0
        try:
            while size < len(data):
                size += os.pwrite(segment.descriptor, data[size:] if size else data, segment.size + size)
        except OSError:
            with suppress(OSError):
                os.ftruncate(segment.descriptor, segment.size)
            raise

    def _stamp(self, segment: OpenSegment) -> None:
        """Add the largest timestamp so far to the time index, if it has risen."""
        if segment.latest > segment.stamped:
            entry = _TIME.pack(segment.latest, segment.latest_offset - segment.base_offset)
            self._extend(segment.base_offset, "timeindex", entry)
            segment.stamped = segment.latest

    def aborted(self, transaction: AbortedTransaction) -> None:
        self._extend(self._segments[-1].base_offset, "txnindex", TransactionIndex.pack([transaction]))

    def _extend(self, base: int, kind: FileKind, data: bytes) -> None:
        """Add to an index. One that cannot be written is rebuilt at the next start."""
        with suppress(OSError):
            path = self.folder / log_name(base, kind)
            descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o666)
            try:
                os.write(descriptor, data)
            finally:
                os.close(descriptor)

    def _begin(self, base: int) -> OpenSegment:
        """Make the files of a new segment. Raises `OSError`, also where one of them is there."""
        path = self.folder / log_name(base)
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        descriptor = os.open(path, flags, 0o666)
        paths = [path]
        try:
            for kind in ("index", "timeindex"):
                index = path.with_suffix(f".{kind}")
                os.close(os.open(index, flags, 0o666))
                paths.append(index)
        except OSError:  # the next try begins again
            os.close(descriptor)
            for file in paths:
                with suppress(OSError):
                    file.unlink()
            raise
        segment = OpenSegment(base, descriptor, latest_offset=base)
        self._segments.append(segment)
        self._firsts.append(self._count)
        self._has_new_names = True
        return segment

    def sync(self) -> None:
        for segment in reversed(self._segments):
            if segment.synced == segment.size > 0:
                break  # a segment is begun after the one before it, which may not be on the disk
            os.fsync(segment.descriptor)
            segment.synced = segment.size
        if self._has_new_names and self._segments:
            for folder in (self.folder, self.folder.parent):
                sync_folder(folder)
            self._has_new_names = False

    def roll(self, offset: int, producers: Iterable[ProducerEntry]) -> None:
        if self._segments[-1].size:
            self._roll(offset, producers)

    def segments(self) -> list[LogSegment]:
        return [
            LogSegment(
                segment.base_offset, segment.size, segment.latest,
                os.fstat(segment.descriptor).st_mtime_ns // 1_000_000,
            )
            for segment in self._segments
        ]  # fmt: skip

    def _roll(self, base: int, producers: Iterable[ProducerEntry]) -> OpenSegment:
        self._stamp(self._segments[-1])
        self._snapshot(base, producers)
        return self._begin(base)

    def _snapshot(self, offset: int, producers: Iterable[ProducerEntry]) -> None:
        write_file(self.folder, log_name(offset, "snapshot"), write_snapshot(producers))

    def epochs_changed(self, encoded: bytes) -> None:
        write_file(self.folder, EPOCHS, encoded)

    # --- reading ---

    def read(self, first: int, end: int) -> bytes:
        first, end = first + self._hidden, end + self._hidden
        parts = []
        at = bisect_right(self._firsts, first) - 1
        while first < end:
            segment, base = self._segments[at], self._firsts[at]
            last = min(end - base, len(segment.positions))
            start = segment.positions[first - base]
            stop = segment.positions[last] if last < len(segment.positions) else segment.size
            parts.append(os.pread(segment.descriptor, stop - start, start))
            first = base + last
            at += 1
        return parts[0] if len(parts) == 1 else b"".join(parts)

    # --- the start, and the end ---

    def drop_first(self, count: int, start_offset: int) -> None:
        self._hidden += count
        following = bisect_right(self._segments, start_offset, 1, key=lambda segment: segment.base_offset) - 1
        if following < 1:
            return
        removed, self._segments = self._segments[:following], self._segments[following:]
        dropped = self._firsts[following]
        self._hidden -= dropped
        self._count -= dropped
        self._firsts = [number - dropped for number in self._firsts[following:]]
        for segment in removed:
            self._remove(segment)

    def _remove(self, segment: OpenSegment) -> None:
        """Close a segment and remove its files, the log last: without it the others have no meaning."""
        os.close(segment.descriptor)
        for kind in _KINDS:
            with suppress(OSError):
                (self.folder / log_name(segment.base_offset, kind)).unlink(missing_ok=True)

    def drop_last(self, count: int, end_offset: int) -> None:
        remaining = self._count - count
        self._has_new_names = True
        while len(self._segments) > 1 and self._firsts[-1] >= remaining:
            self._remove(self._segments.pop())
            self._firsts.pop()
        segment = self._segments[-1]
        sizes = [*segment.positions, segment.size]
        segment_count = remaining - self._firsts[-1]
        os.ftruncate(segment.descriptor, sizes[segment_count])
        segment.size, segment.synced = sizes[segment_count], 0
        self._count = remaining
        for path in list(self.folder.iterdir()):
            name = file_name(path.name)
            if name is not None and name.kind == "snapshot" and (name.offset or 0) > end_offset:
                with suppress(OSError):
                    path.unlink()
        self.sync()  # or old bytes could come back among new ones
        self._rebuild_index(segment, sizes[: segment_count + 1], end_offset)

    def _rebuild_index(self, segment: OpenSegment, edges: list[int], end_offset: int) -> None:
        """Write the indexes of a segment that has lost batches at its end; edges: of those that are left."""
        path = self.folder / log_name(segment.base_offset, "txnindex")
        aborted = TransactionIndex(path.read_bytes(), segment.base_offset) if path.exists() else ()
        remaining = [transaction for transaction in aborted if transaction.last_offset < end_offset]
        for kind in ("index", "timeindex"):
            write_file(self.folder, log_name(segment.base_offset, kind), b"")
        if aborted:
            write_file(self.folder, path.name, TransactionIndex.pack(remaining))
        segment.size = segment.unindexed = 0
        segment.first = segment.latest = segment.stamped = -1
        segment.latest_offset = segment.base_offset
        segment.positions.clear()
        for start, stop in pairwise(edges):
            batch = RecordBatch(memoryview(os.pread(segment.descriptor, stop - start, start)))
            self._note(segment, batch.size, batch.last_offset, batch.max_timestamp)

    def relocate(self, folder: Path) -> None:
        os.rename(self.folder, folder)
        self.folder = folder
        self._has_new_names = True

    can_rewrite = False

    def rewrite(self, first: int, batches: list[bytes | None]) -> None:
        raise ValueError("a log on disk cannot be compacted here: only one in memory")

    def close(self, end_offset: int, producers: Iterable[ProducerEntry]) -> None:
        with suppress(OSError):
            self._stamp(self._segments[-1])
            entries = list(producers)
            if end_offset and entries:
                self._snapshot(end_offset, entries)
        self.let_go()

    def let_go(self) -> None:
        """Close the files as if the process had ended."""
        for segment in self._segments:
            os.close(segment.descriptor)
        self._segments, self._firsts, self._count, self._hidden = [], [], 0, 0

    def delete(self) -> None:
        self.let_go()
        with suppress(OSError):
            remove_partition(self.folder)
