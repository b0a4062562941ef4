"""The exact decoder: walks bytes by the field tables, and words every refusal.

Strategy: one method a wire type; a path of names and indexes is kept while walking, objects are attached to
their parents before they are filled, so that a refusal carries what was decoded before it. A strict
decode refuses whatever isn't canonical; strict=False accepts what Apache Kafka's decoder accepts, deviation
by deviation: Java's int arithmetic, negative lengths as null, any non-zero boolean, sizes of known tags
ignored.

Rules: every claim of a length or count is checked against the bytes left, and charged to the budgets, before
anything is allocated. No other exception leaves.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from coordwire.codec.declarations import as_class
from coordwire.codec.fields import CODES, FIXED, LEAF_FACTOR, TEXTS, Field, VersionLayout
from coordwire.codec.primitives import ELEMENT_COST, MAX_STRING, as_uuid
from coordwire.errors import DecodeError, Deviation, LimitExceeded, Malformed, Truncated, counted
from coordwire.limits import MAX_ARRAY_ELEMENTS, MAX_TAGGED_FIELDS, current

if TYPE_CHECKING:
    from coordwire.codec.message import Message

M = TypeVar("M", bound="Message")
Sort = Literal["value", "length", "count", "tags", "marker"]

_UNPACK: dict[str, Callable[[bytes, int], tuple[Any, ...]]] = {
    kind: struct.Struct(f">{code}").unpack_from for kind, code in CODES.items()
}


def _java_text(data: bytes) -> str:
    """What Java reads: as Python's "replace", but a surrogate's whole encoding is one replacement."""
    return _SURROGATE.sub(b"\xef\xbf\xbd", data).decode("utf-8", "replace")


_SURROGATE = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")
"""ED is not a continuation byte: where it is, a sequence starts."""


@dataclass(frozen=True, slots=True)
class Mark:
    """Where a part of a value is: `length` bytes from `offset`, and what they mean.

    sort: "value" for a field's own bytes, else what precedes or joins them (a length, a count, …).
    owner: the class that has the field, for the values of numbers.
    """

    offset: int
    length: int
    path: str
    value: object
    sort: Sort
    kind: str
    owner: str = ""


MOST_DEVIATIONS = 1000
"""How many deviations of one decode are listed; one more reports that there are others."""


class PassingMarks(list[Mark]):
    """Marks that are handed on one by one and not kept; elements of arrays aren't kept either after they are
    read."""

    def __init__(self, take: Callable[[Mark], None]) -> None:
        super().__init__()
        self._take = take

    def append(self, mark: Mark) -> None:
        self._take(mark)


class Reader:
    """One walk over `data` from `start`, whose offsets count from the start of `data`."""

    def __init__(
        self,
        data: bytes,
        start: int,
        version: int,
        *,
        strict: bool = True,
        deviations: list[Deviation] | None = None,
        marks: list[Mark] | None = None,
    ) -> None:
        self.data = data
        self.pos = start
        self.end = len(data)
        self.version = version
        self.strict = strict
        self.deviations = deviations
        self.marks = marks
        self.keeps = not isinstance(marks, PassingMarks)
        self.steps: list[str | int] = []
        budget = current()
        self.elements = budget.elements
        size = len(data) - start
        self.memory = budget.memory_for(size) - LEAF_FACTOR * size

    def message(self, cls: type[M], *, to_end: bool = True) -> M:
        """The message from here on. to_end: nothing may follow it."""
        value = self.blank(cls._layout_.at(self.version))
        try:
            self.fill(value, cls._layout_.at(self.version))
            if to_end and self.pos < self.end:
                self.deviate(counted(size := self.end - self.pos, "trailing byte"), self.pos, size)
        except DecodeError as error:
            error.partial = value
            raise
        return as_class(cls, value)

    # --- what goes wrong ---

    def refuse(self, kind: type[DecodeError], reason: str, at: int) -> DecodeError:
        return kind(reason, at, self.path())

    def deviate(self, reason: str, at: int, unread: int = 0) -> None:
        """Note a deviation, or raise it if strict. unread: as in `Deviation`."""
        if self.strict:
            raise self.refuse(Malformed, reason, at)
        if self.deviations is None or len(self.deviations) > MOST_DEVIATIONS:
            return
        if len(self.deviations) == MOST_DEVIATIONS:
            reason = f"more than {MOST_DEVIATIONS:,} deviations: the rest are not listed"
            unread = self.end - at
        self.deviations.append(Deviation(reason, at, self.path(), unread))

    def path(self) -> str:
        parts = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in self.steps)
        return "".join(parts).removeprefix(".")

    def mark(self, offset: int, value: object, sort: Sort, kind: str, owner: str = "") -> None:
        if self.marks is not None:
            self.marks.append(Mark(offset, self.pos - offset, self.path(), value, sort, kind, owner))

    def need(self, count: int, subject: str) -> int:
        """Move past `count` bytes; return their start. Raises `Truncated`."""
        at, remaining = self.pos, self.end - self.pos
        if count > remaining:
            reason = f"{subject} needs {counted(count, 'byte')}, {remaining} left"
            error = Truncated(reason, at, self.path())
            error.missing = count - remaining
            raise error
        self.pos = at + count
        return at

    def charge(self, count: int, cost: int, at: int) -> None:
        """Book `count` elements of `cost` bytes each before they exist."""
        self.elements -= count
        self.memory -= count * cost
        if self.elements < 0:
            raise self.refuse(
                LimitExceeded, f"{counted(count, 'more element')} would exceed the budget of elements", at
            )
        if self.memory < 0:
            raise self.refuse(
                LimitExceeded, f"{counted(count, 'more element')} would exceed the budget of memory", at
            )

    # --- lengths ---

    def uvarint(self, subject: str) -> int:
        """An unsigned varint; unless strict, Java's: a signed int that drops the high bits."""
        at = self.pos
        value = byte = 0
        for index in range(5):
            byte = self.data[self.need(1, subject)]
            value |= (byte & 127) << 7 * index
            if byte < 128:
                break
        else:
            raise self.refuse(Malformed, f"the varint of {subject} has more than 5 bytes", at)
        if value >> 32:
            self.deviate(f"the varint of {subject} overflows 32 bits", at)
        elif byte == 0 and self.pos - at > 1:
            self.deviate(f"the varint of {subject} is over-long", at)
        if self.strict:
            return value
        return (value & 0xFFFF_FFFF ^ 0x8000_0000) - 0x8000_0000

    def length(self, layout: VersionLayout, field: Field, subject: str, kind: str) -> int:
        """A length or count of this field, of type `kind` where it isn't compact; negative for null."""
        at = self.pos
        if layout.compact(field):
            value = self.uvarint(subject) - 1
            if value < -(1 << 31):  # Java's int wraps around
                value += 1 << 32
        else:
            (value,) = _UNPACK[kind](self.data, self.need(FIXED[kind], subject))
        if kind == "int16" and value > MAX_STRING:
            raise self.refuse(Malformed, f"a string of {value} bytes is longer than {MAX_STRING}", at)
        if value < -1:
            self.deviate(f"{subject} is {value}", at)
        return int(value)

    # --- values ---

    def blank(self, layout: VersionLayout) -> Any:
        """An object whose fields all have their defaults."""
        return layout.cls()

    def fill(self, value: Any, layout: VersionLayout) -> None:
        """Read a struct's fields into `value`."""
        for field in layout.inline:
            self.steps.append(field.name)
            self.field(value, field, layout)
            self.steps.pop()
        if layout.flexible:
            self.tags(value, layout)

    def field(self, value: Any, field: Field, layout: VersionLayout) -> None:
        if field.array:
            self.array(value, field, layout)
        elif field.struct is not None:
            self.struct(value, field)
        else:
            setattr(value, field.name, self.leaf(field, layout, null=field.nullable(self.version)))

    def leaf(self, field: Field, layout: VersionLayout, *, null: bool) -> object:
        """A number, boolean, uuid, string or bytes."""
        kind = field.type
        if kind in FIXED:
            at = self.need(FIXED[kind], kind)
            (raw,) = _UNPACK[kind](self.data, at)
            value = as_uuid(raw) if kind == "uuid" else raw
            if kind == "bool":
                value = raw != 0
                if raw > 1:
                    self.deviate(f"a boolean is {raw}", at)
            self.mark(at, value, "value", kind, layout.cls.__name__)
            return value
        start = self.pos
        if field.unprefixed:
            self.pos = max(start, self.end)
            self.mark(start, self.data[start : self.pos], "value", kind)
            return self.data[start : self.pos]
        wide = "int16" if kind == "string" else "int32"
        length = self.length(layout, field, f"the length of a {kind}", wide)
        if length < 0:
            if not null:
                raise self.refuse(Malformed, f"a {kind} that can't be null is null", start)
            self.mark(start, None, "value", kind)
            return None
        self.mark(start, length, "length", kind)
        at = self.need(length, kind)
        data = self.data[at : self.pos]
        text = self.text(data, at) if kind in TEXTS else data
        if length:
            self.mark(at, text, "value", kind)
        return text

    def text(self, data: bytes, at: int) -> str:
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            self.deviate(f"invalid UTF-8: {error.reason}", at + error.start, len(data))
            return _java_text(data)

    def struct(self, value: Any, field: Field) -> None:
        assert field.struct is not None
        if field.nullable(self.version):
            at = self.pos
            if field.tag is None:
                (marker,) = _UNPACK["int8"](self.data, self.need(1, "a struct's marker"))
                null, absent = -1, marker < 0
            else:  # Kafka writes a number of another form here
                marker = self.uvarint("a struct's marker")
                null, absent = 0, marker <= 0
            if marker not in (null, 1):
                self.deviate(f"a struct's marker is {marker}", at)
            self.mark(at, marker, "marker", "struct")
            if absent:
                setattr(value, field.name, None)
                return
        inner = field.struct._layout_.at(self.version)
        child = self.blank(inner)
        setattr(value, field.name, child)
        self.fill(child, inner)

    def array(self, value: Any, field: Field, layout: VersionLayout) -> None:
        at = self.pos
        if field.unprefixed:
            self.sequence(value, field, layout)
            return
        count = self.length(layout, field, "the count of an array", layout.count_type)
        if count < 0:
            if not field.nullable(self.version):
                raise self.refuse(Malformed, "an array that can't be null is null", at)
            setattr(value, field.name, None)
            self.mark(at, None, "value", "array")
            return
        min_size, remaining = layout.element_min_size(field), self.end - self.pos
        if count * min_size > remaining or (min_size == 0 and count > remaining):
            claimed = f"{counted(count, 'element')} of at least {counted(min_size, 'byte')}"
            reason = f"{claimed} claimed, {counted(remaining, 'byte')} left"
            raise self.refuse(Truncated, reason, at)
        if count > MAX_ARRAY_ELEMENTS:
            reason = f"an array of {count:,} elements: Kafka's limit is {MAX_ARRAY_ELEMENTS:,}"
            raise self.refuse(LimitExceeded, reason, at)
        self.charge(count, layout.element_memory_cost(field), at)
        self.mark(at, count, "count", "array")
        items: list[Any] = []
        setattr(value, field.name, items)
        inner = field.struct._layout_.at(self.version) if field.struct else None
        for index in range(count):
            self.steps.append(index)
            if inner is None:
                items.append(self.leaf(field, layout, null=False))
            else:
                child = self.blank(inner)
                items.append(child)
                self.fill(child, inner)
            if not self.keeps:
                items.clear()
            self.steps.pop()

    def sequence(self, value: Any, field: Field, layout: VersionLayout) -> None:
        """Structs up to the end, each after its size."""
        assert field.struct is not None
        items: list[Any] = []
        setattr(value, field.name, items)
        inner, end = field.struct._layout_.at(self.version), self.end
        while self.pos < end:
            self.steps.append(len(items))
            at = self.pos
            (size,) = _UNPACK["int32"](self.data, self.need(4, "a size"))
            if size < 0:
                raise self.refuse(Malformed, f"a size is {size}", at)
            self.mark(at, size, "length", "int32")
            if size > end - self.pos:
                raise self.refuse(Truncated, f"{counted(size, 'byte')} claimed, {end - self.pos} left", at)
            self.charge(1, layout.element_memory_cost(field), at)
            child = self.blank(inner)
            items.append(child)
            self.end = self.pos + size
            self.fill(child, inner)
            if self.pos < self.end:
                remaining = self.end - self.pos
                self.deviate(f"{counted(remaining, 'byte')} too many", self.pos, remaining)
                self.pos = self.end
            self.end = end
            self.steps.pop()

    # --- tagged fields ---

    def tags(self, value: Any, layout: VersionLayout) -> None:
        at = self.pos
        count = self.uvarint("the count of tagged fields")
        remaining = self.end - self.pos
        if count * 2 > remaining:
            raise self.refuse(
                Truncated, f"{counted(count, 'tagged field')} claimed, {counted(remaining, 'byte')} left", at
            )
        if count > MAX_TAGGED_FIELDS:
            reason = f"{count:,} tagged fields: Kafka's limit is {MAX_TAGGED_FIELDS:,} after one struct"
            raise self.refuse(LimitExceeded, reason, at)
        self.charge(max(count, 0), ELEMENT_COST, at)
        self.mark(at, count, "tags", "uvarint")
        last = -1
        for _ in range(count):
            at = self.pos
            tag = self.uvarint("a tag") & 0xFFFF_FFFF  # Java's negative ones are large on the wire
            if tag <= last:
                self.deviate(f"tag {tag} comes after tag {last}", at, self.end - at)
            last = tag
            size = self.uvarint(f"the size of tag {tag}")
            field = layout.tagged.get(tag)
            self.mark(at, (tag, size), "tags", "tag" if field is None else field.name)
            if field is not None:
                self.known_tag(value, field, layout, tag, size)
                continue
            if tag in layout.reserved:  # Kafka refuses it too
                reason = f"tag {tag} is {layout.reserved[tag].name}, which version {self.version} lacks"
                raise self.refuse(Malformed, reason, at)
            if size < 0:
                raise self.refuse(Malformed, f"tag {tag} has a size of {size}", at)
            start = self.need(size, f"tag {tag}")
            if value.tags is None:
                value.tags = {}
            value.tags[tag] = self.data[start : self.pos]
            self.steps.append(f"tags[{tag}]")
            self.mark(start, value.tags[tag], "value", "bytes")
            self.steps.pop()

    def known_tag(self, value: Any, field: Field, layout: VersionLayout, tag: int, size: int) -> None:
        start, end = self.pos, self.end
        self.steps.append(field.name)
        if self.strict:  # a strict field may not look beyond its size
            if size > end - start:
                raise self.refuse(
                    Truncated, f"tag {tag} needs {counted(size, 'byte')}, {end - start} left", start
                )
            self.end = start + size
        self.field(value, field, layout)
        if self.pos != start + size:
            self.deviate(
                f"tag {tag} claims {counted(size, 'byte')} and has {self.pos - start}", start, abs(size)
            )
        self.end = end
        self.steps.pop()
