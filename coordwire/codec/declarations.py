"""The declarations in the body of a generated class: each field's wire form beside its type and default.

Strategy: `field`, `array` and `struct` give a row of the field table; `wire_class` collects the rows and
makes slots of them. Bytes are read and written by the table alone, so what else a dataclass has is made, by
`dataclass` itself, when it is first used: that takes several times as long as all else in loading a class.

Rules: each declaration names its default, since a type checker and an editor read it from there: with
`wire_class`, which they know as one that makes dataclasses, they show `group_id: str = ""` and nothing of the
wire form.

Field tables belong to generated classes; whatever reads a table makes objects of its class first: `owner` has
the generated class of a user's subclass, and `as_class` a message as an object of one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, cast, dataclass_transform

from coordwire.codec.class_docs import ClassDoc
from coordwire.codec.fields import FOREVER, NEVER, Field, FieldTable

if TYPE_CHECKING:
    from coordwire.codec.message import Message, Struct

S = TypeVar("S", bound="Struct")


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
    return Field(
        "", type, since, until, False, None, null, default, tag, ignorable, fixed, embedded, null_until,
        unprefixed, entity, secret,
    )  # fmt: skip


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
    return Field(
        "", kind, since, until, True, cls, null, None if default is None else (), tag, ignorable, fixed, (),
        null_until, unprefixed, entity,
    )  # fmt: skip


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
    return Field("", "struct", since, until, False, of, null, preset, tag, ignorable, null_until=null_until)


@dataclass_transform(kw_only_default=True, field_specifiers=(field, array, struct))
def wire_class(cls: type[S]) -> type[S]:
    """Make a slotted dataclass with keyword arguments only, and its field table."""
    namespace, rows = dict(vars(cls)), []
    for name in cls.__annotations__:
        declared = namespace.pop(name)
        if isinstance(declared, Field):  # all but `tags`
            object.__setattr__(declared, "name", name)  # known only now
            rows.append(declared)
    for name in ("__dict__", "__weakref__"):  # which belong to the class without slots
        namespace.pop(name, None)
    namespace["__slots__"] = tuple(cls.__annotations__)
    namespace["__qualname__"] = cls.__qualname__
    namespace["__doc__"] = ClassDoc(cls.__doc__ or "")  # none: python -OO
    slotted: type[S] = type(cls)(cls.__name__, cls.__bases__, namespace)  # type: ignore[misc]
    slotted._layout_ = FieldTable(slotted, *rows, flexible=cls._flexible_, short_counts=cls._short_counts_)
    return slotted


class DataclassAttribute:
    """An attribute that `dataclass` makes of a generated class, with the others, when one is first used."""

    __slots__ = ("name",)

    def __set_name__(self, owner: type[Struct], name: str) -> None:
        self.name = name

    def __get__(self, instance: object, owner: type[Struct]) -> Any:
        if hasattr(owner, "_layout_"):
            cls = owner._layout_.cls
            _complete(cls)
            value = vars(cls)[self.name]
        else:  # a base class, which is not a dataclass
            value = getattr(object, self.name)
        return value.__get__(instance, owner) if callable(value) else value


def _complete(cls: type[Struct]) -> None:
    """Take over what `dataclass` makes of a twin, which has the fields and nothing else."""
    namespace = {name: getattr(cls, name) for name in ("__module__", "__qualname__", "__annotations__")}
    namespace |= {"__doc__": "A twin.", "tags": None}
    for row in cls._layout_.fields:
        default, fresh = _preset(row)
        namespace[row.name] = dataclasses.field(default_factory=fresh) if fresh else default
    twin = type(cls.__name__, (), namespace)
    for name, value in vars(dataclasses.dataclass(slots=True, kw_only=True)(twin)).items():
        if name not in vars(cls):
            setattr(cls, name, value)


def _preset(row: Field) -> tuple[Any, Any]:
    """A field's default, and what makes one where each message has its own."""
    return row.default, None if row.default is None else list if row.array else row.struct


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
    presets = {row.name: _preset(row) for row in cls._layout_.fields} | {"tags": (None, None)}
    for name, (default, fresh) in presets.items():
        value = f"default_{name}"
        if name in names:
            value = name
        else:
            namespace[value] = fresh or default
            value += "()" if fresh else ""
        lines.append(f"message.{name} = {value}")
    lines.append("return message")
    exec("\n  ".join(lines), namespace)
    make: Callable[..., M] = namespace["make"]
    return make
