"""Record batches from records: `encode_batch` for a list of records, `RecordBatchBuilder` for one record
after the other.

Rules: the bytes are those that Kafka's `MemoryRecordsBuilder` writes for the same input, up to what a codec
makes of them. Nothing but an `EncodeError` (or `CodecUnavailable`) is raised for any value.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Never

from coordwire._speedups import native as speedups
from coordwire.errors import NotInVersion, OutOfRange, WrongType, counted
from coordwire.records import backend
from coordwire.records.batch import APPEND_TIME, CONTROL, CREATE_TIME, HORIZON, LOG_APPEND_TIME, TRANSACTIONAL
from coordwire.records.batch_writer import BatchWriter, integer
from coordwire.records.body_writer import BodyWriter
from coordwire.records.compression import CODECS, Codec
from coordwire.records.legacy import MessageSetWriter
from coordwire.records.record import Record

if TYPE_CHECKING:
    from coordwire._speedups import _native


if TYPE_CHECKING or speedups is None:

    class _Builder:
        """The counterpart of the native half's `Builder`."""

        __slots__ = ("_body", "limit")

else:
    _Builder = speedups.Builder


class RecordBatchBuilder(_Builder):
    """One record batch that records are appended to.

    base_offset: what the records' offsets count from; by default the first record's, or 0.
    codec: "none", "gzip", "snappy", "lz4" or "zstd"; level: see
    `coordwire.records.compression.LEVELS`. timestamp_type: "CreateTime", or "LogAppendTime" with the
    time as `max_timestamp` (ms since 1970). max_timestamp: by default the largest of the records'.
    producer_id, producer_epoch, base_sequence: of an idempotent producer (KIP-98), -1 for none.
    transactional, control: the batch's flags; partition_leader_epoch: -1 before a broker has it.
    delete_horizon_ms: when compaction may drop its tombstones (KIP-534), None if unset. last_offset: that of
    the last record before compaction; by default the last one's. magic: 2, or 0 or 1 for an old message set,
    which has neither headers, producers nor transactions. limit: the bytes that it may grow to, by its
    `size`; None for no other bound than Kafka's own.

    Raises `WrongType`, `OutOfRange`, or `NotInVersion` for what the magic can't carry.

        >>> from coordwire.records import Record, RecordBatchBuilder, batches
        >>> builder = RecordBatchBuilder(base_offset=7, limit=100)
        >>> [builder.append(Record(value=bytes(20))) for _ in range(3)]
        [True, False, False]
        >>> builder
        <RecordBatchBuilder: 1 record, 88 bytes, none>
        >>> next(batches(builder.build())).last_offset
        7
    """

    __slots__ = (
        "_attributes",
        "_epoch",
        "_last_offset",
        "_max_timestamp",
        "_producer",
        "_writer",
        "codec",
        "level",
    )

    def __init__(
        self,
        *,
        base_offset: int | None = None,
        codec: Codec = "none",
        level: int | None = None,
        timestamp_type: str = CREATE_TIME,
        max_timestamp: int | None = None,
        producer_id: int = -1,
        producer_epoch: int = -1,
        base_sequence: int = -1,
        transactional: bool = False,
        control: bool = False,
        partition_leader_epoch: int = -1,
        delete_horizon_ms: int | None = None,
        last_offset: int | None = None,
        magic: int = 2,
        limit: int | None = None,
    ) -> None:
        _check_choices(codec, timestamp_type, magic)
        _check_numbers(
            base_offset=(0 if base_offset is None else base_offset, 64),
            max_timestamp=(0 if max_timestamp is None else max_timestamp, 64),
            delete_horizon_ms=(0 if delete_horizon_ms is None else delete_horizon_ms, 64),
            last_offset=(0 if last_offset is None else last_offset, 64),
            limit=(0 if limit is None else limit, 64),
            producer_id=(producer_id, 64),
            producer_epoch=(producer_epoch, 16),
            base_sequence=(base_sequence, 32),
            partition_leader_epoch=(partition_leader_epoch, 32),
        )
        _check_flags(transactional=transactional, control=control)
        self._writer: BatchWriter | MessageSetWriter
        self._body: BodyWriter | _native.Body | None = None
        if magic == 2:
            self._writer = writer = BatchWriter(base_offset, delete_horizon_ms)
            self._body = writer.body
        else:
            _check_absent(
                magic,
                partition_leader_epoch=partition_leader_epoch != -1,
                producer_id=producer_id != -1,
                producer_epoch=producer_epoch != -1,
                base_sequence=base_sequence != -1,
                transactional=transactional,
                control=control,
                delete_horizon_ms=delete_horizon_ms is not None,
                last_offset=last_offset is not None,
            )
            self._writer = MessageSetWriter(magic, base_offset)
        self.codec: Codec = codec
        self.level = level
        self.limit = limit
        self._attributes = (
            CODECS.index(codec)
            | (APPEND_TIME if timestamp_type == LOG_APPEND_TIME else 0)
            | (TRANSACTIONAL if transactional else 0)
            | (CONTROL if control else 0)
            | (HORIZON if delete_horizon_ms is not None else 0)
        )
        self._epoch = partition_leader_epoch
        self._producer = (producer_id, producer_epoch, base_sequence)
        self._last_offset = last_offset
        self._max_timestamp = max_timestamp

    def __repr__(self) -> str:
        return f"<RecordBatchBuilder: {counted(self.count, 'record')}, {self.size} bytes, {self.codec}>"

    def __reduce__(self) -> Never:
        raise TypeError("a batch in the making can't be copied")

    @property
    def count(self) -> int:
        """The number of records."""
        return self._writer.count

    @property
    def size(self) -> int:
        """The size in bytes without compression, header included; with a codec, an upper estimate."""
        return self._writer.overhead + self._writer.size

    def append(self, record: Record) -> bool:
        """Add a record, unless the batch would grow beyond its limit: then False, and nothing has changed.

        The first record always fits, as in Kafka's producer. Its offset is the next one if it has none (-1).
        Raises `WrongType`, `OutOfRange` (also for offsets that don't rise), `NotInVersion`.
        """
        fit = None if self._body is None else self._body.append(record, self.limit)
        return self._writer.append(record, self.limit) if fit is None else fit

    def extend(self, records: Iterable[Record]) -> None:
        """Add all records, whatever the limit; all of them or, if it raises, none. Raises as `append`."""
        self._writer.add(tuple(records))

    def build(self) -> bytes:
        """The batch's bytes; for no records a header alone (magic 2), as compaction leaves it, or nothing.

        The builder can go on afterwards. Raises `OutOfRange` beyond Kafka's 2 GB or for a level that the
        codec doesn't have, `CodecUnavailable` without the codec's library.
        """
        writer = self._writer
        if isinstance(writer, MessageSetWriter):
            return writer.finish(self.codec, self.level, self._attributes, self._max_timestamp)
        return writer.finish(
            self.codec,
            self.level,
            self._attributes,
            self._epoch,
            self._last_offset,
            self._max_timestamp,
            self._producer,
        )


