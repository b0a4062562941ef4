"""An answer in an older version: fields that the version does not have get their defaults.

Kafka's handlers leave out, field by field, what a client of an old version could not read. Here one function
does it for all fields that are not ignorable, by the field tables.
"""

from __future__ import annotations

from typing import Any

from coordwire.codec import Struct
from coordwire.codec.walk import fields_of

__all__ = ["fit"]


def fit(value: Struct, version: int) -> None:
    """Reset the fields that the version does not have, at every depth."""
    cls: Any = type(value)
    fresh: Any = None
    for field in fields_of(cls):
        if not field.first <= version <= field.last:
            if fresh is None:
                fresh = cls()
            setattr(value, field.name, getattr(fresh, field.name))
        elif field.struct is not None:
            inner = getattr(value, field.name)
            for element in (inner or ()) if field.array else (inner,):
                if element is not None:
                    fit(element, version)
