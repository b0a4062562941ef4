"""The kept sample of a real broker's folders (tests/data/segments), unpacked once for all tests of a run."""

from __future__ import annotations

import atexit
import functools
import tarfile
import tempfile
from pathlib import Path

__all__ = ["SAMPLE", "broker_sample"]

SAMPLE = Path(__file__).parent / "data" / "segments" / "broker-4.3.0.tar.xz"


@functools.cache
def broker_sample() -> Path:
    """The folder with `data` and `rebuilt`, made by tests/interop/broker_segments.py. Not to be written."""
    folder = tempfile.TemporaryDirectory()
    atexit.register(folder.cleanup)
    with tarfile.open(SAMPLE) as archive:
        archive.extractall(folder.name, filter="data")
    return Path(folder.name)
