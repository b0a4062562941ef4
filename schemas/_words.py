"""The words around a value, and the struct that holds named words: in which versions a field is there, may be
null or is tagged, and what it has by default.

Rules: as in `vocabulary.py`, through which schemas get them.
"""

from __future__ import annotations

import copy
import io
from typing import Any

import construct
from construct import Construct, Container, Renamed, Subconstruct

from schemas._values import (
    MAX_TAGGED_FIELDS,
    Encoding,
    Fixed,
    read_bytes,
    read_uvarint,
    refuse,
    write_uvarint,
)

FOREVER = 32767
"""The last version of a field that no version dropped."""


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
    """Is a tagged field, of this number, wherever it exists: left out when it has its default,
    which is that of its word unless `Default` or `Nullable` says otherwise."""

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


ORDER = ("Between", "Tagged", "Fixed", "Default", "Nullable", "Secret")
"""The words around a value from the outside in, each at most once; `Since` and `Until` are `Between`."""


class Named:
    """A field with the words around its value, as `Struct` and the generator use it."""

    def __init__(self, field: Renamed) -> None:
        self.name: str = field.name
        self.doc: str = field.docs
        self.first, self.last, self.ignorable = 0, FOREVER, False
        self.tag: int | None = None
        self.nullable_since: int | None = None
        self.nullable_until = FOREVER
        self.fixed = self.secret = False
        self.around: list[str] = []  # the words around its value, from the outside in
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
            if not isinstance(word, Renamed):
                self.around.append(type(word).__name__)
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

    def __init__(self, *fields: Renamed, doc: str = "") -> None:
        super().__init__(*fields)
        self.doc = doc
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
        count = read_uvarint(stream, path)
        if count > MAX_TAGGED_FIELDS:
            raise refuse(f"{count} tagged fields", path)
        for _ in range(count):
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
            field_stream = io.BytesIO(data)
            value[field.name] = field.parse(field_stream, context, f"{path}.{field.name}")
            if field_stream.read(1):
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
            field_path = f"{path}.{field.name}"
            if not field.exists(version):
                if value != field.default and not field.ignorable:
                    raise refuse(f"set, but not in version {version}", field_path)
            elif field.tag is None:
                field.build(value, stream, context, field_path)
            elif value != field.default:
                field_stream = io.BytesIO()
                field.build(value, field_stream, context, field_path)
                sections[field.tag] = field_stream.getvalue()
        if context._params.encoding is Encoding.FLEXIBLE:
            write_uvarint(len(sections), stream)
            for tag, data in sorted(sections.items()):
                write_uvarint(tag, stream)
                write_uvarint(len(data), stream)
                stream.write(data)
        elif sections:
            raise refuse(f"version {version} has no tagged fields", path)
        return obj
