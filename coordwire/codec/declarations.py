"""The declarations in the body of a generated class: each field's wire form beside its type and default.

Strategy: `field`, `array` and `struct` give a dataclass field that carries the row of the field table, and
`rows` collects the rows once the dataclass is whole. Rules: each names its default, since a type checker and
an editor read it from there: with `wire_class`, which they know as one that makes dataclasses, they show
`group_id: str = ""` and nothing of the wire form.

Field tables belong to generated classes; whatever reads a table makes objects of its class first: `owner` has
the generated class of a user's subclass, and `as_class` a message as an object of one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, cast, dataclass_transform

from coordwire.codec.fields import FOREVER, NEVER, Field

if TYPE_CHECKING:
    from coordwire.codec.message import Message, Struct

__all__ = ["array", "field", "rows", "struct", "wire_class"]

T = TypeVar("T")

_ROW = "row"


def field(
    type: str,
    *,
    default: Any,
    since: int = 0,
    until: int = FOREVER,
    null: int = NEVER,
    null_until: int = FOREVER,
    tag: int | None = None,
    ignorable: bool = False,
    fixed: bool = False,
    embedded: tuple[tuple[str, str], ...] = (),
    unprefixed: bool = False,
    entity: str | None = None,
    secret: bool = False,
) -> Any:
    """A field that holds one value. since, until: the versions that have it; the others as in `Field`."""
    row = Field(
        "", type, since, until, False, None, null, default, tag, ignorable, fixed, embedded, null_until,
        unprefixed, entity, secret,
    )  # fmt: skip
    return dataclasses.field(default=default, metadata={_ROW: row})


def array(
    of: str | type[Struct],
    *,
    default: list[Any] | None,
    since: int = 0,
    until: int = FOREVER,
    null: int = NEVER,
    null_until: int = FOREVER,
    tag: int | None = None,
    ignorable: bool = False,
    fixed: bool = False,
    unprefixed: bool = False,
    entity: str | None = None,
) -> Any:
    """An array: of a type, by its word, or of a struct. default: [], of which each message has its own, or
    None for null."""
    kind, cls = (of, None) if isinstance(of, str) else ("struct", of)
    row = Field(
        "", kind, since, until, True, cls, null, None if default is None else (), tag, ignorable, fixed, (),
        null_until, unprefixed, entity,
    )  # fmt: skip
    if default is None:
        return dataclasses.field(default=None, metadata={_ROW: row})
    return dataclasses.field(default_factory=list, metadata={_ROW: row})


def struct(
    of: type[Struct],
    *,
    default: Struct | None,
    since: int = 0,
    until: int = FOREVER,
    null: int = NEVER,
    null_until: int = FOREVER,
    tag: int | None = None,
    ignorable: bool = False,
) -> Any:
    """A struct. default: one whose fields have theirs, of which each message has its own, or None for
    null."""
    preset = None if default is None else 0
    row = Field("", "struct", since, until, False, of, null, preset, tag, ignorable, null_until=null_until)
    if default is None:
        return dataclasses.field(default=None, metadata={_ROW: row})
    return dataclasses.field(default_factory=of, metadata={_ROW: row})


@dataclass_transform(kw_only_default=True, field_specifiers=(field, array, struct))
def wire_class(cls: type[T]) -> type[T]:
    """Make a slotted dataclass with keyword arguments only."""
    return dataclasses.dataclass(slots=True, kw_only=True)(cls)


def rows(declared: dict[str, dataclasses.Field[Any]]) -> list[Field]:
    """The rows of a dataclass's fields, named; empty for one whose fields have no wire form."""
    table = []
    for name, declaration in declared.items():
        row: Field | None = declaration.metadata.get(_ROW)
        if row is not None:
            object.__setattr__(row, "name", name)  # known only now
            table.append(row)
    return table


M = TypeVar("M", bound="Message")


def owner(cls: type[Message]) -> type[Message]:
    """The generated class: the class itself, or the one that a user's subclass inherits from."""
    return cast("type[Message]", cls._layout_.cls)


def as_class(cls: type[M], message: Message) -> M:
    """A decoded object as one of the requested class, which may be a user's subclass."""
    if message.__class__ is cls:
        return message
    instance = object.__new__(cls)
    for name in (*(field.name for field in cls._layout_.fields), "tags"):
        setattr(instance, name, getattr(message, name))
    return instance


def positional(cls: type[M], *names: str) -> Callable[..., M]:
    """A constructor of messages with these fields, by position, and all others at their defaults.

    It does what the class does in two thirds of the time: for messages that are made very often.
    """
    namespace: dict[str, Any] = {"new": object.__new__, "cls": cls}
    lines = [f"def make({', '.join(names)}):", "message = new(cls)"]
    for declared in dataclasses.fields(cls):  # type: ignore[arg-type]  # each message is a dataclass
        name, value = declared.name, f"default_{declared.name}"
        if name in names:
            value = name
        elif declared.default is not dataclasses.MISSING:
            namespace[value] = declared.default
        else:
            namespace[value] = declared.default_factory
            value += "()"
        lines.append(f"message.{name} = {value}")
    lines.append("return message")
    exec("\n  ".join(lines), namespace)
    make: Callable[..., M] = namespace["make"]
    return make
