"""The records that coordinators and controllers keep in logs of their own, as messages and back.

    log                 topic                 key                  value
    consumer_offsets    __consumer_offsets    int16 type, message  int16 version, message
    transaction_state   __transaction_state   int16 type, message  int16 version, message
    share_group_state   __share_group_state   int16 type, message  int16 version, message
    metadata            __cluster_metadata    none                 uvarint frame version, uvarint type,
                                                                   uvarint version, message

Strategy: the type picks two classes from the generated table; the version is the value's own, since a key has
one layout for each type. Rules: what a newer broker may write is not an error: an unknown type, version or
frame stays bytes, and `unknown` has the reason. A record of a known type and version that can't be read is
refused by `decode_log_record`, and left as bytes by `open_log_record`; offsets count from the start of the
key or value, and paths begin with "key" or "value". What was decoded encodes again. Control batches hold
other records, which this module doesn't read. Other brokers may write Kafka's keys with values of their own:
one in an envelope of Redpanda's serde (redpanda PR #31475) that isn't a value of Kafka's stays bytes too.
"""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import NamedTuple, Protocol

from coordwire._dataclasses import dataclass
from coordwire.codec import Message
from coordwire.codec.message import Buffer
from coordwire.codec.primitives import uvarint
from coordwire.errors import (
    DecodeError,
    Deviation,
    EncodeError,
    Malformed,
    OutOfRange,
    Truncated,
    WrongType,
)
from coordwire.messages import find_message
from coordwire.messages.record_types import RECORD_TYPES, TOPICS, Log

__all__ = [
    "TOPICS",
    "Log",
    "LogRecord",
    "RecordClasses",
    "decode_log_record",
    "encode_log_record",
    "find_record",
    "open_log_record",
]

_LOGS = {topic: log for log, topic in TOPICS.items()}
_INT16 = struct.Struct(">h")
_PREFIX = _INT16.size
_FRAME_VERSION = 1
"""The one frame version of the metadata log so far."""

_MAX_UVARINT = (1 << 32) - 1
_ENVELOPE = struct.Struct("<BBI")
"""Of Redpanda's serde: version, the oldest version whose readers can read it, bytes that follow."""


class RecordClasses(NamedTuple):
    """The classes of a record's key and value; `key` is None in the metadata log, which has no keys."""

    key: type[Message] | None
    value: type[Message]


@dataclass(slots=True, kw_only=True)
class LogRecord:
    """A record of one of the logs in `TOPICS`.

    type: the record type; None where the metadata log's frame is of an unknown version, and where nothing
    could be read.
    key: a message; the bytes after the type where that is unknown; None in the metadata log.
    value: a message; the bytes after the prefixes as far as they are known; None for a tombstone.
    version: the value's; None for a tombstone, and where type or frame version are unknown.
    frame_version: the metadata log's, 1 so far; the other logs have none.
    unknown: why the key or the value is bytes; None where all is known.
    """

    log: Log
    type: int | None
    key: Message | bytes | None = None
    value: Message | bytes | None = None
    version: int | None = None
    frame_version: int = _FRAME_VERSION
    unknown: str | None = None


def find_record(log: Log, record_type: int) -> RecordClasses:
    """The classes of a record type: `find_record("consumer_offsets", 1)`. `KeyError` if there is none."""
    names = RECORD_TYPES[log].get(record_type)
    if names is None:
        raise KeyError((log, record_type))
    return RecordClasses(find_message(names.key) if names.key else None, find_message(names.value))


# --- from bytes ---


class KeyAndValue(Protocol):
    """An object with a key and a value, as `coordwire.records.Record`."""

    @property
    def key(self) -> bytes | None: ...
    @property
    def value(self) -> bytes | None: ...


def open_log_record(topic: str, record: KeyAndValue) -> LogRecord | None:
    """The messages of a record of this topic; None if the topic isn't one of the brokers' own logs.

    Reads as leniently as Kafka does, and never raises: a key or value that can't be read stays bytes, and
    `unknown` says why. `record` must not come from a control batch. What its messages hide in bytes,
    `coordwire.open_embedded(opened.value)` opens.
    """
    log = _LOGS.get(topic)
    if log is None:
        return None
    try:
        return decode_log_record(log, record.key, record.value, strict=False)
    except DecodeError as error:
        refusal = error
    opened = LogRecord(log=log, type=None, key=record.key)
    if log != "metadata" and refusal.path.startswith("value"):
        opened = decode_log_record(log, record.key, None, strict=False)
    opened.value = record.value
    opened.unknown = str(refusal)
    return opened


