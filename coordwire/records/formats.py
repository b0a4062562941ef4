"""The format of a batch, by its magic: a record batch, or a message of the formats before it.

Rule: the caller has checked that the magic is 0, 1 or 2.
"""

from __future__ import annotations

__all__ = ["open_batch"]

from coordwire.records.batch import RecordBatch
from coordwire.records.legacy.message_sets import LegacyBatch


def open_batch(view: memoryview, position: int) -> RecordBatch:
    """The batch that these bytes are, by their magic."""
    return RecordBatch(view, position) if view[16] == 2 else LegacyBatch(view, position)
