"""The entities that the values of a message identify: groups, members, topics, errors, by its field tables.

Rules: entities are those of `Field.entity`; a value that is null is left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from coordwire.codec.message import Struct
from coordwire.codec.walk import FieldPlace, FieldSelection, fields_of

__all__ = ["entity_field", "entity_places", "entity_values"]


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
