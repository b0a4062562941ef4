"""The records of one segment of a coordinator's log.

Strategy: batches lead to records, records to `coordwire.logs`; each becomes one frozen value with its place.
A transaction's records are marked as such; the marker that decides them is a value of its own
(`compaction.py` brings the two together). Rules: nothing is fatal and nothing is left out: a type or version
that isn't known passes through with its bytes and `unknown` says why, one that can't be read with its bytes
and its `refusal`, bytes that are not a batch become an `UnreadableRange`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple, TypeAlias
from uuid import UUID

from coordwire.codec import Message
from coordwire.codec.walk import entity_field
from coordwire.errors import CorruptBatch, DecodeError
from coordwire.logs import TOPICS, Log, LogRecord, decode_log_record
from coordwire.messages.record_types import RECORD_TYPES
from coordwire.records import ControlType, Record, RecordBatch, UnreadableRange, batches, read_control
from coordwire.records.batch_reader import Buffer
from coordwire.segments import Segment
from coordwire.timeline.from_log.files import LogFile

SAMPLE = 64
"""So many records say which log they belong to, where no name does."""

_NO_PRODUCER = -1


class Refusal(NamedTuple):
    """Trigger a record couldn't be read: offset in the key or value (`path` says which), in bytes."""

    reason: str
    offset: int
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatorRecord:
    """A record of a coordinator's log.

    file, log, log_partition: where it is; None for a partition that no name gives. log_offset: its
    offset there; timestamp_ms: since 1970 UTC, -1 for none.
    type: the record type, None where the metadata log's frame isn't known; version: the value's, None for a
    tombstone. kind: the type in Kafka's words ("OffsetCommit", "GroupMetadata", …), None if unknown.
    key, value: messages; bytes where `unknown` or `refusal` says why; a `value` of None is a tombstone.
    raw_key: the key's bytes, which compaction goes by.
    producer_id, producer_epoch: of the transaction that it is part of; -1 outside of one.
    """

    file: str
    log: Log
    log_partition: int | None
    log_offset: int
    timestamp_ms: int
    type: int | None
    version: int | None
    kind: str | None
    key: Message | bytes | None
    value: Message | bytes | None
    raw_key: bytes | None
    producer_id: int = _NO_PRODUCER
    producer_epoch: int = -1
    unknown: str | None = None
    refusal: Refusal | None = None

    @property
    def group(self) -> str | None:
        """The group that it is about; None where it is about none."""
        return self._entity("group_id")

    @property
    def topic(self) -> str | None:
        """The topic whose offset it is."""
        return self._entity("topic_name")

    @property
    def topic_id(self) -> UUID | None:
        """The id of the topic whose share state it is."""
        value: UUID | None = self._of_key("topic_id")
        return value

    @property
    def partition(self) -> int | None:
        """The partition whose offset or share state it is."""
        value: int | None = self._of_key("partition")
        return value

    @property
    def member_id(self) -> str | None:
        """The member that it is about."""
        return self._entity("member_id")

    def _entity(self, entity: str) -> str | None:
        """The value of the key's field of this entity."""
        if not isinstance(self.key, Message):
            return None
        cls: Any = type(self.key)
        name = entity_field(cls, entity)
        value: str | None = None if name is None else getattr(self.key, name)
        return value

    def _of_key(self, name: str) -> Any:
        return getattr(self.key, name, None) if isinstance(self.key, Message) else None

    @property
    def transactional(self) -> bool:
        """Whether it holds only once its transaction is committed."""
        return self.producer_id != _NO_PRODUCER

    @property
    def tombstone(self) -> bool:
        """Whether it deletes the value of its key."""
        return self.value is None and self.log != "metadata"

    @property
    def identity(self) -> tuple[Any, ...] | None:
        """What a later record replaces it by; None in the metadata log, where nothing is replaced."""
        if self.raw_key is None:
            return None
        if self.log == "consumer_offsets" and self.type in (0, 1) and self.partition is not None:
            return self.log, self.group, self.topic, self.partition
        return self.log, self.raw_key


@dataclass(frozen=True, slots=True, kw_only=True)
class Marker:
    """A control record: the end of a producer's transaction in this partition, or what the quorum notes.

    kind: "commit" or "abort"; else the control type's name in lower case, or its number where it isn't known.
    coordinator_epoch: of the transaction coordinator; -1 where none is given.
    decided: the commits that it decides, as far as they were remembered (`compaction.decide` fills it in).
    """

    file: str
    log: Log
    log_partition: int | None
    log_offset: int
    timestamp_ms: int
    kind: str
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int = -1
    decided: tuple[CoordinatorRecord, ...] = ()


