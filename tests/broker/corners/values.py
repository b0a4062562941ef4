"""Values that cases send: batches of records, ids that nothing has."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from coordwire.records import Record, encode_batch

NO_TOPIC = UUID(int=77 << 64 | 4 << 12)


def batch(
    *values: bytes, timestamp: int = 1_700_000_000_000, key: bytes | None = None, **options: Any
) -> bytes:
    """A producer's batch; its records' times count up from `timestamp`."""
    records = [
        Record(timestamp=timestamp + number, key=key, value=value) for number, value in enumerate(values)
    ]
    return encode_batch(records, base_offset=0, **options)
