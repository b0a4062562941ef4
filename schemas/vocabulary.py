"""Every word that a schema may use; each is a `construct` that parses and builds by itself.

Strategy: a message is a `Struct` of named words. What changes with the version (is the field there, may it be
null, how are lengths written) is decided while parsing or building, from two context parameters that
`Message.parse` and `Message.build` set: `version` and `encoding`. So one declaration serves all versions, and
the generator (`schemas/_generate`) reads the very objects that the tests run as oracle.

Rules: a word holds what it says and nothing of how coordwire runs it; parsing is strict, as `decode` is; a
field's doc is written with `*` behind it. Values are plain: int, float, bool, str, bytes, uuid.UUID, None,
lists, and `Container`s with one entry a field plus `tags` (unknown tagged fields by number, or None).
"""

from __future__ import annotations

import copy
import io
import sys
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from enum import Enum
from types import FrameType
from typing import Any, NamedTuple

import construct
from construct import Construct, Container, Renamed, Subconstruct, ValidationError

__all__ = [
    "Api",
    "Array",
    "Between",
    "Boolean",
    "Bytes",
    "Classic",
    "Data",
    "Default",
    "Embedded",
    "Float64",
    "Int8",
    "Int16",
    "Int32",
    "Int64",
    "Nullable",
    "Records",
    "Since",
    "String",
    "Struct",
    "Tagged",
    "Uint16",
    "Uint32",
    "Until",
    "Uuid",
    "Varint",
    "Varlong",
]

FOREVER = 32767
"""The last version of a field that no version dropped."""

MAX_STRING = 32767
"""Kafka writes no string of more bytes, though a compact length could say more."""


class Encoding(Enum):
    """How lengths and counts are written."""

    DRAFT = "int16 counts, no tagged fields"
    CLASSIC = "int16 string lengths, int32 counts, no tagged fields"
    FLEXIBLE = "lengths as unsigned varints, tagged fields behind each struct"


def _refuse(why: str, path: str) -> ValidationError:
    return ValidationError(why, path=path)


def _read(stream: io.BytesIO, count: int, path: str) -> bytes:
    data = stream.read(count) if count > 0 else b""
    if len(data) != count:
        raise _refuse(f"{count} bytes wanted, {len(data)} left", path)
    return data


# --- lengths ------------------------------------------------------------------------------------------------


def _read_uvarint(stream: io.BytesIO, path: str, bits: int = 32) -> int:
    value = shift = 0
    while True:
        byte = _read(stream, 1, path)[0]
        value |= (byte & 127) << shift
        if byte < 128:
            break
        shift += 7
    if value >> bits or (byte == 0 and shift):
        raise _refuse("over-long or overflowing varint", path)
    return value


def _write_uvarint(value: int, stream: io.BytesIO) -> None:
    while value > 127:
        stream.write(bytes([value & 127 | 128]))
        value >>= 7
    stream.write(bytes([value]))


_INT16 = construct.Int16sb
_INT32 = construct.Int32sb
_WIDTH = {Encoding.DRAFT: _INT16, Encoding.CLASSIC: _INT32}


def _read_length(stream: io.BytesIO, context: Any, path: str, *, text: bool = False) -> int:
    """A length or count; -1 for null."""
    encoding = context._params.encoding
    if encoding is Encoding.FLEXIBLE:
        length = _read_uvarint(stream, path) - 1
    else:
        width = _INT16 if text else _WIDTH[encoding]
        length = int(width._parsereport(stream, context, path))
    if length < -1 or (text and length > MAX_STRING):
        raise _refuse(f"impossible length {length}", path)
    return length


def _write_length(length: int, stream: io.BytesIO, context: Any, path: str, *, text: bool = False) -> None:
    if text and length > MAX_STRING:
        raise _refuse(f"{length} bytes are too long for a string", path)
    encoding = context._params.encoding
    if encoding is Encoding.FLEXIBLE:
        _write_uvarint(length + 1, stream)
    else:
        (_INT16 if text else _WIDTH[encoding])._build(length, stream, context, path)


# --- words for values ---------------------------------------------------------------------------------------


class Primitive(Subconstruct):
    """A number, boolean or uuid of fixed size; `kind` is its name in Kafka's definitions."""

    def __init__(self, kind: str, subcon: Construct, default: object = 0) -> None:
        super().__init__(subcon)
        self.kind = kind
        self.default = default


