"""A partition's folder: its segments in order, and the producers as of one of them.

Rules: a folder's content is known from names alone; files that come or go (`.deleted`, `.cleaned`, `.swap`)
and KRaft's snapshots are not part of the log.
"""

from __future__ import annotations

__all__ = ["logs", "producers_before"]

import os
from collections.abc import Collection, Iterator
from pathlib import Path

from coordwire.errors import DecodeError
from coordwire.segments.names import file_name, kafka_07_offset, log_name
from coordwire.segments.producers import Producers
from coordwire.segments.segment import Segment, read_small
from coordwire.segments.state_files import read_snapshot


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
