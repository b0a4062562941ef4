"""The recovery of damaged segments: a clean copy, and all other bytes beside it in quarantine.

Strategy: one walk finds the whole batches and the bad ranges, `batch_selection` chooses the batches that make
a log, a second walk copies. Rules: the originals are only read. All bytes of a segment are either in its copy
or in its quarantine, whose manifest has their position and the reason. Nothing is overwritten; every file
appears whole under its name or not at all, the `.log` last; what an ended process may have left unfinished in
the folder is removed. `Segment.verify` finds nothing wrong with a copy.

A batch is whole if its checksum is right, its records can be read and their offsets rise within its own; also
inside the range that a bad batch claims, whatever its length (`ThoroughSearch`). A right checksum confirms
the whole range: batches inside it aren't looked for, even where the records can't be read. Where
`coordwire.limits` forbid to read the records, the checksum alone decides; under the same limits `verify`
reports such a batch as over them. Where a codec's library is missing, nothing is recovered. The work is
linear in the bytes, but for n log n comparisons of offsets.

A log of Kafka 0.7 is truncated before its first message that isn't valid, as that release's own recovery
does it: an offset is the byte where a message begins, so that what follows could only be kept under others.
"""

from __future__ import annotations

import json
import os
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from errno import EEXIST
from pathlib import Path
from typing import BinaryIO

from coordwire.errors import CorruptBatch, DecodeError, LimitExceeded, counted
from coordwire.files.staged import Staged, remove_stale
from coordwire.records import Batches, RecordBatch, UnreadableRange
from coordwire.records.resync import ThoroughSearch
from coordwire.segments.batch_selection import EPOCH, KEPT, FoundBatches, select_batches
from coordwire.segments.index_check import INTERVAL, rebuild
from coordwire.segments.names import file_name, log_name
from coordwire.segments.producers import Producers
from coordwire.segments.segment import Segment
from coordwire.segments.verify import read_records

_FURTHEST = (1 << 31) - 1
_CHUNK = 16 << 20

QUARANTINE, MANIFEST = ".quarantine", ".quarantine.jsonl"
"""What follows a segment's name: for its bad bytes, and for what is said of them."""

INDEXES = ("index", "timeindex", "txnindex")


@dataclass(slots=True)
class Recovered:
    """What became of one segment.

    source: the segment. log: its clean copy. batches, size: what is in it. ranges, bad_bytes: what is in the
    quarantine. files: all that was written, the copy and its indexes, and, where something was bad, the
    quarantine with its manifest.
    """

    source: Path
    log: Path
    batches: int
    size: int
    ranges: int
    bad_bytes: int
    files: list[Path] = field(default_factory=list)


class _Walk:
    """What a segment holds: its whole batches, as parallel arrays, and the ranges that hold none.

    fates: what becomes of the batches, once that is known.
    """

    def __init__(self, segment: Segment, progress: Callable[[Segment, int], None] | None) -> None:
        self.segment = segment
        self.starts, self.sizes = array("q"), array("q")
        self.batches = FoundBatches()
        self.fates = bytearray()
        self.unreadable: list[UnreadableRange] = []
        if segment.is_kafka_07:
            self._truncate(progress)
        else:
            self._find(progress)

    def _find(self, progress: Callable[[Segment, int], None] | None) -> None:
        """Look for whole batches in all of the segment."""
        segment, search = self.segment, ThoroughSearch(self.segment.data)
        reader: Batches[RecordBatch | UnreadableRange] = Batches(
            segment.data, "report", False, lambda _: search
        )
        for item in reader:
            unreadable = (
                item if isinstance(item, UnreadableRange) else self._add(item, item.position < search.claimed)
            )
            if unreadable is not None:
                self.unreadable.append(unreadable)
            if progress is not None:
                progress(segment, reader.position)
        if remaining := len(reader.remainder):
            self.unreadable.append(
                UnreadableRange(
                    reader.position, remaining, f"the file ends {counted(remaining, 'byte')} into a batch"
                )
            )

    def _truncate(self, progress: Callable[[Segment, int], None] | None) -> None:
        """Walk to the first message of Kafka 0.7 that isn't valid."""
        segment, reader = self.segment, self.segment.batches()
        try:
            for batch in reader:
                with suppress(LimitExceeded):
                    read_records(batch)
                self.starts.append(batch.position)
                self.sizes.append(batch.size)
                if progress is not None:
                    progress(segment, reader.position)
            reason = f"the file ends {counted(len(reader.remainder), 'byte')} into a message"
        except CorruptBatch as error:
            reason = str(error)
        self.fates = bytearray([KEPT]) * len(self.starts)
        end = self.starts[-1] + self.sizes[-1] if self.starts else 0
        if end < segment.size:
            self.unreadable.append(UnreadableRange(end, segment.size - end, reason))

    def _add(self, batch: RecordBatch, inner: bool) -> UnreadableRange | None:
        last, base = batch.last_offset, self.segment.base_offset or 0
        first = batch.base_offset if batch.magic == 2 else last
        try:
            _, reason = read_records(batch)
            if reason is None:
                first = batch.base_offset
                for _ in batch.control_records():
                    pass
        except LimitExceeded as error:
            # The transaction index needs what is inside a control batch.
            reason = str(error) if batch.is_control else None
        except CorruptBatch as error:
            reason = str(error)
        if reason is None and not base <= first <= last <= base + _FURTHEST:
            reason = f"offsets {first} to {last} in a segment that begins at {base}"
        if reason is not None:
            return UnreadableRange(batch.position, batch.size, reason)
        self.starts.append(batch.position)
        self.sizes.append(batch.size)
        self.batches.add(first, last, batch.partition_leader_epoch, inner)
        return None

    def raw(self, number: int) -> memoryview:
        """A batch's bytes."""
        return self.segment.data[self.starts[number] : self.starts[number] + self.sizes[number]]


