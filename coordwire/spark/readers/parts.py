"""Files to parts: what one task reads.

Strategy: a local segment larger than `splitSize` is cut into ranges of bytes; a part owns the batches that
begin in its range, and its worker finds the first of them (see `segments`). Small files go together until
they make up a part. Captures are cut at file ends only; the files of one rotated capture are one part, as
connections run across them. Rules: a plan is a function of the listing and the options alone; ranges of one
file join without a gap, so that every batch has one owner, whatever the size.
"""

from __future__ import annotations

__all__ = ["Part", "capture_parts", "grouped", "rotated_chains", "segment_parts"]

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from coordwire.spark.options import MEBI, Options
from coordwire.spark.readers.files import File, Kind, is_uri

OPENING = MEBI
"""What opening a file counts for, in bytes."""

LEAST_GROUP, MOST_GROUPS = 4 * MEBI, 64
"""Small files are grouped to this size at least, while there are more parts than that."""

# tcpdump -C: x.pcap, x.pcap1, x.pcap2; dumpcap: x_00001_20240131120000.pcapng
_TCPDUMP = re.compile(r"(?P<stem>.+\.(?:pcap|pcapng|cap))(?P<number>\d*)")
_DUMPCAP = re.compile(r"(?P<stem>.+)_(?P<number>\d{5})_\d{14}(?P<end>\.\w+)")


@dataclass(frozen=True, slots=True)
class Part:
    """A range of one file, or all of the files of a rotated capture.

    kind: segment or capture. start, end: bytes; what begins there is this part's. size: the file's; of
    captures all files'.
    rest: the rotated capture's further files, in order.
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


def segment_parts(files: Iterable[File], options: Options) -> list[Part]:
    """The parts of these segments: of the topics and partitions that are wanted."""
    parts = []
    for file in files:
        if not options.wants(file.topic, file.partition):
            continue
        step = max(file.size, 1) if is_uri(file.path) else options.split_size
        for start in range(0, max(file.size, 1), step):
            end = min(start + step, file.size)
            parts.append(
                Part("segment", file.path, file.size, start, end, file.topic, file.partition, file.index,
                     trouble=file.trouble)
            )  # fmt: skip
    return parts


def capture_parts(files: Iterable[File], options: Options) -> list[Part]:
    """The parts of these captures: one each, or one for the files of a rotated one."""
    parts = []
    files = list(files)
    sound, others = [file for file in files if not file.trouble], [file for file in files if file.trouble]
    by_path = {file.path: file for file in sound}
    chains = [[path] for path in by_path] if not options.join_rotated else rotated_chains(by_path)
    for chain in [*([by_path[path] for path in chain] for chain in chains), *([file] for file in others)]:
        size = sum(file.size for file in chain)
        rest = tuple(file.path for file in chain[1:])
        parts.append(Part("capture", chain[0].path, size, 0, size, rest=rest, trouble=chain[0].trouble))
    return parts


def rotated_chains(paths: Iterable[str]) -> list[list[str]]:
    """Files of one rotated capture together and in order, by the names that tcpdump and dumpcap give them;
    any other by itself."""
    chains: dict[tuple[str, ...], list[tuple[int, str]]] = {}
    for path in paths:
        found = _DUMPCAP.fullmatch(path) or _TCPDUMP.fullmatch(path)
        if found is None:
            chains[path, "", ""] = [(0, path)]
        else:
            key = (found["stem"], found.groupdict().get("end") or "", "rotated")
            chains.setdefault(key, []).append((int(found["number"] or 0), path))
    return [[path for _, path in sorted(chain)] for chain in chains.values()]


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
