"""Folders that a user names in place of files: the captures in them and below.

Rules: a capture is known by its name or its content; the files of a rotated capture are one; what is neither
is passed over, and a folder without any capture is refused.
"""

from __future__ import annotations

__all__ = ["captures_below", "content_kind", "files_below"]

import os
from collections.abc import Iterator

from coordwire.capture.input_format import sniff
from coordwire.capture.printable import shown
from coordwire.capture.reader import read_head
from coordwire.capture.rotation import is_capture_name, rotated
from coordwire.cli import Failure
from coordwire.cli.inputs import failure, opened
from coordwire.errors import counted


def captures_below(folder: str) -> list[list[str]]:
    """The captures in a folder and below, by name, each as the files that it is in. Raises `Failure`."""
    try:
        files = list(files_below(folder))
    except OSError as error:
        raise failure(folder, error) from None
    captures = [path for path in files if is_capture_name(path) or content_kind(path) in ("pcap", "pcapng")]
    if not captures:
        raise Failure(
            f"{shown(folder)}: no capture in {counted(len(files), 'file', ',')}; coordwire segment dump and "
            "coordwire offsets read the logs of a broker"
        )
    return rotated(captures, str)


def files_below(folder: str) -> Iterator[str]:
    """The files in a folder and below, by name. Raises `OSError`."""

    def refuse(error: OSError) -> None:
        raise error

    for place, folders, names in os.walk(folder, onerror=refuse):
        folders.sort()
        yield from (path for name in sorted(names) if os.path.isfile(path := os.path.join(place, name)))


def content_kind(path: str) -> str | None:
    """What a file's content looks like; None where it can't be read."""
    try:
        with opened(path) as stream:
            return sniff(read_head(stream))
    except (Failure, OSError):
        return None
