"""Files as memory: mapped, so that their size doesn't matter; small ones read whole, if they are small."""

from __future__ import annotations

__all__ = ["mapped", "read_small"]

import mmap
import os
from pathlib import Path

from coordwire.errors import LimitExceeded
from coordwire.limits import current


def mapped(path: Path) -> memoryview:
    """A file's bytes, not copied; unmapped when nothing refers to them. It may not shrink. Raises
    `OSError`."""
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        return memoryview(mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ) if size else b"")


def read_small(path: Path) -> bytes:
    """A file's bytes. Raises `OSError`, `LimitExceeded` for one above `coordwire.limits(frame=…)`."""
    most = current().frame
    with open(path, "rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise LimitExceeded(f"{path.name} has more than {most} bytes", most)
    return data
