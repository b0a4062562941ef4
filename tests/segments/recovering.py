"""A recovery, and what must be true of any; a segment to damage."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from coordwire.segments import Recovered, Segment, recover

from .build import log


def saved(paths: list[Path], out: Path) -> list[Recovered]:
    """Recover, and hold what must be true of any recovery."""
    before = [path.read_bytes() for path in paths]
    results = list(recover(paths, out))
    assert [path.read_bytes() for path in paths] == before
    by_source = dict(zip(paths, before, strict=True))
    written = []
    for partition in results:
        written += partition.files
        data = by_source[partition.source]
        clean = partition.log.read_bytes()
        assert len(clean) == partition.size
        assert len(clean) + partition.bad_bytes == len(data)
        assert rebuilt(data, clean, manifest(partition), bad_bytes(partition)) == data
        with Segment(partition.log) as copy:
            assert list(copy.verify()) == []
            assert sum(1 for _ in copy.batches()) == partition.batches
    assert sorted(written) == sorted(out.iterdir())
    return results


def manifest(one: Recovered) -> list[dict[str, Any]]:
    path = Path(f"{one.log}.quarantine.jsonl")
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def bad_bytes(one: Recovered) -> bytes:
    path = Path(f"{one.log}.quarantine")
    return path.read_bytes() if path.exists() else b""


def rebuilt(data: bytes, clean: bytes, lines: list[dict[str, Any]], bad: bytes) -> bytes:
    """The original, from the clean copy and the quarantine."""
    parts, result, at = [], 0, 0
    for line in lines:
        kept = line["position"] - at
        start = line["quarantinePosition"]
        parts += [clean[result : result + kept], bad[start : start + line["length"]]]
        result += kept
        at = line["position"] + line["length"]
        assert line["reason"]
    return b"".join([*parts, clean[result:]])


PARTS = log(12)
DATA = b"".join(PARTS)
SIZE = len(PARTS[0])


def offsets(path: Path) -> list[int]:
    with Segment(path) as segment:
        return [batch.base_offset // 3 for batch in segment.batches()]
