"""Segments to test with: batches one after the other, in a partition's folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from coordwire.records import Record, encode_batch

START_MS = 1_700_000_000_000


def batch(base: int, count: int = 3, size: int = 40, *, stamp: int | None = None, **facts: Any) -> bytes:
    """A batch of `count` records from offset `base` on, a millisecond apart."""
    first = START_MS + base if stamp is None else stamp
    records = [
        Record(base + n, first + n, b"k%04d" % (base + n), bytes([base + n & 255]) * size)
        for n in range(count)
    ]
    facts = {"partition_leader_epoch": 0} | facts if facts.get("magic", 2) == 2 else facts
    return encode_batch(records, base_offset=base, **facts)


def log(count: int, *, base: int = 0, records: int = 3, size: int = 40, **facts: Any) -> list[bytes]:
    """So many batches, as a segment's bytes."""
    return [batch(base + n * records, records, size, **facts) for n in range(count)]


def write(folder: Path, data: bytes, *, base: int = 0, name: str = "orders-0") -> Path:
    """The bytes as the `.log` of a segment in a partition's folder."""
    path = folder / name / f"{base:020}.log"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path