def recover(
    paths: Sequence[str | os.PathLike[str]],
    out: str | os.PathLike[str],
    *,
    interval: int = INTERVAL,
    progress: Callable[[Segment, int], None] | None = None,
) -> Iterator[Recovered]:
    """Copy the whole batches of a partition's segments into a folder; yield a result for each segment.

    paths: `.log` files of one partition; a batch in several of them is kept once. Or `.kafka` files of Kafka
    0.7, each truncated before its first bad message; there are no indexes then. out: the folder, made where
    it is missing. Beside the copy are its indexes, for an `index.interval.bytes` of `interval`; and, where
    there are bad ranges, NAME.quarantine, with the bytes one after the other, and NAME.quarantine.jsonl, with
    a line for each range: {"file", "position", "length", "reason", "quarantinePosition"}. progress: gets a
    segment and the byte up to which it was read, batch by batch. Raises `OSError`; before anything is
    written, `FileExistsError` for a file that is there already, `ValueError` for two segments of one name and
    `CodecUnavailable` where a codec's library is missing.
    """
    with ExitStack() as stack:
        segments = [stack.enter_context(Segment(path)) for path in paths]
        segments.sort(key=lambda segment: (segment.base_offset or 0, segment.path.name))
        folder = Path(out)
        _refuse(folder, segments)
        walks = [_Walk(segment, progress) for segment in segments]
        with_offsets = [walk for walk in walks if not walk.segment.is_kafka_07]
        _choose(with_offsets)
        for walk, rejected in zip(with_offsets, _rejected_batches(with_offsets), strict=True):
            walk.unreadable += rejected
        producers = _producers(segments[0]) if segments else Producers()
        remove_stale(folder)
        for walk in walks:
            yield _write(walk, folder, interval, producers)


def _refuse(folder: Path, segments: list[Segment]) -> None:
    names: set[str] = set()
    for segment in segments:
        name = _copy_name(segment.path)
        if name in names:
            raise ValueError(f"two segments are called {name}")
        names.add(name)
        indexes = () if segment.is_kafka_07 else INDEXES
        for output in (name, name + QUARANTINE, name + MANIFEST, *(name[:-3] + kind for kind in indexes)):
            if os.path.lexists(folder / output):
                raise FileExistsError(EEXIST, os.strerror(EEXIST), str(folder / output))


def _copy_name(source: Path) -> str:
    """The name of the copy: without the suffix that a broker adds while the file comes or goes."""
    name = file_name(source.name)
    return log_name(name.offset) if name and name.kind == "log" and name.offset is not None else source.name


def _producers(segment: Segment) -> Producers:
    try:
        snapshot = segment.producer_snapshot
    except DecodeError:
        snapshot = None
    entries = snapshot.producer_entries if snapshot is not None else ()
    # A transaction that is open here began before the segment, and each producer has one.
    base = segment.base_offset or 0
    return Producers(
        {entry.producer_id: entry for entry in entries if entry.current_txn_first_offset < base}.values()
    )


