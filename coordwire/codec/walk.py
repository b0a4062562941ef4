"""One walk over the fields of messages: each with its path, the struct that has it, and its value.

    for path, owner, field, value in walk(message, version): ...      all of them
    TOPICS = FieldSelection(lambda field: field.entity == "topic_name")
    for path, owner, field, value in TOPICS.places(message): ...      only these, and quickly
    for value in TOPICS.values(message): ...                          the same without paths
    for group in entity_values(message, "group_id"): ...              values by what they identify

Strategy: `fields_of` is one level, for code that lays out structs by itself; `walk` goes through every level;
a `FieldSelection` finds once for each class which fields match or lead to some that do, and visits nothing
else.

Rules: time is linear in the values visited, and depth is that of the schema, since a struct is entered by its
field's class: a value of another type is reported, but not entered. Paths are those of errors
("topics[0].partitions[2].error_code"). A struct or an array of structs comes before what is inside; the
elements of other arrays come one by one. Without a version all fields count, in the schema's order; with
one only those that it has, in the order of the bytes: tagged fields last, by number. Unknown tagged fields
are not fields: they are in `owner.tags`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple

from coordwire.codec.fields import Field, VersionLayout
from coordwire.codec.message import Struct


class FieldPlace(NamedTuple):
    """A value in a message.

    path: from the message down; owner: the struct that has the field.
    """

    path: str
    owner: Struct
    field: Field
    value: Any


def layout_of(struct: Struct | type[Struct], version: int) -> VersionLayout:
    """The layout of one version of a class, or of a struct's class."""
    return struct._layout_.at(version)


def fields_of(struct: Struct | type[Struct], version: int | None = None) -> tuple[Field, ...]:
    """The fields of a class, or of a struct's class, itself: of a version in the order of the bytes."""
    table = struct._layout_
    if version is None:
        return table.fields
    layout = table.at(version)
    return (*layout.inline, *layout.tagged_in_order)


def elements(path: str, field: Field, value: Any) -> Iterator[tuple[str, Any]]:
    """A field's value with its path, or those of an array one by one; nothing for null."""
    if value is None:
        return
    if not field.array:
        yield path, value
        return
    for index, element in enumerate(value):
        yield f"{path}[{index}]", element


def walk(value: Struct, version: int | None = None, path: str = "") -> Iterator[FieldPlace]:
    """All fields of a message or struct, at every depth, in order; of a version, or of all versions.

    path: that of the struct itself, where it is inside a message.
    """
    prefix = f"{path}." if path else ""
    for field in fields_of(value, version):
        content, place = getattr(value, field.name), f"{prefix}{field.name}"
        if field.struct is None and field.array and isinstance(content, (list, tuple)):
            for index, element in enumerate(content):
                yield FieldPlace(f"{place}[{index}]", value, field, element)
            continue
        yield FieldPlace(place, value, field, content)
        if field.struct is not None:
            array = field.array and isinstance(content, (list, tuple))
            for way, element in elements(place, field, content) if array else ((place, content),):
                if isinstance(element, field.struct):
                    yield from walk(element, version, way)


class FieldSelection:
    """The fields for which `matches` holds, wherever they are in a message.

    matches: a function of the field alone, called once for each class and version. Nulls are left out; a
    struct is read by its field's class, so that a value of another type raises `AttributeError`.
    """

    def __init__(self, matches: Callable[[Field], object]) -> None:
        self._matches = matches
        self._by_version: dict[int | None, dict[Any, tuple[Field, ...]]] = {}

    def fields(self, cls: Any, version: int | None = None) -> tuple[Field, ...]:
        """The fields of a class that match, or lead to some that do."""
        return self._classes(version).get(cls) or self._fields(cls, version)

    def _classes(self, version: int | None) -> dict[Any, tuple[Field, ...]]:
        """What is known so far of the classes in a version."""
        classes = self._by_version.get(version)
        return self._by_version.setdefault(version, {}) if classes is None else classes

    def _fields(self, cls: Any, version: int | None) -> tuple[Field, ...]:
        classes = self._classes(version)
        if cls not in classes:
            classes[cls] = tuple(
                field
                for field in cls._layout_.fields
                if (version is None or field.exists(version))
                and (self._matches(field) if field.struct is None else self._fields(field.struct, version))
            )
        return classes[cls]

    def values(self, value: Struct, version: int | None = None) -> Iterator[Any]:
        """The values, those of arrays one by one, in the schema's order."""
        cls = value._layout_.cls
        self._fields(cls, version)  # and so of all classes inside
        return _values(value, cls, self._classes(version))

    def places(self, value: Struct, version: int | None = None) -> Iterator[FieldPlace]:
        """The same, each with its path and the struct that has it."""
        cls = value._layout_.cls
        self._fields(cls, version)
        return _places(value, cls, self._classes(version), "")


def _values(value: Struct, cls: Any, classes: dict[Any, tuple[Field, ...]]) -> Iterator[Any]:
    for field in classes[cls]:
        content = getattr(value, field.name)
        if content is None:
            continue
        struct = field.struct
        if struct is None:
            yield from content if field.array else (content,)
        else:
            for element in content if field.array else (content,):
                yield from _values(element, struct, classes)


def _places(
    value: Struct, cls: Any, classes: dict[Any, tuple[Field, ...]], prefix: str
) -> Iterator[FieldPlace]:
    for field in classes[cls]:
        path, content, struct = prefix + field.name, getattr(value, field.name), field.struct
        if field.array:
            for place, element in elements(path, field, content):
                if struct is None:
                    yield FieldPlace(place, value, field, element)
                else:
                    yield from _places(element, struct, classes, f"{place}.")
        elif content is not None:
            if struct is None:
                yield FieldPlace(path, value, field, content)
            else:
                yield from _places(content, struct, classes, f"{path}.")


def entity_values(value: Struct | None, *entities: str) -> Iterator[Any]:
    """The values of the fields with these entities, at any depth; those of arrays one by one."""
    return iter(()) if value is None else _selection(entities).values(value)


def entity_places(value: Struct | None, *entities: str) -> Iterator[FieldPlace]:
    """The same, each with its path ("topics[0].error_code") and the struct that has it."""
    return iter(()) if value is None else _selection(entities).places(value)


@cache
def _selection(entities: tuple[str, ...]) -> FieldSelection:
    return FieldSelection(lambda field: field.entity in entities)


@cache
def entity_field(cls: Any, entity: str) -> str | None:
    """The name of the first field of a class itself, not of structs inside, that holds one value of this
    entity; None if there is none."""
    return next((field.name for field in fields_of(cls) if field.entity == entity and not field.array), None)
