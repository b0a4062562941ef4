"""Files to parts, each of which one task reads.

Strategy: a local segment larger than `splitSize` is cut into ranges of bytes; a part owns the batches that
begin in its range, and its worker finds the first of them (see `segment_reader`). Small files go together
until they make up a part. A capture, or all files of a rotated one, as connections run across them, is one
part or has a share for about each `splitSize` bytes: each task goes through the whole capture, since only
that shows which requests and responses belong together, where frames begin after a loss and what a frame's
number is, but has the rows of its own share alone (`DealtFrames`). Rules: a plan is a function of the listing
and the options alone; ranges of one file join without a gap, so that every batch has one owner, whatever the
size; so has every frame of a capture.
"""

from __future__ import annotations

__all__ = [
    "CaptureRun", "CapturedFile", "CopiedSegment", "DealtFrames", "LagInputs", "LogCopy", "Part",
    "capture_parts", "grouped", "segment_parts",
]  # fmt: skip

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from coordwire.capture.entries import ConnectionSign, Entry, FrameEntry
from coordwire.capture.rotated_names import FirstPacket, rotated
from coordwire.segments.names import log_format
from coordwire.tables.options import MEBI, Options
from coordwire.tables.readers.file_origins import Origins
from coordwire.tables.readers.files import File, Kind, first_captured
from coordwire.tables.stores import is_there, is_uri

OPENING = MEBI
"""What opening a file counts for, in bytes."""

LEAST_GROUP, MOST_GROUPS = 4 * MEBI, 64
"""Small files are grouped to this size at least, while there are more parts than that."""


MOST_SHARES = 16
"""Tasks that share one capture at most: each goes through all of its packets; more would do little else."""

STRIPE = 256 << 10
"""Bytes of a capture's frames that go to one share before the next has its turn."""

FRAME = 256
"""What a frame counts on top of its bytes: about as much work as so many bytes of a long one."""


class CopiedSegment(NamedTuple):
    """A segment. offset: of its name; offset_index: where its index would be."""

    path: str
    size: int
    offset: int
    offset_index: str | None


class LogCopy(NamedTuple):
    """A broker's copy of a partition: the segments of the offsets topic, of any other topic the last one."""

    cluster_id: str | None
    topic: str
    partition: int
    files: tuple[CopiedSegment, ...]


class LagInputs(NamedTuple):
    """commits: the copies of the offsets topic's partitions; ends: of all others."""

    commits: tuple[LogCopy, ...]
    ends: tuple[LogCopy, ...]

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(file.path for copy in (*self.commits, *self.ends) for file in copy.files)


class CapturedFile(NamedTuple):
    """A file of a capture, as it was listed. time_ns, digest: its first packet's, 0 and "" without one.
    start: how many of its bytes are other units'."""

    path: str
    time_ns: int
    digest: str
    start: int
    size: int
    modified: int


@dataclass(frozen=True, slots=True)
class Part:
    """A range of one file; a capture, or all of the files of a rotated one, or a share of its frames.

    kind: segment or capture. start, end: bytes; what begins there is this part's; of a capture's share they
    only say how much work it is. size: the file's; of captures all files'.
    further_paths: the rotated capture's further files, in order. captured: of a capture that is read for
    tables all that are read, also those before its own, whose rows other units have.
    broker, cluster_id, state: see `FileOrigin`.
    modified: the file's time, as it was listed.
    share: of the capture's frames, from 0; shares: how many there are.
    lag: what lag is read from, for a part that all of it is read by.
    stage: of a chain of rotated files, "settled" for those whose rows stay as they are when it grows, "open"
    for the last file, with the rows that only the end shows; after: the unit that the files before are of,
    whose checkpoint the part goes on from; "" where there are none; following: of settled files, the last
    file, which is read with them where they end within a packet.
    """

    kind: Kind
    path: str
    size: int
    start: int
    end: int
    topic: str | None = None
    partition: int | None = None
    index: str | None = None
    further_paths: tuple[str, ...] = ()
    trouble: str = ""
    broker: str | None = None
    cluster_id: str | None = None
    state: str | None = None
    modified: int = 0
    share: int = 0
    shares: int = 1
    lag: LagInputs | None = None
    captured: tuple[CapturedFile, ...] = ()
    stage: str = ""
    after: str = ""
    following: str = ""

    @property
    def before(self) -> tuple[str, ...]:
        """The files before its own."""
        own = set(self.paths)
        return tuple(file.path for file in self.captured if file.path not in own)

    @property
    def paths(self) -> tuple[str, ...]:
        """Its files."""
        return self.path, *self.further_paths

    @property
    def stream_paths(self) -> tuple[str, ...]:
        """The files to read, in order."""
        return tuple(file.path for file in self.captured) or self.paths

    @property
    def known(self) -> dict[str, float]:
        """How many bytes of files, decompressed, other units have the rows of."""
        own = set(self.paths)
        return {
            file.path: file.start if file.path in own else math.inf
            for file in self.captured
            if file.start or file.path not in own
        }

    @property
    def starts(self) -> list[int]:
        """From where on the rows of its files are its own, where that isn't their beginning."""
        own = set(self.paths)
        return [file.start for file in self.captured if file.start and file.path in own]


