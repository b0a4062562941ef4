"""The kept samples of real brokers' folders (tests/data/segments), unpacked once for all tests of a run."""

from __future__ import annotations

import atexit
import functools
import tarfile
import tempfile
from pathlib import Path

__all__ = ["OLD_FORMATS", "SAMPLE", "broker_sample"]

_FOLDER = Path(__file__).parent / "data" / "segments"
SAMPLE = _FOLDER / "broker-4.3.0.tar.xz"
"""`data` and `rebuilt`, made by tests/interop/broker_segments.py."""

OLD_FORMATS = _FOLDER / "broker-3.9.2-old-formats.tar.xz"
"""`data`, made by tests/interop/old_segments.py."""


@functools.cache
def broker_sample(sample: Path = SAMPLE) -> Path:
    """The folder that a sample was made of. Not to be written."""
    folder = tempfile.TemporaryDirectory()
    atexit.register(folder.cleanup)
    with tarfile.open(sample) as archive:
        archive.extractall(folder.name, filter="data")
    return Path(folder.name)
