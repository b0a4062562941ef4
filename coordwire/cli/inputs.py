"""Opening what the user named, and telling how far its reading has come.

Rules: "-" is standard input; whatever the system refuses becomes a `Failure` with the file's name; progress
goes to standard error, only where that is a terminal that shows nothing else, and only for large files.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from coordwire.capture.printable import shown
from coordwire.cli import Failure

__all__ = ["failure", "opened", "shown"]

LARGE = 16 << 20


@contextmanager
def opened(name: str) -> Iterator[BinaryIO]:
    """The input's bytes."""
    if name == "-":
        if sys.stdin is None:
            raise Failure("-: standard input is closed")
        yield sys.stdin.buffer
        return
    try:
        stream = open(name, "rb", buffering=0)  # noqa: SIM115 -- closed below
    except (OSError, ValueError) as error:
        raise failure(name, error) from None
    with stream:
        size = os.fstat(stream.fileno()).st_size
        if size < LARGE or sys.stderr is None or not sys.stderr.isatty() or sys.stdout.isatty():
            yield io.BufferedReader(stream, 1 << 18)
            return
        progress = _Progress(stream, name, size)
        try:
            yield io.BufferedReader(progress, 1 << 18)
        finally:
            progress.clear()


def failure(name: str, error: OSError | ValueError) -> Failure:
    """What the system says of a file, in one line."""
    return Failure(f"{shown(name)}: {getattr(error, 'strerror', None) or error}")


class _Progress(io.RawIOBase):
    """A file that says on standard error how much of it was read."""

    def __init__(self, stream: io.FileIO, name: str, size: int) -> None:
        self._stream = stream
        self._name = shown(os.path.basename(name))
        self._size = size
        self._done = 0
        self._percent = -1

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int | None:  # type: ignore[override]
        count = self._stream.readinto(buffer)
        self._done += count or 0
        percent = min(100 * self._done // self._size, 100)
        if percent != self._percent:
            self._percent = percent
            print(f"\r{self._name}  {percent} %", end="", file=sys.stderr, flush=True)
        return count

    def clear(self) -> None:
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)
