"""An aborted transaction in a partition, an entry of the file .txnindex beside its segments.

The file holds int16 version and the message, again and again: 34 bytes an entry.
"""

from schemas.vocabulary import Data, Int64, ProducerId

AbortedTxn = Data("AbortedTxn", versions=(0, 0), flexible=None, doc="A transaction that was aborted (KIP-98).")(
    "producer_id"        / ProducerId * "The producer whose transaction it was.",
    "first_offset"       / Int64      * "Offset of its first record.",
    "last_offset"        / Int64      * "Offset of its end marker.",
    "last_stable_offset" / Int64      * "The last stable offset when the marker was written.",
)
