"""Validation of a producer's record set, and the changes that a broker makes before it is appended.

Strategy: Kafka's `UnifiedLog.analyzeAndValidateRecords` and `LogValidator`: one batch of magic 2, a right
checksum, offsets that count from 0, timestamps in their range, keys where the topic is compacted. Then its
offsets, leader epoch and largest timestamp are written over the producer's; the bytes of the records stay as
they came, but where the topic has a codec of its own. Rules: nothing is believed before the checksum; one
copy is made. The records' offsets are checked without compression too, where Kafka does not look at them.
Where a codec's library is not installed, the batch's header is checked alone, and the bytes stay as they
came: a Kafka broker has all codecs, so that no client expects a refusal.
"""

from __future__ import annotations

from struct import Struct

from coordwire._dataclasses import dataclass
from coordwire.enums import ErrorCode
from coordwire.errors import CodecUnavailable, CorruptBatch, DecodeError, counted
from coordwire.records import Record, RecordBatch, backend, batches, encode_batch
from coordwire.records.batch import APPEND_TIME, CRC_AT, CRC_FROM, LOG_APPEND_TIME
from coordwire.records.compression import Codec


class RefusedRecords(Exception):
    """Records that are not appended. records: index and reason of each one that is wrong."""

    def __init__(
        self, code: ErrorCode, message: str | None = None, records: tuple[tuple[int, str], ...] = ()
    ) -> None:
        super().__init__(message or code.name)
        self.code = int(code)
        self.message = message
        self.records = records


_OFFSET, _INT, _SHORT = Struct(">q"), Struct(">i"), Struct(">h")
_MAGIC_AT, _NEWEST_MAGIC = 16, 2
_EPOCH_AT, _ATTRIBUTES_AT, _MAX_TIMESTAMP_AT = 12, 21, 35
_CRC = Struct(">I")
_NO_TIMESTAMP = -1
_MOST_REFUSED = 100
"""The most refused records that are listed one by one."""

_ZSTD_SINCE = 7
"""The first version of Produce that may carry zstd."""


@dataclass(frozen=True, slots=True)
class AppendRules:
    """The settings of a topic that apply to appends. Times are in milliseconds.

    codec: what batches are compressed with, None for what their producers chose.
    """

    max_message_bytes: int = 1_048_588
    append_time: bool = False
    before_max_ms: int = (1 << 63) - 1
    after_max_ms: int = 3_600_000
    compacted: bool = False
    codec: Codec | None = None


@dataclass(slots=True)
class ValidBatch:
    """A batch that may be appended. data: its bytes, still with the producer's offsets. missing_library: why
    its records were not read, or not compressed by the topic's codec; None where nothing is missing."""

    batch: RecordBatch
    data: bytes | memoryview
    max_timestamp: int
    missing_library: str | None = None


def one_batch(data: bytes | None, version: int) -> RecordBatch:
    """The batch that a partition of a Produce request holds. Raises `RefusedRecords`."""
    if not data:
        raise RefusedRecords(ErrorCode.INVALID_RECORD, "expected a record batch, got no bytes")
    if len(data) > _MAGIC_AT and data[_MAGIC_AT] > _NEWEST_MAGIC:
        raise RefusedRecords(ErrorCode.CORRUPT_MESSAGE, f"Invalid magic found in record: {data[_MAGIC_AT]}")
    try:
        record_batches = batches(data)
        batch = next(record_batches, None)
        another = next(record_batches, None)
    except DecodeError as error:
        raise RefusedRecords(ErrorCode.CORRUPT_MESSAGE, str(error)) from None
    if batch is None or (another is None and len(record_batches.remainder)):
        raise RefusedRecords(ErrorCode.INVALID_RECORD, "the bytes end before the record batch does")
    if batch.magic != 2:
        raise RefusedRecords(
            ErrorCode.INVALID_RECORD, f"expected a record batch of magic 2, got magic {batch.magic}"
        )
    if another is not None:
        raise RefusedRecords(
            ErrorCode.INVALID_RECORD, "expected one record batch for the partition, got more"
        )
    if version < _ZSTD_SINCE and _codec(batch) == "zstd":
        raise RefusedRecords(
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"Produce version {version} cannot carry zstd"
        )
    return batch


def _codec(batch: RecordBatch) -> Codec:
    try:
        return batch.codec
    except CorruptBatch as error:
        raise RefusedRecords(ErrorCode.CORRUPT_MESSAGE, str(error)) from None