def _check_choices(codec: object, timestamp_type: object, magic: object) -> None:
    if codec not in CODECS:
        raise OutOfRange(f"expected a codec of {', '.join(CODECS)}, got {codec!r}", "codec")
    if timestamp_type not in (CREATE_TIME, LOG_APPEND_TIME):
        raise OutOfRange(
            f"expected {CREATE_TIME} or {LOG_APPEND_TIME}, got {timestamp_type!r}", "timestamp_type"
        )
    if magic not in (0, 1, 2):
        raise OutOfRange(f"expected a magic of 0, 1 or 2, got {magic!r}", "magic")


def _check_numbers(**numbers: tuple[int, int]) -> None:
    for name, (value, bits) in numbers.items():
        if value.__class__ is not int or not -1 <= value < 1 << 15:  # most are small
            integer(value, bits, name)


def _check_flags(**flags: object) -> None:
    for name, flag in flags.items():
        if not isinstance(flag, bool):
            raise WrongType(f"expected bool, got {type(flag).__name__}", name)


def _check_absent(magic: int, **fields: bool) -> None:
    """Refuse arguments that only magic 2 has."""
    for name, present in fields.items():
        if present:
            raise NotInVersion(f"magic {magic} can't carry it", name)


def encode_batch(
    records: Iterable[Record],
    *,
    base_offset: int | None = None,
    codec: Codec = "none",
    level: int | None = None,
    timestamp_type: str = CREATE_TIME,
    max_timestamp: int | None = None,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    transactional: bool = False,
    control: bool = False,
    partition_leader_epoch: int = -1,
    delete_horizon_ms: int | None = None,
    last_offset: int | None = None,
    magic: int = 2,
) -> bytes:
    """One batch with these records; see `RecordBatchBuilder` for the arguments and errors.

    A record without an offset (-1) gets the one after the record before it, the first one `base_offset`.
    """
    quick = backend.codec
    if (
        quick is not None
        and codec == "none"
        and timestamp_type == CREATE_TIME
        and delete_horizon_ms is None
        and magic == 2
    ):
        batch = quick.encode(
            records,
            base_offset,
            last_offset,
            max_timestamp,
            producer_id,
            producer_epoch,
            base_sequence,
            partition_leader_epoch,
            transactional,
            control,
        )
        if batch is not None:
            return batch
    builder = RecordBatchBuilder(
        base_offset=base_offset,
        codec=codec,
        level=level,
        timestamp_type=timestamp_type,
        max_timestamp=max_timestamp,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        transactional=transactional,
        control=control,
        partition_leader_epoch=partition_leader_epoch,
        delete_horizon_ms=delete_horizon_ms,
        last_offset=last_offset,
        magic=magic,
    )
    builder.extend(records)
    return builder.build()
