"""What a broker remembers of a partition's producers, in the file .snapshot beside its segments.

The file holds int16 version and the message; the checksum is a CRC-32C of what follows it. The file's name is
the offset up to which the log was read for it.
"""

from schemas.vocabulary import Array, Data, Int16, Int32, Int64, ProducerId, Struct, Uint32

ProducerEntry = Struct(
    "producer_id"              / ProducerId * "The producer's id.",
    "epoch"                    / Int16      * "Its epoch when it wrote last.",
    "last_sequence"            / Int32      * "Sequence number of the last record it wrote; -1 for none in this epoch.",
    "last_offset"              / Int64      * "Offset of that record; -1 for none.",
    "offset_delta"             / Int32      * "That record's offset minus that of the first one of its batch.",
    "timestamp"                / Int64      * "Largest timestamp of what was written last, in ms since 1970.",
    "coordinator_epoch"        / Int32      * "Epoch of the transaction coordinator that wrote the last end marker; -1 for none.",
    "current_txn_first_offset" / Int64      * "First offset of the transaction that is open; -1 for none.",
    doc="One producer.",
)

ProducerSnapshot = Data("ProducerSnapshot", versions=(1, 1), flexible=None, doc="A partition's idempotent and transactional producers (KIP-98).")(
    "crc"              / Uint32               * "CRC-32C of all that follows it.",
    "producer_entries" / Array(ProducerEntry) * "The producers, in the order of the broker's hash map.",
)