class _BooleanByte(construct.Adapter):
    def _decode(self, obj: int, context: Any, path: str) -> bool:
        if obj not in (0, 1):
            raise _refuse(f"a boolean can't be {obj}", path)
        return obj == 1

    def _encode(self, obj: object, context: Any, path: str) -> int:
        if not isinstance(obj, bool):
            raise _refuse(f"{obj!r} is no boolean", path)
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
        value = _read_uvarint(stream, path, self.bits)
        return (value >> 1) ^ -(value & 1)

    def _build(self, obj: int, stream: io.BytesIO, context: Any, path: str) -> int:
        if not -(1 << self.bits - 1) <= obj < 1 << self.bits - 1:
            raise _refuse(f"{obj} is beyond {self.bits} bits", path)
        _write_uvarint(obj << 1 if obj >= 0 else ~obj << 1 | 1, stream)
        return obj


Varint = _Zigzag("varint", 32)
Varlong = _Zigzag("varlong", 64)


class _Sized(Construct):
    """A string or bytes behind its length; null where the `Nullable` around it says so."""

    def __init__(self, kind: str, default: object, embedded: Message | None = None) -> None:
        super().__init__()
        self.kind = kind
        self.default = default
        self.embedded = embedded
        self.text = kind == "string"

    def _parse(self, stream: io.BytesIO, context: Any, path: str) -> object:
        length = _read_length(stream, context, path, text=self.text)
        if length < 0:
            return None
        data = _read(stream, length, path)
        return data.decode("utf-8") if self.text else data

    def _build(self, obj: Any, stream: io.BytesIO, context: Any, path: str) -> object:
        data = b"" if obj is None else obj.encode("utf-8") if self.text else bytes(obj)
        _write_length(-1 if obj is None else len(data), stream, context, path, text=self.text)
        stream.write(data)
        return obj


String = _Sized("string", "")
Bytes = _Sized("bytes", b"")
Records = _Sized("records", b"")


def Embedded(schema: Message) -> Construct:
    """Bytes whose inside is known: an int16 version, then `schema` in that version. They stay bytes here."""
    return _Sized("bytes", b"", embedded=schema)


class Array(Subconstruct):
    """Any number of one word, behind their count."""

    kind = "array"

    @property
    def default(self) -> list[object]:
        return []

    def _parse(self, stream: io.BytesIO, context: Any, path: str) -> object:
        count = _read_length(stream, context, path)
        if count < 0:
            return None
        left = len(stream.getbuffer()) - stream.tell()
        if count > left:  # every element has at least a byte
            raise _refuse(f"{count} elements claimed, {left} bytes left", path)
        return [self._element(stream, context, f"{path}[{i}]") for i in range(count)]

    def _element(self, stream: io.BytesIO, context: Any, path: str) -> object:
        value = self.subcon._parsereport(stream, context, path)
        if value is None:
            raise _refuse("an element can't be null", path)
        return value

    def _build(self, obj: Any, stream: io.BytesIO, context: Any, path: str) -> object:
        _write_length(-1 if obj is None else len(obj), stream, context, path)
        for i, element in enumerate(obj or ()):
            self.subcon._build(element, stream, context, f"{path}[{i}]")
        return obj


class Classic(Subconstruct):
    """Keeps the classic lengths inside a flexible message (the request header's client id)."""

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


# --- words around a value -----------------------------------------------------------------------------------


class Nullable(Subconstruct):
    """May be null, from version `since` on; its default is null unless `Default` says otherwise."""

    def __init__(self, subcon: Construct, since: int = 0) -> None:
        super().__init__(subcon)
        self.since = since
        self.default = None


class Default(Subconstruct):
    """Has another default than its word has by itself."""

    def __init__(self, subcon: Construct, default: object) -> None:
        super().__init__(subcon)
        self.default = default


class Tagged(Subconstruct):
    """Is a tagged field, of this number, wherever it exists: left out when it has its default."""

    def __init__(self, tag: int, subcon: Construct) -> None:
        super().__init__(subcon)
        self.tag = tag


class Between(Subconstruct):
    """Exists in versions `first` to `last`. Outside them a value other than the default is refused, or
    dropped where it is `ignorable`."""

    def __init__(self, first: int, last: int, subcon: Construct, *, ignorable: bool = False) -> None:
        super().__init__(subcon)
        self.first = first
        self.last = last
        self.ignorable = ignorable


def Since(first: int, subcon: Construct, *, ignorable: bool = False) -> Between:
    """Exists from version `first` on."""
    return Between(first, FOREVER, subcon, ignorable=ignorable)


def Until(last: int, subcon: Construct, *, ignorable: bool = False) -> Between:
    """Exists up to version `last`."""
    return Between(0, last, subcon, ignorable=ignorable)


