"""Rows of which there are millions, made at native speed.

Strategy: a frozen dataclass with slots takes a call for each of its fields; the native half fills them all at
once. Rule: what is made is what the class makes of the same values.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any, TypeVar

from coordwire._speedups import native

T = TypeVar("T")


def row_maker(cls: type[T]) -> Callable[..., T]:
    """Makes a row of a dataclass with slots from the values of all its fields, in their order."""
    names = tuple(one.name for one in fields(cls))  # type: ignore[arg-type]
    if hasattr(cls, "__post_init__"):
        raise TypeError(f"{cls.__name__} does more than keep its values")
    if native is not None:
        made: Callable[..., T] = native.SlotMaker(cls, names).make
        return made

    def make(*values: Any) -> T:
        return cls(**dict(zip(names, values, strict=True)))

    return make
