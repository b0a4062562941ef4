"""Field and FieldTable: the wire form of a generated class, in every version, as data.

Strategy: one `Field` row a field, as in the schema; `FieldTable.at(version)` resolves the rows to the
`VersionLayout` of one version, once. The interpreter, the JSON form, the strategies and the command line read
nothing else. Rules: rows are immutable; costs and least sizes are upper and lower bounds that hold for any
bytes, since budgets are charged by them before anything is allocated.
"""

from __future__ import annotations

import builtins
import re
import struct
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from coordwire._speedups import _native
    from coordwire.codec.message import Struct

FOREVER = 32767
"""The last version of a field that no version dropped."""

NEVER = 32768
"""The first version in which a field that can't be null may be null."""

CODES = {
    "int8": "b", "int16": "h", "int32": "i", "int64": "q", "uint16": "H", "uint32": "I", "float64": "d",
    "bool": "B", "uuid": "16s",
}  # fmt: skip
"""The types whose size is fixed, by their codes in `struct`."""

FIXED = {kind: struct.calcsize(f">{code}") for kind, code in CODES.items()}
"""Bytes on the wire of the types whose size is fixed."""

LEAF_FACTOR = 10
"""Bytes of memory that a byte of text (4) or of an array of numbers (10) may take: kept back from the budget,
which else counts objects."""

TEXTS = ("string", "long_string")
"""The types whose values are text; the length of a string is an int16, that of a long string an int32."""

_COST = {"bool": 0, "uuid": 128, "string": 80, "long_string": 80, "bytes": 80, "records": 80}
_ARRAY_COST = 88
_STRUCT_COST = 48
_SCALAR_COST = 32
_SLOT = 8

_ACRONYM_SAFE = re.compile(r"_([a-z0-9])")


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a message or struct.

    name: the Python attribute; type: its word in Kafka's definitions, "struct" for a nested one.
    first, last: the versions in which it is on the wire (`FOREVER`: no version dropped it).
    array: an array of `type`; struct: the nested class. null, null_until: the first and the last version in
    which it may be null.
    default: the value of one that is not set (None for null; for arrays else an empty list is meant by ()).
    tag: its number, where it is a tagged field. ignorable: dropped where the version lacks it, not refused.
    fixed: keeps fixed lengths in flexible versions.
    embedded: the messages that its bytes may hold, each after the protocol type or protocol for which it
    does; "" means for any. unprefixed: bytes without a length, or structs without a count but each after its
    int32 size, up to the end.
    entity: what its values identify: Kafka's entity types "broker_id", "group_id", "producer_id",
    "topic_name" and "transactional_id", besides "member_id", "instance_id" (of a static member),
    "broker_host" and "broker_port" (where clients reach a broker) and "error_code"; None for all other
    fields. secret: holds a password, a key or a token.
    """

    name: str
    type: str
    first: int = 0
    last: int = FOREVER
    array: bool = False
    struct: builtins.type[Struct] | None = None
    null: int = NEVER
    default: Any = 0
    tag: int | None = None
    ignorable: bool = False
    fixed: bool = False
    embedded: tuple[tuple[str, str], ...] = ()
    null_until: int = FOREVER
    unprefixed: bool = False
    entity: str | None = None
    secret: bool = False

    @property
    def json_name(self) -> str:
        """Apache Kafka's own name, as its JSON has it."""
        return _ACRONYM_SAFE.sub(lambda match: match[1].upper(), self.name)

    @property
    def embedded_name(self) -> str | None:
        """The message that its bytes hold, the first if there are several; None for mere bytes."""
        return self.embedded[0][1] if self.embedded else None

    def exists(self, version: int) -> bool:
        return self.first <= version <= self.last

    def nullable(self, version: int) -> bool:
        return self.null <= version <= self.null_until

    def fresh_default(self) -> Any:
        """The default, a new one where it can be changed."""
        if self.default is None:
            return None
        if self.array:
            return []
        if self.struct is not None:
            return self.struct()
        return self.default

    def is_set(self, value: object) -> bool:
        """Whether a value differs from the default."""
        if self.array and self.default is not None:
            return value is None or not isinstance(value, (list, tuple)) or len(value) > 0
        if self.struct is not None and self.default is not None:
            if not isinstance(value, self.struct) or value.tags:
                return True
            return any(field.is_set(getattr(value, field.name)) for field in self.struct._layout_.fields)
        return bool(value != self.default)


