"""The exact encoder: walks a value by the field tables, and words every refusal.

Strategy and rules: those of the decoder, from value to bytes. A field that the version lacks must have its
default or be ignorable; a number must be an int in range, a boolean a bool, a struct an object of its class;
sizes are checked against the range of their length fields. Every refusal is an `EncodeError` with the field's
path.
"""

from __future__ import annotations

import struct
from operator import index
from typing import TYPE_CHECKING, Any
from uuid import UUID

from coordwire.codec.fields import FIXED, NEVER, TEXTS, Field, VersionLayout
from coordwire.codec.primitives import MAX_STRING, uvarint
from coordwire.errors import EncodeError, NotInVersion, OutOfRange, WrongType

if TYPE_CHECKING:
    from coordwire.codec.message import Message

_BITS = {"int8": (8, True), "int16": (16, True), "int32": (32, True), "int64": (64, True),
         "uint16": (16, False), "uint32": (32, False)}  # fmt: skip
_MAX_INT = (1 << 31) - 1


def _display(value: Any) -> str:
    """A number for a reason; Python refuses to print one of thousands of digits."""
    number = index(value)
    return str(number) if number.bit_length() <= 256 else f"a number of {number.bit_length()} bits"


class Writer:
    """One walk over a message, for one version."""

    def __init__(self, version: int) -> None:
        self.version = version
        self.steps: list[str | int] = []
        self.out = bytearray()

    def message(self, value: Message) -> bytes:
        self.struct(value, value._layout_.at(self.version))
        return bytes(self.out)

    def refuse(self, kind: type[EncodeError], reason: str) -> EncodeError:
        parts = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in self.steps)
        return kind(reason, "".join(parts).removeprefix("."))

    def wrong(self, expected: str, value: object) -> EncodeError:
        return self.refuse(WrongType, f"expected {expected}, got {type(value).__name__}")

    def struct(self, value: Any, layout: VersionLayout) -> None:
        if not isinstance(value, layout.cls):
            raise self.wrong(layout.cls.__name__, value)
        for field in layout.absent:
            if not field.ignorable and field.is_set(getattr(value, field.name)):
                self.steps.append(field.name)
                raise self.refuse(NotInVersion, f"set, but not in version {self.version}")
        for field in layout.inline:
            self.steps.append(field.name)
            self.field(getattr(value, field.name), field, layout)
            self.steps.pop()
        if layout.flexible:
            self.tags(value, layout)
        elif value.tags:
            self.steps.append("tags")
            raise self.refuse(NotInVersion, f"version {self.version} has no tagged fields")

    def field(self, value: Any, field: Field, layout: VersionLayout) -> None:
        null = field.nullable(self.version)
        if value is None and not null:
            if field.null != NEVER:
                raise self.refuse(NotInVersion, f"can't be null in version {self.version}")
            raise self.wrong(field.type, None)
        if field.array:
            self.array(value, field, layout)
        elif field.struct is not None:
            if null:
                self.out.append(1 if value is not None else 255 if field.tag is None else 0)
            if value is not None:
                self.struct(value, field.struct._layout_.at(self.version))
        else:
            self.leaf(value, field, layout)

    def array(self, value: Any, field: Field, layout: VersionLayout) -> None:
        if value is None:
            self.length(-1, field, layout, layout.count_type)
            return
        if not isinstance(value, (list, tuple)):
            raise self.wrong("list", value)
        if not field.unprefixed:
            self.length(len(value), field, layout, layout.count_type)
        inner = field.struct._layout_.at(self.version) if field.struct else None
        for number, element in enumerate(value):
            self.steps.append(number)
            if inner is not None and field.unprefixed:
                self.sized(element, inner)
            elif inner is not None:
                self.struct(element, inner)
            elif element is None:
                raise self.wrong(field.type, None)
            else:
                self.leaf(element, field, layout)
            self.steps.pop()

    def sized(self, value: Any, layout: VersionLayout) -> None:
        """A struct after its size."""
        outer, self.out = self.out, bytearray()
        self.struct(value, layout)
        if len(self.out) > _MAX_INT:
            raise self.refuse(OutOfRange, f"{len(self.out)} bytes are beyond an int32 size")
        outer += struct.pack(">i", len(self.out)) + self.out
        self.out = outer

    def length(self, value: int, field: Field, layout: VersionLayout, kind: str) -> None:
        """A length or count, of type `kind` where it isn't compact."""
        most = MAX_STRING if kind == "int16" else _MAX_INT
        if value > most:
            raise self.refuse(OutOfRange, f"{value} is too long: at most {most}")
        if layout.compact(field):
            self.out += uvarint(value + 1)
        else:
            self.out += struct.pack(">h" if kind == "int16" else ">i", value)

    def leaf(self, value: Any, field: Field, layout: VersionLayout) -> None:
        kind = field.type
        if kind in FIXED:
            self.out += self.fixed(value, kind)
            return
        wide = "int16" if kind == "string" else "int32"
        if value is None:
            self.length(-1, field, layout, wide)
            return
        data = self.text(value) if kind in TEXTS else self.octets(value)
        if not field.unprefixed:
            self.length(len(data), field, layout, wide)
        self.out += data

    def fixed(self, value: Any, kind: str) -> bytes:
        if kind == "bool":
            if not isinstance(value, bool):
                raise self.wrong("bool", value)
            return b"\1" if value else b"\0"
        if kind == "uuid":
            if not isinstance(value, UUID):
                raise self.wrong("UUID", value)
            return value.bytes
        if kind == "float64":
            try:
                return struct.pack(">d", value)
            except (struct.error, TypeError, ValueError, OverflowError):
                if isinstance(value, int):
                    raise self.refuse(OutOfRange, "beyond float64") from None
                raise self.wrong("float", value) from None
        bits, signed = _BITS[kind]
        try:
            return index(value).to_bytes(bits // 8, "big", signed=signed)
        except TypeError:
            raise self.wrong("int", value) from None
        except OverflowError:
            raise self.refuse(OutOfRange, f"{_display(value)} is beyond {kind}") from None

    def text(self, value: Any) -> bytes:
        if not isinstance(value, str):
            raise self.wrong("str", value)
        try:
            return str.encode(value)
        except UnicodeEncodeError as error:
            raise self.refuse(OutOfRange, f"not encodable as UTF-8: {error.reason}") from None

    def octets(self, value: Any) -> bytes:
        if not isinstance(value, (bytes, bytearray, memoryview)):
            raise self.wrong("bytes", value)
        return bytes(value)

    def tags(self, value: Any, layout: VersionLayout) -> None:
        sections: list[tuple[int, bytes]] = []
        outer = self.out
        for tag, field in layout.tagged.items():
            content = getattr(value, field.name)
            if field.is_set(content):
                self.out = bytearray()
                self.steps.append(field.name)
                self.field(content, field, layout)
                self.steps.pop()
                sections.append((tag, bytes(self.out)))
        self.out = outer
        sections += self.unknown_tags(value.tags, layout)
        self.out += uvarint(len(sections))
        for tag, data in sorted(sections):
            self.out += uvarint(tag) + uvarint(len(data)) + data

    def unknown_tags(self, tags: Any, layout: VersionLayout) -> list[tuple[int, bytes]]:
        if not tags:
            return []
        self.steps.append("tags")
        if not isinstance(tags, dict):
            raise self.wrong("dict", tags)
        sections = []
        for tag, data in tags.items():
            if not isinstance(tag, int) or isinstance(tag, bool):
                raise self.wrong("int as a tag", tag)
            if not 0 <= tag < 1 << 32:
                raise self.refuse(OutOfRange, f"tag {_display(tag)} is beyond uint32")
            if tag in layout.tagged:
                raise self.refuse(OutOfRange, f"tag {tag} is the known field {layout.tagged[tag].name}")
            if tag in layout.reserved:
                name = layout.reserved[tag].name
                raise self.refuse(
                    NotInVersion, f"tag {tag} is the field {name}, which version {self.version} lacks"
                )
            self.steps.append(tag)
            sections.append((int(tag), self.octets(data)))
            self.steps.pop()
        self.steps.pop()
        return sections
