"""The index files beside a broker's log segment.

Sources: Kafka's `OffsetIndex`, `TimeIndex` and `AbortedTxn` (KIP-33, KIP-98). An index is not a message of an API,
so that nothing is generated from these (the generator passes over packages); they are the oracle that the tests
hold `coordwire.segments.indexes` against. The producers' snapshot is a message: schemas/logs/producer_snapshot.py.
"""

from __future__ import annotations

from construct import GreedyRange, Int16sb, Int32sb, Int64sb, Struct

OffsetIndex = GreedyRange(Struct(
    "relative_offset" / Int32sb * "Last offset of what was appended there, from the segment's base offset.",
    "position"        / Int32sb * "Where it begins in the .log file, in bytes.",
))  # fmt: skip

TimeIndex = GreedyRange(Struct(
    "timestamp"       / Int64sb * "The largest timestamp so far, in ms since 1970.",
    "relative_offset" / Int32sb * "Last offset of the batch that has it, from the segment's base offset.",
))  # fmt: skip

TransactionIndex = GreedyRange(Struct(
    "version"            / Int16sb * "0.",
    "producer_id"        / Int64sb * "Whose transaction was aborted.",
    "first_offset"       / Int64sb * "Its first record's offset.",
    "last_offset"        / Int64sb * "Its end marker's offset.",
    "last_stable_offset" / Int64sb * "What the last stable offset was when the marker came.",
))  # fmt: skip
