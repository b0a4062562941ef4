"""Words for values: numbers, texts, arrays, and how their lengths are written.

Strategy and rules: as `schemas.vocabulary`, which exports these words to the schemas; here are the words for
values, there those for messages.
"""

from __future__ import annotations

import io
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from typing import TYPE_CHECKING, Any

import construct
from construct import Construct, Subconstruct, ValidationError

if TYPE_CHECKING:
    from schemas.vocabulary import Message

    Holds = dict[str, Message]

MAX_STRING = 32767
"""Kafka writes no string of more bytes, though a compact length could say more."""
MAX_ARRAY_ELEMENTS = 1_000_000
MAX_TAGGED_FIELDS = 10_000
"""Since 4.4 Kafka reads no array of more elements, and no more tagged fields after one struct."""


class Encoding(Enum):
    """How lengths and counts are written."""

    SHORT_COUNTS = "int16 string lengths and counts, no tagged fields"
    CLASSIC = "int16 string lengths, int32 counts, no tagged fields"
    FLEXIBLE = "lengths as unsigned varints, tagged fields after each struct"


def refuse(reason: str, path: str) -> ValidationError:
    return ValidationError(reason, path=path)


def read_bytes(stream: io.BytesIO, count: int, path: str) -> bytes:
    data = stream.read(count) if count > 0 else b""
    if len(data) != count:
        raise refuse(f"{count} bytes wanted, {len(data)} left", path)
    return data


# --- lengths ------------------------------------------------------------------------------------------------


def read_uvarint(stream: io.BytesIO, path: str, bits: int = 32) -> int:
    value = shift = 0
    while True:
        byte = read_bytes(stream, 1, path)[0]
        value |= (byte & 127) << shift
        if byte < 128:
            break
        shift += 7
    if value >> bits or (byte == 0 and shift):
        raise refuse("over-long or overflowing varint", path)
    return value


def write_uvarint(value: int, stream: io.BytesIO) -> None:
    while value > 127:
        stream.write(bytes([value & 127 | 128]))
        value >>= 7
    stream.write(bytes([value]))


_INT16 = construct.Int16sb
_INT32 = construct.Int32sb


def _width(kind: str, encoding: Encoding) -> Construct:
    """How the length of a string or bytes, or the count of an array, is written where it isn't flexible."""
    return _INT16 if kind == "string" or (kind == "array" and encoding is Encoding.SHORT_COUNTS) else _INT32


def _read_length(stream: io.BytesIO, context: Any, path: str, kind: str) -> int:
    """A length or count; -1 for null."""
    encoding, text = context._params.encoding, kind == "string"
    if encoding is Encoding.FLEXIBLE:
        length = read_uvarint(stream, path) - 1
    else:
        length = int(_width(kind, encoding)._parsereport(stream, context, path))
    if length < -1 or (text and length > MAX_STRING):
        raise refuse(f"impossible length {length}", path)
    return length


def _write_length(length: int, stream: io.BytesIO, context: Any, path: str, kind: str) -> None:
    if kind == "string" and length > MAX_STRING:
        raise refuse(f"{length} bytes are too long for a string", path)
    encoding = context._params.encoding
    if encoding is Encoding.FLEXIBLE:
        write_uvarint(length + 1, stream)
    else:
        _width(kind, encoding)._build(length, stream, context, path)


# --- words for values ---------------------------------------------------------------------------------------


class Primitive(Subconstruct):
    """A number, boolean or uuid of fixed size; `kind` is its name in Kafka's definitions.

    entity: what its value identifies, for the words below that say so.
    """

    def __init__(self, kind: str, subcon: Construct, default: object = 0, entity: str | None = None) -> None:
        super().__init__(subcon)
        self.kind = kind
        self.default = default
        self.entity = entity


class _BooleanByte(construct.Adapter):
    def _decode(self, obj: int, context: Any, path: str) -> bool:
        if obj not in (0, 1):
            raise refuse(f"a boolean can't be {obj}", path)
        return obj == 1

    def _encode(self, obj: object, context: Any, path: str) -> int:
        if not isinstance(obj, bool):
            raise refuse(f"{obj!r} is not a boolean", path)
        return int(obj)