class Named:
    """A field as the words around its value say it: what `Struct` and the generator both go by."""

    def __init__(self, field: Renamed) -> None:
        self.name: str = field.name
        self.doc: str = field.docs
        self.first, self.last, self.ignorable = 0, FOREVER, False
        self.tag: int | None = None
        self.nullable_since: int | None = None
        self.classic = False
        defaults: list[object] = []
        word: Any = field
        while isinstance(word, (Renamed, Between, Tagged, Default, Nullable, Classic)):
            match word:
                case Between():
                    self.first, self.last, self.ignorable = word.first, word.last, word.ignorable
                case Tagged():
                    self.tag = word.tag
                case Default():
                    defaults.append(word.default)
                case Nullable():
                    self.nullable_since = word.since
                    defaults.append(None)
                case Classic():
                    self.classic = True
            word = word.subcon
        self.word: Any = word
        self.wrapped: Construct = Classic(word) if self.classic else word
        self._default = defaults[0] if defaults else word.default

    @property
    def default(self) -> Any:
        """The value of a field that nobody set; a fresh one, where it can be changed."""
        value = self._default
        return copy.deepcopy(value) if isinstance(value, (dict, list)) else value

    def exists(self, version: int) -> bool:
        return self.first <= version <= self.last

    def nullable(self, version: int) -> bool:
        return self.nullable_since is not None and version >= self.nullable_since

    # Before a struct that may be null stands a byte 1; for null -1, or 0 in a tagged field. All other words
    # have a null of their own.

    @property
    def null_marker(self) -> bytes:
        return b"\xff" if self.tag is None else b"\x00"

    def parse(self, stream: io.BytesIO, context: Any, path: str) -> object:
        version = context._params.version
        if isinstance(self.word, Struct) and self.nullable(version):
            marker = _read(stream, 1, path)
            if marker == self.null_marker:
                return None
            if marker != b"\x01":
                raise _refuse("a struct marker is 1, or -1 (tagged: 0) for null", path)
        value = self.wrapped._parsereport(stream, context, path)
        if value is None and not self.nullable(version):
            raise _refuse("can't be null", path)
        return value

    def build(self, value: object, stream: io.BytesIO, context: Any, path: str) -> None:
        version = context._params.version
        if value is None and not self.nullable(version):
            raise _refuse("can't be null", path)
        if isinstance(self.word, Struct) and self.nullable(version):
            stream.write(self.null_marker if value is None else b"\x01")
            if value is None:
                return
        self.wrapped._build(value, stream, context, path)


class Struct(construct.Struct):
    """Named words, one behind the other; in flexible versions the tagged ones follow, by number."""

    kind = "struct"

    def __init__(self, *fields: Renamed, about: str = "") -> None:
        super().__init__(*fields)
        self.about = about
        self.fields = [Named(field) for field in fields]

    @property
    def default(self) -> Container:
        return Container({field.name: field.default for field in self.fields}, tags=None)

    def _parse(self, stream: io.BytesIO, context: Any, path: str) -> Container:
        version = context._params.version
        value = self.default
        tagged: dict[int, Named] = {}
        for field in self.fields:
            if not field.exists(version):
                continue
            if field.tag is not None:
                tagged[field.tag] = field
            else:
                value[field.name] = field.parse(stream, context, f"{path}.{field.name}")
        if context._params.encoding is Encoding.FLEXIBLE:
            self._parse_tags(value, tagged, stream, context, path)
        return value

    def _parse_tags(self, value: Container, tagged: dict[int, Named], stream: io.BytesIO, context: Any,
                    path: str) -> None:  # fmt: skip
        last = -1
        for _ in range(_read_uvarint(stream, path)):
            tag = _read_uvarint(stream, path)
            if tag <= last:
                raise _refuse(f"tag {tag} comes behind tag {last}", path)
            last = tag
            data = _read(stream, _read_uvarint(stream, path), path)
            field = tagged.get(tag)
            if field is None:
                value.tags = value.tags or {}
                value.tags[tag] = data
                continue
            inside = io.BytesIO(data)
            value[field.name] = field.parse(inside, context, f"{path}.{field.name}")
            if inside.read(1):
                raise _refuse(f"tag {tag} is shorter than its size", path)

    def _build(self, obj: Any, stream: io.BytesIO, context: Any, path: str) -> Any:
        version = context._params.version
        sections: dict[int, bytes] = dict(obj.get("tags") or {})
        for field in self.fields:
            value = obj.get(field.name, field.default)
            where = f"{path}.{field.name}"
            if not field.exists(version):
                if value != field.default and not field.ignorable:
                    raise _refuse(f"set, but not in version {version}", where)
            elif field.tag is None:
                field.build(value, stream, context, where)
            elif value != field.default:
                inside = io.BytesIO()
                field.build(value, inside, context, where)
                sections[field.tag] = inside.getvalue()
        if context._params.encoding is Encoding.FLEXIBLE:
            _write_uvarint(len(sections), stream)
            for tag, data in sorted(sections.items()):
                _write_uvarint(tag, stream)
                _write_uvarint(len(data), stream)
                stream.write(data)
        elif sections:
            raise _refuse(f"version {version} has no tagged fields", path)
        return obj


