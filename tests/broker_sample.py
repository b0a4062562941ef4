"""The kept samples of real brokers' folders (tests/data/segments), unpacked once for all tests of a run."""

from __future__ import annotations

import atexit
import functools
import tarfile
import tempfile
from pathlib import Path

_FOLDER = Path(__file__).parent / "data" / "segments"
SAMPLE = _FOLDER / "broker-4.3.0.tar.xz"
"""`data` and `rebuilt`, made by tests/interop/broker_segments.py."""

OLD_FORMATS = _FOLDER / "broker-3.9.2-old-formats.tar.xz"
"""`data`, made by tests/interop/old_segments.py."""


def unpack(sample: Path, folder: Path) -> None:
    """Extract a sample into a folder. CPython before 3.11.4 ignores the filter."""
    with tarfile.open(sample) as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", lambda member, path: member)
        archive.extractall(folder)


@functools.cache
def broker_sample(sample: Path = SAMPLE) -> Path:
    """The folder that a sample was made of. Not to be written."""
    folder = tempfile.TemporaryDirectory()
    atexit.register(folder.cleanup)
    unpack(sample, Path(folder.name))
    return Path(folder.name)
