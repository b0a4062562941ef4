"""A message that was refused half-way: which of its fields were decoded, and their JSON.

Strategy: a refusal's path gives how far the decoder came; what follows it on the wire was never
read, and its default is not a decoded value. Rules: only fields that were decoded are shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
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
    return [int(step[1]) if step[1] else step[2] for step in _STEP.finditer(path)]


def body(message: Message, version: int, path: str) -> dict[str, Json] | None:
    """The JSON form of the fields that were decoded before the refusal at `path`; None if it has none."""
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
        part: Any = form
        for step in place:
            part = part.get(step, {}) if isinstance(part, dict) else part[step]
        part.pop(field.json_name, None)  # a tagged struct that is at its default isn't there at all
    return form


def _missing(value: Any, version: int, path: list[Step], place: list[Step]) -> Iterator[Any]:
    """The fields that weren't decoded: their struct, themselves, and where the struct is in the form."""
    if not path:
        return  # refused after the last of them
    layout = layout_of(value, version)
    name, *remaining = path
    late = False
    for field in layout.inline:
        if late:
            yield value, field, place
        late = late or field.name == name
    fields = (*layout.inline, *layout.tagged.values())
    refused = next((field for field in fields if field.name == name), None)
    if refused is None:
        return
    content = getattr(value, refused.name)
    if refused.array and remaining:
        index = remaining[0]
        if refused.struct and content and index == len(content) - 1:
            yield from _missing(content[index], version, remaining[1:], [*place, refused.json_name, index])
    elif refused.struct and not refused.array and content is not None:
        yield from _missing(content, version, remaining, [*place, refused.json_name])
    else:
        yield value, refused, place


def decoded(fields: Sequence[Field], path: list[Step] | None) -> tuple[Sequence[Field], Field | None]:
    """Of a struct's fields those that were decoded whole, and the one of the refusal."""
    if not path:
        return fields, None
    for index, field in enumerate(fields):
        if field.name == path[0]:
            return fields[:index], field
    return fields, None
