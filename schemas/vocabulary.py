"""Every word that a schema may use; each is a `construct` that parses and builds by itself.

Strategy: a message is a `Struct` of named words. What changes with the version (is the field there, may it be
null, how are lengths written) is decided while parsing or building, from two context parameters that
`Message.parse` and `Message.build` set: `version` and `encoding`. So one declaration serves all versions, and
the generator (`schemas/_generate`) reads the very objects that the tests run as oracle.

Rules: a word holds what it says and nothing of how coordwire runs it; parsing is strict, as `decode` is; a
field's doc is written with `*` after it. Values are plain: int, float, bool, str, bytes, uuid.UUID, None,
lists, and `Container`s with one entry a field plus `tags` (unknown tagged fields by number, or None).
"""

from __future__ import annotations

import copy
import io
import sys
from collections.abc import Callable, Iterable
from types import FrameType
from typing import Any, NamedTuple

import construct
from construct import Construct, Container, Renamed, Subconstruct

from schemas._values import (
    Array,
    Boolean,
    BrokerId,
    Bytes,
    Embedded,
    Encoding,
    ErrorCode,
    Fixed,
    Float64,
    GroupId,
    InstanceId,
    Int8,
    Int16,
    Int32,
    Int64,
    MemberId,
    ProducerId,
    Records,
    Rest,
    RestRecords,
    Sequence,
    String,
    TopicName,
    TransactionalId,
    Uint16,
    Uint32,
    Uuid,
    Varint,
    Varlong,
    read_bytes,
    read_uvarint,
    refuse,
    write_uvarint,
)

__all__ = [
    "Api",
    "Array",
    "Between",
    "Boolean",
    "BrokerId",
    "Bytes",
    "Data",
    "Default",
    "Embedded",
    "Encoding",
    "ErrorCode",
    "Fixed",
    "Float64",
    "GroupId",
    "InstanceId",
    "Int8",
    "Int16",
    "Int32",
    "Int64",
    "MemberId",
    "Nullable",
    "ProducerId",
    "Records",
    "Rest",
    "RestRecords",
    "Secret",
    "Sequence",
    "Since",
    "String",
    "Struct",
    "Tagged",
    "TopicName",
    "TransactionalId",
    "Uint16",
    "Uint32",
    "Until",
    "Uuid",
    "Varint",
    "Varlong",
]

FOREVER = 32767
"""The last version of a field that no version dropped."""

# --- words around a value -----------------------------------------------------------------------------------


class Nullable(Subconstruct):
    """May be null, in versions `since` to `until`; its default is null unless `Default` says otherwise."""

    def __init__(self, subcon: Construct, since: int = 0, until: int = FOREVER) -> None:
        super().__init__(subcon)
        self.since = since
        self.until = until
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


class Secret(Subconstruct):
    """Holds a password, a key or a token, which is not shown unless the user asks for it.

    A field called "value" is secret only beside a name that says so, as those of configs are.
    """


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
        self.nullable_until = FOREVER
        self.fixed = self.secret = False
        defaults: list[object] = []
        word: Any = field
        while isinstance(word, (Renamed, Between, Tagged, Default, Nullable, Fixed, Secret)):
            match word:
                case Between():
                    self.first, self.last, self.ignorable = word.first, word.last, word.ignorable
                case Tagged():
                    self.tag = word.tag
                case Default():
                    defaults.append(word.default)
                case Nullable():
                    self.nullable_since, self.nullable_until = word.since, word.until
                    defaults.append(None)
                case Fixed():
                    self.fixed = True
                case Secret():
                    self.secret = True
            word = word.subcon
        self.word: Any = word
        self.wrapped: Construct = Fixed(word) if self.fixed else word
        self._default = defaults[0] if defaults else word.default

    @property
    def default(self) -> Any:
        """The value of a field that is not set; a fresh one, where it can be changed."""
        value = self._default
        return copy.deepcopy(value) if isinstance(value, (dict, list)) else value

    def exists(self, version: int) -> bool:
        return self.first <= version <= self.last

    def nullable(self, version: int) -> bool:
        return self.nullable_since is not None and self.nullable_since <= version <= self.nullable_until

    # A byte 1 precedes a struct that may be null; for null -1, or 0 in a tagged field. All other words
    # have a null of their own.

    @property
    def null_marker(self) -> bytes:
        return b"\xff" if self.tag is None else b"\x00"

    def parse(self, stream: io.BytesIO, context: Any, path: str) -> object:
        version = context._params.version
        if isinstance(self.word, Struct) and self.nullable(version):
            marker = read_bytes(stream, 1, path)
            if marker == self.null_marker:
                return None
            if marker != b"\x01":
                raise refuse("a struct marker is 1, or -1 (tagged: 0) for null", path)
        value = self.wrapped._parsereport(stream, context, path)
        if value is None and not self.nullable(version):
            raise refuse("can't be null", path)
        return value

    def build(self, value: object, stream: io.BytesIO, context: Any, path: str) -> None:
        version = context._params.version
        if value is None and not self.nullable(version):
            raise refuse("can't be null", path)
        if isinstance(self.word, Struct) and self.nullable(version):
            stream.write(self.null_marker if value is None else b"\x01")
            if value is None:
                return
        self.wrapped._build(value, stream, context, path)


