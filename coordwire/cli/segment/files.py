"""The files that a `coordwire segment` command is about.

Rules: a folder means the logs in it and below it; logs are taken partition by partition, in the order of
their offsets. A file beside a log means the log where only logs make sense.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from coordwire.capture.formats.compressed import SUFFIXES
from coordwire.capture.printable import shown
from coordwire.cli import Failure, progress
from coordwire.cli.coordinator_logs import refuse_capture
from coordwire.cli.inputs import failure
from coordwire.segments import Segment
from coordwire.segments.names import file_name
from coordwire.segments.segment import logs

REPORTED = 16
"""Of so many batches, after the first it is reported how much was read."""


def expanded(names: Sequence[str]) -> Iterator[Path]:
    """The files, folders opened. Raises `Failure` for a folder without a log."""
    for name in names:
        path = Path(name)
        if not path.is_dir():
            yield path
            continue
        has_logs = False
        try:
            for log in logs(path, suffixes=SUFFIXES):
                has_logs = True
                yield log
        except OSError as error:
            raise failure(name, error) from None
        if not has_logs:
            raise Failure(f"{shown(name)}: contains no segment")


def partitions(names: Sequence[str]) -> list[tuple[Path, list[Path]]]:
    """The logs by folder; of a file beside a log, the log."""
    paths_by_folder: dict[Path, list[Path]] = {}
    for path in expanded(names):
        log = _log(path)
        paths = paths_by_folder.setdefault(log.parent, [])
        if log not in paths:
            paths.append(log)
    return list(paths_by_folder.items())


class WatchedSegment(Segment):
    """A segment that reports how much of it was read."""

    def batches(self, **options: Any) -> Any:
        return _WatchedBatches(super().batches(**options), self)


class _WatchedBatches:
    """The batches of a segment, or what else its reader gives, with the reader's attributes."""

    def __init__(self, reader: Any, segment: Segment) -> None:
        self._reader = reader
        self._segment = segment
        self._count = 0

    def __iter__(self) -> _WatchedBatches:
        return self

    def __next__(self) -> Any:
        batch = next(self._reader)
        self._count += 1
        if self._count % REPORTED == 1:
            report_position(self._segment, self._reader.position)
        return batch

    def __getattr__(self, name: str) -> Any:
        return getattr(self._reader, name)


def report_position(segment: Segment, position: int) -> None:
    """A segment was read up to this byte."""
    progress.report(segment.path.name, position, segment.size)


def _log(path: Path) -> Path:
    refuse_capture(path)
    name = file_name(path.name)
    if name is None or name.kind in ("log", "checkpoint"):
        return path
    log = path.with_name(path.name.replace(f".{name.kind}", ".log", 1))
    if not log.exists():
        raise Failure(f"{shown(str(path))}: {log.name} is not beside it")
    return log