# --- which batches to keep ---------------------------------------------------------------------------------


def _choose(walks: list[_Walk]) -> None:
    """Set the fates of each walk's batches."""
    batches = FoundBatches()
    for walk in walks:
        batches.extend(walk.batches)
    fates = select_batches(batches, (walks[0].segment.base_offset or 0) if walks else 0)
    start = 0
    for walk in walks:
        walk.fates = fates[start : start + len(walk.batches)]
        start += len(walk.batches)


def _rejected_batches(walks: list[_Walk]) -> Iterator[list[UnreadableRange]]:
    """For each walk the batches that aren't kept, with the reason."""
    places = [(walk, n) for walk in walks for n, fate in enumerate(walk.fates) if fate == KEPT]
    lasts = [walk.batches.lasts[n] for walk, n in places]
    for walk in walks:
        ranges = []
        for n, fate in enumerate(walk.fates):
            if fate == KEPT:
                continue
            first, last = walk.batches.firsts[n], walk.batches.lasts[n]
            if fate == EPOCH:
                reason = f"offsets {first} to {last} have leader epoch {walk.batches.epochs[n]}, out of order"
            else:
                at = bisect_left(lasts, first)
                clash = _clash(walk, n, *places[at]) if at < len(places) else ""
                reason = f"offsets {first} to {last} {clash or 'are out of order'}"
            ranges.append(UnreadableRange(walk.starts[n], walk.sizes[n], reason))
        yield ranges


def _clash(walk: _Walk, n: int, kept_walk: _Walk, m: int) -> str:
    """The reason why a batch is in conflict with a kept one; empty if it isn't."""
    if kept_walk.batches.firsts[m] > walk.batches.lasts[n]:
        return ""
    source = f"of {kept_walk.segment.path.name}" if kept_walk is not walk else "too"
    is_equal = walk.raw(n) == kept_walk.raw(m)
    return (
        f"are at byte {kept_walk.starts[m]} {source}, {'the same bytes' if is_equal else 'with other bytes'}"
    )


# --- writing -----------------------------------------------------------------------------------------------


def _write(walk: _Walk, folder: Path, interval: int, producers: Producers) -> Recovered:
    segment = walk.segment
    name = _copy_name(segment.path)
    walk.unreadable.sort()
    with Staged(folder) as files:
        if walk.unreadable:
            with files.new(name + QUARANTINE) as store, files.new(name + MANIFEST) as manifest:
                _quarantine(walk, segment.data, store, manifest)
        size = 0
        with files.new(name) as log:
            for start, end in _runs(walk):
                for at in range(start, end, _CHUNK):
                    log.write(segment.data[at : min(at + _CHUNK, end)])
                size += end - start
        if segment.base_offset is not None and size <= _FURTHEST and not segment.is_kafka_07:
            with Segment(files.path(name)) as copy:
                rebuilt = rebuild(copy.batches(), segment.base_offset, interval=interval, producers=producers)
            for kind, data in rebuilt.files().items():
                with files.new(log_name(segment.base_offset, kind)) as index:
                    index.write(data)
        written = files.commit(last=name)
    bad_bytes = sum(unreadable.length for unreadable in walk.unreadable)
    batches = walk.fates.count(KEPT)
    return Recovered(segment.path, folder / name, batches, size, len(walk.unreadable), bad_bytes, written)


def _runs(walk: _Walk) -> Iterator[tuple[int, int]]:
    """The ranges of the kept batches, adjacent ones as one."""
    start = end = 0
    for fate, at, size in zip(walk.fates, walk.starts, walk.sizes, strict=True):
        if fate == KEPT and at == end:
            end += size
        elif fate == KEPT:
            yield start, end
            start, end = at, at + size
    yield start, end


def _quarantine(walk: _Walk, data: memoryview, store: BinaryIO, manifest: BinaryIO) -> None:
    quarantine_position = 0
    for unreadable in walk.unreadable:
        position, length = unreadable.position, unreadable.length
        for at in range(position, position + length, _CHUNK):
            store.write(data[at : min(at + _CHUNK, position + length)])
        line = {
            "file": walk.segment.path.name, "position": position, "length": length,
            "reason": unreadable.reason, "quarantinePosition": quarantine_position,
        }  # fmt: skip
        manifest.write(json.dumps(line, separators=(",", ":")).encode() + b"\n")
        quarantine_position += length
