"""What the cases of brokers and of clients share: how one ends early, and messages from plain values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from coordwire.codec import Struct
from coordwire.enums import ErrorCode
from coordwire.errors import CoordwireError
from coordwire.messages.keys import FACTS

API_KEYS = {facts.name: key for key, facts in FACTS.items()}


class Broken(CoordwireError):
    """A case's rule is broken."""


class Lacking(CoordwireError):
    """What is judged lacks what a case is about."""


def code_name(code: int) -> str:
    """An error's name, as UNKNOWN_MEMBER_ID; its number if it has none."""
    return ErrorCode(code).name if code in ErrorCode.__members__.values() else str(code)


def message_of(cls: type[Struct], values: Mapping[str, Any]) -> Any:
    """A message from plain values, by the names of its fields."""
    fields = {field.name: field for field in cls._layout_.fields}
    result = cls()
    for name, value in values.items():
        struct = fields[name].struct
        if struct is not None and value is not None:
            value = (
                [message_of(struct, item) for item in value]
                if fields[name].array
                else message_of(struct, value)
            )
        setattr(result, name, value)
    return result
