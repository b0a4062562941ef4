"""Segments in remote storage that are not stored as a broker wrote them.

Rules: a plugin may compress and encrypt a segment in chunks, and says so in a manifest beside it
(`.rsm-manifest`, Aiven's); such a file holds no batches that can be found, and is quarantined whole, with
that reason. Without a manifest, or with one that says neither, the bytes are read as any segment's.
"""

from __future__ import annotations

__all__ = ["why_unreadable"]

import json

from coordwire.errors import CoordwireError
from coordwire.tables.readers.files import open_stream
from coordwire.tables.readers.splits import Part

MANIFEST = ".rsm-manifest"
TRANSFORMS = {"compression": "compressed", "encryption": "encrypted"}
MOST = 16 << 20
"""Bytes of a manifest that are read."""


def why_unreadable(part: Part) -> str | None:
    """Why a part of a segment has no batches as they are; None if it may have."""
    if part.state != "remote" or not part.path.endswith(".log"):
        return None
    try:
        with open_stream(part.path.removesuffix(".log") + MANIFEST) as stream:
            said = json.loads(stream.read(MOST))
    except (OSError, CoordwireError, ValueError, RecursionError):
        return None
    if not isinstance(said, dict):
        return None
    done = [word for name, word in TRANSFORMS.items() if said.get(name)]
    if not done:
        return None
    return f"the segment is {' and '.join(done)} in remote storage, as its {MANIFEST} says"