def decode_log_record(
    log: Log,
    key: Buffer | None,
    value: Buffer | None,
    *,
    strict: bool = True,
    deviations: list[Deviation] | None = None,
) -> LogRecord:
    """The record that this key and this value hold; a `value` of None is a tombstone.

    strict=False accepts what Apache Kafka's own decoder accepts, with its value, and appends each `Deviation`
    to `deviations`.

    Raises `DecodeError` for a prefix that is cut off, for bytes that a known type and version can't have, and
    for a key or value that is missing where the log can't do without; `KeyError` for a log that isn't in
    `TOPICS`.
    """
    types = RECORD_TYPES[log]
    reading = _Reading(strict, deviations)
    data = None if value is None else _plain(value)
    if log == "metadata":
        return _metadata_record(None if key is None else _plain(key), data, reading)
    if key is None:
        raise Malformed(f"a record of {TOPICS[log]} needs a key", 0, "key")
    start = _plain(key)
    record_type = _int16(start, "key", "the record type")
    if record_type not in types:
        reason = f"record type {record_type} is unknown"
        return LogRecord(log=log, type=record_type, key=start[_PREFIX:], value=data, unknown=reason)
    classes = find_record(log, record_type)
    assert classes.key is not None
    record = LogRecord(log=log, type=record_type)
    record.key = _message(classes.key, start, _PREFIX, 0, "key", reading)
    if data is not None:
        version = _int16(data, "value", "the value's version")
        if _is_enveloped(data) and not _is_exact(classes.value, data, version):
            record.value = data
            record.unknown = "not Kafka's layout: an envelope of Redpanda's serde"
        else:
            _value(record, classes.value, version, data, _PREFIX, reading)
    return record


class _Reading(NamedTuple):
    """Whether to read strictly, and the list of deviations, if they are wanted."""

    strict: bool
    deviations: list[Deviation] | None

    def deviate(self, reason: str, offset: int, path: str) -> None:
        """Note a deviation, or raise it if strict."""
        if self.strict:
            raise Malformed(reason, offset, path)
        if self.deviations is not None:
            self.deviations.append(Deviation(reason, offset, path))


def _metadata_record(key: bytes | None, data: bytes | None, reading: _Reading) -> LogRecord:
    if data is None:
        raise Malformed(f"a record of {TOPICS['metadata']} needs a value", 0, "value")
    record = LogRecord(log="metadata", type=None, key=key)
    record.frame_version, pos = _uvarint(data, 0, "the frame version", reading)
    if record.frame_version != _FRAME_VERSION:
        record.value = data[pos:]
        record.unknown = f"frame version {record.frame_version} is unknown"
        return record
    record.type, pos = _uvarint(data, pos, "the record type", reading)
    if record.type not in RECORD_TYPES["metadata"]:
        record.value = data[pos:]
        record.unknown = f"record type {record.type} is unknown"
        return record
    version, pos = _uvarint(data, pos, "the value's version", reading)
    _value(record, find_record("metadata", record.type).value, version, data, pos, reading)
    if key is not None and record.unknown is None:
        record.unknown = "a key has no meaning in the metadata log"
    return record


def _value(
    record: LogRecord, cls: type[Message], version: int, data: bytes, pos: int, reading: _Reading
) -> None:
    """Fill in the value that follows its version."""
    known = cls.versions
    record.version = version
    if version in known:
        record.value = _message(cls, data, pos, version, "value", reading)
    else:
        record.value = data[pos:]
        record.unknown = f"{cls.__name__} has no version {version}: it has {known[0]} to {known[-1]}"


def _is_enveloped(data: bytes) -> bool:
    """Whether a value has an envelope's form. Few of Kafka's have: their first numbers would be enormous."""
    if len(data) <= _ENVELOPE.size:
        return False
    version, compatible, size = _ENVELOPE.unpack_from(data)
    return bool(compatible <= version and size == len(data) - _ENVELOPE.size)


def _is_exact(cls: type[Message], data: bytes, version: int) -> bool:
    """Whether a value is one of Kafka's without any deviation."""
    try:
        cls.decode(data[_PREFIX:], version=version)
    except DecodeError:
        return False
    return True


def _message(
    cls: type[Message], data: bytes, pos: int, version: int, part: str, reading: _Reading
) -> Message:
    inner_deviations: list[Deviation] = []
    try:
        return cls._decode_at(data, pos, version, reading.strict, inner_deviations)
    except DecodeError as error:
        error.path = f"{part}.{error.path}" if error.path else part
        raise
    finally:
        if reading.deviations is not None:
            reading.deviations.extend(
                replace(deviation, path=f"{part}.{deviation.path}" if deviation.path else part)
                for deviation in inner_deviations
            )