class CaptureRun(NamedTuple):
    """Files of a capture that are read together. captured: these and those before them, for the unit's
    note. after: the unit whose checkpoint they go on from; grows: whether files may follow them."""

    files: Sequence[File]
    captured: Sequence[CapturedFile] = ()
    after: str = ""
    grows: bool = False

    @property
    def size(self) -> int:
        """Bytes of the files, without those that were read before."""
        if not self.captured:
            return sum(file.size for file in self.files)
        return sum(max(file.size - file.start, 0) for file in self.captured)


def segment_parts(files: Iterable[File], options: Options, origins: Origins) -> list[Part]:
    """The parts of these segments: of the topics and partitions that are wanted.

    origins: of all files that were listed.
    """
    parts = []
    for file in files:
        origin = origins.of(file)
        if not options.wants(origin.topic, origin.partition):
            continue
        # Without an index each part would walk a store's object from its start, at a request a header.
        alone = file.size > options.split_size and is_uri(file.path) and not _has_index(file, origins)
        is_one = alone or log_format(file.name).is_kafka_07  # which has no index
        step = max(file.size, 1) if is_one else options.split_size
        for start in range(0, max(file.size, 1), step):
            end = min(start + step, file.size)
            parts.append(
                Part("segment", file.path, file.size, start, end, origin.topic, origin.partition, file.index,
                     trouble=file.trouble, broker=origin.broker, cluster_id=origin.cluster_id,
                     state=origin.state, modified=file.modified)
            )  # fmt: skip
    return parts


def _has_index(file: File, origins: Origins) -> bool:
    """Whether a store has the index of a segment."""
    if file.index is None or file.index in origins.indexes:
        return file.index is not None
    return file.named and is_there(file.index)


def whole_capture(files: Sequence[File]) -> list[CaptureRun]:
    """All files of a capture."""
    return [CaptureRun(files)]


def capture_parts(
    files: Iterable[File],
    options: Options,
    *,
    shared: bool = True,
    stories: bool = False,
    first: Callable[[File], FirstPacket | None] = first_captured,
    runs: Callable[[Sequence[File]], Iterable[CaptureRun]] = whole_capture,
) -> list[Part]:
    """The parts of these captures: one each, or one for the files of a rotated one; of large ones shares.

    shared: whether a capture may be read by several tasks; stories: whether one of them makes the stories of
    groups. first: the first packet of a file; runs: what of a capture's files is to be read.
    """
    parts, alone = [], list(files)
    chains: list[list[File]] = []
    if options.join_rotated:
        readable = [file for file in alone if not file.trouble]
        chains = rotated(readable, lambda file: file.path, first)
        alone = [file for file in alone if file.trouble]
    for run in [run for chain in [*chains, *([file] for file in alone)] for run in runs(chain)]:
        if run.grows:
            settled_size = sum(file.size for file in run.files[:-1])
            parts += growing_parts(run, shares_of(settled_size, options.split_size, stories=stories))
            continue
        size = run.size
        further_paths = tuple(file.path for file in run.files[1:])
        file = run.files[0]
        count = shares_of(size, options.split_size, stories=stories) if shared and not file.trouble else 1
        for share in range(count):
            start, end = share * size // count, (share + 1) * size // count
            parts.append(
                Part("capture", file.path, size, start, end, further_paths=further_paths,
                     trouble=file.trouble, share=share, shares=count, captured=tuple(run.captured))
            )  # fmt: skip
    return parts


