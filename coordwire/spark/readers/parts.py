"""Files to parts: what one task reads.

Strategy: a local segment larger than `splitSize` is cut into ranges of bytes; a part owns the batches that
begin in its range, and its worker finds the first of them (see `segments`). Small files go together until
they make up a part. Captures are cut at file ends only; the files of one rotated capture are one part, as
connections run across them. Rules: a plan is a function of the listing and the options alone; ranges of one
file join without a gap, so that every batch has one owner, whatever the size.
"""

from __future__ import annotations

__all__ = ["Part", "capture_parts", "grouped", "segment_parts"]

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from coordwire.capture.rotation import rotated
from coordwire.spark.options import MEBI, Options
from coordwire.spark.readers.files import File, Kind, is_uri
from coordwire.spark.readers.origins import Origins

OPENING = MEBI
"""What opening a file counts for, in bytes."""

LEAST_GROUP, MOST_GROUPS = 4 * MEBI, 64
"""Small files are grouped to this size at least, while there are more parts than that."""


@dataclass(frozen=True, slots=True)
class Part:
    """A range of one file, or all of the files of a rotated capture.

    kind: segment or capture. start, end: bytes; what begins there is this part's. size: the file's; of
    captures all files'.
    rest: the rotated capture's further files, in order. broker, cluster_id, state: see `FileOrigin`.
    """

    kind: Kind
    path: str
    size: int
    start: int
    end: int
    topic: str | None = None
    partition: int | None = None
    index: str | None = None
    rest: tuple[str, ...] = ()
    trouble: str = ""
    broker: str | None = None
    cluster_id: str | None = None
    state: str | None = None


def segment_parts(files: Iterable[File], options: Options, origins: Origins | None = None) -> list[Part]:
    """The parts of these segments: of the topics and partitions that are wanted.

    origins: of all files that were listed; left out, these are all.
    """
    parts = []
    files = list(files)
    origins = origins or Origins(files)
    for file in files:
        origin = origins.of(file)
        if not options.wants(origin.topic, origin.partition):
            continue
        step = max(file.size, 1) if is_uri(file.path) else options.split_size
        for start in range(0, max(file.size, 1), step):
            end = min(start + step, file.size)
            parts.append(
                Part("segment", file.path, file.size, start, end, origin.topic, origin.partition, file.index,
                     trouble=file.trouble, broker=origin.broker, cluster_id=origin.cluster_id,
                     state=origin.state)
            )  # fmt: skip
    return parts


def capture_parts(files: Iterable[File], options: Options) -> list[Part]:
    """The parts of these captures: one each, or one for the files of a rotated one."""
    parts = []
    files = list(files)
    sound, others = [file for file in files if not file.trouble], [file for file in files if file.trouble]
    joined = rotated(sound, lambda file: file.path)
    chains = joined if options.join_rotated else [[file] for file in sound]
    for chain in [*chains, *([file] for file in others)]:
        size = sum(file.size for file in chain)
        rest = tuple(file.path for file in chain[1:])
        parts.append(Part("capture", chain[0].path, size, 0, size, rest=rest, trouble=chain[0].trouble))
    return parts


def grouped(parts: Sequence[Part], options: Options) -> list[tuple[Part, ...]]:
    """Parts for one task each: neighbours together until they are of a fair size."""
    total = sum(part.end - part.start + OPENING for part in parts)
    most = min(options.split_size, max(LEAST_GROUP, total // MOST_GROUPS))
    groups: list[tuple[Part, ...]] = []
    group: list[Part] = []
    used = 0
    for part in parts:
        cost = part.end - part.start + (OPENING if options.split_size >= OPENING else 0)
        if group and used + cost > most:
            groups.append(tuple(group))
            group, used = [], 0
        group.append(part)
        used += cost
    if group:
        groups.append(tuple(group))
    return groups
