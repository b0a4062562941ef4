"""Values at the edges of a message's fields, the same each time: what random ones seldom are all at once.

    null     null wherever it may be, tagged fields too
    empty    no elements, no characters, no bytes; zero, -0.0, the zero uuid
    fresh    one element everywhere, tagged structs set to what a fresh one holds
    least    the lowest numbers, -Infinity, empty texts in full arrays
    great    the highest numbers, Infinity, every bit of a uuid, lengths of two and three varint bytes

Rules: a value is of one version, and holds nothing that the version can't carry.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any
from uuid import UUID

from coordwire.codec import Field, Message, Struct

EDGES = ("null", "empty", "fresh", "least", "great")

_COUNTS = {"null": 1, "empty": 0, "fresh": 1, "least": 2, "great": 130}
_BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64, "uint16": 16, "uint32": 32}
_LEAVES: dict[str, dict[str, object]] = {
    "string": {"great": "é€𝄞" * 2000},
    "bytes": {"great": bytes(range(256)) * 65},
    "records": {"great": bytes(range(256)) * 65},
    "bool": {"great": True, "fresh": True},
    "uuid": {"great": UUID(int=(1 << 128) - 1)},
    "float64": {"empty": -0.0, "least": -math.inf, "great": math.inf, "fresh": 5e-324},
}
_PLAIN = {"string": "", "bytes": b"", "records": b"", "bool": False, "uuid": UUID(int=0), "float64": 0.0}


def edge(cls: type[Message], version: int, which: str) -> Message:
    """The message at one of the `EDGES`."""
    message: Message = _struct(cls, version, which, 0)
    return message


def _struct(cls: type[Struct], version: int, which: str, depth: int) -> Any:
    return cls(**dict(_values(cls, version, which, depth)))


def _values(cls: type[Struct], version: int, which: str, depth: int) -> Iterator[tuple[str, object]]:
    for field in cls._layout_.fields:
        if not field.exists(version):
            continue
        if which == "null" and field.nullable(version):
            yield field.name, None
        elif field.array:
            # one great array of structs would make the next level's many times greater
            count = 1 if field.struct and depth and which == "great" else _COUNTS[which]
            yield field.name, [_one(field, version, which, depth) for _ in range(count)]
        else:
            yield field.name, _one(field, version, which, depth)


def _one(field: Field, version: int, which: str, depth: int) -> object:
    if field.struct is not None:
        if which == "fresh" and field.tag is not None:
            return field.struct()
        return _struct(field.struct, version, which, depth + 1)
    if field.type in _BITS:
        bits, signed = _BITS[field.type], field.type.startswith("int")
        low = -(1 << bits - 1) if signed else 0
        return {"least": low, "great": low + (1 << bits) - 1, "fresh": 1}.get(which, 0)
    plain = _PLAIN[field.type]
    if which == "great" and depth and field.type == "string":
        return "é" * 70  # a length of two varint bytes
    return _LEAVES[field.type].get(which, plain)
