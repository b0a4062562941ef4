"""The segments of coordinators' logs in a broker's directories.

Strategy: a partition's directory bears the topic's name ("__consumer_offsets-12"), its segments their base
offset; a file elsewhere is recognised by its own name, else by its first records. Rules: a directory gives
the segments of the coordinators' topics below it, or, if its name says nothing, all that are right in it; a
file named by the user is taken as it is. The segments of one partition come in the order of their offsets.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from coordwire.capture.formats.compressed import SUFFIXES
from coordwire.logs import TOPICS, Log

_PARTITION = re.compile(f"({'|'.join(TOPICS.values())})-([0-9]{{1,9}})")
_LOGS: dict[str, Log] = {topic: log for log, topic in TOPICS.items()}


@dataclass(frozen=True, slots=True)
class LogFile:
    """A segment. log, partition: None where neither its place nor its name says."""

    path: str
    log: Log | None = None
    partition: int | None = None


def find_files(paths: Iterable[str | os.PathLike[str]]) -> Iterator[LogFile]:
    """The segments that these files and directories are or hold, in the order given.

    Raises `OSError` for a path that isn't there or can't be listed.
    """
    for path in map(Path, paths):
        if path.is_dir():
            yield from _below(path)
        else:
            path.stat()
            yield _named(path)


def _below(top: Path) -> Iterator[LogFile]:
    segments = _segments(top)
    if segments and _PARTITION.fullmatch(top.resolve().name):
        yield from segments
        return
    files = []
    for folder in _folders(top):
        if match := _PARTITION.fullmatch(folder.name):
            files.append((match[1], int(match[2]), folder))
    for _, _, folder in sorted(files):
        yield from _segments(folder)
    if not files:
        yield from segments


def _folders(top: Path) -> Iterator[Path]:
    def refuse(error: OSError) -> None:
        raise error

    for place, names, _ in os.walk(top, onerror=refuse):
        names.sort()
        yield from (Path(place, name) for name in names)


def _segments(folder: Path) -> list[LogFile]:
    names = (".log", *(f".log{suffix}" for suffix in SUFFIXES))
    return [
        _named(path) for path in sorted(folder.glob("*.log*")) if path.name.endswith(names) and path.is_file()
    ]


def _named(path: Path) -> LogFile:
    """Log and partition by the directory's name, else by the segment's own."""
    match = _PARTITION.fullmatch(path.absolute().parent.name)
    if match is None:
        match = _PARTITION.search(path.name)
    if match is not None:
        return LogFile(str(path), _LOGS[match[1]], int(match[2]))
    log = next((log for topic, log in _LOGS.items() if topic in path.name), None)
    return LogFile(str(path), log)
