"""What a broker's disk holds: log segments, and the files beside them.

with Segment("orders-0/00000000000000000000.log") as segment:
    for batch in segment.batches(on_error="skip"):
        for record in batch: record.offset, record.key, record.value
    segment.find(offset=4711); segment.find(timestamp=1_700_000_000_000)

names.py     what file and folder names say
indexes.py   .index, .timeindex, .txnindex
segment.py   Segment
"""

from coordwire.segments.indexes import (
    AbortedTransaction,
    OffsetIndex,
    OffsetPosition,
    TimeIndex,
    TimestampOffset,
    TransactionIndex,
)
from coordwire.segments.segment import Segment

__all__ = [
    "AbortedTransaction",
    "OffsetIndex",
    "OffsetPosition",
    "Segment",
    "TimeIndex",
    "TimestampOffset",
    "TransactionIndex",
]
