"""`Segment`: a `.log` file and what the broker keeps beside it; a partition's folder: its segments in order,
and the producers as of one of them.

Strategy: the file is mapped into memory, so that its size doesn't matter and no batch is copied before it is
iterated; the files beside it are read when they are asked for. An index only ever saves a walk: if no batch
is where it points, the walk begins at the file's start. Rules: nothing is written; a file beside the log that
can't be read raises when it is asked for, and has no other effect. A folder's content is known from names
alone; files that come or go (`.deleted`, `.cleaned`, `.swap`) and KRaft's snapshots are not part of the log.
"""

from __future__ import annotations

import mmap
import os
from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Self, TypeVar, overload

from coordwire.errors import CorruptBatch, DecodeError, LimitExceeded
from coordwire.limits import current
from coordwire.messages.producer_snapshot import ProducerSnapshot
from coordwire.records import Batches, Record, RecordBatch, UnreadableRange
from coordwire.records.batch import batch_size
from coordwire.records.batch_reader import OnError
from coordwire.records.resync import Search
from coordwire.segments.index_check import Fault
from coordwire.segments.indexes import OffsetIndex, TimeIndex, TransactionIndex
from coordwire.segments.names import (
    FileKind,
    file_name,
    kafka_07_offset,
    log_format,
    log_name,
    topic_partition,
)
from coordwire.segments.producers import Producers
from coordwire.segments.state_files import (
    EPOCHS,
    METADATA,
    EpochEntry,
    PartitionMetadata,
    read_leader_epochs,
    read_metadata,
    read_snapshot,
)
from coordwire.segments.verify import SegmentCounts, verify

if TYPE_CHECKING:
    import pyarrow


def mapped(path: Path) -> memoryview:
    """A file's bytes, not copied; unmapped when nothing refers to them. It may not shrink. Raises
    `OSError`."""
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        return memoryview(mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ) if size else b"")


