"""Saving what is whole: a clean copy of segments, and the rest beside it, byte for byte.

Strategy: one walk finds the whole batches and the bad ranges; of the batches, the longest run whose offsets
rise is kept (Kafka can't serve any other), so that one wrong offset, which no checksum covers, costs one
batch; a second walk copies. Rules: the originals are only read. All bytes of a segment are either in its copy
or in its quarantine, whose manifest says where they stood and why they were put there. Nothing is
overwritten; every file appears whole under its name or not at all, the `.log` last.

A batch is whole if its checksum is right and its records can be read. Where a codec's library is missing, or
`coordwire.limits` forbid to look inside, the checksum alone decides.
"""

from __future__ import annotations

__all__ = ["Recovered", "recover"]

import json
import os
from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from errno import EEXIST
from itertools import islice
from operator import gt
from pathlib import Path
from typing import BinaryIO

from coordwire.errors import CodecUnavailable, CorruptBatch, DecodeError, LimitExceeded
from coordwire.records import BadRange, RecordBatch
from coordwire.segments.names import file_name, log_name
from coordwire.segments.producers import Producers
from coordwire.segments.rebuilding import INTERVAL, rebuild
from coordwire.segments.segment import Segment
from coordwire.segments.writing import Staged

_FURTHEST = (1 << 31) - 1
_CHUNK = 16 << 20

QUARANTINE, MANIFEST = ".quarantine", ".quarantine.jsonl"
"""What stands behind a segment's name: for its bad bytes, and for what is said of them."""

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
    """What a segment holds: its whole batches, as parallel arrays, and the ranges that are none."""

    def __init__(self, segment: Segment) -> None:
        self.segment = segment
        self.starts, self.sizes, self.firsts, self.lasts = (array("q") for _ in range(4))
        reader = segment.batches(on_error="report", check_records=False)
        self.bad: list[BadRange] = []
        for found in reader:
            bad = found if isinstance(found, BadRange) else self._add(found)
            if bad is not None:
                self.bad.append(bad)
        if left := len(reader.remainder):
            self.bad.append(BadRange(reader.position, left, f"the file ends {left} bytes into a batch"))

    def _add(self, batch: RecordBatch) -> BadRange | None:
        first, last, base = batch.last_offset, batch.last_offset, self.segment.base_offset or 0
        try:
            batch.verify()
            first = batch.base_offset
            for _ in batch.control_records():
                pass
        except (LimitExceeded, CodecUnavailable) as error:
            if batch.is_control:  # the transaction index needs what is inside
                return BadRange(batch.offset, batch.size, str(error))
            first = batch.base_offset if batch.magic == 2 else last
        except CorruptBatch as error:
            return BadRange(batch.offset, batch.size, str(error))
        if not base <= first <= last <= base + _FURTHEST:
            reason = f"offsets {first} to {last} in a segment that begins at {base}"
            return BadRange(batch.offset, batch.size, reason)
        self.starts.append(batch.offset)
        self.sizes.append(batch.size)
        self.firsts.append(first)
        self.lasts.append(last)
        return None

    def raw(self, number: int) -> memoryview:
        """A batch's bytes."""
        return self.segment.data[self.starts[number] : self.starts[number] + self.sizes[number]]


def recover(
    paths: Sequence[str | os.PathLike[str]], out: str | os.PathLike[str], *, interval: int = INTERVAL
) -> Iterator[Recovered]:
    """Copy what is whole of a partition's segments into a folder; what became of each, one by one.

    paths: `.log` files of one partition; what stands in several of them is kept once.
    out: the folder, made if need be. Beside the copy stand its indexes, for an `index.interval.bytes` of
    `interval`; and, where something was bad, NAME.quarantine, with the bytes one behind the other, and
    NAME.quarantine.jsonl, with a line for each range: {"file", "position", "length", "reason",
    "quarantinePosition"}. Raises `OSError`; before anything is written, `FileExistsError` for a file that is
    there already and `ValueError` for two segments of one name.
    """
    with ExitStack() as stack:
        segments = [stack.enter_context(Segment(path)) for path in paths]
        segments.sort(key=lambda segment: (segment.base_offset or 0, segment.path.name))
        folder = Path(out)
        _refuse(folder, [segment.path for segment in segments])
        walks = [_Walk(segment) for segment in segments]
        kept = _rising(walks)
        producers = _producers(segments[0]) if segments else Producers()
        for walk, keep, bad in zip(walks, kept, _outside(walks, kept), strict=True):
            walk.bad += bad
            yield _write(walk, keep, folder, interval, producers)


def _refuse(folder: Path, sources: list[Path]) -> None:
    names = [_copy_name(source) for source in sources]
    for number, name in enumerate(names):
        if name in names[:number]:
            raise ValueError(f"two segments are called {name}")
        for taken in (name, name + QUARANTINE, name + MANIFEST, *(name[:-3] + kind for kind in INDEXES)):
            if (folder / taken).exists():
                raise FileExistsError(EEXIST, os.strerror(EEXIST), str(folder / taken))


def _copy_name(source: Path) -> str:
    """The name of the copy: without what a broker puts behind it while the file comes or goes."""
    name = file_name(source.name)
    return log_name(name.offset) if name and name.kind == "log" and name.offset is not None else source.name


def _producers(segment: Segment) -> Producers:
    try:
        snapshot = segment.producer_snapshot
    except DecodeError:
        snapshot = None
    return Producers(snapshot.producer_entries if snapshot is not None else ())


# --- which batches to keep ---------------------------------------------------------------------------------