class _UuidBytes(construct.Adapter):
    def _decode(self, obj: bytes, context: Any, path: str) -> uuid.UUID:
        return uuid.UUID(bytes=obj)

    def _encode(self, obj: uuid.UUID, context: Any, path: str) -> bytes:
        return obj.bytes


Int8 = Primitive("int8", construct.Int8sb)
Int16 = Primitive("int16", construct.Int16sb)
Int32 = Primitive("int32", construct.Int32sb)
Int64 = Primitive("int64", construct.Int64sb)
Uint16 = Primitive("uint16", construct.Int16ub)
Uint32 = Primitive("uint32", construct.Int32ub)
Float64 = Primitive("float64", construct.Float64b, 0.0)
Boolean = Primitive("bool", _BooleanByte(construct.Int8ub), False)
Uuid = Primitive("uuid", _UuidBytes(construct.Bytes(16)), uuid.UUID(int=0))


class _Zigzag(Construct):
    """A signed number of at most `bits` bits as a zigzag varint."""

    def __init__(self, kind: str, bits: int) -> None:
        super().__init__()
        self.kind = kind
        self.bits = bits
        self.default = 0

    def _parse(self, stream: io.BytesIO, context: Any, path: str) -> int:
        value = read_uvarint(stream, path, self.bits)
        return (value >> 1) ^ -(value & 1)

    def _build(self, obj: int, stream: io.BytesIO, context: Any, path: str) -> int:
        if not -(1 << self.bits - 1) <= obj < 1 << self.bits - 1:
            raise refuse(f"{obj} is beyond {self.bits} bits", path)
        write_uvarint(obj << 1 if obj >= 0 else ~obj << 1 | 1, stream)
        return obj


Varint = _Zigzag("varint", 32)
Varlong = _Zigzag("varlong", 64)


class _Sized(Construct):
    """A string or bytes after its length; null where the `Nullable` around it says so."""

    def __init__(
        self, kind: str, default: object, contents: Holds | None = None, entity: str | None = None
    ) -> None:
        super().__init__()
        self.kind = kind
        self.default = default
        self.entity = entity
        self.embedded = contents or {}
        self.text = kind in ("string", "long_string")

    def _parse(self, stream: io.BytesIO, context: Any, path: str) -> object:
        length = _read_length(stream, context, path, self.kind)
        if length < 0:
            return None
        data = read_bytes(stream, length, path)
        return data.decode("utf-8") if self.text else data

    def _build(self, obj: Any, stream: io.BytesIO, context: Any, path: str) -> object:
        data = b"" if obj is None else obj.encode("utf-8") if self.text else bytes(obj)
        _write_length(-1 if obj is None else len(data), stream, context, path, self.kind)
        stream.write(data)
        return obj


String = _Sized("string", "")
LongString = _Sized("long_string", "")  # after an int32 length, as jute writes texts
Bytes = _Sized("bytes", b"")
Records = _Sized("records", b"")

# Words that also say what the value means. The first five are Kafka's entity types; the others are ours.
BrokerId = Primitive("int32", construct.Int32sb, entity="broker_id")
GroupId = _Sized("string", "", entity="group_id")
ProducerId = Primitive("int64", construct.Int64sb, entity="producer_id")
TopicName = _Sized("string", "", entity="topic_name")
TransactionalId = _Sized("string", "", entity="transactional_id")
ErrorCode = Primitive("int16", construct.Int16sb, entity="error_code")
LongErrorCode = Primitive("int32", construct.Int32sb, entity="error_code")
InstanceId = _Sized("string", "", entity="instance_id")
MemberId = _Sized("string", "", entity="member_id")
BrokerHost = _Sized("string", "", entity="broker_host")
BrokerPort = Primitive("int32", construct.Int32sb, entity="broker_port")
ShortBrokerPort = Primitive("uint16", construct.Int16ub, entity="broker_port")


