"""Which files of a growing folder are new: a stream's progress, and the decisions on each listing.

Strategy: an offset holds what was read: 18 bytes a file (96 bits of the hash of its path, and its size),
whatever the times of files say. An offset also names the files of its own micro-batch, with their sizes, so
that a batch that is run again reads exactly the same, without a listing. Rules: a path is read once; renamed
as brokers do (`.deleted`, `.swap`, `-future`), it is the same path. A segment that grew is read from where it
ended. What changed otherwise is not read again but reported: as rows of quarantine, in failfast mode as an
error.

How it scales: 24 characters a file in each offset, 2.4 MB for 100,000 files; they are kept while the file is
there, and of files that are gone for the last `KEPT_GONE`. Spark keeps the last 100 offsets in the checkpoint
and in memory (`spark.sql.streaming.minBatchesToRetain`, `spark.sql.streaming.numRecentProgressUpdates`).
"""

from __future__ import annotations

__all__ = [
    "Arrival", "ReadFiles", "arrivals_between", "initial_offset", "next_offset", "read_between",
]  # fmt: skip

import json
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from coordwire.errors import CoordwireError
from coordwire.segments.names import live_path
from coordwire.tables.readers.files import File

VERSION = 2
HASH, SIZE = 12, 6
KEPT_GONE = 100_000
"""How many files that are gone are remembered, in case they come back."""

StreamOffset = dict[str, Any]
ReadFiles = dict[bytes, int]
"""Bytes read of each file, by the hash of its path, in the order of reading."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """A file of a micro-batch, with the size that it had. read: the bytes that earlier batches read."""

    file: File
    read: int = 0

    @property
    def grown(self) -> bool:
        return 0 < self.read < self.file.size and self.file.kind() == "segment"

    @property
    def change(self) -> str | None:
        """Why it isn't read, though it is another than it was."""
        if not self.read or self.grown:
            return None
        return f"it had {self.read} bytes when it was read and has {self.file.size} now; it is not read again"


def initial_offset() -> StreamOffset:
    """Where a stream starts: nothing is read."""
    return _offset({}, [], None)


def next_offset(
    start: StreamOffset,
    files: Iterable[File],
    kinds: Iterable[str],
    *,
    most: int | None = None,
    remembered: Mapping[bytes, int] | None = None,
) -> StreamOffset:
    """The offset after what there is to read of a listing; `start` itself if there is nothing.

    kinds: of files that the source reads. most: files in one micro-batch. remembered: what was read beside
    what `start` says. Raises `CoordwireError` for an offset of another format.
    """
    files_by_key = _by_path(files)
    state = _decoded(start)
    for key, size in (remembered or {}).items():
        state.setdefault(key, size)
    arrivals = [
        Arrival(file, state.get(key, 0))
        for key, file in files_by_key.items()
        if (state.get(key) != file.size if file.size else file.trouble and key not in state)
    ]
    selected_kinds = set(kinds)
    arrivals = [arrival for arrival in arrivals if arrival.file.kind() in selected_kinds]
    arrivals.sort(key=lambda arrival: (arrival.file.modified, arrival.file.path))
    arrivals = arrivals[:most]
    if not arrivals:
        return start
    for arrival in arrivals:
        key = _key(arrival.file.path)
        state.pop(key, None)
        state[key] = arrival.file.size
    missing = [key for key in state if key not in files_by_key]
    for key in missing[: max(0, len(missing) - KEPT_GONE)]:
        del state[key]
    return _offset(state, arrivals, start)


def arrivals_between(start: StreamOffset, end: StreamOffset) -> list[Arrival]:
    """The files of the micro-batch between two offsets, in the order of reading. Raises `CoordwireError` for
    an unknown format."""
    _check(end)
    arrivals = [
        Arrival(File(path, size, modified, named, trouble), read)
        for path, size, modified, named, trouble, read in end["files"]
    ]
    if end["after"] == _digest(start):
        return arrivals
    # The offset was made without its start: all files are named in it, and some were read before.
    state = _decoded(start)
    known = [(arrival.file, state.get(_key(arrival.file.path))) for arrival in arrivals]
    return [Arrival(file, size or 0) for file, size in known if size != file.size]


def read_between(start: StreamOffset, end: StreamOffset) -> ReadFiles:
    """What both offsets together say that was read: what is gone may be in one of them alone."""
    return _decoded(start) | _decoded(end)


# --- offsets ---


def _offset(
    state: Mapping[bytes, int], arrivals: Iterable[Arrival], start: StreamOffset | None
) -> StreamOffset:
    files = [
        [a.file.path, a.file.size, a.file.modified, a.file.named, a.file.trouble, a.read] for a in arrivals
    ]
    entries = b"".join(key + size.to_bytes(SIZE, "big") for key, size in state.items())
    after = "" if start is None else _digest(start)
    return {"version": VERSION, "read": b64encode(entries).decode(), "files": files, "after": after}


def _decoded(offset: StreamOffset) -> ReadFiles:
    _check(offset)
    entries, step = b64decode(offset["read"]), HASH + SIZE
    return {
        entries[at : at + HASH]: int.from_bytes(entries[at + HASH : at + step], "big")
        for at in range(0, len(entries), step)
    }


def _check(offset: StreamOffset) -> None:
    if offset.get("version") != VERSION:
        raise CoordwireError(
            f"the checkpoint's offset is of format {offset.get('version')!r}, expected {VERSION}: it was "
            "written by another version of coordwire; go on with that one, or start with a new checkpoint"
        )


def _digest(offset: StreamOffset) -> str:
    return blake2b(json.dumps(offset, sort_keys=True).encode(), digest_size=HASH).hexdigest()


# --- files ---


def _key(path: str) -> bytes:
    return blake2b(live_path(path).encode("utf-8", "surrogateescape"), digest_size=HASH).digest()


def _by_path(files: Iterable[File]) -> dict[bytes, File]:
    """One file for each path; where a broker keeps two states of it, the live one."""
    files_by_key: dict[bytes, File] = {}
    for file in files:
        key = _key(file.path)
        if key not in files_by_key or file.path == live_path(file.path):
            files_by_key[key] = file
    return files_by_key