def _rising(walks: list[_Walk]) -> list[bytearray]:
    """Flags: which batches of each walk are in the longest run of batches whose offsets rise."""
    flags = [bytearray(b"\1") * len(walk.starts) for walk in walks]
    firsts, lasts = _joined(walks)
    if all(map(gt, islice(firsts, 1, None), lasts)):
        return flags
    ends: list[int] = []  # of the run of each length that ends lowest, its last offset …
    tails: list[int] = []  # … and its last batch
    before = array("q", bytes(8 * len(firsts)))
    for number, (first, last) in enumerate(zip(firsts, lasts, strict=True)):
        length = bisect_left(ends, first)
        before[number] = tails[length - 1] if length else -1
        if length == len(ends):
            ends.append(last)
            tails.append(number)
        elif last < ends[length]:
            ends[length], tails[length] = last, number
    line = array("q")
    at = tails[-1]
    while at >= 0:
        line.append(at)
        at = before[at]
    line.reverse()
    _prefer_joined(line, firsts, lasts, (walks[0].segment.base_offset or 0) - 1)
    chosen = bytearray(len(firsts))
    for at in line:
        chosen[at] = 1
    done = 0
    for flag in flags:
        flag[:] = chosen[done : done + len(flag)]
        done += len(flag)
    return flags


def _prefer_joined(line: array[int], firsts: array[int], lasts: array[int], start: int) -> None:
    """Where either of two batches could be in the line, take the one that leaves the fewer gaps.

    Of a batch and one whose base offset was damaged, that is the former.
    """

    def fit(number: int, place: int) -> int:
        """How many neighbours a batch would join at a place of the line; -1 if it doesn't fit between."""
        low = lasts[line[place - 1]] if place else start
        high = firsts[line[place + 1]] if place + 1 < len(line) else None
        first, last = firsts[number], lasts[number]
        if first <= low or (high is not None and last >= high):
            return -1
        return (first == low + 1) + (high is not None and last + 1 == high)

    for number in range(len(firsts)):
        after = bisect_left(line, number)
        if after < len(line) and line[after] == number:
            continue
        for place in (after - 1, after):
            if 0 <= place < len(line) and fit(number, place) > fit(line[place], place):
                line[place] = number
                break


def _joined(walks: list[_Walk]) -> tuple[array[int], array[int]]:
    firsts, lasts = array("q"), array("q")
    for walk in walks:
        firsts += walk.firsts
        lasts += walk.lasts
    return firsts, lasts


def _outside(walks: list[_Walk], kept: list[bytearray]) -> Iterator[list[BadRange]]:
    """For each walk the batches that aren't kept, with what stands in their way."""
    if all(map(all, kept)):
        yield from ([] for _ in walks)
        return
    places = [(walk, n) for walk, keep in zip(walks, kept, strict=True) for n in range(len(keep)) if keep[n]]
    lasts = [walk.lasts[n] for walk, n in places]
    for walk, keep in zip(walks, kept, strict=True):
        bad = []
        for n in range(len(keep)):
            if not keep[n]:
                at = bisect_left(lasts, walk.firsts[n])
                reason = _clash(walk, n, *places[at]) if at < len(places) else ""
                reason = f"offsets {walk.firsts[n]} to {walk.lasts[n]} {reason or 'stand out of order'}"
                bad.append(BadRange(walk.starts[n], walk.sizes[n], reason))
        yield bad


def _clash(walk: _Walk, n: int, other: _Walk, m: int) -> str:
    """How a batch gets in the way of one that is kept; nothing if it doesn't."""
    if other.firsts[m] > walk.lasts[n]:
        return ""
    where = f"of {other.segment.path.name}" if other is not walk else "too"
    same = walk.raw(n) == other.raw(m)
    return f"stand at byte {other.starts[m]} {where}, {'the same bytes' if same else 'with other bytes'}"


# --- writing -----------------------------------------------------------------------------------------------


def _write(walk: _Walk, keep: bytearray, folder: Path, interval: int, producers: Producers) -> Recovered:
    segment = walk.segment
    name = _copy_name(segment.path)
    walk.bad.sort()
    with Staged(folder) as files:
        if walk.bad:
            with files.new(name + QUARANTINE) as store, files.new(name + MANIFEST) as manifest:
                _quarantine(walk, segment.data, store, manifest)
        size = 0
        with files.new(name) as log:
            for start, end in _runs(walk, keep):
                for at in range(start, end, _CHUNK):
                    log.write(segment.data[at : min(at + _CHUNK, end)])
                size += end - start
        if segment.base_offset is not None and size <= _FURTHEST:
            with Segment(files.path(name)) as copy:
                made = rebuild(copy.batches(), segment.base_offset, interval=interval, producers=producers)
            for kind, data in made.files().items():
                with files.new(log_name(segment.base_offset, kind)) as index:
                    index.write(data)
        written = files.commit(last=name)
    bad_bytes = sum(bad.length for bad in walk.bad)
    return Recovered(segment.path, folder / name, sum(keep), size, len(walk.bad), bad_bytes, written)


def _runs(walk: _Walk, keep: bytearray) -> Iterator[tuple[int, int]]:
    """The kept batches' bytes, those that stand together as one range."""
    start = end = 0
    for flag, at, size in zip(keep, walk.starts, walk.sizes, strict=True):
        if flag and at == end:
            end += size
        elif flag:
            yield start, end
            start, end = at, at + size
    yield start, end


def _quarantine(walk: _Walk, data: memoryview, store: BinaryIO, manifest: BinaryIO) -> None:
    done = 0
    for position, length, reason in walk.bad:
        for at in range(position, position + length, _CHUNK):
            store.write(data[at : min(at + _CHUNK, position + length)])
        line = {
            "file": walk.segment.path.name, "position": position, "length": length, "reason": reason,
            "quarantinePosition": done,
        }  # fmt: skip
        manifest.write(json.dumps(line, separators=(",", ":")).encode() + b"\n")
        done += length