class Struct(construct.Struct):
    """Named words, one after the other; in flexible versions the tagged ones follow, by number."""

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
        for _ in range(read_uvarint(stream, path)):
            tag = read_uvarint(stream, path)
            if tag <= last:
                raise refuse(f"tag {tag} comes after tag {last}", path)
            last = tag
            data = read_bytes(stream, read_uvarint(stream, path), path)
            field = tagged.get(tag)
            if field is None:
                self._refuse_barred(tag, path)
                value.tags = value.tags or {}
                value.tags[tag] = data
                continue
            inside = io.BytesIO(data)
            value[field.name] = field.parse(inside, context, f"{path}.{field.name}")
            if inside.read(1):
                raise refuse(f"tag {tag} is shorter than its size", path)

    def _refuse_barred(self, tag: int, path: str) -> None:
        """A field's number is not an unknown tag, not even in versions without the field."""
        for field in self.fields:
            if field.tag == tag:
                raise refuse(f"tag {tag} is {field.name}", path)

    def _build(self, obj: Any, stream: io.BytesIO, context: Any, path: str) -> Any:
        version = context._params.version
        sections: dict[int, bytes] = dict(obj.get("tags") or {})
        for tag in sections:
            self._refuse_barred(tag, path)
        for field in self.fields:
            value = obj.get(field.name, field.default)
            where = f"{path}.{field.name}"
            if not field.exists(version):
                if value != field.default and not field.ignorable:
                    raise refuse(f"set, but not in version {version}", where)
            elif field.tag is None:
                field.build(value, stream, context, where)
            elif value != field.default:
                inside = io.BytesIO()
                field.build(value, inside, context, where)
                sections[field.tag] = inside.getvalue()
        if context._params.encoding is Encoding.FLEXIBLE:
            write_uvarint(len(sections), stream)
            for tag, data in sorted(sections.items()):
                write_uvarint(tag, stream)
                write_uvarint(len(data), stream)
                stream.write(data)
        elif sections:
            raise refuse(f"version {version} has no tagged fields", path)
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
    """A struct of its own: a request, a response, a header, or a value inside other bytes.

    name: as Kafka's; versions: first and last; flexible: the first flexible version, or None.
    api: what it belongs to; direction: "request", "response", "header" or "data".
    log_role: its place in a broker's own log, if it has one.
    draft: whether its counts are int16.
    module: the schema module that declares it (others may embed it).
    """

    def __init__(self, *fields: Renamed, name: str, versions: tuple[int, int], flexible: int | None,
                 direction: str, about: str = "", api: Api | None = None,
                 log_role: LogRole | None = None, draft: bool = False) -> None:  # fmt: skip
        super().__init__(*fields, about=about)
        self.name = name
        self.versions = range(versions[0], versions[1] + 1)
        self.flexible = flexible
        self.direction = direction
        self.api = api
        self.log_role = log_role
        self.draft = draft
        self.module = _declaring_module()

    def encoding(self, version: int) -> Encoding:
        if version not in self.versions:
            raise refuse(f"{self.name} has no version {version}", self.name)
        if self.flexible is not None and version >= self.flexible:
            return Encoding.FLEXIBLE
        return Encoding.DRAFT if self.draft else Encoding.CLASSIC

    def parse(self, data: bytes, *, version: int) -> Container:
        """The value of these bytes, all of them. Raises a construct error, or UnicodeDecodeError."""
        stream = io.BytesIO(data)
        value = self.parse_stream(stream, version=version, encoding=self.encoding(version))
        if stream.read(1):
            raise refuse("trailing bytes", self.name)
        return value

    def build(self, obj: Any, *, version: int) -> bytes:
        """The bytes of this value; fields that it lacks have their defaults. Raises a construct error."""
        stream = io.BytesIO()
        self.build_stream(obj, stream, version=version, encoding=self.encoding(version))
        return stream.getvalue()


class Api:
    """An API: an api key with its request and response.

    versions: first and last that this package knows; flexible: the first flexible one.
    coordinator: which coordinator answers it ("group", "transaction", "share"), None for any broker.
    about: what it is for; changes: what a version brought, with its KIP.
    listeners: which of Kafka's listeners accept it ("broker", "controller", and "zkBroker" where only the
    brokers of a ZooKeeper cluster did). deprecated: the first and the last version that Kafka deprecated.
    unstable: the version whose layout may still change.
    errors: the codes that a response is known to carry, as Kafka names them; none where that is unknown.
    """

    def __init__(self, key: int, name: str, *, versions: tuple[int, int], flexible: int | None,
                 coordinator: str | None = None, listeners: tuple[str, ...] = ("broker",),
                 deprecated: tuple[int, int] | None = None, unstable: int | None = None, about: str = "",
                 changes: dict[int, str] | None = None, errors: tuple[str, ...] = ()) -> None:  # fmt: skip
        self.key = key
        self.name = name
        self.versions = versions
        self.flexible = flexible
        self.coordinator = coordinator
        self.listeners = listeners
        self.deprecated = deprecated
        self.unstable = unstable
        self.about = about
        self.changes = changes or {}
        self.errors = errors

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
         about: str = "", log: str | None = None, record_type: int = 0, role: str = "value",
         encoding: Encoding = Encoding.CLASSIC) -> Callable[..., Message]:  # fmt: skip
    """A message without an api key: `Data("EndTxnMarker", versions=(0, 0))("coordinator_epoch" / Int32)`.

    log: one of `LOGS`, for what is in one; record_type: its type there; role: "key" or "value".
    encoding: of the versions that aren't flexible.
    """

    def declare(*fields: Renamed) -> Message:
        place = None if log is None else LogRole(log, record_type, role)
        return Message(*fields, name=name, versions=versions, flexible=flexible, direction=direction,
                       about=about, log_role=place, draft=encoding is Encoding.DRAFT)  # fmt: skip

    return declare