# --- messages -----------------------------------------------------------------------------------------------


def _declaring_module() -> str:
    """The schema module that is being executed, found as `typing.TypeVar` finds its own."""
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_globals["__name__"] == __name__:
        frame = frame.f_back
    return str(frame.f_globals["__name__"]) if frame else ""


class LogRole(NamedTuple):
    """A message's place in a log that brokers keep: which log, which type of record, "key" or "value"."""

    log: str
    record_type: int
    role: str


class Message(Struct):
    """A struct that stands by itself: a request, a response, a header, or a value inside other bytes.

    name: as Kafka's; versions: first and last; flexible: the first flexible version, or None.
    api: what it belongs to; direction: "request", "response", "header" or "data".
    log_role: its place in a broker's own log, if it has one.
    module: the schema module that declares it (others may embed it).
    """

    def __init__(self, *fields: Renamed, name: str, versions: tuple[int, int], flexible: int | None,
                 direction: str, about: str = "", api: Api | None = None,
                 log_role: LogRole | None = None) -> None:  # fmt: skip
        super().__init__(*fields, about=about)
        self.name = name
        self.versions = range(versions[0], versions[1] + 1)
        self.flexible = flexible
        self.direction = direction
        self.api = api
        self.log_role = log_role
        self.module = _declaring_module()

    def encoding(self, version: int) -> Encoding:
        if version not in self.versions:
            raise _refuse(f"{self.name} has no version {version}", self.name)
        flexible = self.flexible is not None and version >= self.flexible
        return Encoding.FLEXIBLE if flexible else Encoding.CLASSIC

    def parse(self, data: bytes, *, version: int) -> Container:
        """The value of these bytes, all of them. Raises a construct error, or UnicodeDecodeError."""
        stream = io.BytesIO(data)
        value = self.parse_stream(stream, version=version, encoding=self.encoding(version))
        if stream.read(1):
            raise _refuse("trailing bytes", self.name)
        return value

    def build(self, obj: Any, *, version: int) -> bytes:
        """The bytes of this value; fields that it lacks have their defaults. Raises a construct error."""
        stream = io.BytesIO()
        self.build_stream(obj, stream, version=version, encoding=self.encoding(version))
        return stream.getvalue()


class Api:
    """A conversation: an api key with its request and response.

    versions: first and last that this package knows; flexible: the first flexible one.
    coordinator: which coordinator answers it ("group", "transaction", "share"), None for any broker.
    about: what it is for; changes: what a version brought, with its KIP.
    """

    def __init__(self, key: int, name: str, *, versions: tuple[int, int], flexible: int | None,
                 coordinator: str | None = None, about: str = "",
                 changes: dict[int, str] | None = None) -> None:  # fmt: skip
        self.key = key
        self.name = name
        self.versions = versions
        self.flexible = flexible
        self.coordinator = coordinator
        self.about = about
        self.changes = changes or {}

    def request(self, *fields: Renamed, about: str = "") -> Message:
        return self._message(fields, "Request", about)

    def response(self, *fields: Renamed, about: str = "") -> Message:
        return self._message(fields, "Response", about)

    def _message(self, fields: Iterable[Renamed], kind: str, about: str) -> Message:
        return Message(*fields, name=self.name + kind, versions=self.versions, flexible=self.flexible,
                       direction=kind.lower(), about=about, api=self)  # fmt: skip


LOGS = {
    "consumer_offsets": "__consumer_offsets",
    "transaction_state": "__transaction_state",
    "share_group_state": "__share_group_state",
    "metadata": "__cluster_metadata",
}
"""The logs that brokers write for themselves, with their topics."""


def Data(name: str, *, versions: tuple[int, int], flexible: int | None = None, direction: str = "data",
         about: str = "", log: str | None = None, record_type: int = 0,
         role: str = "value") -> Callable[..., Message]:  # fmt: skip
    """A message without an api key: `Data("EndTxnMarker", versions=(0, 0))("coordinator_epoch" / Int32)`.

    log: one of `LOGS`, for what stands in one; record_type: its type there; role: "key" or "value".
    """

    def declare(*fields: Renamed) -> Message:
        place = None if log is None else LogRole(log, record_type, role)
        return Message(*fields, name=name, versions=versions, flexible=flexible, direction=direction,
                       about=about, log_role=place)  # fmt: skip

    return declare
