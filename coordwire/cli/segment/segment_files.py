"""The files that a `coordwire segment` command is about.

Rules: a folder means the logs in it and below it; logs are taken partition by partition, in the order of
their offsets. A file beside a log means the log where only logs make sense.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from coordwire.capture.formats.compressed import SUFFIXES
from coordwire.cli import Failure
from coordwire.cli.coordinator_files import refuse_capture
from coordwire.cli.inputs import failure, shown
from coordwire.segments.names import file_name
from coordwire.segments.partition import logs


def expanded(names: Sequence[str]) -> Iterator[Path]:
    """The files, folders opened. Raises `Failure` for a folder without a log."""
    for name in names:
        path = Path(name)
        if not path.is_dir():
            yield path
            continue
        found = False
        try:
            for log in logs(path, suffixes=SUFFIXES):
                found = True
                yield log
        except OSError as error:
            raise failure(name, error) from None
        if not found:
            raise Failure(f"{shown(name)}: contains no segment")


def partitions(names: Sequence[str]) -> list[tuple[Path, list[Path]]]:
    """The logs by folder; of a file beside a log, the log."""
    found: dict[Path, list[Path]] = {}
    for path in expanded(names):
        log = _log(path)
        paths = found.setdefault(log.parent, [])
        if log not in paths:
            paths.append(log)
    return list(found.items())


def _log(path: Path) -> Path:
    refuse_capture(path)
    name = file_name(path.name)
    if name is None or name.kind in ("log", "checkpoint"):
        return path
    log = path.with_name(path.name.replace(f".{name.kind}", ".log", 1))
    if not log.exists():
        raise Failure(f"{shown(str(path))}: {log.name} is not beside it")
    return log
