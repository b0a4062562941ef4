"""Results computed from the last few large values, each computed once: in a large group every consumer
reads the same nodes and computes the same plan.

Strategy: a value is known again by its identity, so that nothing is compared or hashed; it is kept as long as
its result. Rules: only for functions whose result depends on the value alone, and is not changed
by those who get it; a small value is not kept, as making its result again costs less than keeping it.
"""

from __future__ import annotations

from collections.abc import Callable, Sized
from typing import Generic, TypeVar

__all__ = ["RecentValues"]

_Value = TypeVar("_Value", bound=Sized)
_Made = TypeVar("_Made")

_KEPT = 8


class RecentValues(Generic[_Value, _Made]):
    """make: what makes a result. large: the length from which on a value is kept."""

    def __init__(self, make: Callable[[_Value], _Made], large: int) -> None:
        self._make = make
        self._large = large
        self._entries: dict[int, tuple[_Value, _Made]] = {}

    def __call__(self, value: _Value) -> _Made:
        if len(value) < self._large:
            return self._make(value)
        entry = self._entries.get(id(value))
        if entry is not None:  # the value is kept, so that no other has its identity
            return entry[1]
        result = self._make(value)
        if len(self._entries) >= _KEPT:
            self._entries.pop(next(iter(self._entries)), None)
        self._entries[id(value)] = value, result
        return result