LogItem: TypeAlias = CoordinatorRecord | Marker | UnreadableRange


def read_file(file: LogFile, *, log: Log | None = None) -> Iterator[LogItem]:
    """The items of one segment, in its order. log: the log that it is of, whatever its name is.

    Raises `OSError` where the file can't be read, `CodecUnavailable` where a codec's library is missing.
    """
    with Segment(file.path) as segment:
        data = segment.data
        kind = log or file.log or guess_log(data)
        yield from read_records(data, log=kind, file=file.path, log_partition=file.partition)


def guess_log(data: Buffer) -> Log:
    """The log whose records these are, by how many of the first can be read as its own."""
    sample = list(islice(_data_records(data), SAMPLE))

    def fits(log: Log) -> int:
        return sum(_is_known(log, record) for record in sample)

    return max(TOPICS, key=fits)


def _data_records(data: Buffer) -> Iterator[Record]:
    for batch in batches(data, on_error="skip"):
        if not batch.is_control:
            yield from batch


def _is_known(log: Log, record: Record) -> bool:
    try:
        return decode_log_record(log, record.key, record.value).unknown is None
    except DecodeError:
        return False


def read_records(
    data: Buffer,
    *,
    log: Log,
    file: str = "",
    log_partition: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> Iterator[LogItem]:
    """The items in a segment's bytes, lazily. progress: gets the byte up to which they were read. Raises
    `CodecUnavailable` if a codec's library is missing."""
    place: dict[str, Any] = {"file": file, "log": log, "log_partition": log_partition}
    scan = batches(data, on_error="report")
    for batch in scan:
        if progress is not None:
            progress(scan.position)
        if isinstance(batch, UnreadableRange):
            yield batch._replace(**place)
        elif batch.is_control:
            yield from _markers(batch, place)
        else:
            producer = (batch.producer_id, batch.producer_epoch) if batch.transactional else (-1, -1)
            for record in batch:
                yield coordinator_record(record, place, log, *producer)
    if remaining_bytes := len(scan.remainder):
        reason = "the last batch isn't all there"
        yield UnreadableRange(scan.position, remaining_bytes, reason, **place)


def _markers(batch: RecordBatch, place: dict[str, Any]) -> Iterator[LogItem]:
    for record in batch:
        try:
            control = read_control(record, batch.position)
        except CorruptBatch as error:
            yield UnreadableRange(batch.position, batch.size, str(error), **place)
            continue
        kind = control.type
        yield Marker(
            **place, log_offset=record.offset, timestamp_ms=record.timestamp,
            kind=kind.name.lower() if isinstance(kind, ControlType) else str(kind),
            producer_id=batch.producer_id, producer_epoch=batch.producer_epoch,
            coordinator_epoch=getattr(control.value, "coordinator_epoch", -1),
        )  # fmt: skip


def coordinator_record(
    record: Record, place: dict[str, Any], log: Log, producer_id: int = _NO_PRODUCER, producer_epoch: int = -1
) -> CoordinatorRecord:
    """A record of this log. place: the attributes file, log and log_partition."""
    refusal = None
    try:
        decoded = decode_log_record(log, record.key, record.value)
    except DecodeError as error:
        refusal = Refusal(error.reason, error.position, error.path)
        decoded = LogRecord(log=log, type=None, key=record.key, value=record.value)
    return CoordinatorRecord(
        **place, log_offset=record.offset, timestamp_ms=record.timestamp, type=decoded.type,
        version=decoded.version, kind=_kind(decoded), key=decoded.key, value=decoded.value,
        raw_key=record.key, producer_id=producer_id, producer_epoch=producer_epoch, unknown=decoded.unknown,
        refusal=refusal,
    )  # fmt: skip


def _kind(record: LogRecord) -> str | None:
    """A record type in Kafka's words: its class without the part for a key or a record."""
    if isinstance(record.key, Message):
        return type(record.key).__name__.removesuffix("Key")
    if record.log == "metadata" and record.type in RECORD_TYPES[record.log]:
        return RECORD_TYPES[record.log][record.type].value.removesuffix("Record")
    return None
