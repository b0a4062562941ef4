"""Valid messages that the hostile vectors break: one element in each array, short texts, nothing null.

Rules: a base is of one API, direction and version, is the same each time, and says nothing that the version
can't carry. `versions_of` chooses the versions of a message that are broken: the first, the last with fixed
lengths, the first with compact ones, and the last.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

from coordwire.codec import Field, Message, Struct
from tests.interop.cells import UNRELEASED

_LEAVES: dict[str, object] = {
    "string": "ab",
    "bytes": b"\x01\x02",
    "records": b"",
    "bool": True,
    "uuid": UUID(int=7),
    "float64": 1.5,
}


def base(cls: type[Message], version: int) -> Message:
    """The message to break."""
    message: Message = _struct(cls, version)
    return message


def _struct(cls: type[Struct], version: int) -> Any:
    return cls(**dict(_values(cls, version)))


def _values(cls: type[Struct], version: int) -> Iterator[tuple[str, object]]:
    for field in cls._layout_.fields:
        if field.exists(version):
            value = _one(field, version)
            yield field.name, [value] if field.array else value


def _one(field: Field, version: int) -> object:
    if field.struct is not None:
        return _struct(field.struct, version)
    return _LEAVES.get(field.type, 1)


def versions_of(cls: type[Message]) -> list[int]:
    """Those that are broken, each once."""
    known = [v for v in cls.versions if (cls.__name__, v) not in UNRELEASED]
    fixed = [v for v in known if v not in cls.flexible_versions]
    flexible = [v for v in known if v in cls.flexible_versions]
    return sorted({v for some in (fixed, flexible) if some for v in (some[0], some[-1])})
