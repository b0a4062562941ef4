"""Control records: those that brokers and controllers write into a partition for themselves.

Strategy: the key is two int16s, version and type; the type says which message of
`coordwire.messages.control_records` the value is. Rules: a record of an unknown type is returned with its
value as bytes, as is a value of a later version; Kafka itself skips both.
"""

from __future__ import annotations

from enum import IntEnum
from struct import Struct

from coordwire._dataclasses import dataclass
from coordwire.codec import Message
from coordwire.errors import CorruptBatch, DecodeError, WrongType
from coordwire.messages.control_records import (
    EndTxnMarker,
    KRaftVersionRecord,
    LeaderChangeMessage,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
)
from coordwire.records.record import Record


class ControlType(IntEnum):
    """The types of control records (`org.apache.kafka.common.record.ControlRecordType`)."""

    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


_MESSAGES: dict[int, type[Message]] = {
    ControlType.ABORT: EndTxnMarker,
    ControlType.COMMIT: EndTxnMarker,
    ControlType.LEADER_CHANGE: LeaderChangeMessage,
    ControlType.SNAPSHOT_HEADER: SnapshotHeaderRecord,
    ControlType.SNAPSHOT_FOOTER: SnapshotFooterRecord,
    ControlType.KRAFT_VERSION: KRaftVersionRecord,
    ControlType.KRAFT_VOTERS: VotersRecord,
}
_KEY = Struct(">hh")
_VERSION = Struct(">h")


@dataclass(slots=True)
class ControlRecord:
    """A control record with its key and value decoded.

    offset, timestamp: those of the record. type: what it is; a plain int where this package doesn't know it.
    version: of the key. value: the message, or the bytes of one that this package doesn't know.
    """

    offset: int
    timestamp: int
    type: ControlType | int
    version: int
    value: Message | bytes | None


def read_control(record: Record, offset: int = 0, path: str = "record") -> ControlRecord:
    """A control batch's record, decoded.

    offset, path: the record's place for an error. Raises `CorruptBatch` for a key shorter than 4
    bytes or of a negative version, and for a value that isn't the message that the key promises.
    """
    key = record.key
    if key is None or len(key) < 4:
        size = "null" if key is None else len(key)
        raise CorruptBatch(
            f"a control record's key needs at least 4 bytes, got {size}", offset, f"{path}.key"
        )
    version, number = _KEY.unpack_from(key)
    if version < 0:
        raise CorruptBatch(f"a control record's key can't have version {version}", offset, f"{path}.key")
    known = _MESSAGES.get(number)
    kind = ControlType(number) if known else number
    value: Message | bytes | None = record.value
    if known is not None:
        value = _read_value(known, record.value, offset, f"{path}.value")
    return ControlRecord(record.offset, record.timestamp, kind, version, value)


def _read_value(known: type[Message], value: bytes | None, offset: int, path: str) -> Message | bytes:
    if value is None or len(value) < 2:
        size = "null" if value is None else len(value)
        raise CorruptBatch(f"{known.__name__} needs at least 2 bytes, got {size}", offset, path)
    (version,) = _VERSION.unpack_from(value)
    if version > known.versions[-1]:
        return value
    body = value if _has_version(known) else value[2:]
    try:
        return known.decode(body, version=version, strict=False)
    except DecodeError as error:
        error_path = f"{path}.{error.path}" if error.path else path
        raise CorruptBatch(f"{known.__name__}: {error.reason}", offset, error_path) from None


def control_record(
    kind: ControlType, value: Message, *, version: int = 0, offset: int = -1, timestamp: int = -1
) -> Record:
    """A control record to write in a batch with `control=True`.

    version: of the value; KRaft's messages state it in their own field too. Raises `WrongType` if the value
    isn't the type's message, and what its `encode` raises.
    """
    if not isinstance(value, _MESSAGES[kind]):
        raise WrongType(
            f"expected {_MESSAGES[kind].__name__} for {kind.name}, got {type(value).__name__}", "value"
        )
    prefix = b"" if _has_version(type(value)) else _VERSION.pack(version)
    return Record(offset, timestamp, _KEY.pack(0, kind), prefix + value.encode(version=version))


def _has_version(message: type[Message]) -> bool:
    """Whether the layout begins with the version; else the version is before it."""
    return "version" in message.__slots__
