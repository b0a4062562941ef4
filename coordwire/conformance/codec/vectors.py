"""The archive's files of vectors: a folder that was unpacked, or where the repository keeps them.

Rule: a file is read whole and once; what is not an archive is an `OSError` or a `ValueError`.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from coordwire.conformance.results import is_selected

Vector = dict[str, Any]

FAMILIES = ("messages", "hostile", "hostile-large")
"""Files whose vectors a codec of messages is asked, in their order."""


def vectors(folder: Path, patterns: Sequence[str] = ()) -> Iterator[Vector]:
    """The vectors with these addresses. Raises `OSError`; `ValueError` for lines that are none."""
    for family in FAMILIES:
        for line in _content(folder / f"{family}.jsonl").splitlines():
            vector = json.loads(line)
            if not isinstance(vector, dict) or not isinstance(vector.get("id"), str):
                raise ValueError(f"{family}.jsonl has a line that is not a vector")
            if is_selected(vector["id"], patterns):
                yield vector


def _content(path: Path) -> bytes:
    packed = path.with_name(f"{path.name}.xz")
    if packed.exists():
        return lzma.decompress(packed.read_bytes())
    return path.read_bytes()
