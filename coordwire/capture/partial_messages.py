"""A message that was refused half-way: which of its fields were decoded, and their JSON.

Strategy: a refusal's path gives how far the decoder came; what follows it on the wire was never
read, and its default is not a decoded value. Rules: what was decoded is shown, and no more.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from coordwire.codec import Field, Message
from coordwire.codec.walk import layout_of
from coordwire.errors import EncodeError
from coordwire.jsonform import Json, to_json

_STEP = re.compile(r"\[(\d+)\]|([^.\[]+)")
_FILLERS: dict[str, Any] = {"string": "", "bytes": b"", "records": b""}

Step = str | int


def steps(path: str) -> list[Step]:
    """A field path's names and indexes."""
    return [int(found[1]) if found[1] else found[2] for found in _STEP.finditer(path)]


def body(message: Message, version: int, path: str) -> dict[str, Json] | None:
    """The JSON form of what was decoded before the refusal at `path`; None if it has none."""
    missing = list(_missing(message, version, steps(path), []))
    for value, field, _ in missing:
        if getattr(value, field.name) is None and not field.nullable(version):  # a null that to_json refuses
            filler = [] if field.array else field.struct() if field.struct else _FILLERS.get(field.type, 0)
            setattr(value, field.name, filler)
    try:
        form = to_json(message, version=version)
    except EncodeError:
        return None
    for _, field, place in missing:
        inside: Any = form
        for step in place:
            inside = inside.get(step, {}) if isinstance(inside, dict) else inside[step]
        inside.pop(field.json_name, None)  # a tagged struct that is at its default isn't there at all
    return form


def _missing(value: Any, version: int, path: list[Step], place: list[Step]) -> Iterator[Any]:
    """The fields that weren't decoded: their struct, themselves, and where the struct is in the form."""
    if not path:
        return  # refused after the last of them
    layout = layout_of(value, version)
    name, *rest = path
    late = False
    for field in layout.inline:
        if late:
            yield value, field, place
        late = late or field.name == name
    fields = (*layout.inline, *layout.tagged.values())
    refused = next((field for field in fields if field.name == name), None)
    if refused is None:
        return
    inside = getattr(value, refused.name)
    if refused.array and rest:
        index = rest[0]
        if refused.struct and inside and index == len(inside) - 1:
            yield from _missing(inside[index], version, rest[1:], [*place, refused.json_name, index])
    elif refused.struct and not refused.array and inside is not None:
        yield from _missing(inside, version, rest, [*place, refused.json_name])
    else:
        yield value, refused, place


def decoded(fields: list[Field], path: list[Step] | None) -> tuple[list[Field], Field | None]:
    """Of a struct's fields those that were decoded whole, and the one of the refusal."""
    if not path:
        return fields, None
    for index, field in enumerate(fields):
        if field.name == path[0]:
            return fields[:index], field
    return fields, None
