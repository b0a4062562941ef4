"""Requests that are filled from their field tables: one array gets many elements, the others get one each.

    for path in array_paths(FetchRequest, 12):      ("topics",), ("topics", "partitions"), …
        filled(FetchRequest, 12, path, 100, named)

`named(path, field, number)` gives the value of a field that is not a struct: the path of names that leads to
it, its `Field`, and the number of the element that it is in (0 outside of the array); `KEEP` keeps the
default. Where it gives `OMIT` for a struct, or an array of them, that is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from coordwire.codec import Message
from coordwire.codec.fields import Field

Path: TypeAlias = tuple[str, ...]
Value = Callable[[Path, Field, int], Any]

KEEP, OMIT = object(), object()


def array_paths(cls: Any, version: int, path: Path = ()) -> Iterator[Path]:
    """Where a message has arrays, in a version."""
    for field in cls._layout_.fields:
        if field.exists(version):
            if field.array:
                yield (*path, field.name)
            if field.struct is not None:
                yield from array_paths(field.struct, version, (*path, field.name))


def filled(cls: Any, version: int, large: Path, numbers: list[int], value: Value) -> Message:
    """A message whose array at a path has an element for each number."""
    made: Message = _filled(cls, version, (), large, numbers, 0, value)
    return made


def _filled(
    cls: Any, version: int, path: Path, large: Path, numbers: list[int], number: int, value: Value
) -> Any:
    message = cls()
    for field in cls._layout_.fields:
        if not field.exists(version):
            continue
        here = (*path, field.name)

        def element(number: int, field: Field = field, here: Path = here) -> Any:
            if field.struct is not None:
                return _filled(field.struct, version, here, large, numbers, number, value)
            return value(here, field, number)

        if field.struct is not None and value(here, field, number) is OMIT:
            if field.array:
                setattr(message, field.name, [])
            continue
        if field.array:
            made = [element(one) for one in (numbers if here == large else [number])]
            kept = any(one is KEEP for one in made)
        else:
            made = element(number)
            kept = made is KEEP
        if not kept:
            setattr(message, field.name, made)
    return message