class _Rest(Construct):
    """Bytes without a length: all bytes up to the end of the message, or of the sized struct."""

    default = b""
    unprefixed = True

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind

    def _parse(self, stream: io.BytesIO, context: Any, path: str) -> bytes:
        return stream.read()

    def _build(self, obj: Any, stream: io.BytesIO, context: Any, path: str) -> object:
        stream.write(bytes(obj))
        return obj


Rest = _Rest("bytes")
RestRecords = _Rest("records")


def Embedded(contents: Message | Holds) -> Construct:
    """Bytes whose inside is known; they stay bytes here. An int16 version precedes it, unless it has its own.

    contents: the message inside; or several, by the protocol type or protocol that the outer message names.
    """
    return _Sized("bytes", b"", contents if isinstance(contents, dict) else {"": contents})


class Array(Subconstruct):
    """Any number of one word, after their count."""

    kind = "array"

    @property
    def default(self) -> list[object]:
        return []

    def _parse(self, stream: io.BytesIO, context: Any, path: str) -> object:
        count = _read_length(stream, context, path, self.kind)
        if count < 0:
            return None
        remaining = len(stream.getbuffer()) - stream.tell()
        if count > remaining:  # every element has at least a byte
            raise refuse(f"{count} elements claimed, {remaining} bytes left", path)
        if count > MAX_ARRAY_ELEMENTS:
            raise refuse(f"{count} elements in an array", path)
        return [self._element(stream, context, f"{path}[{i}]") for i in range(count)]

    def _element(self, stream: io.BytesIO, context: Any, path: str) -> object:
        value = self.subcon._parsereport(stream, context, path)
        if value is None:
            raise refuse("an element can't be null", path)
        return value

    def _build(self, obj: Any, stream: io.BytesIO, context: Any, path: str) -> object:
        _write_length(-1 if obj is None else len(obj), stream, context, path, self.kind)
        for i, element in enumerate(obj or ()):
            self.subcon._build(element, stream, context, f"{path}[{i}]")
        return obj


class Sequence(Array):
    """Any number of one struct without a count, up to the end of the message, each after its int32 size."""

    unprefixed = True

    def _parse(self, stream: io.BytesIO, context: Any, path: str) -> object:
        values: list[object] = []
        while stream.tell() < len(stream.getbuffer()):
            element_path = f"{path}[{len(values)}]"
            element_stream = io.BytesIO(
                read_bytes(stream, self._size(stream, context, element_path), element_path)
            )
            values.append(self._element(element_stream, context, element_path))
            if element_stream.read(1):
                raise refuse("an element is shorter than its size", element_path)
        return values

    def _size(self, stream: io.BytesIO, context: Any, path: str) -> int:
        size = int(_INT32._parsereport(stream, context, path))
        if size < 0:
            raise refuse(f"a size of {size}", path)
        return size

    def _build(self, obj: Any, stream: io.BytesIO, context: Any, path: str) -> object:
        for i, element in enumerate(obj):
            element_stream = io.BytesIO()
            self.subcon._build(element, element_stream, context, f"{path}[{i}]")
            _INT32._build(len(element_stream.getbuffer()), stream, context, path)
            stream.write(element_stream.getbuffer())
        return obj


class Fixed(Subconstruct):
    """Keeps the fixed lengths inside a flexible message (the request header's client id)."""

    def _parse(self, stream: io.BytesIO, context: Any, path: str) -> object:
        with _encoded(context._params, Encoding.CLASSIC):
            return self.subcon._parsereport(stream, context, path)

    def _build(self, obj: object, stream: io.BytesIO, context: Any, path: str) -> object:
        with _encoded(context._params, Encoding.CLASSIC):
            return self.subcon._build(obj, stream, context, path)


@contextmanager
def _encoded(params: Any, encoding: Encoding) -> Iterator[None]:
    outer, params.encoding = params.encoding, encoding
    try:
        yield
    finally:
        params.encoding = outer