def read_small(path: Path) -> bytes:
    """A file's bytes. Raises `OSError`, `LimitExceeded` for one above `coordwire.limits(frame=…)`."""
    most = current().frame
    with open(path, "rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise LimitExceeded(f"{path.name} has more than {most} bytes", most)
    return data


# --- the segment ---


I = TypeVar("I", OffsetIndex, TimeIndex, TransactionIndex)  # noqa: E741


class Segment:
    """A broker's segment; a context manager, and closed with `close`.

    path: the `.log` file, or a KRaft snapshot (`.checkpoint`), which holds batches too; a file of another
    name is read as well, without topic, partition and base offset. A `.kafka` file is a log of Kafka 0.7,
    whose messages are its batches, and whose offsets are places in the partition's log.

    topic, partition: from the folder's name; None where it is of another form. base_offset: from the file's
    name; None for other names and for snapshots. size: in bytes, when it was opened. The file may grow while
    it is in use (the growth isn't seen), but not shrink. Raises `OSError` where it can't be read.

        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> from coordwire.records import Record, encode_batch
        >>> from coordwire.segments import Segment
        >>> with TemporaryDirectory() as folder:
        ...     (path := Path(folder, "orders-3")).mkdir()
        ...     log = path / "00000000000000000007.log"
        ...     _ = log.write_bytes(encode_batch([Record(value=b"tea")], base_offset=7))
        ...     with Segment(log) as segment:
        ...         print(segment.topic, segment.partition, list(segment.batches()))
        orders 3 [<RecordBatch of magic 2 at byte 0: 71 bytes, last offset 7, none>]
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._view = mapped(self.path)
        self.size = len(self._view)
        self._name = file_name(self.path.name)
        # A bootstrap.checkpoint is in no partition's folder: what holds it is a broker's log folder.
        bootstraps = self._name is not None and self._name.kind == "checkpoint" and self._name.offset is None
        folder = None if bootstraps else topic_partition(Path(os.path.abspath(self.path)).parent.name)
        self.topic: str | None = folder[0] if folder else None
        self.partition: int | None = folder[1] if folder else None
        is_log = self._name is not None and self._name.kind == "log"
        self.base_offset: int | None = self._name.offset if self._name and is_log else None
        if (offset := kafka_07_offset(self.path.name)) is not None:
            self.base_offset = offset
        self._format = log_format(self.path.name)
        self.is_kafka_07 = self._format.is_kafka_07

    def close(self) -> None:
        """Close the file; it stays mapped as long as batches of it are in use."""
        self._view.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        name = f"{self.topic}-{self.partition}" if self.topic is not None else "no topic"
        return f"<Segment {self.path.name} of {name}: {self.size} bytes>"

    @property
    def data(self) -> memoryview:
        """The file's bytes, not copied."""
        return self._view[:]

    # --- what is beside it -----------------------------------------------------------------------------

    def sibling_path(self, kind: FileKind) -> Path | None:
        """The path of the segment's file of another kind, whether it is there or not; None without a name."""
        name = self.path.name
        if self.base_offset is None or self.is_kafka_07:  # 0.7 keeps nothing beside a log
            return None
        start, _, ending = name.partition(".")
        return self.path.with_name(f"{start}.{kind}{ending.removeprefix('log')}")

    def _index(self, kind: FileKind, read: type[I]) -> I | None:
        path = self.sibling_path(kind)
        if path is None or self.base_offset is None:
            return None
        try:
            return read(mapped(path), self.base_offset)
        except FileNotFoundError:
            return None

    @cached_property
    def offset_index(self) -> OffsetIndex | None:
        """The `.index` file; None if there is none. Raises `OSError`."""
        return self._index("index", OffsetIndex)

    @cached_property
    def time_index(self) -> TimeIndex | None:
        """The `.timeindex` file; None if there is none. Raises `OSError`."""
        return self._index("timeindex", TimeIndex)

    @cached_property
    def transaction_index(self) -> TransactionIndex | None:
        """The `.txnindex` file; None if there is none. Raises `OSError`."""
        return self._index("txnindex", TransactionIndex)

    @cached_property
    def producer_snapshot(self) -> ProducerSnapshot | None:
        """The `.snapshot` of the segment's base offset: the producers before it; None if there is none.

        Raises `OSError`, `DecodeError`.
        """
        data = _read(self.sibling_path("snapshot"))
        return None if data is None else read_snapshot(data)

    @cached_property
    def leader_epochs(self) -> list[EpochEntry] | None:
        """The partition's `leader-epoch-checkpoint`; None if there is none. Raises `OSError`, `Malformed`."""
        data = _read(self.path.with_name(EPOCHS))
        return None if data is None else read_leader_epochs(data)

    @cached_property
    def metadata(self) -> PartitionMetadata | None:
        """The partition's `partition.metadata`; None if there is none. Raises `OSError`, `Malformed`."""
        data = _read(self.path.with_name(METADATA))
        return None if data is None else read_metadata(data)

    # --- batches -------------------------------------------------------------------------------------------

    @overload
    def batches(
        self,
        *,
        on_error: Literal["raise", "skip"] = "raise",
        check_records: bool = True,
        start: int = 0,
        end: int | None = None,
    ) -> Batches[RecordBatch]: ...
    @overload
    def batches(
        self,
        *,
        on_error: Literal["report"],
        check_records: bool = True,
        start: int = 0,
        end: int | None = None,
    ) -> Batches[RecordBatch | UnreadableRange]: ...
    def batches(
        self,
        *,
        on_error: OnError = "raise",
        check_records: bool = True,
        start: int = 0,
        end: int | None = None,
    ) -> Batches[RecordBatch] | Batches[RecordBatch | UnreadableRange]:
        """The record batches, lazily, without copying; see `coordwire.records.batches` for the arguments.

        start, end: the bytes to read, from one batch's first to after another's last, as `cuts` gives them;
        by default all. The positions of batches and errors count in bytes from the file's start.
        """
        reader = self._format.batches(self._view[:end], on_error=on_error, check_records=check_records)
        reader.position = start
        return reader

    def to_arrow(
        self,
        *,
        columns: Sequence[str] | None = None,
        on_error: Literal["raise", "skip"] = "raise",
        skipped: list[UnreadableRange] | None = None,
    ) -> pyarrow.Table:
        """All records as one Arrow table; see `coordwire.records.arrow.iter_batches` for the arguments.

        What doesn't fit into memory at once is read with `iter_batches(segment.data, …)`, piece by piece.
        Raises as it does, and `CoordwireError` without pyarrow.
        """
        from coordwire.records import arrow

        form = arrow.schema(columns)
        import pyarrow

        source = self.batches(on_error=on_error) if self.is_kafka_07 else self._view
        parts = arrow.iter_batches(source, columns=columns, on_error=on_error, skipped=skipped)
        return pyarrow.Table.from_batches(parts, schema=form)

    def cuts(self, size: int) -> Iterator[tuple[int, int]]:
        """Ranges of about `size` bytes of the file, start and end, none of which ends within a batch.

        Reading each range with `batches(on_error="skip")` gives what reading all does. A range begins where
        the `.index` says, if a batch with the right checksum is there; else at such a batch after it, to
        which the batches' lengths lead, or after bytes that are none, the search for the next one. A log of
        Kafka 0.7 is one range.
        """
        if size < 1:
            raise ValueError(f"expected a size of at least 1 byte, got {size}")
        if self.is_kafka_07:
            yield 0, self.size
            return
        start = 0
        search = Search(self._view)
        while start < self.size:
            end = self._cut(search, start, start + size)
            yield start, end
            start = end

    def _cut(self, search: Search, start: int, target: int) -> int:
        """Where a batch begins, at `target` or after it, after the batch at `start`."""
        index = self.offset_index
        if index is not None:
            at = bisect_left(index, target, key=lambda entry: entry.position)
            for entry in index[at : at + 1] + index[max(at - 1, 0) : at]:
                if start < entry.position < 2 * target - start and search.sound_end(entry.position):
                    start = entry.position
                    break
        while start < self.size and (start < target or not search.sound_end(start)):
            try:
                step = search.size(start)
            except CorruptBatch:
                start = search.after(start, 0)
            else:
                start = start + step if step else self.size
        return start

    @overload
    def find(self, *, offset: int) -> RecordBatch | None: ...
    @overload
    def find(self, *, timestamp: int) -> Record | None: ...
    def find(self, *, offset: int | None = None, timestamp: int | None = None) -> RecordBatch | Record | None:
        """The batch or record at which a consumer that seeks would begin; None if that is after the end.

        offset: gives the first batch whose last offset is at or after it (compaction may have removed that
        offset). timestamp: gives the first record of that time (ms since 1970) or later. Batches with a wrong
        checksum are passed over. For a timestamp it raises what reading its batch does.
        """
        if (offset is None) == (timestamp is None):
            raise TypeError("find takes either an offset or a timestamp")
        if offset is not None:
            reader = self.batches(on_error="skip", check_records=False, start=self._start(offset))
            return next((batch for batch in reader if batch.last_offset >= offset), None)
        assert timestamp is not None
        start = self._time_start(timestamp)
        for batch in self.batches(on_error="skip", check_records=False, start=start):
            if batch.max_timestamp >= timestamp:
                for record in batch:
                    if record.timestamp >= timestamp:
                        return record
        return None

    def verify(self, *, check_records: bool = True, counts: SegmentCounts | None = None) -> Iterator[Fault]:
        """The faults of the segment and of the files beside it, lazily; none for a sound one.

        Bad bytes in the log, each range with its reason; batches out of order, or outside what the file's
        name and the indexes allow; entries of the indexes that differ from the log; files beside it that
        can't be read. check_records: False to compare the batches' checksums, and not read their records.
        counts: filled with what the walk counts. Raises `OSError` for a file beside it that the system
        refuses, and, after all faults, `CodecUnavailable` if batches with a right checksum couldn't be read
        because a codec's library is missing: these are not faults.
        """
        return verify(self, counts or SegmentCounts(), check_records=check_records)

    def _start(self, offset: int) -> int:
        """A position at or before the first batch that reaches `offset`."""
        entry = self.offset_index.lookup(offset) if self.offset_index is not None else None
        batch = self._sound_batch(entry.position) if entry is not None else None
        return batch.position if batch is not None and batch.last_offset <= offset else 0

    def _time_start(self, timestamp: int) -> int:
        """A position at or before the first record of that time or later."""
        entry = self.time_index.lookup(timestamp - 1) if self.time_index is not None else None
        batch = self.find(offset=entry.offset) if entry is not None else None
        is_sound = entry is not None and batch is not None and batch.max_timestamp == entry.timestamp
        return batch.position if is_sound and batch is not None else 0

    def _sound_batch(self, position: int) -> RecordBatch | None:
        """The batch at this byte; None if there is none, or if its checksum is wrong."""
        if not 0 <= position < self.size:
            return None
        try:
            size = batch_size(self._view, position)
            if not size:
                return None
            batch = next(self.batches(start=position, end=position + size))
            batch.check()
        except CorruptBatch:
            return None
        return batch


def _read(path: Path | None) -> bytes | None:
    try:
        return None if path is None else read_small(path)
    except FileNotFoundError:
        return None


# --- partition ---


def logs(folder: str | os.PathLike[str], *, suffixes: Collection[str] = ()) -> Iterator[Path]:
    """The segments in a folder, or in all folders of a broker's log folder: by folder, then by offset.

    suffixes: what may follow a segment's own name, as ".gz". Raises `OSError`.
    """
    with os.scandir(folder) as entries:
        listing = sorted(entries, key=lambda entry: entry.name)
    for entry in listing:
        suffix = next((ending for ending in suffixes if entry.name.endswith(ending)), "")
        plain = entry.name.removesuffix(suffix)
        name = file_name(plain)
        is_log = name is not None and plain == log_name(name.offset or 0)
        if (is_log or kafka_07_offset(plain) is not None) and entry.is_file():
            yield Path(entry.path)
    for entry in listing:
        if entry.is_dir(follow_symlinks=False):
            yield from logs(entry.path, suffixes=suffixes)


def producers_before(segment: Segment) -> Producers:
    """The producers as of a segment's base offset: of the newest snapshot at or before it, and what the
    segments after that say. None for a segment without a name. Raises `OSError`."""
    if segment.base_offset is None:
        return Producers()
    known, start = Producers(), -1
    paths: list[tuple[int, Path]] = []
    for path in segment.path.parent.iterdir():
        name = file_name(path.name)
        if name is None or name.offset is None or path.name != log_name(name.offset, name.kind):
            continue
        if name.kind == "log" and name.offset < segment.base_offset:
            paths.append((name.offset, path))
        if name.kind == "snapshot" and start < name.offset <= segment.base_offset:
            try:
                known, start = Producers(read_snapshot(read_small(path)).producer_entries), name.offset
            except DecodeError:  # an older one will do
                continue
    for offset, path in sorted(paths):
        if offset >= start:
            with Segment(path) as before:
                for batch in before.batches(on_error="skip", check_records=False):
                    known.add(batch)
    return known
