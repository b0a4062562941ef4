"""What the values of a message identify: groups, members, topics, errors, as its field tables say.

Strategy: the fields with an entity, and those that lead to them, are found once for each class; a look-up
visits nothing else. Rules: entities are those of `Field.entity`; a value that is null is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

from coordwire.codec.fields import Field
from coordwire.codec.message import Struct

__all__ = ["entity_field", "entity_places", "entity_values"]


def entity_values(value: Struct | None, *entities: str) -> Iterator[Any]:
    """The values of the fields with these entities, at any depth; those of arrays one by one."""
    if value is None:
        return
    cls: Any = type(value)
    for field in _ways(cls, entities):
        inside = getattr(value, field.name)
        if inside is None:
            continue
        if field.struct is None:
            yield from inside if field.array else (inside,)
        else:
            for element in inside if field.array else (inside,):
                yield from entity_values(element, *entities)


def entity_places(value: Struct | None, *entities: str, path: str = "") -> Iterator[tuple[str, Struct, Any]]:
    """As `entity_values`, each with its path ("topics[0].error_code") and the struct that has it."""
    if value is None:
        return
    cls: Any = type(value)
    for field in _ways(cls, entities):
        inside = getattr(value, field.name)
        if inside is None:
            continue
        here = f"{path}.{field.name}" if path else field.name
        if not field.array:
            found: Iterable[tuple[str, Any]] = ((here, inside),)
        else:
            found = ((f"{here}[{index}]", element) for index, element in enumerate(inside))
        for place, element in found:
            if field.struct is None:
                yield place, value, element
            else:
                yield from entity_places(element, *entities, path=place)


@cache
def _ways(cls: Any, entities: tuple[str, ...]) -> tuple[Field, ...]:
    """The fields of these entities, and those that lead to them."""
    return tuple(
        field
        for field in cls._layout_.fields
        if (_ways(field.struct, entities) if field.struct else field.entity in entities)
    )


@cache
def entity_field(cls: Any, entity: str) -> str | None:
    """The name of the first field of a class itself, not of structs inside, that holds one value of this
    entity; None if there is none."""
    return next(
        (field.name for field in cls._layout_.fields if field.entity == entity and not field.array), None
    )
