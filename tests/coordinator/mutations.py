"""Requests with one field replaced by an extreme: empty or huge, negative, twice the same, absent.

Strategy: a request is taken apart into its fields, at any depth; one of them is replaced by a value that its
version can carry, which is tried by writing it and reading it back. What comes out is what a client could
send that knows the protocol and wants to do harm.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any
from uuid import UUID

from coordwire.codec import Message

_TRIES = 6
_NUMBERS = [
    *(-(2**63), -(2**31), -(2**15), -3, -2, -1, 0, 1, 2),
    *(2**15 - 1, 2**31 - 2, 2**31 - 1, 2**63 - 2, 2**63 - 1),
]
_TEXTS = ["", " ", "\0", "g", "h", "orders", "till-1", "consumer", "uniform", "ß\u4e00\U0001f600", "x" * 300]
_LONGEST = "y" * 32_767
"""What a string may have at most, wherever it is kept."""

_BYTES = [
    b"",
    b"\0",
    b"\0\0",
    b"\xff" * 9,
    b"\0\1\x7f\xff\xff\xff",
    b"\0\3\0\0\0\0\xff\xff\xff\xff",
    b"z" * 2_000,
]
_IDS = [UUID(int=0), UUID(int=1), UUID(int=2**128 - 1)]

_Place = tuple[Any, str]


def mutated(chance: random.Random, request: Message, version: int) -> Message:
    """The same request but for one field, or as it is where no replacement fits the version."""
    data = request.encode(version=version)
    for _ in range(_TRIES):
        copy: Message = type(request).decode(data, version=version)
        owner, name = chance.choice(list(_places(copy)))
        setattr(owner, name, _replacement(chance, getattr(owner, name)))
        try:
            return type(request).decode(copy.encode(version=version), version=version)
        except Exception:
            continue  # the version has no room for it
    return request


def _places(value: Any) -> Iterator[_Place]:
    for name in value.__dataclass_fields__:
        if name == "tags":
            continue
        yield value, name
        field_value = getattr(value, name)
        for item in field_value if isinstance(field_value, list) else [field_value]:
            if hasattr(item, "__dataclass_fields__"):
                yield from _places(item)


def _replacement(chance: random.Random, value: Any) -> Any:
    if value is None:
        return chance.choice(["", [], 0, b"", "x"])
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return chance.choice(_NUMBERS)
    if isinstance(value, str):
        return chance.choices([chance.choice(_TEXTS), None, _LONGEST], [16, 3, 0.3])[0]
    if isinstance(value, bytes):
        return chance.choice([*_BYTES, value[:-1], value + b"\0", None])
    if isinstance(value, UUID):
        return chance.choice(_IDS)
    if isinstance(value, list):
        few = value[:1]
        return chance.choice([[], None, value * 2, [*value, *few], value[::-1], few * 40])
    return None
