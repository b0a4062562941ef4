"""Reading bytes with classes made for a test: the value, or the refusal in full (kind, reason, position,
path); what a decode that isn't strict makes of the same bytes."""

from __future__ import annotations

from typing import Any

import pytest

from coordwire.codec import Field, FieldTable, Message, Struct
from coordwire.codec.interpreter.decoder import Mark, Reader
from coordwire.errors import DecodeError, Deviation

FIXED, FLEXIBLE = 0, 1
MAX_INT = (1 << 31) - 1
Place = tuple[str, int, str]


def made(base: type[Any], *fields: Field, short_counts: bool = False) -> Any:
    """A class with these fields, flexible from version 1."""

    def __init__(self: Any) -> None:
        self.tags = None
        for field in fields:
            setattr(self, field.name, field.fresh_default())

    facts = {"api_key": None, "direction": "data", "versions": range(2), "flexible_versions": range(1, 2)}
    cls = type("Made", (base,), {**(facts if base is Message else {}), "__init__": __init__})
    cls._layout_ = FieldTable(cls, *fields, flexible=1, short_counts=short_counts)  # type: ignore[attr-defined]
    return cls


def one(type: str, **more: Any) -> Any:
    """A message with the one field `x`."""
    return made(Message, Field("x", type, **more))


def plain(value: Any) -> Any:
    if isinstance(value, Struct):
        content = {name: plain(inner) for name, inner in vars(value).items()}
        if content["tags"] is None:
            del content["tags"]
        return content
    return [plain(item) for item in value] if isinstance(value, list) else value


def reader(
    data: bytes,
    version: int,
    *,
    start: int = 0,
    tolerant: bool = False,
    deviations: list[Deviation] | None = None,
    marks: list[Mark] | None = None,
) -> Reader:
    return Reader(data, start, version, strict=not tolerant, deviations=deviations, marks=marks)


def strict(cls: Any, version: int, data: bytes) -> Any:
    return plain(reader(data, version).message(cls))


def tolerant(cls: Any, version: int, data: bytes) -> tuple[Any, list[Place]]:
    """The value, and what was tolerated."""
    results: list[Deviation] = []
    value = plain(reader(data, version, tolerant=True, deviations=results).message(cls))
    assert plain(reader(data, version, tolerant=True).message(cls)) == value
    return value, [(result.reason, result.position, result.path) for result in results]


def refused(
    cls: Any, version: int, data: bytes, *, tolerant: bool = False
) -> tuple[type[DecodeError], str, int, str]:
    with pytest.raises(DecodeError) as error_info:
        reader(data, version, tolerant=tolerant).message(cls)
    error = error_info.value
    assert isinstance(error.partial, cls)
    return type(error), error.reason, error.position, error.path


def refused_always(cls: Any, version: int, data: bytes) -> tuple[type[DecodeError], str, int, str]:
    result = refused(cls, version, data)
    assert refused(cls, version, data, tolerant=True) == result
    return result


INNER = made(Struct, Field("y", "int8"))
EMPTY = made(Struct)


def sized() -> Any:
    """A message of structs up to its end, each after its size."""
    return one("struct", array=True, struct=INNER, default=(), unprefixed=True)
