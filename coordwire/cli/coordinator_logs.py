"""The logs of coordinators that the user names, decompressed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from coordwire.capture.input_format import HEAD, sniff
from coordwire.capture.printable import shown
from coordwire.cli import Failure, progress
from coordwire.cli.inputs import opened, plain_file
from coordwire.errors import UnreadableRange
from coordwire.logs import Log
from coordwire.segments import Segment
from coordwire.segments.names import file_name
from coordwire.timeline.from_log.coordinator_log import LogItem, guess_log, read_records
from coordwire.timeline.from_log.files import LogFile


def read_log(file: LogFile, *, log: Log | None = None) -> Iterator[LogItem]:
    """As `coordwire.timeline.read_file`, of a compressed file too."""
    with plain_file(Path(file.path)) as plain, Segment(plain.path) as segment:
        data = segment.data
        kind = log or file.log or guess_log(data)
        yield from read_records(
            data, log=kind, file=file.path, log_partition=file.partition,
            progress=lambda position: progress.report(os.path.basename(file.path), position, segment.size),
        )  # fmt: skip
        if plain.fault:
            yield UnreadableRange(
                segment.size, 0, plain.fault, file=file.path, log=kind, log_partition=file.partition
            )


def refuse_capture(path: Path) -> None:
    """Raise `Failure` for a capture, which is not a segment, with the commands that read it."""
    if file_name(path.name) is not None or not path.is_file():
        return
    with opened(str(path)) as stream:
        kind = sniff(stream.read(HEAD))
    if kind in ("pcap", "pcapng", "hex"):
        raise Failure(
            f"{shown(str(path))}: a capture ({kind}), expected a log segment; coordwire timeline shows its "
            "groups and their commits, coordwire decode its frames"
        )