def growing_parts(run: CaptureRun, count: int) -> list[Part]:
    """The parts of a chain that may grow: its files but the last, if they are not other units', in so many
    shares, and the last file, after the first share, whose reader goes on to it."""
    *settled, last = run.files
    parts: list[Part] = []
    before, own = run.captured[: -len(run.files)], run.captured[-len(run.files) :]
    if settled:
        size = sum(file.size for file in settled)
        parts = [
            Part("capture", settled[0].path, size, share * size // count, (share + 1) * size // count,
                 further_paths=tuple(file.path for file in settled[1:]), share=share, shares=count,
                 captured=(*before, *own[:-1]), stage="settled", after=run.after, following=last.path)
            for share in range(count)
        ]  # fmt: skip
    known = (file._replace(start=file.size) for file in own[:-1])
    last_part = Part(
        "capture", last.path, last.size, 0, last.size, captured=(*before, *known, own[-1]), stage="open",
        after="" if settled else run.after,
    )  # fmt: skip
    return [*parts[:1], last_part, *parts[1:]]


def shares_of(size: int, split_size: int, *, stories: bool = False) -> int:
    """How many shares a capture of so many bytes has: a function of its size alone, whatever reads it.

    The stories of groups take one task longer than the rows of all frames take another: with stories a
    capture has two shares at most, and two already where it is half as large.
    """
    if stories:
        return 2 if size and size >= split_size // 2 else 1
    return min(MOST_SHARES, max(1, (size + split_size // 2) // split_size))


class DealtFrames:
    """One share of a capture: its frames come in stripes of about `STRIPE` bytes, one share after the other,
    in the order of their numbers, so that all shares cost the same, whatever the connections. All else is in
    the first share.

    index: from 0. stories: whether the reader of the first share makes the stories of groups, for which it
    reads all frames: its share has none then, if there are others.
    """

    def __init__(self, index: int, count: int, *, stories: bool = False) -> None:
        if not 0 <= index < count:
            raise ValueError(f"expected a share from 0 to {count - 1}, got {index}")
        self._is_first = index == 0
        skipped = 1 if stories and count > 1 else 0
        self._turns = count - skipped
        self._own_turn = index - skipped
        self._turn = 0
        self._remaining = STRIPE

    def own(self, entries: Iterable[Entry | ConnectionSign]) -> list[Entry | ConnectionSign]:
        """Of the capture's next entries those of the share."""
        own: list[Entry | ConnectionSign] = []
        remaining, is_own = self._remaining, self._turn == self._own_turn
        for entry in entries:
            if not isinstance(entry, FrameEntry):
                if self._is_first:
                    own.append(entry)
                continue
            if is_own:
                own.append(entry)
            remaining -= FRAME + len(entry.body)
            if remaining <= 0:
                turns = -remaining // STRIPE + 1
                remaining += turns * STRIPE
                self._turn = (self._turn + turns) % self._turns
                is_own = self._turn == self._own_turn
        self._remaining = remaining
        return own


def grouped(parts: Sequence[Part], options: Options) -> list[tuple[Part, ...]]:
    """Parts for one task each: neighbours together until they are of a fair size."""
    total = sum(part.end - part.start + OPENING for part in parts)
    most = min(options.split_size, max(LEAST_GROUP, total // MOST_GROUPS))
    opening = OPENING if options.split_size >= OPENING else 0
    groups: list[list[Part]] = []
    used = most
    for part in parts:
        cost = part.end - part.start + opening
        if not groups or used + cost > most:
            groups.append([])
            used = 0
        groups[-1].append(part)
        used += cost
    return list(map(tuple, groups))