def validated(batch: RecordBatch, rules: AppendRules, now: int) -> ValidBatch:
    """Check a producer's batch. Raises `RefusedRecords`; nothing has changed then."""
    if batch.base_offset:
        raise _invalid(f"expected a base offset of 0, got {batch.base_offset}")
    if batch.size > rules.max_message_bytes:
        raise RefusedRecords(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"the record batch has {counted(batch.size, 'byte')}, the topic allows {rules.max_message_bytes}",
        )
    try:
        batch.check()
    except CorruptBatch as error:
        raise RefusedRecords(ErrorCode.CORRUPT_MESSAGE, str(error)) from None
    count = batch.count or 0
    if count <= 0:
        raise _invalid(f"expected a record batch with records, got one that says it has {count}")
    if batch.last_offset - batch.base_offset + 1 != count:
        raise _invalid(f"the last offset delta {batch.last_offset} does not fit {counted(count, 'record')}")
    if batch.is_control:
        raise _invalid("clients may not write control records")
    if batch.producer_id >= 0 and batch.base_sequence < 0:
        raise _invalid(f"producer {batch.producer_id} sends the sequence number {batch.base_sequence}")
    _codec(batch)
    data: bytes | memoryview = batch.raw
    missing: str | None = None
    try:
        latest, records = _judged(batch, rules, now)
    except CodecUnavailable as error:
        latest, records, missing = _judged_by_header(batch, rules, now), [], error.reason
    except DecodeError as error:
        raise _invalid(str(error)) from None
    if records and rules.codec is not None:
        try:
            data = _recompressed(batch, records, rules.codec)
        except CodecUnavailable as error:
            missing = error.reason
    return ValidBatch(batch, data, now if rules.append_time else latest, missing)


def _invalid(message: str) -> RefusedRecords:
    return RefusedRecords(ErrorCode.INVALID_RECORD, message)


def _judged(batch: RecordBatch, rules: AppendRules, now: int) -> tuple[int, list[Record]]:
    """The largest timestamp, and the records where they are to be written again."""
    latest = _NO_TIMESTAMP
    refused: list[tuple[int, str]] = []
    bad_time = False
    records: list[Record] = []
    keep = rules.codec is not None and rules.codec != batch.codec
    earliest, last = now - rules.before_max_ms, now + rules.after_max_ms
    wrong_type = batch.timestamp_type == LOG_APPEND_TIME
    for number, record in enumerate(batch.records(create_time=True)):
        if record.offset != number:
            raise _invalid(f"records[{number}] has the offset delta {record.offset}, expected {number}")
        stamp = batch.max_timestamp if wrong_type else record.timestamp
        if stamp > latest:
            latest = stamp
        if rules.compacted and record.key is None:
            refused.append((number, "a record of a compacted topic needs a key"))
        elif not rules.append_time and stamp != _NO_TIMESTAMP:
            if not earliest <= stamp <= last:
                bad_time = True
                reason = (
                    f"Timestamp {stamp} of message with offset {number} is out of range."
                    f" The timestamp should be within [{earliest}, {last}]"
                )
                refused.append((number, reason))
        elif wrong_type:
            bad_time = True
            refused.append((number, "a producer may not set the timestamp type LogAppendTime"))
        if keep:
            records.append(record)
    if refused:
        code, reason = ErrorCode.INVALID_RECORD, "one or more records were refused"
        if bad_time:
            code = ErrorCode.INVALID_TIMESTAMP
            reason = "One or more records have been rejected due to invalid timestamp"
        raise RefusedRecords(code, reason, tuple(refused[:_MOST_REFUSED]))
    return latest, records


def _judged_by_header(batch: RecordBatch, rules: AppendRules, now: int) -> int:
    """The largest timestamp that the header states, by the rules for records."""
    latest = batch.max_timestamp
    earliest, last = now - rules.before_max_ms, now + rules.after_max_ms
    if rules.append_time:
        return latest
    if batch.timestamp_type == LOG_APPEND_TIME:
        reason = "a producer may not set the timestamp type LogAppendTime"
        raise RefusedRecords(ErrorCode.INVALID_TIMESTAMP, reason)
    if latest != _NO_TIMESTAMP and not earliest <= latest <= last:
        reason = f"the largest timestamp {latest} is not within [{earliest}, {last}]"
        raise RefusedRecords(ErrorCode.INVALID_TIMESTAMP, reason)
    return latest


def _recompressed(batch: RecordBatch, records: list[Record], codec: Codec) -> bytes:
    """The same records in a batch of the topic's codec. Raises `CodecUnavailable`."""
    return encode_batch(
        records,
        base_offset=0,
        codec=codec,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
        transactional=batch.transactional,
    )


def stamped(
    data: bytes | memoryview, base_offset: int, epoch: int, max_timestamp: int, append_time: bool
) -> bytes:
    """A batch's bytes with what a leader writes into them; the checksum is right again."""
    batch = RecordBatch(memoryview(data))
    attributes = batch.attributes & ~APPEND_TIME | (APPEND_TIME if append_time else 0)
    stored = bytearray(data)
    _OFFSET.pack_into(stored, 0, base_offset)
    _INT.pack_into(stored, _EPOCH_AT, epoch)
    if attributes != batch.attributes or max_timestamp != batch.max_timestamp:
        _SHORT.pack_into(stored, _ATTRIBUTES_AT, attributes)
        _OFFSET.pack_into(stored, _MAX_TIMESTAMP_AT, max_timestamp)
        _CRC.pack_into(stored, CRC_AT, backend.crc32c(memoryview(stored)[CRC_FROM:]))
    return bytes(stored)