class FieldTable:
    """The rows of one class. flexible: the first version with tagged fields and compact lengths (`NEVER`:
    none); short_counts: whether its counts are int16, as before Kafka 0.8.

    >>> from coordwire.messages import HeartbeatRequest
    >>> HeartbeatRequest._layout_
    <FieldTable of HeartbeatRequest: 4 fields, flexible from 4>
    """

    __slots__ = ("_layouts", "cls", "fields", "flexible", "short_counts")

    def __init__(
        self, cls: type[Struct], *fields: Field, flexible: int = NEVER, short_counts: bool = False
    ) -> None:
        self.cls = cls
        self.fields = fields
        self.flexible = flexible
        self.short_counts = short_counts
        self._layouts: dict[int, VersionLayout] = {}

    def __repr__(self) -> str:
        flexible = "never flexible" if self.flexible == NEVER else f"flexible from {self.flexible}"
        fields = f"{len(self.fields)} field{'s' * (len(self.fields) != 1)}"
        return f"<FieldTable of {self.cls.__name__}: {fields}, {flexible}>"

    def at(self, version: int) -> VersionLayout:
        """The layout of one version."""
        layout = self._layouts.get(version)
        if layout is None:
            layout = self._layouts[version] = VersionLayout(self, version)
        return layout


class VersionLayout:
    """A layout in one version: the fields on the wire, in order, and the absent ones.

    reserved: the tagged fields that only other versions have. Their numbers are not unknown tags: Apache
    Kafka's own readers refuse them ("Tag 0 is not valid for version 0").

    >>> from coordwire.messages import HeartbeatRequest
    >>> layout = HeartbeatRequest._layout_.at(2)
    >>> layout
    <VersionLayout of HeartbeatRequest 2>
    >>> [field.name for field in layout.inline], [field.name for field in layout.absent]
    (['group_id', 'generation_id', 'member_id'], ['group_instance_id'])
    """

    def __init__(self, table: FieldTable, version: int) -> None:
        self.table = table
        self.cls = table.cls
        self.version = version
        self.flexible = version >= table.flexible
        self.count_type = "int16" if table.short_counts else "int32"
        present = [field for field in table.fields if field.exists(version)]
        self.inline = [field for field in present if field.tag is None]
        self.tagged = {field.tag: field for field in present if field.tag is not None}
        self.absent = [field for field in table.fields if not field.exists(version)]
        self.reserved = {field.tag: field for field in self.absent if field.tag is not None}
        self.programs: list[_native.Program | None] = []  # `coordwire.codec.program` keeps its result here
        self.transcribers: list[_native.Transcriber | None] = []  # and `coordwire.codec.program` here

    def __repr__(self) -> str:
        return f"<VersionLayout of {self.cls.__name__} {self.version}>"

    @property
    def tagged_in_order(self) -> list[Field]:
        """The tagged fields by number, as they are written."""
        return [self.tagged[tag] for tag in sorted(self.tagged)]

    def compact(self, field: Field) -> bool:
        """Whether a field's length or count is a varint of one more than its value."""
        return self.flexible and not field.fixed

    def inner(self, field: Field) -> VersionLayout | None:
        """The layout of a field's struct; None for a field of another type."""
        return field.struct._layout_.at(self.version) if field.struct is not None else None

    @cached_property
    def min_size(self) -> int:
        """The fewest bytes that any value takes on the wire."""
        return sum(self.min_size_of(field) for field in self.inline) + self.flexible

    def min_size_of(self, field: Field) -> int:
        if field.unprefixed:
            return 0
        if field.array or field.type in (*TEXTS, "bytes", "records"):
            if self.compact(field):
                return 1
            if field.array:
                return FIXED[self.count_type]
            return 2 if field.type == "string" else 4
        if field.struct is not None:
            return 1 if field.nullable(self.version) else self.element_min_size(field)
        return FIXED[field.type]

    def element_min_size(self, field: Field) -> int:
        """The fewest bytes of one element of an array field, or of a struct without its marker."""
        if field.struct is not None:
            return field.struct._layout_.at(self.version).min_size + (4 if field.unprefixed else 0)
        if field.type in FIXED:
            return FIXED[field.type]
        return 1 if self.flexible else 2 if field.type == "string" else 4

    @cached_property
    def memory_cost(self) -> int:
        """The bytes of memory that an object of this layout may take, its arrays' elements and texts
        apart."""
        fields = self.table.fields
        return _STRUCT_COST + _SLOT * (len(fields) + 1) + sum(self._cost_of(field) for field in fields)

    def _cost_of(self, field: Field) -> int:
        exists = field.exists(self.version)
        if field.array:
            return _ARRAY_COST if exists or field.default is not None else 0
        if field.struct is not None:
            return self._struct_cost(field.struct) if exists or field.default is not None else 0
        return _COST.get(field.type, _SCALAR_COST) if exists else 0

    def _struct_cost(self, struct: type[Struct]) -> int:
        return struct._layout_.at(self.version).memory_cost

    def element_memory_cost(self, field: Field) -> int:
        """The bytes of memory that one element of an array field may take, its slot in the list included.

        Numbers of 4 or 8 bytes take at most ten times their bytes, which `LEAF_FACTOR` keeps back for them.
        """
        if field.type in ("int32", "int64"):
            return 0
        inner = self._struct_cost(field.struct) if field.struct else _COST.get(field.type, _SCALAR_COST)
        return _SLOT + inner