def _plain(data: Buffer) -> bytes:
    return data if isinstance(data, bytes) else bytes(memoryview(data))


def _int16(data: bytes, part: str, subject: str) -> int:
    if len(data) < _PREFIX:
        raise Truncated(f"{subject} needs {_PREFIX} bytes, {len(data)} given", 0, part)
    return int(_INT16.unpack_from(data)[0])


def _uvarint(data: bytes, start: int, subject: str, reading: _Reading) -> tuple[int, int]:
    """An unsigned varint of the metadata log's frame, and the position after it."""
    value = 0
    for index in range(5):
        pos = start + index
        if pos >= len(data):
            raise Truncated(f"{subject} ends early", pos, "value")
        byte = data[pos]
        value |= (byte & 127) << 7 * index
        if byte < 128:
            if value > _MAX_UVARINT:
                break
            if byte == 0 and index:
                reading.deviate(f"the varint of {subject} is over-long", start, "value")
            return value, pos + 1
    raise Malformed(f"the varint of {subject} overflows 32 bits", start, "value")


# --- to bytes ---


def encode_log_record(record: LogRecord) -> tuple[bytes | None, bytes | None]:
    """The key and the value of a record, as its log holds them; a value of None is a tombstone.

    Messages are written in `record.version`, bytes as they are. Raises `EncodeError`: `WrongType` for a
    message that isn't of the record's type, or one that needs a type or version and has none, and what
    `Message.encode` raises, with a path that begins with "key" or "value".
    """
    if record.log not in RECORD_TYPES:
        raise WrongType(f"unknown log {record.log!r}", "log")
    if record.log == "metadata":
        return _metadata_bytes(record)
    if record.type is None:
        raise WrongType(f"a record of {TOPICS[record.log]} needs a type", "type")
    if record.key is None:
        raise WrongType(f"a record of {TOPICS[record.log]} needs a key", "key")
    key = _prefix(record.type, "type") + _part(record, record.key, 0, "key")
    if record.value is None:
        return key, None
    if record.version is None:
        if isinstance(record.value, Message):
            raise WrongType("a message needs a version to be written in", "version")
        return key, bytes(record.value)
    return key, _prefix(record.version, "version") + _part(record, record.value, record.version, "value")


def _metadata_bytes(record: LogRecord) -> tuple[bytes | None, bytes]:
    if record.value is None:
        raise WrongType(f"a record of {TOPICS['metadata']} needs a value", "value")
    if isinstance(record.key, Message):
        raise WrongType(f"expected bytes as a key of {TOPICS['metadata']}, got a message", "key")
    parts = [_number(record.frame_version, "frame_version")]
    if record.type is not None:
        parts.append(_number(record.type, "type"))
    if record.version is not None:
        if record.type is None:
            raise WrongType("a version needs a type before it", "type")
        parts.append(_number(record.version, "version"))
    elif isinstance(record.value, Message):
        raise WrongType("a message needs a version to be written in", "version")
    parts.append(_part(record, record.value, record.version or 0, "value"))
    return record.key, b"".join(parts)


def _part(record: LogRecord, part: Message | bytes, version: int, name: str) -> bytes:
    if not isinstance(part, Message):
        try:
            return bytes(memoryview(part))
        except TypeError:
            raise WrongType(f"expected a message or bytes, got {type(part).__name__}", name) from None
    assert record.type is not None
    try:
        classes = find_record(record.log, record.type)
    except KeyError:
        raise WrongType(
            f"record type {record.type} is unknown: expected bytes, got {type(part).__name__}", name
        ) from None
    expected_class = classes.key if name == "key" else classes.value
    if type(part) is not expected_class:
        expected = expected_class.__name__ if expected_class else "nothing"
        raise WrongType(
            f"expected {expected} in a record of type {record.type}, got {type(part).__name__}", name
        )
    try:
        return part.encode(version=version)
    except EncodeError as error:
        error.path = f"{name}.{error.path}" if error.path else name
        raise


def _prefix(number: int, path: str) -> bytes:
    try:
        return _INT16.pack(number)
    except struct.error:
        raise OutOfRange(f"{number!r} is beyond an int16", path) from None


def _number(number: int, path: str) -> bytes:
    if not isinstance(number, int):
        raise WrongType(f"expected an int, got {type(number).__name__}", path)
    if not 0 <= number <= _MAX_UVARINT:
        raise OutOfRange(f"{number} is beyond an unsigned varint of 32 bits", path)
    return uvarint(number)
