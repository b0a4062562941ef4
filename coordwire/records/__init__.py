"""Record batches: what Produce and Fetch carry and a broker's segments hold.

    for batch in batches(data):
        for record in batch: record.offset, record.timestamp, record.key, record.value, record.headers
    for found in record_sets(response):
        for batch in found.batches(): found.topic, found.partition, …
    data = encode_batch([Record(key=b"k", value=b"v")], codec="zstd")

    batch_reader.py   batches: bytes -> batches, lazily, and what to do about bad ones
    resync.py         where the next one begins after bytes that are not a batch; the checksum of
                      any range, in linear time
    batch.py          RecordBatch, magic 2: header, checksum, records on iteration
    record.py         Record, and the fast reading of magic 2
    strict.py         its exact reading, which words every refusal
    readahead.py      batches decompressed ahead of their reader, on other threads
    control.py        control records by type
    sets.py           the record sets in messages
    builder.py        encode_batch and RecordBatchBuilder
    batch_writer.py   a batch's bytes; body_writer.py: those of its records
    backend.py        which half does it all: the native one, or Python
    legacy.py         message sets of magic 0 and 1
    kafka_07.py       the messages of Kafka 0.7
    compression.py    the codecs, with bounded output
    arrow/            records as Arrow tables

Rules: bytes are untrusted: whatever is malformed raises `CorruptBatch` with its position, and
`coordwire.limits` bounds what comes out of a codec.
"""

from coordwire.errors import UnreadableRange
from coordwire.records.batch import RecordBatch
from coordwire.records.batch_reader import Batches, batches
from coordwire.records.builder import RecordBatchBuilder, encode_batch
from coordwire.records.control import ControlRecord, ControlType, control_record, read_control
from coordwire.records.legacy import LegacyBatch
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
