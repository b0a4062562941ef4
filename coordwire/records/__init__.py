"""Record batches: what Produce and Fetch carry and a broker's segments hold.

    for batch in batches(data):
        for record in batch: record.offset, record.timestamp, record.key, record.value, record.headers
    for found in record_sets(response):
        for batch in found.batches(): found.topic, found.partition, …
    data = encode_batch([Record(key=b"k", value=b"v")], codec="zstd")

    reading.py      batches: bytes -> batches, lazily, with what to do about bad ones
    resync.py       where a batch begins and ends, also behind bytes that are none
    checksums.py    the checksum of any range, in linear time
    batch.py        RecordBatch, magic 2: header, checksum, records on iteration
    legacy.py       LegacyBatch, magic 0 and 1
    kafka_07.py     the messages of Kafka 0.7, magic 0 and 1 of that time
    record.py       Record, and the fast reading of magic 2
    judge.py        its exact reading, which words every refusal
    compression.py  the codecs, bounded; xerial.py, lz4frame.py, zstdframe.py: what their libraries don't know
    control.py      control records by type
    sets.py         the record sets in messages
    builder.py      encode_batch, RecordBatchBuilder; writing.py, body.py and legacy_writing.py do their work
    native.py       which half does it all: the native one, or Python
    arrow.py        tables; filling.py and ahead.py: by the native half; gathering.py: by Python

Bytes are hostile: whatever is malformed raises `CorruptBatch` with its place, and what comes out of a codec
is bounded by `coordwire.limits`.
"""

from coordwire.records.batch import RecordBatch
from coordwire.records.batch_reader import Batches, UnreadableRange, batches
from coordwire.records.builder import RecordBatchBuilder, encode_batch
from coordwire.records.control import ControlRecord, ControlType, control_record, read_control
from coordwire.records.legacy.message_sets import LegacyBatch
from coordwire.records.record import Header, Record
from coordwire.records.sets import RecordSet, record_sets

__all__ = [
    "Batches",
    "ControlRecord",
    "ControlType",
    "Header",
    "LegacyBatch",
    "Record",
    "RecordBatch",
    "RecordBatchBuilder",
    "RecordSet",
    "UnreadableRange",
    "batches",
    "control_record",
    "encode_batch",
    "read_control",
    "record_sets",
]
